package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/benchctl/benchctl/loadtest/campaign"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/lab"
	"github.com/benchctl/benchctl/scenarios"
)

func seedCommand() *command {
	return &command{
		name:    "seed",
		lease:   true,
		summary: "fill the lab with the scenario's dataset",
		details: `Does what is missing: an interrupted import goes on where it was, and nothing is
done where all is there. Then counts are verified and one login per realm is
tried. Realms that benchctl did not make are never changed. Where the target has a
snapshot of the dataset, made with the same versions, it is put in place instead.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			snapshot := fs.Bool("snapshot", false, "copy the seeded data on the target, for resets and later labs")
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				lab, s, err := a.openLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				a.progress()
				seeder := a.seeder(s, lab)
				seeder.snapshot = *snapshot
				did, found, err := seeder.seed(ctx)
				a.endProgress(err == nil)
				if err != nil {
					return a.withRemains(lab, err)
				}
				if *asJSON {
					return a.printJSON(map[string]any{"import": did, "verified": found, "dataset": seeder.spec(),
						"restored": seeder.restored, "snapshot": seeder.taken})
				}
				switch {
				case seeder.restored != nil:
					fmt.Fprintf(a.stdout, "Restored from snapshot %s.\n", seeder.restored.Key)
				case did.Realms+did.Clients+did.Users == 0:
					fmt.Fprintln(a.stdout, "Nothing to do: the dataset is there.")
				default:
					fmt.Fprintf(a.stdout, "Made %d realms, %d clients, %d users in %.1f s (%.0f users/s; %s).\n",
						did.Realms, did.Clients, did.Users, did.Seconds, did.UsersPerSecond, did.Hashing)
				}
				fmt.Fprintf(a.stdout, "Verified %d realms, %d clients, %d users; %d logins tried, %d without a rehash.\n",
					found.Realms, found.Clients, found.Users, found.Logins, found.Unchanged)
				if seeder.taken != nil {
					fmt.Fprintf(a.stdout, "Snapshot %s is on the target.\n", seeder.taken.Key)
				}
				return nil
			}
		},
	}
}

// importTimeout is more than the server takes: it ends an import by itself
// after five minutes.
const importTimeout = 6 * time.Minute

// seeder fills an identity server with a scenario's dataset.
type seeder struct {
	a        *app
	scenario *scenarios.Scenario
	keycloak dataset.Keycloak
	lab      *provision.Lab
	// snapshot wants one to be there when all is seeded.
	snapshot bool
	// restored and taken are the snapshots that were used and made, or found
	// made; nil for none.
	restored, taken *provision.Snapshot
}

var _ campaign.Seeder = (*seeder)(nil)

func (a *app) seeder(s *scenarios.Scenario, there *provision.Lab) *seeder {
	return &seeder{a: a, scenario: s, lab: there, keycloak: dataset.Keycloak{
		URL: there.Endpoint(), User: s.Keycloak.AdminUser, Password: s.Keycloak.AdminPassword,
		HTTP: &http.Client{Timeout: importTimeout},
	}}
}

func (s *seeder) spec() dataset.Spec {
	d := s.scenario.Dataset
	return dataset.Spec{Template: d.Template, Realms: d.Realms, Clients: d.Clients, Users: d.Users,
		Seed: d.Seed, Hash: d.Hash, UniquePasswords: d.UniquePasswords}
}

// template is the scenario's, told how the server and its directory are
// reached.
func (s *seeder) template() (*dataset.Template, error) {
	template, err := dataset.LoadTemplate(s.scenario.Dataset.Template)
	if err != nil {
		return nil, err
	}
	v := dataset.Variables{BaseURL: s.keycloak.URL, ServerURL: lab.OwnURL(*s.scenario)}
	if l := s.scenario.LDAP; l != nil {
		v.LDAPURL, v.LDAPUsersDN = lab.LDAPURL(*s.scenario), lab.LDAPUsersDN(l.Domain)
		v.LDAPBindDN, v.LDAPBindPassword = lab.LDAPAdminDN(l.Domain), l.AdminPassword
	}
	return template.With(v)
}

// dataset is the scenario's, as a lab knows it.
func (s *seeder) dataset() (provision.Dataset, error) {
	template, err := s.template()
	if err != nil {
		return provision.Dataset{}, err
	}
	spec := s.spec()
	spec.TemplateSum = template.Sum
	about := fmt.Sprintf("%s %d × %d × %d", spec.Template, spec.Realms, spec.Clients, spec.Users)
	return provision.Dataset{Digest: spec.Digest(), About: about}, nil
}

// seed puts a snapshot in place where there is one, imports what is missing,
// verifies the whole, and makes a snapshot where one is wanted.
func (s *seeder) seed(ctx context.Context) (did dataset.Result, found dataset.Verification, err error) {
	authority, err := s.lab.Authority(ctx)
	if err != nil {
		return did, found, err
	}
	s.keycloak.HTTP = &http.Client{Timeout: importTimeout, Transport: trusting(authority)}
	data, err := s.dataset()
	if err != nil {
		return did, found, err
	}
	if err := s.restore(ctx, data); err != nil {
		return did, found, err
	}
	did, found, err = s.fill(ctx)
	if err != nil {
		return did, found, err
	}
	if err := s.lab.MarkSeeded(ctx, data); err != nil || !s.snapshot {
		return did, found, err
	}
	s.a.note("  a snapshot of the seeded data is needed: the lab is stopped for a moment where there is none")
	snap, _, err := s.lab.TakeSnapshot(ctx, data)
	if err == nil {
		s.taken = &snap
	}
	return did, found, err
}

// restore puts the snapshot of the dataset in place, if there is one and the
// lab is not known to be seeded. What others made is set aside.
func (s *seeder) restore(ctx context.Context, data provision.Dataset) error {
	seeded, err := s.lab.SeededWith(ctx, data)
	if err != nil || seeded {
		return err
	}
	snap, there, err := s.lab.FindSnapshot(ctx, data)
	if err != nil || !there {
		return err
	}
	empty, err := s.empty(ctx)
	if err != nil {
		return err
	}
	s.a.note("  snapshot %s takes the place of seeding", snap.Key)
	if _, err := s.lab.UseSnapshot(ctx, data, !empty); err != nil {
		return err
	}
	s.restored = &snap
	return nil
}

// fill imports what is missing and verifies the whole.
func (s *seeder) fill(ctx context.Context) (did dataset.Result, found dataset.Verification, err error) {
	template, err := s.template()
	if err != nil {
		return did, found, err
	}
	spec := s.spec()
	last := time.Time{}
	did, err = s.keycloak.Import(ctx, spec, template, dataset.Options{Progress: func(p dataset.Progress) {
		if now := s.a.now(); p.Done == p.Total || now.Sub(last) >= linesEvery {
			last = now
			s.a.note("  %s", importLine(p))
		}
	}})
	if err != nil {
		return did, found, err
	}
	for _, w := range did.Warnings {
		s.a.note("  %s", w)
	}
	s.a.note("  verifying counts and one login per realm")
	found, err = s.keycloak.Verify(ctx, spec, template)
	return did, found, err
}

func importLine(p dataset.Progress) string {
	line := fmt.Sprintf("%s %d of %d", p.What, p.Done, p.Total)
	if p.Rate > 0 {
		line += fmt.Sprintf(", %.0f/s", p.Rate)
	}
	if p.Left > 0 {
		line += fmt.Sprintf(", about %s left", p.Left.Round(time.Second))
	}
	return line
}

// Seed implements campaign.Seeder.
func (s *seeder) Seed(ctx context.Context) (report.Dataset, error) {
	did, _, err := s.seed(ctx)
	if err != nil {
		return report.Dataset{}, err
	}
	d := s.scenario.Dataset
	spec := s.spec()
	if template, err := s.template(); err == nil { // it was read a moment ago
		spec.TemplateSum = template.Sum
	}
	out := report.Dataset{Template: d.Template, Size: d.Size, Realms: d.Realms, Clients: d.Clients, Users: d.Users,
		Seed: d.Seed, Hash: did.Hashing, Digest: spec.Digest(), Pool: did.Pool, HashedHere: did.HashedHere}
	if did.Realms+did.Clients+did.Users > 0 {
		out.SeedSeconds = did.Seconds
	}
	return out, nil
}
