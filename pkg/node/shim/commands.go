package shim

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// keptOrders is how many signal orders are remembered: more than are ever under way.
const keptOrders = 64

// orders are the newest signal orders that were applied and how many processes got each:
// a repeat after a reconnect is answered, not applied. Two orders that were given at the
// same time may come in either order, so a smaller number alone says nothing.
type orders []appliedOrder

type appliedOrder struct {
	number    uint64
	processes int
}

func (o orders) find(number uint64) (processes int, applied bool) {
	for _, a := range o {
		if a.number == number {
			return a.processes, true
		}
	}
	return 0, false
}

func (o *orders) add(a appliedOrder) {
	if len(*o) == keptOrders {
		*o = (*o)[:copy(*o, (*o)[1:])]
	}
	*o = append(*o, a)
}

// command does what one line asks, in the order of the struct.
func (m *member) command(c Command) {
	if m.over { // refused or stopped: the containment is gone
		m.bye = m.bye || c.Bye
		if c.Signal != nil {
			m.answerSignal(c.Signal.Number, 0)
		}
		if c.Look != 0 {
			m.lookFor(c.Look)
		}
		return
	}
	if c.Limit != 0 {
		m.step(supervise.Limit{TimeLimit: max(c.Limit, 0)})
	}
	if c.Go != nil && m.mach.State() == supervise.Holding {
		m.port = c.Go.MasterPort
		m.step(supervise.Go{})
		m.flush() // the start is told before anything else happens
	}
	if c.Stop != nil {
		if m.mach.Cause() == "" {
			m.state.Trigger = c.Stop.Trigger // the first stop decides, as it does on the cause
			m.asked(c.Stop.Asker)
		}
		m.step(supervise.Order{Stop: *c.Stop})
	}
	if c.Signal != nil {
		m.signalOrder(*c.Signal)
	}
	if c.Passed {
		m.step(supervise.Passed{})
	}
	if c.Steps != nil {
		m.takeSteps(*c.Steps)
	}
	if c.Warn != nil {
		m.warn(c.Warn)
	}
	if c.Stacks != "" && m.mach.State() == supervise.Running {
		m.stacks(c.Stacks)
	}
	if c.Look != 0 {
		m.lookFor(c.Look)
	}
	if c.LeaseUntil > 0 {
		m.step(supervise.Renewed{Left: c.LeaseUntil - clock(unix.CLOCK_BOOTTIME)})
	}
	if c.Bye {
		m.goodbye()
	}
}

// goodbye ends the shim, unless ranks run: their results would be lost with it. A member
// that has nothing to lose is ended first.
func (m *member) goodbye() {
	if m.mach.State() != supervise.Holding && len(m.spec.Ranks) > 0 {
		logf("bye while the member is %s: ignored", m.mach.State())
		return
	}
	m.step(supervise.Order{})
	m.bye = true
}

func (m *member) signalOrder(o api.SignalOrder) {
	n, applied := m.orders.find(o.Number)
	if !applied {
		if o.MemberKey == m.spec.MemberKey || o.MemberKey == (api.MemberKey{}) {
			switch {
			case o.Message != "":
				m.say(fmt.Sprintf("slurmstepd-%s: error: %s", m.spec.Node, o.Message))
			case o.Step != nil:
				n = m.signalStep(*o.Step, o.Signal)
			default:
				n = m.signal(o.Signal, o.Scope, o.Named)
			}
		}
		m.orders.add(appliedOrder{number: o.Number, processes: n})
	}
	m.answerSignal(o.Number, n)
}

func (m *member) answerSignal(number uint64, processes int) {
	m.conns.tell(line(Answer{Signal: number, Processes: processes}))
}

// line is what is said in one, to gnoded or a launcher.
func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T does not marshal: %v", v, err))
	}
	return append(b, '\n')
}

// signal delivers a signal to a scope and counts who got it.
func (m *member) signal(name string, scope api.SignalScope, named []int) int {
	sig, ok := proc.Signal(name)
	if !ok {
		logf("signal %q is not known", name)
		return 0
	}
	if scope == "" {
		scope = api.ScopeRanks
	}
	n := 0
	for _, pid := range supervise.SignalTargets(scope, named, m.spec.Batch, m.processes(sig, m.ofShells)) {
		if send(pid, sig) {
			n++
		}
	}
	return n
}

// notify delivers the notice. One that the script was to have and does not take is passed on,
// on the other nodes as well: gnoded tells the controller, which tells them.
func (m *member) notify(name string, scope api.SignalScope) {
	sig, ok := proc.Signal(name)
	if !ok {
		logf("notice %q is not known", name)
		return
	}
	procs := m.processes(sig, m.ofAll)
	pids, passed := supervise.NoticeTargets(scope, m.spec.Batch, procs)
	m.offerLater(sig, scope, procs)
	m.hears(scope, procs)
	for _, pid := range pids {
		if pid != m.asker.by.PID {
			send(pid, sig)
		}
	}
	if passed && m.spec.Batch && !m.state.Passed {
		m.state.Passed, m.dirty = true, true
	}
}
