package mutate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Draw takes n of all mutants of the packages, by a seed; all of them if there are fewer. A
// package has a share by the root of how many it has: a small one is not less important. Each
// mutant has its own lot, from the seed and its key, so that a change of the source changes
// little of what is drawn.
func Draw(packages []*Package, n int, seed uint64) map[string][]*Mutant {
	drawn := map[string][]*Mutant{}
	for i, share := range shares(packages, n) {
		p := packages[i]
		lots := map[*Mutant][sha256.Size]byte{}
		for _, m := range p.Mutants {
			lots[m] = sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.Key()))
		}
		ms := slices.SortedFunc(maps.Keys(lots), func(a, b *Mutant) int {
			x, y := lots[a], lots[b]
			return bytes.Compare(x[:], y[:])
		})[:share]
		slices.SortFunc(ms, func(a, b *Mutant) int { return a.ID - b.ID })
		drawn[p.Path] = ms
	}
	return drawn
}

// shares are how many of n each package gets, never more than it has.
func shares(packages []*Package, n int) []int {
	out := make([]int, len(packages))
	for left := n; left > 0; {
		// One by one to the package that is furthest behind.
		best, behind := -1, 0.0
		for i, p := range packages {
			if b := (float64(out[i]) + 1) / math.Sqrt(float64(len(p.Mutants))); out[i] < len(p.Mutants) && (best < 0 || b < behind) {
				best, behind = i, b
			}
		}
		if best < 0 {
			break
		}
		out[best]++
		left--
	}
	return out
}
