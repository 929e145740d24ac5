package oidc

import (
	"bytes"
	"html"
	"strings"
)

// loginForm is the id of Keycloak's login form, in every theme since 3.
const loginForm = "kc-form-login"

// formAction finds the form with that id in an HTML page and gives the URL it
// posts to, unescaped. ok is false where there is no such form or it has no
// action. It reads just enough HTML for that: tags, their attributes with any
// quoting and in any order, comments and scripts passed over.
func formAction(page []byte, id string) (action string, ok bool) {
	for {
		i := bytes.IndexByte(page, '<')
		if i < 0 {
			return "", false
		}
		page = page[i+1:]
		switch {
		case bytes.HasPrefix(page, []byte("!--")):
			page = after(page, "-->")
		case isTag(page, "script"):
			page = after(page, "</script")
		case isTag(page, "style"):
			page = after(page, "</style")
		case isTag(page, "form"):
			var formID string
			formID, action, page = formAttributes(page[len("form"):])
			if formID == id {
				return action, action != ""
			}
		}
	}
}

// after is what follows mark, or nothing.
func after(page []byte, mark string) []byte {
	for i := 0; i+len(mark) <= len(page); i++ {
		if strings.EqualFold(string(page[i:i+len(mark)]), mark) {
			return page[i+len(mark):]
		}
	}
	return nil
}

func isTag(page []byte, name string) bool {
	return len(page) > len(name) && strings.EqualFold(string(page[:len(name)]), name) &&
		(isSpace(page[len(name)]) || page[len(name)] == '>' || page[len(name)] == '/')
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// formAttributes reads attributes up to the tag's end and gives id, action and
// what follows. Of attributes given twice the first counts, as in HTML.
func formAttributes(b []byte) (id, action string, rest []byte) {
	var hasID, hasAction bool
	for {
		for len(b) > 0 && (isSpace(b[0]) || b[0] == '/') {
			b = b[1:]
		}
		if len(b) == 0 || b[0] == '>' {
			return id, action, b
		}
		n := 1
		for n < len(b) && !isSpace(b[n]) && b[n] != '=' && b[n] != '>' && b[n] != '/' {
			n++
		}
		name := string(b[:n])
		b = bytes.TrimLeft(b[n:], " \t\n\r\f")
		if len(b) == 0 || b[0] != '=' {
			continue
		}
		var value []byte
		value, b = attributeValue(bytes.TrimLeft(b[1:], " \t\n\r\f"))
		switch {
		case strings.EqualFold(name, "id") && !hasID:
			id, hasID = html.UnescapeString(string(value)), true
		case strings.EqualFold(name, "action") && !hasAction:
			action, hasAction = html.UnescapeString(string(value)), true
		}
	}
}

func attributeValue(b []byte) (value, rest []byte) {
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		end := bytes.IndexByte(b[1:], b[0])
		if end < 0 {
			return nil, nil // an open quote swallows the rest of the page
		}
		return b[1 : 1+end], b[end+2:]
	}
	n := 0
	for n < len(b) && !isSpace(b[n]) && b[n] != '>' {
		n++
	}
	return b[:n], b[n:]
}
