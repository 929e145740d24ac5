package main

import (
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "1d": 24 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"": 0, "d": 0, "0d": 0, "-3d": 0, "3": 0, "-1h": 0, "1.5d": 0, "99999999d": 0, "+3d": 0,
	} {
		got, err := parseAge(text)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func FuzzParseAge(f *testing.F) {
	f.Add("30d")
	f.Add("12h")
	f.Add("-1d")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseAge(text); err == nil && d <= 0 {
			t.Errorf("%q is %s", text, d)
		}
	})
}

func TestWriteStored(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	err := writeStored(&b, []provision.Stored{
		{Name: "postgresql-snapshot-4a5b6c7d8e9f", Kind: provision.StoredSnapshot, Version: "PostgreSQL 15", Scenario: "baseline",
			Dataset: "baseline 5 × 100 × 1000", Made: now.Add(-3 * time.Hour), SizeBytes: 312_000_000},
		{Name: "mariadb-20261001T120000Z", Kind: provision.StoredBackup, Version: "MariaDB 10.11", Scenario: "mariadb",
			Made: now.AddDate(0, 0, -60), SizeBytes: 1_688_000_000},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	want := `NAME                              KIND      AGE  SIZE      VERSION        SCENARIO  DATASET
postgresql-snapshot-4a5b6c7d8e9f  snapshot  3h   312.0 MB  PostgreSQL 15  baseline  baseline 5 × 100 × 1000
mariadb-20261001T120000Z          backup    60d  1.7 GB    MariaDB 10.11  mariadb   -
2, 2.0 GB in all.
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
