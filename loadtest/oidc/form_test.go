package oidc

import (
	"net/url"
	"strings"
	"testing"
)

var pages = []struct {
	name, page, action string
	ok                 bool
}{
	{"as Keycloak writes it", `<html><body><form id="kc-form-login" onsubmit="login.disabled = true; return true;" action="http://h/realms/r/login-actions/authenticate?session_code=a-B_1&amp;execution=e&amp;client_id=app&amp;tab_id=t" method="post"><input name="username"></form>`,
		"http://h/realms/r/login-actions/authenticate?session_code=a-B_1&execution=e&client_id=app&tab_id=t", true},
	{"action first, single quotes", `<form action='/x?a=1&amp;b=2' id='kc-form-login'>`, "/x?a=1&b=2", true},
	{"unquoted, capitals", "<FORM ID=kc-form-login\nACTION=/x>", "/x", true},
	{"spaces around the sign", `<form id = "kc-form-login" action = "/x" >`, "/x", true},
	{"another form first", `<form id="kc-social" action="/no"></form><form id="kc-form-login" action="/x"></form>`, "/x", true},
	{"numeric reference", `<form id="kc-form-login" action="/x?a=1&#38;b=2&#x26;c=3">`, "/x?a=1&b=2&c=3", true},
	{"in a comment", `<!-- <form id="kc-form-login" action="/no"> --><p>`, "", false},
	{"in a script", `<script>"<form id=kc-form-login action=/no>"</script><form id="kc-form-login" action="/x">`, "/x", true},
	{"greater sign in a value", `<form data-x="a>b" id="kc-form-login" action="/x">`, "/x", true},
	{"no action", `<form id="kc-form-login">`, "", false},
	{"given twice", `<form id="kc-form-login" id="other" action="/x" action="/no">`, "/x", true},
	{"a longer tag name", `<formula id="kc-form-login" action="/no">`, "", false},
	{"no form", `<html><h1>We are sorry...</h1></html>`, "", false},
	{"open quote", `<form id="kc-form-login" action="/x`, "", false},
	{"slash", `<form/id="kc-form-login"/action="/x"/>`, "/x", true},
	{"empty", "", "", false},
}

func TestFormAction(t *testing.T) {
	for _, tt := range pages {
		t.Run(tt.name, func(t *testing.T) {
			if action, ok := formAction([]byte(tt.page), loginForm); action != tt.action || ok != tt.ok {
				t.Errorf("action %q %v, wanted %q %v", action, ok, tt.action, tt.ok)
			}
		})
	}
}

func FuzzFormAction(f *testing.F) {
	for _, p := range pages {
		f.Add(p.page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		action, ok := formAction([]byte(page), loginForm)
		if ok != (action != "") {
			t.Errorf("action %q, ok %v", action, ok)
		}
		if ok && !strings.Contains(strings.ToLower(page), "<form") {
			t.Errorf("action %q in a page without a form", action)
		}
	})
}

// FuzzFormRoundTrip: an action that a page carries escaped comes back whole.
func FuzzFormRoundTrip(f *testing.F) {
	f.Add("session_code=a&execution=b", " class=x ")
	f.Fuzz(func(t *testing.T, query, between string) {
		if strings.ContainsAny(between, `<>"'=&`) || strings.Contains(strings.ToLower(between), "id") {
			return
		}
		want := "http://h/x?" + url.QueryEscape(query) + "&tab_id=1"
		page := `<p><form ` + between + ` id="kc-form-login" action="` + strings.ReplaceAll(want, "&", "&amp;") + `">`
		if got, ok := formAction([]byte(page), loginForm); !ok || got != want {
			t.Errorf("action %q, wanted %q", got, want)
		}
	})
}
