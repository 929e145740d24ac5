package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/benchctl/benchctl/scenarios/templates"
)

// Template is what the realms, clients and users of a dataset are made of:
// realm JSON as Keycloak takes it. The client whose clientId holds ${client}
// and the user whose username holds ${user} stand for all that are generated;
// where there is none, baseline's is taken. Other clients and users are made
// once in each realm, as they are.
type Template struct {
	// Name is the built-in name or the path.
	Name string
	// Sum is the SHA-256 in hex of the text, of what it includes and of the
	// variables that it uses.
	Sum string

	text []byte // as it was read, for With
	// missing are variables that are used and have no value.
	missing []variable

	realm        map[string]json.RawMessage // without clients and users
	client, user string                     // compact JSON with placeholders
	// clients and users that are not generated.
	clients, users []fixed
	// serviceAccounts tells whether generated clients have one.
	serviceAccounts bool
	policy          string
	// federated tells that the users come from a directory.
	federated bool
	// provider is the realm that is the identity provider; nil if there is
	// none.
	provider *Template
}

// fixed is a client or user that a template names itself.
type fixed struct {
	name string
	text json.RawMessage
}

// LoadTemplate reads a built-in template or, if there is none of that name, a
// file.
func LoadTemplate(name string) (*Template, error) {
	text, ok := templates.Read(name)
	if !ok {
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("realm template %q is neither built in (%s) nor a file that can be read: %w", name, strings.Join(templates.Names(), ", "), err)
		}
	}
	return ParseTemplate(name, text)
}

// ParseTemplate reads a template; errors begin with NAME:LINE:COL where the
// place is known.
func ParseTemplate(name string, text []byte) (*Template, error) {
	return parseTemplate(name, text, Variables{})
}

// With gives t with its variables replaced; those that it does not use are
// ignored. Another value of a variable that is used makes another dataset.
func (t *Template) With(v Variables) (*Template, error) { return parseTemplate(t.Name, t.text, v) }

// Federated tells that the users are not generated but come from a directory,
// where each one's password is their name (PasswordIsName).
func (t *Template) Federated() bool { return t.federated }

// HasProvider tells that there is one more realm, number ProviderRealm, whose
// users the others know as an identity provider's.
func (t *Template) HasProvider() bool { return t.provider != nil }

// complete tells what has to be known before the template can be used.
func (t *Template) complete() error {
	var errs []error
	for _, v := range t.missing {
		errs = append(errs, fmt.Errorf("realm template %s needs a value for %s: %s", t.Name, v.place, v.about))
	}
	return errors.Join(errs...)
}

func parseTemplate(name string, text []byte, v Variables) (*Template, error) {
	plain := bytes.TrimPrefix(text, []byte("\ufeff"))
	c := &composer{name: name, variables: v.list()}
	root, err := c.compose(plain)
	if err != nil {
		return nil, err
	}
	provider, _ := root[keyProvider].(map[string]any)
	delete(root, keyProvider)
	t, err := newTemplate(name, root)
	if err != nil {
		return nil, err
	}
	t.Sum, t.text = c.sum(plain), text
	for _, used := range c.used {
		if used.value == "" {
			t.missing = append(t.missing, used)
		}
	}
	if provider != nil {
		err = t.setProvider(provider)
	}
	return t, err
}

// setProvider reads the realm of the identity provider. It hashes passwords
// as the others do.
func (t *Template) setProvider(root map[string]any) error {
	p, err := newTemplate(t.Name+" ("+keyProvider+")", root)
	switch {
	case err != nil:
		return err
	case p.policy != "" && p.policy != t.policy:
		return fmt.Errorf("%s: its passwordPolicy is %q, that of the other realms %q; they have to be the same", p.Name, p.policy, t.policy)
	case p.federated:
		return fmt.Errorf("%s: its users come from a directory; they have to be generated", p.Name)
	}
	if p.policy == "" && t.policy != "" {
		if p.realm["passwordPolicy"], err = json.Marshal(t.policy); err != nil {
			return fmt.Errorf("%s: write its passwordPolicy: %w", p.Name, err)
		}
	}
	p.Sum, t.provider = t.Sum, p
	return nil
}

// newTemplate makes a template of one realm's tree.
func newTemplate(name string, root map[string]any) (*Template, error) {
	t := &Template{Name: name}
	withoutIDs(root)
	if p, ok := root["passwordPolicy"].(string); ok {
		t.policy = p
	}
	directories, err := federation(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.client, t.clients, err = split(root, "clients", "clientId", placeClient); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.user, t.users, err = split(root, "users", "username", placeUser); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.realm = make(map[string]json.RawMessage, len(root))
	for key, value := range root {
		if t.realm[key], err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("%s: write %s: %w", name, key, err)
		}
	}
	t.federated = directories && t.user == ""
	return t, t.finish()
}

// finish takes what is missing from baseline and finds out what is derived
// from the prototypes.
func (t *Template) finish() error {
	if err := t.standIn(); err != nil {
		return err
	}
	var client struct {
		ServiceAccountsEnabled bool `json:"serviceAccountsEnabled"`
	}
	if err := json.Unmarshal([]byte(t.client), &client); err != nil {
		return fmt.Errorf("%s: the client that stands for all: %w", t.Name, err)
	}
	t.serviceAccounts = client.ServiceAccountsEnabled
	if t.federated {
		return nil
	}
	var user struct {
		Credentials json.RawMessage `json:"credentials"`
	}
	if err := json.Unmarshal([]byte(t.user), &user); err != nil {
		return fmt.Errorf("%s: the user who stands for all: %w", t.Name, err)
	}
	if user.Credentials != nil {
		return fmt.Errorf("%s: the user who stands for all has credentials; those are made from the dataset's seed", t.Name)
	}
	return nil
}

// standIn takes the prototypes that the template lacks from baseline.
func (t *Template) standIn() error {
	if t.client != "" && (t.user != "" || t.federated) {
		return nil
	}
	text, ok := templates.Read("baseline")
	if !ok {
		return errors.New("the baseline template is not built in")
	}
	base, err := ParseTemplate("baseline", text)
	if err != nil {
		return err
	}
	if t.client == "" {
		t.client = base.client
	}
	if t.user == "" && !t.federated {
		t.user = base.user
	}
	return nil
}

// split takes a list out of the realm and its prototype out of the list.
func split(root map[string]any, list, key, placeholder string) (prototype string, rest []fixed, err error) {
	items, _ := root[list].([]any)
	delete(root, list)
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return "", nil, fmt.Errorf("%s[%d] is not an object", list, i)
		}
		text, err := json.Marshal(object)
		if err != nil {
			return "", nil, fmt.Errorf("write %s[%d]: %w", list, i, err)
		}
		name, _ := object[key].(string)
		switch {
		case !strings.Contains(name, placeholder):
			rest = append(rest, fixed{name, text})
		case name != placeholder:
			return "", nil, fmt.Errorf("%s[%d]: %s is %q; names are generated whole, so it must be %q", list, i, key, name, placeholder)
		case prototype != "":
			return "", nil, fmt.Errorf("%s[%d] is the second one that stands for all", list, i)
		default:
			prototype = string(text)
		}
	}
	return prototype, rest, nil
}
