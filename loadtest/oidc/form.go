package oidc

import (
	"bytes"
	"html"
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

// after is what follows mark, or nothing. The mark begins with a sign that has
// no case and is rare where it is looked for.
func after(page []byte, mark string) []byte {
	for {
		i := bytes.IndexByte(page, mark[0])
		if i < 0 || len(page)-i < len(mark) {
			return nil
		}
		if page = page[i:]; sameWord(page[:len(mark)], mark) {
			return page[len(mark):]
		}
		page = page[1:]
	}
}

func isTag(page []byte, name string) bool {
	return len(page) > len(name) && sameWord(page[:len(name)], name) &&
		(isSpace(page[len(name)]) || page[len(name)] == '>' || page[len(name)] == '/')
}

// sameWord compares with lower-case ASCII text without regard to case.
func sameWord(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
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
		name := b[:n]
		b = bytes.TrimLeft(b[n:], " \t\n\r\f")
		if len(b) == 0 || b[0] != '=' {
			continue
		}
		var value []byte
		value, b = attributeValue(bytes.TrimLeft(b[1:], " \t\n\r\f"))
		switch {
		case sameWord(name, "id") && !hasID:
			id, hasID = html.UnescapeString(string(value)), true
		case sameWord(name, "action") && !hasAction:
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
