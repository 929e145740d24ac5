package idp

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// login is one that was begun in a browser: one tab of one jar.
type login struct {
	root, tab   string
	realm       string
	client      string
	redirect    string
	state       string
	nonce       string
	scope       string
	challenge   string
	method      string
	sessionCode string
	execution   string
}

// code is an authorization code that waits to be exchanged.
type code struct {
	session           *session
	client            string
	redirect          string
	scope             string
	nonce             string
	challenge, method string
	expires           time.Time
}

// Cookies of the dialogue.
const (
	cookieLogin    = "AUTH_SESSION_ID"
	cookieHash     = "KC_AUTH_SESSION_HASH"
	cookieRestart  = "KC_RESTART"
	cookieIdentity = "KEYCLOAK_IDENTITY"
	cookieSession  = "KEYCLOAK_SESSION"
)

// auth begins a login: the page with the form, or, where the jar holds a
// session, the redirect with a code at once.
func (s *Server) auth(q *request) error {
	if err := q.r.ParseForm(); err != nil {
		q.page(http.StatusBadRequest, errorPage("Invalid Request"))
		return nil
	}
	form := q.r.Form
	client, redirect := form.Get("client_id"), form.Get("redirect_uri")
	if client == "" {
		q.page(http.StatusBadRequest, errorPage("Missing parameters: client_id"))
		return nil
	}
	if _, ok := s.o.Accounts.ClientSecret(q.route.realm, client); !ok {
		q.page(http.StatusBadRequest, errorPage("Client not found."))
		return nil
	}
	if !s.redirectAllowed(redirect) {
		q.page(http.StatusBadRequest, errorPage("Invalid parameter: redirect_uri"))
		return nil
	}
	l := &login{
		realm: q.route.realm, client: client, redirect: redirect,
		state: form.Get("state"), nonce: form.Get("nonce"), scope: grantedScope(form.Get("scope")),
		challenge: form.Get("code_challenge"), method: form.Get("code_challenge_method"),
	}
	if fault, description := authFault(form); fault != "" {
		q.redirectBack(l, url.Values{"error": {fault}, "error_description": {description}})
		return nil
	}
	if l.challenge != "" && l.method == "" {
		l.method = "plain" // RFC 7636, 4.3
	}
	if u, ok := s.identity(q); ok && form.Get("prompt") != "login" {
		return s.redirectWithCode(q, l, u)
	}
	if form.Get("prompt") == "none" {
		q.redirectBack(l, url.Values{"error": {"login_required"}})
		return nil
	}
	var err error
	if root, ok := s.loginCookie(q); ok {
		l.root = root
	} else if l.root, err = s.uuid(); err != nil {
		return err
	}
	for _, id := range []*string{&l.tab, &l.execution} {
		if *id, err = s.uuid(); err != nil {
			return err
		}
	}
	l.tab = l.tab[:11]
	return s.form(q, l, "")
}

// authFault checks what the client asked for, redirect address and client
// apart.
func authFault(form url.Values) (code, description string) {
	switch form.Get("response_type") {
	case "code":
	case "":
		return "invalid_request", "Missing parameter: response_type"
	default:
		return "unsupported_response_type", ""
	}
	challenge, method := form.Get("code_challenge"), form.Get("code_challenge_method")
	switch {
	case method != "" && method != "S256" && method != "plain":
		return "invalid_request", "Invalid parameter: code_challenge_method"
	case method != "" && challenge == "":
		return "invalid_request", "Missing parameter: code_challenge"
	case challenge != "" && (len(challenge) < 43 || len(challenge) > 128):
		return "invalid_request", "Invalid parameter: code_challenge"
	}
	return "", ""
}

func (s *Server) redirectAllowed(uri string) bool {
	if s.o.RedirectURIs != nil {
		return slices.Contains(s.o.RedirectURIs, uri)
	}
	u, err := url.Parse(uri)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Fragment == ""
}

// form shows the login page, with new values that only its own answer can
// carry.
func (s *Server) form(q *request, l *login, message string) error {
	var err error
	shown := *l // others may still read the one in the store
	if shown.sessionCode, err = s.uuid(); err != nil {
		return err
	}
	s.logins.put(shown.root+"/"+shown.tab, &shown)
	sum := sha256.Sum256([]byte(shown.root))
	id := b64.EncodeToString([]byte(shown.root + "." + b64.EncodeToString(s.keys.mac([]byte(shown.root))[:32])))
	restart, err := s.keys.signOwn(&claims{
		Iat: q.now.Unix(), Iss: q.issuer(), Aud: q.issuer(), Azp: shown.client, Typ: "Restart", Jti: shown.tab,
	})
	if err != nil {
		return err
	}
	q.setCookie(cookieLogin, id, true, 0)
	q.setCookie(cookieHash, `"`+b64.EncodeToString(sum[:])+`"`, false, time.Minute)
	q.setCookie(cookieRestart, restart, true, 0)
	data, err := json.Marshal(struct {
		RedirectURI  string `json:"ru"`
		ResponseType string `json:"rt"`
		State        string `json:"st,omitempty"`
	}{shown.redirect, "code", shown.state})
	if err != nil {
		return err
	}
	// The order of the parameters is Keycloak's.
	action := q.issuer() + "/login-actions/authenticate?session_code=" + shown.sessionCode +
		"&execution=" + shown.execution + "&client_id=" + url.QueryEscape(shown.client) +
		"&tab_id=" + shown.tab + "&client_data=" + b64.EncodeToString(data)
	q.page(http.StatusOK, loginPage(q.route, action, q.r.PostForm.Get("username"), message))
	return nil
}

// authenticate takes the form.
func (s *Server) authenticate(q *request) error {
	if err := q.r.ParseForm(); err != nil {
		q.page(http.StatusBadRequest, errorPage("Invalid Request"))
		return nil
	}
	query := q.r.URL.Query()
	root, ok := s.loginCookie(q)
	var l *login
	if ok {
		l, ok = s.logins.get(root + "/" + query.Get("tab_id"))
	}
	if !ok || l.realm != q.route.realm {
		// The event of that answer is named cookie_not_found.
		q.page(http.StatusBadRequest, errorPage("Cookie not found. Please make sure cookies are enabled in your browser."))
		return nil
	}
	if query.Get("session_code") != l.sessionCode || query.Get("execution") != l.execution || query.Get("client_id") != l.client {
		return s.form(q, l, "Your login attempt timed out. Login will start from the beginning.")
	}
	user := strings.TrimSpace(q.r.PostForm.Get("username"))
	ok, err := s.passwordFits(q.route.realm, user, q.r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if !ok {
		return s.form(q, l, "Invalid username or password.")
	}
	if _, ok := s.logins.take(root + "/" + l.tab); !ok {
		// The same form was sent twice at once; the other one won.
		q.page(http.StatusBadRequest, errorPage("You are already logged in."))
		return nil
	}
	u, err := s.newSession(l.realm, user, hasScope(l.scope, "offline_access"), q.now)
	if err != nil {
		return err
	}
	if err := s.setIdentity(q, u); err != nil {
		return err
	}
	return s.redirectWithCode(q, l, u)
}

// passwordFits checks a user's password at the cost that was asked for. An
// unknown user costs as much as a known one.
func (s *Server) passwordFits(realm, user, password string) (bool, error) {
	want, ok := s.o.Accounts.Password(realm, user)
	if s.o.HashIterations > 0 {
		if _, err := pbkdf2.Key(sha512.New, password, []byte(realm+"/"+user), s.o.HashIterations, sha512.Size); err != nil {
			return false, err
		}
	}
	return ok && equal(password, want), nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// redirectWithCode sends the browser back to the client with a code.
func (s *Server) redirectWithCode(q *request, l *login, u *session) error {
	first, err := s.uuid()
	if err != nil {
		return err
	}
	// As in Keycloak the code names the session, so that a second use of it
	// can end that session.
	text := first + "." + u.id + "." + subject(l.realm, "client/"+l.client)
	s.codes.put(text, &code{
		session: u, client: l.client, redirect: l.redirect, scope: l.scope, nonce: l.nonce,
		challenge: l.challenge, method: l.method, expires: q.now.Add(s.o.CodeLifespan),
	})
	q.redirectBack(l, url.Values{"session_state": {u.id}, "code": {text}})
	return nil
}

// redirectBack answers 302 to the client's redirect address with state,
// session_state, iss and code, or error, in Keycloak's order.
func (q *request) redirectBack(l *login, values url.Values) {
	if l.state != "" {
		values.Set("state", l.state)
	}
	values.Set("iss", q.issuer())
	var location strings.Builder
	location.WriteString(l.redirect)
	separator := "?"
	if strings.Contains(l.redirect, "?") {
		separator = "&"
	}
	for _, name := range []string{"error", "error_description", "state", "session_state", "iss", "code"} {
		if v, ok := values[name]; ok && v[0] != "" {
			location.WriteString(separator + name + "=" + url.QueryEscape(v[0]))
			separator = "&"
		}
	}
	h := q.w.Header()
	for name, value := range security {
		h[name] = value
	}
	h.Set("Location", location.String())
	h.Set("Content-Length", "0")
	q.w.WriteHeader(http.StatusFound)
}

// setIdentity gives the browser the cookies of a session.
func (s *Server) setIdentity(q *request, u *session) error {
	token, err := s.keys.signOwn(&claims{
		Iat: q.now.Unix(), Exp: q.now.Add(s.o.SessionMax).Unix(), Iss: q.issuer(), Sub: subject(u.realm, u.user),
		Typ: typIdentity, Sid: u.id, Jti: u.id,
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(u.id))
	q.setCookie(cookieIdentity, token, true, 0)
	q.setCookie(cookieSession, b64.EncodeToString(sum[:]), false, s.o.SessionMax)
	q.setCookie(cookieRestart, "", true, -1)
	q.setCookie(cookieHash, "", false, -1)
	return nil
}

// identity is the session that the jar holds.
func (s *Server) identity(q *request) (*session, bool) {
	cookie, err := q.r.Cookie(cookieIdentity)
	if err != nil {
		return nil, false
	}
	c, err := s.keys.verifyOwn(cookie.Value)
	if err != nil || c.Typ != typIdentity || c.Iss != q.issuer() || c.expired(q.now) {
		return nil, false
	}
	return s.session(q.route.realm, c.Sid, q.now)
}

// loginCookie is the ID of the jar's logins, if the cookie is one of ours.
func (s *Server) loginCookie(q *request) (root string, ok bool) {
	cookie, err := q.r.Cookie(cookieLogin)
	if err != nil {
		return "", false
	}
	text, err := b64.DecodeString(cookie.Value)
	if err != nil {
		return "", false
	}
	root, signature, ok := strings.Cut(string(text), ".")
	if !ok {
		return "", false
	}
	mac, err := b64.DecodeString(signature)
	return root, err == nil && hmac.Equal(mac, s.keys.mac([]byte(root))[:32])
}

// setCookie writes one as Keycloak does: on https and on loopback, plain or
// not, it is Secure and SameSite=None, which is why a jar that keeps to the
// letter of RFC 6265 never sends it back over http. A maxAge below 0 removes
// it; 0 keeps it as long as the browser runs.
func (q *request) setCookie(name, value string, httpOnly bool, maxAge time.Duration) {
	var b strings.Builder
	b.WriteString(name + "=" + value + ";Version=1;Path=" + q.route.base() + "/")
	if maxAge != 0 {
		b.WriteString(";Max-Age=" + strconv.Itoa(int(max(maxAge, 0)/time.Second)))
	}
	if q.r.TLS != nil || isLoopback(q.r.Host) {
		b.WriteString(";Secure")
		if httpOnly {
			b.WriteString(";HttpOnly")
		}
		b.WriteString(";SameSite=None")
	} else if httpOnly {
		b.WriteString(";HttpOnly")
	}
	q.w.Header().Add("Set-Cookie", b.String())
}

// isLoopback tells whether browsers take plain http to this host for secure.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
