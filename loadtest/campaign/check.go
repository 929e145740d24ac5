package campaign

import (
	"errors"
	"fmt"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/scenarios"
)

// anyURL stands for a server whose address is not known yet.
const anyURL = "http://127.0.0.1"

// Check tells everything about the dataset and the chosen tests (all where
// none is named) that would stop a campaign later on, in words that name the
// test: what the load engine refuses and what no dataset can have. It connects
// to nothing, so it can be asked before anything is built. url is the base of
// the identity server, or "" when it is not known yet.
func Check(s *scenarios.Scenario, tests []string, url string) error {
	runs, err := Plan(s, tests, 1)
	if err != nil {
		return err
	}
	if url == "" {
		url = anyURL
	}
	return check(s, runs, url)
}

func check(s *scenarios.Scenario, runs []Planned, url string) error {
	d := s.Dataset
	spec := dataset.Spec{
		Template: d.Template, Realms: d.Realms, Clients: d.Clients, Users: d.Users, Seed: d.Seed, Hash: d.Hash, UniquePasswords: d.UniquePasswords,
	}
	if err := spec.Validate(); err != nil {
		// The tests speak of the dataset too, and would say it again.
		return fmt.Errorf("%sthe dataset of scenario %q: %w", place(s.Source), s.Name, err)
	}
	if err := checkTemplate(s); err != nil {
		return fmt.Errorf("%sthe dataset of scenario %q: %w", place(s.Source), s.Name, err)
	}
	var errs []error
	for _, run := range runs {
		if run.Repeat > 1 {
			continue
		}
		if err := TestSettings(s, run.Test, url).Check(); err != nil {
			errs = append(errs, fmt.Errorf("%stest %q of scenario %q: %w", place(run.Test.Source), run.Test.Name, s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkTemplate holds the realm template to the directory that its users come
// from.
func checkTemplate(s *scenarios.Scenario) error {
	d := s.Dataset
	if d.Template == "" {
		return nil
	}
	template, err := dataset.LoadTemplate(d.Template)
	switch {
	case err != nil:
		return err
	case !template.Federated():
	case s.LDAP == nil:
		return fmt.Errorf(`the users of template %s come from a directory, and there is none: add ldap "openldap" { users = %d }`, d.Template, d.Users)
	case s.LDAP.Users != d.Users:
		return fmt.Errorf("the users of template %s come from the directory, which has %d of them, and the dataset %d: give both one number", d.Template, s.LDAP.Users, d.Users)
	}
	return nil
}

// place is where something was declared, as a message begins with it.
func place(source string) string {
	if source == "" || source == scenarios.BuiltIn {
		return ""
	}
	return source + ": "
}
