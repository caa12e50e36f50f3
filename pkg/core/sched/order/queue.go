package order

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"gangd/pkg/core/cluster"
)

// Queue keeps candidates in order, and those of one class together: of a hundred thousand
// that wait a plan looks at the first of each class and, when that stays, at no other of
// it. A change costs a few binary searches and memmoves: 100,000 pointers are 800 KB, moved
// in about 20 us. It is not safe for concurrent use.
type Queue struct {
	policy  *Policy
	ledger  *Ledger
	version int // of the ledger, when all were ranked
	ranked  time.Time
	order   []*Candidate
	byAge   []*Candidate // longest wait first
	byTurn  []*Candidate // by turnAt, those that have one
	byJob   map[int64]*Candidate
	classes map[jobClassKey]*JobClass
	firsts  []*JobClass // in the order of their first candidates
	slots   int         // of classes, so many were ever in use at once
	free    []int       // slots
	backlog int64       // seconds of one card that all of them are expected to need yet
	recent  []*Terms    // by their hash
}

// jobClassKey is what decides whether a gang can start, besides its place in the order.
type jobClassKey struct {
	shape         string
	limit, stop   time.Duration
	least         time.Duration
	deadline      int64 // 0: none
	avoid         string
	user, account string // where these are bounded
	closed        bool   // its account, to its user
	keeps         bool   // its work; where gangs of its tier may be preempted
}

// JobClass is the candidates of a queue that are alike: one can start if any other could in its
// place. It lasts as long as it has any.
type JobClass struct {
	slot  int // a small number that no other class of its queue has meanwhile
	order []*Candidate
	key   jobClassKey
}

// First is the one of them that is ahead in the order.
func (cl *JobClass) First() *Candidate { return cl.order[0] }

// Slot is a small number that no other class of its queue has meanwhile.
func (cl *JobClass) Slot() int { return cl.slot }

// recently is how many terms are remembered for others that come with the same.
const recently = 4096

// share gives a candidate the terms of others that have the same, if they are remembered yet.
func (q *Queue) share(c *Candidate) {
	if q.recent == nil {
		q.recent = make([]*Terms, recently)
	}
	at := &q.recent[c.Terms.hash()%recently]
	if *at == nil || !(*at).same(c.Terms) {
		own := *c.Terms
		own.rank = q.policy.rankOf(&own)
		*at = &own
	}
	c.Terms = *at
}

// hashSeed is this process's own: it decides which terms push out which, and no plan.
var hashSeed = maphash.MakeSeed()

// hash is of what mostly tells terms apart.
func (t *Terms) hash() uint64 {
	return maphash.Comparable(hashSeed, struct {
		ask             *cluster.Ask
		user            string
		size            int
		priority        int64
		limit, attained time.Duration
	}{t.Ask, t.User, t.Size, t.Priority, t.TimeLimit, t.Attained})
}

func (t *Terms) same(o *Terms) bool {
	return t.Tier == o.Tier && t.Priority == o.Priority && t.Nice == o.Nice && t.Size == o.Size && t.Ask == o.Ask &&
		slices.Equal(t.Avoid, o.Avoid) &&
		t.User == o.User && t.Account == o.Account && t.TimeLimit == o.TimeLimit && t.Stop == o.Stop && t.TimeMin == o.TimeMin &&
		t.Deadline.Equal(o.Deadline) && t.Attained == o.Attained && t.KeepsWork == o.KeepsWork
}

func compareFirst(cl *JobClass, c *Candidate) int { return Compare(cl.order[0], c) }

// lead puts a class where its first candidate belongs.
func (q *Queue) lead(cl *JobClass) {
	at, _ := slices.BinarySearchFunc(q.firsts, cl.order[0], compareFirst)
	q.firsts = slices.Insert(q.firsts, at, cl)
}

// unlead takes it out, before its first candidate becomes another.
func (q *Queue) unlead(cl *JobClass) {
	at, _ := slices.BinarySearchFunc(q.firsts, cl.order[0], compareFirst)
	q.firsts = slices.Delete(q.firsts, at, at+1)
}

// newJobClass is an empty one.
func (q *Queue) newJobClass(k jobClassKey) *JobClass {
	cl := &JobClass{key: k, slot: q.slots}
	if n := len(q.free); n > 0 {
		cl.slot, q.free = q.free[n-1], q.free[:n-1]
	} else {
		q.slots++
	}
	q.classes[k] = cl
	return cl
}

func (q *Queue) dropJobClass(cl *JobClass) {
	q.free = append(q.free, cl.slot)
	delete(q.classes, cl.key)
}

// NewQueue is an empty queue in the order of a policy. The ledger may be nil.
func NewQueue(p *Policy, l *Ledger) *Queue { return &Queue{policy: p, ledger: l} }

// Len is how many candidates wait.
func (q *Queue) Len() int { return len(q.order) }

// Get is the candidate of a job, nil when it does not wait.
func (q *Queue) Get(job int64) *Candidate { return q.jobs()[job] }

// jobs is the candidates by job. A clone makes it when first asked: for a hundred thousand
// that takes ten times as long as all else of it, and whoever clones has others wait.
func (q *Queue) jobs() map[int64]*Candidate {
	if q.byJob == nil {
		q.byJob = make(map[int64]*Candidate, len(q.order))
		for _, c := range q.order {
			q.byJob[c.Job] = c
		}
	}
	return q.byJob
}

// JobClass is the class of a job, nil when it does not wait.
func (q *Queue) JobClass(job int64) *JobClass {
	if c := q.Get(job); c != nil {
		return q.classes[q.key(c)]
	}
	return nil
}

// JobClasses gives the class of each of some jobs to f, nil of one that does not wait.
func (q *Queue) JobClasses(jobs []int64, f func(job int64, of *JobClass)) {
	var last *Candidate
	var cl *JobClass // of last: neighbours are mostly alike
	for _, job := range jobs {
		c := q.Get(job)
		if c == nil {
			f(job, nil)
			continue
		}
		if last == nil || c.Terms != last.Terms {
			cl = q.classes[q.key(c)]
		}
		last = c
		f(job, cl)
	}
}

// Slice is the queue in order. It must not be written to and is good until the next change; nor must be the other lists.
func (q *Queue) Slice() []*Candidate { return q.order }

// ByAge is the longest wait first.
func (q *Queue) ByAge() []*Candidate { return q.byAge }

// ByTurn is those that go to the front for their own time limit, the first to do so first.
func (q *Queue) ByTurn() []*Candidate { return q.byTurn }

// Classes are those of its candidates, in the order of the first of each.
func (q *Queue) Classes() []*JobClass { return q.firsts }

// Slots is how many classes were ever there at once: see [JobClass.Slot].
func (q *Queue) Slots() int { return q.slots }

// Ledger is what it is ordered by; nil: nothing was learnt.
func (q *Queue) Ledger() *Ledger { return q.ledger }

// Backlog is how many seconds of one card all of them are expected to need yet.
func (q *Queue) Backlog() int64 { return q.backlog }

// Position is how many are ahead of a job, -1 when it does not wait.
func (q *Queue) Position(job int64) int {
	c := q.Get(job)
	if c == nil {
		return -1
	}
	at, _ := slices.BinarySearchFunc(q.order, c, Compare)
	return at
}

// Clone is a queue of its own with the same candidates, and a ledger of its own.
func (q *Queue) Clone() *Queue {
	out := NewQueue(q.policy, q.ledger.snapshot())
	out.version, out.ranked, out.backlog = q.version, q.ranked, q.backlog
	out.order, out.byAge, out.byTurn = slices.Clone(q.order), slices.Clone(q.byAge), slices.Clone(q.byTurn)
	out.classes = make(map[jobClassKey]*JobClass, len(q.classes))
	out.firsts = make([]*JobClass, len(q.firsts))
	all := make([]*Candidate, 0, len(q.order))
	for i, cl := range q.firsts {
		all = append(all, cl.order...)
		out.firsts[i] = &JobClass{cl.slot, slices.Clip(all[len(all)-len(cl.order):]), cl.key}
		out.classes[cl.key] = out.firsts[i]
	}
	out.slots, out.free = q.slots, slices.Clone(q.free)
	return out
}

// Insert adds a candidate, or replaces the one of the same job.
func (q *Queue) Insert(c *Candidate) {
	q.Remove(c.Job)
	q.put(q.own(c))
}

// sortFrom is how many candidates have to change at once for sorting the queue again to be less
// work than moving what stands behind each: 100,000 take 80 ms to sort, and 0.6 ms to make room
// for one in each of the lists (BenchmarkUpdate).
const sortFrom = 128

// Update adds candidates of as many jobs, or replaces those of the same jobs, and takes out those
// of the jobs that are gone. An array of ten thousand costs one sorting, as it comes and as it goes.
func (q *Queue) Update(cs []*Candidate, gone []int64) {
	if len(cs)+len(gone) < sortFrom {
		for _, job := range gone {
			q.Remove(job)
		}
		for _, c := range cs {
			q.Insert(c)
		}
		return
	}
	for _, job := range gone {
		q.forget(job)
	}
	own := make([]*Candidate, len(cs))
	for i, c := range cs {
		own[i] = q.own(c)
		if was := q.Get(c.Job); was != nil {
			q.backlog -= was.need
		}
		q.know(own[i])
	}
	q.fill(append(slices.DeleteFunc(q.order, func(c *Candidate) bool { return q.jobs()[c.Job] != c }), own...))
}

// know and forget keep what is counted and found by job; the lists are left to their callers.
func (q *Queue) know(c *Candidate) {
	q.backlog += c.need
	q.jobs()[c.Job] = c
}

func (q *Queue) forget(job int64) *Candidate {
	c := q.Get(job)
	if c != nil {
		q.backlog -= c.need
		delete(q.byJob, job)
	}
	return c
}

// own is a candidate as the queue keeps it.
func (q *Queue) own(c *Candidate) *Candidate {
	if q.classes == nil {
		q.classes = map[jobClassKey]*JobClass{}
	}
	if q.policy == nil {
		q.policy = &Policy{}
	}
	q.ledger.asked(c)
	own := *c
	q.share(&own)
	own.bucket, own.need = q.policy.bucketOf(q.ledger, c), q.policy.need(q.ledger, c)
	if at := q.policy.turnAt(c.Since(), c.Eligible, c.TimeLimit); !at.IsZero() {
		own.turn = at.Sub(c.Submit)
	}
	return &own
}

func (q *Queue) put(c *Candidate) {
	q.know(c)
	q.order = insert(q.order, c, Compare)
	q.byAge = insert(q.byAge, c, CompareAge)
	if c.turn != 0 {
		q.byTurn = insert(q.byTurn, c, compareTurn)
	}
	k := q.key(c)
	cl := q.classes[k]
	if cl == nil {
		cl = q.newJobClass(k)
	} else if compareFirst(cl, c) < 0 {
		cl.order = insert(cl.order, c, Compare)
		return
	} else {
		q.unlead(cl)
	}
	cl.order = insert(cl.order, c, Compare)
	q.lead(cl)
}

// Remove takes the candidate of a job out and reports whether there was one.
func (q *Queue) Remove(job int64) bool {
	c := q.forget(job)
	if c == nil {
		return false
	}
	q.order = remove(q.order, c, Compare)
	q.byAge = remove(q.byAge, c, CompareAge)
	if c.turn != 0 {
		q.byTurn = remove(q.byTurn, c, compareTurn)
	}
	cl := q.classes[q.key(c)]
	first := cl.order[0] == c
	if first {
		q.unlead(cl)
	}
	if cl.order = remove(cl.order, c, Compare); len(cl.order) == 0 {
		q.dropJobClass(cl)
	} else if first {
		q.lead(cl)
	}
	return true
}

// rankAgain is how often the whole queue is put in order again for what was learnt
// meanwhile, and how long a queue may be for that to be done at once.
const (
	rankAgain = time.Minute
	rankSmall = 2000
)

// Refresh puts the queue in the order that the ledger gives now. It is cheap when nothing
// was learnt; a long queue is sorted again at most once a minute.
func (q *Queue) Refresh(now time.Time) {
	if q.ledger == nil || q.ledger.version == q.version {
		return
	}
	if len(q.order) > rankSmall && now.Sub(q.ranked) < rankAgain {
		return
	}
	q.version, q.ranked = q.ledger.version, now
	if !q.moved() {
		return
	}
	changed := false
	all := make([]*Candidate, len(q.order))
	for i, c := range q.order {
		all[i] = c
		if b := q.policy.bucketOf(q.ledger, c); b != c.bucket {
			own := *c
			own.bucket, own.need = b, q.policy.need(q.ledger, c)
			q.backlog += own.need - c.need
			all[i], changed = &own, true
			q.jobs()[c.Job] = &own
		}
	}
	if changed {
		q.fill(all)
	}
}

// Retier gives each candidate the tier that tier says of its job, and puts the queue in order again where that is another.
func (q *Queue) Retier(tier func(job int64) int64) {
	changed := false
	all := make([]*Candidate, len(q.order))
	var was, is *Terms // of the last: neighbours are mostly alike
	for i, c := range q.order {
		all[i] = c
		t := tier(c.Job)
		if t == c.Tier {
			continue
		}
		own := *c
		if was == c.Terms && is.Tier == t {
			own.Terms = is
		} else {
			terms := *c.Terms
			terms.Tier, own.Terms = t, &terms
			q.share(&own)
			was, is = c.Terms, own.Terms
		}
		all[i], changed = &own, true
		q.jobs()[c.Job] = &own
	}
	if changed {
		q.fill(all)
	}
}

// moved reports whether the ledger puts any candidate elsewhere than it is. In order of
// service candidates of one class that ran as long are asked for once.
func (q *Queue) moved() bool {
	if !q.policy.ByService() {
		return true
	}
	for _, cl := range q.classes {
		var last *Candidate
		var bucket int64
		for _, c := range cl.order {
			if last == nil || c.Attained != last.Attained {
				bucket = q.policy.bucket(q.policy.Service(q.ledger, c).Seconds())
			}
			if last = c; c.bucket != bucket {
				return true
			}
		}
	}
	return false
}

func (q *Queue) fill(all []*Candidate) {
	slices.SortFunc(all, Compare)
	was := slices.Clone(q.firsts)
	q.order, q.byAge, q.firsts = all, slices.Clone(all), q.firsts[:0]
	slices.SortFunc(q.byAge, CompareAge)
	q.byTurn = slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool { return c.turn == 0 })
	slices.SortFunc(q.byTurn, compareTurn)
	for _, cl := range was {
		cl.order = cl.order[:0]
	}
	var cl *JobClass // of the last: neighbours are mostly alike
	for i, c := range all {
		if i == 0 || c.Terms != all[i-1].Terms {
			k := q.key(c)
			if cl = q.classes[k]; cl == nil {
				cl = q.newJobClass(k)
			}
		}
		if len(cl.order) == 0 {
			q.firsts = append(q.firsts, cl)
		}
		cl.order = append(cl.order, c)
	}
	for _, cl := range was {
		if len(cl.order) == 0 {
			q.dropJobClass(cl)
		}
	}
}

// key includes the user and the account only where the policy bounds them: else a plan
// would look at each ask class once for each user.
func (q *Queue) key(c *Candidate) jobClassKey {
	k := jobClassKey{shape: c.Ask.Key, limit: c.TimeLimit, stop: c.Stop, least: c.TimeMin, avoid: strings.Join(c.Avoid, ",")}
	if !c.Deadline.IsZero() {
		k.deadline = c.Deadline.UnixNano()
	}
	if q.policy.UserCards > 0 {
		k.user = c.User
	}
	k.keeps = c.KeepsWork && q.policy.Preempt == PreemptService
	if len(q.policy.Accounts) > 0 {
		k.account, k.closed = c.Account, q.policy.Closed(c) != ""
	}
	return k
}

// CompareAge orders by how long gangs have waited, the longest first.
func CompareAge(a, b *Candidate) int {
	return cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.Job, b.Job))
}

func compareTurn(a, b *Candidate) int {
	return cmp.Or(a.TurnAt().Compare(b.TurnAt()), cmp.Compare(a.Job, b.Job))
}

func insert(list []*Candidate, c *Candidate, by func(a, b *Candidate) int) []*Candidate {
	at, _ := slices.BinarySearchFunc(list, c, by)
	return slices.Insert(list, at, c)
}

func remove(list []*Candidate, c *Candidate, by func(a, b *Candidate) int) []*Candidate {
	at, _ := slices.BinarySearchFunc(list, c, by)
	return slices.Delete(list, at, at+1)
}
