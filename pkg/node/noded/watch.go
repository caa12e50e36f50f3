package noded

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/node/shim"
)

// watcher looks at the members that run here and their cards, for their watchdogs. It judges
// nothing: what it finds goes to the controller, where the members of a gang come together.
// It has no goroutine of its own; [daemon.tick] gives it every reading and asks when the
// next one is wanted.
type watcher struct {
	mu      sync.Mutex
	members map[api.MemberKey]*watchedMember
	wake    chan struct{} // of capacity 1: a reading is wanted sooner
	tell    func(k api.MemberKey, n *api.WatchNote)
	stacks  func(k api.MemberKey, take bool) // a stop may come, or comes no more
}

// watchedMember is one member.
type watchedMember struct {
	cards  []string
	window *watchdog.Window // nil: not running yet
	check  *watchdog.Check  // under way
	round  int64            // the newest that was asked for
	stacks bool             // are being taken
	note   api.WatchNote    // as told
}

func newWatcher(tell func(api.MemberKey, *api.WatchNote), stacks func(api.MemberKey, bool)) *watcher {
	return &watcher{members: map[api.MemberKey]*watchedMember{}, wake: make(chan struct{}, 1), tell: tell, stacks: stacks}
}

// mono is the clock of the watchdogs: it stands still while the machine sleeps, as the ranks do.
func mono() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("noded: CLOCK_MONOTONIC: " + err.Error()) // every Linux has it
	}
	return time.Duration(ts.Nano())
}

// begin watches a member whose ranks have been running for a while.
func (w *watcher) begin(k api.MemberKey, s *shim.Spec, site *api.Settings, age time.Duration) {
	if len(s.Cards) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.members[k] != nil {
		return
	}
	cards := s.CardUUIDs()
	w.members[k] = &watchedMember{cards: cards,
		window: watchdog.NewWindow(s.Watch, watchdog.IdleOf(site), cards, mono()-max(age, 0))}
	w.poke()
}

func (w *watcher) drop(k api.MemberKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.members, k)
}

func (w *watcher) beats(k api.MemberKey, n *api.MemberNote) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.members[k]
	if m != nil && (slices.ContainsFunc(n.Ranks, func(r api.RankNote) bool { return r.Beats > 0 }) ||
		slices.ContainsFunc(n.Tasks, func(t api.TaskNote) bool { return t.Beats > 0 })) {
		m.window.Beats(mono())
	}
}

// ask begins a check, or takes one back. An order that is repeated begins nothing.
func (w *watcher) ask(k api.MemberKey, c *api.Check, site *api.Settings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.members[k]
	switch {
	case m == nil:
	case c == nil:
		m.check = nil
		if m.stacks {
			m.stacks = false
			w.stacks(k, false)
		}
	case c.Round != m.round:
		m.round = c.Round
		m.check = watchdog.NewCheck(*c, watchdog.IdleOf(site), m.cards, mono())
		w.poke()
	}
}

func (w *watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) feed(sight func(api.MemberKey) watchdog.Sight, gap time.Duration) {
	now := mono()
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, m := range w.members {
		see := sight(k)
		m.window.Add(now, gap, see)
		n := m.window.Note()
		n.Round, n.Finding = m.note.Round, m.note.Finding
		if m.check != nil && m.check.Add(now, see) {
			n.Round, n.Finding = m.check.Note()
			m.check = nil
		}
		if m.check != nil && m.check.Nearly() && !m.stacks {
			m.stacks = true
			w.stacks(k, true)
		}
		if same(&n, &m.note) {
			continue
		}
		m.note = n
		w.tell(k, &n)
	}
}

// same: nothing that would change a judgement. What a window showed is not compared: it grows
// with each reading.
func same(a, b *api.WatchNote) bool {
	return a.Round == b.Round && a.Hung == b.Hung && a.Idle == b.Idle && a.Blind == b.Blind
}

// wait is how long until a reading is wanted, usual at the most.
func (w *watcher) wait(usual time.Duration) time.Duration {
	now := mono()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		if m.check != nil {
			usual = min(usual, m.check.Due()-now)
		}
		if at, ok := m.window.Due(); ok {
			usual = min(usual, at-now)
		}
	}
	return max(usual, 0)
}
