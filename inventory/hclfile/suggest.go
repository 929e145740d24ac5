package hclfile

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// Suggest gives the known name that is nearest to what was written, or "" if
// none is near enough to be meant.
func Suggest(given string, known []string) string {
	best, bestDistance := "", 0
	lower := strings.ToLower(given)
	for _, name := range known {
		distance := levenshtein.Distance(lower, strings.ToLower(name), nil)
		if best == "" || distance < bestDistance {
			best, bestDistance = name, distance
		}
	}
	if best != "" && bestDistance <= max(1, min(3, len(best)/2)) && bestDistance < len(given) {
		return best
	}
	for _, name := range known {
		if len(given) >= 3 && strings.HasPrefix(strings.ToLower(name), lower) {
			return name
		}
	}
	return ""
}

// DidYouMean is the hint for an unknown name: the one that was likely meant,
// and all that there are. what names them in plural, as in "flows".
func DidYouMean(given string, known []string, what string) string {
	var b strings.Builder
	if s := Suggest(given, known); s != "" {
		fmt.Fprintf(&b, "Did you mean %q? ", s)
	}
	if len(known) == 0 {
		fmt.Fprintf(&b, "There are no %s here.", what)
	} else {
		fmt.Fprintf(&b, "%s: %s.", strings.ToUpper(what[:1])+what[1:], strings.Join(known, ", "))
	}
	return b.String()
}
