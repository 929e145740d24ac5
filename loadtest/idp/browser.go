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

// ask is what a client asked for when it sent a browser here.
type ask struct {
	Client    string `json:"cid"`
	Redirect  string `json:"ru"`
	State     string `json:"st,omitempty"`
	Nonce     string `json:"n,omitempty"`
	Scope     string `json:"sc"`
	Challenge string `json:"cc,omitempty"`
	Method    string `json:"cm,omitempty"`
}

// login is one that was begun in a browser: one tab of one jar.
type login struct {
	ask
	root, tab   string
	realm       string
	sessionCode string
	execution   string
}

// restart is what the cookie KC_RESTART carries: enough to begin again.
type restart struct {
	Issuer string `json:"iss"`
	ask
}

// code is an authorization code that waits to be exchanged.
type code struct {
	ask
	session *session
	expires time.Time
}

// Cookies of the dialogue.
const (
	cookieLogin    = "AUTH_SESSION_ID"
	cookieHash     = "KC_AUTH_SESSION_HASH"
	cookieRestart  = "KC_RESTART"
	cookieIdentity = "KEYCLOAK_IDENTITY"
	cookieSession  = "KEYCLOAK_SESSION"
)

// scripted cookies may be read by the page's scripts: they aren't HttpOnly.
var scripted = map[string]bool{cookieHash: true, cookieSession: true}

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
		q.page(http.StatusBadRequest, errorPage("Invalid Request"))
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
	l := &login{realm: q.route.realm, ask: ask{
		Client: client, Redirect: redirect,
		State: form.Get("state"), Nonce: form.Get("nonce"), Scope: grantedScope(form.Get("scope")),
		Challenge: form.Get("code_challenge"), Method: form.Get("code_challenge_method"),
	}}
	if fault, description := authFault(form); fault != "" {
		q.redirect(l.back(q, "error", fault, "error_description", description))
		return nil
	}
	if l.Challenge != "" && l.Method == "" {
		l.Method = "plain" // RFC 7636, 4.3
	}
	if u, ok := s.identity(q); ok && form.Get("prompt") != "login" {
		return s.redirectWithCode(q, l, u)
	}
	if form.Get("prompt") == "none" {
		q.redirect(l.back(q, "error", "login_required"))
		return nil
	}
	if err := s.begin(q, l); err != nil {
		return err
	}
	again, err := s.keys.signOwn(restart{q.issuer(), l.ask})
	if err != nil {
		return err
	}
	q.setCookie(cookieRestart, again, 0)
	return s.form(q, l, "")
}

// begin gives a login its IDs, of which the jar keeps one.
func (s *Server) begin(q *request, l *login) (err error) {
	root, ok := s.loginCookie(q)
	if !ok {
		if root, err = s.uuid(); err != nil {
			return err
		}
	}
	l.root = root
	for _, id := range []*string{&l.tab, &l.execution, &l.sessionCode} {
		if *id, err = s.uuid(); err != nil {
			return err
		}
	}
	l.tab = l.tab[:11]
	s.logins.put(l.key(), l)
	sum := sha256.Sum256([]byte(l.root))
	q.setCookie(cookieLogin, b64.EncodeToString([]byte(l.root+"."+b64.EncodeToString(s.keys.mac([]byte(l.root))[:32]))), 0)
	// Keycloak quotes the value where it holds a slash; here it is always
	// quoted, so that a client which can't read that is found out at once.
	q.setCookie(cookieHash, `"`+b64.EncodeToString(sum[:])+`"`, time.Minute)
	return nil
}

func (l *login) key() string { return l.root + "/" + l.tab }

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

// form shows the login page, with a code that only its own answer can carry.
func (s *Server) form(q *request, l *login, message string) error {
	shown := *l // others may still read the one in the store
	var err error
	if shown.sessionCode, err = s.uuid(); err != nil {
		return err
	}
	s.logins.put(shown.key(), &shown)
	action := shown.address(q, "session_code="+shown.sessionCode+"&execution="+shown.execution+"&")
	q.page(http.StatusOK, loginPage(q.route, action, q.r.PostForm.Get("username"), message))
	return nil
}

// address is where the login goes on, with Keycloak's parameters in its order.
func (l *login) address(q *request, first string) string {
	data, err := json.Marshal(struct {
		RedirectURI  string `json:"ru"`
		ResponseType string `json:"rt"`
		State        string `json:"st,omitempty"`
	}{l.Redirect, "code", l.State})
	if err != nil {
		// Strings always marshal.
		panic(err)
	}
	return q.issuer() + "/login-actions/authenticate?" + first + "client_id=" + url.QueryEscape(l.Client) +
		"&tab_id=" + l.tab + "&client_data=" + b64.EncodeToString(data)
}

// begun finds the login that the request goes on with.
func (s *Server) begun(q *request) (*login, bool) {
	root, ok := s.loginCookie(q)
	if !ok {
		return nil, false
	}
	l, ok := s.logins.get(root + "/" + q.r.URL.Query().Get("tab_id"))
	return l, ok && l.realm == q.route.realm
}

// authenticate takes the form.
func (s *Server) authenticate(q *request) error {
	if err := q.r.ParseForm(); err != nil {
		q.page(http.StatusBadRequest, errorPage("Invalid Request"))
		return nil
	}
	l, ok := s.begun(q)
	if !ok {
		return s.restart(q)
	}
	query := q.r.URL.Query()
	if query.Get("session_code") != l.sessionCode || query.Get("execution") != l.execution || query.Get("client_id") != l.Client {
		q.redirect(l.address(q, "execution="+l.execution+"&"))
		return nil
	}
	user := strings.TrimSpace(q.r.PostForm.Get("username"))
	ok, err := s.passwordFits(q.route.realm, user, q.r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if !ok {
		return s.form(q, l, "Invalid username or password.")
	}
	if _, ok := s.logins.take(l.key()); !ok {
		// The same form was sent twice at once; the other one won.
		return s.restart(q)
	}
	u, err := s.newSession(l.realm, user, hasScope(l.Scope, "offline_access"), q.now)
	if err != nil {
		return err
	}
	if err := s.setIdentity(q, u); err != nil {
		return err
	}
	return s.redirectWithCode(q, l, u)
}

// continueLogin shows the form of a login that was begun before.
func (s *Server) continueLogin(q *request) error {
	l, ok := s.begun(q)
	if !ok {
		return s.restart(q)
	}
	message := ""
	if q.r.URL.Query().Has("execution") {
		message = "Action expired. Please continue with login now."
	}
	return s.form(q, l, message)
}

// restart begins a login again whose cookie or state is gone, if the jar still
// holds what it was about. The event of the refusal is cookie_not_found.
func (s *Server) restart(q *request) error {
	var r restart
	cookie, err := q.r.Cookie(cookieRestart)
	if err != nil || s.keys.verifyOwn(cookie.Value, &r) != nil || r.Issuer != q.issuer() {
		q.page(http.StatusBadRequest, errorPage("Restart login cookie not found. It may have expired; it may have been deleted or cookies are disabled in your browser. If cookies are disabled then enable them. Click Back to Application to login again."))
		return nil
	}
	l := &login{realm: q.route.realm, ask: r.ask}
	if err := s.begin(q, l); err != nil {
		return err
	}
	q.redirect(l.address(q, ""))
	return nil
}

// passwordFits checks a user's password at the cost that was asked for. An
// unknown user costs as much as a known one.
func (s *Server) passwordFits(realm, user, password string) (bool, error) {
	want, ok := s.o.Accounts.Password(realm, user)
	if realm == adminRealm && user == s.o.AdminUser {
		want, ok = s.o.AdminPassword, true
	}
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
	text := first + "." + u.id + "." + subject(l.realm, "client/"+l.Client)
	s.codes.put(text, &code{ask: l.ask, session: u, expires: q.now.Add(s.o.CodeLifespan)})
	q.redirect(l.back(q, "session_state", u.id, "code", text))
	return nil
}

// back is the client's redirect address with an error or with state,
// session_state, iss and code, in Keycloak's order. The values are pairs of
// name and value.
func (l *login) back(q *request, values ...string) string {
	given := map[string]string{"state": l.State, "iss": q.issuer()}
	for i := 0; i < len(values); i += 2 {
		given[values[i]] = values[i+1]
	}
	var b strings.Builder
	b.WriteString(l.Redirect)
	separator := "?"
	if strings.Contains(l.Redirect, "?") {
		separator = "&"
	}
	for _, name := range []string{"error", "error_description", "state", "session_state", "iss", "code"} {
		if v := given[name]; v != "" {
			b.WriteString(separator + name + "=" + url.QueryEscape(v))
			separator = "&"
		}
	}
	return b.String()
}

// redirect answers 302.
func (q *request) redirect(location string) {
	h := q.w.Header()
	for name, value := range security {
		h[name] = value
	}
	h.Set("Location", location)
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
	q.setCookie(cookieRestart, "", -1)
	q.setCookie(cookieIdentity, token, 0)
	q.setCookie(cookieSession, b64.EncodeToString(sum[:]), s.o.SessionMax)
	return nil
}

// identity is the session that the jar holds.
func (s *Server) identity(q *request) (*session, bool) {
	cookie, err := q.r.Cookie(cookieIdentity)
	if err != nil {
		return nil, false
	}
	var c claims
	if s.keys.verifyOwn(cookie.Value, &c) != nil || c.Typ != typIdentity || c.Iss != q.issuer() || c.expired(q.now) {
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
func (q *request) setCookie(name, value string, maxAge time.Duration) {
	var b strings.Builder
	b.WriteString(name + "=" + value + ";Version=1;Path=" + q.route.base() + "/")
	if maxAge != 0 {
		b.WriteString(";Max-Age=" + strconv.Itoa(int(max(maxAge, 0)/time.Second)))
	}
	if maxAge >= 0 {
		secure := q.r.TLS != nil || isLoopback(q.r.Host)
		for _, attribute := range []struct {
			text string
			set  bool
		}{{";Secure", secure}, {";HttpOnly", !scripted[name]}, {";SameSite=None", secure}} {
			if attribute.set {
				b.WriteString(attribute.text)
			}
		}
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
