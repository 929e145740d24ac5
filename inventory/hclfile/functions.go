package hclfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// mark travels with a value through functions and templates.
type mark string

const (
	outsideMark   mark = "outside"
	sensitiveMark mark = "sensitive"
)

// pureFunctions depend on nothing but their arguments.
var pureFunctions = map[string]function.Function{
	"try":        tryfunc.TryFunc,
	"can":        tryfunc.CanFunc,
	"lower":      stdlib.LowerFunc,
	"upper":      stdlib.UpperFunc,
	"trimspace":  stdlib.TrimSpaceFunc,
	"trimprefix": stdlib.TrimPrefixFunc,
	"trimsuffix": stdlib.TrimSuffixFunc,
	"replace":    stdlib.ReplaceFunc,
	"split":      stdlib.SplitFunc,
	"join":       stdlib.JoinFunc,
	"concat":     stdlib.ConcatFunc,
	"merge":      stdlib.MergeFunc,
	"coalesce":   stdlib.CoalesceFunc,
	"length":     stdlib.LengthFunc,
	"min":        stdlib.MinFunc,
	"max":        stdlib.MaxFunc,
	"abs":        stdlib.AbsoluteFunc,
	"ceil":       stdlib.CeilFunc,
	"floor":      stdlib.FloorFunc,
	"tostring":   stdlib.MakeToFunc(cty.String),
	"tonumber":   stdlib.MakeToFunc(cty.Number),
	"sensitive":  sensitiveFunction,
}

// FunctionNames are the functions that files can call, in the order of the
// manual.
func FunctionNames() []string {
	return []string{
		"env", "file", "try", "can", "sensitive",
		"lower", "upper", "trimspace", "trimprefix", "trimsuffix", "replace", "split", "join",
		"concat", "merge", "coalesce", "length",
		"min", "max", "abs", "ceil", "floor", "tostring", "tonumber",
	}
}

var sensitiveFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		return args[0].Type(), nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].Mark(sensitiveMark), nil },
})

// callError is a failed call, with what to do about it. Unset tells that only
// a value of the environment is missing.
type callError struct {
	problem, hint string
	unset         bool
}

func (e *callError) Error() string { return e.problem }

// functions gives all functions for one file: file() reads relative to it.
func (s *Scope) functions(f *File) map[string]function.Function {
	all := make(map[string]function.Function, len(pureFunctions)+2)
	for name, fn := range pureFunctions {
		all[name] = fn
	}
	all["env"] = s.envFunction()
	all["file"] = s.fileFunction(f)
	return all
}

// env(NAME) gives an environment variable, env(NAME, default) one that may be
// unset. A variable that is set to nothing is set.
func (s *Scope) envFunction() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			if len(args) > 2 {
				return cty.NilVal, &callError{problem: "takes a name and at most one default", hint: `Write env("NAME") or env("NAME", "default").`}
			}
			if text, ok := s.options.LookupEnv(name); ok {
				return cty.StringVal(text).Mark(outsideMark), nil
			}
			if len(args) == 2 {
				return args[1].Mark(outsideMark), nil
			}
			return cty.NilVal, &callError{
				problem: fmt.Sprintf("environment variable %q is not set", name),
				hint:    fmt.Sprintf("Set it (export %s=…), or give a default: env(%q, \"…\").", name, name),
				unset:   true,
			}
		},
	})
}

// file(PATH) gives the text of a file, without the line end at its end: files
// with a password in them have one more often than not.
func (s *Scope) fileFunction(f *File) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := s.Path(f, args[0].AsString())
			b, err := s.options.ReadFile(path)
			if err != nil {
				return cty.NilVal, &callError{
					problem: fmt.Sprintf("%s cannot be read: %s", path, reason(err)),
					hint:    fmt.Sprintf("Paths are relative to the folder of %s.", f.Name),
				}
			}
			if !utf8.Valid(b) {
				return cty.NilVal, &callError{problem: fmt.Sprintf("%s is no UTF-8 text", path), hint: "file() gives texts only."}
			}
			text := strings.TrimPrefix(string(b), string(bom))
			text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
			return cty.StringVal(text).Mark(outsideMark), nil
		},
	})
}

// Path makes a path that was written in a file usable: ~ is the home folder,
// a relative path is relative to the file.
func (s *Scope) Path(f *File, path string) string {
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		if s.options.Home != "" {
			return filepath.Join(s.options.Home, path[1:])
		}
		return path
	case path == "" || filepath.IsAbs(path) || f.Builtin:
		return path
	}
	return filepath.Join(f.Dir, path)
}
