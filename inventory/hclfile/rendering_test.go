package hclfile_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew); got:\n%s", path, got)
	}
}

// TestRendering shows how each kind of source text comes out in a message.
func TestRendering(t *testing.T) {
	long := `text = "` + strings.Repeat("long ", 60) + `" + nothing + "` + strings.Repeat("tail ", 60) + `"`
	cases := []struct{ name, src string }{
		{"plain", attrs(`txt = "a"`)},
		{"byte order mark", "\ufeffscenaro \"x\" {}\n"},
		{"CRLF", "scenario \"x\" {\r\n  txt = \"a\"\r\n}\r\n"},
		{"CR at the end of the file", "scenaro \"x\" {}\r"},
		{"tabs", "scenario \"x\" {\n\t\ttext\t= \"a\"\n\t\tcount\t= nothing\n}\n"},
		{"letters beyond ASCII", attrs(`text = "äöü 日本" + nichts`)},
		{"several lines", attrs("list = [\n  \"a\",\n  {},\n]")},
		{"long line", attrs(long)},
		{"control characters", attrs("text = \"a\x1b[31m\x07\" + x")},
		{"bytes that are no text", "scenario \"\xff\" {}\n"},
		{"UTF-16", "\xff\xfes\x00c\x00"},
		{"unclosed block", "scenario \"x\" {\n  text = \"a\"\n"},
		{"literal secret", attrs(`pin = "hunter2" # hunter2`)},
		{"misspelt secret", attrs(`pasword = "hunter2"`)},
		{"secret in a broken line", attrs(`password = "hunter2" "hunter2"`)},
		{"secret in a map", attrs(`env = { A = {}, DB_PASSWORD = "hunter2" }`)},
		{"secret after a colon", attrs(`env = { A : {}, "db_token" : "hunter2" }`)},
		{"secret over several lines", attrs("text = local.db_password") + "locals {\n  db_password = <<EOT\nhunter2 ${nothing} hunter2\nEOT\n}"},
		{"computed secret", attrs(`pin = env("NONE")`)},
		{"no secret after a colon", attrs(`list = ["token: p99 < 1s", nothing]`)},
		{"hint over several lines", ""},
	}
	var out strings.Builder
	for _, c := range cases {
		_, warnings, err := decode(world{}, c.src)
		fmt.Fprintf(&out, "--- %s\n", c.name)
		if len(warnings) > 0 {
			out.WriteString(hclfile.Render(warnings) + "\n")
		}
		if err != nil {
			out.WriteString(err.Error() + "\n")
		}
		if c.src == "" {
			d := hclfile.Diagnostic{Filename: "a.hcl", Problem: "the whole file is meant", Hint: "do this\nor that"}
			out.WriteString(d.String() + "\n")
		}
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Error("a message shows a secret")
	}
	golden(t, "rendering.golden", out.String())
}

func TestReportOrder(t *testing.T) {
	report := &hclfile.Report{}
	b := hclfile.Parse("b.hcl", []byte("x\n"), &hclfile.Report{})
	report.AddSource(b)
	report.AddSource(hclfile.Parse("a.hcl", nil, &hclfile.Report{}))
	at := func(file string, line int) hcl.Range {
		pos := hcl.Pos{Line: line, Column: 1, Byte: line - 1}
		return hcl.Range{Filename: file, Start: pos, End: pos}
	}
	report.Errorf(at("a.hcl", 1), "", "third")
	report.Errorf(at("b.hcl", 2), "", "second")
	report.Warnf(at("b.hcl", 1), "", "a warning")
	report.Errorf(at("b.hcl", 1), "", "first")
	report.Errorf(at("b.hcl", 1), "", "first")
	report.Errorf(hcl.Range{}, "", "last:\nno\x00 place")
	warnings, err := report.Result()
	var e *hclfile.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	var got []string
	for _, d := range append(e.Diagnostics, warnings...) {
		got = append(got, d.Problem)
	}
	if want := "first, second, third, last: no place, a warning"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if place := e.Diagnostics[3].Place(); place != "" {
		t.Errorf("place is %q", place)
	}
}

func TestReadMany(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.hcl")
	if err := os.WriteFile(path, []byte("locals {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.hcl")
	if err := os.WriteFile(big, make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	report := &hclfile.Report{}
	files := hclfile.Read([]string{path, filepath.Join(dir, ".", "a.hcl"), dir, filepath.Join(dir, "none.hcl"), big, "/dev/zero"}, nil, report)
	if len(files) != 1 || files[0].Dir != dir {
		t.Errorf("read %d files", len(files))
	}
	_, err := report.Result()
	for _, want := range []string{
		dir + ": the file cannot be read: is a folder",
		"none.hcl: the file cannot be read: no such file",
		"big.hcl: the file cannot be read: is larger than 4 MiB",
		"/dev/zero: the file cannot be read: is larger than 4 MiB",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got:\n%v", want, err)
		}
	}
	if _, err := hclfile.ReadRegular(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"keycloak", "database", "login", "client-credentials", "vus", "S"}
	for given, want := range map[string]string{
		"keyclok": "keycloak", "Database": "database", "logn": "login", "client": "client-credentials",
		"vuss": "vus", "s": "S", "traefik": "", "": "", "x": "", "zz": "",
	} {
		if got := hclfile.Suggest(given, known); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
	if got := hclfile.DidYouMean("x", nil, "tests"); got != "There are no tests here." {
		t.Errorf("got %q", got)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"2g": 2 << 30, "512m": 512 << 20, "1.5G": 3 << 29, "750MB": 750 << 20, "1 GiB": 1 << 30, "100k": 100 << 10, "7": 7, "0": 0, "1t": 1 << 40,
		"": -1, "g": -1, "-1g": -1, "1e3": -1, "2 g b": -1, "1000000000t": -1, "1..5g": -1, "2gg": -1,
	} {
		got, ok := hclfile.ParseSize(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: got %d, %v", text, got, ok)
		}
	}
}

func TestFormat(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"lays out":      {"a   = 1\nbcd=2\n", "a   = 1\nbcd = 2\n"},
		"BOM and CRLF":  {"\ufeffa=1\r\n", "a = 1\n"},
		"broken stays":  {"a = {\r\n", "a = {\r\n"},
		"keeps comment": {"# c\nx \"y\" {\nz=1 # d\n}\n", "# c\nx \"y\" {\n  z = 1 # d\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(hclfile.Format([]byte(c.in))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzMaskLine(f *testing.F) {
	for _, s := range []string{`password = "%s"`, `env = { A = 1, "my_token" : "%s" }`, `x = 1 secret="%s"`, `pasword=%s`, `x "y" { password = "%s" }`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		masked := hclfile.MaskLine(line)
		if again := hclfile.MaskLine(masked); again != masked {
			t.Fatalf("%q became %q, then %q", line, masked, again)
		}
		// What is kept is the beginning of the line.
		if masked != line && !strings.HasPrefix(line, strings.TrimSuffix(masked, "(sensitive)")) {
			t.Fatalf("%q became %q", line, masked)
		}
		if strings.Contains(line, "hunter2") {
			return
		}
		secret := `password = "hunter2"`
		if out := hclfile.MaskLine(line + " " + secret); !strings.ContainsAny(line, `"#/:=`) && strings.Contains(out, "hunter2") {
			t.Fatalf("%q shows the secret", out)
		}
	})
}
