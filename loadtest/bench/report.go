package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// report is all that a run of the bench gives.
type report struct {
	Machine machine  `json:"machine"`
	Figures []figure `json:"figures"`
	// LeftOut are peers that were missing or failed, Failed are cases that
	// could not be measured, each with the reason.
	LeftOut []string `json:"left_out,omitempty"`
	Failed  []string `json:"failed,omitempty"`
}

// figure is one line of the outcome.
type figure struct {
	Case  string  `json:"case"`
	Who   string  `json:"who"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Target says what the value should be, "" where it is only told.
	Target string `json:"target,omitempty"`
	OK     bool   `json:"ok"`
}

// told notes a figure without a target.
func (r *report) told(what, who string, value float64, unit string) {
	r.Figures = append(r.Figures, figure{Case: what, Who: who, Value: value, Unit: unit, OK: true})
}

// atMost notes a figure that should not exceed limit.
func (r *report) atMost(what, who string, value, limit float64, unit string) {
	r.Figures = append(r.Figures, figure{Case: what, Who: who, Value: value, Unit: unit, Target: fmt.Sprintf("at most %.4g", limit), OK: value <= limit})
}

// atLeast notes a figure that should not be below limit.
func (r *report) atLeast(what, who string, value, limit float64, unit string) {
	r.Figures = append(r.Figures, figure{Case: what, Who: who, Value: value, Unit: unit, Target: fmt.Sprintf("at least %.4g", limit), OK: value >= limit})
}

// within notes a figure that should be within share of want.
func (r *report) within(what, who string, value, want, share float64, unit string) {
	r.Figures = append(r.Figures, figure{
		Case: what, Who: who, Value: value, Unit: unit, Target: fmt.Sprintf("%.4g ± %.0f %%", want, share*100),
		OK: value >= want*(1-share) && value <= want*(1+share),
	})
}

// leave notes a peer that does not take part, once.
func (r *report) leave(who string, why error) (first bool) {
	text := fmt.Sprintf("%s: %v", who, why)
	if slices.Contains(r.LeftOut, text) {
		return false
	}
	r.LeftOut = append(r.LeftOut, text)
	return true
}

// verdict is an error where a figure missed its target or a case its figures.
func (r *report) verdict() error {
	var missed []string
	for _, f := range r.Figures {
		if !f.OK {
			missed = append(missed, fmt.Sprintf("%s, %s: %.4g %s, not %s", f.Case, f.Who, f.Value, f.Unit, f.Target))
		}
	}
	switch {
	case len(missed) > 0:
		return fmt.Errorf("off target: %s", strings.Join(missed, "; "))
	case len(r.Failed) > 0:
		return fmt.Errorf("not measured: %s", strings.Join(r.Failed, "; "))
	case len(r.Figures) == 0:
		return errors.New("no figures")
	}
	return nil
}

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// markdown prints a table that reads well as it is and can stand in a README.
func (r *report) markdown(w io.Writer) error {
	rows := [][]string{{"case", "who", "value", "unit", "target", ""}}
	for _, f := range r.Figures {
		mark := ""
		if f.Target != "" {
			mark = map[bool]string{true: "✓", false: "✗"}[f.OK]
		}
		rows = append(rows, []string{f.Case, f.Who, fmt.Sprintf("%.4g", f.Value), f.Unit, f.Target, mark})
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 1)
		}
	}
	const value = 2 // the column that stands to the right
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Machine)
	for n, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == value {
				cell, pad = pad+cell, ""
			}
			b.WriteString("| " + cell + pad + " ")
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, dashes := range width {
			rule := strings.Repeat("-", dashes+2)
			if i == value {
				rule = rule[1:] + ":"
			}
			b.WriteString("|" + rule)
		}
		b.WriteString("|\n")
	}
	for _, missing := range r.LeftOut {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", missing)
	}
	for _, failed := range r.Failed {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", failed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// machine is where the figures come from.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Load is the load average of the minute before the bench began: what
	// else the machine did.
	Load string `json:"load_average"`
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, Linux %s, %s, load average before: %s", m.CPU, m.Cores, m.Kernel, m.Go, m.Load)
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return string(b)
	}
	m.CPU = cmp.Or(cpuModel(read("/proc/cpuinfo")), "unknown CPU")
	m.Kernel = cmp.Or(strings.TrimSpace(read("/proc/sys/kernel/osrelease")), "unknown")
	m.Load, _, _ = strings.Cut(read("/proc/loadavg"), " ")
	m.Load = cmp.Or(m.Load, "unknown")
	return m
}

// cpuModel is the first model in the text of /proc/cpuinfo; "" where there is
// none.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.Join(strings.Fields(model), " ")
		}
	}
	return ""
}
