package fit

import (
	"iter"
	"slices"
)

// nodeList is nodes by index, ascending. It is kept in runs that are never written to, so
// that lists which differ in a few of ten thousand nodes share the others.
type nodeList struct {
	count int
	runs  [][]int32 // none is empty; of a list that was cut short less than count in all
}

// runNodes is how long a run may get: that much is copied for one change.
const runNodes = 128

// listOf is a list of nodes that are in order.
func listOf(nodes []int32) nodeList {
	if len(nodes) == 0 {
		return nodeList{}
	}
	return nodeList{len(nodes), slices.Collect(slices.Chunk(nodes, runNodes))}
}

// first is the first of a list that is not empty.
func (l *nodeList) first() int { return int(l.runs[0][0]) }

// each goes through the list in order.
func (l *nodeList) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, run := range l.runs {
			for _, at := range run {
				if !yield(int(at)) {
					return
				}
			}
		}
	}
}

// appendTo appends the list to another.
func (l *nodeList) appendTo(out []int32) []int32 {
	for _, run := range l.runs {
		out = append(out, run...)
	}
	return out
}

// run is which run a node is in or belongs to. There must be one.
func (l *nodeList) run(at int32) int {
	r, _ := slices.BinarySearchFunc(l.runs, at, func(run []int32, at int32) int { return int(run[len(run)-1]) - int(at) })
	return min(r, len(l.runs)-1)
}

// insert adds a node that is not in it.
func (l *nodeList) insert(at int32, mem *lists) {
	l.count++
	if len(l.runs) == 0 {
		l.runs = append(l.runs, append(mem.run(1), at))
		return
	}
	r := l.run(at)
	if run := l.runs[r]; len(run) >= runNodes {
		half := len(run) / 2
		l.runs = slices.Insert(l.runs, r+1, run[half:])
		l.runs[r] = run[:half]
		r = l.run(at)
	}
	run := l.runs[r]
	i, _ := slices.BinarySearch(run, at)
	next := append(mem.run(len(run)+1), run[:i]...)
	l.runs[r] = append(append(next, at), run[i:]...)
}

// remove takes a node out that is in it.
func (l *nodeList) remove(at int32, mem *lists) {
	l.count--
	r := l.run(at)
	run := l.runs[r]
	i, _ := slices.BinarySearch(run, at)
	switch {
	case len(run) == 1:
		l.runs = slices.Delete(l.runs, r, r+1)
		return
	case i == 0:
		l.runs[r] = run[1:]
	case i == len(run)-1:
		l.runs[r] = run[:i]
	default:
		l.runs[r] = append(append(mem.run(len(run)-1), run[:i]...), run[i+1:]...)
	}
	if r+1 < len(l.runs) && len(l.runs[r])+len(l.runs[r+1]) <= runNodes/2 {
		l.runs[r] = append(append(mem.run(runNodes/2), l.runs[r]...), l.runs[r+1]...)
		l.runs = slices.Delete(l.runs, r+1, r+2)
	}
}

// lists is memory for the lists of all clones of one plan; nil: they stay.
type lists struct {
	nodes blocks[int32]
	runs  blocks[[]int32]
}

// run is place for a run.
func (m *lists) run(n int) []int32 {
	if m == nil {
		return make([]int32, 0, n)
	}
	return m.nodes.take(n)
}

// own is a list like l whose runs may become others.
func (m *lists) own(l nodeList) nodeList {
	const more = 2
	var runs [][]int32
	if m == nil {
		runs = make([][]int32, 0, len(l.runs)+more)
	} else {
		runs = m.runs.take(len(l.runs) + more)
	}
	return nodeList{l.count, append(runs, l.runs...)}
}

func (m *lists) reset() {
	m.nodes.reset()
	m.runs.reset()
}

// blocks is memory that is given out in pieces and taken back all at once.
type blocks[T any] struct {
	all  [][]T
	used int // of all
	from int // of the block in use
}

// Blocks grow from the first to the last size: most clusters are small.
const (
	firstBlock = 1 << 9
	lastBlock  = 1 << 14
)

// take is a piece of length 0 for so many.
func (b *blocks[T]) take(n int) []T {
	for b.used < len(b.all) && len(b.all[b.used])-b.from < n {
		b.used, b.from = b.used+1, 0
	}
	if b.used == len(b.all) {
		b.all = append(b.all, make([]T, max(n, min(lastBlock, firstBlock<<len(b.all)))))
	}
	out := b.all[b.used][b.from : b.from : b.from+n]
	b.from += n
	return out
}

func (b *blocks[T]) reset() { b.used, b.from = 0, 0 }
