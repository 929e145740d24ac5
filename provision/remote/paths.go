package remote

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/benchctl/benchctl/inventory"
)

// errPath marks a path that no file operation is done on.
var errPath = errors.New("refused")

// checkPath wants absolute, clean paths: a relative one would mean something
// else for each user, and ".." would get around every other check.
func checkPath(name string) error {
	switch {
	case !strings.HasPrefix(name, "/"):
		return fmt.Errorf("%w: path %q is not absolute", errPath, name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("%w: path %q holds a NUL byte", errPath, name)
	case path.Clean(name) != name:
		return fmt.Errorf("%w: path %q is not clean (it would be %q)", errPath, name, path.Clean(name))
	}
	return nil
}

// checkRemovable refuses to remove what can't be meant: the root, the
// folders of the system, whole homes.
func checkRemovable(name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if err := inventory.CheckRemovable(name); err != nil {
		return fmt.Errorf("%w: %w", errPath, err)
	}
	return nil
}
