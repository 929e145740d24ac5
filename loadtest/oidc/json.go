package oidc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// errNotJSON is an answer that is no JSON object.
var errNotJSON = errors.New("no JSON object")

// eachField walks through the fields of a JSON object and gives each key and
// raw value to f. It reads to the object's end, so that a cut-off answer is
// noticed, but looks no closer into values than it needs to find their ends:
// a third of the CPU time of a request would go into that with encoding/json.
func eachField(doc []byte, f func(key, value []byte)) error {
	b := skipSpace(doc)
	if len(b) == 0 || b[0] != '{' {
		return errNotJSON
	}
	b = skipSpace(b[1:])
	if len(b) > 0 && b[0] == '}' {
		return atEnd(b[1:])
	}
	for {
		if len(b) == 0 || b[0] != '"' {
			return errNotJSON
		}
		n := stringEnd(b)
		if n < 0 {
			return errNotJSON
		}
		key := b[1 : n-1]
		if b = skipSpace(b[n:]); len(b) == 0 || b[0] != ':' {
			return errNotJSON
		}
		b = skipSpace(b[1:])
		if n = valueEnd(b); n <= 0 {
			return errNotJSON
		}
		f(key, b[:n])
		if b = skipSpace(b[n:]); len(b) == 0 {
			return errNotJSON
		}
		switch b[0] {
		case '}':
			return atEnd(b[1:])
		case ',':
			b = skipSpace(b[1:])
		default:
			return errNotJSON
		}
	}
}

func atEnd(b []byte) error {
	if len(skipSpace(b)) > 0 {
		return errNotJSON
	}
	return nil
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// stringEnd is where the string at the start of b ends, both quotes included;
// -1 if it doesn't.
func stringEnd(b []byte) int {
	at := 1
	for {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			return -1
		}
		at += i + 1
		// An odd number of backslashes before it escapes the quote.
		slashes := 0
		for b[at-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
}

// valueEnd is where the value at the start of b ends; 0 or less if it doesn't.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		return nestedEnd(b)
	}
	n := 0
	for n < len(b) && b[n] != ',' && b[n] != '}' && b[n] != ']' && b[n] != ' ' && b[n] != '\n' && b[n] != '\r' && b[n] != '\t' {
		n++
	}
	return n
}

// nestedEnd is where the object or list at the start of b ends.
func nestedEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			n := stringEnd(b[i:])
			if n < 0 {
				return -1
			}
			i += n
			continue
		}
		i++
	}
	return -1
}

// text is a JSON string's text; "" for any other value.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// number is a JSON number; 0 for any other value.
func number(value []byte) float64 {
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0
	}
	return f
}
