package sched

import (
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
	"time"
)

// What waits, what runs, in which order and by which rules of the site: package order has it, and these are its names for
// who knows the planner alone.
type (
	Policy     = order.Policy
	Account    = order.Account
	Order      = order.Order
	Preempt    = order.Preempt
	Protection = order.Protection
	Candidate  = order.Candidate
	Terms      = order.Terms
	Queue      = order.Queue
	JobClass   = order.JobClass
	Running    = order.Running
	Turn       = order.Turn
	Ledger     = order.Ledger
	Usage      = order.Usage
	Peer       = order.Peer
)

// The values of these.
const (
	OrderService      = order.OrderService
	OrderFair         = order.OrderFair
	OrderLargest      = order.OrderLargest
	OrderFIFO         = order.OrderFIFO
	PreemptOff        = order.PreemptOff
	PreemptTier       = order.PreemptTier
	PreemptService    = order.PreemptService
	NoTurn            = order.NoTurn
	TurnOwn           = order.TurnOwn
	TurnLong          = order.TurnLong
	ProtectedByItself = order.ProtectedByItself
	ProtectedBySite   = order.ProtectedBySite
	ProtectedByDone   = order.ProtectedByDone
	DefaultHalfLife   = order.DefaultHalfLife
)

// Orders and Preempts list the values.
var (
	Orders   = order.Orders
	Preempts = order.Preempts
)

// NewQueue is [order.NewQueue].
func NewQueue(p *Policy, l *Ledger) *Queue { return order.NewQueue(p, l) }

// NewLedger is [order.NewLedger].
func NewLedger(halfLife time.Duration) *Ledger { return order.NewLedger(halfLife) }

// Less is [order.Less].
func Less(a, b *Candidate) bool { return order.Less(a, b) }

// PutRunning is [order.PutRunning].
func PutRunning(list []*Running, job int64, r *Running) []*Running {
	return order.PutRunning(list, job, r)
}

// CardsOf is [order.CardsOf].
func CardsOf(ask *cluster.Ask) int { return order.CardsOf(ask) }

// DefaultBackfillDepth is [order.DefaultBackfillDepth].
func DefaultBackfillDepth(p Preempt) int { return order.DefaultBackfillDepth(p) }
