package machine

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

const mountinfo = `21 1 0:19 / /proc rw - proc proc rw
30 1 0:40 / /cache/labs/default/overlay/x/merged rw - overlay overlay rw
31 30 0:41 / /cache/labs/default/overlay/x/merged/deep\040folder rw - tmpfs tmpfs rw
32 1 0:42 / /cache/labs/default-other rw - tmpfs tmpfs rw
33 1 0:43 / /run/lab rw - tmpfs tmpfs rw
short line
`

func TestMountsBelow(t *testing.T) {
	got := MountsBelow(mountinfo, "/run/lab", "/cache/labs/default")
	want := []string{"/cache/labs/default/overlay/x/merged/deep folder", "/cache/labs/default/overlay/x/merged", "/run/lab"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if got := MountsBelow(mountinfo); len(got) != 0 {
		t.Errorf("without folders: got %q", got)
	}
}

func FuzzMountsBelow(f *testing.F) {
	f.Add(mountinfo)
	f.Add(`1 1 0:0 / /run/lab\`)
	f.Add(`1 1 0:0 / /run/lab/\999`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, point := range MountsBelow(text, "/run/lab") {
			if point != "/run/lab" && !strings.HasPrefix(point, "/run/lab/") {
				t.Errorf("%q is elsewhere", point)
			}
		}
	})
}

func TestBridgesOf(t *testing.T) {
	const addresses = `1: lo    inet 127.0.0.1/8 scope host lo\       valid_lft forever
4: eth0    inet 10.107.0.9/24 brd 10.107.0.255 scope global eth0\       valid_lft forever
7: podman1    inet 10.107.0.1/24 brd 10.107.0.255 scope global podman1\       valid_lft forever
8: podman0    inet 10.88.0.1/16 brd 10.88.255.255 scope global podman0\       valid_lft forever
`
	if got, want := BridgesOf(addresses, "10.107."), []string{"podman1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestFindRemains(t *testing.T) {
	p := place.Paths{Run: t.TempDir(), Cache: t.TempDir(), ID: "x"}
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(p.GraphRoot(), name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("overlay-containers/aaa/userdata/config.json", `{"linux": {"namespaces": [{"type": "pid"}, {"type": "network", "path": "/run/netns/netns-1"}]}}`)
	write("overlay-containers/bbb/userdata/config.json", `{"linux": {"namespaces": [{"type": "network", "path": "/run/netns/other"}]}}`)
	write("overlay-containers/ccc/userdata/config.json", `{broken`)
	write("overlay-containers/ddd/userdata/pidfile", "")
	write("overlay-containers/containers.json", "[]")
	write("networks/benchctl.json", "{}")
	write("networks/netavark.lock", "")
	want := Remains{IDs: []string{"aaa", "bbb", "ccc", "ddd"}, Namespaces: []string{"/run/netns/netns-1"}, Networks: []string{"benchctl"}}
	if got := FindRemains(p); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := FindRemains(place.Paths{Run: "/none", Cache: "/none", ID: "x"}); !reflect.DeepEqual(got, Remains{}) {
		t.Errorf("of no lab: got %+v", got)
	}
}

func TestDropNames(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"aardvark.pid": "0\n",
		"ours":         "10.123.0.1\naaa 10.123.0.2  keycloak-server-1,aaa\nbbb 10.123.0.3  traefik,bbb\n",
		"one-name":     "10.155.0.1\nccc 10.155.0.2  traefik,ccc\nddd 10.123.0.2  traefik,ddd\n",
		"foreign":      "10.123.0.1\n", // Not named as ours.
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropNames(dir, []string{"ours", "one-name", "never-was"}, []string{"10.123."}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"aardvark.pid", "foreign", "one-name"}; !reflect.DeepEqual(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

func TestForbidServices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	if _, err := forbidServices(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("while installing: %v, %v", info, err)
	}
	// A killed run leaves its policy; the next one takes it away.
	undo, err := forbidServices(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("afterwards: %v", err)
	}
	const own = "#!/bin/sh\nexit 101\n"
	if err := os.WriteFile(path, []byte(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if undo, err = forbidServices(path); err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != own {
		t.Errorf("the machine's own policy: %q, %v", content, err)
	}
}
