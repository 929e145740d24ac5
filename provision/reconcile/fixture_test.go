package reconcile

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
)

// password is the secret that no plan may show.
const password = "s3cret-pass-word"

var (
	layout = Layout{DataDir: "/var/lib/benchctl"}
	noon   = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// shape is a lab in a few words.
type shape struct {
	lab      string
	database string // postgresql or mariadb
	tag      string // of the database's image
	memory   int64
	password string
	nodes    int
	env      map[string]string
	network  string
}

func baseline() shape {
	return shape{lab: "baseline", database: "postgresql", tag: "15", memory: 4 << 30, password: password, nodes: 2, network: "benchctl"}
}

func (s shape) with(change func(*shape)) shape {
	change(&s)
	return s
}

// desired is the lab of a shape, much as package lab makes it.
func (s shape) desired(t testing.TB) Desired {
	t.Helper()
	d := Desired{Lab: s.lab, Target: "sut", Network: s.network, Layout: layout, Endpoint: "http://192.0.2.10:8080/auth"}
	format := s.database + " " + s.tag
	data := layout.Data(s.database) + "/data"
	d.Components = append(d.Components, Component{
		Name: s.database, Kind: KindDatabase,
		Spec: engine.ContainerSpec{
			Name: s.database, Image: "docker.io/library/" + s.database + ":" + s.tag, Network: s.network, MemoryBytes: s.memory,
			Env: map[string]string{"USER": "keycloak"}, SecretEnv: map[string]secret.String{"PASSWORD": secret.New(s.password)},
			Mounts: []engine.Mount{{Source: data, Target: "/data"}},
		},
		Data: &Data{Dirs: []DataDir{{Path: data, UID: 999, GID: 999, Mode: 0o700}}, Format: format,
			Key: SecretDigest(format, secret.New(s.password))},
	})
	var nodes []string
	for i := 1; i <= s.nodes; i++ {
		name := fmt.Sprintf("keycloak-server-%d", i)
		c := Component{
			Name: name, Kind: KindKeycloak,
			Spec: engine.ContainerSpec{
				Name: name, Image: "quay.io/keycloak/keycloak:26.7.3", Network: s.network, MemoryBytes: 2 << 30,
				Env: maps.Clone(s.env), SecretEnv: map[string]secret.String{"KC_DB_PASSWORD": secret.New(s.password)},
			},
			After: append([]string{s.database}, nodes...), RestartWith: []string{s.database},
		}
		if c.Spec.Env == nil {
			c.Spec.Env = map[string]string{}
		}
		c.Spec.Env["KC_DB_URL_HOST"] = s.database
		if s.nodes > 1 {
			c.Cluster = &ClusterProbe{Port: 9000, Path: "/metrics", Metric: "vendor_cluster_size", Size: s.nodes}
		}
		nodes = append(nodes, name)
		d.Components = append(d.Components, c)
	}
	config := layout.Config("traefik")
	d.Components = append(d.Components, Component{
		Name: "traefik", Kind: KindProxy, After: nodes,
		Spec: engine.ContainerSpec{
			Name: "traefik", Image: "docker.io/library/traefik:v3.7", Network: s.network,
			Mounts: []engine.Mount{{Source: config, Target: "/etc/traefik/dynamic", ReadOnly: true}},
			Ports:  []engine.Port{{HostPort: 8080, ContainerPort: 8080, Protocol: "tcp"}},
		},
		Files:     []File{{Path: config + "/routes.yml", Content: []byte(strings.Join(nodes, "\n")), Mode: 0o644}},
		LiveFiles: true,
	})
	for i := range d.Components {
		if err := Seal(s.lab, &d.Components[i]); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// world is a target on which plans are carried out in memory.
type world struct {
	o Observed
	// remote are the images that registries have, by reference, with IDs.
	remote map[string]string
}

// bare is a target with nothing on it.
func bare() *world {
	return &world{o: Observed{Images: map[string]engine.Image{}, Files: map[string]string{}}, remote: map[string]string{}}
}

// standing is a target with a lab on it, made by carrying out a plan.
func standing(t testing.TB, s shape) *world {
	t.Helper()
	w := bare()
	w.reach(t, s)
	return w
}

// reach makes the world what a shape wants.
func (w *world) reach(t testing.TB, s shape) Plan {
	t.Helper()
	p, err := Reconcile(s.desired(t), w.o, noon)
	if err != nil {
		t.Fatal(err)
	}
	w.carryOut(t, p, len(p.Steps))
	return p
}

// carryOut does the first n steps of a plan, in the order they are listed,
// failing where one comes before what it waits for.
func (w *world) carryOut(t testing.TB, p Plan, n int) {
	t.Helper()
	done := map[string]bool{}
	for _, s := range p.Steps[:n] {
		for _, id := range s.After {
			if !done[id] {
				t.Fatalf("step %s comes before %s, which it waits for", s.ID, id)
			}
		}
		if err := w.do(s); err != nil {
			t.Fatalf("step %s: %v", s.ID, err)
		}
		done[s.ID] = true
	}
}

func (w *world) container(name string) *engine.Container {
	for i := range w.o.Containers {
		if w.o.Containers[i].Name == name {
			return &w.o.Containers[i]
		}
	}
	return nil
}

func (w *world) folder(name string) *Folder {
	for i := range w.o.Folders {
		if w.o.Folders[i].Name == name {
			return &w.o.Folders[i]
		}
	}
	return nil
}

// do is the effect of one step; it refuses what a real engine would refuse.
func (w *world) do(s Step) error {
	effects := map[StepKind]func(Step) error{
		StepDirs: w.dirs, StepFiles: w.files, StepPull: w.pull, StepNetwork: w.network,
		StepStop: w.stop, StepRemove: w.remove, StepBackup: w.backup, StepCreate: w.create, StepStart: w.start,
		StepReady: w.running, StepCluster: func(s Step) error {
			for _, n := range s.Nodes {
				if err := w.running(Step{Subject: n}); err != nil {
					return err
				}
			}
			return nil
		},
		StepEndpoint: func(Step) error { return nil }, StepRemoveNetwork: w.removeNetwork,
		StepRemoveFolder: w.removeFolder, StepRemoveFile: w.removeFile, StepRemoveEmpty: w.removeEmpty, StepRemoveImage: w.removeImage,
	}
	f, ok := effects[s.Kind]
	if !ok {
		return fmt.Errorf("unknown kind %s", s.Kind)
	}
	return f(s)
}

// below splits a path below data_dir into its first name and the rest.
func below(p string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimPrefix(p, layout.DataDir+"/"), "/")
	return first, rest
}

func (w *world) dirs(s Step) error {
	for _, d := range s.Dirs {
		if d.Path == layout.DataDir {
			w.o.DataDirExists = true
			continue
		}
		name, _ := below(d.Path)
		if w.folder(name) == nil {
			if !w.o.DataDirExists {
				return fmt.Errorf("%s has no parent", d.Path)
			}
			w.o.Folders = append(w.o.Folders, Folder{Name: name, Empty: true})
		}
	}
	return nil
}

func (w *world) files(s Step) error {
	if err := w.dirs(s); err != nil {
		return err
	}
	for _, f := range s.Files {
		name, rest := below(f.Path)
		switch {
		case name == MarkerName:
			state, ok := ParseState(f.Content)
			if !ok {
				return fmt.Errorf("no state: %s", f.Content)
			}
			w.o.State = &state
		case rest == MarkerName:
			m, ok := ParseMarker(f.Content)
			if !ok || w.folder(name) == nil {
				return fmt.Errorf("no marker, or no folder for it: %s", f.Content)
			}
			w.folder(name).Marker = &m
		default:
			w.o.ConfigExists = true
			w.o.Files[f.Path] = ContentDigest(f.Content)
		}
	}
	return nil
}

func (w *world) pull(s Step) error {
	id := w.remote[s.Subject]
	if id == "" {
		id = "sha256:" + ContentDigest([]byte(s.Subject))
	}
	w.o.Images[s.Subject] = engine.Image{ID: id}
	return nil
}

func (w *world) network(s Step) error {
	w.o.Networks = append(w.o.Networks, engine.Network{Name: s.Subject, Labels: s.Labels, DNS: true})
	return nil
}

func (w *world) stop(s Step) error {
	c := w.container(s.Subject)
	if c == nil {
		return fmt.Errorf("no container %s", s.Subject)
	}
	c.State = "exited"
	return nil
}

func (w *world) remove(s Step) error {
	if w.container(s.Subject) == nil {
		return fmt.Errorf("no container %s", s.Subject)
	}
	w.o.Containers = slices.DeleteFunc(w.o.Containers, func(c engine.Container) bool { return c.Name == s.Subject })
	return nil
}

func (w *world) backup(s Step) error {
	from, _ := below(s.Subject)
	to, _ := below(s.To)
	f := w.folder(from)
	if f == nil || w.folder(to) != nil {
		return fmt.Errorf("no folder %s, or %s is there already", from, to)
	}
	if c := w.container(from); c != nil {
		return fmt.Errorf("container %s still has its data mounted", from)
	}
	f.Name = to
	return nil
}

func (w *world) create(s Step) error {
	if w.container(s.Spec.Name) != nil {
		return fmt.Errorf("the name %s is taken", s.Spec.Name)
	}
	img, ok := w.o.Images[s.Spec.Image]
	if !ok {
		return fmt.Errorf("no image %s", s.Spec.Image)
	}
	if !slices.ContainsFunc(w.o.Networks, func(n engine.Network) bool { return n.Name == s.Spec.Network }) {
		return fmt.Errorf("no network %s", s.Spec.Network)
	}
	for _, m := range s.Spec.Mounts {
		name, _ := below(m.Source)
		if name != "config" && w.folder(name) == nil {
			return fmt.Errorf("no folder %s to mount", m.Source)
		}
	}
	w.o.Containers = append(w.o.Containers, engine.Container{
		Name: s.Spec.Name, Image: s.Spec.Image, ImageID: img.ID, Labels: s.Spec.Labels, State: stateCreated,
		Ports: s.Spec.Ports, Networks: []string{s.Spec.Network},
	})
	return nil
}

func (w *world) start(s Step) error {
	c := w.container(s.Subject)
	if c == nil || c.State == stateRunning {
		return fmt.Errorf("container %s is not there, or runs already", s.Subject)
	}
	c.State = stateRunning
	if f := w.folder(s.Subject); f != nil {
		f.Empty = false
	}
	return nil
}

func (w *world) running(s Step) error {
	if c := w.container(s.Subject); c == nil || c.State != stateRunning {
		return fmt.Errorf("container %s does not run", s.Subject)
	}
	return nil
}

func (w *world) removeNetwork(s Step) error {
	for _, c := range w.o.Containers {
		if slices.Contains(c.Networks, s.Subject) {
			return fmt.Errorf("container %s is on network %s", c.Name, s.Subject)
		}
	}
	w.o.Networks = slices.DeleteFunc(w.o.Networks, func(n engine.Network) bool { return n.Name == s.Subject })
	return nil
}

func (w *world) removeFolder(s Step) error {
	name, rest := below(s.Subject)
	if rest != "" || name == "" {
		return fmt.Errorf("%s is no folder of ours", s.Subject)
	}
	if name == path.Base(layout.ConfigRoot()) {
		w.o.ConfigExists = false
		clear(w.o.Files)
		return nil
	}
	w.o.Folders = slices.DeleteFunc(w.o.Folders, func(f Folder) bool { return f.Name == name })
	return nil
}

func (w *world) removeFile(s Step) error {
	if s.Subject != layout.StatePath() {
		return fmt.Errorf("%s is no file of ours", s.Subject)
	}
	w.o.State = nil
	return nil
}

func (w *world) removeEmpty(s Step) error {
	if s.Subject == layout.DataDir {
		if len(w.o.Folders)+len(w.o.Other) == 0 && !w.o.ConfigExists && w.o.State == nil {
			w.o.DataDirExists = false
		}
		return nil
	}
	name, _ := below(s.Subject)
	w.o.Folders = slices.DeleteFunc(w.o.Folders, func(f Folder) bool { return f.Name == name && f.Empty && f.Marker == nil })
	return nil
}

func (w *world) removeImage(s Step) error {
	delete(w.o.Images, s.Subject)
	return nil
}

// clone is a copy that can be changed apart.
func (w *world) clone() *world {
	c := &world{o: w.o, remote: w.remote}
	c.o.Containers = slices.Clone(w.o.Containers)
	c.o.Networks = slices.Clone(w.o.Networks)
	c.o.Folders = slices.Clone(w.o.Folders)
	c.o.Other = slices.Clone(w.o.Other)
	c.o.Images, c.o.Files = maps.Clone(w.o.Images), maps.Clone(w.o.Files)
	return c
}
