package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/scenarios/templates"
)

// Keys of a template that are not the server's; they are taken out of it.
const (
	// keyInclude names a built-in template that this one changes: objects are
	// merged, null removes, lists of things with a name are merged by name, and
	// other lists are replaced.
	keyInclude = "benchctl.include"
	// keyProvider holds the template of one more realm, the identity provider
	// of all others.
	keyProvider = "benchctl.provider"
)

// Variables are what a template may leave open about the server that it goes
// to: where it is reached, and where its directory is. A template is refused
// while one that it uses is missing.
type Variables struct {
	// BaseURL (${base_url}) is the server with its prefix as browsers and the
	// load engine reach it: http://192.0.2.10:8080/auth.
	BaseURL string
	// ServerURL (${server_url}) is the server with its prefix as each of its
	// own nodes reaches it: http://127.0.0.1:8080/auth for a container.
	ServerURL string
	// LDAPURL (${ldap_url}) is the directory as the server reaches it:
	// ldap://openldap:389. LDAPUsersDN (${ldap_users_dn}) is the branch with
	// its users, LDAPBindDN (${ldap_bind_dn}) with LDAPBindPassword
	// (${ldap_bind_password}) who may search it.
	LDAPURL, LDAPUsersDN, LDAPBindDN string
	LDAPBindPassword                 secret.String
}

type variable struct{ place, value, about string }

func (v Variables) list() []variable {
	return []variable{
		{"${base_url}", strings.TrimRight(v.BaseURL, "/"), "the server's URL as browsers reach it"},
		{"${server_url}", strings.TrimRight(v.ServerURL, "/"), "the server's URL as its own nodes reach it"},
		{"${ldap_url}", v.LDAPURL, "the directory's URL as the server reaches it"},
		{"${ldap_users_dn}", v.LDAPUsersDN, "the branch of the directory that holds the users"},
		{"${ldap_bind_dn}", v.LDAPBindDN, "whom the server is to the directory"},
		{"${ldap_bind_password}", v.LDAPBindPassword.Reveal(), "the password that belongs to ${ldap_bind_dn}"},
	}
}

// composer turns the text of a template into one tree: what it includes is
// merged in, and variables are replaced.
type composer struct {
	name      string
	variables []variable
	included  [][]byte
	used      []variable
}

// compose reads a template's text.
func (c *composer) compose(text []byte) (map[string]any, error) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, placed(c.name, text, decoder.InputOffset(), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, placed(c.name, text, decoder.InputOffset(), errors.New("there is more after the realm"))
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s:1:1: a realm template is a JSON object", c.name)
	}
	return c.realm(root, nil)
}

// realm merges what a realm, or the realm of its provider, includes into it.
// within are the templates that are being read.
func (c *composer) realm(root map[string]any, within []string) (map[string]any, error) {
	if provider, there := root[keyProvider]; there && provider != nil {
		object, ok := provider.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: %s is not an object", c.name, keyProvider)
		}
		if _, nested := object[keyProvider]; nested {
			return nil, fmt.Errorf("%s: the provider's realm has a %s of its own", c.name, keyProvider)
		}
		whole, err := c.realm(object, within)
		if err != nil {
			return nil, err
		}
		root[keyProvider] = whole
	}
	include, there := root[keyInclude]
	delete(root, keyInclude)
	if there {
		base, err := c.include(include, within)
		if err != nil {
			return nil, err
		}
		root, _ = merge(base, root).(map[string]any)
	}
	c.replace(root)
	return root, nil
}

// include reads a built-in template.
func (c *composer) include(v any, within []string) (map[string]any, error) {
	name, _ := v.(string)
	text, ok := templates.Read(name)
	if !ok {
		return nil, fmt.Errorf("%s: %s is %v; it names a built-in template (%s)", c.name, keyInclude, v, strings.Join(templates.Names(), ", "))
	}
	if slices.Contains(within, name) {
		return nil, fmt.Errorf("%s: template %s includes itself", c.name, name)
	}
	c.included = append(c.included, text)
	var base map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&base); err != nil {
		return nil, placed(name, text, decoder.InputOffset(), err)
	}
	return c.realm(base, append(within, name))
}

// replace puts variables into the texts of a tree. Any other ${…} is left: it
// is the server's own, or stands for a name.
func (c *composer) replace(v any) any {
	switch v := v.(type) {
	case string:
		for _, variable := range c.variables {
			if !strings.Contains(v, variable.place) {
				continue
			}
			if !slices.Contains(c.used, variable) {
				c.used = append(c.used, variable)
			}
			if variable.value != "" {
				v = strings.ReplaceAll(v, variable.place, variable.value)
			}
		}
		return v
	case map[string]any:
		for key, child := range v {
			v[key] = c.replace(child)
		}
	case []any:
		for i, child := range v {
			v[i] = c.replace(child)
		}
	}
	return v
}

// sum identifies all that a template was made of.
func (c *composer) sum(text []byte) string {
	h := sha256.New()
	h.Write(text)
	for _, part := range c.included {
		fmt.Fprintf(h, "\x00%d\x00%s", len(part), part)
	}
	// In the order of the list, not in that of a map.
	for _, variable := range c.variables {
		if slices.Contains(c.used, variable) {
			fmt.Fprintf(h, "\x00%s\x00%s", variable.place, variable.value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// names are the fields by which things in a list are told apart, in the order
// in which they are looked for.
var nameFields = []string{"clientId", "username", "alias", "name"}

// nameOf is what a thing in a list is called; empty if it has no name.
func nameOf(v any) string {
	object, _ := v.(map[string]any)
	for _, field := range nameFields {
		if name, ok := object[field].(string); ok && name != "" {
			return field + "=" + name
		}
	}
	return ""
}

// merge is base changed by over; it may use up both.
func merge(base, over any) any {
	switch over := over.(type) {
	case map[string]any:
		object, ok := base.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		for key, value := range over {
			if value == nil {
				delete(object, key)
				continue
			}
			object[key] = merge(object[key], value)
		}
		return object
	case []any:
		list, ok := base.([]any)
		unnamed := func(v any) bool { return nameOf(v) == "" }
		if !ok || len(over) == 0 || slices.ContainsFunc(list, unnamed) || slices.ContainsFunc(over, unnamed) {
			return over
		}
		for _, thing := range over {
			at := slices.IndexFunc(list, func(v any) bool { return nameOf(v) == nameOf(thing) })
			if at < 0 {
				list = append(list, thing)
				continue
			}
			list[at] = merge(list[at], thing)
		}
		return list
	}
	return over
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
