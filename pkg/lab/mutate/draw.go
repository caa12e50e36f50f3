package mutate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
)

// Draw takes n of all mutants of the packages, by a seed; all of them if there are fewer. Each
// mutant has its own lot, from the seed and its key, so that a change of the source changes
// little of what is drawn.
func Draw(packages []*Package, n int, seed uint64) map[string][]*Mutant {
	type ticket struct {
		lot    [sha256.Size]byte
		mutant *Mutant
	}
	var all []ticket
	for _, p := range packages {
		for _, m := range p.Mutants {
			all = append(all, ticket{sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.Key())), m})
		}
	}
	slices.SortFunc(all, func(a, b ticket) int { return bytes.Compare(a.lot[:], b.lot[:]) })
	drawn := map[string][]*Mutant{}
	for _, t := range all[:min(n, len(all))] {
		drawn[t.mutant.Package] = append(drawn[t.mutant.Package], t.mutant)
	}
	for _, ms := range drawn {
		slices.SortFunc(ms, func(a, b *Mutant) int { return a.ID - b.ID })
	}
	return drawn
}
