package api

// NodeUse is what moves of a node from second to second: who has its cards, and what they do. The stream of the queue
// tells it in place of the whole [Node], which is twenty times longer.
type NodeUse struct {
	// Cards are, of each card: used bytes and those of strangers in MiB, utilization in percent (-1: unknown),
	// reserved bytes in MiB, and the numbers of the jobs that have it.
	Cards      [][]int64 `json:"cards"`
	CPUsUsed   int       `json:"cpus_used"`
	MemoryUsed int64     `json:"memory_used_bytes"`
	TmpUsed    int64     `json:"tmp_used_bytes,omitempty"`
	Exclusive  bool      `json:"exclusive,omitempty"`
	Jobs       []int64   `json:"jobs"`
}

const mebi = 1 << 20

// Use takes what moves out of a node, and gives it.
func (n *Node) Use() NodeUse {
	u := NodeUse{Cards: make([][]int64, len(n.Cards)), CPUsUsed: n.CPUsUsed, MemoryUsed: n.MemoryUsed, TmpUsed: n.TmpUsed,
		Exclusive: n.Exclusive, Jobs: n.Jobs}
	n.CPUsUsed, n.MemoryUsed, n.TmpUsed, n.Exclusive, n.Jobs = 0, 0, 0, false, []int64{}
	for i := range n.Cards {
		c := &n.Cards[i]
		strangers := (c.StrangersBytes + mebi - 1) / mebi // some are not none
		u.Cards[i] = append([]int64{c.UsedBytes / mebi, strangers, int64(c.Utilization), c.ReservedBytes / mebi}, c.Jobs...)
		c.UsedBytes, c.StrangersBytes, c.Utilization, c.ReservedBytes, c.Jobs = 0, 0, -1, 0, []int64{}
	}
	return u
}

// Apply puts it back.
func (u *NodeUse) Apply(n *Node) {
	n.CPUsUsed, n.MemoryUsed, n.TmpUsed, n.Exclusive, n.Jobs = u.CPUsUsed, u.MemoryUsed, u.TmpUsed, u.Exclusive, u.Jobs
	for i := range n.Cards {
		if i >= len(u.Cards) || len(u.Cards[i]) < 4 {
			continue
		}
		c, f := &n.Cards[i], u.Cards[i]
		c.UsedBytes, c.StrangersBytes, c.Utilization, c.ReservedBytes, c.Jobs = f[0]*mebi, f[1]*mebi, int(f[2]), f[3]*mebi, f[4:]
	}
}
