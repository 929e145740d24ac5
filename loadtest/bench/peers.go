package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// peer is another generator.
type peer struct {
	name  string
	from  string // where it comes from
	args  func(s *suite, url, header string) []string
	stdin func(url, header string) string
	done  func(s *suite, output string) (int64, error)
}

// cost is the CPU time of a request in µs.
func (p *peer) cost(ctx context.Context, s *suite, url, header string) (float64, error) {
	if _, err := exec.LookPath(p.name); err != nil {
		return 0, fmt.Errorf("it is not installed (%s)", p.from)
	}
	c := pinned(ctx, generatorCore, p.name, p.args(s, url, header)...)
	if p.stdin != nil {
		c.Stdin = strings.NewReader(p.stdin(url, header))
	}
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("running %s: %w", p.name, err)
	}
	n, err := p.done(s, string(out))
	if err != nil {
		return 0, err
	}
	return perRequest(c.ProcessState.UserTime()+c.ProcessState.SystemTime(), n), nil
}

// count reads a number out of a text report.
func count(pattern string) func(*suite, string) (int64, error) {
	re := regexp.MustCompile(pattern)
	return func(_ *suite, output string) (int64, error) {
		m := re.FindStringSubmatch(output)
		if m == nil {
			return 0, fmt.Errorf("no number of requests in %.200q", output)
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

var closedPeers = []peer{
	{
		name: "wrk", from: "package wrk", done: count(`(\d+) requests in`),
		args: func(s *suite, url, header string) []string {
			return withHeader([]string{"-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", int(s.duration.Seconds())), url}, header)
		},
	},
	{
		name: "hey", from: "package hey", done: count(`\[200\]\s+(\d+) responses`),
		args: func(s *suite, url, header string) []string {
			return withHeader([]string{"-c", strconv.Itoa(connections), "-z", s.duration.String(), url}, header)
		},
	},
}

var openPeers = []peer{
	{
		name: "vegeta", from: "go install github.com/tsenart/vegeta/v12@latest",
		args: func(s *suite, url, header string) []string {
			return []string{"attack", "-rate", strconv.Itoa(openRate), "-duration", s.duration.String(), "-max-workers", strconv.Itoa(connections), "-output", "/dev/null"}
		},
		stdin: func(url, header string) string { return "GET " + url + "\n" + header + "\n" },
		// It sends what it was told to; its report would be a second process.
		done: func(s *suite, _ string) (int64, error) { return int64(openRate * s.duration.Seconds()), nil },
	},
}
