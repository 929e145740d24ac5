package main

import (
	"encoding/json"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/benchctl/benchctl/loadtest/report"
)

// textOptions say how wide standard output is and whether it takes colours.
func (a *app) textOptions() report.Options {
	return report.Options{Width: a.width(a.stdout), Color: a.colour(a.stdout)}
}

// width is the number of columns of COLUMNS or of a terminal; 0, which means
// no limit, for files and pipes, so that lines can be searched and compared.
func (a *app) width(w io.Writer) int {
	if text, ok := a.environ("COLUMNS"); ok {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			return n
		}
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour respects NO_COLOR and outputs that are no terminal.
func (a *app) colour(w io.Writer) bool {
	if v, set := a.environ("NO_COLOR"); set && v != "" {
		return false
	}
	return isTerminal(w)
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
