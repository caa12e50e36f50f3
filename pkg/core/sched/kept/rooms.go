package kept

import "gangd/pkg/core/cluster"

// rooms are nodes as they would be with less on them, by index; most of them are as they
// are. It is used again for each question: making nodes for it was half of a replay.
type rooms struct {
	of     []cluster.Room
	made   []int  // the turn in which of, at this index, was made
	looked []int  // the turn of allowed
	allows []bool // the ask may go there at all
	ranks  []int  // of the ask that fit in a room, where who asks keeps them
	turn   int
}

// begin forgets all rooms, and makes place for those of n nodes.
func (rs *rooms) begin(n int) {
	if len(rs.of) < n {
		*rs = rooms{of: make([]cluster.Room, n), made: make([]int, n), looked: make([]int, n), allows: make([]bool, n), ranks: make([]int, n),
			turn: rs.turn}
	}
	rs.turn++
}

// at is the room of a node, nil where none was made.
func (rs *rooms) at(i int) *cluster.Room {
	if rs.made[i] != rs.turn {
		return nil
	}
	return &rs.of[i]
}

// open is the room of a node, as it is now when none was made before.
func (rs *rooms) open(i int, n *cluster.Node) *cluster.Room {
	if rs.made[i] != rs.turn {
		rs.made[i] = rs.turn
		rs.of[i].Of(n)
	}
	return &rs.of[i]
}

// allowed is what ask says of a node, asked once.
func (rs *rooms) allowed(i int, ask func() bool) bool {
	if rs.looked[i] != rs.turn {
		rs.looked[i], rs.allows[i] = rs.turn, ask()
	}
	return rs.allows[i]
}
