package provision

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// leastSecret is the length below which a text is not searched for: masking
// "admin" or "kc" everywhere would hide what a log says and protect nothing.
const leastSecret = 6

// redactor masks the secrets of a lab in texts that come from the target:
// logs and messages may repeat what they were given.
type redactor struct{ texts []string }

// newRedactor knows the secrets of components, and of the target. A secret
// that equals a name in the open (user keycloak, password keycloak) is left
// alone.
func newRedactor(components []reconcile.Component, others ...secret.String) redactor {
	open := map[string]bool{}
	var r redactor
	for _, c := range components {
		for _, v := range c.Spec.Env {
			open[v] = true
		}
	}
	add := func(s secret.String) {
		text := s.Reveal()
		for _, form := range []string{text, strings.ReplaceAll(text, "$$", "$")} {
			if len(form) >= leastSecret && !open[form] && !slices.Contains(r.texts, form) {
				r.texts = append(r.texts, form)
			}
		}
	}
	for _, c := range components {
		for _, v := range c.Spec.SecretEnv {
			add(v)
		}
	}
	for _, s := range others {
		add(s)
	}
	// Longer ones first: one may hold another.
	slices.SortFunc(r.texts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return r
}

func (r redactor) mask(text string) string {
	for _, s := range r.texts {
		text = strings.ReplaceAll(text, s, secret.Redacted)
	}
	return text
}
