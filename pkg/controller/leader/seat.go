package leader

import (
	"sync"
	"time"
)

// Times of a seat.
const (
	TTL    = 2 * time.Second        // how long a renewal lasts
	Renew  = 500 * time.Millisecond // how often the holder renews it
	Look   = 200 * time.Millisecond // how often the others look at it
	GiveUp = 10 * time.Second       // how long one whose time has run out tries to give it up
	margin = 200 * time.Millisecond // by which its holder gives up before it has run out

	// Of a renewal that was due after Renew there are TTL - margin - Renew = 1.3 s left, and 1 s where the list
	// took all of its time.
	tryAgain = 400 * time.Millisecond // without an answer, until another try is made beside the first
	tryMost  = 3
	ofList   = 800 * time.Millisecond // after a renewal was begun, until what else is asked then is given up
)

// Seen is the row as somebody read it.
type Seen struct {
	Term uint64
	Mark string // another with each renewal
	Free bool   // nobody holds it: nobody ever did, or its holder has resigned
}

// Seat is one controller's view of the row. The zero value waits. It may be used from several
// goroutines. All times are of [session.BootTime].
type Seat struct {
	mu      sync.Mutex
	term    uint64        // led in, 0: not yet
	trying  bool          // it was asked for, and the answer is not there
	trusted time.Duration // until then
	known   uint64        // the highest term that was read
	met     bool          // a row was read
	row     Seen          // as it was read last
	since   time.Duration // when it was first seen like that
}

// MayTake takes in what was read, at now or before, and says whether the seat may be taken: when it
// has not been renewed for its time by this controller's own clock. The database's tells nothing: it may be
// another one than when the seat was renewed.
func (s *Seat) MayTake(now time.Duration, row Seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = max(s.known, row.Term)
	if !s.met || row != s.row {
		s.met, s.row, s.since = true, row, now
	}
	return s.term == 0 && (row.Free || now >= s.since+TTL)
}

// Lapsed says that by this controller's own clock the seat, as it was read, has run out.
func (s *Seat) Lapsed(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met && now >= s.since+TTL
}

// Try is said before the seat is asked for, and Took, or Failed, when the answer is there. One that
// never comes leaves open who leads: the process has to end.
func (s *Seat) Try() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = true
}

// Failed says that somebody else has the seat.
func (s *Seat) Failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = false
}

// Waits says that this controller has not led and has not asked to: what a node may take for its word
// that it does not lead. Between asking for the seat and hearing that it was given it may lead already.
func (s *Seat) Waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term == 0 && !s.trying
}

// Took says that the seat was taken by what was sent then.
func (s *Seat) Took(term uint64, sent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = false
	s.term, s.known, s.met = term, max(s.known, term), true
	s.trusted = sent + TTL - margin
}

// Renewed says that a renewal that was sent then has succeeded.
func (s *Seat) Renewed(sent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = max(s.trusted, sent+TTL-margin)
}

// Leave gives the trust up, for ever.
func (s *Seat) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = 0
}

// Leads says whether this controller may speak as the leader at now, and in which term.
func (s *Seat) Leads(now time.Duration) (term uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term, s.term != 0 && now < s.trusted
}

// Until is when the trust ends.
func (s *Seat) Until() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted
}

// Due is when the next renewal is to be sent.
func (s *Seat) Due() time.Duration { return s.Until() - (TTL - margin) + Renew }

// Known is the highest term that this controller has read of.
func (s *Seat) Known() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}
