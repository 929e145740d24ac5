package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/benchctl/benchctl/loadtest"
)

// exportApp is an app whose environment holds one secret.
func exportApp(stderr io.Writer) *app {
	return &app{
		stderr: stderr, now: time.Now,
		environ: func(name string) (string, bool) { return "from-env", name == "TOKEN" },
		log:     &logrus.Logger{Out: stderr, Formatter: &logrus.TextFormatter{DisableColors: true}, Hooks: make(logrus.LevelHooks), Level: logrus.WarnLevel},
	}
}

// parsedExport gives the flags of a command line.
func parsedExport(t *testing.T, args ...string) *exportFlags {
	t.Helper()
	var f exportFlags
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	f.register(fs)
	if _, err := parseFlags(fs, args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestExportFlagNames(t *testing.T) {
	var f exportFlags
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	f.register(fs)
	var got []string
	fs.VisitAll(func(g *flag.Flag) { got = append(got, g.Name) })
	want := slices.Sorted(slices.Values(exportFlagNames))
	if !slices.Equal(got, want) {
		t.Errorf("declared %v, named %v", got, want)
	}
}

func TestExportFlagsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"format alone":  {[]string{"-statsd-format", "dogstatsd"}, "need -statsd"},
		"prefix alone":  {[]string{"-statsd-prefix", "x"}, "need -statsd"},
		"tag alone":     {[]string{"-tag", "a=b"}, "-tag needs"},
		"tag":           {[]string{"-prometheus", "127.0.0.1:0", "-tag", "ab"}, "NAME=VALUE"},
		"tag twice":     {[]string{"-prometheus", "127.0.0.1:0", "-tag", "a=b", "-tag", "a=c"}, "twice"},
		"address":       {[]string{"-statsd", "nowhere"}, "missing port"},
		"no such env":   {[]string{"-remote-write", "http://h/w", "-remote-write-token", "env:NOTHING"}, "NOTHING is not set"},
		"no such file":  {[]string{"-remote-write", "http://h/w", "-remote-write-user", "u", "-remote-write-password", "file:/nowhere"}, "/nowhere"},
		"token alone":   {[]string{"-remote-write-token", "env:TOKEN"}, "no URL"},
		"secret in URL": {[]string{"-remote-write", "http://u:hunter2@h/w"}, "would show"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parsedExport(t, c.args...).start(t.Context(), exportApp(io.Discard), "s")
			var usage usageError
			if e != nil || !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, wanted %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a password shows: %v", err)
			}
		})
	}
}

func TestNoExportFlagsNoExporter(t *testing.T) {
	e, err := parsedExport(t).start(t.Context(), exportApp(io.Discard), "s")
	if e != nil || err != nil {
		t.Errorf("got %v, %v", e, err)
	}
}

func TestExportFlagsAreTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c, err := parsedExport(t, "-statsd", "127.0.0.1:8125", "-statsd-format", "dogstatsd", "-statsd-prefix", "lt",
		"-remote-write", "http://h/w", "-remote-write-user", "u", "-remote-write-password", "file:"+path, "-tag", "a=b=c").config(exportApp(&out), "s")
	if err != nil {
		t.Fatal(err)
	}
	if c.Scenario != "s" || c.Tags["a"] != "b=c" || c.StatsD.Format != "dogstatsd" || c.StatsD.Prefix != "lt" ||
		c.RemoteWrite.User != "u" || c.RemoteWrite.Password.Reveal() != "from-file" {
		t.Errorf("got %+v", c)
	}
	if c, err = parsedExport(t, "-remote-write", "http://h/w", "-remote-write-token", "env:TOKEN").config(exportApp(&out), "s"); err != nil || c.RemoteWrite.Token.Reveal() != "from-env" {
		t.Errorf("got %+v, %v", c, err)
	}
	if out.Len() > 0 {
		t.Errorf("said: %s", &out)
	}
}

func TestExportWarningsGoToTheLog(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // nobody is there
	var out bytes.Buffer
	e, err := parsedExport(t, "-prometheus", "127.0.0.1:0", "-remote-write", "http://"+address+"/w").start(t.Context(), exportApp(&out), "s")
	if err != nil {
		t.Fatal(err)
	}
	url := e.ScrapeURL()
	e.BeginTest("t")
	e.Progress(loadtest.Progress{Stage: loadtest.StageLoad, Phase: "steady", Started: 1})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := e.Close(ctx); err == nil {
		t.Error("Close tells of no loss")
	}
	text := out.String()
	if !strings.Contains(text, "Figures for Prometheus: "+url) || strings.Count(text, "level=warning") != 1 || !strings.Contains(text, address) {
		t.Errorf("said:\n%s", text)
	}
}
