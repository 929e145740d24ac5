package scenarios

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// AutoCPUs lets the target's own number of CPUs decide.
const AutoCPUs = "auto"

// maxCPU is the highest number of a CPU that is taken for one.
const maxCPU = 4095

// ParseCPUs reads a cpuset as container engines take it, such as "1,5" or
// "2-5,7", into the numbers of its CPUs in the order in which they are
// written, each once. It does not read "auto".
func ParseCPUs(text string) ([]int, error) {
	var list []int
	seen := map[int]bool{}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := cpu(first)
		if err != nil {
			return nil, fmt.Errorf("%q is no cpuset: %w", text, err)
		}
		to := from
		if isRange {
			if to, err = cpu(last); err != nil {
				return nil, fmt.Errorf("%q is no cpuset: %w", text, err)
			}
			if to < from {
				return nil, fmt.Errorf("%q is no cpuset: %s goes backwards", text, part)
			}
		}
		for n := from; n <= to; n++ {
			if !seen[n] {
				seen[n] = true
				list = append(list, n)
			}
		}
	}
	return list, nil
}

func cpu(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxCPU || s[0] == '+' || s[0] == '-' {
		return 0, fmt.Errorf("%q is no number of a CPU", s)
	}
	return n, nil
}

func sortedPorts(ports map[int]int) []int {
	list := make([]int, 0, len(ports))
	for p := range ports {
		list = append(list, p)
	}
	sort.Ints(list)
	return list
}
