package watchdog

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Idle is the site's definition of it.
type Idle struct {
	Percent     int   // a card used at most so much is idle
	StaticBytes int64 // a card's memory that moved less is static
	HostBytes   int64 // what processes move on their machine in a second without doing anything
}

// IdleOf takes it from the settings. A controller of an older release says nothing of hosts.
func IdleOf(s *api.Settings) Idle {
	return Idle{Percent: s.GPUIdlePercent, StaticBytes: s.MemoryStaticBytes,
		HostBytes: cmp.Or(s.HostStaticBytes, api.DefaultSettings().HostStaticBytes)}
}

// Sight is how a rule looks at a member at one instant.
type Sight struct {
	Card func(uuid string) Reading
	Host func() Host // nil: the rule is about cards alone
}

// Reading is one card at one instant, as far as the gang uses it; -1 is unknown.
type Reading struct {
	Utilization int // percent that the gang's own processes use, at least
	UsedBytes   int64
	AtMost      int    // the same at most, where it can't be told from the use of others
	Others      string // who else is on the card
}

// Unknown is a reading that could not be had.
var Unknown = Reading{Utilization: -1, UsedBytes: -1}

// known reports whether a reading shows the card idle or not.
func (r Reading) known(idle Idle) bool {
	return r.Utilization >= 0 && r.UsedBytes >= 0 && (r.Utilization > idle.Percent || r.AtMost <= idle.Percent)
}

// Series is readings of a member, one after the other.
type Series struct {
	idle     Idle
	cards    []span
	host     host
	readings int
}

// span is what the readings of one card amount to.
type span struct {
	uuid      string
	peak      int
	most      int // that could have been the gang's
	others    string
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

// Add takes one reading of every card, and of the processes while the cards are quiet: with
// one that is not there is nothing left to find out.
func (s *Series) Add(now time.Duration, see Sight) {
	for i := range s.cards {
		s.cards[i].add(see.Card(s.cards[i].uuid))
	}
	s.readings++
	if see.Host != nil && s.State() == api.CardsQuiet {
		s.host.add(now, see.Host(), s.idle.HostBytes)
	}
}

func (c *span) add(r Reading) {
	c.unknown = c.unknown || r.Utilization < 0 || r.UsedBytes < 0
	c.peak = max(c.peak, r.Utilization)
	if r.AtMost > c.most {
		c.most, c.others = r.AtMost, r.Others
	}
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
	worst := s.host.state()
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
	case c.unknown || c.most > idle.Percent:
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
		if one.State == api.CardsUnknown {
			one.Utilization, one.AtMost, one.Others = -1, c.most, c.others
			if c.unknown {
				one.MovedBytes = -1
			}
		}
		f.Cards = append(f.Cards, one)
	}
	f.Cards = worstFirst(f.Cards)
	if s.host.looked {
		f.Hosts = []api.HostFinding{s.host.finding()}
	}
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
		for _, h := range f.Hosts {
			h.Node = n
			out.Hosts = append(out.Hosts, h)
		}
	}
	if out.Count == 0 {
		out.State = stronger(out.State, api.CardsUnknown)
	}
	out.Cards = worstFirst(out.Cards)
	slices.SortStableFunc(out.Hosts, func(a, b api.HostFinding) int {
		return cmp.Or(cmp.Compare(strength(b.State), strength(a.State)), cmp.Compare(b.MemoryBytes+b.IOBytes, a.MemoryBytes+a.IOBytes))
	})
	out.Hosts = out.Hosts[:min(len(out.Hosts), api.MaxFindingCards)]
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
		return cmp.Or(cmp.Compare(strength(b.State), strength(a.State)), cmp.Compare(b.Utilization, a.Utilization),
			cmp.Compare(b.MovedBytes, a.MovedBytes))
	})
	return cards[:min(len(cards), api.MaxFindingCards)]
}
