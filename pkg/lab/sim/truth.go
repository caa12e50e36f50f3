package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// truth is what really happened, to hold the controller against.
type truth struct {
	r *run

	live     map[int64][]*proc // processes that live and were not killed, by job
	attempts map[api.MemberKey]*attempt
	newest   map[int64]int   // newest epoch of which a process was started
	admitted map[int64]int   // newest epoch that was committed
	acked    map[int][]int64 // ids by submission, as answered
	owners   map[int64]int   // submission by id, as committed
	cancels  map[int64]int   // epoch when a cancel was acknowledged
	verdicts map[int64]api.JobState
	over     map[int64]ending
	exits    map[exitKey]int  // recorded
	codes    map[exitKey]int  // real
	struck   map[exitKey]bool // ranks that ended because their machine was shut down
	culprits map[exitKey]bool // ranks that failed by themselves: nobody stopped them, and they lost no peer
	puts     map[slot]int     // of checkpoints: 1 was sent, more were answered
	sizes    map[stepKey]int  // tasks of each step
	fenced   map[placed]bool  // members that were counted gone without a word of their node
	jobs     map[int64]*gang.Job
	before   map[int64]*gang.Job // as they were one commit earlier, of several controllers
	reserved []*reserved
	places   map[api.MemberKey]int64 // number of the event by which an epoch was admitted
	onOld    bool
	seats    []seated // take-overs, oldest first
	wroteIn  uint64   // the highest term that committed
	turns    int
	settled  bool // a turn was done since the last start
}

// attempt is an epoch that had a process.
type attempt struct {
	key      api.MemberKey
	ready    map[string]bool // nodes on which it was prepared
	since    time.Duration   // in part since then; -1: not
	job      *Job
	expected int // main processes
	begun    int
	told     bool // that it started: what is rolled back after that is a job in no new epoch
}

type placed struct {
	job  int64
	node string
}

type exitKey struct {
	job   int64
	epoch int
	rank  int
}

func newTruth(r *run) *truth {
	return &truth{r: r, live: map[int64][]*proc{}, attempts: map[api.MemberKey]*attempt{}, newest: map[int64]int{}, admitted: map[int64]int{},
		acked: map[int][]int64{}, owners: map[int64]int{}, cancels: map[int64]int{}, verdicts: map[int64]api.JobState{}, over: map[int64]ending{},
		exits: map[exitKey]int{}, codes: map[exitKey]int{}, culprits: map[exitKey]bool{}, struck: map[exitKey]bool{}, puts: map[slot]int{},
		sizes: map[stepKey]int{}, fenced: map[placed]bool{}, jobs: map[int64]*gang.Job{}, before: map[int64]*gang.Job{}}
}

func (t *truth) attempt(k api.MemberKey, s *memberSpec) *attempt {
	a := t.attempts[k]
	if a == nil {
		a = &attempt{key: k, ready: map[string]bool{}, since: -1, job: s.job, expected: len(s.body.Ranks)}
		if s.job.Batch {
			a.expected = 1
		}
		t.attempts[k] = a
	}
	return a
}

// prepared: a shim has everything that its member needs.
func (t *truth) prepared(s *shimProc) { t.attempt(s.key, s.spec).ready[s.m.name] = true }

// opened: the gate of a member was opened, and its processes are about to start.
func (t *truth) opened(s *shimProc) {
	k := s.key
	a := t.attempt(k, s.spec)
	r := t.r
	r.log("%s: %d.%d starts ranks %v", s.m.name, k.Job, k.Epoch, s.spec.ranks)
	for _, n := range s.spec.nodes {
		if !a.ready[n] {
			r.fail("I6", "job %d epoch %d starts on %s before it is prepared on %s", k.Job, k.Epoch, s.m.name, n)
		}
	}
	if k.Epoch < t.admitted[k.Job] {
		r.fail("I6", "job %d epoch %d starts on %s after epoch %d was admitted", k.Job, k.Epoch, s.m.name, t.admitted[k.Job])
	}
	if at, ok := t.cancels[k.Job]; ok && k.Epoch > at {
		r.fail("I8", "job %d epoch %d starts after its cancel was acknowledged in epoch %d", k.Job, k.Epoch, at)
	}
	if state, over := t.verdicts[k.Job]; over {
		r.fail("I9", "job %d epoch %d starts on %s after the job ended %s", k.Job, k.Epoch, s.m.name, state)
	}
	t.newest[k.Job] = max(t.newest[k.Job], k.Epoch)
	t.room(s)
	t.guests()
}

// room: what the members with processes on a machine use does not exceed it.
func (t *truth) room(s *shimProc) {
	m := s.m
	members := map[api.MemberKey]*memberSpec{s.key: s.spec}
	for _, p := range m.procs {
		members[p.key] = p.s.spec
	}
	for k, spec := range m.disk.epilogs { // what they have is not given on before their epilogs are over
		if k.Job == s.key.Job && k.Epoch != s.key.Epoch {
			t.r.fail("I24", "job %d epoch %d starts on %s before the epilog of epoch %d is over", k.Job, s.key.Epoch, m.name, k.Epoch)
		}
		members[k] = spec
	}
	cpus := 0
	cards := map[string]api.MemberKey{}
	for k, spec := range members {
		for _, p := range spec.body.Ranks {
			if spec.body.Nodes[p.Node].Name != m.name {
				continue
			}
			cpus++
			for _, c := range p.Cards {
				if o, taken := cards[c]; taken && o != k {
					t.r.fail("I5", "card %s is used by job %d epoch %d and by job %d epoch %d", c, min(o.Job, k.Job), o.Epoch, max(o.Job, k.Job), k.Epoch)
				}
				cards[c] = k
			}
		}
	}
	if cpus > m.spec.CPUs {
		t.r.fail("I5", "%d of %d CPUs are used on %s", cpus, m.spec.CPUs, m.name)
	}
}

// started: a process exists.
func (t *truth) started(p *proc) {
	t.alone(p)
	t.live[p.key.Job] = append(t.live[p.key.Job], p)
	t.licences()
	if p.task() {
		t.r.res.Tasks++
	}
	if p.main {
		a := t.attempts[p.key]
		a.begun++
		t.partly(a)
	}
}

// thawed: a machine goes on, and its shims have had their turn.
func (t *truth) thawed(m *machine) {
	for _, p := range m.procs {
		if !p.killed {
			t.alone(p)
		}
	}
	t.licences()
}

// alone: no process of another epoch can act beside p, nor one of the same rank.
func (t *truth) alone(p *proc) {
	for _, o := range t.live[p.key.Job] {
		switch {
		case o == p || o.killed || o.frozen():
		case o.key.Epoch != p.key.Epoch:
			t.r.fail("I1", "job %d lives in epoch %d on %s and in epoch %d on %s", p.key.Job, o.key.Epoch, o.m.name, p.key.Epoch, p.m.name)
		case o.rank == p.rank && o.main && p.main:
			t.r.fail("I1", "rank %d of job %d epoch %d lives twice, on %s and %s", p.rank, p.key.Job, p.key.Epoch, o.m.name, p.m.name)
		default:
			t.taskAlone(p, o)
		}
	}
}

// ended: a process is gone; code -1: with its machine.
func (t *truth) ended(p *proc, code int) {
	t.live[p.key.Job] = slices.DeleteFunc(t.live[p.key.Job], func(o *proc) bool { return o == p })
	if p.main {
		if code >= 0 {
			t.codes[exitKey{p.key.Job, p.key.Epoch, p.rank}] = code
		}
		if code > 0 && !p.byPeer && !p.struck && !p.killed && p.told.terms == 0 {
			t.culprits[exitKey{p.key.Job, p.key.Epoch, p.rank}] = true
		}
		if p.struck {
			t.struck[exitKey{p.key.Job, p.key.Epoch, p.rank}] = true
		}
		t.partly(t.attempts[p.key])
	}
	t.r.log("%s: %d.%d %s ends with %d", p.m.name, p.key.Job, p.key.Epoch, p.name(), code)
	t.lastEnded(p)
}

// partly looks whether a gang runs in part: some of its processes live, and others have not
// begun, or ended other than by a success. It may do so for a bounded time.
func (t *truth) partly(a *attempt) {
	alive := t.acting(a.key)
	whole := a.begun >= a.expected && !t.failed(a)
	if alive == 0 || whole {
		a.since = -1
		return
	}
	if a.since >= 0 {
		return
	}
	since := t.r.now
	a.since = since
	t.r.after(t.limit(a), func() { t.stillPartly(a, since) })
}

func (t *truth) failed(a *attempt) bool {
	for rank := range a.expected {
		code, over := t.codes[exitKey{a.key.Job, a.key.Epoch, rank}]
		if over && code != 0 {
			return true
		}
	}
	return false
}

// acting counts the main processes of an attempt that can still do something.
func (t *truth) acting(k api.MemberKey) int {
	n := 0
	for _, p := range t.live[k.Job] {
		if p.key == k && p.main && !p.killed {
			n++
		}
	}
	return n
}

// limit is how long a gang may run in part.
func (t *truth) limit(a *attempt) time.Duration {
	set := &t.r.set
	return set.StartTimeout + set.NodeTimeout + set.Lease + max(a.job.Grace, set.Grace) + a.job.Lead + set.DrainSlack + 5*time.Second
}

// stillPartly is asked when that time is over. What a suspend took is given back.
func (t *truth) stillPartly(a *attempt, since time.Duration) {
	if a.since != since || since < 0 {
		return
	}
	if left := t.led(t.limit(a)); left > 0 {
		t.r.after(left, func() { t.stillPartly(a, since) })
		return
	}
	for _, p := range t.live[a.key.Job] {
		if p.key == a.key && p.frozen() {
			t.r.after(t.limit(a), func() { t.stillPartly(a, since) })
			return
		}
	}
	if t.acting(a.key) > 0 {
		t.r.fail("I2", "job %d epoch %d has run in part since %s", a.key.Job, a.key.Epoch, since)
	}
}

// committed takes in one commit.
func (t *truth) committed(ch *gang.Changes) {
	r := t.r
	for _, id := range ch.Revived {
		delete(t.verdicts, id)
		delete(t.over, id)
		delete(t.cancels, id)
		r.res.Ended--
	}
	for _, j := range ch.Jobs {
		t.job(j)
	}
	for i := range ch.Epochs {
		t.blamed(&ch.Epochs[i])
	}
	for i := range ch.Events {
		ev := &ch.Events[i]
		r.mix(uint64(ev.Seq))
		r.mixText(string(ev.Type))
		t.event(ev)
	}
	if !t.r.sc.Lean {
		for _, id := range ch.Purged {
			delete(t.jobs, id)
		}
	}
	for i := range ch.Events {
		r.eventPoint(&ch.Events[i])
	}
}

// blamed: who is charged with a crash has failed by himself, and did not leave because another had, or because his machine was
// shut down. Where it is said that
// two can't be told apart one of them has.
func (t *truth) blamed(row *gang.EpochRow) {
	if t.onOld || row.Cause != api.CauseCrash || row.Trigger < 0 || row.Text == "" {
		return
	}
	k := exitKey{row.Job, row.Epoch, row.Trigger}
	a := t.attempts[api.MemberKey{Job: row.Job, Epoch: row.Epoch}]
	if a == nil || !a.job.Runs.Peers && !t.struck[k] || t.culprits[k] {
		return
	}
	if slices.ContainsFunc(row.Tied, func(rank int) bool { return t.culprits[exitKey{row.Job, row.Epoch, rank}] }) {
		return
	}
	t.r.fail("I23", "rank %d of job %d epoch %d is blamed (%s), which has not ended by itself", row.Trigger, row.Job, row.Epoch,
		row.Text)
}

func (t *truth) forgetPurged(w *gang.World) {
	for id, j := range t.jobs {
		if w.Job(id) == nil {
			t.forget(j)
			delete(t.jobs, id)
		}
	}
}

// forget drops what is known of a job that was purged.
func (t *truth) forget(j *gang.Job) {
	if j == nil {
		return
	}
	id := j.ID
	for epoch := 1; epoch <= j.Epoch; epoch++ {
		delete(t.attempts, api.MemberKey{Job: id, Epoch: epoch})
		for rank := range j.Ranks {
			k := exitKey{id, epoch, rank}
			delete(t.exits, k)
			delete(t.codes, k)
			delete(t.culprits, k)
			delete(t.struck, k)
		}
	}
	maps.DeleteFunc(t.puts, func(s slot, _ int) bool { return s.Job == id })
	maps.DeleteFunc(t.sizes, func(k stepKey, _ int) bool { return k.Job == id })
	delete(t.live, id)
	delete(t.newest, id)
	delete(t.admitted, id)
	delete(t.cancels, id)
	delete(t.verdicts, id)
	delete(t.over, id)
	if index, known := t.owners[id]; known {
		delete(t.r.ids, index)
		delete(t.acked, index)
		delete(t.owners, id)
	}
	for _, m := range t.r.machines {
		delete(t.fenced, placed{id, m.name})
	}
}

func (t *truth) job(j *gang.Job) {
	r := t.r
	if t.onOld { // what a copy believes before it is found out is thrown away with it
		t.jobs[j.ID] = j
		return
	}
	if j.Key != "" {
		var user, index int // whose key it is, and its number
		if _, err := fmt.Sscanf(j.Key, "%d key-%d", &user, &index); err == nil {
			if id, known := r.ids[index]; known && id != j.ID {
				r.fail("I3", "submission %d is job %d and job %d", index, id, j.ID)
			}
			if _, known := r.ids[index]; !known {
				r.ids[index] = j.ID
				r.res.Jobs++
			}
		}
	}
	was := t.jobs[j.ID]
	if r.db != nil {
		t.before[j.ID] = was
	}
	if was != nil && j.Epoch < was.Epoch {
		r.fail("I6", "job %d goes from epoch %d back to %d", j.ID, was.Epoch, j.Epoch)
	}
	if at, ok := t.cancels[j.ID]; ok && j.Epoch > at {
		r.fail("I8", "job %d is admitted in epoch %d after its cancel was acknowledged in epoch %d", j.ID, j.Epoch, at)
	}
	if state, over := t.verdicts[j.ID]; over && (j.Verdict == nil || j.Verdict.State != state) {
		r.fail("I4", "job %d ended %s, and now is %s", j.ID, state, gang.JobState(j))
	}
	if j.Verdict != nil {
		if _, over := t.verdicts[j.ID]; !over {
			t.verdicts[j.ID] = j.Verdict.State
			t.over[j.ID] = endingOf(j)
			t.byScript(j)
			r.res.Ended++
			r.res.Outcomes[j.Verdict.State]++
		}
	}
	t.jobs[j.ID] = j
	t.steps(j)
	t.admitted[j.ID] = max(t.admitted[j.ID], j.Epoch)
}

func (t *truth) event(ev *api.Event) {
	r := t.r
	r.log("event %s job %d.%d node %s %s %s %s %s", ev.Type, ev.JobID, ev.Epoch, ev.Node, ev.Cause, ev.Outcome, ev.State, ev.Text)
	t.reservation(ev)
	switch ev.Type {
	case api.EventStarted:
		r.res.Starts++
		if a := t.attempts[api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch}]; a != nil {
			a.told = true
		}
	case api.EventRolledBack:
		if a := t.attempts[api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch}]; a != nil && a.begun > 0 && !a.told && !t.onOld {
			r.fail("I26", "job %d epoch %d goes back as one that never started (%s), and %d of its ranks were", ev.JobID, ev.Epoch, ev.Text, a.begun)
		}
	case api.EventCheckpoint:
		if ev.Task != nil {
			t.taskSaved(ev)
		}
	case api.EventNodeFenced:
		for _, id := range ev.Jobs {
			t.fenced[placed{id, ev.Node}] = true
		}
	case api.EventRankExited:
		if t.onOld {
			return
		}
		k := exitKey{ev.JobID, ev.Epoch, *ev.Rank}
		if t.exits[k]++; t.exits[k] > 1 {
			r.fail("I4", "the exit of rank %d of job %d epoch %d is recorded twice", k.rank, k.job, k.epoch)
		}
		if code, known := t.codes[k]; !known || code != *ev.ExitCode {
			r.fail("I4", "rank %d of job %d epoch %d ended with %d (known %t), recorded is %d", k.rank, k.job, k.epoch, code, known, *ev.ExitCode)
		}
	}
}

// acknowledged: a client was told the ids of its submission.
func (t *truth) acknowledged(index int, ids []int64) {
	if t.onOld {
		return // of a copy that is thrown away
	}
	if _, known := t.r.ids[index]; !known {
		t.r.fail("I3", "submission %d was answered with %v, which is not committed", index, ids)
	}
	if was, again := t.acked[index]; again && !slices.Equal(was, ids) {
		t.r.fail("I3", "submission %d was answered with %v, and now with %v", index, was, ids)
	}
	t.acked[index] = ids
	for _, id := range ids {
		if o, taken := t.owners[id]; taken && o != index {
			t.r.fail("I3", "id %d was given to submissions %d and %d", id, o, index)
		}
		t.owners[id] = index
	}
}

// told: a node is sent what is desired. Nothing of it may be news to the disk.
func (t *truth) told(node string, d *api.Desired) {
	if t.onOld {
		return
	}
	for i := range d.Assignments {
		a := &d.Assignments[i]
		why := news(t.jobs[a.Job], a)
		if was := t.before[a.Job]; why != "" && was != nil { // of a commit whose answer is under way
			why = news(was, a)
		}
		if why != "" {
			t.r.fail("uncommitted", "%s is told of job %d epoch %d: %s", node, a.Job, a.Epoch, why)
		}
	}
}

// news is what of an order is not in a job as it was committed; empty: nothing.
func news(j *gang.Job, a *api.Assignment) string {
	switch {
	case j == nil || j.Epoch < a.Epoch:
		return "that is not committed"
	case j.Epoch > a.Epoch: // in the queue behind a newer one
	case a.Gate != nil && (j.Ranks[0].State == api.RankReserved || j.Ranks[0].State == api.RankBlocked):
		return "to start, and it is committed as " + string(j.Ranks[0].State)
	case a.Stop != nil && j.Drain == nil && j.Verdict == nil:
		return "to stop, and no drain is committed"
	}
	return ""
}

func (t *truth) cancelled(id int64) {
	if j := t.jobs[id]; j != nil && !t.onOld {
		if _, before := t.cancels[id]; !before {
			t.cancels[id] = j.Epoch
			t.r.log("cancel of %d acknowledged in epoch %d", id, j.Epoch)
		}
	}
}

// swapped: the controller's store is another one.
func (t *truth) swapped(old bool) { t.onOld = old }

// onOldStore is before a commit to an old copy, which was at commit at when it was put back.
// Where a node in session has told of a higher one there must be none.
func (t *truth) onOldStore(g *gangd, at uint64) {
	for _, m := range t.r.machines {
		if s := g.sessions[m.name]; s != nil && s.greeted && s.seen > at && !t.r.onCopy[s.toldBy] {
			t.r.fail("I11", "a controller whose store was put back to commit %d does not hold, though %s has told it of commit %d", at, m.name,
				s.seen)
		}
	}
}

// known is up to which commit of the newest store all nodes were told, and up to which one.
func (t *truth) known() (least, most uint64) {
	least = t.r.disk.lineage
	for _, m := range t.r.machines {
		n := m.disk.lineage
		if t.r.onCopy[m.disk.run] {
			n = 0
		}
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

// copied: the store is about to be another one. A controller on a copy that has met a node
// which knows of more must have held.
func (t *truth) copied(toOld bool) {
	g := t.r.gangd
	if toOld || g == nil {
		return
	}
	if g.drv.OnHold() != "" {
		t.r.res.Holds++
		return
	}
	t.onOldStore(g, t.r.disk.oldAt)
}

// reopened: a controller has read its store.
func (t *truth) reopened(g *gangd) {
	t.settled = false
	w := g.drv.World()
	if t.r.sc.Lean {
		t.forgetPurged(w)
	}
	t.jobs = map[int64]*gang.Job{}
	for j := range w.Jobs() {
		t.jobs[j.ID] = j
	}
	if t.onOld {
		return
	}
	t.verify("reopened")
	t.remembered(g)
	for id, epoch := range t.admitted {
		if j := w.Job(id); j != nil && j.Epoch < epoch {
			t.r.fail("I6", "job %d was in epoch %d and is in %d after the restart", id, epoch, j.Epoch)
		}
	}
}

// turned is after each turn.
func (t *truth) turned() {
	if t.r.gangd == nil { // it was replaced, and does not know it yet; nobody leads
		return
	}
	t.settled = true
	if t.turns++; t.r.sc.Lean && t.turns%100 != 0 {
		return
	}
	if t.r.sc.Lean { // a turn that only purges commits nothing, so that it is not seen as a commit
		t.forgetPurged(t.r.world())
	}
	t.verify("turned")
	t.guests()
	t.neighbours()
	t.nothingLeft()
}

func (t *truth) verify(when string) {
	if bad := t.r.world().Verify(); len(bad) > 0 {
		t.r.fail("world", "%s: %q", when, bad)
	}
}

// nothingLeft: each process that can act belongs to a member that the controller reckons
// with on that node.
func (t *truth) nothingLeft() {
	if t.onOld {
		return
	}
	w := t.r.world()
	for _, m := range t.r.machines {
		n := w.Node(m.name)
		if n == nil {
			continue
		}
		for _, p := range m.procs {
			if p.frozen() || p.killed && n.State != api.NodeUp {
				continue // it can't do anything; when it wakes its shim is first
			}
			if p.killed && t.fenced[placed{p.key.Job, m.name}] {
				continue // given up with its lease, and back with what KILL did not end yet
			}
			if _, held := n.Res.Grant(p.key); !held {
				t.r.fail("I9", "pid %d of job %d epoch %d lives on %s, which has no grant for it", p.pid, p.key.Job, p.key.Epoch, m.name)
				return
			}
		}
	}
}

// allOver: each job that was committed has ended.
func (t *truth) allOver() bool {
	for index := range t.r.sc.Jobs {
		if _, known := t.r.ids[index]; !known && !t.r.clients[index].refused && !(t.r.sc.Lean && t.r.clients[index].answered) {
			return false
		}
	}
	for _, j := range t.jobs {
		if j.Verdict == nil {
			return false
		}
	}
	return true
}

// bound is when everything has to be over.
func (t *truth) bound() time.Duration { return t.r.calmAt + t.r.budget() }

// late names what is not over.
func (t *truth) late() {
	text := ""
	for id, j := range t.jobs {
		if j.Verdict == nil {
			text += fmt.Sprintf(" job %d %s epoch %d;", id, gang.JobState(j), j.Epoch)
		}
	}
	for _, m := range t.r.machines {
		for _, p := range m.procs {
			text += fmt.Sprintf(" pid %d of %d.%d on %s;", p.pid, p.key.Job, p.key.Epoch, m.name)
		}
		for k := range m.disk.members {
			text += fmt.Sprintf(" files of %d.%d on %s;", k.Job, k.Epoch, m.name)
		}
	}
	if w := t.r.world(); w != nil {
		for _, n := range w.Nodes() {
			if len(n.Left)+len(n.Res.Grants) > 0 || !n.Connected {
				text += fmt.Sprintf(" %s %s left %v grants %d connected %t;", n.Name, n.State, n.Left, len(n.Res.Grants), n.Connected)
			}
		}
	}
	t.r.fail("I7", "not over %s after the faults:%s", t.r.now-t.r.calmAt, text)
}
