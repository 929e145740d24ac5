package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"
)

// prober is the user that the server is asked to hash a password for.
const prober = "benchctl-probe"

// learn finds out how the server hashes in the dataset's first realm and
// decides again with that.
func (m *importer) learn(ctx context.Context, found []realmState, actions []action) (known string, again []action, err error) {
	first := found[0].name
	i := slices.IndexFunc(actions, func(a action) bool { return a.realm == first && a.create })
	if i >= 0 {
		// Made without saying how it hashes, so that after an interruption
		// it is learnt again.
		if err := m.prepare(ctx, actions[i], ""); err != nil {
			return "", nil, err
		}
		actions[i].create, actions[i].remove, actions[i].made = false, false, true
	}
	h, err := m.probe(ctx, first)
	if err != nil {
		return "", nil, err
	}
	known = h.String()
	if i < 0 && found[0].hashing != "" && found[0].hashing != known {
		again, err = decide(known, found)
		return known, again, err
	}
	if err := m.mark(ctx, first, known); err != nil {
		return "", nil, err
	}
	if again, err = decide(known, found); err != nil || i < 0 {
		return known, again, err
	}
	for n, a := range again {
		if a.realm == first {
			again[n] = actions[i]
		}
	}
	return known, again, nil
}

// mark says in a realm how its passwords are hashed.
func (m *importer) mark(ctx context.Context, realm, hashing string) error {
	attributes, _, err := m.attributes(ctx, realm)
	if err != nil {
		return err
	}
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes[attributeHashing], attributes[attributeServer] = hashing, m.result.Server
	return m.setAttributes(ctx, realm, attributes)
}

// cleanUp is how long removing what was made for a look may take after ctx
// has ended.
const cleanUp = 700 * time.Millisecond

func (m *importer) probe(ctx context.Context, realm string) (h Hashing, err error) {
	id, err := m.makeProber(ctx, realm)
	if err != nil {
		return h, fmt.Errorf("find out how %s hashes passwords: %w", realm, err)
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		if ctx.Err() == nil {
			after = ctx
		}
		defer cancel()
		if _, e := m.call(after, http.MethodDelete, realmPath(realm)+"/users/"+id, nil, nil); e != nil {
			err = errors.Join(err, fmt.Errorf("remove user %s of %s: %w", prober, realm, e))
		}
	}()
	stored, err := m.storedHash(ctx, realm, id)
	if err != nil {
		return h, err
	}
	h, warnings, err := fromStored(stored, m.policy, release(m.result.Server))
	m.result.Warnings = append(m.result.Warnings, warnings...)
	return h, err
}

// makeProber makes the user, once more if an earlier look left one behind.
func (m *importer) makeProber(ctx context.Context, realm string) (id string, err error) {
	permanent := false
	body, err := json.Marshal(map[string]any{
		"username": prober, "enabled": true,
		"credentials": []credential{{Type: "password", Value: Password(m.spec.Seed, realm, prober, true), Temporary: &permanent}},
	})
	if err != nil {
		return "", err
	}
	for range 2 {
		header, err := m.call(ctx, http.MethodPost, realmPath(realm)+"/users", body, nil)
		if err == nil {
			if id = path.Base(header.Get("Location")); uuid.MatchString(id) {
				return id, nil
			}
			return m.userID(ctx, realm, prober)
		}
		if !isStatus(err, http.StatusConflict) {
			return "", err
		}
		if id, err = m.userID(ctx, realm, prober); err != nil {
			return "", err
		}
		if _, err := m.call(ctx, http.MethodDelete, realmPath(realm)+"/users/"+id, nil, nil); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("user %s of %s can't be made anew", prober, realm)
}
