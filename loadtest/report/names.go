package report

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// CampaignFile is the name of a campaign's own file in its folder.
const CampaignFile = "campaign.json"

// Endings of the files that belong to one run, after its base name.
const (
	resultSuffix   = ".json"
	histSuffix     = ".hdr.gz"
	samplesSuffix  = ".containers.csv"
	logsSuffix     = ".logs"
	settingsSuffix = ".settings.json"
)

// runFile matches <nn>-<test>.json and <nn>-<test>-<repeat>.json and nothing
// else that a folder of results holds: base names have no dot.
var runFile = regexp.MustCompile(`^[0-9]{2,}-[^.]+\.json$`)

// BaseName is the common beginning of all files of one run: <nn>-<test>, and
// <nn>-<test>-<repeat> for a repeat above 0. Characters that file systems or
// shells take amiss become "_".
func BaseName(number int, test string, repeat int) string {
	base := fmt.Sprintf("%02d-%s", number, fileSafe(test))
	if repeat > 0 {
		base += fmt.Sprintf("-%d", repeat)
	}
	return base
}

// fileSafe keeps letters, digits, "-" and "_", at most 60 of them.
func fileSafe(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	if safe == "" {
		return "run"
	}
	return safe[:min(len(safe), 60)]
}

// FolderName is the default name of a campaign's folder:
// 20261130T221500Z-demo.
func FolderName(started time.Time, scenario string) string {
	return started.UTC().Format("20060102T150405Z") + "-" + fileSafe(scenario)
}
