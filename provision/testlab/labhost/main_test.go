package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	home := t.TempDir()
	env := func(name string) string {
		return map[string]string{"HOME": home, "BENCHCTL_LAB_DIR": filepath.Join(home, "run")}[name]
	}
	tests := []struct {
		name           string
		args           []string
		env            func(string) string
		code           int
		stdout, stderr string
	}{
		{name: "no verb", code: wrongUsage, stderr: "usage: labhost up"},
		{name: "unknown verb", args: []string{"start"}, code: wrongUsage, stderr: `unknown verb "start"`},
		{name: "unknown flag", args: []string{"status", "-pull"}, code: wrongUsage, stderr: "not defined: -pull"},
		{name: "argument", args: []string{"down", "now"}, code: wrongUsage, stderr: "takes no arguments"},
		{name: "no place for the cache", args: []string{"status"}, env: func(string) string { return "" }, code: wrongUsage, stderr: "HOME"},
		{name: "status of no lab", args: []string{"status"}, code: done, stdout: "no lab is up"},
		{name: "status for a machine", args: []string{"status", "-json"}, code: done, stdout: `"up": false`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.env == nil {
				tt.env = env
			}
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tt.args, tt.env, &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.stdout) || tt.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout: %q", stdout.String())
			}
			if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr: %q", stderr.String())
			}
		})
	}
}
