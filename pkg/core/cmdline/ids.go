package cmdline

import "strings"

// SplitIDs cuts a list of job ids, or of nodes, at the commas that are not inside brackets; blanks around an
// id are not its own.
func SplitIDs(list string) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(list) + 1 {
		switch {
		case i == len(list) || list[i] == ',' && depth == 0:
			if id := strings.TrimSpace(list[from:i]); id != "" {
				out = append(out, id)
			}
			from = i + 1
		case list[i] == '[':
			depth++
		case list[i] == ']':
			depth--
		}
	}
	return out
}

// WithoutLimit drops the %4 of 12_[0-15%4], which squeue prints and people copy.
func WithoutLimit(s string) string {
	from := strings.IndexByte(s, '%')
	if from < 0 {
		return s
	}
	end := strings.IndexByte(s[from:], ']')
	if end < 0 || strings.Trim(s[from+1:from+end], "0123456789") != "" {
		return s
	}
	return s[:from] + WithoutLimit(s[from+end:])
}
