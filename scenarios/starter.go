package scenarios

import _ "embed" // for the files to start from

// StarterFile is the name under which a scenario to start from is written.
const StarterFile = "scenario.hcl"

var (
	//go:embed starter/inventory.hcl
	starterInventory string
	//go:embed starter/scenario.hcl
	starterScenario string
)

// Starter gives commented files to start from: an inventory, and a scenario
// that extends a built-in one. Both validate as they are.
func Starter() (inventoryHCL, scenarioHCL string) { return starterInventory, starterScenario }
