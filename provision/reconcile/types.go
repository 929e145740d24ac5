// Package reconcile decides what to do: desired and observed state in, a plan
// out. It is pure: no network, no clock, no file is touched, so that every
// decision can be tested with a table and shown before it is carried out.
package reconcile

import (
	"github.com/benchctl/benchctl/provision/engine"
)

// Labels that identify what we made. What lacks LabelLab is never touched.
const (
	LabelLab       = "benchctl.lab"       // the lab's scenario name
	LabelComponent = "benchctl.component" // component name
	LabelHash      = "benchctl.hash"      // SHA-256 of our canonical spec
	LabelDataset   = "benchctl.dataset"   // what the database was seeded with
	LabelStandIn   = "benchctl.stand-in"  // on images that only stand in for the official ones
)

// Component is one container as it should be.
type Component struct {
	// Name is the container's name.
	Name string
	// Kind is keycloak, database, proxy, ldap or extra.
	Kind string
	Spec engine.ContainerSpec
	// Files are configuration files on the target, mounted as folders, whose
	// content is part of the hash.
	Files []File
	// DataDirs are host folders that hold data and outlive the container.
	DataDirs []DataDir
	// After names the components that must be ready before this one starts.
	After []string
	// Hash of all the above (secrets included, as digests only).
	Hash string
}

// File is a small file on the target.
type File struct {
	Path    string
	Content []byte
	Mode    uint32
	UID     int
	GID     int
}

// DataDir is a host folder with data.
type DataDir struct {
	Path string
	UID  int
	GID  int
	Mode uint32
}
