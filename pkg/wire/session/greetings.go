package session

import (
	"time"

	"gangd/pkg/api"
)

// Greetings are the newest hellos of nodes. One that a node made before another of the same boot is no news
// however late it comes: a kernel goes on sending what was written to a connection that its process has given up,
// and members that the node has begun since are not in it. The zero value knows none.
type Greetings struct {
	made map[string]greeting // by node
}

type greeting struct {
	boot, state string
	made        time.Duration
}

// Newest takes in a hello; false: the node has made a newer one.
func (g *Greetings) Newest(h *api.Hello) bool {
	if g.made == nil {
		g.made = map[string]greeting{}
	}
	last, now := g.made[h.Node], greeting{h.BootID, h.StateID, h.Made}
	if last.boot == now.boot && last.state == now.state && now.made != 0 && now.made < last.made {
		return false
	}
	g.made[h.Node] = now
	return true
}
