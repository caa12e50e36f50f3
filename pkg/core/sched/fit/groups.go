package fit

import "slices"

// Groups are nodes that are alike to a backfill, with memory for their lists.
type Groups struct {
	choices []Choice
	lists   [][]int32
	from    []int          // how many lists each was put together from
	by      map[[3]int]int // index of a group by ranks, now and free
}

// Reset forgets all of them.
func (gs *Groups) Reset() {
	clear(gs.by)
	gs.choices, gs.from = gs.choices[:0], gs.from[:0]
}

// Add puts n nodes into their group, of which at are the first.
func (gs *Groups) Add(at []int32, n, ranks, now, free int) {
	if gs.by == nil {
		gs.by = map[[3]int]int{}
	}
	k := [3]int{ranks, now, free}
	i, known := gs.by[k]
	if !known {
		i = len(gs.choices)
		gs.by[k] = i
		gs.choices, gs.from = append(gs.choices, Choice{Ranks: ranks, now: now, free: free}), append(gs.from, 0)
		if len(gs.lists) == i {
			gs.lists = append(gs.lists, nil)
		}
		gs.lists[i] = gs.lists[i][:0]
	}
	gs.lists[i] = append(gs.lists[i], at...)
	gs.choices[i].like.count += n
	gs.from[i]++
}

// Made is the groups, each with its nodes in order.
func (gs *Groups) Made() []Choice {
	for i := range gs.choices {
		if gs.from[i] > 1 {
			slices.Sort(gs.lists[i])
		}
		gs.choices[i].At, gs.choices[i].like.runs = int(gs.lists[i][0]), [][]int32{gs.lists[i]}
	}
	return gs.choices
}
