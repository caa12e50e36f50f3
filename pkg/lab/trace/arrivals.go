package trace

import (
	"cmp"
	"fmt"
	"slices"
)

// Arrivals is the order in which the jobs of a trace knock at a cluster that is filled up
// without departures: a shuffle by seed, with copies of jobs drawn by seed until the asks
// reach load units (what unit gives for a job), as the published experiments do it.
func Arrivals(t *Trace, seed int, load int64, unit func(*Job) int64) []Job {
	list := slices.Clone(t.Jobs)
	sum := int64(0)
	for i := range list {
		sum += unit(&list[i])
	}
	for k := 0; ; k++ {
		c := t.Jobs[HashInt(fmt.Sprintf("%d:clone:%d", seed, k))%uint64(len(t.Jobs))]
		if sum += unit(&c); sum > load {
			break
		}
		c.ID = fmt.Sprintf("%s-c%d", c.ID, k)
		list = append(list, c)
	}
	keys := make(map[string]uint64, len(list))
	for i := range list {
		keys[list[i].ID] = HashInt(fmt.Sprintf("%d:order:%s", seed, list[i].ID))
	}
	slices.SortFunc(list, func(a, b Job) int { return cmp.Or(cmp.Compare(keys[a.ID], keys[b.ID]), cmp.Compare(a.ID, b.ID)) })
	sum = 0
	for i := range list {
		if sum += unit(&list[i]); sum > load {
			return list[:i]
		}
	}
	return list
}
