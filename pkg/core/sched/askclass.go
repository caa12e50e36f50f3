package sched

import (
	"math"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// askClass is what is known about all asks that are equal.
type askClass struct {
	need       *cluster.Need
	planNumber int
	id         int    // counts them
	emptyAt    int    // the capacity for which empty holds
	rank       amount // of one rank
	empty      bool   // it fits on the nodes if these were empty
	plain      bool   // it fits on a node that has as much free as its ranks need, and nowhere else
	inPlan
	// Ten thousand asks are looked at in a plan, and what is above of them.

	bad          error       // the ask can't be read
	alternatives []*askClass // those of its need, as ask classes; nil: it has none
	preferred    []*askClass
	named        bool    // the ask names nodes: classes do not tell them apart
	ranks        []int16 // by class: what fits on a node of it, less one; 0 is not known yet
	frees        []int32 // by class: what is free on it for a backfill, less one; 0 is not known yet
	wastes       map[wasteKey]cluster.Waste
	mix          int // of the wastes
}

// inPlan is what an ask class was found to be in the plan of one turn.
type inPlan struct {
	full          bool      // it does not fit with no backfills on the nodes either
	counted       bool      // that was found by a look of which the tally is still there, for the verdict
	blockedStrict bool      // nor where only those keep off whom nobody may delay
	noBackfill    bool      // it is given none
	blocked       time.Time // what runs until then or longer does not fit; zero: not known
}

type wasteKey struct{ class, ranks int }

// jobAskClass is the ask class of all candidates of a job class, which is cheaper to know than to look
// up by its text.
type jobAskClass struct {
	class    *order.JobClass
	askClass *askClass
}

// barred: nothing of this ask class will start or be given a backfill in this plan.
func (sh *askClass) barred() bool { return sh.bad != nil || sh.noBackfill }

// classOf is the class of an ask.
func (f *finder) classOf(ask *cluster.Ask) *askClass {
	sh := f.askClasses[ask.Key]
	if sh == nil {
		sh = &askClass{id: len(f.askClasses), wastes: map[wasteKey]cluster.Waste{}}
		sh.need, sh.bad = cluster.NewNeed(ask)
		sh.named = len(ask.Spec.NodeList)+len(ask.Spec.Exclude) > 0
		if sh.bad == nil && sh.need.Alternatives != nil {
			sh.alternatives, sh.preferred = askClassesOf(sh.need.Alternatives, sh.named), askClassesOf(sh.need.Preferred, sh.named)
		}
		if d := sh.need; sh.bad == nil && !d.Packed() && sh.alternatives == nil {
			sh.plain, sh.rank = true, amount{d.CardsFor(1), d.One()}
		}
		f.askClasses[ask.Key] = sh
	}
	f.renew(sh)
	return sh
}

// classOfAll is the ask class of the candidates of a job class, of which c is one.
func (f *finder) classOfAll(cl *order.JobClass, c *order.Candidate) *askClass {
	f.askClassOf = reach(f.askClassOf, cl.Slot())
	k := &f.askClassOf[cl.Slot()]
	if k.class != cl {
		k.class, k.askClass = cl, f.classOf(c.Ask)
	}
	f.renew(k.askClass)
	return k.askClass
}

// renew forgets what an ask class was found to be in an earlier plan.
func (f *finder) renew(sh *askClass) {
	if sh.planNumber != f.planNumber {
		sh.planNumber, sh.inPlan = f.planNumber, inPlan{}
	}
}

// askClassesOf makes ask classes of alternatives. They are of one ask class that is remembered, and so are they.
func askClassesOf(needs []*cluster.Need, named bool) []*askClass {
	var out []*askClass
	for _, d := range needs {
		out = append(out, &askClass{need: d, named: named, wastes: map[wasteKey]cluster.Waste{}})
	}
	return out
}

// ranksOn is how many ranks fit on a node of a class, wherever the ask's lists of names
// allow it.
func (sh *askClass) ranksOn(k *nodeClass) int {
	sh.ranks = reach(sh.ranks, k.id)
	if known := sh.ranks[k.id]; known > 0 {
		return int(known) - 1
	}
	ranks := sh.need.Ranks(k.node)
	if ranks > 0 && !(sh.need.InPartition(k.node) && sh.need.HasFeatures(k.node)) {
		ranks = 0
	}
	if ranks < math.MaxInt16 {
		sh.ranks[k.id] = int16(ranks + 1)
	}
	return ranks
}

// freeOn is what is free for the ask on a node of a class: see [cluster.Need.Free].
func (sh *askClass) freeOn(k *nodeClass) int {
	sh.frees = reach(sh.frees, k.id)
	if sh.frees[k.id] == 0 {
		sh.frees[k.id] = int32(min(math.MaxInt32-1, sh.need.Free(k.node))) + 1
	}
	return int(sh.frees[k.id]) - 1
}

// reach makes a list of figures by class long enough for one.
func reach[T any](list []T, id int) []T {
	if id >= len(list) {
		list = append(list, make([]T, id+1-len(list)+len(list)/4)...)
	}
	return list
}

// amount is of what most gangs ask for.
type amount struct {
	cards int
	of    cluster.Amounts
}

// needsMore reports whether a rank needs more of anything.
func (sh *askClass) needsMore(than *amount) bool { return sh.rank.above(than) }

// above reports whether it is more of anything.
func (a *amount) above(b *amount) bool {
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
