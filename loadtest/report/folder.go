package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// Folder is a results folder that is being written.
type Folder struct {
	dir string
}

// Create makes a new folder <parent>/<UTC time>-<scenario>. If there is one
// of that name, "-2", "-3" … is added: results are never written over.
func Create(parent, scenario string, started time.Time) (*Folder, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("make the results folder: %w", err)
	}
	base := filepath.Join(parent, FolderName(started, scenario))
	dir := base
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			return &Folder{dir: dir}, syncDir(parent)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make the results folder: %w", err)
		}
		dir = fmt.Sprintf("%s-%d", base, n)
	}
}

// CreateAt uses dir, made if it is not there. A folder that holds results
// already is refused.
func CreateAt(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the results folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("make the results folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() == CampaignFile || runFile.MatchString(e.Name()) {
			return nil, fmt.Errorf("%s holds results already (%s), and results are never written over: give another folder or move that one away", dir, e.Name())
		}
	}
	return &Folder{dir: dir}, nil
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// WriteCampaign replaces campaign.json.
func (f *Folder) WriteCampaign(c Campaign) error {
	if c.Schema == "" {
		c.Schema = CampaignSchema
	}
	return writeJSON(filepath.Join(f.dir, CampaignFile), c)
}

// RunFiles is what is kept of one run beside its logs.
type RunFiles struct {
	// Number of the test in its scenario, from 1. Repeat is 0 when the
	// campaign repeats nothing.
	Number, Repeat int
	// Result, with its histograms, which get a file of their own.
	Result *loadtest.Result
	// Samples are the container readings of the run, warm-up and ramps included.
	Samples sut.Series
	// Components are the settings that were in force.
	Components []Component
}

func (r RunFiles) base() string { return BaseName(r.Number, r.Result.Test.Name, r.Repeat) }

// WriteRun keeps one run. The result itself is written first, since it must
// outlive whatever fails later, and all parts are tried.
func (f *Folder) WriteRun(r RunFiles) error {
	base := filepath.Join(f.dir, r.base())
	if _, err := os.Lstat(base + resultSuffix); err == nil {
		return fmt.Errorf("%s is there already, and results are never written over", base+resultSuffix)
	}
	if r.Result.Schema == "" {
		r.Result.Schema = loadtest.Schema
	}
	errs := []error{writeJSON(base+resultSuffix, r.Result)}
	if len(r.Result.Histograms) > 0 {
		errs = append(errs, writeFile(base+histSuffix, func(w io.Writer) error { return writeHistograms(w, r.Result.Histograms) }))
	}
	if len(r.Samples) > 0 {
		errs = append(errs, writeFile(base+samplesSuffix, r.Samples.WriteCSV))
	}
	if len(r.Components) > 0 {
		errs = append(errs, writeJSON(base+settingsSuffix, runSettings{Schema: settingsSchema, Components: r.Components}))
	}
	return errors.Join(errs...)
}

// settingsSchema names the shape of <run>.settings.json.
const settingsSchema = "benchctl.settings/1"

type runSettings struct {
	Schema     string      `json:"schema"`
	Components []Component `json:"components"`
}

// WriteLog keeps a component's log of one run, in <run>.logs/<component>.log.
func (f *Folder) WriteLog(number int, test string, repeat int, component string, copyLog func(io.Writer) error) error {
	dir := filepath.Join(f.dir, BaseName(number, test, repeat)+logsSuffix)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of logs: %w", err)
	}
	return writeFile(filepath.Join(dir, fileSafe(component)+".log"), copyLog)
}

func writeJSON(path string, value any) error {
	// Marshalled as a whole first, so that a value that JSON can't hold
	// leaves no file.
	text, err := encodeJSON(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// encodeJSON gives indented JSON with a newline at its end, and "<" as "<":
// the text is for people too.
func encodeJSON(value any) ([]byte, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return []byte(out.String()), nil
}
