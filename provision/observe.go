package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// Query says what to look at on a target.
type Query struct {
	Layout reconcile.Layout
	// Images by reference; those that we pulled earlier are looked at too.
	Images []string
	// Files are configuration files whose content matters.
	Files []string
	// Large are more of them, which are not fetched to be compared.
	Large []string
	// Ports that are to be published.
	Ports []int
}

// queryFor is what a plan for components needs to know.
func queryFor(l reconcile.Layout, components []reconcile.Component) Query {
	q := Query{Layout: l}
	for _, c := range components {
		q.Images = append(q.Images, c.Spec.Image)
		for _, f := range c.Files {
			if f.Later != nil {
				q.Large = append(q.Large, f.Path)
				continue
			}
			q.Files = append(q.Files, f.Path)
		}
		for _, p := range c.Spec.Ports {
			q.Ports = append(q.Ports, p.HostPort)
		}
	}
	return q
}

// Observe looks at a target once, at many things at a time, and changes
// nothing.
func Observe(ctx context.Context, m remote.Machine, e engine.Engine, q Query) (reconcile.Observed, error) {
	var (
		o         reconcile.Observed
		mu        sync.Mutex // guards the maps
		g, gctx   = errgroup.WithContext(ctx)
		listeners []reconcile.Listener
	)
	g.SetLimit(parallel)
	o.Images = map[string]engine.Image{}
	o.Files = map[string]string{}
	image := func(ctx context.Context, ref string) error {
		img, err := e.Image(ctx, ref)
		if errors.Is(err, engine.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		o.Images[ref] = img
		return nil
	}
	g.Go(func() (err error) { o.Containers, err = e.Containers(gctx); return })
	g.Go(func() (err error) { o.Networks, err = e.Networks(gctx); return })
	for _, ref := range slices.Compact(slices.Sorted(slices.Values(q.Images))) {
		g.Go(func() error { return image(gctx, ref) })
	}
	for _, p := range q.Files {
		g.Go(func() error {
			content, err := m.Files().ReadFile(gctx, p)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			o.Files[p] = reconcile.ContentDigest(content)
			return nil
		})
	}
	if len(q.Large) > 0 {
		g.Go(func() error {
			sums, err := digests(gctx, m, q.Large)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(o.Files, sums)
			return err
		})
	}
	g.Go(func() error {
		if err := observeDataDir(gctx, m.Files(), q.Layout, &o); err != nil {
			return err
		}
		if o.State == nil {
			return nil
		}
		for _, ref := range o.State.Pulled {
			if !slices.Contains(q.Images, ref) {
				if err := image(gctx, ref); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if len(q.Ports) > 0 {
		g.Go(func() (err error) { listeners, err = observeListeners(gctx, m, nil); return })
	}
	if err := g.Wait(); err != nil {
		return reconcile.Observed{}, fmt.Errorf("look at %s: %w", m.Name(), err)
	}
	o.Listeners = listeners
	// Who holds a port is asked only where somebody unknown does: it means
	// looking through all processes.
	if held := unexplained(o, q.Ports); len(held) > 0 {
		named, err := observeListeners(ctx, m, held)
		if err != nil {
			return reconcile.Observed{}, fmt.Errorf("look at %s: %w", m.Name(), err)
		}
		o.Listeners = named
	}
	return o, nil
}

// digests has the machine compute the SHA-256 of files; those that are not
// there are left out.
func digests(ctx context.Context, m remote.Machine, paths []string) (map[string]string, error) {
	out, err := m.Run(ctx, remote.Command{Argv: append([]string{"sha256sum", "--"}, paths...), Sudo: true, Env: map[string]string{"LC_ALL": "C"}})
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(out.Stdout) {
		// Two blanks, or a blank and an asterisk, stand between.
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && len(name) > 1 {
			sums[name[1:]] = sum
		}
	}
	if out.Code != 0 && !missingOnly(out.Stderr) {
		return nil, fmt.Errorf("sha256sum of %s ended with exit code %d: %s", paths[0], out.Code, strings.TrimSpace(out.Stderr))
	}
	return sums, nil
}

// missingOnly tells that nothing but files that are not there was complained
// about.
func missingOnly(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, "No such file or directory") {
			return false
		}
	}
	return stderr != ""
}

// unexplained are the wanted ports in use that no container publishes.
func unexplained(o reconcile.Observed, ports []int) []int {
	var out []int
	for _, p := range ports {
		inUse := slices.ContainsFunc(o.Listeners, func(l reconcile.Listener) bool { return l.Port == p })
		published := slices.ContainsFunc(o.Containers, func(c engine.Container) bool {
			return slices.ContainsFunc(reconcile.PortsOf(c), func(x engine.Port) bool { return x.HostPort == p })
		})
		if inUse && !published {
			out = append(out, p)
		}
	}
	return out
}

// observeDataDir reads what we keep below data_dir.
func observeDataDir(ctx context.Context, files remote.Files, l reconcile.Layout, o *reconcile.Observed) error {
	entries, err := files.List(ctx, l.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o.DataDirExists = true
	config := strings.TrimPrefix(l.ConfigRoot(), l.DataDir+"/")
	var folders []string
	for _, e := range entries {
		switch {
		case e.Name == config && e.Dir:
			o.ConfigExists = true
		case e.Name == reconcile.MarkerName && !e.Dir:
			b, err := files.ReadFile(ctx, l.StatePath())
			if err != nil {
				return err
			}
			if s, ok := reconcile.ParseState(b); ok {
				o.State = &s
			}
		case !e.Dir:
			o.Other = append(o.Other, e.Name)
		default:
			folders = append(folders, e.Name)
		}
	}
	// There may be many that were set aside, and each takes a few round trips.
	o.Folders = make([]reconcile.Folder, len(folders))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, name := range folders {
		g.Go(func() (err error) { o.Folders[i], err = observeFolder(ctx, files, l, name); return })
	}
	return g.Wait()
}

// observeFolder looks at one folder below data_dir. It is empty when it
// holds nothing but our marker and folders in which nothing is.
func observeFolder(ctx context.Context, files remote.Files, l reconcile.Layout, name string) (reconcile.Folder, error) {
	f := reconcile.Folder{Name: name, Empty: true}
	folder := l.DataDir + "/" + name
	entries, err := files.List(ctx, folder)
	if errors.Is(err, fs.ErrPermission) {
		f.Empty = false
		return f, nil
	}
	if err != nil {
		return f, err
	}
	for _, e := range entries {
		switch {
		case e.Name == reconcile.MarkerName && !e.Dir:
			b, err := files.ReadFile(ctx, l.MarkerPath(name))
			if err != nil {
				return f, err
			}
			if m, ok := reconcile.ParseMarker(b); ok {
				f.Marker = &m
			} else {
				f.Empty = false
			}
		case e.Dir:
			below, err := files.List(ctx, folder+"/"+e.Name)
			if errors.Is(err, fs.ErrPermission) || err == nil && len(below) > 0 {
				f.Empty = false
			} else if err != nil {
				return f, err
			}
		default:
			f.Empty = false
		}
	}
	return f, nil
}
