package gang

import "gangd/pkg/api"

// nodes are all that are known, and what changed of them since the last Take.
type nodes struct {
	set *api.Settings

	byName map[string]*host
	sorted []*host           // the same, ascending: each plan asks for all of them
	paths  map[string]string // the switches above each, for the environment of ranks
	away   int               // those without a session

	dirty  []*host
	forgot []string
	woken  []string // whose desired set changed; with repeats: a map that was once large stays slow to walk
	room   bool     // one offers something else than at the last TakeQueue
}
