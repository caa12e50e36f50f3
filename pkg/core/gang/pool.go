package gang

import (
	"fmt"

	"gangd/pkg/api"
)

// A gang holds what it asks for of the site's pools while it is admitted. What is held is not stored: it follows from the jobs.

// pools are what the site has altogether, whichever nodes use it.
type pools struct {
	set  *api.Settings
	held map[api.PoolKey]int // by gangs
}

// count counts what a gang holds from now on, with -1 what it held.
func (pl *pools) count(j *Job, d int) {
	for i := range j.Spec.Pools {
		p := &j.Spec.Pools[i]
		if pl.held[p.Key()] += d * p.Count; pl.held[p.Key()] == 0 {
			delete(pl.held, p.Key())
		}
	}
}

// short says which pool has too little left for a gang, empty: none.
func (pl *pools) short(j *Job) string {
	if len(j.Spec.Pools) == 0 {
		return ""
	}
	has := map[api.PoolKey]int{}
	for _, p := range pl.set.Pools() {
		has[p.Key()] = p.Count
	}
	for i := range j.Spec.Pools {
		p := &j.Spec.Pools[i]
		if free := has[p.Key()] - pl.held[p.Key()]; p.Count > free {
			return fmt.Sprintf("%d of %s asked for, %d of %d free", p.Count, p.Key(), max(0, free), has[p.Key()])
		}
	}
	return ""
}

// Pools is what gangs hold of what the site has altogether.
func (w *World) Pools(k api.PoolKey) int { return w.site.pools.held[k] }
