package model

import (
	"slices"
	"time"

	"gangd/pkg/controller/leader"
)

// maxBeats bounds the beats under way.
const maxBeats = 2

// event is one thing that may happen next; of a controller where who says which.
type event struct {
	name string
	can  func(s *site, who int) bool
	do   func(s *site, who int)
	each bool // it may happen to either controller
}

// events are all that can happen. What is asked for is done at once, and the answer comes whenever it does: a question
// that is late itself gives an answer that is worth less. An answer, an echo, a word that is lost is one that never
// comes: the session is cut, or the process ends, or the clock goes on without it.
var events = []event{
	{name: "a unit of time passes", can: always, do: func(s *site, _ int) { s.tick(Unit) }},
	{name: "a seat's time passes", can: always, do: func(s *site, _ int) { s.tick(leader.TTL) }},

	{each: true, name: "looks at the seat", can: func(s *site, i int) bool {
		return !s.c[i].ended && s.c[i].seat.Waits() && (!s.c[i].met || s.c[i].read != s.row)
	}, do: (*site).look},
	{each: true, name: "asks for the seat", can: func(s *site, i int) bool { return !s.c[i].ended && s.mayTake(i) }, do: (*site).take},
	{each: true, name: "asks to renew it", can: func(s *site, i int) bool { return s.leads(i) && s.c[i].asks == askNone }, do: (*site).renew},
	{each: true, name: "hears the answer", can: func(s *site, i int) bool { return s.c[i].asks != askNone }, do: (*site).hear},
	{each: true, name: "resigns", can: func(s *site, i int) bool { return s.leads(i) && s.c[i].asks == askNone }, do: (*site).resign},
	{each: true, name: "ends", can: func(s *site, i int) bool { return !s.c[i].ended && s.with != i }, do: (*site).end},
	{each: true, name: "begins again", can: func(s *site, i int) bool { return s.c[i].ended && s.with != i }, do: (*site).again},
	{each: true, name: "starts the gang elsewhere", can: (*site).mayStart, do: (*site).start},

	{name: "the session's controller ends, as the node sees", can: inSession, do: func(s *site, _ int) { s.end(s.with); s.cut(true) }},
	{name: "it ends, and the node does not know", can: inSession, do: func(s *site, _ int) { s.end(s.with); s.cut(false) }},
	{name: "the session is cut", can: inSession, do: func(s *site, _ int) { s.cut(s.rules.CutIsDeath) }},
	{each: true, name: "is sent a hello", can: func(s *site, i int) bool { return s.with < 0 && s.leads(i) }, do: (*site).hello},
	{name: "its welcome comes", can: func(s *site, _ int) bool { return s.opening && s.c[s.with].seat.Until() > 0 },
		do: func(s *site, _ int) { s.welcome() }},
	{name: "the node sends a beat, which is heard", can: func(s *site, _ int) bool {
		return inSession(s, 0) && !s.opening && len(s.beats) < maxBeats && (s.leads(s.with) || s.rules.EchoUntrusted)
	}, do: func(s *site, _ int) { s.beat() }},
	{name: "its echo comes", can: func(s *site, _ int) bool { return len(s.beats) > 0 }, do: func(s *site, _ int) { s.echo() }},

	{each: true, name: "is asked for a word, and gives it", can: func(s *site, i int) bool {
		return s.with < 0 && !s.c[i].ended && s.words[i].said == nil
	}, do: (*site).askWord},
	{each: true, name: "has its word heard", can: func(s *site, i int) bool { return s.words[i].said != nil }, do: (*site).takeWord},
	{each: true, name: "is not there when the node calls", can: func(s *site, i int) bool {
		return s.with < 0 && (s.c[i].ended || s.rules.CutIsDeath)
	}, do: (*site).refused},
}

func always(*site, int) bool        { return true }
func inSession(s *site, _ int) bool { return s.with >= 0 }

// step is an event and whom it happens to.
type step struct{ event, who uint8 }

// possible is every event with everybody whom it may happen to.
var possible = func() (out []step) {
	for i, e := range events {
		for who := range controllers {
			if who == 0 || e.each {
				out = append(out, step{uint8(i), uint8(who)})
			}
		}
	}
	return out
}()

func (x step) String() string {
	if e := events[x.event]; e.each {
		return names[x.who] + " " + e.name
	}
	return events[x.event].name
}

func (x step) can(s *site) bool { return events[x.event].can(s, int(x.who)) }
func (x step) do(s *site)       { events[x.event].do(s, int(x.who)) }

// Result is what was gone through.
type Result struct {
	States int // that differ
	Depth  int // of events, each state was followed to it
	Broken string
	Path   []string // to what is broken, one of the shortest
}

// reached is a state by the step from an earlier one.
type reached struct {
	from int32
	by   step
}

// Explore goes through all states that so many events reach after those of a path, nearest first, until the property is
// broken. A state in which the process has ended, or was taken for gone, is followed no further: nothing can be broken
// any more.
func Explore(r Rules, depth int, path ...string) Result {
	first := named(r, path)
	all := []reached{{from: -1}}
	seen := map[string]struct{}{play(r, first).key(): {}}
	begin := 0
	for d := range depth {
		end := len(all)
		for i := begin; i < end; i++ {
			path := append(slices.Clone(first), steps(all, i)...)
			here := play(r, path)
			if !here.runs || here.started {
				continue
			}
			for _, x := range possible {
				if !x.can(here) {
					continue
				}
				s := play(r, path)
				x.do(s)
				if s.broken != "" {
					return Result{States: len(seen), Depth: d + 1, Broken: s.broken, Path: tell(append(path, x))}
				}
				k := s.key()
				if _, known := seen[k]; !known {
					seen[k] = struct{}{}
					all = append(all, reached{int32(i), x})
				}
			}
		}
		begin = end
	}
	return Result{States: len(seen), Depth: depth}
}

// steps is how a state is reached from the first.
func steps(all []reached, i int) (out []step) {
	for ; all[i].from >= 0; i = int(all[i].from) {
		out = append(out, all[i].by)
	}
	slices.Reverse(out)
	return out
}

// named are the steps of a path by their names; each has to be possible.
func named(r Rules, path []string) (out []step) {
	s := newSite(r)
	for _, name := range path {
		i := slices.IndexFunc(possible, func(x step) bool { return x.String() == name && x.can(s) })
		if i < 0 {
			panic("model: not possible here: " + name)
		}
		possible[i].do(s)
		out = append(out, possible[i])
	}
	return out
}

func play(r Rules, path []step) *site {
	s := newSite(r)
	for _, x := range path {
		x.do(s)
	}
	return s
}

func tell(path []step) (out []string) {
	for _, x := range path {
		out = append(out, x.String())
	}
	return out
}

// key is the same for two states that nothing can tell apart: times are relative to now, and none is told from another
// of so long ago that it does no more; terms and marks count as they compare.
func (s *site) key() string {
	k := make(key, 0, 96)
	k.flag(s.row.free, s.runs, s.started, s.opening)
	for i := range s.c {
		s.c[i].key(&k, s)
		w := &s.words[i]
		k.flag(w.said != nil, slices.Contains(s.kept.Ended, names[i]))
		k.times(s.now, s.said[i])
		if w.said != nil {
			k.flag(w.said.Leads)
			k.times(s.now, w.asked)
			k = append(k, byte(min(s.row.term-w.said.Term, 3)))
		}
	}
	k = append(k, byte(s.with+1), byte(min(s.row.term-s.kept.Term, 3)), byte(len(s.beats)))
	k.times(s.now, s.node.LastContact())
	if s.opening {
		k.times(s.now, s.opened)
	}
	for _, b := range s.beats {
		k.times(s.now, b.sent)
	}
	return string(k)
}

// key adds what can still matter of a controller: of one that ended nothing, of one that waits how it sees the row, of
// one that has led its term and its trust.
func (c *controller) key(k *key, s *site) {
	term, leads := c.seat.Leads(s.now)
	k.flag(c.ended, term == 0, leads)
	if c.ended {
		return
	}
	*k = append(*k, byte(c.asks), byte(min(s.row.term-c.seat.Known(), 3)))
	if c.asks != askNone {
		k.flag(c.given, c.took == s.row.term)
		k.times(s.now, c.sent)
	}
	if term == 0 {
		k.flag(c.met, c.read == s.row, c.read.free)
		*k = append(*k, byte(min(s.row.term-c.read.term, 3)))
		k.times(s.now, c.first)
		return
	}
	k.flag(term == s.row.term)
	k.times(s.now, c.seat.Until(), max(c.since, c.heard))
}

// longAgo is beyond any time that counts.
const longAgo = leader.TTL + Lease + 2*Unit

type key []byte

func (k *key) flag(all ...bool) {
	var bits uint16
	for i, b := range all {
		if b {
			bits |= 1 << i
		}
	}
	*k = append(*k, byte(bits), byte(bits>>8))
}

func (k *key) times(now time.Duration, all ...time.Duration) {
	for _, t := range all {
		*k = append(*k, byte(max(t-now, -longAgo)/Unit))
	}
}
