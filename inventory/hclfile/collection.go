package hclfile

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/benchctl/benchctl/inventory/secret"
)

// texts reads a list of texts; a single text is a list of one.
func (v Value) texts(report *Report, checks []Check) ([]string, bool) {
	plain, _ := v.raw.UnmarkDeep()
	if plain.Type() == cty.String {
		text, ok := v.text(report, checks)
		return []string{text}, ok
	}
	got, ok := v.plain(cty.List(cty.String), report)
	if !ok {
		return nil, false
	}
	list := make([]string, 0, got.LengthInt())
	for it := got.ElementIterator(); it.Next(); {
		_, e := it.Element()
		at := v.at(strconv.Itoa(len(list)))
		if e.IsNull() {
			report.Errorf(at.Range, "", "%s: null is no text", v.Attr)
			return nil, false
		}
		text := e.AsString()
		if f := firstFault(text, checks); f != nil {
			at.fault(f, text, report)
			ok = false
		}
		list = append(list, text)
	}
	return list, ok
}

// Texts is a list of texts; one text alone is a list of one.
func Texts[T any](name string, field func(*T) *[]string, checks ...Check) Attr[T] {
	return ParsedTexts(name, func(dst *T, list []string, _ Value) *Fault {
		*field(dst) = list
		return nil
	}, checks...)
}

// ParsedTexts is a list of texts that is read into something else.
func ParsedTexts[T any](name string, parse func(dst *T, list []string, v Value) *Fault, checks ...Check) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.texts(report, checks)
		if !ok {
			return
		}
		if f := parse(dst, list, v); f != nil {
			v.fault(f, "", report)
		}
	}}
}

// PathTexts is a list of paths: ~ and relative paths are resolved.
func PathTexts[T any](name string, field func(*T) *[]string) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.texts(report, nil)
		for i, path := range list {
			list[i] = v.Path(path)
		}
		if ok {
			*field(dst) = list
		}
	}}
}

// entry is one element of a map, its value with its marks.
type entry struct {
	key   string
	value cty.Value
}

// entries gives the elements of a map in the order of their keys.
func (v Value) entries(report *Report) ([]entry, bool) {
	raw, marks := v.raw.Unmark()
	if !raw.Type().IsObjectType() && !raw.Type().IsMapType() {
		report.Errorf(v.Range, `A map is written { NAME = "value" }.`, "%s takes a map, not %s", v.Attr, kindName(raw.Type()))
		return nil, false
	}
	var list []entry
	for it := raw.ElementIterator(); it.Next(); {
		key, value := it.Element()
		key, keyMarks := key.Unmark()
		list = append(list, entry{key.AsString(), value.WithMarks(marks, keyMarks)})
	}
	return list, true
}

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// Environment is a map of environment variables that is merged into what is
// there; null takes one out. What came from outside, is sensitive, or is
// named like a secret goes to secrets, everything else to shown.
func Environment[T any](name string, shown func(*T) *map[string]string, secrets func(*T) *map[string]secret.String) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.entries(report)
		if !ok {
			return
		}
		plain, hidden := copyMap(*shown(dst)), copyMap(*secrets(dst))
		for _, e := range list {
			if !environmentName.MatchString(e.key) {
				report.Errorf(v.element(e.key), "Letters, digits, _ and . only.", "%s: %q is no name of an environment variable", name, e.key)
				continue
			}
			delete(plain, e.key)
			delete(hidden, e.key)
			text, set := e.text(v, report)
			element := Value{Attr: e.key, File: v.File, Range: v.element(e.key), raw: e.value, expr: v.expr}
			switch {
			case !set:
			case hasMark(e.value, outsideMark) || hasMark(e.value, sensitiveMark):
				hidden[e.key] = secret.New(text)
			case LooksSecret(e.key):
				element.warnLiteral(e.key, text, report)
				hidden[e.key] = secret.New(text)
			default:
				plain[e.key] = text
			}
		}
		*shown(dst), *secrets(dst) = plain, hidden
	}}
}

// text converts the element; false for null and for what is no text.
func (e entry) text(v Value, report *Report) (string, bool) {
	raw, _ := e.value.UnmarkDeep()
	if raw.IsNull() {
		return "", false
	}
	got, err := convert.Convert(raw, cty.String)
	if err != nil {
		report.Errorf(v.element(e.key), example["a text"], "%s: %s takes a text, not %s", v.Attr, e.key, kindName(raw.Type()))
		return "", false
	}
	return got.AsString(), true
}

func copyMap[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// TextMap is a map of texts that is merged into what is there; null takes one
// out.
func TextMap[T any](name string, field func(*T) *map[string]string, keys ...Check) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.entries(report)
		if !ok {
			return
		}
		if v.refused(report) {
			return
		}
		merged := copyMap(*field(dst))
		for _, e := range list {
			if f := firstFault(e.key, keys); f != nil {
				v.at(e.key).fault(f, "", report)
				continue
			}
			delete(merged, e.key)
			if text, set := e.text(v, report); set {
				merged[e.key] = text
			}
		}
		*field(dst) = merged
	}}
}

func firstFault(text string, checks []Check) *Fault {
	for _, check := range checks {
		if f := check(text); f != nil {
			return f
		}
	}
	return nil
}

// NumberMap is a map of numbers above 0 that replaces what is there.
func NumberMap[T any](name string, field func(*T) *map[string]float64, rename func(string) string, keys ...Check) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.entries(report)
		if !ok {
			return
		}
		numbers := map[string]float64{}
		for _, e := range list {
			if f := firstFault(e.key, keys); f != nil {
				v.at(e.key).fault(f, "", report)
				continue
			}
			element := Value{Attr: name + ": " + e.key, Range: v.element(e.key), raw: e.value, expr: v.expr}
			raw, _ := e.value.Unmark()
			if raw.IsNull() {
				continue
			}
			got, ok := element.plain(cty.Number, report)
			if !ok {
				continue
			}
			n, _ := got.AsBigFloat().Float64()
			if n <= 0 || n > 1e9 {
				report.Errorf(element.Range, "", "%s: %s takes a number above 0, not %s", name, e.key, element.number(got))
				continue
			}
			numbers[rename(e.key)] += n
		}
		*field(dst) = numbers
	}}
}

// CountMap is a map of names to whole numbers from 1 to high.
func CountMap[T any](name string, high int, field func(*T) *map[string]int, keys ...Check) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.entries(report)
		if !ok {
			return
		}
		counts := map[string]int{}
		for _, e := range list {
			if f := firstFault(e.key, keys); f != nil {
				v.at(e.key).fault(f, e.key, report)
				continue
			}
			if raw, _ := e.value.Unmark(); raw.IsNull() {
				continue
			}
			element := Value{Attr: name + ": " + e.key, Range: v.element(e.key), raw: e.value, expr: v.expr}
			if n, ok := element.integer(1, int64(high), report); ok {
				counts[e.key] = int(n)
			}
		}
		*field(dst) = counts
	}}
}

// PortMap is a map of published ports, host to container, that replaces what
// is there.
func PortMap[T any](name string, field func(*T) *map[int]int) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		list, ok := v.entries(report)
		if !ok {
			return
		}
		if v.refused(report) {
			return
		}
		ports := map[int]int{}
		for _, e := range list {
			text, set := e.text(v, report)
			host, hostErr := strconv.Atoi(e.key)
			inside, insideErr := strconv.Atoi(text)
			if !set {
				continue
			}
			if hostErr != nil || insideErr != nil || host < 1 || host > 65535 || inside < 1 || inside > 65535 {
				report.Errorf(v.element(e.key), `Write { "8125" = 8125 }: port of the target = port of the container.`, "%s: %s is no pair of ports from 1 to 65535", name, v.pair(e.key, text))
				continue
			}
			ports[host] = inside
		}
		*field(dst) = ports
	}}
}

func (v Value) pair(key, text string) string {
	if hasMark(v.raw, outsideMark) {
		return "a given value"
	}
	return fmt.Sprintf("%q = %q", key, text)
}
