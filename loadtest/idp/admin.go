package idp

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The administrator lives in the realm master and logs in at its public client
// admin-cli, whose tokens live a minute: Keycloak's defaults.
const (
	adminRealm    = "master"
	adminClient   = "admin-cli"
	adminLifespan = time.Minute
)

// consult is what Keycloak adds to errors that it has no more to say about.
const consult = "For more on this error consult the server log."

// kind is one of what administrators make: users or clients.
type kind struct {
	// path below /admin/realms/{realm}.
	path string
	// field carries the name in JSON and in queries that list by name.
	field string
	// missing is the error for what isn't there, anonymous the one for a
	// document without a name; if empty, the ID becomes the name.
	missing, anonymous string
	// taken is the error for a name that is there already.
	taken func(name string) string
	// normal is a name as it is kept.
	normal func(name string) string
	// exact tells whether a query asks for a whole name or a part of it.
	exact func(query url.Values) bool
	// exists tells whether the accounts have a name.
	exists func(a Accounts, realm, name string) bool
	// defaults are the fields of a document that didn't say otherwise.
	defaults map[string]any
}

var userKind = &kind{
	path: "users", field: "username", missing: "User not found", anonymous: "User name is missing",
	taken:  func(string) string { return "User exists with same username" },
	normal: func(name string) string { return strings.ToLower(strings.TrimSpace(name)) },
	exact:  func(query url.Values) bool { return query.Get("exact") == "true" },
	exists: func(a Accounts, realm, name string) bool { _, ok := a.Password(realm, name); return ok },
	defaults: map[string]any{
		"enabled": false, "emailVerified": false, "totp": false,
		"disableableCredentialTypes": []string{}, "requiredActions": []string{}, "notBefore": 0,
	},
}

var clientKind = &kind{
	path: "clients", field: "clientId", missing: "Could not find client",
	taken:  func(name string) string { return "Client " + name + " already exists" },
	normal: func(name string) string { return name },
	exact:  func(query url.Values) bool { return query.Get("search") != "true" },
	exists: func(a Accounts, realm, name string) bool { _, ok := a.ClientSecret(realm, name); return ok },
	defaults: map[string]any{
		"enabled": true, "protocol": "openid-connect", "publicClient": false,
		"clientAuthenticatorType": "client-secret", "standardFlowEnabled": true, "redirectUris": []string{}, "webOrigins": []string{},
	},
}

// thing is a user or client that an administrator made.
type thing struct {
	id, name string
	document json.RawMessage
}

// thingKey finds a thing. The ID follows from the name, so that one key serves
// for both; see thingID.
type thingKey struct {
	kind      *kind
	realm, id string
}

// thingID follows from realm and name: a user's is the subject of its tokens.
func (k *kind) thingID(realm, name string) string {
	if k == userKind {
		return subject(realm, name)
	}
	sum := sha256.Sum256([]byte(k.path + "/" + realm + "/" + name))
	return formatUUID([16]byte(sum[:16]))
}

// maxDocument bounds a document that is kept, so that the memory of all is
// bounded too. Those of the admin flows have about 200 bytes.
const maxDocument = 4 << 10

// maxListed is how many things a list has that didn't say, mostListed how many
// it has at most. Keycloak has no such bounds for clients.
const (
	maxListed  = 100
	mostListed = 1000
)

// administrator tells whether the caller is; if not, the answer is given.
func (s *Server) administrator(q *request) bool {
	if token, ok := q.bearer(); ok {
		master := *q
		master.route = route{prefix: q.route.prefix, area: areaRealms, realm: adminRealm, escaped: adminRealm}
		c, u, err := s.accessToken(&master, token)
		if err == nil && u != nil && c.Username == s.o.AdminUser {
			return true
		}
		if err != nil {
			own := *q
			own.route.area = areaRealms
			_, _, err = s.accessToken(&own, token)
		}
		if err == nil {
			q.fail(http.StatusForbidden, "HTTP 403 Forbidden", consult)
			return false
		}
	}
	q.fail(http.StatusUnauthorized, "HTTP 401 Unauthorized", consult)
	return false
}

// messageError is an error as the admin API and the broker write it.
type messageError struct {
	Message string `json:"errorMessage"`
}

func (k *kind) create(s *Server, q *request) error {
	if !s.administrator(q) {
		return nil
	}
	if mediaType, _, _ := strings.Cut(q.r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		q.fail(http.StatusUnsupportedMediaType, "HTTP 415 Unsupported Media Type", consult)
		return nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(q.w, q.r.Body, maxDocument))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		q.fail(http.StatusRequestEntityTooLarge, "HTTP 413 Request Entity Too Large", "Documents have at most "+strconv.Itoa(maxDocument)+" bytes here")
		return nil
	}
	var document map[string]any
	if err != nil || json.Unmarshal(raw, &document) != nil || document == nil {
		q.fail(http.StatusBadRequest, "unknown_error", "Cannot parse the JSON")
		return nil
	}
	given, _ := document[k.field].(string)
	name := k.normal(given)
	if name == "" && k.anonymous != "" {
		return q.json(http.StatusBadRequest, messageError{k.anonymous})
	}
	if name == "" {
		if name, err = s.uuid(); err != nil {
			return err
		}
	}
	t := &thing{id: k.thingID(q.route.realm, name), name: name}
	for field, value := range k.defaults {
		if _, ok := document[field]; !ok {
			document[field] = value
		}
	}
	document["id"], document[k.field] = t.id, name
	delete(document, "credentials") // never shown
	if k == userKind {
		document["createdTimestamp"] = q.now.UnixMilli()
	}
	if t.document, err = json.Marshal(document); err != nil {
		return err
	}
	if k.exists(s.o.Accounts, q.route.realm, name) || q.route.realm == adminRealm && k.builtin(s, name) ||
		!s.things.add(k.key(q, t.id), t) {
		return q.json(http.StatusConflict, messageError{k.taken(name)})
	}
	q.w.Header().Set("Location", q.issuer()+"/"+k.path+"/"+t.id)
	q.empty(http.StatusCreated)
	return nil
}

// builtin tells whether a name of the realm master is the administrator's.
func (k *kind) builtin(s *Server, name string) bool {
	return k == userKind && name == k.normal(s.o.AdminUser) || k == clientKind && name == adminClient
}

func (k *kind) key(q *request, id string) thingKey { return thingKey{k, q.route.realm, id} }

func (k *kind) read(s *Server, q *request) error {
	if !s.administrator(q) {
		return nil
	}
	t, ok := s.things.get(k.key(q, q.route.id))
	if !ok {
		q.fail(http.StatusNotFound, k.missing, consult)
		return nil
	}
	q.raw(http.StatusOK, "application/json;charset=UTF-8", t.document)
	return nil
}

func (k *kind) remove(s *Server, q *request) error {
	if !s.administrator(q) {
		return nil
	}
	if _, ok := s.things.take(k.key(q, q.route.id)); !ok {
		q.fail(http.StatusNotFound, k.missing, consult)
		return nil
	}
	q.empty(http.StatusNoContent)
	return nil
}

// list answers with what was made, sorted by name; first and max page it.
func (k *kind) list(s *Server, q *request) error {
	if !s.administrator(q) {
		return nil
	}
	query := q.r.URL.Query()
	found := k.find(s, q, query.Get(k.field), k.exact(query))
	first, most := 0, maxListed
	for name, value := range map[string]*int{"first": &first, "max": &most} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			// What JAX-RS does with a parameter that is no number.
			q.fail(http.StatusNotFound, "HTTP 404 Not Found", consult)
			return nil
		}
		if n >= 0 {
			*value = n
		}
	}
	found = found[min(first, len(found)):]
	found = found[:min(most, mostListed, len(found))]
	documents := make([]json.RawMessage, len(found))
	for i, t := range found {
		documents[i] = t.document
	}
	return q.json(http.StatusOK, documents)
}

// find gives the things of a realm whose name is, or holds, the one wanted.
func (k *kind) find(s *Server, q *request, wanted string, exact bool) []*thing {
	if wanted != "" && exact {
		// The load engine asks this way, so it must not cost a walk.
		if t, ok := s.things.get(k.key(q, k.thingID(q.route.realm, k.normal(wanted)))); ok {
			return []*thing{t}
		}
		return nil
	}
	wanted = strings.ToLower(wanted)
	found := s.things.filter(func(key thingKey, t *thing) bool {
		return key.kind == k && key.realm == q.route.realm && strings.Contains(strings.ToLower(t.name), wanted)
	})
	slices.SortFunc(found, func(a, b *thing) int { return cmp.Compare(a.name, b.name) })
	return found
}
