package main

import (
	"context"
	"errors"
	"flag"

	"github.com/benchctl/benchctl/loadtest/campaign"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/scenarios"
)

func seedCommand() *command {
	return &command{
		name:    "seed",
		summary: "fill the lab with the scenario's dataset",
		flags: func(fs *flag.FlagSet) action {
			return func(context.Context, *app, []string) error { return errors.New("not wired") }
		},
	}
}

type stubSeeder struct{}

func (stubSeeder) Seed(ctx context.Context) (report.Dataset, error) {
	return report.Dataset{}, errors.New("not wired")
}

func (a *app) seeder(s *scenarios.Scenario, url string) campaign.Seeder {
	return stubSeeder{}
}
