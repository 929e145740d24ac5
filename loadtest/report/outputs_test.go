package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/loadtest"
)

func TestOutputsGolden(t *testing.T) {
	for _, format := range []string{"vegeta", "markdown", "junit", "csv-steps"} {
		t.Run(format, func(t *testing.T) {
			var b strings.Builder
			if err := Write(&b, format, []Results{summaryResults()}, Options{}); err != nil {
				t.Fatal(err)
			}
			golden(t, "output-"+format+".txt", b.String())
		})
	}
}

// TestOutputsOfLittle shows what there is where next to nothing is.
func TestOutputsOfLittle(t *testing.T) {
	nothing := &loadtest.Result{Verdict: loadtest.Interrupted, Iterations: &loadtest.Operation{}}
	for _, results := range [][]Results{
		nil,
		{{Dir: "empty"}},
		{{Dir: "cut", Campaign: &Campaign{}}},
		{{Dir: "one", Runs: []Run{{Result: nothing}}}},
	} {
		for _, f := range Formats() {
			var b strings.Builder
			if err := f.Write(&b, results, Options{Width: 80}); err != nil {
				t.Errorf("%s of %d folders: %v", f.Name, len(results), err)
			}
			if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
				t.Errorf("%s shows what is no number:\n%s", f.Name, b.String())
			}
		}
	}
}

// TestJUnitOfSteps tells the step at which a ladder ends, which is what it is
// for, from a step of a connection ladder that missed its objectives.
func TestJUnitOfSteps(t *testing.T) {
	for _, tt := range []struct {
		kind              string
		failures, skipped int
	}{{loadtest.Ladder, 0, 1}, {loadtest.Capacity, 0, 1}, {loadtest.Connections, 1, 0}} {
		r := ladderRun()
		r.Test.Load.Kind, r.Verdict, r.Thresholds = tt.kind, loadtest.Passed, nil
		if tt.failures > 0 {
			r.Verdict = loadtest.Failed
		}
		suite, err := junitOf(Results{Dir: "d", Runs: []Run{{Result: r}}})
		if err != nil {
			t.Fatal(err)
		}
		if suite.Failures != tt.failures || suite.Skipped != tt.skipped || suite.Tests != 3 {
			t.Errorf("%s: %d tests, %d failures, %d skipped; want 3, %d, %d", tt.kind, suite.Tests, suite.Failures, suite.Skipped, tt.failures, tt.skipped)
		}
	}
}

func TestMarkdownShowsForeignTextAsText(t *testing.T) {
	r := summaryResults()
	r.Campaign.Scenario = "a|b\n# <script>alert(1)</script> [x](http://h) `c` *d*"
	var b strings.Builder
	if err := Markdown(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	want := "# a\\|b \\# &lt;script&gt;alert(1)&lt;/script&gt; \\[x\\](http://h) \\`c\\` \\*d\\*, 2026"
	if first, _, _ := strings.Cut(b.String(), "\n"); !strings.HasPrefix(first, want) {
		t.Errorf("got %s, want %s", first, want)
	}
}

func TestJUnitCounts(t *testing.T) {
	failed := userinfoRun()
	failed.Thresholds, failed.Reasons = nil, []string{"only 3 of 10 sessions could be opened"}
	r := summaryResults()
	r.Runs = append(r.Runs, Run{Result: failed})
	r.Runs[0].Result.Test.Name = "käse <&> \x01"
	var b strings.Builder
	if err := writeJUnit(&b, []Results{r, r}, Options{}); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, b.String())
	}
	// A folder has 4 runs, 2 + 3 + 3 thresholds, 2 steps of which one was not
	// sustained and, of the 4 that were planned, those missing whose files are
	// not there.
	want := [4]int{2 * (4 + 8 + 2 + 1), 2 * 3, 2 * 1, 2 * (1 + 1)}
	if have := [4]int{got.Tests, got.Failures, got.Errors, got.Skipped}; have != want {
		t.Errorf("tests, failures, errors, skipped: got %v, want %v", have, want)
	}
}
