package script

// nearest is the candidate with the fewest typing errors away from s, empty when none is
// close: one error in a short word, a third of the letters in a long one. Ties go to the
// first.
func nearest(s string, candidates []string) string {
	allowed := len(s) / 3
	switch {
	case len(s) < 5:
		allowed = 1
	case len(s) < 9:
		allowed = 2
	}
	best, bestAt := "", allowed+1
	for _, c := range candidates {
		if d := distance(s, c); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// distance counts insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	two, one := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(b)]
}
