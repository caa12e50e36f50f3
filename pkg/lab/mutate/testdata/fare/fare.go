// Package fare is small and badly tested.
package fare

// Price is for a ride of some zones.
func Price(zones int, child, dog bool) int {
	p := zones * 2
	if zones > 3 {
		p--
	}
	if child && !dog {
		return 0
	}
	switch {
	case p > 100:
		p = 90
	}
	return max(p, 1)
}

// Rides is how many rides a sum is good for.
func Rides(sum int) (n int) {
	for sum >= 2 {
		sum -= 2
		n++
	}
	return n
}

// Forgotten is called by no test.
func Forgotten(zones int) bool { return zones == 0 }
