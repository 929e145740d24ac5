package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

// The first line of an inventory that the lab wrote holds a hash of the rest: only a file that nobody has changed since
// may be written anew or removed.
const (
	markBegin = "# Written by `make lab`; `make lab-down` removes it while nobody changes it ("
	markEnd   = ")."
)

// Inventory renders the inventory file that points at the lab.
func Inventory(f place.Facts) string {
	body := fmt.Sprintf(`target "lab" {
  address       = %q
  user          = %q
  identity_file = %q
  known_hosts   = [%q]
  podman_socket = %q
  data_dir      = %q
}
`, f.Address, f.User, f.IdentityFile, f.KnownHosts, f.PodmanSocket, f.DataDir)
	return markBegin + hashOf(body) + markEnd + "\n" + body
}

// WrittenFor says whether an inventory's text was written for the lab with this run folder and is unchanged.
func WrittenFor(run, text string) bool {
	first, body, ok := strings.Cut(text, "\n")
	return ok && first == markBegin+hashOf(body)+markEnd && strings.Contains(body, fmt.Sprintf("= %q\n", run+"/podman.sock"))
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:6])
}
