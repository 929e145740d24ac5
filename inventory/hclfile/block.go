package hclfile

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Place remembers where an attribute or a block stands.
type Place struct {
	Range hcl.Range
	// Level counts the files' layers that were decoded into one value: 0 for
	// the outermost parent, more for its children.
	Level int
	// Builtin is set when the file is part of the program.
	Builtin bool
	// Bad is set when the value is wrong, which was reported, or not known
	// here: what follows from it should not be looked at.
	Bad bool
}

// String is FILE:LINE:COL, of a built-in file its name alone.
func (p Place) String() string {
	if p.Builtin {
		return p.Range.Filename
	}
	return fmt.Sprintf("%s:%d:%d", p.Range.Filename, p.Range.Start.Line, p.Range.Start.Column)
}

// Places are found by paths such as "keycloak/memory" or "test/login/flow".
type Places map[string]Place

// Has tells whether something was written at the path.
func (p Places) Has(path string) bool { _, ok := p[path]; return ok }

// Bad tells whether what was written at the path cannot be used.
func (p Places) Bad(path string) bool { return p[path].Bad }

// Spoil marks what was written at the path as wrong.
func (p Places) Spoil(path string) {
	place := p[path]
	place.Bad = true
	p[path] = place
}

// Find gives the range at the path, or of the nearest thing around it.
func (p Places) Find(path string) hcl.Range {
	for {
		if place, ok := p[path]; ok {
			return place.Range
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return p[""].Range
		}
		path = path[:i]
	}
}

// Forget drops what was written at the path and below it.
func (p Places) Forget(path string) {
	for name := range p {
		if name == path || strings.HasPrefix(name, path+"/") {
			delete(p, name)
		}
	}
}

// Decoder decodes blocks of one file.
type Decoder struct {
	File   *File
	Scope  *Scope
	Report *Report
	// Places takes down where attributes and blocks stand.
	Places Places
	Level  int
}

// BlockKind is a type of block that may stand in another.
type BlockKind struct {
	Type string
	// Label names the label in messages, as in NAME; empty for no label.
	Label string
	// Kinds are the labels that there are; nil when the user makes them up.
	Kinds []string
	// Free lets the label be any text; the caller checks it.
	Free bool
	// Many allows several, with different labels.
	Many bool
}

// Place notes where the block with this path begins.
func (d *Decoder) Place(path string, at hcl.Range) {
	d.Places[path] = Place{Range: at, Level: d.Level, Builtin: d.File.Builtin}
}

// Block is an inner block whose labels were checked.
type Block struct {
	*hclsyntax.Block
	// Label is empty for blocks without one.
	Label string
}

// Decode puts the attributes of a body into dst and gives its inner blocks, in
// the order in which they stand. what names the body in messages. An
// attribute that is not written, or null, leaves dst as it is, so that
// decoding a child after its parent overrides what the child gives.
func Decode[T any](d *Decoder, path, what string, body *hclsyntax.Body, attrs []Attr[T], kinds []BlockKind, dst *T) []Block {
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	types := make([]string, len(kinds))
	for i, k := range kinds {
		types[i] = k.Type
	}
	for _, written := range sortedAttributes(body) {
		known := false
		for _, a := range attrs {
			if a.Name != written.Name {
				continue
			}
			known = true
			v := Value{Attr: a.Name, File: d.File, Range: written.Expr.Range(), expr: written.Expr, scope: d.Scope}
			var ok bool
			v.raw, ok = d.Scope.Eval(d.File, written.Expr, d.Report)
			if plain, _ := v.raw.Unmark(); ok && plain.IsKnown() && plain.IsNull() {
				continue
			}
			v.Place = Place{Range: v.Range, Level: d.Level, Builtin: d.File.Builtin}
			before := d.Report.errors
			if ok && v.raw.IsWhollyKnown() {
				a.set(dst, v, d.Report)
			} else {
				ok = false
			}
			v.Place.Bad = !ok || d.Report.errors > before
			d.note(join(path, a.Name), v)
		}
		if !known {
			d.unknownAttribute(path, written, names, types, what)
		}
	}
	return d.inner(path, body, kinds, types, names, what)
}

// note takes down where a value stands, and each element of a written list.
func (d *Decoder) note(path string, v Value) {
	d.Places.Forget(path)
	d.Places[path] = v.Place
	if list, ok := v.expr.(*hclsyntax.TupleConsExpr); ok {
		for i, e := range list.Exprs {
			d.Places[fmt.Sprintf("%s/%d", path, i)] = Place{Range: e.Range(), Level: d.Level, Builtin: d.File.Builtin}
		}
	}
}

// join puts a path together.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// meant takes what a misspelt name stands for as written, so that nobody says
// that it is missing.
func (d *Decoder) meant(path, name string, at hcl.Range) {
	if name != "" && !d.Places.Has(join(path, name)) {
		d.Places[join(path, name)] = Place{Range: at, Level: d.Level, Builtin: d.File.Builtin, Bad: true}
	}
}

func (d *Decoder) unknownAttribute(path string, written *hclsyntax.Attribute, names, types []string, what string) {
	if contains(types, written.Name) {
		d.Report.Errorf(written.NameRange, fmt.Sprintf("Write %s { … }, without =.", written.Name), "%s is a block in %s, no attribute", written.Name, what)
		return
	}
	hint := DidYouMean(written.Name, names, "attributes")
	meant := Suggest(written.Name, names)
	if s := Suggest(written.Name, types); s != "" && meant == "" {
		hint = fmt.Sprintf("Did you mean the block %s { … }?", s)
		meant = s
	}
	d.meant(path, meant, written.NameRange)
	d.Report.Errorf(written.NameRange, hint, "unknown attribute %q in %s", written.Name, what)
}

func (d *Decoder) inner(path string, body *hclsyntax.Body, kinds []BlockKind, types, names []string, what string) []Block {
	var blocks []Block
	first := map[string]hcl.Range{}
	for _, b := range body.Blocks {
		kind, known := BlockKind{}, false
		for _, k := range kinds {
			if k.Type == b.Type {
				kind, known = k, true
			}
		}
		if !known {
			d.unknownBlock(path, b, names, types, what)
			continue
		}
		name, ok := label(b, kind, d.Report)
		if !ok {
			// It is there, so that nobody says that it is missing.
			d.Places[join(path, b.Type)] = Place{Range: b.DefRange(), Level: d.Level, Builtin: d.File.Builtin, Bad: true}
			continue
		}
		key, shown := b.Type, b.Type
		if kind.Many {
			key, shown = b.Type+"/"+name, fmt.Sprintf("%s %q", b.Type, name)
		}
		if at, twice := first[key]; twice {
			d.Report.Errorf(b.DefRange(), "Keep one of them.", "%s stands twice in %s, first at %s", shown, what, At(at))
			continue
		}
		first[key] = b.DefRange()
		blocks = append(blocks, Block{Block: b, Label: name})
	}
	return blocks
}

func (d *Decoder) unknownBlock(path string, b *hclsyntax.Block, names, types []string, what string) {
	if contains(names, b.Type) {
		d.Report.Errorf(b.TypeRange, fmt.Sprintf("Write %s = …", b.Type), "%s is an attribute in %s, no block", b.Type, what)
		return
	}
	if len(types) == 0 {
		d.Report.Errorf(b.TypeRange, DidYouMean(b.Type, names, "attributes"), "%s holds no blocks, and there is a block %q", what, b.Type)
		return
	}
	d.meant(path, Suggest(b.Type, types), b.TypeRange)
	d.Report.Errorf(b.TypeRange, DidYouMean(b.Type, types, "blocks"), "unknown block %q in %s", b.Type, what)
}

// Label checks the label of a block at the top of a file.
func (f *File) Label(b *hclsyntax.Block, kind BlockKind, report *Report) (string, bool) {
	return label(b, kind, report)
}

// label gives the one label of a block that has one.
func label(b *hclsyntax.Block, kind BlockKind, report *Report) (string, bool) {
	want := 0
	example := kind.Type + " { … }"
	if kind.Label != "" {
		want = 1
		example = fmt.Sprintf("%s %q { … }", kind.Type, kind.Label)
	}
	if len(b.Labels) > want {
		report.Errorf(b.LabelRanges[want], "Write "+example+".", "%s has a label too many", kind.Type)
		return "", false
	}
	if len(b.Labels) < want {
		hint := "Write " + example + "."
		if kind.Kinds != nil {
			hint = fmt.Sprintf("Write %s %q { … }; there is %s.", kind.Type, kind.Kinds[0], strings.Join(kind.Kinds, ", "))
		}
		report.Errorf(b.TypeRange, hint, "%s needs a label", kind.Type)
		return "", false
	}
	if want == 0 {
		return "", true
	}
	name := b.Labels[0]
	switch {
	case kind.Kinds != nil && !contains(kind.Kinds, name):
		report.Errorf(b.LabelRanges[0], DidYouMean(name, kind.Kinds, "kinds"), "unknown %s %q", kind.Type, name)
		return "", false
	case kind.Kinds == nil && !kind.Free && !isLabel(name):
		report.Errorf(b.LabelRanges[0], "A name begins with a letter or digit and goes on with letters, digits, '-', '_' and '.', 63 in all at most.", "%q is no name for a %s", name, kind.Type)
		return "", false
	}
	return name, true
}

const maxLabel = 63

// isLabel holds names to what can be part of a file's and a container's name.
func isLabel(name string) bool {
	for i, r := range name {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || r != '-' && r != '_' && r != '.') {
			return false
		}
	}
	return name != "" && len(name) <= maxLabel
}
