package lab

import (
	"strconv"
	"strings"
)

// reference is an image reference taken apart.
type reference struct {
	repository string // docker.io/library/postgres
	tag        string // 15-alpine; "" if none
	digest     string // sha256:…; "" if none
}

func parseReference(image string) reference {
	var r reference
	image, r.digest, _ = strings.Cut(image, "@")
	// A colon before the last slash belongs to a registry's port.
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		r.repository, r.tag = image[:i], image[i+1:]
	} else {
		r.repository = image
	}
	return r
}

// version reads the leading numbers of a tag: "26.7.3-0" is 26, 7, 3; none
// for "latest" or where only a digest is given.
func (r reference) version() []int {
	text, _, _ := strings.Cut(strings.TrimPrefix(r.tag, "v"), "-")
	var out []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

// major is the first number of the version; 0 where it is not known.
func (r reference) major() int {
	if v := r.version(); len(v) > 0 {
		return v[0]
	}
	return 0
}

// line is the version as far as files on disk depend on it, with n numbers:
// "15", "10.11"; the tag or digest itself where there are no numbers.
func (r reference) line(n int) string {
	v := r.version()
	if len(v) == 0 {
		if r.digest != "" {
			return r.digest
		}
		if r.tag != "" {
			return r.tag
		}
		return "latest"
	}
	var parts []string
	for _, x := range v[:min(n, len(v))] {
		parts = append(parts, strconv.Itoa(x))
	}
	return strings.Join(parts, ".")
}
