package scenarios

import (
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// Options say where scenarios come from.
type Options struct {
	// Dir is the folder whose *.hcl files are read when no Files are given;
	// empty for none.
	Dir string
	// Files are given ones (-f); then Dir is not looked at.
	Files []string
	// Inventory are inventory files; they are read for their variables and
	// locals only, so that -var for one of those is no mistake.
	Inventory []string
	hclfile.Options
}

//go:embed builtin/*.hcl
var builtinFiles embed.FS

// builtinDir is where the built-in scenarios lie in builtinFiles.
const builtinDir = "builtin"

// BuiltIn is the Source of built-in scenarios.
const BuiltIn = "built in"

// Catalog holds all scenarios that there are: those of files, and the
// built-in ones that none of a file has the name of.
type Catalog struct {
	entries []*entry
	byName  map[string]*entry
	scope   *hclfile.Scope
	// builtinScope has no variables but env() all the same.
	builtinScope *hclfile.Scope
	report       *hclfile.Report
	// broken is set when a file did not parse: names may be missing.
	broken bool
}

// entry is one scenario that is known but not decoded.
type entry struct {
	name        string
	file        *hclfile.File
	block       *hclsyntax.Block
	description string
	extends     string
	extendsAt   hcl.Range
	parent      *entry
}

// Entry is a line in the list of scenarios.
type Entry struct {
	Name        string
	Description string
	// Source is FILE:LINE, or "built in".
	Source string
	// Extends is empty for a scenario that stands alone.
	Extends string
}

// Load reads all scenario files and checks what does not depend on which
// scenario is wanted: that the files parse, that their blocks are known, that
// names are unique, that parents exist and do not go in a circle. What is in
// a scenario is looked at when it is asked for. Errors are one *hclfile.Error.
func Load(opts Options) (*Catalog, []hclfile.Diagnostic, error) {
	opts.Options = opts.Options.WithDefaults()
	report := &hclfile.Report{}
	paths := opts.Files
	if len(paths) == 0 && opts.Dir != "" {
		found, err := Find(opts.Dir)
		if err != nil {
			return nil, nil, err
		}
		paths = found
	}
	files := hclfile.Read(paths, opts.ReadFile, report)
	others := hclfile.Read(notIn(opts.Inventory, paths), opts.ReadFile, report)
	c := newCatalog(files, others, opts.Options, report)
	warnings, err := report.Result()
	if err != nil {
		return nil, warnings, err
	}
	return c, warnings, nil
}

// Find gives the *.hcl files of a folder, sorted; names that begin with a dot
// are not looked at.
func Find(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for scenario files: %w", err)
	}
	var paths []string
	for _, e := range list {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".hcl") && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	sort.Strings(paths)
	return paths, nil
}

func notIn(paths, known []string) []string {
	seen := map[string]bool{}
	for _, p := range known {
		seen[filepath.Clean(p)] = true
	}
	var rest []string
	for _, p := range paths {
		if !seen[filepath.Clean(p)] {
			rest = append(rest, p)
		}
	}
	return rest
}

// newCatalog links what stands in files. others only lend their variables.
func newCatalog(files, others []*hclfile.File, opts hclfile.Options, report *hclfile.Report) *Catalog {
	c := &Catalog{byName: map[string]*entry{}, report: report}
	all := append(append([]*hclfile.File(nil), files...), others...)
	for _, f := range all {
		f.CheckTop(report)
		c.broken = c.broken || f.Broken
	}
	c.scope = hclfile.NewScope(all, opts, report)
	c.scope.CheckVars(report)
	c.builtinScope = hclfile.NewScope(nil, opts, report)
	c.collect(files, c.scope)
	builtin := &Catalog{byName: map[string]*entry{}, report: report}
	builtin.collect(readBuiltin(report), c.builtinScope)
	for _, e := range c.entries {
		c.link(e, builtin)
	}
	for _, e := range builtin.entries {
		builtin.link(e, builtin)
		if c.byName[e.name] == nil {
			c.byName[e.name] = e
			c.entries = append(c.entries, e)
		}
	}
	c.checkCircles()
	return c
}

func readBuiltin(report *hclfile.Report) []*hclfile.File {
	list, err := builtinFiles.ReadDir(builtinDir)
	if err != nil {
		return nil
	}
	var files []*hclfile.File
	for _, e := range list {
		src, err := builtinFiles.ReadFile(path.Join(builtinDir, e.Name()))
		if err != nil {
			continue
		}
		f := hclfile.Parse(strings.TrimSuffix(e.Name(), ".hcl")+" (built in)", src, report)
		f.Builtin = true
		report.AddSource(f)
		files = append(files, f)
	}
	return files
}

// collect makes an entry of each scenario block.
func (c *Catalog) collect(files []*hclfile.File, scope *hclfile.Scope) {
	for _, f := range files {
		for _, b := range f.Body.Blocks {
			if b.Type != "scenario" {
				continue
			}
			name, ok := f.Label(b, hclfile.BlockKind{Type: "scenario", Label: "NAME"}, c.report)
			if !ok {
				continue
			}
			if old := c.byName[name]; old != nil {
				c.report.Errorf(b.DefRange(), "Give one of them another name.", "scenario %q is declared twice, first at %s", name, hclfile.At(old.block.DefRange()))
				continue
			}
			e := &entry{name: name, file: f, block: b}
			c.byName[name] = e
			c.entries = append(c.entries, e)
			e.header(scope, c.report)
		}
	}
}

// header reads what is known of a scenario without decoding it.
func (e *entry) header(scope *hclfile.Scope, report *hclfile.Report) {
	if a := e.block.Body.Attributes["description"]; a != nil {
		// What is wrong with it is said when the scenario is decoded.
		e.description, _ = hclfile.PlainText(scope, e.file, a.Expr, report.Sub())
	}
	a := e.block.Body.Attributes["extends"]
	if a == nil {
		return
	}
	e.extendsAt = a.Expr.Range()
	name, ok := hclfile.LiteralText(a.Expr)
	if !ok {
		report.Errorf(e.extendsAt, `Write extends = "NAME"; variables are not known yet where parents are looked up.`, "extends takes the name of a scenario, written out in quotes")
		return
	}
	e.extends = name
}

// link finds the parent: a scenario of a file before a built-in one, and
// never the scenario itself unless a built-in one has its name.
func (c *Catalog) link(e *entry, builtin *Catalog) {
	if e.extends == "" {
		return
	}
	e.parent = c.byName[e.extends]
	if b := builtin.byName[e.extends]; b != nil && (e.parent == nil || e.parent == e && b != e) {
		e.parent = b
	}
	if e.parent == nil && !c.broken {
		known := append(namesOf(c.entries, entryName), namesOf(builtin.entries, entryName)...)
		c.report.Errorf(e.extendsAt, hclfile.DidYouMean(e.extends, unique(without(known, e.name, itself)), "scenarios"), "scenario %q extends %q, which is not known", e.name, e.extends)
	}
}

func entryName(e *entry) string { return e.name }
func itself(s string) string    { return s }

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// checkCircles reports each circle of extends once, and cuts it.
func (c *Catalog) checkCircles() {
	for _, e := range c.entries {
		var path []*entry
		for at := e; at != nil; at = at.parent {
			if at == e && len(path) > 0 {
				c.reportCircle(path)
				e.parent = nil
				break
			}
			if containsEntry(path, at) {
				// A circle that e leads into; it is reported from inside.
				break
			}
			path = append(path, at)
		}
	}
}

func containsEntry(list []*entry, e *entry) bool {
	for _, have := range list {
		if have == e {
			return true
		}
	}
	return false
}

func (c *Catalog) reportCircle(path []*entry) {
	var steps []string
	for _, e := range path {
		steps = append(steps, fmt.Sprintf("%s (%s)", e.name, hclfile.At(e.extendsAt)))
	}
	circle := strings.Join(append(steps, path[0].name), " → ")
	c.report.Errorf(path[0].extendsAt, "Take one extends out of the circle.", "extends goes in a circle: %s", circle)
}

// Names lists all scenarios, those of files first.
func (c *Catalog) Names() []Entry {
	list := make([]Entry, 0, len(c.entries))
	for _, e := range c.entries {
		list = append(list, Entry{Name: e.name, Description: e.describe(), Source: e.source(), Extends: e.extends})
	}
	return list
}

// describe gives the description, or that of the nearest parent that has one.
func (e *entry) describe() string {
	for at := e; at != nil; at = at.parent {
		if at.description != "" {
			return at.description
		}
	}
	return ""
}

func (e *entry) source() string { return sourceOf(e.file, e.block.DefRange()) }

func sourceOf(f *hclfile.File, at hcl.Range) string {
	if f.Builtin {
		return BuiltIn
	}
	return hclfile.At(at)
}

// find gives an entry, or an error that says what there is.
func (c *Catalog) find(name string) (*entry, error) {
	if e := c.byName[name]; e != nil {
		return e, nil
	}
	names := namesOf(c.entries, entryName)
	if name == "" {
		return nil, fmt.Errorf("no scenario is named; say which with -scenario NAME: %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("scenario %q is not known. %s", name, hclfile.DidYouMean(name, names, "scenarios"))
}

// Source gives the text of a scenario: all of the file, with its comments, of
// a built-in one; the block with the comment above it of one from a file,
// without secrets that are written in it.
func (c *Catalog) Source(name string) (string, error) {
	e, err := c.find(name)
	if err != nil {
		return "", err
	}
	if e.file.Builtin {
		return string(e.file.Source), nil
	}
	return e.file.BlockSource(e.block), nil
}

// Scenario gives a scenario after extends, variables and defaults. What is
// wrong with it, or with a parent, is one *hclfile.Error; a name that is not
// known is an error that says what there is. It is not safe to be called by
// several goroutines at once.
func (c *Catalog) Scenario(name string) (*Scenario, error) {
	e, err := c.find(name)
	if err != nil {
		return nil, err
	}
	report := c.report.Sub()
	s := c.decode(e, report)
	warnings, err := report.Result()
	if err != nil {
		return nil, err
	}
	s.Warnings = warnings
	return s, nil
}

func (c *Catalog) decode(e *entry, report *hclfile.Report) *Scenario {
	var chain []*entry
	for at := e; at != nil; at = at.parent {
		chain = append([]*entry{at}, chain...)
	}
	d := newDraft()
	for level, layer := range chain {
		scope := c.scope
		if layer.file.Builtin {
			scope = c.builtinScope
		}
		d.add(layer, level, scope, report)
	}
	d.Name, d.Extends, d.Source, d.Description = e.name, e.extends, e.source(), e.describe()
	d.settle()
	d.check(report)
	return &d.Scenario
}
