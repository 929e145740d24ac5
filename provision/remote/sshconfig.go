package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kevinburke/ssh_config"
)

// sshConfig reads OpenSSH client configuration. A file that is not there is
// left out; one that can't be understood is noticed and left out, so that a
// Match block somewhere does not stop a target whose inventory says it all.
func sshConfig(files []string, notice func(string)) func(alias, key string) []string {
	var configs []*ssh_config.Config
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var config *ssh_config.Config
		if err == nil {
			config, err = ssh_config.Decode(bytes.NewReader(text))
		}
		if err != nil {
			notice(fmt.Sprintf("%s is not used: %v", file, err))
			continue
		}
		configs = append(configs, config)
	}
	return func(alias, key string) []string {
		for _, config := range configs {
			values, err := config.GetAll(alias, key)
			if err != nil {
				notice(fmt.Sprintf("ssh configuration, %s of %s is not used: %v", key, alias, err))
				continue
			}
			if len(values) > 0 {
				return values
			}
		}
		return nil
	}
}
