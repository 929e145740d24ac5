package campaign

import (
	"context"

	"github.com/benchctl/benchctl/loadtest/report"
)

// fingerprint writes down what is measured: everything that the figures depend
// on, as it is, not as it should be.
func fingerprint(ctx context.Context, s *state) error {
	seen, err := s.Lab.Fingerprint(ctx)
	if err != nil {
		return err
	}
	known := s.record.Fingerprint
	seen.Tool, seen.Overrides, seen.URL = known.Tool, known.Overrides, known.URL
	if known.Dataset != (report.Dataset{}) {
		seen.Dataset = known.Dataset
	}
	if d := s.Scenario.Dataset; seen.Dataset == (report.Dataset{}) {
		seen.Dataset = report.Dataset{Template: d.Template, Size: d.Size, Realms: d.Realms, Clients: d.Clients, Users: d.Users, Seed: d.Seed}
	}
	if seen.HashPolicy == "" {
		// The seeder has looked at how passwords are hashed.
		seen.HashPolicy = known.Dataset.Hash
	}
	if seen.HashPolicy == "" {
		seen.HashPolicy = s.Scenario.Dataset.Hash
	}
	s.record.Fingerprint = seen
	return s.Store.WriteCampaign(s.record)
}
