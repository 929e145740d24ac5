// Package campaign measures a whole scenario: provision, seed, and for each
// test reset, run and keep, through small interfaces that stand for the
// target, the dataset, the load engine and the results folder. It holds the
// order of things and what is believed about their outcome, nothing else: it
// imports no container engine and opens no connection.
//
// Its promise: what was measured is kept, whatever happens next. A campaign
// that is cancelled or that fails ends with the results so far, says which
// tests are missing and what is still there on the target, and a run whose lab
// was not as it should have been is never passed off as good.
//
// The steps, in order, each in a file of its own:
//
//	provision.go    turn the target into the scenario's lab
//	seed.go         fill the identity server
//	fingerprint.go  write down what is measured
//	reset.go        before each run: bring the lab to the agreed state
//	inspect.go      before and after each run: cluster members, drift
//	run.go          drive the load, sample the target meanwhile
//	keep.go         results, samples, logs and settings into the folder
//	finish.go       verdict of the whole, what is missing, what is left
package campaign
