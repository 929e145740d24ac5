package place

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Schema is the version of the facts file.
const Schema = "benchctl.testlab/1"

// Facts say what a lab that is up offers. They are written last, when everything answers.
type Facts struct {
	Schema string `json:"schema"`
	// Boot is the kernel's boot id: facts of another boot are of a lab that is gone.
	Boot string `json:"boot"`
	// Address is the sshd as host:port, Port its port alone.
	Address string `json:"address"`
	Port    int    `json:"port"`
	User    string `json:"user"`
	// IdentityFile is a private key without a passphrase; KnownHosts holds the keys of the sshd at Address.
	IdentityFile string `json:"identity_file"`
	KnownHosts   string `json:"known_hosts"`
	// PodmanSocket is a path on this machine, which is also the lab host.
	PodmanSocket   string `json:"podman_socket"`
	ContainersConf string `json:"containers_conf"`
	StorageConf    string `json:"storage_conf"`
	RegistriesConf string `json:"registries_conf"`
	GraphRoot      string `json:"graph_root"`
	// DataDir is the folder for the data of labs that are built on this host.
	DataDir string `json:"data_dir"`
	// SubnetPrefix begins every address of this lab's networks, for example "10.107.".
	SubnetPrefix string `json:"subnet_prefix"`
	// Inventories are the files that up wrote.
	Inventories []string `json:"inventories"`
	Images      []Image  `json:"images"`
}

// Image is one image that the lab offers.
type Image struct {
	Name string `json:"name"`
	// StandIn is true where the image was built here instead of pulled.
	StandIn bool `json:"stand_in"`
}

// ErrDown means that no lab is up.
var ErrDown = errors.New("the lab is not up")

// ReadFacts returns the facts of the lab that is up, ErrDown where none is.
func (p Paths) ReadFacts() (Facts, error) {
	var f Facts
	content, err := os.ReadFile(p.In("lab.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("no %s: %w", p.In("lab.json"), ErrDown)
	}
	if err != nil {
		return f, fmt.Errorf("read the facts of the lab: %w", err)
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return f, fmt.Errorf("read the facts of the lab in %s: %w", p.In("lab.json"), err)
	}
	if f.Schema != Schema {
		return f, fmt.Errorf("%s has schema %q, this program knows %q: another version wrote it", p.In("lab.json"), f.Schema, Schema)
	}
	return f, nil
}

// WriteFacts stores the facts.
func (p Paths) WriteFacts(f Facts) error {
	f.Schema = Schema
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the facts of the lab: %w", err)
	}
	return WriteFile(p.In("lab.json"), append(content, '\n'), 0o600)
}
