package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// Format writes results in one form.
type Format struct {
	// Name as -format takes it.
	Name string
	// About is one line for help texts.
	About string
	Write func(io.Writer, []Results, Options) error
}

// Formats are all of them, in the order that help shows.
func Formats() []Format {
	return []Format{
		{"text", "the lines that k6 users know for each run, then a table over each folder", writeText},
		{"summary", "a table over each folder", each(Summary)},
		{"k6", "the lines that k6 users know, for each run", eachRun(K6)},
		{"vegeta", "the lines of vegeta's text report, for each run", eachRun(Vegeta)},
		{"markdown", "tables for a pull request or a wiki", each(Markdown)},
		{"html", "one page with charts that needs no network", writeHTML},
		{"junit", "JUnit XML for continuous integration: a case for each run, threshold and step", writeJUnit},
		{"json", "the run as it was written, or all of several", writeJSONFormat},
		{"csv", "one row for each second of each run, containers included", writeCSV},
		{"csv-steps", "one row for each step of each ladder and search, or for each run", writeStepsCSV},
	}
}

// Write writes results in the format of that name.
func Write(w io.Writer, format string, results []Results, o Options) error {
	formats := Formats()
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == format })
	if i < 0 {
		names := make([]string, len(formats))
		for i, f := range formats {
			names[i] = f.Name
		}
		return fmt.Errorf("unknown format %q: there are %s", format, strings.Join(names, ", "))
	}
	return formats[i].Write(w, results, o)
}

// single gives the only run there is, where nobody asked for a campaign: its
// file was named, or there is no campaign around it. A campaign of which but
// one run was made is still a campaign.
func single(results []Results) (Run, bool) {
	if len(results) != 1 || len(results[0].Runs) != 1 {
		return Run{}, false
	}
	r := results[0]
	return r.Runs[0], r.Campaign == nil || r.Named
}

// writeText shows each run in full and then the folder as a table, as a
// campaign does at its end. A single run needs no table.
func writeText(w io.Writer, results []Results, o Options) error {
	if run, ok := single(results); ok {
		return K6(w, run.Result, o)
	}
	return each(inFull)(w, results, o)
}

func inFull(w io.Writer, r Results, o Options) error {
	for _, run := range r.Runs {
		if err := K6(w, run.Result, o); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return Summary(w, r, o)
}

// each writes folder after folder with an empty line between.
func each(write func(io.Writer, Results, Options) error) func(io.Writer, []Results, Options) error {
	return func(w io.Writer, results []Results, o Options) error {
		for i, r := range results {
			if i > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return err
				}
			}
			if err := write(w, r, o); err != nil {
				return err
			}
		}
		return nil
	}
}

// eachRun writes run after run with an empty line between.
func eachRun(write func(io.Writer, *loadtest.Result, Options) error) func(io.Writer, []Results, Options) error {
	return func(w io.Writer, results []Results, o Options) error {
		first := true
		for _, r := range results {
			for _, run := range r.Runs {
				if !first {
					if _, err := io.WriteString(w, "\n"); err != nil {
						return err
					}
				}
				first = false
				if err := write(w, run.Result, o); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
