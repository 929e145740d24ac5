// Package reconcile decides what to do: desired and observed state in, a plan
// out. It is pure: no network, no clock, no file is touched, so that every
// decision can be tested with a table and shown before it is carried out.
//
// The rules it keeps:
//   - What does not carry our labels is never touched. A foreign container,
//     network or port in the way is an error that names it.
//   - A container stays when the hash of its specification, its image and its
//     network are the wanted ones; settings are never compared one by one
//     except to tell why something is replaced.
//   - Data is never overwritten. A data folder is used again only when its
//     marker says that it was made by this component, for this scenario and
//     for the same database; anything else is set aside by renaming it to
//     <name>-<UTC time>.
//   - Images are pulled before anything that runs is stopped.
package reconcile

import (
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// Labels that identify what we made. What lacks LabelLab is never touched.
const (
	LabelLab       = "benchctl.lab"       // the scenario that the container was made for
	LabelComponent = "benchctl.component" // component name
	LabelKind      = "benchctl.kind"      // kind of the component
	LabelHash      = "benchctl.hash"      // SHA-256 of our canonical spec
	LabelSpec      = "benchctl.spec"      // the canonical spec itself, secrets as digests
	LabelStandIn   = "benchctl.stand-in"  // on images that only stand in for the official ones
)

// Kinds of components.
const (
	KindKeycloak = "keycloak"
	KindDatabase = "database"
	KindProxy    = "proxy"
	KindLDAP     = "ldap"
	KindExtra    = "extra"
)

// Desired is a lab as it should be.
type Desired struct {
	// Lab is the scenario's name.
	Lab string
	// Overrides are the command line's changes to the scenario.
	Overrides []string
	// Target is how messages call the machine.
	Target string
	// Network is the bridge network of the lab, or HostNetwork.
	Network    string
	Components []Component
	// Layout says where things lie on the target.
	Layout Layout
	// Data says what becomes of the data that is there.
	Data DataRule
	// Endpoint is proved last, from the generator's side; empty for none.
	Endpoint string
}

// Component is one container as it should be.
type Component struct {
	// Name is the container's name.
	Name string
	// Kind is keycloak, database, proxy, ldap or extra.
	Kind string
	Spec engine.ContainerSpec
	// Files are configuration files on the target, mounted as folders.
	Files []File
	// LiveFiles says that the component reads changed files by itself, so
	// that it need not be restarted for them.
	LiveFiles bool
	// Data describes the folders that outlive the container; nil for none.
	Data *Data
	// After names the components that must be ready before this one starts.
	After []string
	// RestartWith names the components whose replacement makes this one start
	// anew.
	RestartWith []string
	// Ready proves that it serves.
	Ready Probe
	// Cluster proves that the nodes found each other; nil where there is
	// nothing to prove.
	Cluster *ClusterProbe
	// Hash of the canonical spec; set by Seal.
	Hash string
}

// File is a file of configuration on the target.
type File struct {
	Path    string
	Content []byte
	Mode    uint32
	// Later gives the content where it is too large to be held by a plan;
	// nil where Content has it.
	Later *Later
	// Random says that the content is another one each time it is decided on,
	// as a new key is; what was once written is kept.
	Random bool
}

// Data are the folders in which a component keeps its data.
type Data struct {
	// Dirs are folders below Layout.Data(component).
	Dirs []DataDir
	// Key stands for all that the data depends on (kind and format of the
	// database, names, password digest): data made under another key is of no
	// use to the component.
	Key string
	// Format is Key for people: "PostgreSQL 15".
	Format string
}

// DataDir is a host folder with data.
type DataDir struct {
	Path string
	UID  int
	GID  int
	Mode uint32
}

// Probe is how a component shows that it serves. Exactly one of Exec, HTTP
// and TCP is set, or none where running is enough.
type Probe struct {
	Exec *ExecProbe `json:"exec,omitempty"`
	HTTP *HTTPProbe `json:"http,omitempty"`
	// TCP is a port of the container that must accept connections.
	TCP int `json:"tcp,omitempty"`
	// Timeout bounds the wait.
	Timeout time.Duration `json:"-"`
}

// ExecProbe is a command in the container that must exit 0.
type ExecProbe struct {
	Command []string
	// Env of the command: values come from the container's own SecretEnv, by
	// the name given here.
	Env map[string]string
}

// HTTPProbe is a GET on the container's own address, which must answer 200.
type HTTPProbe struct {
	Port int
	Path string
}

// ClusterProbe reads how many members each node sees: from a gauge of its
// metrics, or, for a server that has none, from what it logged last.
type ClusterProbe struct {
	Port   int
	Path   string
	Metric string
	// Log is a regular expression whose group is the number in a line of the
	// log; Port, Path and Metric are not used then.
	Log  string `json:",omitempty"`
	Size int
}

// Source names where the number comes from, for messages.
func (c ClusterProbe) Source() string {
	if c.Log != "" {
		return "its log"
	}
	return c.Metric
}

// Layout says where a lab keeps what on its target. All of it lies below one
// folder, data_dir:
//
//	<data_dir>/benchctl.json               what we did to this machine (State)
//	<data_dir>/config/<component>/…        configuration files; teardown removes them
//	<data_dir>/<component>/benchctl.json   whose data it is (Marker)
//	<data_dir>/<component>/<folder>/…      the data, mounted into the container
//	<data_dir>/<component>-<UTC time>/     data set aside
type Layout struct {
	DataDir string
	// SELinux says that folders need a label that containers may use.
	SELinux bool
}

// ConfigRoot holds the configuration of all components.
func (l Layout) ConfigRoot() string { return l.DataDir + "/config" }

// Config is the folder with the configuration of one component.
func (l Layout) Config(component string) string { return l.ConfigRoot() + "/" + component }

// Data is the folder with the data of one component.
func (l Layout) Data(component string) string { return l.DataDir + "/" + component }

// MarkerName is the file that tells whose a folder is.
const MarkerName = "benchctl.json"

// StatePath is where State is kept.
func (l Layout) StatePath() string { return l.DataDir + "/" + MarkerName }

// MarkerPath is where the Marker of a data folder is kept.
func (l Layout) MarkerPath(folder string) string { return l.DataDir + "/" + folder + "/" + MarkerName }

// State is what we remember about a target, beside the containers
// themselves.
type State struct {
	Schema string `json:"schema"` // benchctl.state/1
	// Lab is the scenario that the target was last provisioned for.
	Lab string `json:"lab"`
	// Overrides of the command line that it was provisioned with.
	Overrides []string `json:"overrides,omitempty"`
	// Created says that data_dir itself was made by us.
	Created bool `json:"created"`
	// Pulled are the images that were not there before we pulled them.
	Pulled []string `json:"pulled,omitempty"`
}

// Marker tells whose data lies in a folder.
type Marker struct {
	Schema    string `json:"schema"` // benchctl.data/1
	Component string `json:"component"`
	Lab       string `json:"lab"`
	Key       string `json:"key"`
	Format    string `json:"format"`
	// Proved says that the component once answered with this data: folders
	// of a start that never came to its end are not used again.
	Proved bool `json:"proved"`
	// Seeded tells what the data was filled with, as far as it is known.
	Seeded Seeded `json:"seeded,omitzero"`
}

// Schemas of the files above.
const (
	StateSchema  = "benchctl.state/1"
	MarkerSchema = "benchctl.data/1"
)

// Observed is a target as it is.
type Observed struct {
	Containers []engine.Container
	Networks   []engine.Network
	// Images that are on the target, by the reference that was asked for.
	Images map[string]engine.Image
	// DataDirExists tells whether data_dir itself is there.
	DataDirExists bool
	State         *State
	// Folders are the folders directly below data_dir, config excepted.
	Folders []Folder
	// Other names that lie below data_dir (files and folders without a
	// marker are listed in Folders too; this is for what is not a folder).
	Other []string
	// ConfigExists tells whether Layout.ConfigRoot is there.
	ConfigExists bool
	// Files are the SHA-256 of the wanted configuration files that are there,
	// in hex, by path.
	Files map[string]string
	// Listeners are the TCP ports that something on the target listens on.
	Listeners []Listener
}

// Folder is one folder below data_dir.
type Folder struct {
	Name string
	// Marker is nil where there is none, or none that can be read.
	Marker *Marker
	Empty  bool
}

// Listener is a TCP port in use.
type Listener struct {
	Address string // "" or an unspecified address for all
	Port    int
	// Process is the program's name where it could be learnt.
	Process string
	PID     int
}
