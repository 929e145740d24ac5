//go:build lab

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/provision/testlab"
)

// centOS makes a bare Debian container one that says it is CentOS: with the
// real dnf and rpm, and a repository of small packages with the names and
// dependencies of the true ones. $1 is a folder to build in.
const centOS = `
set -eu
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends dnf createrepo-c rpm
printf 'ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="9"\nPRETTY_NAME="CentOS Stream 9 (stand-in)"\n' >/etc/os-release
package() { # NAME REQUIRES PROGRAM [TEXT]
  {
    printf 'Name: %s\nVersion: 1\nRelease: 1\nSummary: stand-in\nLicense: none\nBuildArch: noarch\nAutoReqProv: no\n' "$1"
    [ -z "$2" ] || printf 'Requires: %s\n' "$2"
    printf '%%description\nstand-in\n%%install\nmkdir -p %%{buildroot}%s\n' "${3%/*}"
    printf 'cat >%%{buildroot}%s <<"END"\n#!/bin/sh\n%s\nEND\nchmod 755 %%{buildroot}%s\n%%files\n%s\n' "$3" "${4:-}" "$3" "$3"
  } >"$work/$1.spec"
  rpmbuild -bb --quiet --define "_topdir $work" --define "_rpmdir $work/repository" "$work/$1.spec"
}
work=$1
mkdir -p "$work/repository" /etc/yum.repos.d
package podman conmon /usr/bin/podman '[ "$1" = info ] && echo netavark; exit 0'
package conmon '' /usr/bin/conmon
package netavark '' /usr/libexec/podman/netavark
package aardvark-dns '' /usr/libexec/podman/aardvark-dns
package iptables-nft '' /usr/sbin/iptables
package procps-ng '' /usr/sbin/sysctl 'cat "/proc/sys/$(echo "$2" | tr . /)"'
package there-before '' /usr/bin/there-before
package cockpit-podman podman /usr/bin/cockpit-podman
createrepo_c -q "$work/repository"
dnf -q -y --repofrompath "lab,$work/repository" --nogpgcheck install there-before
`

const repository = "[lab]\nname=lab\nbaseurl=file:///build/repository\ngpgcheck=0\n"

// inContainer is a machine that is a container of the lab host, reached by
// podman exec.
type inContainer struct {
	lab  *testlab.Lab
	name string
}

func (c inContainer) Name() string { return c.name }

func (c inContainer) Run(ctx context.Context, cmd remote.Command) (remote.Output, error) {
	args := []string{"--url", "unix://" + c.lab.PodmanSocket, "exec", "--interactive"}
	for name, value := range cmd.Env {
		args = append(args, "--env", name+"="+value)
	}
	var out, errs bytes.Buffer
	p := exec.CommandContext(ctx, "podman", append(append(args, c.name), cmd.Argv...)...)
	p.Stdin, p.Stdout, p.Stderr = cmd.Stdin, &out, &errs
	err := p.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return remote.Output{}, err
	}
	return remote.Output{Stdout: out.String(), Stderr: errs.String(), Code: p.ProcessState.ExitCode()}, ctx.Err()
}

func (c inContainer) Files() remote.Files { return filesIn{c: c} }

// filesIn are those file operations that preparing uses here.
type filesIn struct {
	remote.Files
	c inContainer
}

func (f filesIn) shell(ctx context.Context, stdin []byte, script, path string) (string, error) {
	out, err := f.c.Run(ctx, remote.Command{Argv: []string{"sh", "-c", script, "sh", path}, Stdin: bytes.NewReader(stdin)})
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("%s: %s", path, out.Stderr)
		if strings.Contains(out.Stderr, "No such file") {
			err = fs.ErrNotExist
		}
	}
	return out.Stdout, err
}

func (f filesIn) ReadFile(ctx context.Context, path string) ([]byte, error) {
	text, err := f.shell(ctx, nil, `cat -- "$1"`, path)
	return []byte(text), err
}

func (f filesIn) WriteFile(ctx context.Context, path string, data []byte, _ fs.FileMode) error {
	_, err := f.shell(ctx, data, `cat >"$1"`, path)
	return err
}

func (f filesIn) MkdirAll(ctx context.Context, path string, _ fs.FileMode) error {
	_, err := f.shell(ctx, nil, `mkdir -p -- "$1"`, path)
	return err
}

// startContainer gives a bare Debian container and a shell in it.
func startContainer(t *testing.T, name string) (inContainer, func(script string, args ...string) string) {
	t.Helper()
	lab := testlab.Start(t)
	c := inContainer{lab, testlab.Unique(name)}
	lab.Podman("run", "--detach", "--name", c.name, "--network", "host", "localhost/benchctl/base:12", "sleep", "1800")
	t.Cleanup(func() { lab.Podman("rm", "--force", "--time", "0", c.name) })
	return c, func(script string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out, err := c.Run(ctx, remote.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...)})
		if err != nil || out.Code != 0 {
			t.Fatalf("%v, exit code %d\n%s\n%s", err, out.Code, out.Stdout, out.Stderr)
		}
		return out.Stdout
	}
}

// TestLabDNF prepares a container that says it is CentOS with the real dnf:
// what is missing comes, with what it depends on; a second time there is
// nothing to do; undone, what was there before is what is there.
func TestLabDNF(t *testing.T) {
	c, shell := startContainer(t, "centos")
	ctx := t.Context()
	shell(centOS, "/build")
	installed := func() []string { return strings.Fields(shell(`rpm -qa --qf '%{NAME}\n' | sort`)) }
	before := installed()

	plan := func() Plan {
		t.Helper()
		o, err := Observe(ctx, c, Desired{}, Layout{})
		if err != nil {
			t.Fatal(err)
		}
		if o.OSID != "centos" || o.Manager != "dnf" || !o.Root {
			t.Fatalf("it does not look like CentOS: %+v", o)
		}
		p, err := Prepare(Desired{}, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	say := func(text string) { t.Log(text) }
	p := plan()
	if len(p.Steps) != 1 || !slices.Equal(p.Steps[0].Packages, []string{"podman", "netavark", "aardvark-dns", "iptables-nft", "procps-ng"}) {
		t.Fatalf("steps %+v", p.Steps)
	}
	if err := Do(ctx, c, p.Steps[0], say); err == nil || !strings.Contains(err.Error(), "AppStream") {
		t.Errorf("without a repository, as on RHEL without a subscription: %v", err)
	} else {
		t.Log(err)
	}
	if got := installed(); !slices.Equal(got, before) {
		t.Errorf("it failed, and there is %v", got)
	}

	shell(`printf %s "$1" >/etc/yum.repos.d/lab.repo`, repository)
	if err := Do(ctx, c, plan().Steps[0], say); err != nil {
		t.Fatal(err)
	}
	if p := plan(); !p.Empty() {
		t.Errorf("a second time: %v", kinds(p))
	}
	want := []string{"aardvark-dns", "conmon", "iptables-nft", "netavark", "podman", "procps-ng"}
	if got := strings.Fields(shell("cat /etc/benchctl/packages")); !slices.Equal(got, want) {
		t.Errorf("written down: %v, want %v", got, want)
	}

	undo := func() Plan {
		t.Helper()
		o, err := ObserveForUndo(ctx, c, Layout{})
		if err != nil {
			t.Fatal(err)
		}
		return Undo(o)
	}
	shell("dnf -q -y install cockpit-podman")
	if u := undo(); slices.Contains(kinds(u), KindRemovePackages) || !strings.Contains(strings.Join(u.Notes, "\n"), "cockpit-podman") {
		t.Errorf("what somebody else installed would go too: %v %v", kinds(u), u.Notes)
	} else {
		t.Log(u.Notes)
	}
	shell("dnf -q -y --setopt=clean_requirements_on_remove=False remove cockpit-podman")
	for _, step := range undo().Steps {
		if err := Do(ctx, c, step, say); err != nil {
			t.Fatal(err)
		}
	}
	if got := installed(); !slices.Equal(got, before) {
		t.Errorf("undone there is %v, before there was %v", got, before)
	}
	shell("[ ! -e /etc/benchctl ]")
	if u := undo(); !u.Empty() {
		t.Errorf("undone twice: %v", kinds(u))
	}
}

// TestLabAPT prepares a bare Debian container with the real apt-get and the
// real packages, whose lists it has to fetch first.
func TestLabAPT(t *testing.T) {
	c, shell := startContainer(t, "debian")
	installed := func() []string {
		return strings.Fields(shell(`dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^[a-z]*  *//p'`))
	}
	before := installed()
	for range 2 {
		o, err := Observe(t.Context(), c, Desired{}, Layout{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(Desired{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Steps) != 1 || p.Steps[0].Manager != "apt-get" || !slices.Contains(p.Steps[0].Packages, "podman") {
			t.Fatalf("steps %+v", p.Steps)
		}
		if err := Do(t.Context(), c, p.Steps[0], func(string) {}); err != nil {
			t.Fatal(err)
		}
		if o, err = Observe(t.Context(), c, Desired{}, Layout{}); err != nil {
			t.Fatal(err)
		}
		if p, err = Prepare(Desired{}, o); err != nil || !p.Empty() {
			t.Errorf("a second time: %v, %v", kinds(p), err)
		}
		t.Log(shell("podman --version; tr '\\n' ' ' </etc/benchctl/packages"))
		if o, err = ObserveForUndo(t.Context(), c, Layout{}); err != nil {
			t.Fatal(err)
		}
		for _, step := range Undo(o).Steps {
			if err := Do(t.Context(), c, step, func(string) {}); err != nil {
				t.Fatal(err)
			}
		}
		if got := installed(); !slices.Equal(got, before) {
			t.Errorf("undone there is %v, before there was %v", got, before)
		}
	}
}
