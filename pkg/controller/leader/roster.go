package leader

import (
	"sync"
	"time"
)

// Roster tells when all nodes go by the newest list of controllers. A node that does not know of a
// controller does not need its word, and would run on while that one leads. It goes by a list when
// it has said so; and a node that has not, while a leader with that list was in office for the
// whole of a lease, has no leave to run anything any more: that leader gave no word that it does
// not lead, and echoes nobody's beats before it has told the list.
type Roster struct {
	mu      sync.Mutex
	version uint64
	since   time.Duration     // this leader tells the list
	listed  map[string]uint64 // by node, what it keeps
}

// Tell says that this leader tells nodes a list from now on.
func (r *Roster) Tell(version uint64, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version > r.version {
		r.version, r.since = version, now
	}
}

// Listed takes in which list a node keeps.
func (r *Roster) Listed(node string, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listed == nil {
		r.listed = map[string]uint64{}
	}
	r.listed[node] = max(r.listed[node], version)
}

// Settled says whether all of these nodes go by the list, and else which of them do not yet.
func (r *Roster) Settled(now, lease time.Duration, nodes []string) (settled bool, lacking []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version == 0 {
		return false, nil
	}
	if now >= r.since+lease {
		return true, nil
	}
	for _, n := range nodes {
		if r.listed[n] < r.version {
			lacking = append(lacking, n)
		}
	}
	return len(lacking) == 0, lacking
}
