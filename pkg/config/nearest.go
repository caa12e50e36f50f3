package config

// nearest is the choice that fewest slips away from typed, "" when none is close: a
// wrong guess helps less than none.
func nearest(typed string, choices []string) string {
	best, least := "", 2+len(typed)/3
	for _, c := range choices {
		if d := distance(typed, c); d < least || d == least && c < best {
			best, least = c, d
		}
	}
	return best
}

// distance is Levenshtein's, one row at a time.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
