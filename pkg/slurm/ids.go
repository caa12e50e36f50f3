package slurm

import "strings"

// SplitIDs cuts a list of job ids at the commas that are not inside brackets; blanks around an
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
func WithoutLimit(id string) string {
	head, tail, ok := strings.Cut(id, "%")
	if !ok {
		return id
	}
	return head + strings.TrimLeft(tail, "0123456789")
}
