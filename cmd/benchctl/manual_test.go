package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/scenarios"
)

// block is a fenced example.
var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// pages are the manual and the README, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, topic := range topicNames() {
		text, err := manual.ReadFile("manual/" + topic + ".md")
		if err != nil {
			t.Fatal(err)
		}
		out[topic] = string(text)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	out["README"] = string(readme)
	return out
}

// HCL in the manual is valid as it stands.
func TestManualFilesAreValid(t *testing.T) {
	n := 0
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			if m[1] != "hcl" {
				continue
			}
			n++
			path := filepath.Join(t.TempDir(), page+".hcl")
			if err := os.WriteFile(path, []byte(m[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := scenarios.Validate([]string{path}, hclfile.Options{Lenient: true}); err != nil {
				t.Errorf("%s:\n%v", page, err)
			}
			if got := string(scenarios.Format([]byte(m[2]))); got != m[2] {
				t.Errorf("%s: an example is not laid out as fmt does:\n%s", page, got)
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d examples were found", n)
	}
}

// Command lines in the manual name commands and flags that there are.
func TestManualCommandsExist(t *testing.T) {
	n := 0
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			if m[1] != "sh" {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(m[2], "\\\n", " ")) {
				words := shellWords(line)
				if len(words) < 2 || words[0] != "benchctl" {
					continue
				}
				n++
				c := findCommand(words[1])
				if c == nil {
					t.Errorf("%s: no command %q in: %s", page, words[1], line)
					continue
				}
				fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
				fs.SetOutput(io.Discard)
				c.declare(fs)
				if _, err := parseFlags(fs, words[2:]); err != nil {
					t.Errorf("%s: %v in: %s", page, err, line)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d command lines were found", n)
	}
}

// shellWords splits a simple command line: quotes are kept together, a
// comment or an ampersand ends it.
func shellWords(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		if strings.HasPrefix(m, "#") || m == "&" || m == "|" {
			break
		}
		words = append(words, strings.Trim(m, `'"`))
	}
	return words
}

func TestShellWords(t *testing.T) {
	got := shellWords("benchctl test -threshold 'p95 < 1s' -vus 4 & # more")
	if want := "benchctl|test|-threshold|p95 < 1s|-vus|4"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

// resultTables are the headings of the page on results under which each
// object's fields are listed.
var resultTables = map[reflect.Type]string{
	reflect.TypeFor[loadtest.Result]():          "The run",
	reflect.TypeFor[loadtest.Settings]():        "Settings",
	reflect.TypeFor[loadtest.Rate]():            "Rate",
	reflect.TypeFor[loadtest.Operation]():       "Operation",
	reflect.TypeFor[loadtest.Latency]():         "Latency",
	reflect.TypeFor[loadtest.Step]():            "Step",
	reflect.TypeFor[loadtest.Usage]():           "Usage",
	reflect.TypeFor[loadtest.MeanMax]():         "Mean and max",
	reflect.TypeFor[loadtest.ThresholdResult](): "Threshold",
	reflect.TypeFor[loadtest.EngineUse]():       "Engine",
	reflect.TypeFor[loadtest.Checks]():          "Checks",
	reflect.TypeFor[loadtest.VUs]():             "Virtual users",
	reflect.TypeFor[loadtest.FailureSample]():   "Failure sample",
	reflect.TypeFor[loadtest.SessionSetup]():    "Sessions",
	reflect.TypeFor[loadtest.Second]():          "Series",
	reflect.TypeFor[loadtest.Totals]():          "Whole",
	reflect.TypeFor[report.Campaign]():          "The campaign",
	reflect.TypeFor[report.PlannedRun]():        "Planned run",
	reflect.TypeFor[report.Fingerprint]():       "Fingerprint",
	reflect.TypeFor[report.Tool]():              "Tool",
	reflect.TypeFor[report.Host]():              "Machine",
	reflect.TypeFor[report.Component]():         "Component",
	reflect.TypeFor[report.Dataset]():           "Dataset",
}

// The page on results lists every field of what is written, under its own
// object, marks those that may be left out, and lists no field that is not.
func TestManualNamesEveryResultField(t *testing.T) {
	tables := fieldTables(pages(t)["results"])
	want := map[string]map[string]bool{}
	for _, root := range []reflect.Type{
		reflect.TypeFor[loadtest.Result](), reflect.TypeFor[loadtest.Settings](), reflect.TypeFor[report.Campaign](),
	} {
		jsonFields(t, root, "", want)
	}
	for heading, fields := range want {
		for key, optional := range fields {
			marked, named := tables[heading][key]
			switch {
			case !named:
				t.Errorf("%q does not name `%s`", heading, key)
			case marked != optional:
				t.Errorf("%q: `%s` is marked as one that may be left out: %v, want %v", heading, key, marked, optional)
			}
		}
		for key := range tables[heading] {
			if _, there := fields[key]; !there {
				t.Errorf("%q names `%s`, which is never written", heading, key)
			}
		}
	}
	for _, heading := range resultTables {
		if want[heading] == nil {
			t.Errorf("%q is of an object that no result holds", heading)
		}
	}
}

// fieldTables are the first columns of a page's tables by heading, and which
// fields are marked as left out where they are empty.
func fieldTables(text string) map[string]map[string]bool {
	row := regexp.MustCompile("^\\| `([^`]+)`( °)? \\|")
	tables, heading := map[string]map[string]bool{}, ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
			continue
		}
		if m := row.FindStringSubmatch(line); m != nil {
			if tables[heading] == nil {
				tables[heading] = map[string]bool{}
			}
			tables[heading][m[1]] = m[2] != ""
		}
	}
	return tables
}

// jsonFields adds the keys of typ, and of every object below it, to those of
// their headings, and whether they are left out where they are empty. An
// object within the settings has no table: its keys stand behind a prefix.
func jsonFields(t *testing.T, typ reflect.Type, prefix string, into map[string]map[string]bool) {
	t.Helper()
	heading, known := resultTables[typ]
	if prefix != "" {
		heading, known = resultTables[reflect.TypeFor[loadtest.Settings]()], true
	}
	if !known {
		t.Errorf("there is no heading for the fields of %v", typ)
		return
	}
	if prefix == "" {
		if into[heading] != nil {
			return
		}
		into[heading] = map[string]bool{}
	}
	for f := range fieldsOf(typ) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		if key == "" {
			t.Errorf("%v.%s has no name in JSON", typ, f.Name)
			continue
		}
		into[heading][prefix+key] = slices.Contains([]string{"omitempty", "omitzero"}, options)
		below := ""
		if heading == resultTables[reflect.TypeFor[loadtest.Settings]()] {
			below = prefix + key + "."
		}
		if object := objectOf(f.Type); object != nil {
			jsonFields(t, object, below, into)
		}
	}
}

// fieldsOf gives the exported fields of a struct.
func fieldsOf(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// objectOf is the struct that a field holds, by pointer, in a list or by name;
// nil for what JSON shows as a single value.
func objectOf(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	return typ
}

func TestManualNamesEveryFormat(t *testing.T) {
	named := fieldTables(pages(t)["results"])["Formats of report"]
	for _, name := range formatNames() {
		if _, there := named[name]; !there {
			t.Errorf("the page on results does not name `%s`", name)
		}
	}
	if len(named) != len(formatNames()) {
		t.Errorf("the page on results names %d formats, there are %d", len(named), len(formatNames()))
	}
}

// The page names the shapes as they are written.
func TestManualNamesEverySchema(t *testing.T) {
	text := pages(t)["results"]
	for _, schema := range []string{loadtest.Schema, report.ResultsSchema, report.CampaignSchema} {
		if !strings.Contains(text, "`"+schema+"`") {
			t.Errorf("the page on results does not name `%s`", schema)
		}
	}
}
