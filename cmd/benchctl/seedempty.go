package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// empty tells whether the server has nothing but its own realm, so that
// nothing is lost when a snapshot takes the place of its data.
func (s *seeder) empty(ctx context.Context) (bool, error) {
	k := s.keycloak
	var token struct {
		AccessToken string `json:"access_token"`
	}
	form := url.Values{"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {k.User}, "password": {k.Password.Reveal()}}
	err := s.ask(ctx, http.MethodPost, "/realms/master/protocol/openid-connect/token", "", form, &token)
	if err != nil {
		return false, fmt.Errorf("log in as administrator %s: %w", k.User, err)
	}
	var realms []struct {
		Realm string `json:"realm"`
	}
	if err := s.ask(ctx, http.MethodGet, "/admin/realms?briefRepresentation=true", token.AccessToken, nil, &realms); err != nil {
		return false, fmt.Errorf("list the realms: %w", err)
	}
	return len(realms) == 1 && realms[0].Realm == "master", nil
}

// ask sends one request and reads the JSON that it gets.
func (s *seeder) ask(ctx context.Context, method, path, token string, form url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.keycloak.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := s.keycloak.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s answers %s", method, req.URL.Redacted(), res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("read what %s answers: %w", req.URL.Redacted(), err)
	}
	return nil
}
