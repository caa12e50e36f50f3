package fit

import (
	"math"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// AskClass is what is known about all asks that are equal.
type AskClass struct {
	Need       *cluster.Need
	planNumber int
	ID         int    // counts them
	emptyAt    int    // the capacity for which empty holds
	rank       Amount // of one rank
	empty      bool   // it fits on the nodes if these were empty
	Plain      bool   // it fits on a node that has as much free as its ranks need, and nowhere else
	InPlan
	// Ten thousand asks are looked at in a plan, and what is above of them.

	Bad          error       // the ask can't be read
	Alternatives []*AskClass // those of its need, as ask classes; nil: it has none
	preferred    []*AskClass
	Named        bool    // the ask names nodes: classes do not tell them apart
	ranks        []int16 // by class: what fits on a node of it, less one; 0 is not known yet
	frees        []int32 // by class: what is free on it for a backfill, less one; 0 is not known yet
	wastes       map[wasteKey]cluster.Waste
	mix          int // of the wastes
}

// InPlan is what an ask class was found to be in the plan of one turn.
type InPlan struct {
	Full          bool      // it does not fit with no backfills on the nodes either
	Counted       bool      // that was found by a look of which the tally is still there, for the verdict
	BlockedStrict bool      // nor where only those keep off whom nobody may delay
	NoBackfill    bool      // it is given none
	Blocked       time.Time // what runs until then or longer does not fit; zero: not known
}

type wasteKey struct{ class, ranks int }

// jobAskClass is the ask class of all candidates of a job class, which is cheaper to know than to look
// up by its text.
type jobAskClass struct {
	class    *order.JobClass
	askClass *AskClass
}

// Barred: nothing of this ask class will start or be given a backfill in this plan.
func (sh *AskClass) Barred() bool { return sh.Bad != nil || sh.NoBackfill }

// ClassOf is the class of an ask.
func (f *Finder) ClassOf(ask *cluster.Ask) *AskClass {
	sh := f.askClasses[ask.Key]
	if sh == nil {
		sh = &AskClass{ID: len(f.askClasses), wastes: map[wasteKey]cluster.Waste{}}
		sh.Need, sh.Bad = cluster.NewNeed(ask)
		sh.Named = len(ask.Spec.NodeList)+len(ask.Spec.Exclude) > 0
		if sh.Bad == nil && sh.Need.Alternatives != nil {
			sh.Alternatives, sh.preferred = askClassesOf(sh.Need.Alternatives, sh.Named), askClassesOf(sh.Need.Preferred, sh.Named)
		}
		if d := sh.Need; sh.Bad == nil && !d.Packed() && sh.Alternatives == nil {
			sh.Plain, sh.rank = true, Amount{d.CardsFor(1), d.One()}
		}
		f.askClasses[ask.Key] = sh
	}
	f.renew(sh)
	return sh
}

// ClassOfAll is the ask class of the candidates of a job class, of which c is one.
func (f *Finder) ClassOfAll(cl *order.JobClass, c *order.Candidate) *AskClass {
	f.askClassOf = Reach(f.askClassOf, cl.Slot())
	k := &f.askClassOf[cl.Slot()]
	if k.class != cl {
		k.class, k.askClass = cl, f.ClassOf(c.Ask)
	}
	f.renew(k.askClass)
	return k.askClass
}

// renew forgets what an ask class was found to be in an earlier plan.
func (f *Finder) renew(sh *AskClass) {
	if sh.planNumber != f.planNumber {
		sh.planNumber, sh.InPlan = f.planNumber, InPlan{}
	}
}

// askClassesOf makes ask classes of alternatives. They are of one ask class that is remembered, and so are they.
func askClassesOf(needs []*cluster.Need, named bool) []*AskClass {
	var out []*AskClass
	for _, d := range needs {
		out = append(out, &AskClass{Need: d, Named: named, wastes: map[wasteKey]cluster.Waste{}})
	}
	return out
}

// RanksOn is how many ranks fit on a node of a class, wherever the ask's lists of names
// allow it.
func (sh *AskClass) RanksOn(k *NodeClass) int {
	sh.ranks = Reach(sh.ranks, k.id)
	if known := sh.ranks[k.id]; known > 0 {
		return int(known) - 1
	}
	ranks := sh.Need.Ranks(k.node)
	if ranks > 0 && !(sh.Need.InPartition(k.node) && sh.Need.HasFeatures(k.node)) {
		ranks = 0
	}
	if ranks < math.MaxInt16 {
		sh.ranks[k.id] = int16(ranks + 1)
	}
	return ranks
}

// FreeOn is what is free for the ask on a node of a class: see [cluster.Need.Free].
func (sh *AskClass) FreeOn(k *NodeClass) int {
	sh.frees = Reach(sh.frees, k.id)
	if sh.frees[k.id] == 0 {
		sh.frees[k.id] = int32(min(math.MaxInt32-1, sh.Need.Free(k.node))) + 1
	}
	return int(sh.frees[k.id]) - 1
}

// Reach makes a list of figures by class long enough for one.
func Reach[T any](list []T, id int) []T {
	if id >= len(list) {
		list = append(list, make([]T, id+1-len(list)+len(list)/4)...)
	}
	return list
}

// Amount is of what most gangs ask for.
type Amount struct {
	cards int
	of    cluster.Amounts
}

// NeedsMore reports whether a rank needs more of anything.
func (sh *AskClass) NeedsMore(than *Amount) bool { return sh.rank.above(than) }

// above reports whether it is more of anything.
func (a *Amount) above(b *Amount) bool {
	if a.cards > b.cards {
		return true
	}
	for r := range a.of {
		if a.of[r] > b.of[r] {
			return true
		}
	}
	return false
}
