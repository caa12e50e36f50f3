package sched

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// Candidate is a waiting gang: every rank blocked, not held, begin time and back-off
// passed. Candidates are immutable.
type Candidate struct {
	Job       int64
	Priority  int64     // larger first
	Size      int       // equal priority: larger gang first
	Submit    time.Time // then earlier submission, then smaller id
	Ask       *cluster.Ask
	Avoid     []string      // nodes that just failed this gang: used only when nothing else fits
	TimeLimit time.Duration // 0: unlimited
}

// View is the snapshot a plan is made from.
type View struct {
	Nodes []*cluster.Node // by name
	Queue []*Candidate    // in order of [Less]
	// Claims are those of the plan before, nil at first. A claim that still holds is kept
	// where it is: one that moved to whatever looks emptiest now would meet, at each new
	// place, small gangs that were let in while it stood elsewhere.
	Claims []Claim
}

// Policy is the site's part of it.
type Policy struct {
	Partitions []api.Partition
	// MaxStarts bounds the starts of one plan, so that planning is bounded by counts, not
	// by a stopwatch; 0 is no bound.
	MaxStarts int
	// Claims is how many of the first gangs that can't start now keep lower ones off the
	// nodes they wait for. At least one, or large gangs starve.
	Claims int
}

// Plan is the decision. The engine re-checks each start against the newest state.
type Plan struct {
	Starts  []Start
	Reasons []Reason // of the candidates that were looked at and stay, in queue order
	Claims  []Claim  // for the next view
}

// Claim is what a gang that can't start now keeps lower ones off: the places it will have
// when what runs there has ended.
type Claim struct {
	Job   int64
	Slots []cluster.Slot // by rank
}

// Start is one gang with a place for each rank.
type Start struct {
	Job   int64
	Slots []cluster.Slot // by rank
}

// Reason says why a candidate stays.
type Reason struct {
	Job  int64
	Word string // Slurm's: Resources, Priority, ReqNodeNotAvail ...
	Text string // the arithmetic, for people
}
