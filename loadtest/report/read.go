package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// Run is one run that was read back.
type Run struct {
	// Path of its JSON file; empty for one that was merged from several.
	Path string
	// Number of the test, from the file's name ("02-userinfo" is 2).
	Number int
	Result *loadtest.Result
}

// base is the path without its ending, which all files of the run share.
func (r Run) base() string { return strings.TrimSuffix(r.Path, resultSuffix) }

// Samples reads the container readings that were kept beside the run; none is
// no error.
func (r Run) Samples() (sut.Series, error) {
	if r.Path == "" {
		return nil, nil
	}
	path := r.base() + samplesSuffix
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read container samples: %w", err)
	}
	defer f.Close()
	s, err := sut.ReadCSV(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Histograms reads the mergeable histograms that were kept beside the run;
// none is no error.
func (r Run) Histograms() (map[string][]byte, error) {
	if r.Path == "" {
		return r.Result.Histograms, nil
	}
	path := r.base() + histSuffix
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read histograms: %w", err)
	}
	defer f.Close()
	h, err := readHistograms(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// Results is what one folder holds, or the run files of it that were named.
type Results struct {
	// Dir is the folder.
	Dir string
	// Campaign is nil for a folder of runs without one.
	Campaign *Campaign
	// Named tells that run files were asked for, not the folder they are in.
	Named bool
	// Runs in the order of their numbers and repeats.
	Runs []Run
}

// Missing are the planned runs of which there is no result.
func (r Results) Missing() []PlannedRun {
	if r.Campaign == nil {
		return nil
	}
	have := map[string]bool{}
	for _, run := range r.Runs {
		have[filepath.Base(run.Path)] = true
	}
	var missing []PlannedRun
	for _, p := range r.Campaign.Planned {
		if !have[p.File] {
			missing = append(missing, p)
		}
	}
	return missing
}

// Load reads any mix of run files, folders, and folders of folders. What is
// named twice is read once. Folders come in the order of the arguments, those
// of a folder of folders by name.
func Load(paths ...string) ([]Results, error) {
	l := loader{seen: map[string]bool{}}
	for _, path := range paths {
		if err := l.add(path); err != nil {
			return nil, err
		}
	}
	return l.results, nil
}

type loader struct {
	results []Results
	seen    map[string]bool
}

func (l *loader) add(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	if !info.IsDir() {
		return l.addFile(path)
	}
	found, err := l.addDir(path)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s: no results in this folder: looked for %s and files like 01-login.json here and in the folders below", path, CampaignFile)
	}
	return nil
}

// first tells whether path, by whatever name, comes for the first time.
func (l *loader) first(path string) (bool, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, fmt.Errorf("read results: %w", err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return false, fmt.Errorf("read results: %w", err)
	}
	if l.seen[real] {
		return false, nil
	}
	l.seen[real] = true
	return true, nil
}

func (l *loader) addFile(path string) error {
	if filepath.Base(path) == CampaignFile {
		_, err := l.addDir(filepath.Dir(path))
		return err
	}
	fresh, err := l.first(path)
	if err != nil || !fresh {
		return err
	}
	run, err := readRun(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	for i := range l.results {
		if l.results[i].Dir == dir {
			l.results[i].Runs = append(l.results[i].Runs, run)
			sortRuns(l.results[i].Runs)
			return nil
		}
	}
	campaign, err := readCampaign(dir)
	if err != nil {
		return err
	}
	l.results = append(l.results, Results{Dir: dir, Campaign: campaign, Named: true, Runs: []Run{run}})
	return nil
}

// addDir reads the runs of a folder, then the folders below it, and tells
// whether there was anything to read.
func (l *loader) addDir(dir string) (found bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, fmt.Errorf("read results: %w", err)
	}
	var below []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if !strings.HasSuffix(e.Name(), logsSuffix) {
				below = append(below, path)
			}
		case e.Name() == CampaignFile:
			found = true
			if err := l.addCampaign(dir, path); err != nil {
				return false, err
			}
		case runFile.MatchString(e.Name()):
			found = true
			if err := l.addFile(path); err != nil {
				return false, err
			}
		}
	}
	for _, path := range below {
		more, err := l.addDir(path)
		if err != nil {
			return false, err
		}
		found = found || more
	}
	return found, nil
}

// addCampaign makes room for a folder even if no run of it was finished.
func (l *loader) addCampaign(dir, path string) error {
	fresh, err := l.first(path)
	if err != nil || !fresh {
		return err
	}
	if i := slices.IndexFunc(l.results, func(r Results) bool { return r.Dir == dir }); i >= 0 {
		l.results[i].Named = false
		return nil
	}
	campaign, err := readCampaign(dir)
	if err != nil {
		return err
	}
	l.results = append(l.results, Results{Dir: dir, Campaign: campaign})
	return nil
}

func sortRuns(runs []Run) {
	slices.SortStableFunc(runs, func(a, b Run) int {
		if a.Number != b.Number {
			return a.Number - b.Number
		}
		if a.Result.Repeat != b.Result.Repeat {
			return a.Result.Repeat - b.Result.Repeat
		}
		return strings.Compare(a.Path, b.Path)
	})
}

// readCampaign reads the campaign.json of a folder; nil when there is none.
func readCampaign(dir string) (*Campaign, error) {
	path := filepath.Join(dir, CampaignFile)
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c Campaign
	if err := decode(text, CampaignSchema, &c); err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return &c, nil
}

func readRun(path string) (Run, error) {
	text, err := readFile(path)
	if err != nil {
		return Run{}, err
	}
	r, err := decodeRun(text)
	if err != nil {
		return Run{}, fmt.Errorf("%s:%w", path, err)
	}
	number := 0
	if digits, _, ok := strings.Cut(filepath.Base(path), "-"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n > 0 {
			number = n
		}
	}
	return Run{Path: path, Number: number, Result: r}, nil
}

// verdicts that a result may have.
var verdicts = []loadtest.Verdict{loadtest.Passed, loadtest.Failed, loadtest.Invalid, loadtest.Interrupted}

// decodeRun reads one Result. Fields that it does not know are passed over,
// since later versions add some.
func decodeRun(text []byte) (*loadtest.Result, error) {
	var r loadtest.Result
	if err := decode(text, loadtest.Schema, &r); err != nil {
		return nil, err
	}
	if !slices.Contains(verdicts, r.Verdict) {
		return nil, fmt.Errorf(" the verdict is %q, want one of %q", r.Verdict, verdicts)
	}
	all := []map[string]*loadtest.Operation{r.Operations}
	if r.Whole != nil {
		all = append(all, r.Whole.Operations)
	}
	for _, operations := range all {
		for name, op := range operations {
			if op == nil {
				return nil, fmt.Errorf(" operation %q has no figures", name)
			}
		}
	}
	if r.Iterations == nil {
		return nil, errors.New(" there are no figures for iterations")
	}
	for i, step := range r.Steps {
		if step.Iterations == nil {
			return nil, fmt.Errorf(" step %d has no figures for iterations", i+1)
		}
	}
	if err := plausible("", reflect.ValueOf(r)); err != nil {
		return nil, err
	}
	return &r, nil
}

// decode checks the schema and reads text into value. Its errors begin with
// the line ("14: …") where one is known and with a blank where not, to follow
// the file's name and a colon.
func decode(text []byte, schema string, value any) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return where(text, err)
	}
	if head.Schema != schema {
		return fmt.Errorf(" %w", otherSchema(head.Schema, schema))
	}
	if err := json.Unmarshal(text, value); err != nil {
		return where(text, err)
	}
	return nil
}

func otherSchema(have, want string) error {
	name, _, _ := strings.Cut(want, "/")
	switch {
	case have == "":
		return fmt.Errorf("not a file of benchctl's results: the field %q is missing (want %q)", "schema", want)
	case strings.HasPrefix(have, name+"/"):
		return fmt.Errorf("written by another version of benchctl: schema %q, this one reads %q", have, want)
	}
	return fmt.Errorf("schema is %q, want %q", have, want)
}

// where adds the line and column of a JSON error.
func where(text []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return fmt.Errorf(" %w", err)
	}
	before := text[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("1: the file is empty")
	}
	return fmt.Errorf("%d:%d: %w", line, max(column, 1), err)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: over %d MB, larger than any result that benchctl writes", path, maxFile>>20)
	}
	return text, nil
}
