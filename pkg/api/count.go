package api

import "strconv"

// Count writes a number with what it counts: "1 node", "3 nodes".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
