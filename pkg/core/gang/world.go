package gang

import (
	"iter"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
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

// New is an empty world.
func New(set api.Settings) *World {
	w := &World{set: set}
	w.clock = clock{timers: timers{due: map[timer]time.Duration{}}}
	w.jobs = jobs{byID: map[int64]*entry{}, noEpoch: new(epoch), nextID: 1, prepared: map[int64]struct{}{}}
	w.nodes = nodes{set: &w.set, byName: map[string]*host{}}
	w.record = record{set: &w.set, clock: &w.clock, jobs: &w.jobs, queue: &w.queue, outbox: newOutbox(), nextSeq: 1,
		epochs: map[api.MemberKey]EpochRow{}}
	w.specs = specs{partitions: &w.site.partitions, byKey: map[specKey]*sharedSpec{}, options: map[optionsKey]*sharedOptions{},
		optionsBy: map[*api.Spec]*sharedOptions{},
		asks:      map[askKey]*sharedAsk{}}
	w.site = site{clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs, queue: &w.queue, fleet: &w.fleet,
		partitions: partitions{clock: &w.clock, nodes: &w.nodes, changes: map[string]*api.PartitionChange{},
			dirty: map[string]*api.PartitionChange{}, groups: map[uint32][]string{}},
		reservations: reservations{set: &w.set, clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, byName: map[string]*reservation{},
			dirty: map[string]*api.Reservation{}},
		crontabs: crontabs{byUser: map[string]*api.Crontab{}, dirty: map[string]*api.Crontab{}},
		pools:    pools{set: &w.set, held: map[api.PoolKey]int{}},
		holdings: holdings{set: &w.set, specs: &w.specs, byUser: map[uint32]*holding{}}}
	w.queue = queue{clock: &w.clock, jobs: &w.jobs, reservations: &w.site.reservations, pools: &w.site.pools,
		arrays: map[int64]*array{}}
	w.deps = newDepends()
	w.deps.set, w.deps.clock, w.deps.record, w.deps.jobs, w.deps.queue, w.deps.stops = &w.set, &w.clock, &w.record, &w.jobs,
		&w.queue, &w.stops
	w.memory = memory{set: &w.set, clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs, holdings: &w.site.holdings,
		pools: &w.site.pools, queue: &w.queue, deps: &w.deps,
		launches: &w.launches, fleet: &w.fleet, keys: map[string]int64{}, mostEnded: MostEnded}
	w.books = books{clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, record: &w.record, ledger: ledger{}}
	w.launches = launches{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs,
		reservations: &w.site.reservations, pools: &w.site.pools,
		queue: &w.queue, deps: &w.deps, books: &w.books, stops: &w.stops, fleet: &w.fleet, refused: map[int64]*entry{}}
	w.stops = stops{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, crontabs: &w.site.crontabs,
		holdings: &w.site.holdings, queue: &w.queue,
		deps: &w.deps, memory: &w.memory, books: &w.books, launches: &w.launches, steps: &w.steps, watchdogs: &w.watchdogs,
		fleet: &w.fleet, submissions: &w.submissions, held: map[int64]*entry{}}
	w.steps = steps{clock: &w.clock, jobs: &w.jobs, nodes: &w.nodes, stops: &w.stops}
	w.watchdogs = watchdogs{set: &w.set, clock: &w.clock, record: &w.record, nodes: &w.nodes, stops: &w.stops}
	w.fleet = fleet{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, partitions: &w.site.partitions,
		reservations: &w.site.reservations, queue: &w.queue,
		launches: &w.launches, stops: &w.stops, watchdogs: &w.watchdogs, reports: &w.reports}
	w.reports = reports{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, queue: &w.queue,
		books: &w.books, launches: &w.launches, stops: &w.stops,
		steps: &w.steps, fleet: &w.fleet}
	w.control = control{set: &w.set, clock: &w.clock, record: &w.record, jobs: &w.jobs, nodes: &w.nodes, specs: &w.specs,
		site: &w.site, reservations: &w.site.reservations,
		holdings: &w.site.holdings, queue: &w.queue, deps: &w.deps, memory: &w.memory, launches: &w.launches, stops: &w.stops,
		submissions: &w.submissions}
	w.submissions = submissions{clock: &w.clock, record: &w.record, jobs: &w.jobs, specs: &w.specs, site: &w.site,
		partitions: &w.site.partitions, crontabs: &w.site.crontabs,
		holdings: &w.site.holdings, queue: &w.queue, deps: &w.deps, memory: &w.memory, launches: &w.launches, stops: &w.stops,
		control: &w.control}
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
	case NodeReboot:
		return w.fleet.askReboot(ev)
	case NodeRebootCancel:
		return w.fleet.cancelReboot(ev)
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
	case Reconfigure:
		w.set = ev.Settings // of which each part has the address
		return w.site.reconfigure(ev)
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

// Take gives what changed since the last Take. What it gives is never changed again.
func (w *World) Take() Changes {
	var ch Changes
	w.jobs.take(&ch)
	w.nodes.take(&ch)
	w.record.take(&ch)
	w.site.take(&ch.SiteChanges)
	ch.Specs, w.specs.whole = w.specs.whole, nil
	ch.LeftSpecs, w.specs.left = w.specs.left, nil
	ch.Steps, w.steps.ended = w.steps.ended, nil
	ch.Ledger = w.books.ledger.take()
	return ch
}

// SkipIDs makes next the smallest id to be given out, unless that would go back: the store
// was put back in time, and ids above its own may have been given out since.
func (w *World) SkipIDs(next int64) { w.jobs.nextID = max(w.jobs.nextID, next) }

// SetPaths says which switches are above each node: see [fit.SwitchPath].
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

// Candidate is the job as the scheduler sees it, nil when it may not be admitted now.
func (w *World) Candidate(id int64) *order.Candidate {
	e := w.jobs.byID[id]
	if e == nil || !w.queue.eligible(e) || !w.queue.inTurn(e) {
		return nil
	}
	j := e.job
	return &order.Candidate{Job: id, Name: j.Name, Submit: queuedAt(j), Eligible: j.Eligible, Terms: &order.Terms{
		Priority: j.Priority, Nice: NiceOf(j), Size: len(j.Ranks), Ask: e.asked.ask, Avoid: j.Avoid, User: j.User, Account: j.Spec.Account,
		TimeLimit: baseLimit(j), TimeMin: j.Spec.TimeMin, Deadline: j.Deadline, Stop: graceOf(&w.set, j), Attained: j.Kept,
		KeepsWork: keepsWork(j) && j.Spec.MinRun == 0 && limit(&w.set, j.Spec, api.CausePreempted) != 0}}
}

// NextDeadline is when the next timer is due; the engine sends a [Tick] then.
func (w *World) NextDeadline() (mono time.Duration, ok bool) { return w.clock.timers.next() }

// Submitted reports whether a submission with this key has been taken, as far back as keys are kept.
func (w *World) Submitted(key string) bool { return w.memory.submitted(key) != nil }

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
func (w *World) SchedReservations() []given.Reservation { return w.site.reservations.forSched() }

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

// tick fires what is due, at most maxFire timers; NextDeadline says whether more are.
func (w *World) tick() Outcome {
	fired := 0
	for ; fired < maxFire; fired++ {
		t, ok := w.clock.timers.pop(w.clock.now.Mono)
		if !ok {
			break
		}
		w.fire(t)
	}
	if fired == 0 {
		return ignored("no timer is due")
	}
	return applied()
}

func (w *World) fire(t timer) {
	switch t.kind {
	case timerStart:
		w.launches.startTimeout(w.jobs.byID[t.job])
	case timerLaunch:
		w.launches.launchTimeout(w.jobs.byID[t.job])
	case timerReady:
		w.launches.readyTimeout(w.jobs.byID[t.job])
	case timerForce:
		w.stops.force(w.jobs.byID[t.job])
	case timerUnsure:
		w.stops.look(w.jobs.byID[t.job])
	case timerEligible:
		w.queue.becomeEligible(w.jobs.byID[t.job])
	case timerLeave:
		w.memory.purgeDue()
	case timerLost:
		w.fleet.nodeLost(w.nodes.byName[t.node])
	case timerWatch:
		w.watchdogs.watchTimeout(w.jobs.byID[t.job], t.epoch)
	case timerReboot:
		w.fleet.rebootLate(w.nodes.byName[t.node])
	case timerClear:
		w.fleet.clearNode(w.nodes.byName[t.node])
	case timerReservation:
		w.site.reservationDue(t.node)
	case timerDeadline:
		w.launches.missDeadline(w.jobs.byID[t.job])
	case timerNotify:
		w.record.tellPart(w.jobs.byID[t.job])
	case timerBook:
		w.books.hour(w.jobs.byID[t.job], t.epoch)
	case timerDepend:
		w.deps.judge(w.jobs.byID[t.job])
	case timerLease:
		w.fleet.leaseOut(w.nodes.byName[t.node], memberKey(t.job, t.epoch))
	}
}
