package gang

import (
	"slices"

	"gangd/pkg/api"
)

// A gang that waits for its first nodes is its ask and nothing else: its ranks are all alike, and
// what is alike is shared. At 100,000 waiting gangs of up to 64 ranks each having its own ones
// was half of the memory.

// maxBlank is the size up to which waiting gangs share their ranks; larger ones are few.
const maxBlank = 4096

// blank is the ranks of all of them. It is never written to: see [jobs.editRanks] and [OwnRanks].
var blank = newBlank(maxBlank)

func newBlank(size int) []Rank {
	ranks := make([]Rank, size)
	for i := range ranks {
		ranks[i].State = api.RankBlocked
	}
	return ranks
}

// BlankRanks are the ranks of a gang of that size that never had nodes. They must not be written
// to before [OwnRanks].
func BlankRanks(size int) []Rank {
	switch {
	case size <= 0:
		return nil
	case size > maxBlank:
		return newBlank(size)
	}
	return blank[:size:size]
}

// areBlank reports whether ranks are shared.
func areBlank(ranks []Rank) bool {
	return len(ranks) > 0 && &ranks[0] == &blank[0]
}

// OwnRanks are ranks that may be written to: these themselves, or a copy of shared ones.
func OwnRanks(ranks []Rank) []Rank {
	if areBlank(ranks) {
		return slices.Clone(ranks)
	}
	return ranks
}
