package gang

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched"
)

// World is everything the controller knows, in parts: each has state of its own or a matter that it decides, and names those
// that it knows. It is not safe for concurrent use: the engine owns it, readers use what [World.Take] published.
type World struct {
	set api.Settings

	// What there is.
	clock  clock
	record record
	jobs   jobs
	nodes  nodes
	specs  specs
	site   site
	queue  queue
	deps   dependencies
	memory memory
	books  books

	// What becomes of it.
	launches    launches
	stops       stops
	steps       steps
	watchdogs   watchdogs
	fleet       fleet
	reports     reports
	control     control
	submissions submissions
}

// entry is a job with what is derived from it; nothing in here is stored.
type entry struct {
	job      *Job
	asked    *sharedAsk
	*epoch                    // of an admitted gang; all others have [World].noEpoch
	dirty    map[int]struct{} // ranks changed since the last Take
	leaves   time.Duration    // when it leaves memory, on the clock that does not jump; 0: it has not ended
	left     int32            // members of past epochs that may still run, see Left
	owned    bool             // job was cloned since the last Take
	ownRanks bool             // so were its ranks
	allDirty bool             // all of them changed since the last Take
	waiting  bool             // its dependency is watched, see depend.go
	offered  bool             // element of a limited array: one of those that may be admitted next
}

// epoch is what is derived from the members of an admitted gang, and what was heard of them.
type epoch struct {
	prepared map[int]int // of a reserved gang: the port that was picked, by member that is prepared
	ranks    int         // of prepared members
	alive    int         // members neither stopped nor fenced
	open     int         // ranks with a process that has not exited
	body     *api.AssignmentBody
	stuck    map[int]string   // survivors by member
	warned   map[int]string   // what ranks are warned of now
	ready    map[int]struct{} // ranks that said READY=1, while the gate waits
	// readyTasks are tasks of its steps that did.
	readyTasks map[api.TaskKey]struct{}
	guard      *guard        // of its watchdogs; nil: nothing was seen yet
	drainAt    time.Duration // when the drain under way began, on the clock that does not jump
	asker      api.Asker     // who asked for the drain; not stored: a restart takes longer than an answer
	// stacks is where the processes of members were before they were stopped, by member. Nodes say it again after a restart.
	stacks map[int]*api.MemberStacks
}

// host is a node with what is derived from it.
type host struct {
	node        *Node
	owned       bool // cloned since the last Take
	stored      bool // something that the store keeps changed since the last Take
	members     map[api.MemberKey]place
	clock       api.NodeClock              // of the machine, against this one's; zero: not known
	contact     time.Duration              // last time it was heard of, when it has no session now
	since       time.Duration              // when its newest session began
	staleLogged map[api.MemberKey]struct{} // stale claims already put on record in this session
	expired     map[api.MemberKey]struct{} // leases that ran out while most nodes were away
	strays      map[api.MemberKey]struct{} // what lives there and has no grant any more, by the node's own word in this session
	found       map[api.MemberKey]struct{} // members whose records are not whole there, already put on record
}

// place is where a live member is kept.
type place struct {
	e *entry
	i int
}

// preparing: it has not said yet that it is prepared.
func (p place) preparing() bool {
	_, prepared := p.e.prepared[p.i]
	return p.e.job.Members[p.i].State == MemberPreparing && !prepared
}

type askKey struct {
	spec               *api.Spec
	partition          string
	constraint, prefer string // of now
	without            string // nodes that are out of the question for now
}

func (sp *specs) keyOfAsk(j *Job) askKey {
	s := j.Spec
	k := askKey{spec: s, partition: inText(sp.partitions.startsIn(j)), constraint: s.Constraint, prefer: s.Prefer}
	if j.Constraint != nil {
		k.constraint = *j.Constraint
	}
	if j.Prefer != nil {
		k.prefer = *j.Prefer
	}
	if j.Elsewhere {
		k.without = strings.Join(RefusedBy(j), ",")
	}
	return k
}

// specs are what jobs ask for, kept once for all that ask the same.
type specs struct {
	partitions *partitions

	byKey   map[specKey]*sharedSpec
	options map[optionsKey]*sharedOptions
	// optionsBy finds those of a start again, whose jobs share them as they were read.
	optionsBy map[*api.Spec]*sharedOptions
	asks      map[askKey]*sharedAsk

	whole map[string]*api.Spec // of new jobs by hash, for the store; nil: there are none
}

// sharedSpec counts the jobs of a user in memory that have a spec: whoever submits the same once more, a
// hundred thousand times perhaps, takes no more memory for it.
type sharedSpec struct {
	options *sharedOptions
	jobs    int32
	live    int32 // those of them that have not ended
}

type specKey struct {
	user uint32
	hash string
}

func (j *Job) specKey() specKey { return specKey{j.UID, j.SpecHash} }

// sharedOptions is a spec without its name, which each job has for itself. It counts the specs that are the same but for name
// and texts: a hundred thousand jobs of a user differ in little else.
type sharedOptions struct {
	spec  *api.Spec
	key   optionsKey
	specs int
}

type optionsKey [sha256.Size]byte

// keep counts a job in, and gives it the options that others have which say the same.
func (sp *specs) keep(j *Job) {
	s := sp.byKey[j.specKey()]
	if s == nil {
		s = &sharedSpec{options: sp.optionsOf(j.Spec)}
		s.options.specs++
		sp.byKey[j.specKey()] = s
	}
	s.jobs++
	j.Spec = s.options.spec
}

func (sp *specs) optionsOf(s *api.Spec) *sharedOptions {
	if o := sp.optionsBy[s]; o != nil {
		return o
	}
	if s.Name != "" {
		own := *s
		own.Name = ""
		s = &own
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic("gang: a spec is plain data: " + err.Error())
	}
	key := optionsKey(sha256.Sum256(text))
	o := sp.options[key]
	if o == nil {
		o = &sharedOptions{spec: s, key: key}
		sp.options[key], sp.optionsBy[s] = o, o
	}
	return o
}

func (sp *specs) drop(j *Job) {
	s := sp.byKey[j.specKey()]
	if s.jobs--; s.jobs > 0 {
		return
	}
	delete(sp.byKey, j.specKey())
	if s.options.specs--; s.options.specs == 0 {
		delete(sp.options, s.options.key)
		delete(sp.optionsBy, s.options.spec)
	}
}

// sharedAsk counts the jobs that use an ask.
type sharedAsk struct {
	ask  *cluster.Ask
	key  askKey
	jobs int
}

// open: its jobs may be started in a partition.
func (a *sharedAsk) open() bool { return a.key.partition != "" }

// New is an empty world.
func New(set api.Settings) *World {
	w := &World{set: set}
	w.clock = clock{timers: timers{due: map[timer]time.Duration{}}}
	w.jobs = jobs{byID: map[int64]*entry{}, noEpoch: new(epoch), nextID: 1, prepared: map[int64]struct{}{}}
	w.nodes = nodes{set: &w.set, byName: map[string]*host{}}
	w.record = record{set: &w.set, clock: &w.clock, jobs: &w.jobs, queue: &w.queue, outbox: newOutbox(), nextSeq: 1, epochs: map[api.MemberKey]EpochRow{}}
	w.specs = specs{partitions: &w.site.partitions, byKey: map[specKey]*sharedSpec{}, options: map[optionsKey]*sharedOptions{}, optionsBy: map[*api.Spec]*sharedOptions{},
		asks: map[askKey]*sharedAsk{}}
	w.site = site{clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs, queue: &w.queue, fleet: &w.fleet,
		partitions:   partitions{clock: &w.clock, nodes: &w.nodes, changes: map[string]*api.PartitionChange{}, dirty: map[string]*api.PartitionChange{}, groups: map[uint32][]string{}},
		reservations: reservations{set: &w.set, clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, byName: map[string]*reservation{}, dirty: map[string]*api.Reservation{}},
		crontabs:     crontabs{byUser: map[string]*api.Crontab{}, dirty: map[string]*api.Crontab{}},
		pools:        pools{set: &w.set, held: map[api.PoolKey]int{}},
		holdings:     holdings{set: &w.set, specs: &w.specs, byUser: map[uint32]*holding{}}}
	w.queue = queue{clock: &w.clock, jobs: &w.jobs, reservations: &w.site.reservations, pools: &w.site.pools, arrays: map[int64]*array{}}
	w.deps = newDepends()
	w.deps.set, w.deps.clock, w.deps.record, w.deps.jobs, w.deps.queue, w.deps.stops = &w.set, &w.clock, &w.record, &w.jobs, &w.queue, &w.stops
	w.memory = memory{set: &w.set, clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs, holdings: &w.site.holdings, pools: &w.site.pools, queue: &w.queue, deps: &w.deps,
		launches: &w.launches, fleet: &w.fleet, keys: map[string]int64{}, mostEnded: MostEnded}
	w.books = books{clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, record: &w.record, ledger: ledger{}}
	w.launches = launches{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs, reservations: &w.site.reservations, pools: &w.site.pools,
		queue: &w.queue, deps: &w.deps, books: &w.books, stops: &w.stops, fleet: &w.fleet, refused: map[int64]*entry{}}
	w.stops = stops{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, crontabs: &w.site.crontabs, holdings: &w.site.holdings, queue: &w.queue,
		deps: &w.deps, memory: &w.memory, books: &w.books, launches: &w.launches, steps: &w.steps, watchdogs: &w.watchdogs, fleet: &w.fleet, submissions: &w.submissions}
	w.steps = steps{clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, stops: &w.stops}
	w.watchdogs = watchdogs{set: &w.set, clock: &w.clock, record: &w.record, nodes: &w.nodes, stops: &w.stops}
	w.fleet = fleet{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, partitions: &w.site.partitions, reservations: &w.site.reservations, queue: &w.queue,
		launches: &w.launches, stops: &w.stops, watchdogs: &w.watchdogs, reports: &w.reports}
	w.reports = reports{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, queue: &w.queue, books: &w.books, launches: &w.launches, stops: &w.stops,
		steps: &w.steps, fleet: &w.fleet}
	w.control = control{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs, site: &w.site, reservations: &w.site.reservations,
		holdings: &w.site.holdings, queue: &w.queue, deps: &w.deps, memory: &w.memory, launches: &w.launches, stops: &w.stops, submissions: &w.submissions}
	w.submissions = submissions{clock: &w.clock, record: &w.record, jobs: &w.jobs, specs: &w.specs, site: &w.site, partitions: &w.site.partitions, crontabs: &w.site.crontabs,
		holdings: &w.site.holdings, queue: &w.queue, deps: &w.deps, memory: &w.memory, launches: &w.launches, stops: &w.stops, control: &w.control}
	return w
}

// Step applies one event. It never panics; what it did not apply has changed nothing.
func (w *World) Step(now Instant, ev Event) Outcome {
	// The monotonic clock never goes back; a caller's slip must not make a timer late.
	now.Mono = max(now.Mono, w.clock.now.Mono)
	w.clock.now = now
	switch ev := ev.(type) {
	case Submit:
		return w.submissions.submit(ev)
	case Admit:
		return w.launches.admit(ev)
	case NodeHello:
		return w.fleet.hello(ev)
	case NodeReport:
		return w.reports.report(ev)
	case NodeSample:
		return w.fleet.sample(ev)
	case CardDrain:
		return w.fleet.drainCard(ev)
	case CardResume:
		return w.fleet.resumeCard(ev)
	case NodeGone:
		return w.fleet.sessionCut(ev)
	case NodeDrain:
		return w.fleet.drainNode(ev)
	case NodeFeatures:
		return w.fleet.setFeatures(ev)
	case NodeResume:
		return w.fleet.resumeNode(ev)
	case NodeFence:
		return w.fleet.fenceNode(ev)
	case NodeForget:
		return w.fleet.forgetNode(ev)
	case Cancel:
		return w.control.cancel(ev)
	case Hold:
		return w.control.hold(ev)
	case Release:
		return w.control.release(ev)
	case Requeue:
		return w.control.requeue(ev)
	case Update:
		return w.control.update(ev)
	case Preempt:
		return w.control.preempt(ev)
	case CheckpointSaved:
		return w.reports.checkpointSaved(ev)
	case Acknowledged:
		return w.reports.acknowledged(ev)
	case Watched:
		return w.watchdogs.watched(ev)
	case Ready:
		return w.launches.saidReady(ev)
	case PutPartition:
		return w.site.putPartition(ev)
	case DropPartition:
		return w.site.dropPartition(ev)
	case PutCrontab:
		return w.submissions.putCrontab(ev)
	case Groups:
		return w.site.setGroups(ev)
	case ResetPartitions:
		return w.site.resetPartitions(ev)
	case PutReservation:
		return w.site.putReservation(ev)
	case DropReservation:
		return w.site.dropReservation(ev)
	case StepBegin:
		return w.steps.begin(ev)
	case StepStop:
		return w.steps.stop(ev)
	case Named:
		return w.control.named(ev)
	case LettersDone:
		return w.record.outbox.settle(ev, w.clock.now.Wall)
	case Stalled:
		w.clock.timers.delay(ev.For, timerStart, timerLaunch, timerForce)
		return applied()
	case Tick:
		return w.tick()
	}
	return ignored("unknown event")
}

func applied() Outcome             { return Outcome{Applied: true} }
func ignored(why string) Outcome   { return Outcome{Ignored: why} }
func refused(e *api.Error) Outcome { return Outcome{Refused: e} }

// edit gives the job to write to: cloned once between two Takes.
func (js *jobs) edit(e *entry) *Job {
	if !e.owned {
		e.job = clone(e.job)
		e.owned = true
		js.dirty = append(js.dirty, e)
	}
	return e.job
}

// editRank gives the rank to write to.
func (js *jobs) editRank(e *entry, i int) *Rank {
	if !e.allDirty {
		if e.dirty == nil {
			e.dirty = map[int]struct{}{}
		}
		e.dirty[i] = struct{}{}
	}
	return &js.editRanks(e)[i]
}

// editRanks gives all ranks to write to. A job is edited each time that one of its members says something, and
// what most say is not of the ranks, of which there may be thousands.
func (js *jobs) editRanks(e *entry) []Rank {
	j := js.edit(e)
	if !e.ownRanks {
		j.Ranks = slices.Clone(j.Ranks)
		e.ownRanks = true
	}
	return j.Ranks
}

// clone copies a job but for its ranks: see [jobs.editRanks].
func clone(j *Job) *Job {
	c := j.Copy()
	c.Members = slices.Clone(j.Members)
	c.Used = maps.Clone(j.Used)
	c.Steps = slices.Clone(j.Steps)
	for i := range c.Steps {
		c.Steps[i].Parts = slices.Clone(c.Steps[i].Parts)
	}
	if j.Drain != nil {
		d := *j.Drain
		d.Later = slices.Clone(d.Later)
		d.Reports = slices.Clone(d.Reports)
		c.Drain = &d
	}
	return c
}

// edit gives the node to write to.
func (ns *nodes) edit(h *host) *Node {
	h.stored = true
	return ns.show(h)
}

// show is editNode for what is shown but not stored.
func (ns *nodes) show(h *host) *Node {
	if !h.owned {
		c := *h.node
		c.Left = slices.Clone(c.Left)
		h.node = &c
		h.owned = true
		ns.dirty = append(ns.dirty, h)
	}
	return h.node
}

// emit puts one line into the story.
func (r *record) emit(ev api.Event) {
	ev.Seq, ev.Time = r.nextSeq, r.clock.now.Wall
	r.nextSeq++
	r.events = append(r.events, ev)
}

// emitJob is emit for the current epoch of a job.
func (r *record) emitJob(j *Job, ev api.Event) {
	ev.JobID, ev.Epoch = j.ID, j.Epoch
	r.emit(ev)
	if len(j.Spec.Notify) > 0 {
		a := r.queue.arrays[j.ArrayID]
		r.outbox.notify(j, &r.events[len(r.events)-1], r.set.StallDump > 0, a == nil || len(a.waiting) == 0)
	}
	if j.Spec.Report && ev.Type == api.EventEnded && j.Booking != nil {
		r.outbox.postReport(j, &r.events[len(r.events)-1])
	}
}

// Take gives what changed since the last Take. What it gives is never changed again.
func (w *World) Take() Changes {
	ch := Changes{Forgot: unique(w.nodes.forgot), Events: w.record.events, Steps: w.steps.ended, Measures: w.record.measures, Ledger: w.books.ledger.take(), Letters: w.record.outbox.take(), Specs: w.specs.whole, Purged: w.jobs.purged, Revived: unique(w.jobs.revived), NextID: w.jobs.nextID, NextSeq: w.record.nextSeq}
	slices.SortFunc(w.jobs.dirty, func(a, b *entry) int { return int(a.job.ID - b.job.ID) })
	for _, e := range w.jobs.dirty {
		e.job.Share()
		// One that has left memory since is here too: its end must reach the store.
		ch.Jobs = append(ch.Jobs, e.job)
		ch.Ranks = e.appendRanks(ch.Ranks)
		e.owned, e.ownRanks, e.allDirty, e.dirty = false, false, false, nil
	}
	slices.SortFunc(w.nodes.dirty, func(a, b *host) int { return strings.Compare(a.node.Name, b.node.Name) })
	for _, h := range w.nodes.dirty {
		if h.stored {
			ch.Nodes = append(ch.Nodes, h.node)
		} else {
			ch.Seen = append(ch.Seen, h.node)
		}
		h.owned, h.stored = false, false
	}
	for _, k := range slices.SortedFunc(maps.Keys(w.record.epochs), api.MemberKey.Compare) {
		ch.Epochs = append(ch.Epochs, w.record.epochs[k])
	}
	for _, name := range slices.Sorted(maps.Keys(w.site.reservations.dirty)) {
		ch.Reservations = append(ch.Reservations, ReservationRow{name, w.site.reservations.dirty[name]})
	}
	clear(w.site.reservations.dirty)
	for _, name := range slices.Sorted(maps.Keys(w.site.partitions.dirty)) {
		ch.Partitions = append(ch.Partitions, PartitionRow{name, w.site.partitions.dirty[name]})
	}
	clear(w.site.partitions.dirty)
	ch.Groups, w.site.partitions.moved = w.site.partitions.moved, false
	for _, user := range slices.Sorted(maps.Keys(w.site.crontabs.dirty)) {
		ch.Crontabs = append(ch.Crontabs, CrontabRow{user, w.site.crontabs.dirty[user]})
	}
	clear(w.site.crontabs.dirty)
	slices.Sort(ch.Purged)
	ch.Dirty = unique(w.nodes.woken)
	ch.Queue = unique(w.jobs.touched)
	ch.Prepared = w.jobs.takePrepared()
	w.jobs.dirty, w.nodes.dirty, w.nodes.forgot, w.record.events, w.steps.ended, w.record.measures, w.specs.whole, w.jobs.purged, w.jobs.revived = nil, nil, nil, nil, nil, nil, nil, nil, nil
	if len(w.record.epochs) > 0 {
		w.record.epochs = map[api.MemberKey]EpochRow{}
	}
	w.nodes.woken, w.jobs.touched = nil, nil
	return ch
}

// takePrepared counts the prepared ranks of gangs of which that has changed.
func (js *jobs) takePrepared() map[int64]int {
	if len(js.prepared) == 0 {
		return nil
	}
	out := map[int64]int{}
	for id := range js.prepared {
		if e := js.byID[id]; e != nil && reserved(e.job) {
			out[id] = e.ranks
		}
	}
	clear(js.prepared)
	return out
}

func unique[T cmp.Ordered](s []T) []T {
	slices.Sort(s)
	return slices.Compact(s)
}

func (e *entry) appendRanks(rows []RankRow) []RankRow {
	if e.allDirty {
		rows = slices.Grow(rows, len(e.job.Ranks))
		for i, r := range e.job.Ranks {
			rows = append(rows, RankRow{Job: e.job.ID, Index: i, Rank: r})
		}
		return rows
	}
	rows = slices.Grow(rows, len(e.dirty))
	for _, i := range slices.Sorted(maps.Keys(e.dirty)) {
		rows = append(rows, RankRow{Job: e.job.ID, Index: i, Rank: e.job.Ranks[i]})
	}
	return rows
}

// SkipIDs makes next the smallest id to be given out, unless that would go back: the store
// was put back in time, and ids above its own may have been given out since.
func (w *World) SkipIDs(next int64) { w.jobs.nextID = max(w.jobs.nextID, next) }

// SetPaths says which switches are above each node: see [sched.SwitchPath].
func (w *World) SetPaths(paths map[string]string) { w.nodes.paths = paths }

// NextID is the smallest id never given out.
func (w *World) NextID() int64 { return w.jobs.nextID }

// TakeQueue gives the jobs whose candidacy may have changed since it or Take was last
// called, and whether a node has come to offer something else: what a planner must look at
// between steps that go into one commit.
func (w *World) TakeQueue() (ids []int64, room bool) {
	ids, room = unique(w.jobs.touched), w.nodes.room
	w.jobs.touched, w.nodes.room = nil, false
	return ids, room
}

// Outbox are the letters by id.
func (w *World) Outbox() []*api.Letter { return w.record.outbox.list() }

// find is the newest form of a job in memory, nil when there is none.
func (js *jobs) find(id int64) *Job {
	if e := js.byID[id]; e != nil {
		return e.job
	}
	return nil
}

// all walks the jobs in memory by id.
func (js *jobs) all() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, id := range slices.Sorted(maps.Keys(js.byID)) {
			if !yield(js.byID[id].job) {
				return
			}
		}
	}
}

// find is the newest form of a node, nil when it is not known.
func (ns *nodes) find(name string) *Node {
	if h := ns.byName[name]; h != nil {
		return h.node
	}
	return nil
}

// all are all known nodes by name.
func (ns *nodes) all() []*Node {
	out := make([]*Node, len(ns.sorted))
	for i, h := range ns.sorted {
		out[i] = h.node
	}
	return out
}

// at is where the node of a name is among all, or belongs.
func (ns *nodes) at(name string) int {
	i, _ := slices.BinarySearchFunc(ns.sorted, name, func(h *host, name string) int { return strings.Compare(h.node.Name, name) })
	return i
}

// Candidate is the job as the scheduler sees it, nil when it may not be admitted now.
func (w *World) Candidate(id int64) *sched.Candidate {
	e := w.jobs.byID[id]
	if e == nil || !w.queue.eligible(e) || !w.queue.inTurn(e) {
		return nil
	}
	j := e.job
	return &sched.Candidate{Job: id, Name: j.Name, Submit: queuedAt(j), Eligible: j.Eligible, Terms: &sched.Terms{
		Priority: j.Priority, Nice: NiceOf(j), Size: len(j.Ranks), Ask: e.asked.ask, Avoid: j.Avoid, User: j.User, Account: j.Spec.Account,
		TimeLimit: baseLimit(j), TimeMin: j.Spec.TimeMin, Deadline: j.Deadline, Stop: graceOf(&w.set, j), Attained: j.Kept,
		KeepsWork: keepsWork(j) && j.Spec.MinRun == 0 && limit(&w.set, j.Spec, api.CausePreempted) != 0}}
}

// fenced names the nodes on which something of a past epoch of the job may still run, or the site's epilog does; it
// is not admitted before that is over.
func (fl *fleet) fenced(id int64) []string {
	e := fl.jobs.byID[id]
	if e == nil || e.left == 0 {
		return nil
	}
	var out []string
	for _, n := range fl.nodes.all() {
		if slices.ContainsFunc(n.Left, func(l Left) bool { return l.Job == id && l.KeepsOut() }) {
			out = append(out, n.Name)
		}
	}
	return out
}

// NextDeadline is when the next timer is due; the engine sends a [Tick] then.
func (w *World) NextDeadline() (mono time.Duration, ok bool) { return w.clock.timers.next() }

// Job is the newest form of a job in memory, nil when there is none.
func (w *World) Job(id int64) *Job { return w.jobs.find(id) }

// Jobs walks the jobs in memory by id.
func (w *World) Jobs() iter.Seq[*Job] { return w.jobs.all() }

// Node is the newest form of a node, nil when it is not known.
func (w *World) Node(name string) *Node { return w.nodes.find(name) }

// Nodes are all known nodes by name.
func (w *World) Nodes() []*Node { return w.nodes.all() }

// Desired is all that a node shall have: see [nodes.desired].
func (w *World) Desired(node string) []api.Assignment { return w.nodes.desired(node) }

// Partitions are those that hold.
func (w *World) Partitions() []api.Partition { return w.site.partitions.all }

// PartitionChanges are what was made of them at run time, by name.
func (w *World) PartitionChanges() []api.PartitionChange { return w.site.partitions.changed() }

// Reservations are all there are, by name.
func (w *World) Reservations() []*api.Reservation { return w.site.reservations.list() }

// SchedReservations are the reservations as the scheduler sees them; not to be written to.
func (w *World) SchedReservations() []sched.Reservation { return w.site.reservations.forSched() }

// Crontab is that of a user, nil: none.
func (w *World) Crontab(user string) *api.Crontab { return w.site.crontabs.byUser[user] }

// Crontabs are those of all users, by name.
func (w *World) Crontabs() map[string]*api.Crontab { return w.site.crontabs.list() }

// SetPartitions gives a restored world what the configuration says.
func (w *World) SetPartitions(file []api.Partition) { w.site.configure(file) }

// Fenced names the nodes on which something of a past epoch of the job may still run, or the site's epilog does; it
// is not admitted before that is over.
func (w *World) Fenced(id int64) []string { return w.fleet.fenced(id) }

// Fenceable names the lost nodes that the site's fence hook may see to: see [fleet.fenceable].
func (w *World) Fenceable() []string { return w.fleet.fenceable() }
