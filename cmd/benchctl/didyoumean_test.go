package main

import "testing"

func TestDidYouMean(t *testing.T) {
	for name, c := range map[string]struct{ word, want string }{
		"one letter missing": {"provsion", `; did you mean "provision"?`},
		"swapped":            {"stauts", `; did you mean "status"?`},
		"nothing near":       {"zebra", ""},
	} {
		if got := didYouMean(c.word, commandNames()); got != c.want {
			t.Errorf("%s: didYouMean(%q) = %q, want %q", name, c.word, got, c.want)
		}
	}
}
