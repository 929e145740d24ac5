package oidc

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/benchctl/benchctl/inventory/secret"
)

// maxText bounds what is kept of an answer, in bytes.
const maxText = 300

var (
	jwtPattern = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*)*`)
	// named values that open something, in queries, forms, JSON and cookies.
	namedPattern = regexp.MustCompile(`(?i)\b(access_token|refresh_token|id_token|code|session_code|session_state|client_data|tab_id|client_secret|password|code_verifier|state|nonce|token|AUTH_SESSION_ID\w*|KC_\w+|KEYCLOAK_\w+)(["']?\s*[=:]\s*["']?)([^"'&\s<>;,]{4,})`)
	skipPattern  = regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)\s*>|<!--.*?-->`)
	tagPattern   = regexp.MustCompile(`(?s)<[^>]*>`)
)

// scrub takes secrets out of a text and shortens it.
func scrub(text string, secrets ...string) string {
	for _, s := range secrets {
		// Short ones would turn up in ordinary words.
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, secret.Redacted)
		}
	}
	text = jwtPattern.ReplaceAllString(text, secret.Redacted)
	text = namedPattern.ReplaceAllString(text, "${1}${2}"+secret.Redacted)
	text = strings.ToValidUTF8(text, "?")
	if len(text) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// pageText is the readable text of a page or of any other body.
func pageText(body []byte) string {
	const enough = 16 << 10
	text := string(body[:min(len(body), enough)])
	if strings.Contains(text, "<") {
		text = skipPattern.ReplaceAllString(text, " ")
		text = html.UnescapeString(tagPattern.ReplaceAllString(text, " "))
	}
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return "(empty)"
	}
	return text
}
