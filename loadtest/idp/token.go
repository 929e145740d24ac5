package idp

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

var errSession = errors.New("no such session")

// Grant types.
const (
	grantCode     = "authorization_code"
	grantPassword = "password"
	grantRefresh  = "refresh_token"
	grantClient   = "client_credentials"
	grantUMA      = "urn:ietf:params:oauth:grant-type:uma-ticket"
)

// grants by grant_type; each gets the client that authenticated.
var grants = map[string]func(s *Server, q *request, client string) error{
	grantCode:     (*Server).exchangeCode,
	grantPassword: (*Server).passwordGrant,
	grantRefresh:  (*Server).refreshGrant,
	grantClient:   (*Server).clientGrant,
}

// token is the token endpoint.
func (s *Server) token(q *request) error {
	if !q.parse() {
		return nil
	}
	grantType := q.r.PostForm.Get("grant_type")
	if grantType == "" {
		q.fail(http.StatusBadRequest, "invalid_request", "Missing form parameter: grant_type")
		return nil
	}
	if grantType == grantUMA {
		return s.umaGrant(q)
	}
	grant, ok := grants[grantType]
	if !ok {
		q.fail(http.StatusBadRequest, "unsupported_grant_type", "Unsupported grant_type")
		return nil
	}
	client, ok := s.client(q)
	if !ok {
		return nil
	}
	return grant(s, q, client)
}

// parse reads the form of a POST and refuses what RFC 6749 does; the answer is
// then given.
func (q *request) parse() bool {
	if err := q.r.ParseForm(); err != nil {
		q.fail(http.StatusBadRequest, "invalid_request", "the form can't be read")
		return false
	}
	for _, values := range q.r.PostForm {
		if len(values) > 1 {
			q.fail(http.StatusBadRequest, "invalid_request", "duplicated parameter")
			return false
		}
	}
	return true
}

// client authenticates the caller; if it can't, the answer is given.
func (s *Server) client(q *request) (id string, ok bool) {
	if q.route.realm == adminRealm && q.r.PostForm.Get("client_id") == adminClient {
		return adminClient, true // public: it has no secret
	}
	id, fault := s.caller(q)
	if fault != "" {
		q.fail(http.StatusUnauthorized, fault, "Invalid client or Invalid client credentials")
	}
	return id, fault == ""
}

// introspector is client for the introspection endpoint, which words its
// refusal in another way.
func (s *Server) introspector(q *request) (id string, ok bool) {
	id, fault := s.caller(q)
	if fault != "" {
		q.fail(http.StatusUnauthorized, "invalid_client", "Client authentication failed.")
	}
	return id, fault == ""
}

// caller is the client that sent the request, by form or by Basic
// authorization, or the error that refuses it.
func (s *Server) caller(q *request) (id, fault string) {
	id, given := q.r.PostForm.Get("client_id"), q.r.PostForm.Get("client_secret")
	if user, password, basic := basicAuth(q.r.Header.Get("Authorization")); basic {
		id, given = user, password
	}
	want, known := s.o.Accounts.ClientSecret(q.route.realm, id)
	switch {
	case id == "" || !known:
		return "", "invalid_client"
	case !equal(given, want):
		return "", "unauthorized_client"
	}
	return id, ""
}

// basicAuth reads client credentials from an Authorization header; RFC 6749,
// 2.3.1, has both parts form-encoded first.
func basicAuth(header string) (user, password string, ok bool) {
	r := http.Request{Header: http.Header{"Authorization": {header}}}
	user, password, ok = r.BasicAuth()
	if !ok {
		return "", "", false
	}
	for _, part := range []*string{&user, &password} {
		if plain, err := url.QueryUnescape(*part); err == nil {
			*part = plain
		}
	}
	return user, password, true
}

// invalidGrant is the usual refusal.
func (q *request) invalidGrant(description string) error {
	q.fail(http.StatusBadRequest, "invalid_grant", description)
	return nil
}

// grant answers with the tokens of a session.
func (s *Server) grant(q *request, u *session, client, scope, nonce string) error {
	out, err := s.tokens(q, u, client, scope, nonce)
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, out)
}

func (s *Server) exchangeCode(q *request, client string) error {
	text := q.r.PostForm.Get("code")
	if text == "" {
		q.fail(http.StatusBadRequest, "invalid_request", "Missing parameter: code")
		return nil
	}
	c, ok := s.codes.take(text)
	if !ok {
		// Perhaps a code that was used before: RFC 6749, 4.1.2, has what it
		// gave revoked.
		if parts := strings.Split(text, "."); len(parts) == 3 {
			if u, ok := s.sessions.get(parts[1]); ok && u.realm == q.route.realm {
				s.sessions.take(parts[1])
			}
		}
		return q.invalidGrant("Code not valid")
	}
	u, ok := s.session(q.route.realm, c.session.id, q.now)
	if !ok || u != c.session || !q.now.Before(c.expires) {
		return q.invalidGrant("Code not valid")
	}
	switch {
	case c.Client != client:
		return q.invalidGrant("Auth error: Found different client_id in clientSession")
	case c.Redirect != q.r.PostForm.Get("redirect_uri"):
		return q.invalidGrant("Incorrect redirect_uri")
	}
	if why := pkceFault(c.Challenge, c.Method, q.r.PostForm.Get("code_verifier")); why != "" {
		return q.invalidGrant(why)
	}
	return s.grant(q, u, client, c.Scope, c.Nonce)
}

// pkceFault checks a verifier against its challenge (RFC 7636, 4.6).
func pkceFault(challenge, method, verifier string) string {
	switch {
	case challenge == "" && verifier == "":
		return ""
	case challenge == "":
		return "PKCE code verifier specified but challenge not present in authorization"
	case verifier == "":
		return "PKCE code verifier not specified"
	}
	if method == "S256" {
		sum := sha256.Sum256([]byte(verifier))
		verifier = b64.EncodeToString(sum[:])
	}
	if !equal(verifier, challenge) {
		return "PKCE verification failed: Code mismatch"
	}
	return ""
}

func (s *Server) passwordGrant(q *request, client string) error {
	user := strings.TrimSpace(q.r.PostForm.Get("username"))
	if user == "" {
		q.fail(http.StatusUnauthorized, "invalid_request", "Missing parameter: username")
		return nil
	}
	ok, err := s.passwordFits(q.route.realm, user, q.r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if !ok {
		return q.invalidGrant("Invalid user credentials")
	}
	scope := grantedScope(q.r.PostForm.Get("scope"))
	u, err := s.newSession(q.route.realm, user, hasScope(scope, "offline_access"), q.now)
	if err != nil {
		return err
	}
	return s.grant(q, u, client, scope, "")
}

func (s *Server) refreshGrant(q *request, client string) error {
	text := q.r.PostForm.Get("refresh_token")
	if text == "" {
		q.fail(http.StatusBadRequest, "invalid_request", "No refresh token")
		return nil
	}
	c, u, why := s.refreshClaims(q, text, client)
	if why != "" {
		return q.invalidGrant(why)
	}
	if !s.o.ReuseRefreshTokens {
		if why := u.spend(client, c.Number); why != "" {
			return q.invalidGrant(why)
		}
	}
	return s.grant(q, u, client, c.Scope, "")
}

// noSession is why a good refresh token of a session that ended is refused.
const noSession = "Session not active"

// refreshClaims verifies a refresh token of a client and finds its session.
func (s *Server) refreshClaims(q *request, text, client string) (c *claims, u *session, why string) {
	c = new(claims)
	if s.keys.verifyOwn(text, c) != nil || c.Typ != typRefresh && c.Typ != typOffline {
		return nil, nil, "Invalid refresh token"
	}
	switch {
	case c.Iss != q.issuer():
		return nil, nil, "Invalid token issuer. Expected '" + q.issuer() + "'"
	case c.expired(q.now):
		return nil, nil, "Token is not active"
	case c.Azp != client:
		return nil, nil, "Invalid refresh token. Token client and authorized client don't match"
	}
	u, ok := s.session(q.route.realm, c.Sid, q.now)
	if !ok {
		return nil, nil, noSession
	}
	return c, u, ""
}

// clientGrant gives a service account's token, without a refresh token.
func (s *Server) clientGrant(q *request, client string) error {
	if q.route.realm == adminRealm && client == adminClient {
		q.fail(http.StatusUnauthorized, "unauthorized_client", "Public client not allowed to retrieve service account")
		return nil
	}
	jti, err := s.uuid()
	if err != nil {
		return err
	}
	scope := grantedScope(q.r.PostForm.Get("scope"))
	user := "service-account-" + client
	verified := false
	access := &claims{
		Iat: q.now.Unix(), Exp: q.now.Add(s.o.AccessTokenLifespan).Unix(), Jti: jti, Iss: q.issuer(), Aud: client,
		Sub: subject(q.route.realm, user), Typ: typBearer, Azp: client, Acr: "1", Scope: scope,
		EmailVerified: &verified, Username: user,
	}
	out := &tokenResponse{ExpiresIn: access.Exp - access.Iat, TokenType: typBearer, Scope: scope}
	if out.AccessToken, err = s.keys.signPublic(access); err != nil {
		return err
	}
	return q.json(http.StatusOK, out)
}

// permission is one that an entitlement grants.
type permission struct {
	Scopes       []string `json:"scopes,omitempty"`
	ResourceID   string   `json:"rsid"`
	ResourceName string   `json:"rsname"`
}

// parsePermission reads resource or resource#scope,scope.
func parsePermission(realm, text string) (permission, bool) {
	name, list, scoped := strings.Cut(text, "#")
	if name == "" {
		return permission{}, false
	}
	p := permission{ResourceID: subject(realm, "resource/"+name), ResourceName: name}
	if scoped {
		for scope := range strings.SplitSeq(list, ",") {
			if scope = strings.TrimSpace(scope); scope == "" {
				return permission{}, false
			}
			p.Scopes = append(p.Scopes, scope)
		}
	}
	return p, true
}

// anyResource is what a client gets that asks for everything.
const anyResource = "res1#read"

// umaGrant gives the user of the Bearer token what they may do at the client
// named by audience. Every permission that is asked for is granted.
func (s *Server) umaGrant(q *request) error {
	text, ok := q.bearer()
	if !ok {
		q.fail(http.StatusUnauthorized, "invalid_client", "Invalid client or Invalid client credentials")
		return nil
	}
	c, u, err := s.accessToken(q, text)
	if err != nil {
		return q.invalidGrant("Invalid bearer token")
	}
	audience := q.r.PostForm.Get("audience")
	if audience == "" {
		q.fail(http.StatusBadRequest, "invalid_request", "You must provide the issuedFor")
		return nil
	}
	if _, ok := s.o.Accounts.ClientSecret(q.route.realm, audience); !ok {
		q.fail(http.StatusBadRequest, "invalid_request", "Unknown resource server id: ["+audience+"]")
		return nil
	}
	wanted := q.r.PostForm.Get("permission")
	if wanted == "" {
		wanted = anyResource
	}
	p, ok := parsePermission(q.route.realm, wanted)
	if !ok {
		q.fail(http.StatusBadRequest, "invalid_resource", "Resource with id ["+wanted+"] does not exist.")
		return nil
	}
	switch mode := q.r.PostForm.Get("response_mode"); mode {
	case "":
		return s.requestingPartyToken(q, c, u, audience, p)
	case "decision":
		return q.json(http.StatusOK, map[string]bool{"result": true})
	case "permissions":
		return q.json(http.StatusOK, []permission{p})
	default:
		q.fail(http.StatusBadRequest, "invalid_request", "Invalid response_mode")
		return nil
	}
}

func (s *Server) requestingPartyToken(q *request, c *claims, u *session, audience string, p permission) error {
	rpt := *c
	var err error
	if rpt.Jti, err = s.uuid(); err != nil {
		return err
	}
	rpt.Iat, rpt.Exp = q.now.Unix(), q.now.Add(s.o.AccessTokenLifespan).Unix()
	rpt.Aud, rpt.Authorization = audience, &granted{Permissions: []permission{p}}
	upgraded := false
	out := &tokenResponse{Upgraded: &upgraded, ExpiresIn: rpt.Exp - rpt.Iat, TokenType: typBearer}
	if out.AccessToken, err = s.keys.signPublic(&rpt); err != nil {
		return err
	}
	if u != nil {
		if out.RefreshToken, out.RefreshExpiresIn, err = s.refreshToken(q, u, &rpt); err != nil {
			return err
		}
	}
	return q.json(http.StatusOK, out)
}
