package enginetest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/engine/enginetest"
)

func web(name string) engine.ContainerSpec {
	return engine.ContainerSpec{Name: name, Image: "web:1", Network: "net", Ports: []engine.Port{{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"}}}
}

func filled(t *testing.T) *enginetest.Fake {
	t.Helper()
	f := enginetest.New()
	f.AddImage("web:1", engine.Image{})
	if err := f.CreateNetwork(t.Context(), "net", nil); err != nil {
		t.Fatal(err)
	}
	f.Forget()
	return f
}

func TestBookkeeping(t *testing.T) {
	injected := errors.New("injected")
	for name, c := range map[string]struct {
		do   func(f *enginetest.Fake, ctx context.Context) error
		want error
	}{
		"name taken": {func(f *enginetest.Fake, ctx context.Context) error {
			_, _ = f.CreateContainer(ctx, web("a"))
			_, err := f.CreateContainer(ctx, web("a"))
			return err
		}, engine.ErrNameInUse},
		"no image": {func(f *enginetest.Fake, ctx context.Context) error {
			s := web("a")
			s.Image = "other:1"
			_, err := f.CreateContainer(ctx, s)
			return err
		}, engine.ErrNotFound},
		"no network": {func(f *enginetest.Fake, ctx context.Context) error {
			s := web("a")
			s.Network = "other"
			_, err := f.CreateContainer(ctx, s)
			return err
		}, engine.ErrNotFound},
		"port taken": {func(f *enginetest.Fake, ctx context.Context) error {
			_, _ = f.CreateContainer(ctx, web("a"))
			_, _ = f.CreateContainer(ctx, web("b"))
			_ = f.StartContainer(ctx, "a")
			return f.StartContainer(ctx, "b")
		}, engine.ErrPortInUse},
		"start of nothing":  {func(f *enginetest.Fake, ctx context.Context) error { return f.StartContainer(ctx, "a") }, engine.ErrNotFound},
		"remove of nothing": {func(f *enginetest.Fake, ctx context.Context) error { return f.RemoveContainer(ctx, "a") }, engine.ErrNotFound},
		"network there":     {func(f *enginetest.Fake, ctx context.Context) error { return f.CreateNetwork(ctx, "net", nil) }, engine.ErrNameInUse},
		"network not there": {func(f *enginetest.Fake, ctx context.Context) error { return f.RemoveNetwork(ctx, "x") }, engine.ErrNotFound},
		"pull of nothing": {func(f *enginetest.Fake, ctx context.Context) error {
			_, err := f.Pull(ctx, "x:1", engine.Login{}, nil)
			return err
		}, engine.ErrPull},
		"context ended": {func(f *enginetest.Fake, ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return f.StartContainer(ctx, "a")
		}, context.Canceled},
		"injected, any": {func(f *enginetest.Fake, ctx context.Context) error {
			f.Fail(enginetest.CallStop, "", injected)
			return f.StopContainer(ctx, "a", 0)
		}, injected},
		"injected, one name": {func(f *enginetest.Fake, ctx context.Context) error {
			f.Fail(enginetest.CallStop, "a", injected)
			return f.StopContainer(ctx, "a", 0)
		}, injected},
		"injected, elsewhere": {func(f *enginetest.Fake, ctx context.Context) error {
			f.Fail(enginetest.CallStop, "b", injected)
			return f.StopContainer(ctx, "a", 0)
		}, engine.ErrNotFound},
		"injected once": {func(f *enginetest.Fake, ctx context.Context) error {
			f.Fail(enginetest.CallStop, "a", injected)
			_ = f.StopContainer(ctx, "a", 0)
			return f.StopContainer(ctx, "a", 0)
		}, engine.ErrNotFound},
		"injected for ever": {func(f *enginetest.Fake, ctx context.Context) error {
			f.FailAlways(enginetest.CallStop, "a", injected)
			_ = f.StopContainer(ctx, "a", 0)
			return f.StopContainer(ctx, "a", 0)
		}, injected},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.do(filled(t), t.Context()); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestLife(t *testing.T) {
	f, ctx := filled(t), t.Context()
	f.AddRemoteImage("db:1", engine.Image{User: "999"})
	if _, err := f.Pull(ctx, "db:1", engine.Login{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateContainer(ctx, web("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Exec(ctx, "a", engine.Exec{Command: []string{"true"}}); err == nil {
		t.Error("a command runs in a container that does not")
	}
	if err := f.StartContainer(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	f.OnExec(func(name string, cmd engine.Exec) (engine.ExecResult, error) {
		return engine.ExecResult{Stdout: name + " " + cmd.Command[0]}, nil
	})
	if got, err := f.Exec(ctx, "a", engine.Exec{Command: []string{"true"}}); err != nil || got.Stdout != "a true" {
		t.Errorf("exec: %+v, %v", got, err)
	}
	f.SetLog("a", "one\ntwo\nthree\n")
	var log bytes.Buffer
	if err := f.Logs(ctx, "a", engine.LogOptions{Tail: 2}, &log); err != nil || log.String() != "two\nthree\n" {
		t.Errorf("log: %q, %v", log.String(), err)
	}
	f.OnStats(func(string) engine.Stats { return engine.Stats{CPUSeconds: 2} })
	sampling, cancel := context.WithCancel(ctx)
	samples, err := f.Stats(sampling, []string{"a", "absent"}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s := <-samples; len(s.Containers) != 1 || s.Containers["a"].CPUSeconds != 2 {
		t.Errorf("sample: %+v", s)
	}
	cancel()
	for range samples {
	}
	if err := f.RemoveNetwork(ctx, "net"); err == nil {
		t.Error("a network goes while a container is in it")
	}
	f.SetState("a", "exited", 1)
	if c, err := f.Container(ctx, "a"); err != nil || c.State != "exited" || c.ExitCode != 1 {
		t.Errorf("after its end: %+v, %v", c, err)
	}
	if err := f.RemoveContainer(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	want := []string{"pull db:1", "create a", "exec a", "start a", "exec a", "remove-network net", "remove a"}
	if got := f.Changes(); !slices.Equal(got, want) {
		t.Errorf("changes:\n got %q\nwant %q", got, want)
	}
}
