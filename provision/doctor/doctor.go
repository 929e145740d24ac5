// Package doctor looks at a generator and a target before a lab is built, and
// says what is in the way and what to do about it. Looking (Examine) has no
// effect on either; judging what was seen (Judge) is pure.
//
// It promises no lab that works: it knows what has gone wrong before. It
// repairs nothing; what `benchctl provision` would do to the machine is told
// as such.
package doctor

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Level of a finding.
type Level string

// Levels. A warning does not keep a lab from being built, but may spoil what
// is measured on it.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Failure Level = "failure"
)

// Places that findings are about.
const (
	OnGenerator = "generator"
	OnTarget    = "target"
	Between     = "between"
)

// Finding is one line.
type Finding struct {
	Where string `json:"where"`
	// Check is what was looked at: "clock".
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Says is what was found, Do what to do about it; empty where it is ok.
	Says string `json:"says"`
	Do   string `json:"do,omitempty"`
}

// Schema of a report as JSON.
const Schema = "benchctl.doctor/1"

// Report is all that was found.
type Report struct {
	Schema   string    `json:"schema"`
	Target   string    `json:"target"`
	Scenario string    `json:"scenario,omitempty"`
	Findings []Finding `json:"findings"`
	// Failures and Warnings count.
	Failures int `json:"failures"`
	Warnings int `json:"warnings"`
}

func report(o Observed, findings []Finding) Report {
	r := Report{Schema: Schema, Target: o.Name, Scenario: o.Scenario, Findings: findings}
	for _, f := range findings {
		switch f.Level {
		case Failure:
			r.Failures++
		case Warning:
			r.Warnings++
		}
	}
	return r
}

// JSON is the report for machines, indented.
func (r Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the report as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// titles of the places.
var titles = []struct{ where, title string }{
	{OnGenerator, "Generator (this machine)"}, {OnTarget, "Target %s"}, {Between, "Between them"},
}

// Text is the report for people.
func (r Report) Text() string {
	var b strings.Builder
	for _, t := range titles {
		begun := false
		for _, f := range r.Findings {
			if f.Where != t.where {
				continue
			}
			if !begun {
				title := t.title
				if strings.Contains(title, "%s") {
					title = fmt.Sprintf(title, r.Target)
				}
				fmt.Fprintf(&b, "%s\n", title)
				begun = true
			}
			fmt.Fprintf(&b, "  %-8s %-14s %s\n", f.Level, f.Check, indent(f.Says))
			if f.Do != "" {
				fmt.Fprintf(&b, "%s→ %s\n", strings.Repeat(" ", textColumn), indent(f.Do))
			}
		}
		if begun {
			b.WriteString("\n")
		}
	}
	switch {
	case r.Failures > 0:
		fmt.Fprintf(&b, "%s and %s.\n", count(r.Failures, "failure"), count(r.Warnings, "warning"))
	case r.Warnings > 0:
		fmt.Fprintf(&b, "No failure, %s.\n", count(r.Warnings, "warning"))
	default:
		b.WriteString("All is well.\n")
	}
	return b.String()
}

// textColumn is where what was found begins.
const textColumn = 26

// indent keeps the further lines of a text in its column.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", textColumn))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
