package kept

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// ending is a grant and when it ends at the latest.
type ending struct {
	at  int
	t   time.Time
	key api.MemberKey
	// cards is no less than what it leaves free.
	cards int32
}

// endingOf is the end of a grant on the node at an index.
func endingOf(at int, t time.Time, g *cluster.Grant) ending {
	return ending{at, t, g.MemberKey, int32(len(g.Cards))}
}

func compareEnding(a, b ending) int {
	if c := a.t.Compare(b.t); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key.Job, b.key.Job), cmp.Compare(a.key.Epoch, b.key.Epoch))
}

// timeline is the known ends of all grants on ready nodes, the first first. It is kept from
// plan to plan: sorting it anew was a fifth of a replay. Pieces of bounded length keep a
// change from moving all that comes later, which is 80,000 ends on a large cluster.
type timeline struct{ pieces [][]ending }

// pieceEnds is how long a piece may get.
const pieceEnds = 256

// piece is the one that e is in or belongs to. There must be one.
func (tl *timeline) piece(e ending) int {
	at, _ := slices.BinarySearchFunc(tl.pieces, e, func(p []ending, e ending) int { return compareEnding(p[len(p)-1], e) })
	return min(at, len(tl.pieces)-1)
}

func (tl *timeline) add(e ending) {
	if len(tl.pieces) == 0 {
		tl.pieces = [][]ending{{e}}
		return
	}
	at := tl.piece(e)
	p := tl.pieces[at]
	i, _ := slices.BinarySearchFunc(p, e, compareEnding)
	p = slices.Insert(p, i, e)
	tl.pieces[at] = p
	if half := len(p) / 2; len(p) > pieceEnds {
		tl.pieces[at] = p[:half:half]
		tl.pieces = slices.Insert(tl.pieces, at+1, slices.Clone(p[half:]))
	}
}

func (tl *timeline) remove(e ending) {
	at := tl.piece(e)
	p := tl.pieces[at]
	i, _ := slices.BinarySearchFunc(p, e, compareEnding)
	if tl.pieces[at] = slices.Delete(p, i, i+1); len(tl.pieces[at]) == 0 {
		tl.pieces = slices.Delete(tl.pieces, at, at+1)
	}
}

// node takes in that a node is another than before; nil: there was none.
func (tl *timeline) node(at int, was, is *cluster.Node) {
	old, now := endsOn(was), endsOn(is)
	for len(old) > 0 || len(now) > 0 {
		c := 0
		switch {
		case len(old) == 0:
			c = 1
		case len(now) == 0:
			c = -1
		default:
			c = cmp.Or(cmp.Compare(old[0].Job, now[0].Job), cmp.Compare(old[0].Epoch, now[0].Epoch))
		}
		if c == 0 && old[0].Until.Equal(now[0].Until) {
			old, now = old[1:], now[1:]
			continue
		}
		if c <= 0 {
			if t := old[0].Until; !t.IsZero() {
				tl.remove(endingOf(at, t, &old[0]))
			}
			old = old[1:]
		}
		if c >= 0 {
			if t := now[0].Until; !t.IsZero() {
				tl.add(endingOf(at, t, &now[0]))
			}
			now = now[1:]
		}
	}
}

func endsOn(n *cluster.Node) []cluster.Grant {
	if n == nil || !n.Ready {
		return nil
	}
	return n.Grants
}

// reset makes it anew from nodes.
func (tl *timeline) reset(nodes []*cluster.Node) {
	// Sorted by figures: ends are large to move, and of one time they are in their order already.
	type end struct {
		second    int64
		nano      int32
		node, own int32
	}
	known := 0
	for _, n := range nodes {
		known += len(endsOn(n))
	}
	all := make([]end, 0, known)
	for at, n := range nodes {
		for i := range endsOn(n) {
			if t := n.Grants[i].Until; !t.IsZero() {
				all = append(all, end{t.Unix(), int32(t.Nanosecond()), int32(at), int32(i)})
			}
		}
	}
	slices.SortFunc(all, func(a, b end) int {
		if a.second != b.second {
			return cmp.Compare(a.second, b.second)
		}
		return cmp.Or(cmp.Compare(a.nano, b.nano), cmp.Compare(a.node, b.node), cmp.Compare(a.own, b.own))
	})
	tl.pieces = nil
	for len(all) > 0 {
		piece := make([]ending, min(len(all), pieceEnds/2), pieceEnds/2)
		for i := range piece {
			g := &nodes[all[i].node].Grants[all[i].own]
			piece[i] = endingOf(int(all[i].node), g.Until, g)
		}
		tl.pieces, all = append(tl.pieces, piece), all[len(piece):]
	}
}

// ends goes through what is there when a plan asks, the first to end first: the timeline
// beside what differs from it in this plan. It is consumed.
type ends struct {
	pieces [][]ending // what is left of the timeline, the first piece of it from i on
	i      int
	other  []ending // sorted
	not    map[int64]time.Time
}

// next is the next end; false when nothing else has a known one.
func (s *ends) next() (ending, bool) {
	for len(s.pieces) > 0 {
		if s.i == len(s.pieces[0]) {
			s.pieces, s.i = s.pieces[1:], 0
			continue
		}
		e := s.pieces[0][s.i]
		if by, stopping := s.not[e.key.Job]; stopping && by.Before(e.t) {
			s.i++ // among the others, at the time by which it is stopped
			continue
		}
		if len(s.other) > 0 && compareEnding(s.other[0], e) < 0 {
			break
		}
		s.i++
		return e, true
	}
	if len(s.other) == 0 {
		return ending{}, false
	}
	e := s.other[0]
	s.other = s.other[1:]
	return e, true
}
