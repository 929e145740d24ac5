package hclfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

var bom = []byte("\ufeff")

// File is one parsed file.
type File struct {
	// Name is shown in diagnostics; as the user gave it.
	Name string
	// Dir is what relative paths in the file are relative to.
	Dir    string
	Source []byte
	// Builtin is set for files that are part of the program.
	Builtin bool
	// Broken is set when the file could not be parsed in full: what is not in
	// Body may be in the file all the same.
	Broken bool
	// Body is never nil; of a file that does not parse it holds what could
	// be read.
	Body *hclsyntax.Body
}

// Block types that may stand at the top of a file, by the loader whose they
// are. All of them may stand in one file; each loader passes over the other's.
var (
	InventoryBlocks = []string{"target", "injector"}
	ScenarioBlocks  = []string{"scenario"}
	SharedBlocks    = []string{"variable", "locals"}
)

// ReadFunc reads a whole file; os.ReadFile is one.
type ReadFunc func(path string) ([]byte, error)

// maxFile bounds what is read by file() and as configuration: 4 MiB.
const maxFile = 4 << 20

// ReadRegular is a ReadFunc that refuses folders and what is too large to be
// meant.
func ReadRegular(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a folder")}
	case info.Size() > maxFile:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d MiB", maxFile>>20)}
	}
	// Pipes have no size; /dev/stdin and process substitution are pipes.
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d MiB", maxFile>>20)}
	}
	return b, err
}

// Read reads and parses files. What is wrong goes to the report; a file that
// could not be read is left out, one that could not be parsed is not.
func Read(paths []string, read ReadFunc, report *Report) []*File {
	if read == nil {
		read = ReadRegular
	}
	var files []*File
	seen := map[string]bool{}
	for _, path := range paths {
		clean := filepath.Clean(path)
		if seen[clean] {
			continue
		}
		seen[clean] = true
		src, err := read(path)
		if err != nil {
			report.Errorf(hcl.Range{Filename: path}, "Give a file that exists and can be read.", "the file cannot be read: %s", reason(err))
			continue
		}
		files = append(files, Parse(path, src, report))
	}
	return files
}

// reason leaves the path out of a file error: the message has it already.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Parse parses one file. A UTF-8 byte order mark and CRLF line ends are fine.
func Parse(name string, src []byte, report *Report) *File {
	f := &File{Name: name, Dir: filepath.Dir(name), Source: src, Body: &hclsyntax.Body{}}
	report.AddSource(f)
	start := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
	if bytes.HasPrefix(src, []byte{0xff, 0xfe}) || bytes.HasPrefix(src, []byte{0xfe, 0xff}) {
		f.Source, f.Broken = nil, true
		report.Errorf(start, "Save it as UTF-8; in PowerShell: Set-Content -Encoding utf8.", "the file is UTF-16")
		return f
	}
	parsed, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if parsed != nil {
		if body, ok := parsed.Body.(*hclsyntax.Body); ok && body != nil {
			f.Body = body
		}
	}
	f.Broken = diags.HasErrors()
	report.addHCL(diags)
	return f
}

// addHCL takes over diagnostics of the parser. Their summary and the first
// sentence of their detail say what is wrong, the rest what to do.
func (r *Report) addHCL(diags hcl.Diagnostics) {
	for _, d := range diags {
		at := hcl.Range{}
		if d.Subject != nil {
			at = *d.Subject
		}
		problem, hint := headline(d.Summary, d.Detail)
		if d.Severity == hcl.DiagWarning {
			r.Warnf(at, hint, "%s", problem)
			continue
		}
		r.Errorf(at, hint, "%s", problem)
	}
}

func headline(summary, detail string) (problem, hint string) {
	if summary != "" {
		summary = strings.ToLower(summary[:1]) + summary[1:]
	}
	first, rest, found := strings.Cut(detail, ". ")
	if !found {
		first, rest, found = strings.Cut(detail, "? ")
		if found {
			first += "?"
		}
	}
	first = strings.TrimSuffix(first, ".")
	if len(first) > 1 && (first[1] == ' ' || first[1] >= 'a' && first[1] <= 'z') {
		first = strings.ToLower(first[:1]) + first[1:]
	}
	switch {
	case first == "":
		return summary, ""
	case strings.HasPrefix(first, "did you mean"):
		return summary, detail
	}
	return summary + ": " + first, rest
}

// CheckTop reports what may not stand at the top of a file: attributes, and
// blocks of types that neither inventory nor scenario files have.
func (f *File) CheckTop(report *Report) {
	known := append(append(append([]string(nil), InventoryBlocks...), ScenarioBlocks...), SharedBlocks...)
	for _, a := range sortedAttributes(f.Body) {
		hint := "At the top of a file stand blocks: " + strings.Join(known, ", ") + "."
		if s := Suggest(a.Name, known); s != "" {
			hint = fmt.Sprintf("A block is written %s … { }, without =. %s", s, hint)
		}
		report.Errorf(a.NameRange, hint, "attribute %q stands outside of any block", a.Name)
	}
	for _, b := range f.Body.Blocks {
		if !contains(known, b.Type) {
			report.Errorf(b.TypeRange, DidYouMean(b.Type, known, "blocks"), "unknown block %q", b.Type)
		}
	}
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

func sortedAttributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	list := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		list = append(list, a)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].NameRange.Start.Byte < list[j].NameRange.Start.Byte })
	return list
}

// Format lays a file out as the language's own formatter does. A byte order
// mark is dropped, line ends become LF. What does not parse is given back as
// it is.
func Format(src []byte) []byte {
	plain := bytes.ReplaceAll(bytes.TrimPrefix(src, bom), []byte("\r\n"), []byte("\n"))
	if _, diags := hclwrite.ParseConfig(plain, "", hcl.InitialPos); diags.HasErrors() {
		return src
	}
	return hclwrite.Format(plain)
}
