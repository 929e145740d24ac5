package report

import (
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// CampaignSchema names the shape of campaign.json. Fields are added, never
// renamed.
const CampaignSchema = "benchctl.campaign/1"

// Campaign is campaign.json: what was to be measured on what, and how it
// ended. It is written at the start and again as things become known, so a
// campaign that was killed has Ended unset.
type Campaign struct {
	Schema      string           `json:"schema"`
	Scenario    string           `json:"scenario"`
	Description string           `json:"description,omitempty"`
	Started     time.Time        `json:"started"`
	Ended       time.Time        `json:"ended,omitzero"`
	Verdict     loadtest.Verdict `json:"verdict,omitempty"`
	// Reasons say why the verdict is not "passed", or what stopped the
	// campaign.
	Reasons []string `json:"reasons"`
	// Planned are all runs in their order, so that a folder tells which of
	// them are missing.
	Planned     []PlannedRun `json:"planned"`
	Fingerprint Fingerprint  `json:"fingerprint"`
}

// PlannedRun is one run that the campaign means to make.
type PlannedRun struct {
	// Number of the test in its scenario, from 1; File is where its result is
	// written, in the same folder.
	Number int    `json:"number"`
	Test   string `json:"test"`
	Repeat int    `json:"repeat,omitempty"`
	Reset  string `json:"reset"`
	File   string `json:"file"`
}

// Fingerprint is what the figures depend on besides the tests themselves:
// two campaigns with the same fingerprint measured the same thing.
type Fingerprint struct {
	Tool      Tool `json:"benchctl"`
	Target    Host `json:"target"`
	Generator Host `json:"generator"`
	// PodmanVersion is that of the target's engine.
	PodmanVersion string      `json:"podman_version,omitempty"`
	Components    []Component `json:"components"`
	// StandIn tells that at least one image only stands in for the official
	// one.
	StandIn bool    `json:"stand_in"`
	Dataset Dataset `json:"dataset"`
	// HashPolicy is the password hashing in Keycloak's syntax, or "default
	// (argon2 …)" as observed.
	HashPolicy string `json:"hash_policy,omitempty"`
	// SessionMode says where sessions live: "persistent" (database) or
	// "volatile" (memory).
	SessionMode string `json:"session_mode,omitempty"`
	// ClusterMembers is how many nodes the identity server's cluster must have.
	ClusterMembers int `json:"cluster_members,omitempty"`
	// Overrides are command-line changes to the scenario ("-scale 0.05").
	Overrides []string `json:"overrides,omitempty"`
	// URL is the base under which load reached the server.
	URL string `json:"url,omitempty"`
}

// Tool is the benchctl that measured.
type Tool struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"go_version,omitempty"`
}

// Host is a machine: the target or the generator.
type Host struct {
	Name        string `json:"name,omitempty"` // as the inventory calls it
	Hostname    string `json:"hostname,omitempty"`
	OS          string `json:"os,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Arch        string `json:"arch,omitempty"`
	CPUs        int    `json:"cpus,omitempty"`
	CPUModel    string `json:"cpu_model,omitempty"`
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
	SELinux     string `json:"selinux,omitempty"`
	Cgroup      string `json:"cgroup,omitempty"`
}

// Component is one container with the settings in force.
type Component struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	Image string `json:"image"`
	// ImageID and Digest pin what the reference meant at that time.
	ImageID string `json:"image_id,omitempty"`
	Digest  string `json:"digest,omitempty"`
	StandIn bool   `json:"stand_in,omitempty"`
	// CPUs is the cpuset, CPULimit a quota in cores.
	CPUs        string  `json:"cpus,omitempty"`
	CPULimit    float64 `json:"cpu_limit,omitempty"`
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
	// Settings by name: environment, command-line options, server settings.
	// Secrets are redacted by whoever fills this in.
	Settings map[string]string `json:"settings,omitempty"`
	// Hash of the container's specification (label benchctl.hash).
	Hash string `json:"hash,omitempty"`
}

// Dataset is what the identity server was filled with.
type Dataset struct {
	Template string `json:"template,omitempty"`
	Size     string `json:"size,omitempty"`
	Realms   int    `json:"realms,omitempty"`
	Clients  int    `json:"clients,omitempty"` // per realm
	Users    int    `json:"users,omitempty"`   // per realm
	Seed     int64  `json:"seed,omitempty"`
	// Digest identifies what the dataset holds, its template's text included.
	Digest string `json:"digest,omitempty"`
	// Hash is how its passwords are hashed, completely, as it was found:
	// "argon2:…". HashedHere tells that the hashes were made by benchctl and
	// not by the server.
	Hash       string `json:"hash,omitempty"`
	HashedHere bool   `json:"hashed_here"`
	// Pool is how many different passwords each realm's users share; 0 when
	// every user has one of their own or it is not known.
	Pool int `json:"pool,omitempty"`
	// SeedSeconds is how long filling took; 0 when it was there already.
	SeedSeconds float64 `json:"seed_s,omitempty"`
}
