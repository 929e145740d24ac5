package oidc

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxCookies bounds a jar; the oldest go first.
const maxCookies = 64

// Jar holds the cookies of one virtual user's browser. It respects Path and
// expiry, gives values back exactly as they came, quotes included, and ignores
// Secure: Keycloak marks its cookies Secure even over plain http to loopback,
// where a browser sends them (a loopback address is trustworthy) and a
// conforming jar would not. Cookies go back to the host that set them.
type Jar struct {
	cookies []cookie
}

type cookie struct {
	host, path, name, value string
	expires                 time.Time // zero: with the session
}

// Clear forgets everything.
func (j *Jar) Clear() { j.cookies = j.cookies[:0] }

// Set takes in one Set-Cookie line of an answer from host to a request for
// path. A line without a name, or with a control character, is left out.
func (j *Jar) Set(host, path, line string, now time.Time) {
	pair, attributes, _ := strings.Cut(line, ";")
	name, value, found := strings.Cut(pair, "=")
	c := cookie{host: host, name: strings.TrimSpace(name), value: strings.TrimSpace(value), path: defaultPath(path)}
	if !found || c.name == "" || hasControl(c.name) || hasControl(c.value) {
		return
	}
	gone := c.read(attributes, now)
	j.remove(c)
	if gone {
		return
	}
	if len(j.cookies) == maxCookies {
		j.cookies = append(j.cookies[:0], j.cookies[1:]...)
	}
	j.cookies = append(j.cookies, c)
}

func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// read takes Path, Max-Age and Expires; gone tells that the cookie is expired,
// which is how a server deletes it. Max-Age wins over Expires (RFC 6265, 5.3).
func (c *cookie) read(attributes string, now time.Time) (gone bool) {
	hasMaxAge, expires := false, ""
	for attributes != "" {
		var attribute string
		attribute, attributes, _ = strings.Cut(attributes, ";")
		name, value, _ := strings.Cut(attribute, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Path"):
			if strings.HasPrefix(value, "/") && !hasControl(value) {
				c.path = value
			}
		case strings.EqualFold(name, "Max-Age"):
			seconds, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				continue
			}
			hasMaxAge, gone = true, seconds <= 0
			c.expires = now.Add(time.Duration(seconds) * time.Second)
		case strings.EqualFold(name, "Expires"):
			expires = value // of several the last one counts
		}
	}
	if hasMaxAge || expires == "" {
		return gone
	}
	at, err := http.ParseTime(strings.ReplaceAll(expires, "-", " "))
	if err != nil {
		return gone
	}
	c.expires = at
	return !at.After(now)
}

// defaultPath is the directory of a request's path (RFC 6265, 5.1.4).
func defaultPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func (j *Jar) remove(c cookie) {
	kept := j.cookies[:0]
	for _, old := range j.cookies {
		if old.host != c.host || old.path != c.path || old.name != c.name {
			kept = append(kept, old)
		}
	}
	j.cookies = kept
}

// Header is the value of the Cookie line for a request to host and path, or ""
// when there is nothing to send. Longer paths come first, as in browsers.
func (j *Jar) Header(host, path string, now time.Time) string {
	var fit [maxCookies]*cookie
	n := 0
	for i := range j.cookies {
		c := &j.cookies[i]
		if c.host != host || !underPath(path, c.path) || (!c.expires.IsZero() && !c.expires.After(now)) {
			continue
		}
		at := n
		for at > 0 && len(fit[at-1].path) < len(c.path) {
			fit[at] = fit[at-1]
			at--
		}
		fit[at] = c
		n++
	}
	if n == 0 {
		return ""
	}
	var b strings.Builder
	for i, c := range fit[:n] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(c.name)
		b.WriteByte('=')
		b.WriteString(c.value)
	}
	return b.String()
}

// underPath is RFC 6265's path-match.
func underPath(path, cookiePath string) bool {
	return strings.HasPrefix(path, cookiePath) &&
		(len(path) == len(cookiePath) || strings.HasSuffix(cookiePath, "/") || path[len(cookiePath)] == '/')
}
