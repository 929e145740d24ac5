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
		return q.challenge(http.StatusUnauthorized, "", "")
	}
	c, _, err := s.accessToken(q, text)
	switch {
	case errors.Is(err, errSession):
		return q.challenge(http.StatusUnauthorized, "invalid_token", "user_session_not_found")
	case err != nil:
		return q.challenge(http.StatusUnauthorized, "invalid_token", "Token verification failed")
	case !c.has("openid"):
		return q.challenge(http.StatusForbidden, "insufficient_scope", "Missing openid scope")
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

// challenge refuses a token in a header (RFC 6750, 3); the body is empty.
func (q *request) challenge(status int, code, description string) error {
	value := `Bearer realm="` + q.route.escaped + `"`
	if code != "" {
		value += `, error="` + code + `", error_description="` + description + `"`
	}
	q.w.Header().Set("WWW-Authenticate", value)
	q.raw(status, "text/plain;charset=utf-8", nil)
	return nil
}

// introspect tells a client whether a token is good. Since 26.6.2 Keycloak
// says active: false to a client that the token isn't meant for.
func (s *Server) introspect(q *request) error {
	if !q.parse() {
		return nil
	}
	client, ok := s.introspector(q)
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

// logout ends the session of a refresh token; one that has ended already is
// as good.
func (s *Server) logout(q *request) error {
	if !q.parse() {
		return nil
	}
	text := q.r.PostForm.Get("refresh_token")
	if text == "" {
		return s.browserLogout(q)
	}
	client, ok := s.client(q)
	if !ok {
		return nil
	}
	c, u, why := s.refreshClaims(q, text, client)
	if why != "" && why != noSession {
		return q.invalidGrant(why)
	}
	if u != nil {
		s.sessions.take(c.Sid)
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// browserLogout is OpenID Connect RP-Initiated Logout 1.0: the session of the
// ID token is ended and the browser sent back. Without an ID token the user is
// asked, and nothing happens here.
func (s *Server) browserLogout(q *request) error {
	hint := q.r.Form.Get("id_token_hint")
	if hint == "" {
		q.page(http.StatusOK, plainPage("Logging out", "kc-logout-confirm", "Do you want to log out?"))
		return nil
	}
	c, err := s.keys.verifyPublic(hint)
	if err != nil || c.Typ != typID || c.Iss != q.issuer() {
		q.page(http.StatusBadRequest, errorPage("Invalid parameter: id_token_hint"))
		return nil
	}
	s.sessions.take(c.Sid)
	q.setCookie(cookieIdentity, "", -1)
	q.setCookie(cookieSession, "", -1)
	back := q.r.Form.Get("post_logout_redirect_uri")
	switch {
	case back == "":
		q.page(http.StatusOK, plainPage("You are logged out", "kc-info-message", "You are logged out"))
	case !s.redirectAllowed(back):
		q.page(http.StatusBadRequest, errorPage("Invalid redirect uri"))
	default:
		q.redirect(back)
	}
	return nil
}

// brokerToken gives the token that an identity provider issued for the user;
// every alias is linked. Its signature is that other provider's affair.
func (s *Server) brokerToken(q *request) error {
	text, ok := q.bearer()
	if !ok {
		return q.json(http.StatusBadRequest, messageError{"Invalid token."})
	}
	c, u, err := s.accessToken(q, text)
	if err != nil || u == nil {
		return q.json(http.StatusBadRequest, messageError{"Invalid token."})
	}
	stored, err := s.keys.signOwn(&claims{
		Iat: u.created.Unix(), Exp: u.created.Add(s.o.AccessTokenLifespan).Unix(), Jti: u.id,
		Iss: q.origin() + q.route.prefix + "/realms/" + q.route.alias, Sub: c.Sub, Typ: typBearer, Scope: "openid email profile",
	})
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, tokenResponse{
		AccessToken: stored, ExpiresIn: int64(s.o.AccessTokenLifespan.Seconds()), TokenType: typBearer, Scope: "openid email profile",
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
