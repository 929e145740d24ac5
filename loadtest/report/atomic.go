package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tempPattern names files that are being written. Readers pass over them.
const tempPattern = ".writing-*"

// writeFile makes path appear with all that fill writes, or not at all: the
// content goes to a temporary file of the same folder, is synced, and takes
// its name by a rename that is synced too.
func writeFile(path string, fill func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(tmp))
		}
	}()
	if err := fill(tmp); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	// CreateTemp gives 0600; results are no secret.
	if err := tmp.Chmod(0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := tmp.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(dir)
}

// discard removes a temporary file whose writing failed.
func discard(tmp *os.File) error {
	if err := tmp.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close %s: %w", tmp.Name(), err)
	}
	if err := os.Remove(tmp.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", tmp.Name(), err)
	}
	return nil
}
