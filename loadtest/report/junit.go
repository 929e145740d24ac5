package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// The elements of the JUnit format that continuous integration reads.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitMessage `xml:"failure,omitempty"`
	Error     *junitMessage `xml:"error,omitempty"`
	Skipped   *junitMessage `xml:"skipped,omitempty"`
	SystemOut *junitText    `xml:"system-out,omitempty"`
}

type junitText struct {
	Text string `xml:",cdata"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes a suite for each folder. Each run is a test case that is
// an error when its figures can't be trusted, and each threshold is a test
// case that fails when it was missed; a run that was not made is skipped, and
// so is a step of a ladder that was not sustained.
func writeJUnit(w io.Writer, results []Results, _ Options) error {
	all := junitSuites{Name: "benchctl"}
	for _, r := range results {
		suite, err := junitOf(r)
		if err != nil {
			return err
		}
		all.Suites = append(all.Suites, suite)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Skipped += suite.Skipped
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

func junitOf(r Results) (junitSuite, error) {
	s := junitSuite{Name: r.Dir}
	if c := r.Campaign; c != nil {
		s.Name = c.Scenario
		s.Timestamp = c.Started.UTC().Format("2006-01-02T15:04:05")
		for _, line := range fingerprintLines(c.Fingerprint) {
			s.Properties = append(s.Properties, junitProperty{Name: line[0], Value: line[1]})
		}
	}
	total := 0.0
	for _, run := range r.Runs {
		cases, err := junitCases(s.Name, run.Result)
		if err != nil {
			return junitSuite{}, err
		}
		s.Cases = append(s.Cases, cases...)
		total += run.Result.MeasuredS
	}
	for _, p := range r.Missing() {
		s.Cases = append(s.Cases, junitCase{
			Name: "run", Class: s.Name + "." + runName(p.Test, p.Repeat), Time: "0",
			Skipped: &junitMessage{Message: "the campaign ended before this run"},
		})
	}
	s.Time = fmt.Sprintf("%.3f", total)
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	return s, nil
}

func junitCases(suite string, r *loadtest.Result) ([]junitCase, error) {
	class := suite + "." + runName(r.Test.Name, r.Repeat)
	run := junitCase{Name: "run", Class: class, Time: fmt.Sprintf("%.3f", r.MeasuredS)}
	var b strings.Builder
	if err := K6(&b, r, Options{}); err != nil {
		return nil, err
	}
	run.SystemOut = &junitText{"\n" + b.String()}
	if r.Verdict == loadtest.Invalid || r.Verdict == loadtest.Interrupted {
		run.Error = &junitMessage{Message: string(r.Verdict), Text: strings.Join(r.Reasons, "\n")}
	}
	cases := []junitCase{run}
	missed := 0
	for _, t := range r.Thresholds {
		c := junitCase{Name: t.Expression, Class: class, Time: "0"}
		if !t.OK {
			missed++
			c.Failure = &junitMessage{Message: fmt.Sprintf("%s was missed: %s", t.Expression, ThresholdValue(t))}
		}
		cases = append(cases, c)
	}
	for _, step := range r.Steps {
		c := junitCase{Name: "step " + stepName(step), Class: class, Time: fmt.Sprintf("%.3f", step.MeasuredS)}
		why := &junitMessage{Message: "not sustained", Text: strings.Join(step.Reasons, "\n")}
		switch {
		case step.Sustained:
		case r.Test.Load.Kind == loadtest.Connections:
			missed++
			c.Failure = why
		default:
			// The step at which a ladder or a search finds its limit is what it
			// was made for, and no failure.
			c.Skipped = why
		}
		cases = append(cases, c)
	}
	// Failed for another reason than a threshold: sessions that could not be
	// opened, a ladder without a sustained step.
	if r.Verdict == loadtest.Failed && missed == 0 {
		cases[0].Failure = &junitMessage{Message: string(r.Verdict), Text: strings.Join(r.Reasons, "\n")}
	}
	return cases, nil
}
