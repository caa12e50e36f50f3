package script

import (
	"strconv"
	"strings"

	"gangd/pkg/core/outpath"
)

// strange is the first letter behind % that stands for nothing, as it is written, empty: there is
// none. Slurm takes it for itself, and so do people who write 100%.
func strange(pattern string) string {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		from := i
		i++
		for i < len(pattern) && pattern[i] >= '0' && pattern[i] <= '9' {
			i++
		}
		if i == len(pattern) || pattern[i] != '%' && strings.IndexByte(outpath.Letters, pattern[i]) < 0 {
			return pattern[from:min(i+1, len(pattern))]
		}
	}
	return ""
}

// warnPattern warns of letters that will stand in the name of the file.
func (a *Ask) warnPattern(pattern string) {
	if strings.ContainsRune(pattern, '\\') {
		return // nothing is replaced
	}
	if what := strange(pattern); what != "" {
		a.warn(strconv.Quote(what) + " stands for nothing and stays in the name; " +
			"there are %j job, %x name, %A array, %a index, %u user, %N node, %n node number, %t rank, %r restart, %%")
	}
}

// FixedDir is the longest leading directory of a path pattern that is the same for every
// job, rank and attempt.
func FixedDir(pattern string) string {
	if i := strings.IndexByte(pattern, '%'); i >= 0 {
		pattern = pattern[:i]
	}
	i := strings.LastIndexByte(pattern, '/')
	switch {
	case i < 0:
		return ""
	case i == 0:
		return "/"
	}
	return pattern[:i]
}
