package idp

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Types of tokens, as the claim typ says them.
const (
	typBearer   = "Bearer"
	typID       = "ID"
	typRefresh  = "Refresh"
	typOffline  = "Offline"
	typIdentity = "Serialized-ID"
)

// claims are those of all kinds of tokens; each kind sets its own.
type claims struct {
	Exp           int64    `json:"exp,omitempty"` // absent for offline tokens
	Iat           int64    `json:"iat"`
	AuthTime      int64    `json:"auth_time,omitempty"`
	Jti           string   `json:"jti"`
	Iss           string   `json:"iss"`
	Aud           string   `json:"aud,omitempty"`
	Sub           string   `json:"sub"`
	Typ           string   `json:"typ"`
	Azp           string   `json:"azp,omitempty"`
	Nonce         string   `json:"nonce,omitempty"`
	Sid           string   `json:"sid,omitempty"`
	Number        int64    `json:"number,omitempty"` // of a refresh token in its session
	AtHash        string   `json:"at_hash,omitempty"`
	Acr           string   `json:"acr,omitempty"`
	Authorization *granted `json:"authorization,omitempty"`
	Scope         string   `json:"scope,omitempty"`
	EmailVerified *bool    `json:"email_verified,omitempty"`
	Name          string   `json:"name,omitempty"`
	Username      string   `json:"preferred_username,omitempty"`
	GivenName     string   `json:"given_name,omitempty"`
	FamilyName    string   `json:"family_name,omitempty"`
	Email         string   `json:"email,omitempty"`
}

type granted struct {
	Permissions []permission `json:"permissions"`
}

// expired tells whether the token's time is over.
func (c *claims) expired(now time.Time) bool { return c.Exp != 0 && now.Unix() >= c.Exp }

// has tells whether a scope was granted.
func (c *claims) has(scope string) bool { return hasScope(c.Scope, scope) }

func hasScope(list, scope string) bool {
	for s := range strings.SplitSeq(list, " ") {
		if s == scope {
			return true
		}
	}
	return false
}

// session is one user who logged in.
type session struct {
	id, realm, user string
	created         time.Time
	offline         bool

	mu   sync.Mutex
	used time.Time
	// issued counts refresh tokens; spent is the newest one that each client
	// used.
	issued int64
	spent  []spent
}

type spent struct {
	client string
	number int64
}

// active tells whether the session may still be used, and marks it used.
func (s *session) active(now time.Time, idle, longest time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.offline && (now.Sub(s.used) >= idle || now.Sub(s.created) >= longest) {
		return false
	}
	s.used = now
	return true
}

// spend uses a refresh token up: it and every older one of that client are
// worth nothing from then on. It returns why it can't.
func (s *session) spend(client string, number int64) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.spent, func(u spent) bool { return u.client == client })
	switch {
	case i < 0:
		s.spent = append(s.spent, spent{client, number})
	case number == s.spent[i].number:
		return "Maximum allowed refresh token reuse exceeded"
	case number < s.spent[i].number:
		return "Stale token"
	default:
		s.spent[i].number = number
	}
	return ""
}

// issue numbers a new refresh token.
func (s *session) issue() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	return s.issued
}

// tokenResponse is the token endpoint's answer, its fields in Keycloak's order.
type tokenResponse struct {
	Upgraded         *bool  `json:"upgraded,omitempty"`
	AccessToken      string `json:"access_token"`
	ExpiresIn        int64  `json:"expires_in"`
	RefreshExpiresIn int64  `json:"refresh_expires_in"`
	RefreshToken     string `json:"refresh_token,omitempty"`
	TokenType        string `json:"token_type"`
	IDToken          string `json:"id_token,omitempty"`
	NotBeforePolicy  int64  `json:"not-before-policy"`
	SessionState     string `json:"session_state,omitempty"`
	Scope            string `json:"scope,omitempty"`
}

// newSession logs a user in.
func (s *Server) newSession(realm, user string, offline bool, now time.Time) (*session, error) {
	id, err := s.uuid()
	if err != nil {
		return nil, err
	}
	u := &session{id: id, realm: realm, user: user, created: now, used: now, offline: offline}
	s.sessions.put(id, u)
	return u, nil
}

// session finds one that is still active.
func (s *Server) session(realm, id string, now time.Time) (*session, bool) {
	u, ok := s.sessions.get(id)
	if !ok || u.realm != realm || !u.active(now, s.o.SessionIdle, s.o.SessionMax) {
		return nil, false
	}
	return u, true
}

// grantedScope is what a client gets of what it asked for: the default scopes
// always, openid and offline_access if asked for.
func grantedScope(asked string) string {
	out := "email profile"
	if hasScope(asked, "offline_access") {
		out = "email offline_access profile"
	}
	if hasScope(asked, "openid") {
		out = "openid " + out
	}
	return out
}

// person fills in what the scopes profile and email tell about a user.
func (c *claims) person(user string) {
	verified := true
	c.EmailVerified, c.Username = &verified, user
	c.GivenName, c.FamilyName = "User", user
	c.Name = c.GivenName + " " + c.FamilyName
	c.Email = user + "@nowhere.test"
}

// tokens issues what a client gets for a session.
func (s *Server) tokens(q *request, u *session, client, scope, nonce string) (*tokenResponse, error) {
	access, err := s.accessClaims(q, u, client, scope)
	if err != nil {
		return nil, err
	}
	out := &tokenResponse{
		ExpiresIn: access.Exp - access.Iat, TokenType: typBearer,
		SessionState: u.id, Scope: scope,
	}
	if out.AccessToken, err = s.keys.signPublic(access); err != nil {
		return nil, err
	}
	if hasScope(scope, "openid") {
		id := *access
		id.Typ, id.Aud, id.Scope, id.Nonce = typID, client, "", nonce
		// OpenID Connect Core 3.1.3.6: the left half of the digest.
		sum := sha256.Sum256([]byte(out.AccessToken))
		id.AtHash = b64.EncodeToString(sum[:16])
		if id.Jti, err = s.uuid(); err != nil {
			return nil, err
		}
		if out.IDToken, err = s.keys.signPublic(&id); err != nil {
			return nil, err
		}
	}
	out.RefreshToken, out.RefreshExpiresIn, err = s.refreshToken(q, u, access)
	return out, err
}

func (s *Server) accessClaims(q *request, u *session, client, scope string) (*claims, error) {
	jti, err := s.uuid()
	if err != nil {
		return nil, err
	}
	lifespan := s.o.AccessTokenLifespan
	if client == adminClient && u.realm == adminRealm {
		lifespan = adminLifespan
	}
	c := &claims{
		Iat: q.now.Unix(), Exp: q.now.Add(lifespan).Unix(), AuthTime: u.created.Unix(),
		Jti: jti, Iss: q.issuer(), Aud: client, Sub: subject(u.realm, u.user),
		Typ: typBearer, Azp: client, Sid: u.id, Acr: "1", Scope: scope,
	}
	c.person(u.user)
	return c, nil
}

// refreshToken makes one that belongs to an access token.
func (s *Server) refreshToken(q *request, u *session, access *claims) (text string, expiresIn int64, err error) {
	jti, err := s.uuid()
	if err != nil {
		return "", 0, err
	}
	c := &claims{
		Iat: access.Iat, Jti: jti, Iss: access.Iss, Aud: access.Iss, Sub: access.Sub,
		Typ: typOffline, Azp: access.Azp, Sid: u.id, Scope: access.Scope, Number: u.issue(),
	}
	if !u.offline {
		end := q.now.Add(s.o.SessionIdle)
		if last := u.created.Add(s.o.SessionMax); last.Before(end) {
			end = last
		}
		c.Typ, c.Exp = typRefresh, end.Unix()
		expiresIn = c.Exp - c.Iat
	}
	if text, err = s.keys.signOwn(c); err != nil {
		return "", 0, err
	}
	return text, expiresIn, nil
}

// accessToken verifies one and finds its session, which is nil for a service
// account. A signature is verified once and then remembered: doing so at each
// request would cost more than all else together.
func (s *Server) accessToken(q *request, text string) (*claims, *session, error) {
	key := sha256.Sum256([]byte(text))
	c, ok := s.verified.get(key)
	if !ok {
		var err error
		if c, err = s.keys.verifyPublic(text); err != nil {
			return nil, nil, err
		}
		s.verified.put(key, c)
	}
	if c.Typ != typBearer || c.Iss != q.issuer() || c.expired(q.now) {
		return nil, nil, errToken
	}
	if c.Sid == "" {
		return c, nil, nil
	}
	u, ok := s.session(q.route.realm, c.Sid, q.now)
	if !ok {
		return nil, nil, errSession
	}
	return c, u, nil
}

// subject is a user's ID: the same at every server and every start.
func subject(realm, user string) string {
	sum := sha256.Sum256([]byte(realm + "/" + user))
	return formatUUID([16]byte(sum[:16]))
}

func (s *Server) uuid() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(s.o.Random, b[:]); err != nil {
		return "", fmt.Errorf("make an ID: %w", err)
	}
	return formatUUID(b), nil
}

// formatUUID writes a version 4 UUID (RFC 9562).
func formatUUID(b [16]byte) string {
	const digits = "0123456789abcdef"
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	out := make([]byte, 0, 36)
	for i, v := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, digits[v>>4], digits[v&15])
	}
	return string(out)
}
