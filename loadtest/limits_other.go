//go:build !linux

package loadtest

// systemLimits are not known here.
func systemLimits() limits { return limits{} }

func openFiles() int { return 0 }
