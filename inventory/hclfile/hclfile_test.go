package hclfile_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/inventory/secret"
)

// thing has one attribute of each kind.
type thing struct {
	Text   string
	Path   string
	Pin    secret.String
	On     bool
	Count  int
	Big    int64
	Share  float64
	Steps  []float64
	Wait   time.Duration
	Room   int64
	List   []string
	Paths  []string
	Env    map[string]string
	Hidden map[string]secret.String
	Set    map[string]string
	Mix    map[string]float64
	Ports  map[int]int
}

var thingAttrs = []hclfile.Attr[thing]{
	hclfile.Text("text", func(t *thing) *string { return &t.Text }),
	hclfile.PathText("path", func(t *thing) *string { return &t.Path }),
	hclfile.Secret("pin", func(t *thing) *secret.String { return &t.Pin }),
	hclfile.Bool("on", func(t *thing) *bool { return &t.On }),
	hclfile.Int("count", 1, 5, func(t *thing) *int { return &t.Count }),
	hclfile.Int64("big", func(t *thing) *int64 { return &t.Big }),
	hclfile.Float("share", 0, 2, func(t *thing) *float64 { return &t.Share }),
	hclfile.Floats("steps", 0, 1000, func(t *thing) *[]float64 { return &t.Steps }),
	hclfile.Duration("wait", 0, time.Hour, func(t *thing) *time.Duration { return &t.Wait }),
	hclfile.Size("room", 1<<20, func(t *thing) *int64 { return &t.Room }),
	hclfile.Texts("list", func(t *thing) *[]string { return &t.List }),
	hclfile.PathTexts("paths", func(t *thing) *[]string { return &t.Paths }),
	hclfile.Environment("env", func(t *thing) *map[string]string { return &t.Env }, func(t *thing) *map[string]secret.String { return &t.Hidden }),
	hclfile.TextMap("set", func(t *thing) *map[string]string { return &t.Set }),
	hclfile.NumberMap("mix", func(t *thing) *map[string]float64 { return &t.Mix }, strings.ToLower),
	hclfile.PortMap("ports", func(t *thing) *map[int]int { return &t.Ports }),
}

// world is what a file can see of the machine.
type world struct {
	env     map[string]string
	files   map[string]string
	vars    map[string]string
	lenient bool
}

func (w world) options() hclfile.Options {
	return hclfile.Options{
		Vars: w.vars, Home: "/home/ann", Lenient: w.lenient,
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := w.files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
}

// decode reads what stands in a scenario block of dir/a.hcl as a thing.
func decode(w world, src string) (thing, []hclfile.Diagnostic, error) {
	report := &hclfile.Report{}
	f := hclfile.Parse("dir/a.hcl", []byte(src), report)
	f.CheckTop(report)
	scope := hclfile.NewScope([]*hclfile.File{f}, w.options(), report)
	scope.CheckVars(report)
	var out thing
	for _, b := range f.Body.Blocks {
		if b.Type == "scenario" {
			d := &hclfile.Decoder{File: f, Scope: scope, Report: report, Places: hclfile.Places{}}
			hclfile.Decode(d, "", "the thing", b.Body, thingAttrs, nil, &out)
		}
	}
	warnings, err := report.Result()
	return out, warnings, err
}

// attrs wraps attributes so that they begin on line 2.
func attrs(s string) string { return "scenario \"x\" {\n" + s + "\n}\n" }

func TestValues(t *testing.T) {
	w := world{
		env:   map[string]string{"HOST": "sut", "EMPTY": "", "BENCHCTL_VAR_from_env": "outside", "BENCHCTL_VAR_both": "env"},
		files: map[string]string{"dir/note.txt": "\ufeffhello\r\n", "/abs": "abs", "/home/ann/pw": "two\nlines\n"},
		vars:  map[string]string{"both": "flag", "n": "3", "yes": "true", "list": `["a", "b"]`},
	}
	declared := `
variable "from_env" {}
variable "both" { default = "file" }
variable "plain" { default = "def" }
variable "n" { default = 1 }
variable "yes" { default = false }
variable "list" { default = [] }
locals {
  a = "${local.b}!"
  b = upper(var.plain)
}
`
	for name, c := range map[string]struct {
		attrs string
		got   func(thing) any
		want  any
	}{
		"text":                      {`text = "a"`, func(t thing) any { return t.Text }, "a"},
		"number as text":            {`text = 12`, func(t thing) any { return t.Text }, "12"},
		"null leaves it":            {`text = null`, func(t thing) any { return t.Text }, ""},
		"template":                  {`text = "${local.a}-${1 + 1}"`, func(t thing) any { return t.Text }, "DEF!-2"},
		"env":                       {`text = env("HOST")`, func(t thing) any { return t.Text }, "sut"},
		"env that is set to none":   {`text = env("EMPTY", "d")`, func(t thing) any { return t.Text }, ""},
		"env with a default":        {`text = env("NONE", "d")`, func(t thing) any { return t.Text }, "d"},
		"env in try":                {`text = try(env("NONE"), "t")`, func(t thing) any { return t.Text }, "t"},
		"env in can":                {`on = can(env("NONE"))`, func(t thing) any { return t.On }, false},
		"file":                      {`text = file("note.txt")`, func(t thing) any { return t.Text }, "hello"},
		"file by its whole path":    {`text = file("/abs")`, func(t thing) any { return t.Text }, "abs"},
		"file in the home folder":   {`text = file("~/pw")`, func(t thing) any { return t.Text }, "two\nlines"},
		"variable from environment": {`text = var.from_env`, func(t thing) any { return t.Text }, "outside"},
		"the flag wins":             {`text = var.both`, func(t thing) any { return t.Text }, "flag"},
		"default of a variable":     {`text = var["plain"]`, func(t thing) any { return t.Text }, "def"},
		"number from a flag":        {`count = var.n + 1`, func(t thing) any { return t.Count }, 4},
		"truth from a flag":         {`on = var.yes`, func(t thing) any { return t.On }, true},
		"list from a flag":          {`text = join("-", var.list)`, func(t thing) any { return t.Text }, "a-b"},
		"choice":                    {`text = var.yes ? "y" : null`, func(t thing) any { return t.Text }, "y"},
		"for":                       {`list = [for s in var.list : upper(s)]`, func(t thing) any { return strings.Join(t.List, ",") }, "A,B"},
		"path":                      {`path = "keys/id"`, func(t thing) any { return t.Path }, "dir/keys/id"},
		"path in the home folder":   {`path = "~/.ssh/id"`, func(t thing) any { return t.Path }, "/home/ann/.ssh/id"},
		"whole path":                {`path = "/etc/id"`, func(t thing) any { return t.Path }, "/etc/id"},
		"paths":                     {`paths = ["~/a", "b"]`, func(t thing) any { return strings.Join(t.Paths, ",") }, "/home/ann/a,dir/b"},
		"one text as a list":        {`list = "a"`, func(t thing) any { return strings.Join(t.List, ",") }, "a"},
		"whole number":              {`big = -9007199254740993`, func(t thing) any { return t.Big }, int64(-9007199254740993)},
		"number":                    {`share = 0.25`, func(t thing) any { return t.Share }, 0.25},
		"numbers":                   {`steps = [1, 2.5]`, func(t thing) any { return t.Steps[1] }, 2.5},
		"duration":                  {`wait = "1m30s"`, func(t thing) any { return t.Wait }, 90 * time.Second},
		"size":                      {`room = "1.5g"`, func(t thing) any { return t.Room }, int64(1.5 * (1 << 30))},
		"size in bytes":             {`room = 2097152`, func(t thing) any { return t.Room }, int64(2 << 20)},
		"environment":               {`env = { A = "x", B = 2 }`, func(t thing) any { return t.Env["A"] + t.Env["B"] }, "x2"},
		"null in a map":             {`env = { A = "x", B = null }`, func(t thing) any { return len(t.Env) }, 1},
		"numbers by name":           {`mix = { Login = 1, login = 2 }`, func(t thing) any { return t.Mix["login"] }, 3.0},
		"ports":                     {`ports = { "8125" = 80 }`, func(t thing) any { return t.Ports[8125] }, 80},
		"ports without quotes":      {`ports = { 8125 = 80 }`, func(t thing) any { return t.Ports[8125] }, 80},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := decode(w, attrs(c.attrs)+declared)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("%v%v", warnings, err)
			}
			if v := c.got(got); v != c.want {
				t.Errorf("got %v, want %v", v, c.want)
			}
		})
	}
}

// TestSecretRule holds what the package's documentation says about secrets.
func TestSecretRule(t *testing.T) {
	w := world{
		env:   map[string]string{"PW": "hunter2", "BENCHCTL_VAR_given": "hunter2"},
		files: map[string]string{"dir/pw": "hunter2\n"},
		vars:  map[string]string{"flag": "hunter2"},
	}
	declared := `
variable "given" {}
variable "flag" { default = "" }
variable "hidden" {
  default   = env("PW")
  sensitive = true
}
locals {
  made = "x${env("PW")}"
}
`
	for name, c := range map[string]struct {
		attrs   string
		secret  func(thing) secret.String
		warning string
		refused string
	}{
		"env":                             {`pin = env("PW")`, func(t thing) secret.String { return t.Pin }, "", ""},
		"file":                            {`pin = file("pw")`, func(t thing) secret.String { return t.Pin }, "", ""},
		"variable from the environment":   {`pin = var.given`, func(t thing) secret.String { return t.Pin }, "", ""},
		"sensitive variable":              {`pin = var.hidden`, func(t thing) secret.String { return t.Pin }, "", ""},
		"made from env":                   {`pin = local.made`, func(t thing) secret.String { return t.Pin }, "", ""},
		"marked by hand":                  {`pin = sensitive("hunter2")`, func(t thing) secret.String { return t.Pin }, "", ""},
		"literal":                         {`pin = "hunter2"`, func(t thing) secret.String { return t.Pin }, "2:7: warning: pin is written in the file", ""},
		"variable from a flag":            {`pin = var.flag`, func(t thing) secret.String { return t.Pin }, "2:7: warning: pin comes from a value that is not declared sensitive", ""},
		"plain takes env":                 {`text = env("PW")`, nil, "", ""},
		"plain refuses sensitive":         {`text = var.hidden`, nil, "", "2:8: text would show a value that is declared sensitive"},
		"so does a template":              {`text = "a${var.hidden}"`, nil, "", "2:8: text would show"},
		"so does a list":                  {`list = ["a", var.hidden]`, nil, "", "2:8: list would show"},
		"so does a number":                {`mix = { login = sensitive(1) }`, nil, "", "2:9: mix: login would show"},
		"so does a map":                   {`set = { a = var.hidden }`, nil, "", "2:7: set would show"},
		"so do ports":                     {`ports = { 80 = sensitive(80) }`, nil, "", "2:9: ports would show"},
		"environment from env":            {`env = { A = env("PW") }`, func(t thing) secret.String { return t.Hidden["A"] }, "", ""},
		"environment sensitive":           {`env = { A = var.hidden }`, func(t thing) secret.String { return t.Hidden["A"] }, "", ""},
		"environment named like a secret": {`env = { A_PASSWORD = "hunter2" }`, func(t thing) secret.String { return t.Hidden["A_PASSWORD"] }, "2:9: warning: A_PASSWORD is written in the file", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := decode(w, attrs(c.attrs)+declared)
			text := hclfile.Render(warnings)
			if err != nil {
				text += err.Error()
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("a message shows the secret:\n%s", text)
			}
			wrong := c.refused
			if wrong == "" {
				wrong = c.warning
			}
			if (err != nil) != (c.refused != "") || (len(warnings) > 0) != (c.warning != "") || !strings.Contains(text, wrong) {
				t.Fatalf("want %q, got:\n%s", wrong, text)
			}
			if c.secret != nil && !strings.HasSuffix(c.secret(got).Reveal(), "hunter2") {
				t.Errorf("the secret did not arrive")
			}
			for _, shown := range got.Env {
				if strings.Contains(shown, "hunter2") {
					t.Error("the secret is among the values that may be shown")
				}
			}
		})
	}
}

func TestLiteralDefaultOfASensitiveVariable(t *testing.T) {
	src := attrs("pin = var.pw") + "variable \"pw\" {\n  sensitive = true\n  default = \"hunter2\"\n}\n"
	_, warnings, err := decode(world{}, src)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Problem, `variable "pw" is sensitive`) {
		t.Fatalf("got %v, %v", warnings, err)
	}
	if strings.Contains(hclfile.Render(warnings), "hunter2") {
		t.Error("the warning shows the secret")
	}
}

func TestFaults(t *testing.T) {
	w := world{
		env:   map[string]string{"PW": "hunter2", "BENCHCTL_VAR_num": "many"},
		files: map[string]string{"dir/binary": "\xff\xfe"},
	}
	for name, c := range map[string]struct {
		src, want, hint string
	}{
		"unknown attribute":              {attrs(`txt = "a"`), `a.hcl:2:1: unknown attribute "txt" in the thing`, `Did you mean "text"?`},
		"unknown block at the top":       {"scenaro \"x\" {}", `a.hcl:1:1: unknown block "scenaro"`, `Did you mean "scenario"?`},
		"block where none is":            {attrs("foo {}"), `the thing holds no blocks`, "Attributes: text"},
		"attribute as a block":           {attrs("env {}"), `env is an attribute in the thing, no block`, "Write env = "},
		"attribute at the top":           {`text = "a"`, `a.hcl:1:1: attribute "text" stands outside of any block`, "blocks: target"},
		"block as an attribute":          {`scenario = {}`, `attribute "scenario" stands outside`, `scenario … { }`},
		"unclosed block":                 {"scenario \"x\" {", `a.hcl:1:14: unclosed configuration block: there is no closing brace`, ""},
		"unclosed text":                  {attrs(`text = "a`), `a.hcl:2:10: invalid multi-line string`, ""},
		"twice":                          {attrs("text = \"a\"\ntext = \"b\""), `a.hcl:3:1: attribute redefined`, ""},
		"no text":                        {attrs(`text = ["a"]`), `text takes a text, not a list`, "in quotes"},
		"no number":                      {attrs(`count = "many"`), `count takes a number, not a text`, "without quotes"},
		"no truth":                       {attrs(`on = "maybe"`), `on takes true or false, not a text`, "true or false"},
		"no list of numbers":             {attrs(`steps = ["a"]`), `a.hcl:2:10: steps takes a list of numbers, and a text is in it`, ""},
		"null in a list of numbers":      {attrs(`steps = [null]`), `null is no number`, ""},
		"null in a list":                 {attrs(`list = ["a", null]`), `a.hcl:2:14: list: null is no text`, ""},
		"no map":                         {attrs(`env = "a"`), `env takes a map, not a text`, "NAME ="},
		"map of maps":                    {attrs(`env = { A = {} }`), `a.hcl:2:9: env: A takes a text, not a map`, ""},
		"bad name in a map":              {attrs(`env = { "A B" = "x" }`), `"A B" is no name of an environment variable`, ""},
		"number too small":               {attrs(`count = 0`), `count takes a whole number from 1 to 5, not 0`, ""},
		"half a number":                  {attrs(`count = 1.5`), `count takes a whole number from 1 to 5, not 1.5`, ""},
		"number beyond all":              {attrs(`big = 1e30`), `not 1e+30`, ""},
		"number too large":               {attrs(`share = 1e400`), `share takes a number from 0 to 2, not 1e+400`, ""},
		"number beyond evaluation":       {attrs(`text = 1 + 1e99999999`), `a.hcl:2:12: no attribute takes a number of this size`, ""},
		"weight of nothing":              {attrs(`mix = { login = 0 }`), `a.hcl:2:9: mix: login takes a number above 0, not 0`, ""},
		"duration without unit":          {attrs(`wait = 30`), `wait: "30" is no duration`, `"30s"`},
		"negative duration":              {attrs(`wait = "-1s"`), `wait: "-1s" is not from 0s to 1h`, ""},
		"size that is none":              {attrs(`room = "big"`), `room: "big" is no size`, `"2g"`},
		"size without unit":              {attrs(`room = "2"`), `room: "2" is too little`, "unit"},
		"port out of range":              {attrs(`ports = { 80 = 70000 }`), `ports: "80" = "70000" is no pair of ports`, ""},
		"port that is none":              {attrs(`ports = { http = 80 }`), `is no pair of ports`, ""},
		"word without quotes":            {attrs(`text = auto`), `a.hcl:2:8: auto is no value`, `in quotes: "auto"`},
		"var alone":                      {attrs(`text = var`), `var alone is no value`, "var.NAME"},
		"unknown variable":               {attrs(`text = var.regin`) + `variable "region" { default = "" }`, `unknown variable "regin"`, `Did you mean "region"?`},
		"unknown local":                  {attrs(`text = local.x`), `unknown local "x"`, "no locals"},
		"variable without a value":       {attrs(`text = var.x`) + `variable "x" {}`, `a.hcl:2:8: variable "x" has no value`, "-var x=VALUE or BENCHCTL_VAR_x=VALUE"},
		"variable of another type":       {attrs(`count = var.num`) + `variable "num" { default = 1 }`, `a.hcl:4:1: variable "num": a number is required`, "BENCHCTL_VAR_num"},
		"variable twice":                 {"variable \"x\" {}\nvariable \"x\" {}", `a.hcl:2:1: variable "x" is declared twice, first at dir/a.hcl:1`, ""},
		"variable without a name":        {`variable {}`, `a.hcl:1:1: variable needs a label`, `variable "NAME"`},
		"variable with two names":        {`variable "a" "b" {}`, `a.hcl:1:14: variable has a label too many`, ""},
		"variable in a default":          {attrs("text = var.x") + `variable "x" { default = var.y }`, `unknown variable "y"`, ""},
		"variable with a type":           {`variable "x" { type = "string" }`, `unknown attribute "type" in variable "x"`, "default"},
		"local twice":                    {"locals { a = 1 }\nlocals { a = 2 }", `a.hcl:2:10: local "a" is declared twice`, ""},
		"locals with a label":            {`locals "x" {}`, `locals takes no label`, ""},
		"locals in a circle":             {attrs("text = local.a") + "locals {\na = local.b\nb = local.a\n}", `local "a" refers to itself: a (dir/a.hcl:5) → b (dir/a.hcl:6) → a`, ""},
		"unknown function":               {attrs(`text = uper("a")`), `a.hcl:2:8: unknown function "uper"`, `Did you mean "upper"?`},
		"function without an argument":   {attrs(`text = upper()`), `not enough function arguments`, ""},
		"env that is not set":            {attrs(`text = env("NONE")`), `a.hcl:2:8: env: environment variable "NONE" is not set`, "export NONE=…"},
		"env with two defaults":          {attrs(`text = env("NONE", "a", "b")`), `env: takes a name and at most one default`, ""},
		"file that is not there":         {attrs(`text = file("none")`), `a.hcl:2:8: file: dir/none cannot be read: file does not exist`, "relative to the folder of dir/a.hcl"},
		"file that is no text":           {attrs(`text = file("binary")`), `dir/binary is no UTF-8 text`, ""},
		"outside value of a wrong kind":  {attrs(`wait = env("PW")`), `wait: the given value is no duration`, ""},
		"outside number of a wrong kind": {attrs(`count = env("PW")`), `count takes a number, not a text`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decode(w, c.src)
			var e *hclfile.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, c.hint) {
				t.Errorf("want %q and %q, got:\n%s", c.want, c.hint, text)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a message shows an outside value:\n%s", err)
			}
			for _, d := range e.Diagnostics {
				if !strings.HasPrefix(d.String(), "dir/a.hcl:") || d.Line == 0 {
					t.Errorf("no file and line: %s", d)
				}
			}
		})
	}
}

func TestUnknownFlagVariable(t *testing.T) {
	_, _, err := decode(world{vars: map[string]string{"iamge": "x"}}, `variable "image" { default = "" }`)
	if err == nil || !strings.Contains(err.Error(), "-var iamge: there is no variable of that name") || !strings.Contains(err.Error(), `Did you mean "image"?`) {
		t.Errorf("got %v", err)
	}
}

func TestLenient(t *testing.T) {
	src := attrs(`text = "${env("NONE")}-${var.x}-${local.l}"`) + "variable \"x\" {}\nlocals { l = env(\"OTHER\") }"
	got, warnings, err := decode(world{lenient: true}, src)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 3 || got.Text != "" {
		t.Errorf("got %q, %s", got.Text, hclfile.Render(warnings))
	}
	for _, d := range warnings {
		if !d.Unset || d.Severity != hclfile.SeverityWarning {
			t.Errorf("not an unset warning: %s", d)
		}
	}
	if _, _, err := decode(world{lenient: true}, attrs(`text = file("none")`)); err == nil {
		t.Error("a file that is not there is forgiven")
	}
}

func TestChildOverridesWhatItGives(t *testing.T) {
	report := &hclfile.Report{}
	f := hclfile.Parse("a.hcl", []byte("scenario \"a\" {\n  text = \"a\"\n  count = 2\n  env = { A = \"1\", B = \"2\" }\n}\nscenario \"b\" {\n  text = \"b\"\n  count = null\n  env = { B = null, C = \"3\" }\n}"), report)
	scope := hclfile.NewScope(nil, world{}.options(), report)
	places := hclfile.Places{}
	var got thing
	for level, b := range f.Body.Blocks {
		d := &hclfile.Decoder{File: f, Scope: scope, Report: report, Places: places, Level: level}
		hclfile.Decode(d, "x", "the thing", b.Body, thingAttrs, nil, &got)
	}
	if _, err := report.Result(); err != nil {
		t.Fatal(err)
	}
	if got.Text != "b" || got.Count != 2 || len(got.Env) != 2 || got.Env["A"] != "1" || got.Env["C"] != "3" {
		t.Errorf("got %+v", got)
	}
	if p := places["x/text"]; p.String() != "a.hcl:7:10" || p.Level != 1 {
		t.Errorf("text stands at %s, level %d", p, p.Level)
	}
	if p := places["x/count"]; p.String() != "a.hcl:3:11" || p.Level != 0 {
		t.Errorf("count stands at %s, level %d", p, p.Level)
	}
	if at := places.Find("x/text/deeper"); at.Start.Line != 7 {
		t.Errorf("the place around is %v", at)
	}
	places.Forget("x")
	if len(places) != 0 {
		t.Errorf("left over: %v", places)
	}
}
