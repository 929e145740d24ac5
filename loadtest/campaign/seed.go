package campaign

import "context"

// seed fills the identity server, or finds it filled.
func seed(ctx context.Context, s *state) error {
	filled, err := s.Seeder.Seed(ctx)
	if err != nil {
		return err
	}
	s.record.Fingerprint.Dataset = filled
	return nil
}
