package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/hclfile"
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
