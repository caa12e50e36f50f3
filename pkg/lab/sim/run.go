package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// began is the wall time at which each run begins.
var began = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// Result is what a run came to.
type Result struct {
	Violation *Violation // nil: all invariants held
	Hash      uint64     // of all that happened
	Counts
}

// Counts say how much happened.
type Counts struct {
	Events  int // of the simulation
	Commits int
	Sends   int
	Frames  int // of sessions, that carry more than a beat
	Orders  int // to shims
	Words   int // of shims
	Synced  int // of these, on disk for good before they were told
	Starts  int // gangs that really started
	Steps   int // that began
	Tasks   int // that were started
	Jobs    int // accepted
	Ended   int
	// Forgotten counts jobs that the store does not have any more at the end.
	Forgotten int
	TakeOvers int
	Holds     int // of a controller on an old copy of the store
	Virtual   time.Duration
	Faults    map[Kind]int // that happened, by kind
	Outcomes  map[api.JobState]int
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string // "I1"
	Text      string
	Step      int // events before it
	At        time.Duration
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s at step %d, %s: %s", v.Invariant, v.Step, v.At, v.Text)
}

// Options of one run.
type Options struct {
	Trace io.Writer // one line for each thing that happens; nil: none
	// Each hour of virtual time Hour is called with what the store is like; nil: not.
	Hour func(hour int, s StoreSize)
}

// StoreSize is how large a store is.
type StoreSize struct {
	Bytes int64 // of the file
	Free  int64 // of these wait to be used again
	Ended int   // jobs that have ended
}

// run is a run under way.
type run struct {
	loop
	sc           *Scenario
	set          api.Settings
	ctx          context.Context
	trace        io.Writer
	disk         *disk
	gangd        *gangd    // that leads; nil: none does
	hosts        []*host   // of controllers
	db           *database // nil: there is one controller
	machines     []*machine
	byName       map[string]*machine
	clients      []*client
	dice         *rand.Rand // of clients and people
	truth        *truth
	res          Result
	ids          map[int]int64 // first job id by index of Scenario.Jobs, as committed
	points       []*pending    // faults at a point
	sruns        map[string]*srun
	trouble      time.Duration   // what was inflicted so far may have an effect until then
	reservations int             // made so far
	starts       int             // of the controller
	onCopy       map[string]bool // by run: whether it had the old copy of the store
	calm         bool
	calmAt       time.Duration
	failed       *Violation
	hour         func(int, StoreSize)
}

// pending is a fault that waits for its point.
type pending struct {
	Fault
	seen int // events that matched
	done bool
}

// Run plays a scenario.
func Run(sc *Scenario, opt Options) (*Result, error) {
	r := newRun(sc, opt)
	defer r.disk.close()
	if err := r.begin(); err != nil {
		return nil, err
	}
	r.play()
	r.end()
	r.res.Hash = r.hash
	r.res.Violation = r.failed
	r.res.Events, r.res.Virtual = r.done, r.now
	return &r.res, nil
}

func newRun(sc *Scenario, opt Options) *run {
	r := &run{loop: loop{hash: fnvOffset}, sc: sc, ctx: context.Background(), trace: opt.Trace, hour: opt.Hour, byName: map[string]*machine{},
		dice: rand.New(rand.NewPCG(sc.Seed, 1)), ids: map[int]int64{}, sruns: map[string]*srun{}, onCopy: map[string]bool{}, disk: &disk{}}
	r.set = *Settings()
	if sc.Settings != nil {
		r.set = *sc.Settings
	}
	if sc.Licences > 0 {
		r.set.Licences = []api.Pool{{Name: licenceName, Count: sc.Licences}}
	}
	r.sc.History.apply(r)
	r.res.Faults, r.res.Outcomes = map[Kind]int{}, map[api.JobState]int{}
	r.truth = newTruth(r)
	return r
}

// begin plans all that the scenario says.
func (r *run) begin() error {
	if err := r.disk.make(r.ctx); err != nil {
		return err
	}
	for i := range r.sc.Nodes {
		m := newMachine(r, i)
		r.machines = append(r.machines, m)
		r.byName[m.name] = m
	}
	if r.sc.FirstID > 0 {
		if err := r.disk.skipTo(r.ctx, r.sc.FirstID); err != nil {
			return err
		}
	}
	r.makeControllers()
	r.startGangd()
	for _, m := range r.machines {
		m.powerOn()
	}
	if r.hour != nil {
		r.hourly(1)
	}
	for i := range r.sc.Jobs {
		r.clients = append(r.clients, &client{r: r, index: i})
	}
	r.submitFrom(0)
	for i := range r.sc.Faults {
		f := r.sc.Faults[i]
		if f.When.On != "" {
			r.points = append(r.points, &pending{Fault: f})
			continue
		}
		r.after(f.At, func() { r.inflict(&f) })
	}
	r.after(calmOf(r.sc), r.heal)
	return nil
}

// submitFrom plans the submissions from the i-th on, one at a time where they are in order:
// what is to come must not fill the queue.
func (r *run) submitFrom(i int) {
	if i == len(r.clients) {
		return
	}
	c := r.clients[i]
	at := r.sc.Jobs[i].At
	if i+1 < len(r.clients) && r.sc.Jobs[i+1].At < at {
		r.submitFrom(i + 1)
	}
	r.after(at-r.now, func() {
		if i+1 < len(r.clients) && r.sc.Jobs[i+1].At >= at {
			r.submitFrom(i + 1)
		}
		c.submit()
	})
}

// calmOf is when everything is healed.
func calmOf(sc *Scenario) time.Duration {
	if sc.Calm > 0 {
		return sc.Calm
	}
	calm := lastSubmit(sc)
	for i := range sc.Faults {
		f := &sc.Faults[i]
		if f.When.On != "" { // it comes when it comes
			calm = max(calm, lastSubmit(sc)+time.Minute+f.At+lasting(f))
		}
		calm = max(calm, f.At+lasting(f))
	}
	return calm + time.Second
}

func lasting(f *Fault) time.Duration {
	if f.Do == OldStore {
		return 2 * f.For
	}
	return f.For
}

func lastSubmit(sc *Scenario) time.Duration {
	at := time.Duration(0)
	for i := range sc.Jobs {
		at = max(at, sc.Jobs[i].At)
	}
	return at
}

// play goes on until all is over or something is wrong.
func (r *run) play() {
	for r.failed == nil && r.next() {
		if r.failed == nil && r.calm && r.settledHistory() && r.quiet() {
			return
		}
	}
}

func (r *run) hourly(n int) {
	r.after(time.Duration(n)*time.Hour-r.now, func() {
		pages, size, err := r.disk.now.Pages()
		if err != nil {
			r.fail("store", "%v", err)
		}
		ended, free, err := r.disk.now.Ended()
		if err != nil {
			r.fail("store", "%v", err)
		}
		r.hour(n, StoreSize{Bytes: pages * size, Free: free * size, Ended: int(ended)})
		r.hourly(n + 1)
	})
}

// fail records the first violation.
func (r *run) fail(invariant, format string, args ...any) {
	if r.failed != nil {
		return
	}
	r.failed = &Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...), Step: r.done, At: r.now}
	r.log("VIOLATION %s", r.failed)
}

func (r *run) log(format string, args ...any) {
	if r.trace != nil {
		fmt.Fprintf(r.trace, "%9.3f %6d  %s\n", r.now.Seconds(), r.done, fmt.Sprintf(format, args...))
	}
}

// instant is the controller's clock.
func (r *run) instant() gang.Instant {
	return gang.Instant{Wall: began.Add(r.now), Mono: time.Hour + r.now}
}

// commitPoint does the faults at a commit; after says on which side of it. True: the
// controller crashed.
func (r *run) commitPoint(n int, after bool) bool {
	if len(r.points) == 0 {
		return false
	}
	if slices.ContainsFunc(r.points, func(p *pending) bool { return p.When.On == AtCommit && p.When.N == n }) {
		r.gangd.flush() // the writers of the sessions don't wait for a commit
	}
	return r.atPoint(func(p Point) bool { return p.On == AtCommit && p.N == n && p.After == after }, r.gangd)
}

// crasher is a daemon that can be killed.
type crasher interface {
	crash(away time.Duration)
	isGone() bool
}

// send counts a sending by a daemon and does it, unless a fault at this point kills the
// daemon first.
func (r *run) send(by crasher, do func()) {
	r.res.Sends++
	n := r.res.Sends
	if len(r.points) == 0 {
		do()
		return
	}
	if r.atPoint(func(p Point) bool { return p.On == AtSend && p.N == n && !p.After }, by) {
		return
	}
	do()
	r.atPoint(func(p Point) bool { return p.On == AtSend && p.N == n && p.After }, by)
}

// atPoint does the faults whose point this is. True: by is gone.
func (r *run) atPoint(match func(Point) bool, by crasher) bool {
	for _, p := range r.points {
		if p.done || !match(p.When) {
			continue
		}
		p.done = true
		f := p.Fault
		switch {
		case f.At > 0:
			r.after(f.At, func() { r.inflict(&f) })
		case f.Do == CrashSender:
			r.count(f.Do)
			by.crash(f.For)
		default:
			r.inflict(&f)
		}
	}
	return by != nil && by.isGone()
}

// eventPoint does the faults that wait for a committed event.
func (r *run) eventPoint(ev *api.Event) {
	for _, p := range r.points {
		if p.done || p.When.On != AtEvent || p.When.Event != ev.Type {
			continue
		}
		if id, ok := r.ids[p.When.Job]; !ok || ev.JobID != 0 && ev.JobID != id {
			continue
		}
		if p.seen++; p.seen != max(p.When.N, 1) {
			continue
		}
		p.done = true
		f := p.Fault
		r.after(f.At, func() { r.inflict(&f) })
	}
}

func (r *run) count(k Kind) { r.res.Faults[k]++ }

// machine by name; the n-th, modulo how many there are, when it has none.
func (r *run) machine(name string) *machine {
	if m := r.byName[name]; m != nil {
		return m
	}
	return r.machines[0]
}

// world is the controller's, nil while it is down.
func (r *run) world() *gang.World {
	if r.gangd == nil {
		return nil
	}
	return r.gangd.drv.World()
}

// quiet: every job is over, nothing lives, nothing is held.
func (r *run) quiet() bool {
	w := r.world()
	if w == nil || !r.truth.settled {
		return false
	}
	for _, n := range w.Nodes() {
		if len(n.Left) > 0 || len(n.Res.Grants) > 0 || !n.Connected {
			return false
		}
	}
	for _, m := range r.machines {
		if len(m.procs) > 0 || len(m.disk.members) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.clients, func(c *client) bool { return !c.answered && !c.refused }) && r.truth.allOver()
}
