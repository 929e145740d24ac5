package report

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
)

// compareSecrets lets cmp look at settings that hold secrets.
var compareSecrets = cmp.Comparer(func(a, b secret.String) bool { return a.Reveal() == b.Reveal() })

func campaign() Campaign {
	return Campaign{
		Schema: CampaignSchema, Scenario: "baseline", Started: started, Ended: started.Add(time.Hour),
		Verdict: loadtest.Failed, Reasons: []string{"userinfo: failed"},
		Planned: []PlannedRun{
			{Number: 1, Test: "login", Reset: "restart", File: "01-login.json"},
			{Number: 2, Test: "userinfo", Reset: "restart", File: "02-userinfo.json"},
		},
		Fingerprint: Fingerprint{
			Tool:       Tool{Version: "0.1.0"},
			Target:     Host{Name: "sut", Hostname: "bench1", OS: "Red Hat Enterprise Linux 9.5", CPUs: 8, MemoryBytes: 32 << 30},
			Components: []Component{{Name: "postgresql", Image: "docker.io/library/postgres:17", StandIn: true, Settings: map[string]string{"POSTGRES_PASSWORD": secret.Redacted}}},
			StandIn:    true, Dataset: Dataset{Template: "baseline", Size: "M", Realms: 5, Clients: 100, Users: 1000, Digest: "0123456789abcdef0123456789abcdef", Hash: "argon2:t=5,m=7168,p=1", HashedHere: true, Pool: 100},
			HashPolicy: "argon2:t=5,m=7168,p=1",
			Overrides:  []string{"-cpus auto", "-scale 0.05"},
		},
	}
}

// filled writes the two runs of campaign() into a new folder below t's own.
func filled(t *testing.T) *Folder {
	t.Helper()
	f, err := Create(t.TempDir(), "baseline", started)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteCampaign(campaign()); err != nil {
		t.Fatal(err)
	}
	for i, r := range []*loadtest.Result{loginRun(), userinfoRun()} {
		r.Histograms = map[string][]byte{"iterations/response": []byte("HISTFAAA")}
		err := f.WriteRun(RunFiles{
			Number: i + 1, Result: r, Samples: samples(),
			Components: campaign().Fingerprint.Components,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestFolderRoundTrip(t *testing.T) {
	f := filled(t)
	if want := "20261130T221500Z-baseline"; filepath.Base(f.Dir()) != want {
		t.Errorf("folder %s, want %s", filepath.Base(f.Dir()), want)
	}
	err := f.WriteLog(1, "login", 0, "keycloak-server-1", func(w io.Writer) error {
		_, err := io.WriteString(w, "started\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	c := campaign()
	want := []Results{{Dir: f.Dir(), Campaign: &c, Runs: []Run{
		{Path: filepath.Join(f.Dir(), "01-login.json"), Number: 1, Result: loginRun()},
		{Path: filepath.Join(f.Dir(), "02-userinfo.json"), Number: 2, Result: userinfoRun()},
	}}}
	if diff := cmp.Diff(want, got, compareSecrets); diff != "" {
		t.Fatalf("read back (-want +got):\n%s", diff)
	}
	series, err := got[0].Runs[0].Samples()
	if diff := cmp.Diff(samples(), series); err != nil || diff != "" {
		t.Errorf("samples: %v (-want +got):\n%s", err, diff)
	}
	h, err := got[0].Runs[0].Histograms()
	if err != nil || string(h["iterations/response"]) != "HISTFAAA" {
		t.Errorf("histograms: %v, %v", h, err)
	}
	log, err := os.ReadFile(filepath.Join(f.Dir(), "01-login.logs", "keycloak-server-1.log"))
	if err != nil || string(log) != "started\n" {
		t.Errorf("log: %q, %v", log, err)
	}
	settings, err := os.ReadFile(filepath.Join(f.Dir(), "01-login.settings.json"))
	if err != nil || !strings.Contains(string(settings), secret.Redacted) {
		t.Errorf("settings in force: %s, %v", settings, err)
	}
	left, err := filepath.Glob(filepath.Join(f.Dir(), ".writing*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	info, err := os.Stat(filepath.Join(f.Dir(), "01-login.json"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode of a result: %v, %v", info.Mode(), err)
	}
}

func TestResultsAreNeverWrittenOver(t *testing.T) {
	parent := t.TempDir()
	for _, want := range []string{"20261130T221500Z-demo", "20261130T221500Z-demo-2", "20261130T221500Z-demo-3"} {
		f, err := Create(parent, "demo", started)
		if err != nil || filepath.Base(f.Dir()) != want {
			t.Fatalf("folder %v, %v, want %s", f, err, want)
		}
	}
	f := filled(t)
	if err := f.WriteRun(RunFiles{Number: 1, Result: loginRun()}); err == nil || !strings.Contains(err.Error(), "never written over") {
		t.Errorf("a second run of the same name: %v", err)
	}
	if _, err := CreateAt(f.Dir()); err == nil || !strings.Contains(err.Error(), "holds results already (01-login.json)") {
		t.Errorf("a folder with results was taken: %v", err)
	}
	free := filepath.Join(t.TempDir(), "a", "b")
	if _, err := CreateAt(free); err != nil {
		t.Errorf("a new folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(free, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateAt(free); err != nil {
		t.Errorf("a folder with other files: %v", err)
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	f := filled(t)
	bad := loginRun()
	bad.Test.Name, bad.MeasuredS = "bad", math.NaN()
	if err := f.WriteRun(RunFiles{Number: 3, Result: bad}); err == nil {
		t.Error("a result that JSON can't hold was written")
	}
	boom := errors.New("the target is gone")
	err := f.WriteLog(1, "login", 0, "traefik", func(w io.Writer) error {
		if _, err := io.WriteString(w, "half a li"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("error: got %v, want %v", err, boom)
	}
	var files []string
	err = filepath.WalkDir(f.Dir(), func(path string, d os.DirEntry, err error) error {
		if name := d.Name(); strings.Contains(name, "bad") || strings.Contains(name, "traefik") || strings.HasPrefix(name, ".") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestBaseName(t *testing.T) {
	for _, tt := range []struct {
		number int
		test   string
		repeat int
		want   string
	}{
		{1, "login", 0, "01-login"},
		{12, "userinfo", 3, "12-userinfo-3"},
		{100, "x", 0, "100-x"},
		{1, "../../etc/pass wd", 0, "01-______etc_pass_wd"},
		{1, "", 0, "01-run"},
		{1, "käse.settings", 1, "01-k_se_settings-1"},
		{1, strings.Repeat("a", 300), 0, "01-" + strings.Repeat("a", 60)},
	} {
		got := BaseName(tt.number, tt.test, tt.repeat)
		if got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		if !runFile.MatchString(got + ".json") {
			t.Errorf("%s.json is not known as a run's file", got)
		}
		if runFile.MatchString(got + settingsSuffix) {
			t.Errorf("%s is taken for a run's file", got+settingsSuffix)
		}
	}
}

func TestLoadTakesAnyMix(t *testing.T) {
	a, b := filled(t), filled(t)
	parent := filepath.Dir(b.Dir())
	// A campaign that was killed before its first run ended.
	cut, err := Create(parent, "cut", started.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := cut.WriteCampaign(campaign()); err != nil {
		t.Fatal(err)
	}
	// What else lies about is passed over.
	for _, name := range []string{".writing-123", "report.json", "01-login.settings.json"} {
		if err := os.WriteFile(filepath.Join(b.Dir(), name), []byte("{half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(f *Folder, name string) string { return filepath.Join(f.Dir(), name) }
	for _, tt := range []struct {
		name string
		args []string
		want []string // folder: files
	}{
		{"a folder", []string{a.Dir()}, []string{a.Dir() + ": 01-login 02-userinfo"}},
		{"one file", []string{in(a, "02-userinfo.json")}, []string{a.Dir() + ": 02-userinfo"}},
		{"files in the wrong order", []string{in(a, "02-userinfo.json"), in(a, "01-login.json")}, []string{a.Dir() + ": 01-login 02-userinfo"}},
		{"the same twice", []string{a.Dir(), in(a, "01-login.json"), a.Dir() + "/."}, []string{a.Dir() + ": 01-login 02-userinfo"}},
		{"folder of folders", []string{parent}, []string{b.Dir() + ": 01-login 02-userinfo", cut.Dir() + ":"}},
		{"campaign.json stands for its folder", []string{in(a, CampaignFile)}, []string{a.Dir() + ": 01-login 02-userinfo"}},
		{"a mix", []string{in(a, "01-login.json"), b.Dir()}, []string{a.Dir() + ": 01-login", b.Dir() + ": 01-login 02-userinfo"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results, err := Load(tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range results {
				if r.Campaign == nil || r.Campaign.Scenario != "baseline" {
					t.Errorf("%s: campaign %+v", r.Dir, r.Campaign)
				}
				line := r.Dir + ":"
				for _, run := range r.Runs {
					line += " " + strings.TrimSuffix(filepath.Base(run.Path), ".json")
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	results, err := Load(cut.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(campaign().Planned, results[0].Missing()); diff != "" {
		t.Errorf("missing runs (-want +got):\n%s", diff)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, err := encodeJSON(loginRun())
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	edit := func(old, now string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("the fixture has no %s", old)
		}
		return strings.Replace(string(good), old, now, 1)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"not there", filepath.Join(dir, "gone"), "no such file"},
		{"empty folder", empty, "no results in this folder"},
		{"cut off", write("a/01-login.json", string(good[:200])), "01-login.json:10:17: unexpected end"},
		{"wrong token", write("b/01-login.json", edit(`"measured_s": 600`, `"measured_s": ,`)), "invalid character ','"},
		{"wrong type", write("c/01-login.json", edit(`"measured_s": 600`, `"measured_s": "600"`)), "cannot unmarshal string"},
		{"empty file", write("d/01-login.json", " \n"), "01-login.json:1: the file is empty"},
		{"later schema", write("e/01-login.json", edit("benchctl.run/1", "benchctl.run/2")), `written by another version of benchctl: schema "benchctl.run/2"`},
		{"other file", write("f/01-login.json", `{"metrics": {}}`), `not a file of benchctl's results`},
		{"a campaign as a run", write("g/01-login.json", `{"schema": "benchctl.campaign/1"}`), `schema is "benchctl.campaign/1", want "benchctl.run/1"`},
		{"verdict", write("h/01-login.json", edit(`"verdict": "passed"`, `"verdict": "great"`)), `the verdict is "great"`},
		{"no iterations", write("i/01-login.json", `{"schema": "benchctl.run/1", "verdict": "passed"}`), "no figures for iterations"},
		{"a figure beyond reason", write("l/01-login.json", edit(`"measured_s": 600`, `"measured_s": 6e300`)), "measured_s is 6e+300, which no run can have"},
		{"a nested figure beyond reason", write("m/01-login.json", edit(`"cpu_s": 9.87`, `"cpu_s": -1e300`)), "engine.cpu_s is -1e+300"},
		{"null operation", write("j/01-login.json", edit(`"operations": {`, `"operations": {"x": null,`)), `operation "x" has no figures`},
		{"campaign", write("k/campaign.json", "{\n  \"schema\": 7\n}"), "campaign.json:2:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(tt.path)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error: got %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestReadHistogramsSaysWhatIsWrong(t *testing.T) {
	zip := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, tt := range []struct {
		name string
		text []byte
		want string
	}{
		{"not gzip", []byte("plainly no gzip file"), "gzip: invalid header"},
		{"cut off", zip(`{"schema":"benchctl.hdr/1"}`)[:20], "unexpected EOF"},
		{"not JSON", zip("x"), "invalid character"},
		{"other schema", zip(`{"schema":"benchctl.hdr/2"}`), "another version of benchctl"},
	} {
		if _, err := readHistograms(bytes.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// FuzzDecodeRun feeds the reader with whatever a file may hold: it must
// answer with an error or with a result that can be shown and written again.
func FuzzDecodeRun(f *testing.F) {
	for _, r := range []*loadtest.Result{loginRun(), userinfoRun(), ladderRun()} {
		text, err := encodeJSON(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Add([]byte(`{"schema":"benchctl.run/1","verdict":"failed","iterations":{},"steps":[{"iterations":{}}],"test":{"warm_up_s":1e300}}`))
	f.Add([]byte(`{"schema":"benchctl.run/1","verdict":"failed","iterations":{},"series":[{"t":-1e308,"phase":"x"},{"t":1e308},{"t":1}]}`))
	f.Add([]byte(`{"schema":"benchctl.run/1","verdict":"failed","iterations":{},"operations":{"\u001b[2J":{"phases_ms":{"waiting":{"mean":1e308},"sending":{"mean":1e308}}}}}`))
	f.Add([]byte(`{"schema":"benchctl.run/1","verdict":"failed","iterations":{"response_ms":{"p50":1e308}},"measured_s":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeRun(text)
		if err != nil {
			return
		}
		results := []Results{{Dir: "d", Runs: []Run{{Result: r}}}}
		for _, format := range Formats() {
			var out strings.Builder
			if err := format.Write(&out, results, Options{Width: 80}); err != nil {
				t.Fatalf("%s: %v", format.Name, err)
			}
			if format.Name != "csv" && strings.ContainsRune(out.String(), 0x1b) {
				t.Errorf("%s: an escape sequence got through: %q", format.Name, out.String())
			}
		}
		again, err := encodeJSON(r)
		if err != nil {
			t.Fatalf("can't be written again: %v", err)
		}
		if _, err := decodeRun(again); err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
	})
}

// FuzzReadHistograms does the same to histogram files.
func FuzzReadHistograms(f *testing.F) {
	var b bytes.Buffer
	if err := writeHistograms(&b, map[string][]byte{"token/response": []byte("HISTFAAA")}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := readHistograms(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeHistograms(&again, h); err != nil {
			t.Fatal(err)
		}
	})
}
