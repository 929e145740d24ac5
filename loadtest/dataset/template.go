package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"

	"github.com/benchctl/benchctl/scenarios/templates"
)

// Placeholders of a template, replaced wherever they stand in a text.
const (
	placeRealm  = "${realm}"
	placeClient = "${client}"
	placeSecret = "${secret}"
	placeUser   = "${user}"
)

// Template is what the realms, clients and users of a dataset are made of:
// realm JSON as Keycloak takes it. The client whose clientId holds ${client}
// and the user whose username holds ${user} stand for all that are generated;
// where there is none, baseline's is taken. Other clients and users are made
// once in each realm, as they are.
type Template struct {
	// Name is the built-in name or the path.
	Name string
	// Sum is the SHA-256 of the text in hex.
	Sum string

	realm        map[string]json.RawMessage // without clients and users
	client, user string                     // compact JSON with placeholders
	// clients and users that are not generated.
	clients, users []json.RawMessage
	// serviceAccounts tells whether generated clients have one.
	serviceAccounts bool
	policy          string
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
	t, err := parseTemplate(name, text)
	if err != nil {
		return nil, err
	}
	if t.client != "" && t.user != "" {
		return t, t.finish()
	}
	standIn, ok := templates.Read("baseline")
	if !ok {
		return nil, errors.New("the baseline template is not built in")
	}
	base, err := parseTemplate("baseline", standIn)
	if err != nil {
		return nil, err
	}
	if t.client == "" {
		t.client = base.client
	}
	if t.user == "" {
		t.user = base.user
	}
	return t, t.finish()
}

func parseTemplate(name string, text []byte) (*Template, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	sum := sha256.Sum256(text)
	t := &Template{Name: name, Sum: hex.EncodeToString(sum[:])}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, placed(name, text, decoder.InputOffset(), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, placed(name, text, decoder.InputOffset(), errors.New("there is more after the realm"))
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s:1:1: a realm template is a JSON object", name)
	}
	withoutIDs(root)
	if p, ok := root["passwordPolicy"].(string); ok {
		t.policy = p
	}
	var err error
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
	return t, nil
}

// finish finds out what is derived from the prototypes.
func (t *Template) finish() error {
	var client struct {
		ServiceAccountsEnabled bool `json:"serviceAccountsEnabled"`
	}
	if err := json.Unmarshal([]byte(t.client), &client); err != nil {
		return fmt.Errorf("%s: the client that stands for all: %w", t.Name, err)
	}
	t.serviceAccounts = client.ServiceAccountsEnabled
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

// split takes a list out of the realm and its prototype out of the list.
func split(root map[string]any, list, key, placeholder string) (prototype string, rest []json.RawMessage, err error) {
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
			rest = append(rest, text)
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

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// withoutIDs drops the IDs of an exported realm: a second realm with the same
// ones would be refused, and nothing refers to them but containers.
func withoutIDs(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"id", "containerId"} {
			if s, ok := v[key].(string); ok && uuid.MatchString(s) {
				delete(v, key)
			}
		}
		for _, child := range v {
			withoutIDs(child)
		}
	case []any:
		for _, child := range v {
			withoutIDs(child)
		}
	}
}

// placed says where in a text an error is.
func placed(name string, text []byte, offset int64, err error) error {
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		offset = syntax.Offset - 1
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		offset = int64(len(text))
	}
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("%s:%d:%d: no JSON: %w", name, line, column, err)
}

// Attributes of a realm that say that it is ours and what it holds.
const (
	attributeDataset = "benchctl.dataset"
	attributeHashing = "benchctl.dataset.hash"
	attributeServer  = "benchctl.dataset.server"
)

// realmJSON is the body that makes a realm: the template under this name, with
// the dataset's policy and our attributes, and without generated clients and
// users.
func (t *Template) realmJSON(name, policy string, attributes map[string]string) ([]byte, error) {
	realm := maps.Clone(t.realm)
	merged := map[string]any{}
	if old, ok := realm["attributes"]; ok {
		if err := json.Unmarshal(old, &merged); err != nil {
			return nil, fmt.Errorf("%s: attributes: %w", t.Name, err)
		}
	}
	for key, value := range attributes {
		merged[key] = value
	}
	for key, value := range map[string]any{"realm": name, "attributes": merged, "passwordPolicy": policy, "clients": t.clients, "users": t.users} {
		if list, ok := value.([]json.RawMessage); ok && len(list) == 0 || value == "" {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: write %s: %w", t.Name, key, err)
		}
		realm[key] = text
	}
	text, err := json.Marshal(realm)
	if err != nil {
		return nil, fmt.Errorf("%s: write the realm: %w", t.Name, err)
	}
	return []byte(strings.ReplaceAll(string(text), placeRealm, name)), nil
}

// clientsJSON is the body that imports clients from ≤ i < to, with the users
// of their service accounts: an import of clients alone makes none, and the
// server then refuses client_credentials.
func (t *Template) clientsJSON(seed int64, realm string, from, to int) []byte {
	var b, accounts bytes.Buffer
	b.WriteString(`{"ifResourceExists":"SKIP","clients":[`)
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
			accounts.WriteByte(',')
		}
		id := ClientID(i)
		r := strings.NewReplacer(placeClient, id, placeSecret, ClientSecret(seed, realm, id), placeRealm, realm)
		// Writing to a buffer can't fail.
		_, _ = r.WriteString(&b, t.client)
		fmt.Fprintf(&accounts, `{"username":"service-account-%s","enabled":true,"serviceAccountClientId":%q}`, id, id)
	}
	b.WriteByte(']')
	if t.serviceAccounts {
		b.WriteString(`,"users":[`)
		b.Write(accounts.Bytes())
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// usersJSON is the body that imports users from ≤ i < to, each with the
// credential that belongs to them.
func (t *Template) usersJSON(realm string, from, to int, credential func(user string) (string, error)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"ifResourceExists":"SKIP","users":[`)
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
		}
		name := UserName(i)
		text, err := credential(name)
		if err != nil {
			return nil, err
		}
		r := strings.NewReplacer(placeUser, name, placeRealm, realm)
		_, _ = r.WriteString(&b, strings.TrimSuffix(t.user, "}"))
		b.WriteString(`,"credentials":[`)
		b.WriteString(text)
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return b.Bytes(), nil
}
