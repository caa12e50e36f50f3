package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// ErrFenced: another controller has taken over, and nothing that this one writes is taken any more.
// Whoever gets it has to end: what it has in memory may be behind the store.
var ErrFenced = errors.New("another controller has taken over")

// ErrWentBack: the database has fewer commits than this process made, as after the promotion of a
// replica that lacked the last ones. The process has to end; its next start reads what is there,
// and HOLD says what is missing.
var ErrWentBack = errors.New("the database lacks commits that were acknowledged")

// ErrAway: the database can't be reached, or did not answer in time. Nothing is known to be wrong
// with what it holds.
var ErrAway = errors.New("database away")

// Shared is a store that several controllers reach. One leads and writes; the others follow.
//
// A process opens it as a follower: it may read. [Shared.TakeOver] makes it the leader. From
// then on each write of the process carries its term, and one whose term is not the newest any
// more changes nothing: it gives [ErrFenced], and so does each call after it but Close.
//
// While the database is away Commit does not return: whether its last batch was written is
// only known when the database answers again, and then it is either there once, or written
// once, or refused with ErrFenced. Reads give [ErrAway]; [Shared.Away] says since when.
type Shared interface {
	Store
	// Leader reads who leads; the zero Leader when nobody ever did.
	Leader(ctx context.Context) (Leader, error)
	// TakeOver makes the caller the leader for ttl, by the database's clock, under a term above the
	// last one and above a least that the caller names (the highest that it has heard of: a
	// replica that was promoted may know a lower one). What the leader before had begun in the
	// database is ended first. [ErrLocked]: the row is not as the caller has seen it any more (its Term
	// and Mark; a zero Leader: its ttl is not over), or the list does not have the caller, or has it as one that is joining.
	TakeOver(ctx context.Context, who Controller, ttl time.Duration, seen Leader, least uint64) (term uint64, err error)
	// Renew gives the leader ttl again, counted from some moment between the call and its return.
	// [ErrFenced]: another has taken over. After ErrAway it may have been renewed, or not.
	Renew(ctx context.Context, ttl time.Duration) error
	// Resign ends the leader's ttl now: the next may take over at once. Nothing can be written after it.
	Resign(ctx context.Context) error

	// Follow brings k up to what was committed since, a bounded piece at a time; more says that
	// there is more. A k that is zero, or whose place is not kept any more, is loaded afresh,
	// without jobs that ended before keep. After an error k is as it was.
	Follow(ctx context.Context, k *Known, keep time.Time) (more bool, err error)

	// Controllers reads the list of those that may lead.
	Controllers(ctx context.Context) (Controllers, error)
	// SetControllers replaces it by one whose Version is one above; [ErrConflict]: the version in
	// the store is another, or who has the seat, or had it last, may not lead by c. Any process may do it.
	SetControllers(ctx context.Context, c Controllers) error
	// Sealed reads what controllers share and the database must not know: bytes by name, which
	// were sealed by whoever put them.
	Sealed(ctx context.Context) (map[string][]byte, error)
	// PutSealed replaces one, where the store still has what the caller read (old; nil: none).
	// [ErrConflict]: it has something else. Any process may do it.
	PutSealed(ctx context.Context, name string, old, sealed []byte) error

	// Away says since when the database has not answered, and why; the zero time: it answers.
	Away() (since time.Time, why error)
}

// ErrConflict: somebody else has changed it meanwhile. Read it again.
var ErrConflict = errors.New("changed by somebody else meanwhile")

// Leader is the row of who leads.
type Leader struct {
	Controller
	Term uint64
	Left time.Duration // of its ttl, by the database's clock, which may be another one than when it was renewed
	Mark string        // another with each renewal
	Free bool          // nobody holds it: nobody ever did, or its holder has resigned
}

// Controller is one that may lead.
type Controller struct {
	Name    string   `json:"name"`
	Address []string `json:"address,omitempty"` // where it is reached, best first
	// Joining: it may not lead yet, for there may be nodes that do not know of it.
	Joining bool `json:"joining,omitempty"`
	// Removed: it was taken off the list. It may not lead, its word is not needed, and it does not put itself
	// on the list again.
	Removed bool `json:"removed,omitempty"`
}

// MayLead says whether the seat may be given to c.
func (c *Controller) MayLead() bool { return !c.Joining && !c.Removed }

// Controllers are those that may lead, by name.
type Controllers struct {
	Version int64 // 0: there never was a list
	All     []Controller
}

// Named gives the one of that name; nil: the list does not have it.
func (c *Controllers) Named(name string) *Controller {
	for i := range c.All {
		if c.All[i].Name == name {
			return &c.All[i]
		}
	}
	return nil
}

// Known is what a standby has in memory: all that [Store.Load] gives but letters, as of one commit. The zero
// value knows nothing. It is not safe for concurrent use; what it holds is not changed in place.
type Known struct {
	Lineage uint64 // of the newest commit in it
	Term    uint64 // under which that was made
	Beside  uint64 // counts what was written beside commits, forgetting above all

	Jobs         map[int64]*gang.Job
	Keys         map[string]int64 // of ended jobs that were too many to be loaded
	Nodes        map[string]*gang.Node
	Reservations map[string]*api.Reservation
	Partitions   []*api.PartitionChange
	Crontabs     []*api.Crontab
	Claims       []byte
	NextID       int64
	NextSeq      int64
}

// KnownOf is what was loaded as of a commit.
func KnownOf(saved *gang.Snapshot, lineage, term uint64) *Known {
	k := &Known{Lineage: lineage, Term: term, Keys: map[string]int64{}, Jobs: make(map[int64]*gang.Job, len(saved.Jobs)),
		Nodes:        map[string]*gang.Node{},
		Reservations: map[string]*api.Reservation{}, Partitions: saved.Partitions, Crontabs: saved.Crontabs, Claims: saved.Claims,
		NextID: saved.NextID, NextSeq: saved.NextSeq}
	for _, j := range saved.Jobs {
		k.Jobs[j.ID] = j
	}
	for key, job := range saved.Keys {
		if k.Jobs[job] == nil {
			k.Keys[key] = job
		}
	}
	for _, n := range saved.Nodes {
		k.Nodes[n.Name] = n
	}
	for _, r := range saved.Reservations {
		k.Reservations[r.Name] = r
	}
	return k
}

// Snapshot is what Load would give; jobs that ended before keep are dropped from k.
func (k *Known) Snapshot(keep time.Time) *gang.Snapshot { return k.snapshot(keep, gang.MostEnded) }

func (k *Known) snapshot(keep time.Time, most int) *gang.Snapshot {
	k.Forget(keep)
	keys := maps.Clone(k.Keys)
	if keys == nil {
		keys = make(map[string]int64)
	}
	k.forgetMore(most, keys)
	out := &gang.Snapshot{Keys: keys, Partitions: k.Partitions, Crontabs: k.Crontabs, Claims: k.Claims, NextID: k.NextID, NextSeq: k.NextSeq}
	for _, id := range slices.Sorted(maps.Keys(k.Jobs)) {
		j := k.Jobs[id]
		out.Jobs = append(out.Jobs, j)
		if j.Key != "" {
			out.Keys[j.Key] = id
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Nodes)) {
		out.Nodes = append(out.Nodes, k.Nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(k.Reservations)) {
		out.Reservations = append(out.Reservations, k.Reservations[name])
	}
	return out
}

// Forget drops jobs that ended before keep, as Load leaves them out.
func (k *Known) Forget(keep time.Time) {
	maps.DeleteFunc(k.Jobs, func(_ int64, j *gang.Job) bool {
		ended, over := EndOf(j)
		return over && !ended.After(keep)
	})
}

// forgetMore drops those that ended first of more than so many, and notes their keys.
func (k *Known) forgetMore(most int, keys map[string]int64) {
	if len(k.Jobs) <= most {
		return
	}
	var ended []*gang.Job
	for _, j := range k.Jobs {
		if j.Verdict != nil {
			ended = append(ended, j)
		}
	}
	if len(ended) <= most {
		return
	}
	slices.SortFunc(ended, func(a, b *gang.Job) int {
		ofA, _ := EndOf(a)
		ofB, _ := EndOf(b)
		return cmp.Or(ofB.Compare(ofA), cmp.Compare(b.ID, a.ID))
	})
	for _, j := range ended[most:] {
		delete(k.Jobs, j.ID)
		if j.Key != "" {
			keys[j.Key] = j.ID
		}
	}
}

// EndOf is when a job ended as the history counts it, and whether it has: an end without
// a time (a job that never started) counts from its submission.
func EndOf(j *gang.Job) (time.Time, bool) {
	switch {
	case j.Verdict == nil:
		return time.Time{}, false
	case j.End.IsZero():
		return j.Submit, true
	}
	return j.End, true
}
