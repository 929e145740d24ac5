package idp

import (
	"errors"
	"net/http"
)

// userinfo tells about the user of a token that was granted the scope openid.
func (s *Server) userinfo(q *request) error {
	text, ok := q.bearer()
	if !ok && q.r.Method == http.MethodPost {
		if !q.parse() {
			return nil
		}
		text = q.r.PostForm.Get("access_token")
		ok = text != ""
	}
	if !ok {
		q.challenge("invalid_request", "Token not provided")
		return nil
	}
	c, _, err := s.accessToken(q, text)
	switch {
	case errors.Is(err, errSession):
		q.challenge("invalid_token", "User session not found or doesn't have client attached on it")
		return nil
	case err != nil:
		q.challenge("invalid_token", "Token verification failed")
		return nil
	case !c.has("openid"):
		q.w.Header().Set("WWW-Authenticate", `Bearer realm="`+q.route.escaped+`", error="insufficient_scope", error_description="Missing openid scope"`)
		q.fail(http.StatusForbidden, "insufficient_scope", "Missing openid scope")
		return nil
	}
	return q.json(http.StatusOK, struct {
		Sub           string `json:"sub"`
		EmailVerified *bool  `json:"email_verified,omitempty"`
		Name          string `json:"name,omitempty"`
		Username      string `json:"preferred_username,omitempty"`
		GivenName     string `json:"given_name,omitempty"`
		FamilyName    string `json:"family_name,omitempty"`
		Email         string `json:"email,omitempty"`
	}{c.Sub, c.EmailVerified, c.Name, c.Username, c.GivenName, c.FamilyName, c.Email})
}

// challenge refuses a token with 401.
func (q *request) challenge(code, description string) {
	q.w.Header().Set("WWW-Authenticate", `Bearer realm="`+q.route.escaped+`", error="`+code+`", error_description="`+description+`"`)
	q.fail(http.StatusUnauthorized, code, description)
}

// introspect tells a client whether a token is good. Since 26.6.2 Keycloak
// says active: false to a client that the token isn't meant for.
func (s *Server) introspect(q *request) error {
	if !q.parse() {
		return nil
	}
	client, ok := s.client(q)
	if !ok {
		return nil
	}
	text := q.r.PostForm.Get("token")
	if text == "" {
		q.fail(http.StatusBadRequest, "invalid_request", "Token not provided.")
		return nil
	}
	c, _, err := s.accessToken(q, text)
	if err != nil || c.Aud != client {
		return q.json(http.StatusOK, struct {
			Active bool `json:"active"`
		}{false})
	}
	return q.json(http.StatusOK, struct {
		*claims
		ClientID  string `json:"client_id"`
		Username  string `json:"username,omitempty"`
		TokenType string `json:"token_type"`
		Active    bool   `json:"active"`
	}{c, c.Azp, c.Username, typBearer, true})
}

// certs is the key set that signatures verify with.
func (s *Server) certs(q *request) error {
	q.raw(http.StatusOK, "application/json", s.keys.jwks)
	return nil
}

// logout ends the session of a refresh token.
func (s *Server) logout(q *request) error {
	if q.r.Method == http.MethodGet {
		return s.frontLogout(q)
	}
	if !q.parse() {
		return nil
	}
	text := q.r.PostForm.Get("refresh_token")
	if text == "" {
		return s.frontLogout(q)
	}
	client, ok := s.client(q)
	if !ok {
		return nil
	}
	c, _, why := s.refreshClaims(q, text, client)
	if why != "" {
		return q.invalidGrant(why)
	}
	s.sessions.take(c.Sid)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// frontLogout ends the session that the browser's jar holds.
func (s *Server) frontLogout(q *request) error {
	if u, ok := s.identity(q); ok {
		s.sessions.take(u.id)
	}
	q.setCookie(cookieIdentity, "", true, -1)
	q.setCookie(cookieSession, "", false, -1)
	q.page(http.StatusOK, messagePage("You are logged out"))
	return nil
}

// brokerToken gives the token that an identity provider issued for the user;
// every alias is linked. Its signature is that other provider's affair.
func (s *Server) brokerToken(q *request) error {
	text, ok := q.bearer()
	if !ok {
		q.fail(http.StatusUnauthorized, "HTTP 401 Unauthorized", "")
		return nil
	}
	c, u, err := s.accessToken(q, text)
	if err != nil || u == nil {
		q.fail(http.StatusUnauthorized, "HTTP 401 Unauthorized", "")
		return nil
	}
	stored, err := s.keys.signOwn(&claims{
		Iat: u.created.Unix(), Exp: u.created.Add(s.o.AccessTokenLifespan).Unix(), Jti: u.id,
		Iss: q.origin() + q.route.prefix + "/realms/" + q.route.alias, Sub: c.Sub, Typ: typBearer, Scope: "openid profile email",
	})
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, tokenResponse{
		AccessToken: stored, ExpiresIn: int64(s.o.AccessTokenLifespan.Seconds()), TokenType: typBearer, Scope: "openid profile email",
	})
}

// realm is the realm's own page.
func (s *Server) realm(q *request) error {
	return q.json(http.StatusOK, map[string]any{
		"realm":             q.route.realm,
		"token-service":     q.issuer() + "/protocol/openid-connect",
		"account-service":   q.issuer() + "/account",
		"tokens-not-before": 0,
	})
}

// discovery is the document of OpenID Connect Discovery 1.0, as far as this
// server does what it could say.
func (s *Server) discovery(q *request) error {
	oidc := q.issuer() + "/protocol/openid-connect"
	algorithm := s.o.Signing
	if algorithm == "" {
		algorithm = ES256
	}
	auth := []string{"client_secret_basic", "client_secret_post"}
	return q.json(http.StatusOK, map[string]any{
		"issuer":                                         q.issuer(),
		"authorization_endpoint":                         oidc + "/auth",
		"token_endpoint":                                 oidc + "/token",
		"introspection_endpoint":                         oidc + "/token/introspect",
		"userinfo_endpoint":                              oidc + "/userinfo",
		"end_session_endpoint":                           oidc + "/logout",
		"jwks_uri":                                       oidc + "/certs",
		"grant_types_supported":                          []string{grantCode, grantClient, grantPassword, grantRefresh, grantUMA},
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{algorithm},
		"token_endpoint_auth_methods_supported":          auth,
		"introspection_endpoint_auth_methods_supported":  auth,
		"scopes_supported":                               []string{"openid", "profile", "email", "offline_access"},
		"claims_supported":                               []string{"iss", "sub", "aud", "exp", "iat", "auth_time", "name", "given_name", "family_name", "preferred_username", "email", "acr"},
		"code_challenge_methods_supported":               []string{"plain", "S256"},
		"authorization_response_iss_parameter_supported": true,
		"backchannel_logout_supported":                   false,
	})
}
