package noded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/session"
)

// maxStarts bounds how many shims are being started at a time: more than the cores only
// makes each of them later, and some of these starts wait for a disk.
func maxStarts() int { return 2*runtime.NumCPU() + 2 }

// daemon is a running node daemon.
type daemon struct {
	opts        Options
	log         *slog.Logger
	state       *stateDir
	cgroups     proc.Cgroups // what members are held by
	processes   int64        // that a member may have, 0: any number
	board       *Board
	notes       *notes
	ports       *ports
	rules       atomic.Pointer[rules]
	healthAgain chan struct{} // holds one: the health program is another
	cards       *cards
	cpus        *cpuPool
	logins      *proc.LoginLimits
	devices     string // whether members are kept from the cards of others
	watch       *watcher
	meters      meters
	fitness     fitness
	reboots     reboots
	owed        owed
	private     *shim.Private // of each member; nil: none
	tmp         int64         // temporary space for members, in bytes
	tmpEach     int64         // taken by each that asks for no more
	images      *images       // that were imported; nil: nothing is
	hosts       proc.Looks[api.MemberKey, proc.Usage]
	starts      chan struct{} // holds a token for each start under way
	client      *session.Client
	enrolled    enrolled
	shims       *shim.Pool

	ctx     context.Context // ends the members' goroutines, not the members
	running sync.WaitGroup

	mu       sync.Mutex
	loadTold time.Time           // when the controller was last told how busy the node is
	jobs     map[int64][]*member // every member known here, by job
	settings api.Settings        // the site's, of the last Welcome
}

// Run is the whole life of a daemon: it returns when ctx ends, or with the reason why it
// could not begin. Members live on.
func Run(ctx context.Context, opts Options) error {
	unix.Umask(0o022) // what users have to reach is made for them whatever the starter's says
	state, err := openState(opts.StateDir)
	if err != nil {
		return err
	}
	defer state.close()
	if opts.Owned != nil {
		opts.Owned()
	}
	d := newDaemon(opts, state)
	if opts.Shim == "" {
		return errors.New("gshim not found: it belongs beside gnoded")
	}
	if _, err := os.Stat(opts.Shim); err != nil {
		return fmt.Errorf("gshim: %w", err)
	}
	d.watch = newWatcher(d.notes.putWatch, d.stacks)
	d.cgroups = proc.Detect(opts.CgroupBase)
	d.limitProcesses()
	d.client = session.NewClient(session.Options{Controllers: opts.Controllers, TLS: opts.TLS, Agent: d, Log: d.log, Kept: d.state.kept,
		Sign: opts.Signs.Loop()})
	members, stop := context.WithCancel(ctx)
	d.ctx = members
	d.shims = shim.NewPool(opts.Shim, opts.StateDir)
	defer d.shims.Close()
	defer d.running.Wait()
	defer stop()
	d.cards = newCards(opts.GPU, newOwners(d.memberOf), d.log)
	opts.Signs.Progress() // a driver may take half a minute to begin
	d.cards.inventory(ctx)
	opts.Signs.Progress()
	d.devices = d.judgeDevices()
	if d.cpus, err = openCPUs(opts.CPUSets, opts.CPUs, d.cards.list()); err != nil {
		return err
	}
	if d.cpus.pool != nil {
		d.cgroups.UseCPUSets()
	}
	if opts.CPUSets.Near && !d.cgroups.CPUSet {
		return errors.New("memory_near: needs the controller cpuset of cgroups, which can't be used here")
	}
	d.cards.restore(d.state)
	for _, why := range state.lost {
		d.log.Error("part of the state directory is not whole", "dir", opts.StateDir, "why", why)
	}
	if err := d.closedToUsers(); err != nil {
		return err
	}
	for _, open := range []func() error{d.openPrivate, d.openContainers, d.openHooks, func() error { return d.adopt(ctx) }} {
		if err := open(); err != nil {
			return err
		}
	}
	d.offerTmp()
	d.payDebts(members)
	d.shims.Warm()
	d.log.Info("gnoded started", "node", opts.Name, "containment", d.cgroups.Kind, "members", len(d.all()), "controllers", opts.Controllers)
	if d.cpus.why != "" {
		d.log.Info("jobs share the CPUs", "reason", d.cpus.why)
	}
	if l := d.limits(); l.Reason != "" {
		d.log.Warn("not every limit of jobs is enforced here", "memory", l.Memory, "processes", l.Processes, "cpus", l.CPUs, "reason", l.Reason)
	}
	d.running.Go(func() { d.keepEnrolling(members) })
	d.running.Go(func() { d.readAgain(members) })
	d.watchHealth(members)
	d.watchNeeds(members)
	d.every(members, inventoryEvery, d.takeFound)
	stopJobs, err := d.serveJobs()
	if err != nil {
		return err
	}
	defer stopJobs()
	d.client.Start(ctx)
	defer d.client.Close()
	opts.Signs.Ready() // members are found again, and the session is being opened
	d.tick(ctx)
	return nil
}

// newDaemon is a daemon on its state directory that has looked at nothing else yet.
func newDaemon(opts Options, state *stateDir) *daemon {
	d := &daemon{opts: opts, log: opts.Log, state: state, ports: newPorts(opts.StateDir), jobs: map[int64][]*member{},
		settings: api.DefaultSettings(), starts: make(chan struct{}, maxStarts()),
		logins: proc.NewLoginLimits(groupNumber), cpus: &cpuPool{}, owed: owed{record: map[api.MemberKey]*hookRecord{},
			failed: map[api.MemberKey]string{}},
		meters: meters{now: mono, members: map[api.MemberKey]*meter{}}, healthAgain: make(chan struct{}, 1)}
	d.rules.Store(rulesOf(&d.opts))
	d.board, d.notes = NewBoard(d.wake), newNotes(d.wake)
	d.meters.usage = d.usageOf
	if state.lease >= 0 {
		d.settings.Lease = state.lease
	}
	if state.leaseLost {
		d.settings.Lease = 0
	}
	return d
}

// wake asks the session to come for a report.
func (d *daemon) wake() {
	if d.client != nil { // else there is none yet, and its hello says everything
		d.client.Wake()
	}
}

// every does something until ctx ends, with such a pause before each time.
func (d *daemon) every(ctx context.Context, pause time.Duration, do func()) {
	d.running.Go(func() {
		for sleep(ctx, pause); ctx.Err() == nil; sleep(ctx, pause) {
			do()
		}
	})
}

// tick samples the cards and renews leases until ctx ends.
func (d *daemon) tick(ctx context.Context) {
	var renewal Renewal
	began := session.BootTime()
	sign := d.opts.Signs.Loop()
	for {
		sign.Round()
		s := d.site()
		if d.cards.sample(ctx, s.Heartbeat) {
			d.client.Wake()
		}
		d.checkOverruns()
		d.watch.feed(d.sight, watchGap*s.Heartbeat)
		d.measure()
		if until, due := renewal.Due(s.Lease, d.client.LastContact()); due {
			d.renew(until)
		}
		d.fence(&s, max(began, d.client.LastContact()))
		pause := min(d.watch.wait(s.Heartbeat), sign.Pace())
		if d.cards.holding() {
			pause = min(pause, heldPause)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		case <-d.cards.changed():
			t.Stop()
		case <-d.watch.wake:
			t.Stop()
		}
	}
}

// heldPause is how often cards are looked at while one waits to be empty: it is to be back
// within two seconds.
const heldPause = 500 * time.Millisecond

// watchGap: readings that are so many beats apart have left something out: the daemon, or
// the machine, stood still.
const watchGap = 5

func (d *daemon) renew(until time.Duration) {
	for _, m := range d.all() {
		m.set(func(w *memberOrders) { w.Lease = until })
	}
}

// fence ends what outlives its lease because its shim does not end it: one that hangs in the
// kernel or was stopped. A daemon that was started meanwhile does not know of the contact before.
func (d *daemon) fence(s *api.Settings, contact time.Duration) {
	now := session.BootTime()
	for _, m := range d.all() {
		if !m.over.Load() && fenceDue(s, contact, now, m.grace()) {
			m.set(func(w *memberOrders) { w.fence = true })
		}
	}
}

func (d *daemon) all() []*member {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*member
	for _, ms := range d.jobs {
		out = append(out, ms...)
	}
	return out
}

func (d *daemon) site() api.Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settings
}

// find gives a member, nil when it is not known here.
func (d *daemon) find(k api.MemberKey) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookup(k)
}

func (d *daemon) lookup(k api.MemberKey) *member {
	for _, m := range d.jobs[k.Job] {
		if m.key == k {
			return m
		}
	}
	return nil
}

// mayOpen says whether the gate of m may be opened now.
func (d *daemon) mayOpen(m *member) bool {
	s := d.site()
	silence := session.BootTime() - d.client.LastContact()
	d.mu.Lock()
	defer d.mu.Unlock()
	others := make([]Sibling, 0, len(d.jobs[m.key.Job]))
	for _, other := range d.jobs[m.key.Job] {
		others = append(others, Sibling{Epoch: other.key.Epoch, Over: other.over.Load()})
	}
	return MayOpen(m.key.Epoch, others, silence, s.Heartbeat)
}

// siblings wakes the other epochs of a job: one of them may wait for this one's end.
func (d *daemon) siblings(m *member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.jobs[m.key.Job] {
		if other != m {
			other.poke()
		}
	}
}

// remove forgets a member of which nothing is left.
func (d *daemon) remove(m *member) {
	d.mu.Lock()
	left := slices.DeleteFunc(d.jobs[m.key.Job], func(other *member) bool { return other == m })
	if d.jobs[m.key.Job] = left; len(left) == 0 {
		delete(d.jobs, m.key.Job)
	}
	d.mu.Unlock()
	d.board.Drop(m.key)
	d.notes.drop(m.key)
	d.watch.drop(m.key)
	d.meters.drop(m.key)
	d.siblings(m)
}

// stacks has the shim of a member take the stacks of its ranks, or drop them.
func (d *daemon) stacks(k api.MemberKey, take bool) {
	if d.site().StallDump <= 0 {
		return
	}
	word := shim.DropStacks
	if take {
		word = shim.TakeStacks
	}
	if m := d.find(k); m != nil {
		m.set(func(w *memberOrders) { w.stacks = word })
	}
}

// memberOf gives the member of this node that a process belongs to.
func (d *daemon) memberOf(pid int) (api.MemberKey, bool) {
	if d.cgroups.Dir != "" {
		return inCgroup(pid, filepath.Base(d.cgroups.Dir)+"/"+d.state.id+"-")
	}
	return d.markedAbove(pid)
}

// ancestors bounds the way up from a process.
const ancestors = 64

// markedAbove looks at a process and those that it descends from: one that was started with
// an environment of its own carries no mark, and below its shim it stays, whoever dies.
func (d *daemon) markedAbove(pid int) (api.MemberKey, bool) {
	for range ancestors {
		if k, ok := hasMarker(pid, d.state.id+"."); ok {
			return k, true
		}
		for _, m := range d.all() {
			if m.shimPID.Load() == int64(pid) && !m.over.Load() {
				return m.key, true
			}
		}
		s, ok := proc.ReadStat(pid)
		if !ok || s.PPID <= 1 {
			break
		}
		pid = s.PPID
	}
	return api.MemberKey{}, false
}
