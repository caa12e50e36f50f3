package order

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

// Order is how the waiting gangs of one tier and priority follow each other.
type Order string

// The orders.
const (
	// OrderService puts the gang first that is expected to need least of the cards' time
	// yet; of gangs that need about the same the larger one.
	OrderService Order = "service"
	// OrderFair puts the gang of who has used least first, then the one that waits longest.
	OrderFair Order = "fair"
	// OrderLargest is size, priority, time.
	OrderLargest Order = "largest-first"
	// OrderFIFO is the order of submission.
	OrderFIFO Order = "fifo"
)

// Orders lists them.
var Orders = []Order{OrderService, OrderFair, OrderLargest, OrderFIFO}

// Preempt is whom a gang may take cards from.
type Preempt string

// Who may be preempted.
const (
	PreemptOff  Preempt = "off"
	PreemptTier Preempt = "tier" // gangs of a lower tier or priority
	// PreemptService also takes from gangs of the same tier and priority that keep their
	// work and need at least [Policy].Hysteresis times as much of the cards' time yet.
	PreemptService Preempt = "service"
)

// Preempts lists them.
var Preempts = []Preempt{PreemptOff, PreemptTier, PreemptService}

// DefaultBackfillDepth is how many backfills serve a site that does not say. Where a shorter gang
// takes its place by preemption few are needed; else backfills are what keeps long ones from
// filling up what those ahead of them wait for: see docs/design/backfill.md for how many.
func DefaultBackfillDepth(p Preempt) int {
	if p == PreemptService {
		return 1
	}
	return 8
}

// Policy is the site's part of a plan. Zero values stand for the defaults that are named.
type Policy struct {
	Partitions []api.Partition
	Accounts   []Account
	// MaxStarts bounds the starts of one plan, so that planning is bounded by counts, not
	// by a stopwatch; 0 is no bound.
	MaxStarts int
	// BackfillDepth is how many of the first gangs that can't start now keep lower ones off the
	// nodes they wait for. At least one, or large gangs starve.
	BackfillDepth int

	Order Order // "": service
	// Bucket is the factor within which two expected services count as equal; 0: 1.4.
	Bucket float64
	// GuardAfter is how long a gang waits before it goes to the front of its tier; 0:
	// never. With [PreemptService] it is at least as long as the cluster would need for all
	// that waits, longer by the square of how much larger a gang is than the part, and at most
	// 50 times GuardAfter. In order of service without it, four times its own time limit is
	// enough, within what these leave of the part. GuardShare is the part of all cards that may
	// wait and run so at a time: 0.1 when zero. Without a bound an overloaded queue turns into
	// first come, first served.
	GuardAfter time.Duration
	GuardShare float64
	// HalfLife is how fast used GPU time is forgotten; 0: 7 days.
	HalfLife time.Duration

	Preempt    Preempt
	MinRun     time.Duration // nobody is preempted before it has run so long
	Hysteresis float64       // 0: 1.2
	MaxMinRun  time.Duration // longest minimum run that a job may ask for, and that counts; 0: any
	// ProtectDone: a gang of which a rank is done is not preempted. Its other ranks could not
	// run again beside what that one did.
	ProtectDone bool

	Switches []api.Switch // the site's network, the lowest first; none: not known
	// MaxSwitchWait is how long at most a gang waits for the number of switches that it asked
	// for.
	MaxSwitchWait time.Duration

	Pools []api.Pool // what the site has of each

	UserCards int // cards that one user's gangs may hold at a time; 0: no cap
}

// Account is a group of users with a share of the cards.
type Account struct {
	Name  string
	Cards int     // cap on what its gangs may hold at a time; 0: none
	Quota int     // cards that are its own: lent while it does not use them, and taken back
	Share float64 // weight in fair share; 0: 1
	// Users may name it, empty: everybody may; Default is for jobs that name none. Who submits
	// asks for these, plans do not.
	Users   []string
	Default bool
}

// OpenTo reports whether a user may name the account.
func (a *Account) OpenTo(user string) bool {
	return len(a.Users) == 0 || slices.Contains(a.Users, user)
}

// ByService reports whether gangs of a tier follow each other by what they are expected to need.
func (p *Policy) ByService() bool { return p.Order == OrderService || p.Order == "" }
