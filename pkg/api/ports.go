package api

import (
	"fmt"
	"strconv"
	"strings"
)

// Ports are given out as hints: nobody keeps a process from listening elsewhere, but no two
// steps or gangs that live on one node are told the same.

// PortEach, as a number of ports that is asked for, is one for each task or rank on the
// node that has the most of them.
const PortEach = -1

// PortRange is what ports are given out of, First to Last; the zero value is none.
type PortRange struct{ First, Last int }

// Count is how many there are.
func (r PortRange) Count() int {
	if r.First == 0 {
		return 0
	}
	return r.Last - r.First + 1
}

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// ParsePortRange reads "12000-12999"; empty is none.
func ParsePortRange(s string) (PortRange, error) {
	if s == "" {
		return PortRange{}, nil
	}
	first, last, _ := strings.Cut(s, "-")
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	if err != nil || err2 != nil || a < 1024 || b > 65535 || a > b {
		return PortRange{}, Errorf(CodeInvalid, "ports %q: want FIRST-LAST, both from 1024 to 65535, such as 12000-12999", s)
	}
	return PortRange{a, b}, nil
}
