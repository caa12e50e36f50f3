package noded

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

const (
	// byeWait is how long a shim gets to exit after it was told that its results are
	// recorded. Its directory is removed after that whatever it does.
	byeWait = 2 * time.Second
	// retryWait is when an order that could not be carried out yet is looked at again;
	// what it waits for wakes the member sooner where it can.
	retryWait = 200 * time.Millisecond
)

// member is one member on this node. Its goroutine (run) owns everything but the mailbox.
type member struct {
	d      *daemon
	key    api.MemberKey
	dir    string
	wake   chan struct{} // of capacity 1
	orders chan *order
	looks  chan chan *api.MemberStacks // who wants to know where its processes are
	done   chan struct{}               // closed when run is over
	over   atomic.Bool                 // stopped, refused or lost: nothing of it runs, and the site's epilog is over too
	// cleaning: nothing of it runs, and the site's epilog does.
	cleaning atomic.Bool

	image atomic.Pointer[image] // that was imported for it

	// Of the job API: which process is this member's shim, and who its ranks are.
	shimPID atomic.Int64
	known   atomic.Pointer[shim.Spec]

	mu    sync.Mutex
	want  memberOrders
	files map[int]*stepFile // by step

	// Owned by run.
	actual   api.MemberActual
	spec     *shim.Spec // once there is a directory
	bare     bool       // spec is made up, see [daemon.bareSpec]
	found    string     // what of its record was missing or damaged as this daemon found it
	conn     *shim.Conn // nil: no shim to talk to
	answers  <-chan shim.Answer
	lastSent LastSent
	waiting  map[uint64]*order
	looking  map[uint64]chan<- *api.MemberStacks // by the number that the shim was told
	lastLook uint64
	gone     bool // nothing of it is left

	sentOwn  bool            // the stop that this node decided was sent
	warnings map[int]string  // what ranks are warned of now
	judged   map[int]failure // ranks whose failure has been looked into
	seen     []api.CardSample
	told     []api.StepActual // of imports, see [member.imports]
	begun    beginning
}

// memberOrders is a member's mailbox: the newest orders.
type memberOrders struct {
	Orders
	body   *api.AssignmentBody // of a member to be prepared
	spec   *api.Spec
	own    *api.Stop      // this node's own decision
	warn   []shim.Warning // to be told, in this order
	stacks string         // not empty: a word to the shim
	fence  bool           // its lease is over, and its shim has not ended it
}

// order is a one-shot signal on its way through a member.
type order struct {
	api.SignalOrder
	answer chan int // of capacity 1: processes that got it; -1: nobody is there
}

// newMember makes a member known. d.mu is held.
func (d *daemon) newMember(k api.MemberKey) *member {
	m := &member{d: d, key: k, dir: d.state.memberDir(k), wake: make(chan struct{}, 1), orders: make(chan *order),
		looks: make(chan chan *api.MemberStacks),
		done:  make(chan struct{}), waiting: map[uint64]*order{}, looking: map[uint64]chan<- *api.MemberStacks{}}
	d.jobs[k.Job] = append(d.jobs[k.Job], m)
	return m
}

// begin starts the member's goroutine from what is known of it. d.mu is held.
func (m *member) begin(a api.MemberActual) {
	m.actual = a
	m.over.Store(Ended(a.Phase))
	if a.Phase == api.PhasePreparing {
		m.d.board.Note(a) // a session that opens now hears of it
	} else {
		m.d.board.Put(a)
	}
	m.d.running.Add(1)
	go m.run(m.d.ctx)
}

func (m *member) set(f func(*memberOrders)) {
	m.mu.Lock()
	f(&m.want)
	m.mu.Unlock()
	m.poke()
}

func (m *member) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take reads the mailbox. What only a shim can be told waits there until there is one to talk to.
func (m *member) take() memberOrders {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.want
	m.want.body, m.want.spec, m.want.fence = nil, nil, false // used once
	if m.conn != nil {
		m.want.Lease, m.want.warn, m.want.stacks = 0, nil, ""
	}
	return w
}

func (m *member) run(ctx context.Context) {
	defer m.d.running.Done()
	defer m.end()
	retry := time.NewTimer(retryWait)
	defer retry.Stop()
	for {
		again := m.step(ctx)
		if m.gone {
			return
		}
		if again {
			retry.Reset(retryWait)
		} else {
			retry.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-retry.C:
		case o := <-m.orders:
			m.pass(o)
		case answer := <-m.looks:
			m.look(answer)
		case a, ok := <-m.answers:
			if ok {
				m.heard(ctx, a)
			} else {
				m.hungUp(ctx)
			}
		}
	}
}

// end leaves the shim alone and answers who waits.
func (m *member) end() {
	if m.conn != nil {
		_ = m.conn.Close()
	}
	m.abandon()
	m.callOff(nil)
	m.d.ports.letGo(m.key)
	close(m.done)
}

// step brings what is nearer to what is wanted. It is true when something has to be looked
// at again without being woken.
func (m *member) step(ctx context.Context) (again bool) {
	w := m.take()
	if w.body != nil {
		if w.Forget || w.Stop != nil { // called off before it began
			m.become(ctx, api.MemberActual{Phase: api.PhaseStopped})
		} else {
			m.prepare(ctx, w.body, w.spec)
			w = m.take() // that may have taken its time
		}
	}
	if w.fence && !m.over.Load() {
		m.fence()
	}
	w.Steps, w.Gate = m.startable(ctx, w.Steps), OwnGate(w.Gate, m.port())
	same := func(a, b api.StepActual) bool { return a.ID == b.ID && a.Importing == b.Importing }
	if !slices.EqualFunc(m.told, m.imports(), same) {
		m.publish()
	}
	todo := m.lastSent.Next(w.Orders, m.actual.Phase, m.conn != nil, m.over.Load(), func() bool { return m.d.mayOpen(m) })
	m.send(slices.DeleteFunc(todo.Send, func(c shim.Command) bool { return c.Go != nil && !m.openPort(c.Go.MasterPort) })...)
	if todo.Drop {
		return m.drop(ctx)
	}
	if m.conn != nil && !m.over.Load() {
		m.ownWishes(&w)
		if w.stacks != "" {
			m.send(shim.Command{Stacks: w.stacks})
		}
	}
	return todo.Again
}

// openPort lets go of the rendezvous port right before the ranks may bind it. One that was not
// held all the time, because the daemon was restarted, and that somebody has by now ends the
// epoch before its script runs here: nobody's fault, the next one gets another port.
func (m *member) openPort(port int) bool {
	if m.port() == 0 || m.d.ports.open(m.key, port) {
		return true
	}
	m.stopFor(api.Stop{Cause: api.CauseRequeued, Signal: "KILL",
		Text: fmt.Sprintf("MASTER_PORT %d was taken while gnoded was restarted", port)})
	return false
}

// fence kills what the containment holds. The shim reports it when it goes on, and finds the
// containment gone.
func (m *member) fence() {
	if m.spec == nil || !proc.Holds(m.spec.Containment, m.spec.CgroupDir) && m.spec.Containment != proc.Group {
		return
	}
	m.d.log.Warn("lease over and shim silent: killed", "job", m.key.Job, "epoch", m.key.Epoch)
	if err := proc.KillContainment(m.spec.Place(), killFor); err != nil {
		m.d.log.Warn("not empty after its lease", "job", m.key.Job, "epoch", m.key.Epoch, "err", err)
	}
}

// send gives commands to the shim. A shim that is not there any more shows as the end of
// its answers, so the error says nothing new.
func (m *member) send(commands ...shim.Command) {
	if len(commands) > 0 {
		_ = m.conn.Send(commands...)
	}
}

func (m *member) heard(ctx context.Context, a shim.Answer) {
	if o := m.waiting[a.Signal]; a.Signal != 0 && o != nil {
		delete(m.waiting, a.Signal)
		o.answer <- a.Processes
	}
	if answer := m.looking[a.Look]; a.Look != 0 && answer != nil {
		delete(m.looking, a.Look)
		answer <- a.Stacks
	}
	if a.Notes != nil {
		m.d.notes.put(*a.Notes, m.key)
		m.d.watch.beats(m.key, a.Notes)
		m.d.meters.beats(m.key, a.Notes)
	}
	if a.State != nil {
		m.shimPID.Store(int64(a.State.ShimPID))
		m.lookInto(ctx, &a.State.MemberActual)
		m.become(ctx, a.State.MemberActual)
	}
}

// become publishes a new state of the member. An end is told with the proof that its cards are
// empty, or which of them are not; where the site's epilog has to run, twice: at once, and when what it has is free.
func (m *member) become(ctx context.Context, a api.MemberActual) {
	a.MemberKey, a.Port, a.Found = m.key, m.port(), m.found
	if a.Measure = m.actual.Measure; Ended(a.Phase) && !m.over.Load() {
		a.Measure = m.d.endMeasure(m, &a)
	}
	if m.spec != nil && m.spec.Container != nil {
		a.Image = m.spec.Container.Digest
	}
	if Ended(a.Phase) && !m.over.Load() {
		m.sayKills(ctx, &a)
	}
	m.settleCards(ctx, &a)
	if Ended(a.Phase) && !m.over.Load() {
		if m.d.epilogDue(m.key) != nil {
			m.tellEnd(a)
		}
		ran, ok := m.d.epilog(ctx, m.key)
		m.cleaning.Store(false)
		if !ok {
			return // the next daemon begins here again
		}
		if a.Measure != nil {
			a.Measure.Hooks = ran
		}
	}
	m.actual = a
	if a.Phase == api.PhaseReady && m.begun.ready.IsZero() {
		m.begun.ready = time.Now()
	}
	if !gateShut(a.Phase) { // the daemon before may have opened it as its last act
		m.d.ports.letGo(m.key)
	}
	if a.Phase == api.PhaseRefused {
		m.clear() // "nothing of it is left" is part of the word
		m.actual.Refusal = m.d.judged(a.Refusal)
	}
	m.publish()
}

// tellEnd tells the end of a member whose epilog comes now.
func (m *member) tellEnd(a api.MemberActual) {
	m.cleaning.Store(true)
	m.actual = BeforeEpilog(a)
	m.actual.Refusal = m.d.judged(a.Refusal)
	m.publish()
}

func (m *member) port() int {
	if m.spec == nil {
		return 0
	}
	return m.spec.Port
}

func (m *member) publish() {
	first := Ended(m.actual.Phase) && !m.over.Swap(true)
	running := m.actual.Phase == api.PhaseRunning && m.actual.Epilog == ""
	if running && m.actual.Stopping == "" {
		m.watch()
	} else {
		m.d.watch.drop(m.key)
	}
	if running {
		m.d.beginMeasure(m)
	}
	if first {
		if m.spec != nil {
			m.d.cards.again(m.spec.CardUUIDs())
		}
		m.d.ports.release(m.key)
		m.d.cpus.takeBack(m.key)
	}
	a := m.actual
	m.told = m.imports()
	a.Steps = append(slices.Clip(a.Steps), m.told...)
	if a.Phase == api.PhaseReady && m.opensItself() {
		m.d.board.Note(a) // what is waited for is that it runs
	} else {
		m.d.board.Put(a)
	}
	if first {
		m.d.siblings(m)
	}
}

// opensItself: its gate waits for nobody else.
func (m *member) opensItself() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.want.Gate != nil && m.want.Gate.Alone
}

// watch begins to look at the member's cards. After a restart of this daemon the age of the
// ranks comes from the wall clock, which is good enough for a load grace.
func (m *member) watch() {
	if m.spec == nil || len(m.actual.Ranks) == 0 && len(m.spec.Ranks) > 0 {
		return
	}
	var age time.Duration
	if len(m.actual.Ranks) > 0 {
		age = time.Since(m.actual.Ranks[0].Started)
	}
	s := m.d.site()
	m.d.watch.begin(m.key, m.spec, &s, age)
}

// drop lets go of the shim, then of the files.
func (m *member) drop(ctx context.Context) (again bool) {
	if m.conn != nil {
		m.send(shim.Command{Bye: true})
		m.drain(ctx)
	}
	if err := m.clear(); err != nil {
		m.d.log.Warn("member's files not removed", "job", m.key.Job, "epoch", m.key.Epoch, "err", err)
		return true
	}
	m.gone = true
	m.d.remove(m)
	return false
}

// drain waits for the shim to hang up, which is its exit.
func (m *member) drain(ctx context.Context) {
	t := time.NewTimer(byeWait)
	defer t.Stop()
	for {
		select {
		case _, ok := <-m.answers:
			if !ok {
				return
			}
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (m *member) clear() error { return shim.RemoveDir(m.dir) }

// signal hands a one-shot signal to the owner and waits for the count.
func (m *member) signal(ctx context.Context, o api.SignalOrder) (int, error) {
	if m.cleaning.Load() { // it takes no orders before its epilog is over
		return 0, m.runsNothing(o)
	}
	ask := &order{SignalOrder: o, answer: make(chan int, 1)}
	select {
	case m.orders <- ask:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-m.done: // gone in this moment, or with the daemon
		return 0, api.Errorf(api.CodeNotFound, "job %d epoch %d has no member on node %s any more", o.Job, o.Epoch, m.d.opts.Name)
	}
	select {
	case n := <-ask.answer:
		if n < 0 {
			return 0, m.runsNothing(o)
		}
		return n, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (m *member) runsNothing(o api.SignalOrder) error {
	return api.Errorf(api.CodeConflict, "job %d epoch %d runs nothing on node %s", o.Job, o.Epoch, m.d.opts.Name)
}

func (m *member) pass(o *order) {
	if m.conn == nil || m.over.Load() {
		o.answer <- -1
		return
	}
	m.waiting[o.Number] = o
	m.send(shim.Command{Signal: &o.SignalOrder})
}

// stacks asks the owner to look where the processes are, and waits for the answer.
func (m *member) stacks(ctx context.Context) (*api.MemberStacks, error) {
	answer := make(chan *api.MemberStacks, 1)
	select {
	case m.looks <- answer:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-m.done:
		return nil, api.Errorf(api.CodeNotFound, "job %d epoch %d has no member on node %s any more", m.key.Job, m.key.Epoch, m.d.opts.Name)
	}
	select {
	case s := <-answer:
		if s == nil {
			return nil, api.Errorf(api.CodeConflict, "job %d epoch %d runs nothing on node %s", m.key.Job, m.key.Epoch, m.d.opts.Name)
		}
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *member) look(answer chan<- *api.MemberStacks) {
	if m.conn == nil || m.over.Load() {
		answer <- nil
		return
	}
	m.lastLook++
	m.looking[m.lastLook] = answer
	m.send(shim.Command{Look: m.lastLook})
}

// abandon answers the orders that no shim will.
func (m *member) abandon() {
	for n, answer := range m.looking {
		delete(m.looking, n)
		answer <- nil
	}
	for n, o := range m.waiting {
		delete(m.waiting, n)
		o.answer <- -1
	}
}
