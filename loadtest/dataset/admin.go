package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// Doer sends one request; *http.Client is one. It must not follow a time-out
// shorter than the server's own five minutes for an import.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Keycloak is the server that a dataset goes to, and who may change it.
type Keycloak struct {
	// URL is the base with the /auth prefix where there is one.
	URL string
	// User and Password of an administrator in the realm master.
	User     string
	Password secret.String
	// HTTP sends the requests; nil for http.DefaultClient.
	HTTP Doer
	// Now is the clock and Sleep a wait that ends with its context; nil for
	// those of the system.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// admin is a conversation with the admin API. It is safe for concurrent use.
type admin struct {
	Keycloak
	mu      sync.Mutex // held while a token is asked for, so only one asks
	token   string
	expires time.Time
}

func newAdmin(k Keycloak) *admin {
	k.URL = strings.TrimRight(k.URL, "/")
	if k.HTTP == nil {
		k.HTTP = http.DefaultClient
	}
	if k.Now == nil {
		k.Now = time.Now
	}
	if k.Sleep == nil {
		k.Sleep = pause
	}
	return &admin{Keycloak: k}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempts and the waits between them: a server that restarts behind a proxy
// is back within this, one that is down for good is told of soon enough.
const (
	attempts  = 6
	firstWait = 250 * time.Millisecond
)

// statusError is an answer that is no success.
type statusError struct {
	method, url string
	status      int
	body        string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s %s answered %d", e.method, e.url, e.status)
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// isStatus tells whether err is an answer with this status.
func isStatus(err error, status int) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.status == status
}

// call sends a request until it is answered for good: connection errors, 429
// and 5xx are tried again after growing waits, and a token that the server no
// longer takes is replaced once. out, where not nil, gets the JSON of the
// answer; the header is that of the answer.
func (a *admin) call(ctx context.Context, method, path string, body []byte, out any) (http.Header, error) {
	return a.try(ctx, func(renew bool) (http.Header, error) {
		token, err := a.bearer(ctx, renew)
		if err != nil {
			return nil, err
		}
		header := http.Header{"Authorization": {"Bearer " + token}}
		if body != nil {
			header.Set("Content-Type", "application/json")
		}
		return a.send(ctx, method, path, header, body, out)
	})
}

// form is call for the endpoints that take a form and no admin's token.
func (a *admin) form(ctx context.Context, path string, fields url.Values, out any) error {
	_, err := a.try(ctx, func(bool) (http.Header, error) {
		header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		return a.send(ctx, http.MethodPost, path, header, []byte(fields.Encode()), out)
	})
	return err
}

// try repeats once as long as it makes sense.
func (a *admin) try(ctx context.Context, once func(renew bool) (http.Header, error)) (http.Header, error) {
	renewed, renew := false, false
	wait := firstWait
	for n := 1; ; n++ {
		header, err := once(renew)
		renew = false
		switch {
		case err == nil:
			return header, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case !renewed && (isStatus(err, http.StatusUnauthorized) || isStatus(err, http.StatusForbidden)):
			// The token ended early, or was made before the realm was.
			renewed, renew = true, true
			n--
			continue
		case !passing(err):
			return header, err
		case n == attempts:
			return header, fmt.Errorf("given up after %d tries: %w", n, err)
		}
		if err := a.Sleep(ctx, wait); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// passing tells whether an error may be gone at the next try: there was no
// answer, or it was 429 or 5xx.
func passing(err error) bool {
	e := new(statusError)
	if errors.As(err, &e) {
		return e.status == http.StatusTooManyRequests || e.status >= 500
	}
	return errors.Is(err, errNoAnswer)
}

var errNoAnswer = errors.New("no answer")

// maxAnswer bounds what is read of an answer that was not asked to be decoded.
const maxAnswer = 64 << 10

// send sends one request once.
func (a *admin) send(ctx context.Context, method, path string, header http.Header, body []byte, out any) (http.Header, error) {
	address := a.URL + path
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, address, err)
	}
	request.Header = header
	// Without it Keycloak 9 answers an import with 500 after it committed it.
	request.Header.Set("Accept", "application/json")
	answer, err := a.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", method, address, errNoAnswer, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return nil, &statusError{method, address, answer.StatusCode, strings.TrimSpace(string(text))}
	}
	if out != nil {
		if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
			return nil, fmt.Errorf("%s %s: %w: read the answer: %w", method, address, errNoAnswer, err)
		}
	}
	// Read to the end, so that the connection is used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	return answer.Header, nil
}

// renewBefore is how long a token must still be good to be used: an import may
// wait in the server's queue before its token is looked at. admin-cli's lives
// 60 s.
const renewBefore = 15 * time.Second

// bearer gives a token that is still good, or a new one; whoever comes while
// one is being asked for waits for that one.
func (a *admin) bearer(ctx context.Context, renew bool) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !renew && a.token != "" && a.Now().Before(a.expires) {
		return a.token, nil
	}
	fields := url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"},
		"username": {a.User}, "password": {a.Password.Reveal()},
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	asked := a.Now()
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if _, err := a.send(ctx, http.MethodPost, "/realms/master/protocol/openid-connect/token", header, []byte(fields.Encode()), &answer); err != nil {
		if e := new(statusError); errors.As(err, &e) && e.status/100 == 4 && !passing(err) {
			return "", fmt.Errorf("log in as administrator %q: check the name and the password: %w", a.User, &loginError{e})
		}
		return "", fmt.Errorf("log in as administrator %q: %w", a.User, err)
	}
	life := time.Duration(answer.ExpiresIn) * time.Second
	a.token, a.expires = answer.AccessToken, asked.Add(max(life-renewBefore, life/2))
	return a.token, nil
}

// loginError keeps a refused login from being taken for an old token.
type loginError struct{ refused *statusError }

func (e *loginError) Error() string { return e.refused.Error() }

// release is the major version in a text such as 26.7.3; 0 if there is none.
func release(version string) int {
	n := 0
	for _, r := range version {
		if r < '0' || r > '9' {
			break
		}
		n = n*10 + int(r-'0')
	}
	return n
}

// serverInfo is what a server tells about itself; each may be missing.
type serverInfo struct {
	version string
	// algorithms are the names of the hashes it can make, in order.
	algorithms []string
}

// info asks the server about itself.
func (a *admin) info(ctx context.Context) (serverInfo, error) {
	var answer struct {
		SystemInfo struct {
			Version string `json:"version"`
		} `json:"systemInfo"`
		Providers struct {
			Hashing struct {
				Providers map[string]json.RawMessage `json:"providers"`
			} `json:"password-hashing"`
		} `json:"providers"`
	}
	if _, err := a.call(ctx, http.MethodGet, "/admin/serverinfo", nil, &answer); err != nil {
		return serverInfo{}, fmt.Errorf("ask the server about itself: %w", err)
	}
	return serverInfo{answer.SystemInfo.Version, slices.Sorted(maps.Keys(answer.Providers.Hashing.Providers))}, nil
}

// accepts tells whether a server can hash as a policy says. It is asked before
// anything is changed: what is there may be removed for what can't be made.
func (i serverInfo) accepts(p policy) error {
	if p.algorithm == "" || len(i.algorithms) == 0 || slices.Contains(i.algorithms, p.algorithm) {
		return nil
	}
	return fmt.Errorf("the server knows no hash algorithm %q; it knows %s", p.algorithm, strings.Join(i.algorithms, ", "))
}

func realmPath(realm string) string { return "/admin/realms/" + url.PathEscape(realm) }

// realms lists the names of all realms.
func (a *admin) realms(ctx context.Context) ([]string, error) {
	var list []struct {
		Realm string `json:"realm"`
	}
	if _, err := a.call(ctx, http.MethodGet, "/admin/realms?briefRepresentation=true", nil, &list); err != nil {
		return nil, fmt.Errorf("list the realms: %w", err)
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Realm
	}
	slices.Sort(names)
	return names, nil
}

// attributes are those of a realm; ok is false if there is no such realm.
func (a *admin) attributes(ctx context.Context, realm string) (attributes map[string]string, ok bool, err error) {
	var r struct {
		Attributes map[string]string `json:"attributes"`
	}
	_, err = a.call(ctx, http.MethodGet, realmPath(realm), nil, &r)
	if isStatus(err, http.StatusNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("look at %s: %w", realm, err)
	}
	return r.Attributes, true, nil
}

// setAttributes replaces all of a realm's attributes.
func (a *admin) setAttributes(ctx context.Context, realm string, attributes map[string]string) error {
	body, err := json.Marshal(map[string]any{"realm": realm, "attributes": attributes})
	if err != nil {
		return fmt.Errorf("write the attributes of %s: %w", realm, err)
	}
	if _, err := a.call(ctx, http.MethodPut, realmPath(realm), body, nil); err != nil {
		return fmt.Errorf("mark %s: %w", realm, err)
	}
	return nil
}

// countUsers is the number of a realm's users without service accounts.
func (a *admin) countUsers(ctx context.Context, realm string) (int, error) {
	n := 0
	if _, err := a.call(ctx, http.MethodGet, realmPath(realm)+"/users/count", nil, &n); err != nil {
		return 0, fmt.Errorf("count the users of %s: %w", realm, err)
	}
	return n, nil
}

// clientPage is how many clients are asked for at once: a client's
// representation is above a kilobyte, and there is none shorter.
const clientPage = 200

// countClients is the number of generated clients in a realm. There is no
// endpoint that counts, so they are listed by pages.
func (a *admin) countClients(ctx context.Context, realm string) (int, error) {
	n := 0
	for first := 0; ; first += clientPage {
		var page []struct {
			ClientID string `json:"clientId"`
		}
		path := fmt.Sprintf("%s/clients?search=true&clientId=%s&first=%d&max=%d", realmPath(realm), url.QueryEscape(builtinNames.client.prefix), first, clientPage)
		if _, err := a.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return 0, fmt.Errorf("count the clients of %s: %w", realm, err)
		}
		for _, c := range page {
			if builtinNames.client.matches(c.ClientID) {
				n++
			}
		}
		if len(page) < clientPage {
			return n, nil
		}
	}
}

// userID finds a user; it is empty if there is none of that name.
func (a *admin) userID(ctx context.Context, realm, user string) (string, error) {
	var list []struct {
		ID       string `json:"id"`
		Username string `json:"username"`
	}
	path := realmPath(realm) + "/users?exact=true&briefRepresentation=true&max=10&username=" + url.QueryEscape(user)
	if _, err := a.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return "", fmt.Errorf("look for user %s of %s: %w", user, realm, err)
	}
	for _, u := range list {
		if u.Username == user {
			return u.ID, nil
		}
	}
	return "", nil
}

// hasClient tells whether a realm has a client.
func (a *admin) hasClient(ctx context.Context, realm, client string) (bool, error) {
	var list []struct {
		ClientID string `json:"clientId"`
	}
	if _, err := a.call(ctx, http.MethodGet, realmPath(realm)+"/clients?clientId="+url.QueryEscape(client), nil, &list); err != nil {
		return false, fmt.Errorf("look for client %s of %s: %w", client, realm, err)
	}
	for _, c := range list {
		if c.ClientID == client {
			return true, nil
		}
	}
	return false, nil
}

// storedHash is the credentialData of a user's password, as far as the server
// shows it.
func (a *admin) storedHash(ctx context.Context, realm, id string) (string, error) {
	var list []credential
	if _, err := a.call(ctx, http.MethodGet, realmPath(realm)+"/users/"+url.PathEscape(id)+"/credentials", nil, &list); err != nil {
		return "", fmt.Errorf("look at a password of %s: %w", realm, err)
	}
	for _, c := range list {
		if c.Type == "password" {
			return c.CredentialData, nil
		}
	}
	return "", fmt.Errorf("look at a password of %s: the user has none", realm)
}

// importResult is the answer to a partial import.
type importResult struct {
	Added       int `json:"added"`
	Skipped     int `json:"skipped"`
	Overwritten int `json:"overwritten"`
}

// partialImport adds clients or users to a realm in one transaction.
func (a *admin) partialImport(ctx context.Context, realm string, body []byte, want int) (importResult, error) {
	var r importResult
	if _, err := a.call(ctx, http.MethodPost, realmPath(realm)+"/partialImport", body, &r); err != nil {
		return r, err
	}
	if got := r.Added + r.Skipped + r.Overwritten; got != want {
		return r, fmt.Errorf("the server took %d of %d", got, want)
	}
	return r, nil
}
