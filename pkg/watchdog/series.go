package watchdog

import (
	"cmp"
	"slices"

	"gangd/pkg/api"
)

// Idle is the site's definition of it.
type Idle struct {
	Percent     int   // a card used at most so much is idle
	StaticBytes int64 // memory that moved less is static
}

// IdleOf takes it from the settings.
func IdleOf(s *api.Settings) Idle {
	return Idle{Percent: s.GPUIdlePercent, StaticBytes: s.MemoryStaticBytes}
}

// Reading is one card at one instant; -1 is unknown.
type Reading struct {
	Utilization int
	UsedBytes   int64
}

// Unknown is a reading that could not be had.
var Unknown = Reading{Utilization: -1, UsedBytes: -1}

// Series is readings of some cards, one after the other.
type Series struct {
	idle     Idle
	cards    []span
	readings int
}

// span is what the readings of one card amount to.
type span struct {
	uuid      string
	peak      int
	low, high int64
	sized     bool // low and high were seen
	unknown   bool
}

// NewSeries is an empty series of some cards.
func NewSeries(idle Idle, uuids []string) *Series {
	s := &Series{idle: idle, cards: make([]span, len(uuids))}
	for i, u := range uuids {
		s.cards[i].uuid = u
	}
	return s
}

// Add takes one reading of every card; read gives it by UUID.
func (s *Series) Add(read func(uuid string) Reading) {
	for i := range s.cards {
		s.cards[i].add(read(s.cards[i].uuid))
	}
	s.readings++
}

func (c *span) add(r Reading) {
	c.unknown = c.unknown || r.Utilization < 0 || r.UsedBytes < 0
	c.peak = max(c.peak, r.Utilization)
	switch {
	case r.UsedBytes < 0:
	case !c.sized:
		c.low, c.high, c.sized = r.UsedBytes, r.UsedBytes, true
	default:
		c.low, c.high = min(c.low, r.UsedBytes), max(c.high, r.UsedBytes)
	}
}

// State is what the readings say; a series without a card or a reading shows nothing.
func (s *Series) State() api.CardsState {
	if s.readings == 0 || len(s.cards) == 0 {
		return api.CardsUnknown
	}
	worst := api.CardsQuiet
	for i := range s.cards {
		worst = stronger(worst, s.cards[i].state(s.idle))
	}
	return worst
}

func (c *span) state(idle Idle) api.CardsState {
	switch {
	case c.peak > idle.Percent:
		return api.CardsBusy
	case c.high-c.low > 0 && c.high-c.low >= idle.StaticBytes:
		return api.CardsMoving
	case c.unknown:
		return api.CardsUnknown
	}
	return api.CardsQuiet
}

// Finding is what the readings showed, card by card.
func (s *Series) Finding() *api.Finding {
	f := &api.Finding{State: s.State(), Count: len(s.cards), Readings: s.readings}
	for i := range s.cards {
		c := &s.cards[i]
		one := api.CardFinding{UUID: c.uuid, State: c.state(s.idle), Utilization: c.peak, MovedBytes: c.high - c.low}
		if c.unknown && one.State == api.CardsUnknown {
			one.Utilization, one.MovedBytes = -1, -1
		}
		f.Cards = append(f.Cards, one)
	}
	f.Cards = worstFirst(f.Cards)
	return f
}

// Merge is the finding of a gang from those of its members, by node. The nodes' order is the
// caller's, so that the result does not depend on a map.
func Merge(nodes []string, of func(node string) *api.Finding) *api.Finding {
	out := &api.Finding{State: api.CardsQuiet}
	for _, n := range nodes {
		f := of(n)
		if f == nil {
			out.State = stronger(out.State, api.CardsUnknown)
			continue
		}
		out.State = stronger(out.State, f.State)
		out.Count += f.Count
		if out.Readings == 0 || f.Readings < out.Readings {
			out.Readings = f.Readings
		}
		for _, c := range f.Cards {
			c.Node = n
			out.Cards = append(out.Cards, c)
		}
	}
	if out.Count == 0 {
		out.State = stronger(out.State, api.CardsUnknown)
	}
	out.Cards = worstFirst(out.Cards)
	return out
}

// strength orders the states; see [api.CardsState].
func strength(s api.CardsState) int {
	switch s {
	case api.CardsBusy:
		return 3
	case api.CardsMoving:
		return 2
	case api.CardsQuiet:
		return 0
	}
	return 1 // unknown, also what a newer node may say
}

func stronger(a, b api.CardsState) api.CardsState {
	if strength(b) > strength(a) {
		return b
	}
	return a
}

func worstFirst(cards []api.CardFinding) []api.CardFinding {
	slices.SortStableFunc(cards, func(a, b api.CardFinding) int {
		return cmp.Or(cmp.Compare(strength(b.State), strength(a.State)), cmp.Compare(b.Utilization, a.Utilization), cmp.Compare(b.MovedBytes, a.MovedBytes))
	})
	return cards[:min(len(cards), api.MaxFindingCards)]
}
