package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/leader"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/wire/session"
)

// policy is the site's.
var policy = order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, MaxStarts: 100, BackfillDepth: 1}

// gangd is one process of the controller.
type gangd struct {
	owner
	r        *run
	dice     *rand.Rand
	store    *diskStore
	eng      *engine.Engine
	drv      *engine.Driver
	sessions map[string]*hubSession
	greeted  session.Greetings
	asked    []question // whose answers are awaited
	soon     bool       // a turn is planned
	tick     uint64     // of the tick that counts
	full     bool       // the last turn found the disk full
	host     *host

	// Where there are several controllers:
	seat    leader.Seat
	roster  leader.Roster
	list    *api.Controllers
	leader  *gangd // as the row said last
	term    uint64
	turning bool // a commit is under way
}

// question is what a turn will answer.
type question struct {
	out    <-chan gang.Outcome
	answer func(gang.Outcome)
}

type noRecord struct{}

func (noRecord) Events([]api.Event)            {}
func (noRecord) Commit(time.Duration, int)     {}
func (noRecord) Plan(time.Duration, time.Time) {}

type clock struct{ r *run }

func (c clock) Now() gang.Instant { return c.r.instant() }

// startGangd begins a process on each host that has none.
func (r *run) startGangd() {
	for _, h := range r.hosts {
		h.start()
	}
}

// start begins a process, which leads at once where it is the only one.
func (h *host) start() {
	if h.proc != nil {
		return
	}
	r := h.r
	g := &gangd{owner: owner{l: &r.loop}, r: r, host: h, dice: rand.New(rand.NewPCG(r.sc.Seed, 2)), sessions: map[string]*hubSession{}}
	h.proc = g
	if !g.several() {
		g.lead()
		return
	}
	r.log("%s starts", h.name)
	g.campaign()
}

// lead begins to be the controller, on what was committed.
func (g *gangd) lead() {
	r := g.r
	if r.db != nil && r.db.term != g.term { // somebody else has the seat by now
		g.crash(time.Second)
		return
	}
	st, err := r.disk.current().Open(r.ctx)
	if err != nil {
		r.fail("I3", "the store does not open: %v", err)
		return
	}
	g.store = &diskStore{Store: st, g: g}
	r.starts++
	name := fmt.Sprintf("run-%d", r.starts)
	r.onCopy[name] = r.disk.onOld
	g.eng, err = engine.New(r.ctx, engine.Options{Store: g.store, Clock: clock{r}, Log: slog.New(slog.DiscardHandler),
		Conf: engine.Conf{Settings: r.set, Policy: policy}, Record: noRecord{}, Version: "sim", Run: name,
		// Who puts the newest store back after a copy was written to says that it is that one.
		AcceptStore: !r.disk.onOld && r.disk.forked, Leads: g.leads()})
	if err != nil {
		r.fail("I3", "the controller does not start: %v", err)
		return
	}
	g.drv = g.eng.Drive()
	g.eng.SetHub(g)
	r.gangd = g
	r.log("gangd starts at commit %d", st.Lineage())
	r.truth.reopened(g)
	g.turnSoon()
}

// leads is how the engine asks; nil: it need not.
func (g *gangd) leads() func() bool {
	if !g.several() {
		return nil
	}
	return g.Leads
}

// office is how sessions ask; nil: they need not.
func (g *gangd) office() session.Office {
	if !g.several() {
		return nil
	}
	return g
}

// crash ends the process as kill -9 does; its lines break, as far as the network tells.
func (g *gangd) crash(away time.Duration) {
	if g.dead {
		return
	}
	g.r.log("gangd dies")
	g.r.troubled(away)
	g.r.mix(1)
	g.dead = true
	if g.r.gangd == g {
		g.r.gangd = nil
	}
	g.host.proc = nil
	g.r.after(away, g.host.start)
	g.r.tellEnd(g)
	if g.drv == nil {
		return
	}
	for _, m := range g.r.machines {
		if s := g.sessions[m.name]; s != nil {
			s.line.fin(false)
		}
	}
	for _, c := range g.r.clients {
		c.cutOff()
	}
	// The store may be in the middle of a call of this very process: closed when that is over.
	g.r.after(0, func() {
		if err := g.store.Close(); err != nil {
			g.r.fail("I3", "close the store: %v", err)
		}
	})
}

func (g *gangd) isGone() bool { return g.dead }

// ask hands in a question and sees to a turn.
func (g *gangd) ask(out <-chan gang.Outcome, answer func(gang.Outcome)) {
	g.asked = append(g.asked, question{out, answer})
	g.turnSoon()
}

// turnSoon plans a turn, a little later: what comes until then is in one batch.
func (g *gangd) turnSoon() {
	if g.soon || g.full || g.drv == nil {
		return
	}
	g.soon = true
	g.after(upTo(g.dice, 2*time.Millisecond), func() {
		g.soon = false
		g.turn()
	})
}

// upTo is a random duration below d.
func upTo(dice *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(d) + 1))
}

func (g *gangd) turn() {
	if !g.several() {
		g.turned(g.drv.Turn(g.r.ctx))
		return
	}
	if !g.turning {
		g.turning = true
		g.commit()
	}
}

// commit is a turn with the database: its commit is done there, later the answer comes, as soon as
// there is one; and only then it is told.
func (g *gangd) commit() {
	done := false
	var full bool
	var err error
	var try func()
	try = func() {
		g.query(func() {
			if !done && !g.dead {
				done = true
				full, err = g.drv.Commit(g.r.ctx)
			}
		}, func(lost bool) {
			if lost {
				try()
				return
			}
			g.turning = false
			if !full && err == nil {
				err = g.drv.Finish(g.r.ctx)
			}
			g.turned(full, err)
		})
	}
	try()
}

// turned goes on after a turn.
func (g *gangd) turned(full bool, err error) {
	if g.dead {
		return
	}
	if err != nil {
		g.r.log("gangd ends: %v", err)
		g.crash(time.Second)
		return
	}
	if g.full = full; full {
		g.answer() // to submissions that are refused meanwhile
		g.after(engine.FullRetry, func() { g.turn() })
		return
	}
	g.answer()
	if g.dead {
		return
	}
	g.r.truth.turned()
	g.plan()
}

// answer gives the outcomes that have come; an answer may lead to new questions.
func (g *gangd) answer() {
	asked := g.asked
	g.asked = nil
	var open []question
	for _, q := range asked {
		select {
		case out := <-q.out:
			if !g.dead {
				q.answer(out)
			}
		default:
			open = append(open, q)
		}
	}
	g.asked = append(open, g.asked...)
}

// plan sees to the next turn: what waits already, or the core's next timer.
func (g *gangd) plan() {
	if g.drv.Waiting() {
		g.turnSoon()
		return
	}
	at, ok := g.drv.Deadline()
	if !ok {
		return
	}
	g.tick++
	n := g.tick
	g.after(at-g.r.instant().Mono, func() {
		if n == g.tick && !g.full {
			g.turn()
		}
	})
}

// flush sends now what is due to be sent.
func (g *gangd) flush() {
	for _, m := range g.r.machines {
		if s := g.sessions[m.name]; s != nil && s.soon && !s.over && s.greeted && !g.dead {
			s.send(s.half.Due())
		}
	}
}

// Stacks implements [engine.Hub]: nobody here asks.
func (g *gangd) Stacks(context.Context, string, api.MemberKey) (*api.MemberStacks, error) {
	return &api.MemberStacks{}, nil
}

// AppendLog implements [engine.Hub]: no job here asks for it.
func (g *gangd) AppendLog(context.Context, string, api.LogAppend) error { return nil }

// Wake implements [engine.Hub].
func (g *gangd) Wake(nodes []string) {
	for _, n := range nodes {
		if s := g.sessions[n]; s != nil && s.greeted {
			s.half.Wake()
			s.flushSoon()
		}
	}
}
