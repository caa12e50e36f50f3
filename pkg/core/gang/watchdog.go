package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/watchdog"
)

// The watchdogs of a gang. Nodes say which ranks are silent and what their cards were seen
// doing; only here, where all members come together, something is ended. Nothing of this is
// stored: after a restart the nodes say it again.

// Watched is what the watchdogs of a node see of one member, whole; a repeat is harmless.
type Watched struct {
	Job    int64
	Epoch  int
	Node   string
	Silent []int         // ranks that have beaten, and not for the stall time-out
	Tasks  []api.TaskKey // tasks of steps of which the same is true
	Watch  api.WatchNote
}

func (Watched) event() {}

// answerPatience is how long a node may be late with the answer to a check, beyond the time
// that its readings take. Without an answer nothing is ended, so it may be short.
const answerPatience = 2 * time.Second

// guard is what is known of a running gang for its watchdogs.
type guard struct {
	seen   map[string]*Watched // by node, the newest
	check  *check
	rests  bool // a suspicion was dismissed a moment ago: not again before the timer
	warned bool // of idling
	// spared counts the dismissals in a row of each that is silent now.
	spared map[speaker]int
}

// check is the question to all members whether their cards are idle.
type check struct {
	round   int64
	who     speaker // that was silent
	answers map[string]*api.Finding
}

// speaker is who beats: a rank, or a task of a step.
type speaker struct {
	step int // -1: a rank
	rank int // or the number of the task
}

func (s speaker) text(j *Job) string {
	if s.step < 0 {
		return fmt.Sprintf("rank %d", s.rank)
	}
	return TaskText(j.ID, s.step, s.rank)
}

// event names the speaker in an event.
func (s speaker) event(ev api.Event) api.Event {
	if s.step < 0 {
		ev.Rank = rankPtr(s.rank)
	} else {
		ev.Task = &api.TaskKey{Step: s.step, Task: s.rank}
	}
	return ev
}

// seen puts into an event what was found, if anything was.
func seen(f *api.Finding, ev api.Event) api.Event {
	if f != nil {
		ev.Samples, ev.Hosts = f.Cards, f.Hosts
	}
	return ev
}

// trigger is the rank that a drain is charged to; -1: none.
func (s speaker) trigger() int {
	if s.step < 0 {
		return s.rank
	}
	return -1
}

// watchdogs judge what nodes see of running gangs.
type watchdogs struct {
	set    *api.Settings
	clock  *clock
	record *record
	nodes  *nodes
	stops  *stops
}

// WatchOf is which watchdogs a job is under.
func WatchOf(s *api.Settings, j *Job) api.Watch {
	pick := func(own, site time.Duration) time.Duration {
		switch {
		case own < 0:
			return 0
		case own > 0:
			return own
		}
		return site
	}
	w := api.Watch{StallTimeout: pick(j.Spec.StallTimeout, s.StallTimeout), IdleLimit: pick(j.Spec.IdleLimit, s.IdleLimit)}
	if j.Spec.GPUWatch {
		w.HangWindow, w.HangGrace = s.GPUHangWindow, s.GPUHangLoadGrace
	}
	if slices.Contains(s.IdleExempt, j.User) {
		w.IdleLimit = 0
	}
	if w.IdleLimit > 0 {
		w.IdleEnd = s.IdleEnd
	}
	w.NoStacks = s.StallDump <= 0
	return w
}

// watched takes in what a node sees, and judges.
func (wd *watchdogs) watched(ev Watched) Outcome {
	h := wd.nodes.byName[ev.Node]
	if h == nil {
		return refused(wd.nodes.unknown(ev.Node))
	}
	p, ok := h.members[memberKey(ev.Job, ev.Epoch)]
	if !ok || reserved(p.e.job) || p.e.job.Drain != nil {
		return ignored("not running")
	}
	e := p.e
	if e.guard == nil {
		e.guard = &guard{seen: map[string]*Watched{}, spared: map[speaker]int{}}
	}
	g := e.guard
	if was := g.seen[ev.Node]; ev.Watch.Blind > 0 && (was == nil || was.Watch.Blind == 0) {
		wd.record.emitJob(e.job, api.Event{Type: api.EventWatchBlind, Node: ev.Node,
			Text: fmt.Sprintf("%s: %s for %s: no watchdog can act there", ev.Node, unseenText(ev.Watch.Unseen), when.Words(ev.Watch.Blind))})
	}
	g.seen[ev.Node] = &ev
	if c := g.check; c != nil && c.round == ev.Watch.Round && ev.Watch.Finding != nil {
		c.answers[ev.Node] = ev.Watch.Finding
	}
	wd.guardJudge(e)
	return applied()
}

// guardJudge applies every rule to what is known now.
func (wd *watchdogs) guardJudge(e *entry) {
	wd.judgeSilence(e)
	if e.job.Drain == nil {
		wd.judgeHang(e)
	}
	if e.job.Drain == nil {
		wd.judgeIdle(e)
	}
}

// quietVoice is a speaker that is silent, and where.
type quietVoice struct {
	speaker
	node string
}

// silent are those that are: ranks before tasks, then by number.
func (g *guard) silent(j *Job) (all []quietVoice) {
	for i := range j.Members {
		s := g.seen[j.Members[i].Node]
		if s == nil {
			continue
		}
		for _, r := range s.Silent {
			if r >= 0 && r < len(j.Ranks) && j.Ranks[r].State == api.RankRunning {
				all = append(all, quietVoice{speaker{-1, r}, s.Node})
			}
		}
		for _, k := range s.Tasks {
			if TaskNode(j, k) == s.Node {
				all = append(all, quietVoice{speaker{k.Step, k.Task}, s.Node})
			}
		}
	}
	slices.SortFunc(all, func(a, b quietVoice) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.rank, b.rank))
	})
	return slices.CompactFunc(all, func(a, b quietVoice) bool { return a.speaker == b.speaker })
}

// carded are the nodes on which a gang has cards, in the order of its members.
func carded(j *Job) []string {
	var out []string
	for i := range j.Members {
		if len(memberCards(j, &j.Members[i])) > 0 {
			out = append(out, j.Members[i].Node)
		}
	}
	return out
}

func memberCards(j *Job, m *Member) []string {
	var out []string
	for _, r := range m.Ranks {
		for _, uuid := range j.Ranks[r].Slot.Cards {
			if !slices.Contains(out, uuid) {
				out = append(out, uuid)
			}
		}
	}
	return out
}

func (wd *watchdogs) judgeSilence(e *entry) {
	g := e.guard
	silent := g.silent(e.job)
	maps.DeleteFunc(g.spared, func(s speaker, _ int) bool {
		return !slices.ContainsFunc(silent, func(v quietVoice) bool { return v.speaker == s })
	})
	switch c := g.check; {
	case len(silent) == 0 && c != nil && c.who.step < 0:
		wd.dismiss(e, nil, c.who.text(e.job)+" beats again")
	case len(silent) == 0 && c != nil:
		wd.dismiss(e, nil, c.who.text(e.job)+" beats again, or has ended")
	case len(silent) == 0 || g.rests:
	case c == nil:
		wd.suspect(e, silent[0].speaker, silent[0].node)
	default:
		wd.weigh(e, c)
	}
}

// suspect asks every member that has cards to look at them.
func (wd *watchdogs) suspect(e *entry, who speaker, node string) {
	j, g := e.job, e.guard
	nodes := carded(j)
	wd.record.emitJob(j, who.event(api.Event{Type: api.EventStallSuspected, Node: node, Samples: wd.figures(j),
		Text: fmt.Sprintf("%s has not beaten for %s", who.text(j), when.Words(WatchOf(wd.set, j).StallTimeout))}))
	// no event has that number yet, and no check had it
	g.check = &check{round: wd.record.nextSeq, who: who, answers: map[string]*api.Finding{}}
	if len(nodes) == 0 {
		wd.spare(e, nil, "the gang has no cards that could show whether it works")
		return
	}
	wd.nodes.wake(nodes...)
	n := time.Duration(max(wd.set.StallConfirmSamples, 1))
	wd.clock.in(n*(wd.set.StallConfirmInterval+wd.set.Heartbeat)+answerPatience, watchTimer(j))
}

func watchTimer(j *Job) timer { return timer{kind: timerWatch, job: j.ID, epoch: j.Epoch} }

// weigh decides as soon as the answers allow: one that is not idle is enough to dismiss,
// and only all of them together confirm.
func (wd *watchdogs) weigh(e *entry, c *check) {
	nodes := carded(e.job)
	answered := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return c.answers[n] == nil })
	if len(answered) == 0 {
		return
	}
	f := watchdog.Merge(answered, func(n string) *api.Finding { return c.answers[n] })
	switch {
	case f.State != api.CardsQuiet:
		wd.spare(e, f, findingText(f))
	case len(answered) == len(nodes):
		wd.trip(e, api.CauseStalled, c.who.trigger(), fmt.Sprintf("%s was silent for %s; %s", c.who.text(e.job),
			when.Words(WatchOf(wd.set, e.job).StallTimeout), findingText(f)))
	}
}

// spare dismisses a suspicion for what was seen, or could not be. Whoever stays silent through
// so many of them in a row is told of once: nobody else will find a rank that hangs behind that.
func (wd *watchdogs) spare(e *entry, f *api.Finding, why string) {
	j, g := e.job, e.guard
	var blind []quietVoice
	for _, v := range g.silent(j) {
		if g.spared[v.speaker]++; g.spared[v.speaker] == watchdog.BlindWindows {
			blind = append(blind, v)
		}
	}
	wd.dismiss(e, f, why)
	if len(blind) == 0 {
		return
	}
	who := blind[0].text(j)
	if n := len(blind) - 1; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	wd.record.emitJob(j, blind[0].event(seen(f, api.Event{Type: api.EventWatchBlind, Node: blind[0].node,
		Text: fmt.Sprintf("%s: silent, and spared %d times in a row: %s", who, watchdog.BlindWindows, why)})))
}

// dismiss puts on record why a silent gang goes on. It is looked at again when it has been
// silent for as long once more.
func (wd *watchdogs) dismiss(e *entry, f *api.Finding, why string) {
	g := e.guard
	wd.record.emitJob(e.job, g.check.who.event(seen(f, api.Event{Type: api.EventStallDismissed, Text: why})))
	wd.nodes.wake(carded(e.job)...) // the question is taken back
	g.check, g.rests = nil, true
	wd.clock.in(WatchOf(wd.set, e.job).StallTimeout, watchTimer(e.job))
}

// watchTimeout: a node did not answer, or a dismissal has had its time.
func (wd *watchdogs) watchTimeout(e *entry, epoch int) {
	if e == nil || e.guard == nil || e.job.Epoch != epoch || e.job.Drain != nil {
		return
	}
	g := e.guard
	if c := g.check; c != nil {
		var mute []string
		for _, n := range carded(e.job) {
			if c.answers[n] == nil {
				mute = append(mute, n)
			}
		}
		wd.spare(e, nil, "no answer from "+strings.Join(mute, ", "))
		return
	}
	g.rests = false
	wd.guardJudge(e)
}

// judgeHang: every member's cards were quiet for the whole window.
func (wd *watchdogs) judgeHang(e *entry) {
	j, g := e.job, e.guard
	nodes := carded(j)
	hung := len(nodes) > 0
	for _, n := range nodes {
		s := g.seen[n]
		hung = hung && s != nil && s.Watch.Hung
	}
	if !hung {
		return
	}
	f := watchdog.Merge(nodes, func(n string) *api.Finding { return g.seen[n].Watch.Window })
	wd.trip(e, api.CauseGPUHang, -1, fmt.Sprintf("the cards did nothing for %s; %s", when.Words(WatchOf(wd.set, j).HangWindow),
		findingText(f)))
}

// judgeIdle: the gang is as idle as its busiest member.
func (wd *watchdogs) judgeIdle(e *entry) {
	j, g := e.job, e.guard
	nodes := carded(j)
	stage := 2
	for _, n := range nodes {
		s := g.seen[n]
		if s == nil {
			stage = 0
			break
		}
		stage = min(stage, s.Watch.Idle)
	}
	if len(nodes) == 0 {
		return
	}
	rules := WatchOf(wd.set, j)
	text := fmt.Sprintf("its cards have been idle for %s", when.Words(rules.IdleLimit))
	switch {
	case stage == 0 && g.warned:
		g.warned = false
		wd.record.emitJob(j, api.Event{Type: api.EventIdleOver, Text: "its cards work again"})
	case stage > 0 && !g.warned:
		g.warned = true
		if rules.IdleEnd > 0 {
			text += fmt.Sprintf("; it is ended when they stay so for %s more", when.Words(rules.IdleEnd))
		}
		wd.record.emitJob(j, api.Event{Type: api.EventIdleWarned, Samples: wd.figures(j), Text: text})
	}
	if stage == 2 {
		wd.trip(e, api.CauseIdle, -1, fmt.Sprintf("its cards were idle for %s, the site's limit of %s and %s more",
			when.Words(rules.IdleLimit+rules.IdleEnd), when.Words(rules.IdleLimit), when.Words(rules.IdleEnd)))
	}
}

// trip ends the epoch. What its cards were last seen doing is not shown any more: a node
// that stops answering now must not look busy.
func (wd *watchdogs) trip(e *entry, cause api.Cause, rank int, text string) {
	j := e.job
	for i := range j.Members {
		wd.clearFigures(wd.nodes.byName[j.Members[i].Node], memberCards(j, &j.Members[i]))
	}
	if cause == api.CauseIdle {
		wd.stops.drain(e, cause, rank, text)
		return
	}
	wd.stops.accident(e, Report{Cause: cause, Trigger: rank, Text: text})
}

func (wd *watchdogs) clearFigures(h *host, uuids []string) {
	if len(uuids) == 0 {
		return
	}
	res := *h.node.Res
	res.Cards = slices.Clone(res.Cards)
	for i := range res.Cards {
		if slices.Contains(uuids, res.Cards[i].UUID) {
			res.Cards[i].UsedBytes, res.Cards[i].Utilization = 0, 0
		}
	}
	wd.nodes.show(h).Res = res.Counted()
}

// unguard forgets a guard: the epoch ends, or a new one begins.
func (wd *watchdogs) unguard(e *entry) {
	if e.guard != nil {
		e.guard = nil
		wd.clock.timers.cancel(watchTimer(e.job))
	}
}

// blindfold forgets what the windows of a node showed: it can't say any more when that ends.
func (wd *watchdogs) blindfold(h *host) {
	for _, p := range h.members {
		if g := p.e.guard; g != nil && g.seen[h.node.Name] != nil {
			s := *g.seen[h.node.Name]
			s.Watch = api.WatchNote{}
			g.seen[h.node.Name] = &s
		}
	}
}

// checkOrder is the question to one member, nil when there is none.
func checkOrder(set *api.Settings, e *entry, m *Member) *api.Check {
	if e.guard == nil || e.guard.check == nil || len(memberCards(e.job, m)) == 0 {
		return nil
	}
	return &api.Check{Round: e.guard.check.round, Readings: set.StallConfirmSamples, Interval: set.StallConfirmInterval}
}

// figures are the newest of the cards of a gang, as far as they are known.
func (wd *watchdogs) figures(j *Job) []api.CardFinding {
	f := watchdog.Merge(carded(j), func(node string) *api.Finding {
		i := slices.IndexFunc(j.Members, func(m Member) bool { return m.Node == node })
		s := watchdog.NewSeries(watchdog.IdleOf(wd.set), memberCards(j, &j.Members[i]))
		s.Add(0, watchdog.Sight{Card: func(uuid string) watchdog.Reading { return lastFigure(wd.nodes.byName[node].node.Res, uuid) }})
		return s.Finding()
	})
	return f.Cards
}

func lastFigure(n *cluster.Node, uuid string) watchdog.Reading {
	if i := cardAt(n, uuid); i >= 0 {
		return watchdog.Reading{Utilization: n.Cards[i].Utilization, UsedBytes: n.Cards[i].UsedBytes}
	}
	return watchdog.Unknown
}

// findingText says what was measured.
func findingText(f *api.Finding) string {
	what := fmt.Sprintf("%s in %s", api.Count(f.Count, "card"), api.Count(f.Readings, "reading"))
	var c api.CardFinding
	if len(f.Cards) > 0 {
		c = f.Cards[0]
	}
	switch {
	case f.State == api.CardsQuiet && len(f.Cards) > 0:
		var moved int64
		for i := range f.Cards {
			moved = max(moved, f.Cards[i].MovedBytes)
		}
		return fmt.Sprintf("%s idle, used at most at %d%%, memory moved by at most %s%s", what, c.Utilization, sizeText(moved),
			hostsText(f.Hosts))
	case f.State == api.CardsQuiet:
		return what
	case c.State == api.CardsBusy:
		return fmt.Sprintf("not idle: %s was used at %d%% (%s)", cardText(&c), c.Utilization, what)
	case c.State == api.CardsMoving:
		return fmt.Sprintf("not still: the memory of %s moved by %s (%s)", cardText(&c), sizeText(c.MovedBytes), what)
	case len(f.Hosts) > 0 && f.Hosts[0].State == api.CardsMoving:
		h := &f.Hosts[0]
		return fmt.Sprintf("not still: the processes on %s moved %s of memory, and read and wrote %s (%s)", h.Node, sizeText(h.MemoryBytes),
			sizeText(h.IOBytes), what)
	case c.State == api.CardsUnknown:
		return fmt.Sprintf("not known: %s (%s)", unknownText(&c), what)
	case len(f.Hosts) > 0 && f.Hosts[0].State == api.CardsUnknown:
		return fmt.Sprintf("not known: what the processes on %s move could not be read (%s)", f.Hosts[0].Node, what)
	}
	return fmt.Sprintf("not known: no word of the cards (%s)", what)
}

// hostsText is the most that processes on one node did.
func hostsText(hosts []api.HostFinding) string {
	if len(hosts) == 0 {
		return ""
	}
	var memory, io int64
	for i := range hosts {
		memory, io = max(memory, hosts[i].MemoryBytes), max(io, hosts[i].IOBytes)
	}
	return fmt.Sprintf("; processes moved at most %s of memory, and read and wrote %s", sizeText(memory), sizeText(io))
}

func cardText(c *api.CardFinding) string {
	if c.Node == "" {
		return c.UUID
	}
	return c.Node + " " + c.UUID
}

// unknownText is why nothing can be told of a card.
func unknownText(c *api.CardFinding) string {
	if c.AtMost <= 0 {
		return cardText(c) + " could not be read"
	}
	others := c.Others
	if others == "" {
		others = "a process that the driver does not name"
	}
	return fmt.Sprintf("%s was used at up to %d%%, how much of it by this gang the driver does not say; also there is %s", cardText(c),
		c.AtMost, others)
}

// unseenText is why a node has seen nothing for long.
func unseenText(f *api.Finding) string {
	if f != nil {
		for i := range f.Cards {
			if c := &f.Cards[i]; c.State == api.CardsUnknown && c.AtMost > 0 {
				return "it can't be told what the gang does on its cards, " + unknownText(c) + ","
			}
		}
	}
	return "the cards could not be read"
}

func sizeText(n int64) string {
	if n < 0 {
		return "an unknown size"
	}
	if n > 0 && n < 1<<29 {
		return fmt.Sprintf("%.1fM", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1fG", float64(n)/(1<<30))
}
