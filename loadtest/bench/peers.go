package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
)

// task is what a peer is to do, and how it was found.
type task struct {
	url, header string
	duration    time.Duration
	program     string // what is run
	dir         string // for files of its own
}

// peer is another generator.
type peer struct {
	name  string
	find  func(ctx context.Context) (program string, err error)
	args  func(t task) []string
	stdin func(t task) string // nil for none
	// done reads how many requests were answered rightly out of what the
	// program printed.
	done func(ctx context.Context, t task, output string) (int64, error)
}

// cost is the CPU time of a request in µs.
func (p *peer) cost(ctx context.Context, t task) (_ float64, err error) {
	if t.dir, err = os.MkdirTemp("", "bench-peer-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(t.dir) }() // in the folder for temporary files
	c := pinned(ctx, generatorCore, t.program, p.args(t)...)
	if p.stdin != nil {
		c.Stdin = strings.NewReader(p.stdin(t))
	}
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("running %s: %w: %s", p.name, err, tail(complaints.String()+string(out)))
	}
	n, err := p.done(ctx, t, string(out))
	if err != nil {
		return 0, err
	}
	return perRequest(c.ProcessState.UserTime()+c.ProcessState.SystemTime(), n), nil
}

// tail is the end of a text, in one line.
func tail(text string) string {
	const enough = 300
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[max(0, len(text)-enough):], "")
}

// onPath finds an installed program; from says where it comes from.
func onPath(name, from string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		program, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("it is not installed (%s)", from)
		}
		return program, nil
	}
}

// count reads a number out of a text report, unless one of the marks of
// failure stands in it.
func count(pattern string, failures ...string) func(context.Context, task, string) (int64, error) {
	re := regexp.MustCompile(pattern)
	return func(_ context.Context, _ task, output string) (int64, error) {
		for _, mark := range failures {
			if i := strings.Index(output, mark); i >= 0 {
				return 0, fmt.Errorf("not every request was answered: %s", tail(output[i:]))
			}
		}
		m := re.FindStringSubmatch(output)
		if m == nil {
			return 0, fmt.Errorf("no number of requests in %q", tail(output))
		}
		return strconv.ParseInt(m[1], 10, 64)
	}
}

func withHeader(args []string, header string) []string {
	if header == "" {
		return args
	}
	return append([]string{"-H", header}, args...)
}

var wrk = peer{
	name: "wrk", find: onPath("wrk", "package wrk"), done: count(`(\d+) requests in`, "Non-2xx", "Socket errors"),
	args: func(t task) []string {
		return withHeader([]string{"-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", int(t.duration.Seconds())), t.url}, t.header)
	},
}

var hey = peer{
	name: "hey", find: onPath("hey", "package hey"), done: count(`\[200\]\s+(\d+) responses`, "Error distribution"),
	args: func(t task) []string {
		return withHeader([]string{"-c", strconv.Itoa(connections), "-z", t.duration.String(), t.url}, t.header)
	},
}

// vegetaModule is what the Go toolchain builds where vegeta is not installed.
const vegetaModule = "github.com/tsenart/vegeta/v12@v12.13.0"

var vegeta = peer{
	name: "vegeta",
	find: func(ctx context.Context) (string, error) {
		if program, err := exec.LookPath("vegeta"); err == nil {
			return program, nil
		}
		return builtPeer(ctx, "vegeta", vegetaModule)
	},
	args: func(t task) []string {
		return []string{"attack", "-rate", strconv.Itoa(openRate), "-duration", t.duration.String(), "-max-workers", strconv.Itoa(connections), "-output", filepath.Join(t.dir, "results")}
	},
	stdin: func(t task) string { return "GET " + t.url + "\n" + t.header + "\n" },
	// Its report is a process of its own, whose time does not count.
	done: func(ctx context.Context, t task, _ string) (int64, error) {
		out, err := exec.CommandContext(ctx, t.program, "report", "-type", "json", filepath.Join(t.dir, "results")).Output()
		if err != nil {
			return 0, fmt.Errorf("running vegeta report: %w", err)
		}
		return vegetaRequests(out)
	},
}

// vegetaRequests reads vegeta's report in JSON.
func vegetaRequests(report []byte) (int64, error) {
	var r struct {
		Requests int64
		Success  float64
		Errors   []string
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return 0, fmt.Errorf("reading vegeta's report: %w", err)
	}
	if r.Requests == 0 || r.Success < 1 {
		return 0, fmt.Errorf("not every request was answered: %.3g of %d; %s", r.Success, r.Requests, tail(strings.Join(r.Errors, "; ")))
	}
	return r.Requests, nil
}

// builtPeer builds a Go program once, into the user's folder for caches.
func builtPeer(ctx context.Context, name, module string) (string, error) {
	toolchain, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("it is not installed, and there is no Go toolchain to build it (go install %s)", module)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a folder for %s: %w", name, err)
	}
	_, version, _ := strings.Cut(module, "@")
	dir := filepath.Join(cache, "benchctl-bench", name+"-"+version)
	program := filepath.Join(dir, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	c := exec.CommandContext(ctx, toolchain, "install", module)
	c.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=") // this module's build tags are not for it
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s: %w: %s", module, err, tail(string(out)))
	}
	return program, nil
}

// loginScript is the flow login in k6's words.
//
//go:embed login.k6.js
var loginScript string

var k6 = peer{
	name: "k6",
	find: func(context.Context) (string, error) {
		program, err := exec.LookPath("k6")
		if err != nil {
			return "", errors.New("it is not installed (GOFLAGS= go install go.k6.io/k6@v1.8.1, AGPL: it is measured, never linked)")
		}
		return program, nil
	},
	args: func(t task) []string {
		args := []string{"run", "--quiet", "--no-usage-report", "--no-color"}
		for name, value := range map[string]string{
			"URL": t.url, "VUS": strconv.Itoa(connections), "DURATION": t.duration.String(), "REALM": benchRealm,
			"CLIENT": dataset.ClientID(0), "SECRET": dataset.ClientSecret(dataset.DefaultSeed, benchRealm, dataset.ClientID(0)),
			"USER_NAME": dataset.UserName(0), "PASSWORD": dataset.Password(dataset.DefaultSeed, benchRealm, dataset.UserName(0), false),
		} {
			args = append(args, "-e", name+"="+value)
		}
		return append(args, "-")
	},
	stdin: func(task) string { return loginScript },
	// A check that fails is a threshold missed there, which is its exit code.
	done: count(`http_reqs\.*:\s*(\d+)`),
}
