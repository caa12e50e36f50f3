package replay

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/trace"
)

// Decision is what a planner wants done now.
type Decision struct {
	Preempt []Preempt // first
	Starts  []sched.Start
	Again   bool // there may be more to do in this instant
}

// Preempt takes the cards of one gang for another.
type Preempt struct {
	Job, For int64
}

// Planner decides which gangs start. It is told of every change of who may be admitted
// and of every node that is not what it was.
type Planner interface {
	// Begin gives the nodes, by name. The slice stays the planner's view: the run puts
	// each newer form of a node in its place.
	Begin(nodes []*cluster.Node)
	// Waits: the job may be admitted now, or in another form than before.
	Waits(c *order.Candidate)
	// Leaves: it may not be admitted any more.
	Leaves(job int64)
	// Runs: a job holds nodes, or holds them in another way than before; nil: it does not.
	Runs(job int64, r *order.Running)
	// Learns: an attempt is over.
	Learns(u *order.Usage)
	// Plan is asked when something changed, and until a decision does not say Again.
	Plan(now time.Time) Decision
	// Next is when it wants to be asked without a change; zero: not at all.
	Next() time.Time
}

// Options are what a run can be given beside the trace and the cluster.
type Options struct {
	Settings   api.Settings
	Costs      Costs
	Partitions []api.Partition // their default times stand in for limits that jobs lack
	Priority   func(j *trace.Job) int64
	Takes      int // events between two commits; 0: 256
	// Tell is told now and then how many jobs are over, of how many; nil: nobody wants to know.
	Tell func(over, jobs int)
}

// origin is the wall clock at the first submission of a trace without dates.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Sim is one run.
type Sim struct {
	opt       Options
	trace     *trace.Trace
	world     *gang.World
	planner   Planner
	start     time.Time
	now       time.Duration
	nodes     []*cluster.Node
	at        map[string]int // of nodes by name
	lives     []life         // by trace index; job ids are the index + 1
	next      int            // index of the next submission
	ends      endHeap
	specs     map[specKey]*api.Spec
	actual    [1]api.MemberActual
	ranks     []api.RankActual
	sinceTake int
	waiting   int
	changed   bool // since the last plan
	live      int
	err       error
	meter     meter
}

// life is what the trace knows of a job and the controller does not.
type life struct {
	done      time.Duration // work that counts
	began     time.Duration // of the current epoch; -1: not running
	overhead  time.Duration // of the current epoch, before work counts
	epochs    int32
	first     time.Duration // start of the first epoch, -1: never
	end       time.Duration // -1: not ended
	overheads time.Duration
	ran       time.Duration // in all its epochs
	timeout   bool
}

// New makes a run of a trace on a cluster.
func New(t *trace.Trace, c *Cluster, p Planner, opt Options) (*Sim, error) {
	if opt.Takes == 0 {
		opt.Takes = 256
	}
	// Nobody asks about ended jobs here: they leave memory at once.
	opt.Settings.KeepEnded = 0
	opt.Settings.UserJobs, opt.Settings.UserBytes, opt.Settings.MaxJobs = 0, 0, 0 // a trace is taken whole
	s := &Sim{opt: opt, trace: t, world: gang.New(opt.Settings), planner: p, start: t.Start, at: map[string]int{},
		lives: make([]life, len(t.Jobs)), specs: map[specKey]*api.Spec{}}
	if s.start.IsZero() {
		s.start = origin
	}
	for i := range s.lives {
		s.lives[i] = life{began: -1, first: -1, end: -1}
	}
	return s, s.connect(c)
}

func (s *Sim) connect(c *Cluster) error {
	for i := range c.Nodes {
		if out := s.world.Step(s.instant(), c.Nodes[i].hello()); !out.Applied {
			return fmt.Errorf("node %q: %s", c.Nodes[i].Name, why(out))
		}
	}
	for i, n := range s.world.Nodes() {
		s.nodes = append(s.nodes, n.Res)
		s.at[n.Name] = i
	}
	if len(s.nodes) != len(c.Nodes) {
		return fmt.Errorf("the cluster has %d nodes with %d names", len(c.Nodes), len(s.nodes))
	}
	s.world.Take()
	s.planner.Begin(s.nodes)
	s.meter.begin(s.nodes)
	return nil
}

func why(out gang.Outcome) string {
	if out.Refused != nil {
		return out.Refused.Error()
	}
	return out.Ignored
}

func (s *Sim) instant() gang.Instant {
	// Mono 0 stands for "never" nowhere, but an hour on the clock is what a real one has.
	return gang.Instant{Wall: s.start.Add(s.now), Mono: s.now + time.Hour}
}

// Run plays the trace to its end.
func (s *Sim) Run() (*Result, error) {
	began := time.Now()
	for s.err == nil && s.advance() {
		s.endDue()
		s.submitDue()
		s.tick()
		s.plan()
		if s.opt.Tell != nil {
			s.opt.Tell(s.next-s.waiting-s.live, len(s.lives))
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.waiting > 0 {
		return nil, s.stuck()
	}
	return s.result(time.Since(began)), nil
}

// advance moves the clock to what happens next.
func (s *Sim) advance() bool {
	next := time.Duration(-1)
	sooner := func(at time.Duration) {
		if next < 0 || at < next {
			next = max(at, s.now)
		}
	}
	if s.next < len(s.trace.Jobs) {
		sooner(s.trace.Jobs[s.next].Submit)
	}
	if len(s.ends) > 0 {
		sooner(s.ends[0].at)
	}
	if next < 0 && s.waiting == 0 {
		return false // what is left are timers of jobs that are over
	}
	if at := s.planner.Next(); !at.IsZero() {
		// A moment that has come was looked at in this instant already.
		sooner(max(at.Sub(s.start), s.now+time.Millisecond))
	}
	if s.waiting > 0 {
		// Timers matter to waiting jobs alone: a back-off ends. The others of the world
		// fire with whatever happens next.
		if mono, ok := s.world.NextDeadline(); ok {
			sooner(mono - time.Hour)
		}
	}
	if next < 0 {
		return false
	}
	s.meter.pass(next, next-s.now, s.waiting)
	s.now = next
	return true
}

func (s *Sim) step(ev gang.Event) gang.Outcome {
	out := s.world.Step(s.instant(), ev)
	if s.sinceTake++; s.sinceTake >= s.opt.Takes {
		s.sinceTake = 0
		s.commit()
	}
	return out
}

// commit stands for the store: what changed since the last one is dropped.
func (s *Sim) commit() {
	s.requeue()
	s.world.Take()
}

// requeue tells the planner whose candidacy changed.
func (s *Sim) requeue() {
	ids, room := s.world.TakeQueue()
	s.changed = s.changed || room || len(ids) > 0
	for _, id := range ids {
		if c := s.world.Candidate(id); c != nil {
			s.planner.Waits(c)
		} else {
			s.planner.Leaves(id)
		}
		s.planner.Runs(id, s.world.Running(id))
	}
}

func (s *Sim) tick() {
	for {
		mono, ok := s.world.NextDeadline()
		if !ok || mono > s.now+time.Hour {
			return
		}
		s.step(gang.Tick{})
	}
}

func (s *Sim) job(id int64) *trace.Job { return &s.trace.Jobs[id-1] }

func (s *Sim) submitDue() {
	for s.next < len(s.trace.Jobs) && s.trace.Jobs[s.next].Submit <= s.now && s.err == nil {
		j := &s.trace.Jobs[s.next]
		s.next++
		spec := s.spec(j)
		ev := gang.Submit{Spec: spec, SpecHash: fmt.Sprintf("%p", spec), User: j.User, Partition: Partition, TimeLimit: s.limit(j),
			Priority: s.priority(j)}
		out := s.step(ev)
		if !out.Applied || out.JobIDs[0] != int64(s.next) {
			s.err = fmt.Errorf("job %s: %s", j.ID, why(out))
			return
		}
		s.waiting++
	}
}

func (s *Sim) priority(j *trace.Job) int64 {
	if s.opt.Priority == nil {
		return j.Priority
	}
	return s.opt.Priority(j)
}

// limit is what the controller is told: the user's limit, else the partition's default.
func (s *Sim) limit(j *trace.Job) time.Duration {
	if j.Limit > 0 || len(s.opt.Partitions) == 0 {
		return j.Limit
	}
	return s.opt.Partitions[0].DefaultTime
}

// maxRounds bounds the plans of one instant: each that says Again has stopped or started
// something, and a gang that was stopped is not stopped again.
const maxRounds = 1000

// plan asks the planner when there is something new, as the engine does.
func (s *Sim) plan() {
	s.requeue()
	at := s.planner.Next()
	if !s.changed && (at.IsZero() || at.After(s.start.Add(s.now))) {
		return
	}
	rounds := 0
	for again := true; again && s.err == nil; rounds++ {
		s.changed = false
		t := time.Now()
		d := s.planner.Plan(s.start.Add(s.now))
		s.meter.planned(time.Since(t))
		for i := range d.Starts {
			s.begin(&d.Starts[i])
		}
		for _, p := range d.Preempt {
			s.preempt(p)
		}
		s.requeue()
		if again = d.Again; again && rounds >= maxRounds {
			s.err = s.endless(&d)
		}
	}
	s.changed = false
}

// endless names two gangs between which the cards go to and fro.
func (s *Sim) endless(d *Decision) error {
	text := fmt.Sprintf("at %.0f s: %d plans in one instant and no end: gangs are stopped for each other", s.now.Seconds(), maxRounds)
	if len(d.Preempt) > 0 {
		p := d.Preempt[0]
		text += fmt.Sprintf(", now %s for %s", s.job(p.Job).ID, s.job(p.For).ID)
	}
	return errors.New(text + "; a preempt_min_run keeps what has just started")
}

// begin admits a gang and lets the nodes report what they would.
func (s *Sim) begin(st *sched.Start) {
	if s.err != nil {
		return
	}
	if out := s.step(gang.Admit{Job: st.Job, Slots: st.Slots, Turn: st.Turn}); !out.Applied {
		s.err = fmt.Errorf("at %v: start of job %s: %s", s.now, s.job(st.Job).ID, why(out))
		return
	}
	j := s.world.Job(st.Job)
	for _, phase := range []api.MemberPhase{api.PhaseReady, api.PhaseRunning} {
		for i := range j.Members {
			s.report(j, i, phase)
		}
		j = s.world.Job(st.Job)
	}
	l := &s.lives[st.Job-1]
	l.began, l.overhead = s.now, 0
	if l.first < 0 {
		l.first = s.now
	}
	tj := s.job(st.Job)
	if l.epochs++; l.epochs > 1 && s.opt.Costs.Restart != nil {
		l.overhead = s.opt.Costs.Restart(tj.GPUs())
	}
	left := tj.Duration - l.done
	limit := s.limit(tj)
	l.timeout = limit > 0 && left > limit
	if l.timeout {
		left = limit
	}
	heap.Push(&s.ends, ending{s.now + l.overhead + left, st.Job, l.epochs})
	s.waiting--
	s.live++
	s.touched(j)
}

// report is the word of one node about one member.
func (s *Sim) report(j *gang.Job, i int, phase api.MemberPhase) {
	m := &j.Members[i]
	s.actual[0] = api.MemberActual{MemberKey: api.MemberKey{Job: j.ID, Epoch: j.Epoch}, Phase: phase}
	s.say(m.Node)
}

func (s *Sim) say(node string) {
	out := s.step(gang.NodeReport{Node: node, Actual: api.Actual{Members: s.actual[:]}})
	if out.Refused != nil {
		s.err = fmt.Errorf("at %v: report of node %s: %s", s.now, node, why(out))
	}
}

// touched brings the view of the nodes of a gang up to date.
func (s *Sim) touched(j *gang.Job) {
	for i := range j.Members {
		s.refresh(j.Members[i].Node)
	}
}

func (s *Sim) refresh(node string) {
	at := s.at[node]
	res := s.world.Node(node).Res
	s.meter.node(s.nodes[at], res)
	s.nodes[at] = res
}

// endDue ends what has run for its true duration by now.
func (s *Sim) endDue() {
	for len(s.ends) > 0 && s.ends[0].at <= s.now && s.err == nil {
		e := heap.Pop(&s.ends).(ending)
		l := &s.lives[e.job-1]
		if e.epoch != l.epochs || l.began < 0 {
			continue // was preempted meanwhile
		}
		cause, code := api.Cause(""), 0
		if l.timeout {
			cause, code = api.CauseTimeout, 143
		}
		s.stop(e.job, cause, code)
		if v := s.world.Job(e.job); s.err == nil && (v == nil || v.Verdict == nil) {
			s.err = fmt.Errorf("at %v: job %s ended on its nodes and not in the world", s.now, s.job(e.job).ID)
			return
		}
		ran := s.now - l.began
		l.done += ran - l.overhead
		l.overheads += l.overhead
		l.ran += ran
		l.began, l.end = -1, s.now
		s.live--
		u := s.used(e.job, ran)
		u.Whole, u.Before, u.Limit = l.ran, l.ran-ran, s.limit(s.job(e.job))
		s.planner.Learns(u)
	}
}

// used is what the controller learns from an attempt that is over.
func (s *Sim) used(id int64, ran time.Duration) *order.Usage {
	j := s.job(id)
	return &order.Usage{Peer: order.Peer{User: j.User, Name: cmp.Or(j.Name, "trace"), Cards: j.GPUs(), Job: id}, Account: j.Account, Ran: ran,
		Ended: s.start.Add(s.now)}
}

// stop reports each member as stopped, with the exits of its ranks.
func (s *Sim) stop(id int64, cause api.Cause, code int) {
	j := s.world.Job(id)
	nodes := make([]string, len(j.Members))
	for i := range j.Members {
		nodes[i] = j.Members[i].Node
		s.ranks = s.ranks[:0]
		for _, r := range j.Members[i].Ranks {
			s.ranks = append(s.ranks, api.RankActual{Rank: r, Exited: true, ExitCode: code})
		}
		s.actual[0] = api.MemberActual{MemberKey: api.MemberKey{Job: id, Epoch: j.Epoch}, Phase: api.PhaseStopped,
			Ranks: slices.Clone(s.ranks), Stopping: cause}
		s.say(nodes[i])
	}
	for _, n := range nodes {
		s.refresh(n)
	}
}

func (s *Sim) preempt(p Preempt) {
	if s.err != nil {
		return
	}
	l := &s.lives[p.Job-1]
	if out := s.step(gang.Preempt{Job: p.Job, For: fmt.Sprintf("job %d", p.For)}); !out.Applied {
		s.err = fmt.Errorf("at %v: preemption of job %s: %s", s.now, s.job(p.Job).ID, why(out))
		return
	}
	j := s.world.Job(p.Job)
	last := len(j.Ranks) - 1
	if out := s.step(gang.CheckpointSaved{Job: p.Job, Epoch: j.Epoch, Rank: last, SetRanks: len(j.Ranks)}); !out.Applied {
		s.err = fmt.Errorf("at %v: checkpoint of job %s: %s", s.now, s.job(p.Job).ID, why(out))
		return
	}
	s.stop(p.Job, api.CausePreempted, 143)
	ran := s.now - l.began
	worked := max(0, ran-l.overhead)
	l.overheads += min(ran, l.overhead)
	l.done = max(0, l.done+worked-s.opt.Costs.Lost)
	l.ran += ran
	l.began = -1
	s.live--
	s.waiting++
	s.meter.preempted(worked, s.opt.Costs.Lost, s.job(p.Job).GPUs())
	u := s.used(p.Job, ran)
	u.Alive, u.Before, u.Limit = l.ran, l.ran-ran, s.limit(s.job(p.Job))
	s.planner.Learns(u)
}

// stuck names a job that nothing will ever start.
func (s *Sim) stuck() error {
	for i := range s.lives {
		if s.lives[i].end < 0 {
			j := &s.trace.Jobs[i]
			return fmt.Errorf("job %s (%d ranks of %d cards) can't start on the empty cluster; %d jobs wait", j.ID, j.Ranks, j.Cards, s.waiting)
		}
	}
	return nil
}

// specKey is what makes two asks equal: they share a spec, as the elements of an array do.
type specKey struct {
	ranks, cards, cpus int
	memory, vram       int64
	models, account    string
	name               string
}

func (s *Sim) spec(j *trace.Job) *api.Spec {
	k := specKey{j.Ranks, j.Cards, j.CPUs, j.Memory, j.VRAM, j.Models, j.Account, j.Name}
	if sp := s.specs[k]; sp != nil {
		return sp
	}
	sp := &api.Spec{Name: cmp.Or(j.Name, "trace"), Account: j.Account, Size: j.Ranks, Launch: api.LaunchRanks, CPUsPerRank: max(1, j.CPUs),
		MemoryPerRank: j.Memory,
		GPUsPerRank:   j.Cards, GPUType: j.Models, VRAMBytes: j.VRAM, Share: j.VRAM > 0, Partition: Partition,
		// Every job hands its work over when it is told to stop: [Costs] say at what price.
		Notice: &api.Notice{Signal: "USR1"}, Checkpoint: api.CheckpointDrain}
	s.specs[k] = sp
	return sp
}

// ending is the moment at which an epoch has run for what was left of its duration.
type ending struct {
	at    time.Duration
	job   int64
	epoch int32
}

type endHeap []ending

func (h endHeap) Len() int { return len(h) }
func (h endHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].job < h[j].job
}
func (h endHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)   { *h = append(*h, x.(ending)) }
func (h *endHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
