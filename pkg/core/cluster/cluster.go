package cluster

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

// Card is a card with what is granted on it.
type Card struct {
	api.CardInfo
	State          api.CardState `json:"state,omitempty"` // by Fault, Held and Drained
	Reason         string        `json:"reason,omitempty"`
	StrangersBytes int64         `json:"strangers_bytes,omitempty"` // VRAM held by processes that are not ours, last sample
	UsedBytes      int64         `json:"used_bytes,omitempty"`      // VRAM held by gangs, last sample; display only
	Utilization    int           `json:"utilization"`               // percent, -1 unknown; display only

	Fault   string `json:"fault,omitempty"`   // why it must not be used at all; empty: fine
	Held    string `json:"held,omitempty"`    // what an attempt that is over has not given back; empty: nothing
	Drained string `json:"drained,omitempty"` // a person's reason; empty: in service
}

// Judged is c with the state that follows from what is known of it. A fault is said before
// what it may well have brought about.
func (c Card) Judged() Card {
	c.State, c.Reason = api.CardOK, ""
	for _, why := range []string{c.Fault, c.Held, c.Drained} {
		if why != "" {
			c.State, c.Reason = api.CardQuarantined, why
			break
		}
	}
	return c
}

// Grant is what one member holds on a node. It counts from reservation until the member
// is proven gone, draining included.
type Grant struct {
	api.MemberKey
	Ranks     int
	Takes     Amounts // as asked for; of what is 0 the node's Each is taken
	Cards     []CardGrant
	Exclusive bool      // no other gang on this node
	Until     time.Time // expected end by its time limit; zero: unknown
}

// CardGrant is a share of one card.
type CardGrant struct {
	UUID      string `json:"uuid"`
	VRAMBytes int64  `json:"vram_bytes,omitempty"` // asked for; with Exclusive it is the whole card whatever this says
	Exclusive bool   `json:"exclusive,omitempty"`
}

// Node is a node as the scheduler sees it.
type Node struct {
	Name       string
	Address    string
	Ready      bool   // may take new work
	Away       bool   // not ready only because it is not connected, for less than node_timeout
	NotReady   string // why not, for people: "drained: launch failures: ..."
	Has        Amounts
	Each       Amounts      // what each grant takes that asks for none
	Shape      api.CPUShape // of the CPUs
	Features   []string
	Partitions []string
	Cards      []Card
	Grants     []Grant // ordered by job, epoch
	used       usage   // sums of Grants, kept by Take, Release, Restore and Counted
}

// Slot is where one rank goes.
type Slot struct {
	Node  string   `json:"node,omitempty"`
	Cards []string `json:"cards,omitempty"` // UUIDs, in the order in which the member sees them
}

// IsZero lets a slot that is no place be left out of JSON.
func (s Slot) IsZero() bool { return s.Node == "" && len(s.Cards) == 0 }

// NodesOf names the nodes of places, each once, in their order.
func NodesOf(slots []Slot) []string {
	var out []string
	for _, s := range slots {
		if !slices.Contains(out, s.Node) {
			out = append(out, s.Node)
		}
	}
	return out
}

// Ask is what a gang needs, taken from its spec. Equal asks have equal Key.
type Ask struct {
	Spec       *api.Spec // within the bounds of its partitions: see [AskIn]
	Own        *api.Spec // as it was asked for, where that is another; nil: it is not. See [Ask.Asked]
	Partitions []string  // acceptable ones, never empty
	In         []In      // the same with their bounds, where they were given
	Key        string
	// Any are the asks any one of which is enough, where partitions allow different numbers of nodes; nil: the ask itself.
	Any []*Ask
	// Parts are the asks of the roles, in their order, each as if it were a gang of its own;
	// nil where all ranks ask for the same.
	Parts []*Ask
	// Apart, of a part: no node may have ranks of another part.
	Apart bool
	// Refused are those of the excluded nodes that nobody asked to leave out: they refused the gang.
	Refused []string
	// least and most nodes of a gang whose roles share them; 0: any.
	least, most int
}
