package cluster

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// AppendClass appends what tells n from other nodes as far as any ask that names no node can
// see: partitions, features, sockets and cores, what is free, and the cards that are not used up, whichever
// slots they are in. Nodes with equal classes hold the same ranks of every ask, at the same
// cost; on a large cluster ten thousand nodes are a few hundred classes.
func (n *Node) AppendClass(b []byte) []byte { return n.appendClass(b, n.use()) }

// AppendEmptiedClass is AppendClass of [Node.Emptied].
func (n *Node) AppendEmptiedClass(b []byte) []byte {
	if len(n.Cards) > len(unused) {
		return n.Emptied().AppendClass(b)
	}
	return n.appendClass(b, &usage{cards: unused[:len(n.Cards)]})
}

func (n *Node) appendClass(b []byte, u *usage) []byte {
	num := func(v int64) { b = binary.AppendVarint(b, v) }
	text := func(s string) {
		num(int64(len(s)))
		b = append(b, s...)
	}
	list := func(l []string) {
		num(int64(len(l)))
		for _, s := range l {
			text(s)
		}
	}
	list(n.Partitions)
	list(n.Features)
	for r := range n.Has {
		num(max(0, n.Has[r]-u.taken[r]))
		num(n.Each[r])
	}
	num(int64(n.Shape.Sockets))
	num(int64(n.Shape.Cores))
	num(int64(n.Shape.Threads))
	flags := int64(0)
	if u.exclusive > 0 {
		flags |= 1
	}
	if u.grants > 0 {
		flags |= 2
	}
	if len(n.Cards) > 0 {
		flags |= 4
	}
	num(flags)
	if u.exclusive > 0 {
		return b // nothing goes there, whatever its cards
	}
	var buf [16]int
	open := buf[:0]
	for i := range n.Cards {
		if n.Cards[i].State != stateQuarantined && u.cards[i].exclusive == 0 {
			open = append(open, i)
		}
	}
	byClass := func(i, j int) int {
		x, y, p, q := &n.Cards[i], &n.Cards[j], &u.cards[i], &u.cards[j]
		return cmp.Or(cmp.Compare(x.VRAMBytes, y.VRAMBytes), cmp.Compare(p.vram, q.vram),
			cmp.Compare(x.StrangersBytes, y.StrangersBytes), cmp.Compare(min(1, p.holders), min(1, q.holders)), cmp.Compare(x.Model, y.Model))
	}
	slices.SortFunc(open, byClass)
	for len(open) > 0 {
		same := 1
		for same < len(open) && byClass(open[0], open[same]) == 0 {
			same++
		}
		c, use := &n.Cards[open[0]], &u.cards[open[0]]
		num(int64(same))
		num(c.VRAMBytes)
		num(use.vram)
		num(c.StrangersBytes)
		num(int64(min(1, use.holders)))
		text(c.Model)
		open = open[same:]
	}
	return b
}
