package order

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Running is a gang that holds nodes: reserved, running or being stopped. What it holds is
// in the grants of the nodes under its job and epoch. Values are immutable.
type Running struct {
	Job           int64
	Epoch         int
	Tier          int64
	Priority      int64
	Nice          int64
	User, Account string
	Name          string // that its user gave it
	Cards         int    // of all ranks
	Pools         []api.Pool
	Submit        time.Time
	// Start is when its ranks began; zero while it is reserved. TimeLimit counts from it.
	Start     time.Time
	TimeLimit time.Duration
	Attained  time.Duration // by earlier attempts, as far as that is not lost
	// Saved is when the newest complete checkpoint of this attempt was put; zero: none.
	Saved time.Time
	// KeepsWork: a gang that hands its work over when it is told to stop, and runs again, loses
	// nothing.
	KeepsWork bool
	Turn      Turn // that its start was planned with
	Ending
}

// Ending is what becomes of a gang that is told to stop, and how long that takes.
type Ending struct {
	Done     bool          // a rank is done: see [Policy.ProtectDone]
	Final    bool          // preempted it ends: it may not run again
	MinRun   time.Duration // not preempted before it has run so long; the larger of this and the site's counts
	Lead     time.Duration // notice that it asked for before a stop
	Stop     time.Duration // how long its end may take: lead and grace
	Stopping bool          // it is being stopped; nothing more can be taken from it
	StopBy   time.Time     // and has ended at the latest then
}

// PutRunning puts what a job holds now, nil: nothing, into a list that is ordered by job.
func PutRunning(list []*Running, job int64, r *Running) []*Running {
	at, found := slices.BinarySearchFunc(list, job, func(r *Running, job int64) int { return cmp.Compare(r.Job, job) })
	switch {
	case r != nil && found:
		list[at] = r
	case r != nil:
		list = slices.Insert(list, at, r)
	case found:
		list = slices.Delete(list, at, at+1)
	}
	return list
}

// EndBy is when a gang has ended at the latest; zero: nobody knows.
func (r *Running) EndBy() time.Time {
	switch {
	case r.Stopping:
		return r.StopBy
	case r.TimeLimit > 0 && !r.Start.IsZero():
		return r.Start.Add(r.TimeLimit + r.Stop)
	}
	return time.Time{}
}
