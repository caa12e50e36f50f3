package gang

// jobs are those in memory, and what changed of them since the last Take.
type jobs struct {
	byID    map[int64]*entry
	noEpoch *epoch // of those that have no nodes; nothing is written to it
	nextID  int64

	dirty    []*entry
	purged   []int64
	revived  []int64
	touched  []int64            // whose candidacy may have changed; with repeats
	prepared map[int64]struct{} // gangs of which another number of ranks is prepared
}
