// Package machine turns this machine into the lab host and back: packages, Podman's settings, the sshd, and what is
// left over when something was killed.
//
// The promise: nothing under /etc changes but what Debian's packages install, no process and no network of anyone else
// is touched, and everything can be undone. It is not for machines other than this one, nor for product code: benchctl
// prepares its targets itself.
package machine

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Limits are the hard limits of this process, which containers can't exceed where CAP_SYS_RESOURCE is missing.
type Limits struct{ Files, Processes uint64 }

// Wished limits of a container's processes: what the components of a lab need.
const (
	wishedFiles     = 20000
	wishedProcesses = 32768
)

// PodmanSettings are what containers.conf says.
type PodmanSettings struct {
	Limits Limits
	// Temporary is Podman's folder of locks and events, Networks that of its networks.
	Temporary, Networks string
	// SubnetPrefix begins the addresses of all networks: "10.107.".
	SubnetPrefix string
}

// ContainersConf renders containers.conf.
func ContainersConf(s PodmanSettings) string {
	files, processes := min(s.Limits.Files, wishedFiles), min(s.Limits.Processes, wishedProcesses)
	var b strings.Builder
	fmt.Fprintf(&b, "[containers]\n")
	fmt.Fprintf(&b, "default_ulimits = [\"nofile=%d:%d\", \"nproc=%d:%d\"]\n", files, files, processes, processes)
	fmt.Fprintf(&b, "log_driver = \"k8s-file\"\n")
	fmt.Fprintf(&b, "\n[engine]\n# No systemd to ask for cgroups, and crun refuses them in hybrid mode.\n")
	fmt.Fprintf(&b, "cgroup_manager = \"cgroupfs\"\nruntime = \"runc\"\nevents_logger = \"file\"\n")
	fmt.Fprintf(&b, "# Locks in shared memory belong to all Podmans of a machine: the first start of one frees those of another.\n")
	fmt.Fprintf(&b, "lock_type = \"file\"\ntmp_dir = %q\n", s.Temporary)
	fmt.Fprintf(&b, "\n[network]\nnetwork_backend = \"netavark\"\nnetwork_config_dir = %q\n", s.Networks)
	fmt.Fprintf(&b, "default_subnet = %q\n", s.SubnetPrefix+"255.0/24")
	fmt.Fprintf(&b, "default_subnet_pools = [{\"base\" = %q, \"size\" = 24}]\n", s.SubnetPrefix+"0.0/16")
	return b.String()
}

// StorageConf renders storage.conf: the lab's own storage, with the shared images to read.
func StorageConf(p place.Paths) string {
	return fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n\n[storage.options]\nadditionalimagestores = [%q]\n",
		p.GraphRoot(), p.RunRoot(), p.ImageStore())
}

// RegistriesConf renders registries.conf: full names only, and a registry on this machine, if a test starts one, may
// be without TLS.
func RegistriesConf() string {
	return "unqualified-search-registries = []\n\n[[registry]]\nprefix = \"127.0.0.1:5000\"\nlocation = \"127.0.0.1:5000\"\ninsecure = true\n"
}

// SubnetPrefix chooses the networks' address range, 10.N.0.0/16: the same for the same lab, different from other labs'
// and from Podman's own, and free of what the machine uses. used are addresses and routes as text.
func SubnetPrefix(lab string, used []string) string {
	sum := sha256.Sum256([]byte(lab))
	for i := range 100 {
		prefix := fmt.Sprintf("10.%d.", 100+(int(sum[0])+i)%100)
		if !anyHasPrefix(used, prefix) {
			return prefix
		}
	}
	return fmt.Sprintf("10.%d.", 100+int(sum[0])%100)
}

func anyHasPrefix(list []string, prefix string) bool {
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// SubnetPrefixIn reads the address range back out of a containers.conf that ContainersConf rendered, "" from another.
func SubnetPrefixIn(conf string) string {
	for _, line := range strings.Split(conf, "\n") {
		if rest, ok := strings.CutPrefix(line, `default_subnet = "`); ok {
			if prefix, ok := strings.CutSuffix(rest, `255.0/24"`); ok {
				return prefix
			}
		}
	}
	return ""
}
