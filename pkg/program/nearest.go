package program

import "strings"

// Nearest is the choice closest to what was typed, or "" when none is close: a wrong
// guess helps less than none. Case does not count.
func Nearest(typed string, choices []string) string {
	typed = strings.ToLower(typed)
	best, bestCost := "", len(typed)/3+1 // one slip for every three letters
	for _, c := range choices {
		lower := strings.ToLower(c)
		cost := editDistance(typed, lower)
		if len(typed) >= 3 && strings.HasPrefix(lower, typed) {
			cost = 1
		}
		if cost < bestCost {
			best, bestCost = c, cost
		}
	}
	return best
}

// editDistance is Levenshtein's with a swap of neighbours counted once, the commonest slip
// of fingers.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
