package model

import (
	"encoding/binary"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/leader"
	"gangd/pkg/wire/session"
)

// Unit is the step of the clock: a seat's time is four of them, and its trust ends within the last.
const Unit = leader.TTL / 4

// Lease is that of the site in the model. The rules hold for any; a short one shows a broken rule after few events.
const Lease = 3 * Unit

// Rules are what the model does as the product does, but for what is set: one clause each that is left out.
type Rules struct {
	EchoUntrusted bool // a controller echoes beats also when it does not trust its seat
	TrustAnswer   bool // a seat is trusted from when the answer to its renewal came
	ContactAtEcho bool // contact counts from when an echo came, not from when its beat was sent
	ContactAtWord bool // and from when a word came, not from when it was asked for
	OneWord       bool // the word of one controller is enough
	TakeAtOnce    bool // a seat is asked for without waiting for its time by the asker's own clock
	NoLease       bool // a new leader does not grant nodes their lease from when it began
	KeepTrust     bool // a controller that resigns still trusts its seat
	CutIsDeath    bool // a line that was cut is taken for the end of the controller's process
}

const controllers = 2

var names = [controllers]string{"a", "b"}

// ask is what a controller has asked of the row, and has no answer to.
type ask byte

const (
	askNone ask = iota
	askTake
	askRenew
)

type row struct {
	term, mark uint64
	free       bool
}

func (r row) seen() leader.Seen {
	return leader.Seen{Term: r.term, Mark: string(binary.AppendUvarint(nil, r.mark)), Free: r.free}
}

// controller is one process.
type controller struct {
	seat  *leader.Seat
	ended bool
	asks  ask
	given bool          // the row has done it
	took  uint64        // the term that was given
	sent  time.Duration // when it was asked for
	read  row           // as it was read last
	first time.Duration // when it was first read like that
	met   bool
	since time.Duration // it leads
	heard time.Duration // when the node was heard last in this lead
}

// beat is a node's that was heard, and whose echo is under way.
type beat struct {
	number uint64
	sent   time.Duration
}

// word is what a controller has said, which is under way.
type word struct {
	asked time.Duration
	said  *api.Word
}

// site is all of it at one time.
type site struct {
	rules Rules
	now   time.Duration
	row   row
	c     [controllers]controller

	node    *session.DrivenNode
	with    int // the controller in session, -1: none
	opening bool
	opened  time.Duration
	beats   []beat
	words   [controllers]word
	said    [controllers]time.Duration // the newest word of each that the node has
	kept    session.Kept
	runs    bool
	started bool // elsewhere
	broken  string
}

// newSite is one where controller a has just taken the seat and the node's process runs.
func newSite(r Rules) *site {
	s := &site{rules: r, now: 100 * Unit, row: row{term: 1, mark: 1}, with: 0, runs: true}
	kept := session.Kept{Controllers: api.Controllers{Version: 1}, Term: 1}
	for i := range s.c {
		s.c[i].seat = &leader.Seat{}
		if i == 0 || !r.OneWord {
			kept.List = append(kept.List, api.Controller{Name: names[i]})
		}
	}
	a := &s.c[0]
	a.seat.Took(1, s.now)
	a.since, a.heard = s.now, s.now
	s.kept = kept
	s.node = session.NewDrivenNode(agent{kept: &s.kept}, func() time.Duration { return s.now },
		func() time.Time { return time.Unix(0, int64(s.now)) }, kept)
	s.node.Hello()
	_ = s.node.Take(&api.Frame{Welcome: &api.Welcome{Name: names[0], Term: 1, Settings: api.Settings{Lease: Lease}}})
	return s
}

func (s *site) leads(i int) bool {
	_, ok := s.c[i].seat.Leads(s.now)
	return ok && !s.c[i].ended
}

// tick lets time pass.
func (s *site) tick(d time.Duration) {
	s.now += d
	if s.now >= s.node.LastContact()+Lease {
		s.runs = false
	}
}

// look is a read of the row by a controller that waits.
func (s *site) look(i int) {
	c := &s.c[i]
	if !c.met || c.read != s.row {
		c.met, c.read, c.first = true, s.row, s.now
	}
	c.seat.MayTake(s.now, s.row.seen())
}

// mayTake: by what was read last.
func (s *site) mayTake(i int) bool {
	c := &s.c[i]
	if !c.met || c.asks != askNone {
		return false
	}
	return c.seat.MayTake(s.now, c.read.seen()) || s.rules.TakeAtOnce && c.seat.Known() > 0 && c.seat.Waits()
}

func (s *site) take(i int) {
	c := &s.c[i]
	c.seat.Try()
	c.asks, c.sent, c.given = askTake, s.now, s.row == c.read
	if c.given {
		s.row = row{term: s.row.term + 1, mark: s.row.mark + 1}
		c.took = s.row.term
	}
}

func (s *site) renew(i int) {
	c := &s.c[i]
	term, _ := c.seat.Leads(s.now)
	c.asks, c.sent, c.given = askRenew, s.now, s.row.term == term && !s.row.free
	if c.given {
		s.row.mark++
	}
}

// hear is the answer of the row.
func (s *site) hear(i int) {
	c := &s.c[i]
	asked := c.asks
	c.asks = askNone
	from := c.sent
	if s.rules.TrustAnswer {
		from = s.now
	}
	switch {
	case asked == askRenew && c.given:
		c.seat.Renewed(from)
	case asked == askRenew:
		c.seat.Leave()
		s.end(i)
	case c.given:
		c.seat.Took(c.took, from)
		c.since, c.heard = s.now, s.now
		if s.rules.NoLease {
			c.since, c.heard = 0, 0
		}
	default:
		c.seat.Failed()
	}
}

// end is the end of a controller's process.
func (s *site) end(i int) { s.c[i].ended, s.c[i].asks = true, askNone }

// again is a new process of a controller that had ended.
func (s *site) again(i int) { s.c[i] = controller{seat: &leader.Seat{}} }

func (s *site) resign(i int) {
	if !s.rules.KeepTrust {
		s.c[i].seat.Leave()
	}
	term, _ := s.c[i].seat.Leads(s.now)
	if s.row.term == term {
		s.row.free = true
		s.row.mark++
	}
}

// cut ends the session. died: the node takes it for the end of the controller's process.
func (s *site) cut(died bool) {
	s.node.Down(died)
	s.with, s.opening, s.beats = -1, false, nil
}

// hello begins a session; the controller hears it at once, and its welcome is under way.
func (s *site) hello(i int) {
	s.with, s.opening, s.opened = i, true, s.now
	s.node.Hello()
	s.c[i].heard = s.now
}

func (s *site) welcome() {
	s.opening = false
	term, _ := s.c[s.with].seat.Leads(s.now)
	if err := s.node.Take(&api.Frame{Welcome: &api.Welcome{Name: names[s.with], Term: term,
		Settings: api.Settings{Lease: Lease}}}); err != nil {
		s.cut(false)
	}
}

func (s *site) beat() {
	s.beats = append(s.beats, beat{s.node.Beat().Beat, s.now})
	s.c[s.with].heard = s.now
}

func (s *site) echo() {
	n := s.beats[0].number
	s.beats = s.beats[1:]
	if s.rules.ContactAtEcho {
		n = s.node.Beat().Beat
	}
	_ = s.node.Take(&api.Frame{Echo: n})
}

// askWord is answered as [leader.Office.Word] does.
func (s *site) askWord(i int) {
	c := &s.c[i]
	if leads := s.leads(i); leads || c.seat.Waits() {
		s.words[i] = word{s.now, &api.Word{Name: names[i], Leads: leads, Term: c.seat.Known()}}
	}
}

func (s *site) takeWord(i int) {
	w := s.words[i]
	s.words[i] = word{}
	if s.rules.ContactAtWord {
		w.asked = s.now
	}
	s.node.Word(w.said, w.asked)
	if !w.said.Leads {
		s.said[i] = max(s.said[i], w.asked)
	}
}

// refused: nobody listens at a controller's address, as the node finds at once.
func (s *site) refused(i int) {
	s.node.Refused(names[i], s.now)
	if slices.Contains(s.kept.Ended, names[i]) {
		s.said[i] = s.now
	}
}

// mayStart: the leader takes the node for lost, and its store takes that from it.
func (s *site) mayStart(i int) bool {
	term, ok := s.c[i].seat.Leads(s.now)
	return ok && !s.c[i].ended && s.row.term == term && !s.row.free && s.now >= max(s.c[i].since, s.c[i].heard)+Lease
}

func (s *site) start(i int) {
	s.started = true
	if s.runs {
		s.broken = "controller " + names[i] + " starts the gang elsewhere, and its process runs here"
	}
}
