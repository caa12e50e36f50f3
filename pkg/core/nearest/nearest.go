// Package nearest finds what somebody meant to type. It is pure.
//
// Begin with Of and Hint. It must not know what the choices are.
package nearest

import "strings"

// Of is the choice closest to what was typed, the first of equals, or "" when none is
// close: a wrong guess helps less than none. Case does not count.
func Of(typed string, choices []string) string {
	typed = strings.ToLower(typed)
	best, bestCost := "", slips(typed)+1
	for _, c := range choices {
		lower := strings.ToLower(c)
		cost := distance(typed, lower)
		if len(typed) >= 3 && strings.HasPrefix(lower, typed) {
			cost = 1
		}
		if cost < bestCost {
			best, bestCost = c, cost
		}
	}
	return best
}

// Hint asks whether the choice closest to what was typed was meant; otherwise is what to say where none
// is close.
func Hint(typed string, choices []string, otherwise string) string {
	if near := Of(typed, choices); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// slips is how many wrong letters still count as close: one for every three, but two in
// what is about as long as an option's name. In two letters any slip makes another word.
func slips(typed string) int {
	switch n := len(typed); {
	case n < 3:
		return 0
	case n < 5:
		return 1
	case n < 9:
		return 2
	default:
		return n / 3
	}
}

// distance is Levenshtein's with a swap of neighbours counted once, the commonest slip
// of fingers.
func distance(a, b string) int {
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
