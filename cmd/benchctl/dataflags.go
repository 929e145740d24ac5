package main

import (
	"flag"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// dataFlags say what a plan may do with the data that is there.
type dataFlags struct{ fresh, keep bool }

func (f *dataFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&f.fresh, "fresh", false, "start with empty data; what is there is set aside as a backup")
	fs.BoolVar(&f.keep, "keep-data", false, "refuse to go on where data that is there would be set aside")
}

func (f *dataFlags) rule() (reconcile.DataRule, error) {
	switch {
	case f.fresh && f.keep:
		return "", usagef("-fresh and -keep-data exclude each other")
	case f.fresh:
		return reconcile.FreshData, nil
	case f.keep:
		return reconcile.KeepData, nil
	}
	return reconcile.UseData, nil
}
