package gang

import (
	"fmt"

	"gangd/pkg/api"
)

// A gang holds what it asks for of the site's pools while it is admitted. What is held is not stored: it follows from the jobs.

// countPools counts what a gang holds from now on, with -1 what it held.
func (w *World) countPools(j *Job, d int) {
	for i := range j.Spec.Pools {
		p := &j.Spec.Pools[i]
		if w.pools[p.Key()] += d * p.Count; w.pools[p.Key()] == 0 {
			delete(w.pools, p.Key())
		}
	}
}

// shortOfPool says which pool has too little left for a gang, empty: none.
func (w *World) shortOfPool(j *Job) string {
	if len(j.Spec.Pools) == 0 {
		return ""
	}
	has := map[api.PoolKey]int{}
	for _, p := range w.set.Pools() {
		has[p.Key()] = p.Count
	}
	for i := range j.Spec.Pools {
		p := &j.Spec.Pools[i]
		if free := has[p.Key()] - w.pools[p.Key()]; p.Count > free {
			return fmt.Sprintf("%d of %s asked for, %d of %d free", p.Count, p.Key(), max(0, free), has[p.Key()])
		}
	}
	return ""
}

// Pools is what gangs hold of what the site has altogether.
func (w *World) Pools(k api.PoolKey) int { return w.pools[k] }
