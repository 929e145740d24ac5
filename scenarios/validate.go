package scenarios

import (
	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/hclfile"
)

// Validate checks files without a target: any mix of inventory and scenario
// files, each scenario in them in full. Environment variables and variables
// that have no value where it runs are warnings. What is wrong is one
// *hclfile.Error that holds everything.
func Validate(files []string, opts hclfile.Options) ([]hclfile.Diagnostic, error) {
	opts = opts.WithDefaults()
	opts.Lenient = true
	report := &hclfile.Report{}
	parsed := hclfile.Read(files, opts.ReadFile, report)
	c := newCatalog(parsed, nil, opts, report)
	inventory.Decode(parsed, c.scope, report)
	for _, e := range c.entries {
		if !e.file.Builtin && !e.incomplete() {
			c.decode(e, report)
		}
	}
	return report.Result()
}

// incomplete tells whether the scenario, or a parent, may lack what stands
// after a fault of its file.
func (e *entry) incomplete() bool {
	for at := e; at != nil; at = at.parent {
		if at.file.Broken {
			return true
		}
	}
	return false
}

// Format lays a file out as benchctl fmt does; what does not parse stays as
// it is.
func Format(src []byte) []byte { return hclfile.Format(src) }
