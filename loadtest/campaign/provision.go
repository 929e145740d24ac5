package campaign

import "context"

// provision turns the target into the scenario's lab.
func provision(ctx context.Context, s *state) error {
	return s.Lab.Provision(ctx)
}
