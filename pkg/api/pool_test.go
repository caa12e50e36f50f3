package api

import (
	"regexp"
	"strings"
	"testing"
)

// TestPoolNames: each name of up to three of these is one of a pool when the expression says so.
func TestPoolNames(t *testing.T) {
	const letters = "aZ09._@/- :é\n"
	want := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@/-]*\z`)
	names := []string{""}
	for range 3 {
		for _, name := range names {
			for _, c := range letters {
				names = append(names, name+string(c))
			}
		}
	}
	for _, name := range append(names, strings.Repeat("a", 64), strings.Repeat("a", 65)) {
		if got := PoolNameOK(name); got != (len(name) <= 64 && want.MatchString(name)) {
			t.Errorf("%q: %t", name, got)
		}
	}
}
