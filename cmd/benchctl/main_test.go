package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// TestMain lets testscripts run this test binary as benchctl.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"benchctl": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               scriptEnvironment,
		Cmds:                scriptCommands(),
	})
}

// scriptEnvironment keeps the user's own settings out of the scripts.
func scriptEnvironment(e *testscript.Env) error {
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("NO_COLOR", "1")
	e.Setenv("COLUMNS", "100")
	for _, name := range []string{"PATH"} {
		e.Setenv(name, os.Getenv(name))
	}
	return nil
}
