package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest/dataset"
)

// Only a server with nothing but its own realm is one whose data may go.
func TestEmptyServer(t *testing.T) {
	const password = "s3cret-pass-word"
	tests := []struct {
		name, realms string
		status       int // of the list
		empty        bool
		fails        string
	}{
		{"its own realm only", `[{"realm": "master"}]`, 200, true, ""},
		{"another beside it", `[{"realm": "master"}, {"realm": "by-hand"}]`, 200, false, ""},
		{"not its own", `[{"realm": "by-hand"}]`, 200, false, ""},
		{"none", `[]`, 200, false, ""},
		{"refused", `{}`, 403, false, "list the realms: GET"},
		{"no JSON", `<html>`, 200, false, "read what"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("POST /auth/realms/master/protocol/openid-connect/token", func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("password") != password || r.FormValue("username") != "admin" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				fmt.Fprint(w, `{"access_token": "t0ken"}`)
			})
			mux.HandleFunc("GET /auth/admin/realms", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer t0ken" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.realms)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			s := &seeder{keycloak: dataset.Keycloak{URL: server.URL + "/auth", User: "admin", Password: secret.New(password), HTTP: server.Client()}}
			empty, err := s.empty(t.Context())
			if empty != tt.empty || (err != nil) != (tt.fails != "") {
				t.Fatalf("empty %t, %v", empty, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), password)) {
				t.Errorf("error %v", err)
			}
			s.keycloak.Password = secret.New("wrong")
			if _, err := s.empty(t.Context()); err == nil || !strings.Contains(err.Error(), "log in as administrator admin") {
				t.Errorf("with a wrong password: %v", err)
			}
		})
	}
}
