package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/notify"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/wire/lifesign"
)

// maxBatch bounds the events of one commit: enough that an fsync is shared by hundreds of
// callers, little enough that the first of them does not wait for the thousandth.
const maxBatch = 512

// maxMany is how many of them are of calls over many jobs, all of these together: who asks for one finds room in the next
// commit, and waits for no large one.
const maxMany = maxBatch / 4

// inboxSize is how many requests may wait before senders are held back.
const inboxSize = 4096

// fullRetry is how often a batch that found the disk full is tried again.
const fullRetry = time.Second

// errStopped is the answer to a request that came when the engine had ended.
var errStopped = api.Errorf(api.CodeUnavailable, "the controller is shutting down")

// errUnseated ends an engine whose controller does not lead any more.
var errUnseated = errors.New("this controller does not lead any more")

// seated is errUnseated when this controller does not lead.
func (e *Engine) seated() error {
	if e.opt.Leads != nil && !e.opt.Leads() {
		return errUnseated
	}
	return nil
}

// Clock reads the time for a step.
type Clock interface{ Now() gang.Instant }

// Hub carries desired sets and one-shot orders to nodes; see package session.
type Hub interface {
	// Wake says that the desired sets of nodes changed. It never blocks.
	Wake(nodes []string)
	// AppendLog writes a text behind a file of a node, as the user who owns the job.
	AppendLog(ctx context.Context, node string, a api.LogAppend) error
	// Stacks looks where the processes of a member are.
	Stacks(ctx context.Context, node string, k api.MemberKey) (*api.MemberStacks, error)
}

// Recorder is told what was committed, for metrics. Its methods are called from the
// engine's goroutine and must be quick.
type Recorder interface {
	Events(evs []api.Event)
	Commit(d time.Duration, events int)
	Plan(d time.Duration, at time.Time)
}

// Options are the parts an engine is made of.
type Options struct {
	Store   store.Store
	Clock   Clock
	Log     *slog.Logger
	Conf    // at the start; what holds later is [Engine.conf]
	Record  Recorder
	Version string
	// Sign is told of each round: of the one loop that commits. nil: nobody watches.
	Sign *lifesign.Loop
	// Run names this process, unlike any other that had this store or a copy of it; empty: it
	// goes without, and an old copy is noticed by its commit number alone.
	Run string
	// AcceptStore takes a store that is older than what nodes have seen, instead of holding.
	AcceptStore bool
	// LineageKey proves commit numbers to this controller that it told nodes; empty: nodes are
	// believed, as on a unix socket with one user.
	LineageKey []byte
	// Sender delivers letters; nil: nobody does.
	Sender *notify.Sender
	// Leads says whether this controller leads at this moment, where it is one of several; nil: it is
	// the only one. One that does not any more commits nothing, tells nothing and ends.
	Leads func() bool
	// NameOf is what somebody is called now, as far as that is known without asking anybody; nil: jobs keep the names
	// that they came with.
	NameOf func(uid uint32) (name string, known bool)
	// GroupsOf says of which of some groups a user is; nil: of none. It has a deadline of its own.
	GroupsOf func(ctx context.Context, uid uint32, among []string) ([]string, error)
}

// Engine runs the controller's state.
type Engine struct {
	figures     *figures
	opt         Options
	store       store.Store
	world       *gang.World
	own         *Conf // that this round goes by
	published   atomic.Pointer[inForce]
	took        []func() // with the configuration of this round
	log         *slog.Logger
	hub         Hub
	inbox       chan request
	many        chan struct{} // holds one for each event that a call over many jobs waits for
	kept        []request     // taken from the inbox while the disk was full, before all that is in it now
	done        chan struct{} // closed when Run has returned
	view        view
	bus         bus
	oldReads    chan struct{} // holds one for each follower that reads the store
	notes       rankNotes
	groups      groups
	loads       sync.Map // of nodes with a session: name to [api.NodeLoad]
	barriers    barriers
	stepWaiters stepWaiters
	sweepQueue  chan int64 // jobs whose checkpoints and releases nobody needs any more
	fencer      fencer
	idleHook    idleHook
	outbox      outbox
	past        history
	runs        []store.Run // of this store, the last is this process; empty: it could not be noted
	// accepted is the highest commit of another copy that a person has accepted.
	accepted uint64
	plan     planning
	passed   int     // full batches that went before timers
	driver   *Driver // nil: Run is the engine's goroutine
}

// request is one event, or a look at the state from inside (inspect), with its answer.
type request struct {
	ev      gang.Event
	inspect func()
	reply   chan<- gang.Outcome // nil: nobody waits
	reconf  *reconfiguration    // of a [gang.Reconfigure]
	by      *Conf               // what the event was judged by: refused with errMoved where another is in force; nil: by none
}

// New loads the store. [Engine.SetHub] must follow before [Engine.Run].
func New(ctx context.Context, opt Options) (*Engine, error) {
	now := opt.Clock.Now()
	saved, err := opt.Store.Load(ctx, now.Wall.Add(-opt.Conf.Settings.KeepEnded))
	if err != nil {
		return nil, fmt.Errorf("load the store: %w", err)
	}
	if err := recallSaved(ctx, opt.Store, saved); err != nil {
		return nil, fmt.Errorf("load the store: %w", err)
	}
	counted := &figures{Recorder: opt.Record}
	own := opt.Conf
	own.Policy.Pools = own.Settings.Pools()
	opt.Record, opt.Conf = counted, Conf{}
	e := &Engine{
		opt: opt, own: &own, figures: counted, store: opt.Store, log: opt.Log,
		inbox:      make(chan request, inboxSize),
		many:       make(chan struct{}, maxMany),
		done:       make(chan struct{}),
		sweepQueue: make(chan int64, inboxSize),
		oldReads:   make(chan struct{}, oldReaders),
	}
	e.groups.init()
	e.world = gang.Restore(now, own.Settings, saved)
	e.world.SetPartitions(own.Policy.Partitions)
	e.publishConf()
	e.world.SetZones(zones())
	e.world.SetPaths(fit.SwitchPath(own.Policy.Switches))
	if err := e.initPlanning(ctx, now.Wall); err != nil {
		return nil, fmt.Errorf("load the store: %w", err)
	}
	e.outbox = outbox{e: e, changed: make(chan struct{}, 1)}
	e.past.more = true // what a crash may have left
	e.view.init(e.world)
	lineage := opt.Store.Lineage()
	if err := e.beginRun(ctx); err != nil {
		return nil, fmt.Errorf("load the store: %w", err)
	}
	e.setLineage(lineage)
	if err := e.restoreBarriers(ctx); err != nil {
		return nil, fmt.Errorf("load the store: %w", err)
	}
	e.bus.init(saved.NextSeq - 1)
	e.requeue()
	if err := e.restoreBackfills(saved.Claims); err != nil {
		return nil, fmt.Errorf("load the store: %w", err)
	}
	e.plan.again = true
	return e, nil
}

// SetHub gives the engine its way to the nodes.
func (e *Engine) SetHub(h Hub) { e.hub = h }

// Run is the engine's one goroutine. It returns nil when ctx ends, else why the engine
// can't go on.
func (e *Engine) Run(ctx context.Context) error {
	e.fencer.init(ctx)
	defer e.fencer.close()
	e.idleHook.init(ctx, e)
	defer e.idleHook.close()
	defer close(e.done) // first: a fencer may wait for an answer
	sweeping, stop := context.WithCancel(ctx)
	var sweeper sync.WaitGroup
	sweeper.Go(func() { e.sweep(sweeping) })
	sweeper.Go(func() { e.keepHistory(sweeping) })
	sweeper.Go(func() { e.keepNames(sweeping) })
	sweeper.Go(func() { e.keepGroups(sweeping) })
	sweeper.Go(func() { e.outbox.run(sweeping) })
	defer sweeper.Wait()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	batch := make([]request, 0, maxBatch)
	for {
		e.arm(timer)
		batch = batch[:0]
		select {
		case <-ctx.Done():
			return nil
		case r := <-e.inboxUnlessKept():
			batch = e.gather(append(batch, r))
		case <-timer.C:
			batch = e.tickAfter(e.gather(batch))
		}
		if err := e.round(ctx, batch); err != nil {
			return err
		}
		e.opt.Sign.Round()
	}
}

// mostPassed is how many full batches timers let pass.
const mostPassed = 8

// tickAfter lets timers fire behind what waits: an answer that has come is not late, however
// long it lay here. What is still to be read after a full batch goes first as well, for a while.
func (e *Engine) tickAfter(batch []request) []request {
	if len(batch) >= maxBatch && e.passed < mostPassed {
		e.passed++
		return batch
	}
	e.passed = 0
	return append(batch, request{ev: gang.Tick{}})
}

// gather takes what else is waiting, up to a batch.
func (e *Engine) gather(batch []request) []request {
	n := min(len(e.kept), maxBatch-len(batch))
	batch = append(batch, e.kept[:n]...)
	if e.kept = e.kept[n:]; len(e.kept) > 0 {
		return batch
	}
	e.kept = nil
	for len(batch) < maxBatch {
		select {
		case r := <-e.inbox:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// inboxUnlessKept is the inbox, or nothing while older requests wait for their turn.
func (e *Engine) inboxUnlessKept() <-chan request {
	if len(e.kept) > 0 {
		return nil
	}
	return e.inbox
}

// arm sets the timer to the core's next deadline, or to now when a plan is owed. On hold, or with
// nothing to do, the loop goes round all the same for those who watch that it lives.
func (e *Engine) arm(timer *time.Timer) {
	wait := e.opt.Sign.Pace()
	if at, ok := e.deadline(); ok && e.view.onHold() == "" {
		wait = min(wait, max(0, at-e.opt.Clock.Now().Mono))
	}
	if e.plan.again || len(e.kept) > 0 {
		wait = 0
	}
	timer.Reset(wait)
}

// round is one batch: step, plan, commit, publish, answer, send.
func (e *Engine) round(ctx context.Context, batch []request) error {
	r, err := e.begin(ctx, batch)
	if err != nil {
		return err
	}
	if err := e.commit(ctx, &r.ch); err != nil {
		return err
	}
	if err := e.seated(); err != nil {
		return err
	}
	e.finish(r)
	return nil
}

// openBatch is a batch that was stepped and of which nothing has been told to anyone.
type openBatch struct {
	began    time.Duration // on the clock that does not jump
	batch    []request
	outcomes []gang.Outcome
	ch       gang.Changes
}

// begin steps and plans.
func (e *Engine) begin(ctx context.Context, batch []request) (*openBatch, error) {
	if err := e.seated(); err != nil {
		return nil, err
	}
	now := e.opt.Clock.Now()
	r := &openBatch{began: now.Mono, batch: batch, outcomes: make([]gang.Outcome, len(batch))}
	for i := range batch {
		if batch[i].ev == nil {
			continue
		}
		ev, err := e.checkLineage(ctx, batch[i].ev)
		if err != nil {
			return nil, err
		}
		ev, err = e.recallAgain(context.WithoutCancel(ctx), ev)
		if err != nil {
			return nil, err
		}
		r.outcomes[i] = e.step(now, &batch[i], ev)
	}
	e.planStarts(now)
	r.ch = e.world.Take()
	r.ch.Claims = e.backfillsToKeep()
	e.learnFrom(&r.ch)
	return r, nil
}

// finish tells what is on disk: readers first, then callers, then nodes, and the log last: a line is a write, and who waits for a
// start waits for none.
func (e *Engine) finish(r *openBatch) {
	all := e.took != nil
	e.publish(&r.ch)
	if all { // they are told the settings
		e.hub.Wake(e.NodeNames())
	}
	e.fenceLost(r.ch.Events)
	e.tellIdle(r.ch.Events)
	e.outbox.tell(&r.ch)
	e.reply(r)
	if len(r.ch.Dirty) > 0 {
		e.hub.Wake(r.ch.Dirty)
	}
	e.logEvents(r.ch.Events)
	if took := e.opt.Clock.Now().Mono - r.began; took >= stoodStill {
		e.kept = append([]request{{ev: gang.Stalled{For: took}}}, e.kept...)
	}
}

// stoodStill is how long a round has to take for its length to be added to what nodes may
// take: they were told nothing meanwhile. A slow disk's fsync is well below it.
const stoodStill = time.Second

// reply answers those who wait for a batch.
func (e *Engine) reply(r *openBatch) {
	for i := range r.batch {
		if r.batch[i].inspect != nil {
			r.batch[i].inspect()
		}
		if r.batch[i].reply != nil {
			r.batch[i].reply <- r.outcomes[i]
		}
	}
}

// step hands one event to the core. A submission that the disk has no room for is refused
// before it is taken in: ends must still find room when acceptance has stopped.
func (e *Engine) step(now gang.Instant, r *request, ev gang.Event) gang.Outcome {
	switch {
	case e.view.onHold() != "":
		return gang.Outcome{Refused: errHold}
	case r.by != nil && r.by != e.own:
		return gang.Outcome{Refused: errMoved}
	}
	if r.reconf != nil {
		e.reconfigured(r.reconf)
	}
	if _, submit := ev.(gang.Submit); submit {
		if err := e.store.Room(); err != nil {
			e.log.Error("submission refused", "err", err)
			return gang.Outcome{Refused: errDiskFull}
		}
	}
	return e.world.Step(now, ev)
}

// commit writes one batch. A full disk is waited out: nothing of the batch was written,
// nothing of it has been told to anyone, so trying again is safe.
func (e *Engine) commit(ctx context.Context, ch *gang.Changes) error {
	for told := false; ; told = true {
		err := e.tryCommit(ctx, ch, told)
		if err == nil || !errors.Is(err, store.ErrFull) || !e.refuseWhileFull(ctx) {
			return err
		}
	}
}

// tryCommit writes a batch once; again: the last try found the disk full.
func (e *Engine) tryCommit(ctx context.Context, ch *gang.Changes, again bool) error {
	if ch.Rows() == 0 {
		return nil
	}
	t := time.Now()
	// What was stepped is committed also when the end has come meanwhile: its callers
	// wait for the answer, and an end in good order is not a failed commit.
	lineage, err := e.store.Commit(context.WithoutCancel(ctx), ch)
	if err != nil {
		if errors.Is(err, store.ErrFull) && !again {
			e.log.Error("state disk full: nothing is accepted until there is room", "err", err)
		}
		return fmt.Errorf("commit: %w", err)
	}
	e.opt.Record.Commit(time.Since(t), len(ch.Events))
	e.setLineage(lineage)
	if again {
		e.log.Info("state disk has room again")
	}
	return nil
}

// refuseWhileFull answers submissions for one retry interval; false when ctx ended. What is
// not a submission is kept, in order and before anything that comes later; when as much is
// kept as the inbox holds, senders are held back.
func (e *Engine) refuseWhileFull(ctx context.Context) bool {
	e.opt.Sign.Round() // the disk answers: waiting for room is no standstill
	retry := time.NewTimer(min(fullRetry, e.opt.Sign.Pace()))
	for {
		inbox := e.inbox
		if len(e.kept) >= inboxSize {
			inbox = nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-retry.C:
			return true
		case r := <-inbox:
			e.setAside(r)
		}
	}
}

// setAside is what becomes of a request that comes while the disk is full.
func (e *Engine) setAside(r request) {
	if _, submit := r.ev.(gang.Submit); submit && r.reply != nil {
		r.reply <- gang.Outcome{Refused: errDiskFull}
		return
	}
	e.kept = append(e.kept, r)
}

var errDiskFull = &api.Error{Code: api.CodeDiskFull, Message: "state disk full: the job could not be kept, so it was not accepted",
	Hint: "free space on the controller's state directory, then submit again"}

// errMoved is the answer to what was judged by a configuration that is not in force any more. Who judged it does so again.
var errMoved = api.Errorf(api.CodeUnavailable, "the configuration of the controller was changed meanwhile")

// Do hands in an event and waits until what it changed is on disk and published.
func (e *Engine) Do(ctx context.Context, ev gang.Event) (gang.Outcome, error) {
	return e.hand(ctx, ev)()
}

// hand hands in an event, and gives what waits for it as Do does.
func (e *Engine) hand(ctx context.Context, ev gang.Event) (wait func() (gang.Outcome, error)) {
	return e.answered(ctx, request{ev: ev})
}

func (e *Engine) answered(ctx context.Context, r request) (wait func() (gang.Outcome, error)) {
	reply := make(chan gang.Outcome, 1)
	r.reply = reply
	if err := e.send(ctx, r); err != nil {
		return func() (gang.Outcome, error) { return gang.Outcome{}, err }
	}
	return func() (gang.Outcome, error) {
		if e.driver != nil {
			return e.driver.until(ctx, reply)
		}
		select {
		case out := <-reply:
			if out.Refused != nil {
				return out, out.Refused
			}
			return out, nil
		case <-e.done:
			return gang.Outcome{}, errStopped
		case <-ctx.Done():
			return gang.Outcome{}, context.Cause(ctx)
		}
	}
}

// post hands in an event that nobody waits for.
func (e *Engine) post(ev gang.Event) { _ = e.send(context.Background(), request{ev: ev}) }

// inspect runs fn in the engine's goroutine, after a commit, on its live state.
func (e *Engine) inspect(ctx context.Context, fn func()) error {
	ran := make(chan struct{})
	if err := e.send(ctx, request{inspect: func() { fn(); close(ran) }}); err != nil {
		return err
	}
	select {
	case <-ran:
		return nil
	case <-e.done:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) send(ctx context.Context, r request) error {
	select {
	case e.inbox <- r:
		return nil
	case <-e.done:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Verify recounts the world and the store and names every disagreement.
func (e *Engine) Verify(ctx context.Context) ([]string, error) {
	var found []string
	if err := e.inspect(ctx, func() { found = e.world.Verify() }); err != nil {
		return nil, err
	}
	more, err := e.store.Verify(ctx)
	return append(found, more...), err
}
