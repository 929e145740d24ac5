// Package place says where the lab host keeps what: which folders, which files, and the facts of the lab that is up.
//
// The promise: every path of a lab follows from two folders, so that two labs with different run folders share
// no file but the store of images. They do share the machine's network, in which netavark names bridges, firewall chains
// and DNS zones after Podman's networks: labs beside each other must not run containers on networks of the same name
// (Podman's default network is one) at the same time. It is not for looking at the machine: nothing here starts or asks anything but
// the file system.
package place

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// RunVariable is the environment variable that names another run folder, for a second lab beside the first.
	RunVariable = "BENCHCTL_LAB_DIR"
	// DefaultRun is where the lab runs unless RunVariable says otherwise.
	DefaultRun = "/run/benchctl-lab"
)

// Paths are the folders of one lab.
type Paths struct {
	// Run holds sockets, keys, settings and logs; it goes when the lab goes down.
	Run string
	// Cache outlives the lab: images, downloads and how long each step took. All labs of a user share it.
	Cache string
	// ID tells labs apart below Cache: "default", or a hash of Run.
	ID string
}

// FromEnvironment returns the paths that the environment asks for.
func FromEnvironment(getenv func(string) string) (Paths, error) {
	run := getenv(RunVariable)
	if run == "" {
		run = DefaultRun
	}
	if !filepath.IsAbs(run) || filepath.Clean(run) == "/" {
		return Paths{}, fmt.Errorf("%s=%q: want the absolute path of a folder that the lab may fill and remove", RunVariable, run)
	}
	run = filepath.Clean(run)
	cache := getenv("XDG_CACHE_HOME")
	if cache == "" {
		home := getenv("HOME")
		if home == "" {
			return Paths{}, fmt.Errorf("neither XDG_CACHE_HOME nor HOME is set: no place for the cache of images")
		}
		cache = filepath.Join(home, ".cache")
	}
	return Paths{Run: run, Cache: filepath.Join(cache, "benchctl-lab"), ID: id(run)}, nil
}

func id(run string) string {
	if run == DefaultRun {
		return "default"
	}
	sum := sha256.Sum256([]byte(run))
	return hex.EncodeToString(sum[:4])
}

// In is the path of a file in the run folder.
func (p Paths) In(name string) string { return filepath.Join(p.Run, name) }

// Cached is the path of a file in the cache.
func (p Paths) Cached(name string) string { return filepath.Join(p.Cache, name) }

// ContainersConf is Podman's settings file (CONTAINERS_CONF).
func (p Paths) ContainersConf() string { return p.In("containers.conf") }

// StorageConf is Podman's storage settings file (CONTAINERS_STORAGE_CONF).
func (p Paths) StorageConf() string { return p.In("storage.conf") }

// RegistriesConf is Podman's registries file (CONTAINERS_REGISTRIES_CONF).
func (p Paths) RegistriesConf() string { return p.In("registries.conf") }

// Socket is the Podman API.
func (p Paths) Socket() string { return p.In("podman.sock") }

// GraphRoot is where the containers and volumes of this lab live. It is wholly the lab's and goes with it.
func (p Paths) GraphRoot() string { return p.Cached(filepath.Join("labs", p.ID)) }

// RunRoot is where the containers' short-lived state lives.
func (p Paths) RunRoot() string { return p.In("storage") }

// Temporary is Podman's folder of locks, events and exit codes.
func (p Paths) Temporary() string { return p.In("libpod") }

// Data is the folder for the data of labs that are built on this host (data_dir in an inventory), so that it goes with
// the host.
func (p Paths) Data() string { return filepath.Join(p.GraphRoot(), "data") }

// Networks is where Podman keeps the settings of this lab's networks. It lies beside the containers, so that a run folder
// that was lost does not leave networks that nobody knows.
func (p Paths) Networks() string { return filepath.Join(p.GraphRoot(), "networks") }

// ImageStore is the store of images that all labs read and none writes.
func (p Paths) ImageStore() string { return p.Cached("images") }

// LockFile is held while one labhost changes this lab. It lies outside Run, which goes.
func (p Paths) LockFile() string { return p.Cached("lab-" + p.ID + ".lock") }

// Environment makes any Podman command use this lab's settings and storage.
func (p Paths) Environment() []string {
	return []string{
		"CONTAINERS_CONF=" + p.ContainersConf(),
		"CONTAINERS_STORAGE_CONF=" + p.StorageConf(),
		"CONTAINERS_REGISTRIES_CONF=" + p.RegistriesConf(),
	}
}

// WriteFile puts content at path in one step: a reader sees the old file or the new one.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
