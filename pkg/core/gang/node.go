package gang

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
)

// fleet is what becomes of nodes and their cards: contact, fitness, loss, and what gangs have left there.
type fleet struct {
	set          *api.Settings
	clock        *clock
	record       *record
	jobs         *jobs
	nodes        *nodes
	partitions   *partitions
	reservations *reservations
	queue        *queue
	launches     *launches
	stops        *stops
	watchdogs    *watchdogs
	reports      *reports
}

// OnlySilent says that a node is lost, and that nothing else keeps it out of service.
func OnlySilent(n *Node) bool { return !n.LostSince.IsZero() && outOfService(n) == "" }

// refresh derives the state of a node and whether it takes new work.
func (fl *fleet) refresh(h *host) {
	n := h.node
	state, reason := n.State, outOfService(n)
	switch {
	case OnlySilent(n):
		state, reason = api.NodeLost, fmt.Sprintf("silent for %s", when.Words(fl.set.NodeTimeout))
	case !n.LostSince.IsZero():
		state = api.NodeLost
	case Rebooting(n):
		state = api.NodeRebooting
	case !n.Connected:
		if state != api.NodeUnknown {
			state = api.NodeSuspect
		}
	case len(h.strays) > 0:
		state = api.NodeDraining
		reason = cmp.Or(reason, strayText(h))
	case reason != "" && len(n.Res.Grants) > 0:
		state = api.NodeDraining
	case reason != "":
		state = api.NodeDrained
	default:
		state = api.NodeUp
	}
	notReady := ""
	if state != api.NodeUp {
		notReady = string(state)
		if reason != "" {
			notReady += ": " + reason
		}
	}
	// Its word is missing, not its health: what waits for it goes on waiting.
	away := state == api.NodeUnknown || state == api.NodeSuspect
	if n.State == state && n.Reason == reason && n.Res.NotReady == notReady && n.Res.Ready == (state == api.NodeUp) && n.Res.Away == away {
		return
	}
	n = fl.nodes.show(h) // all of it follows from what is stored, and from whether it has a session
	n.State, n.Reason = state, reason
	res := *n.Res
	res.Ready, res.NotReady, res.Away = state == api.NodeUp, notReady, away
	n.Res = &res
	fl.nodes.room = true
	fl.launches.lookAgain()
}

// hello opens a session: what the node has is compared whole with what it should have.
func (fl *fleet) hello(ev NodeHello) Outcome {
	name := ev.Hello.Node
	if name == "" {
		return refused(api.Errorf(api.CodeInvalid, "the hello names no node"))
	}
	h := fl.nodes.byName[name]
	if h == nil {
		h = fl.nodes.add(name)
	}
	rebooted := h.node.BootID != "" && h.node.BootID != ev.Hello.BootID
	emptied := h.node.Hello.StateID != ev.Hello.StateID // it would not know what it ran
	wasCutOff, had := fl.nodes.cutOff(), h.node.Res
	asked := h.node.Reboot
	fl.connect(h, &ev)
	ev2 := api.Event{Type: api.EventNodeUp, Node: name}
	if rebooted {
		if ev2.Text = "rebooted"; asked != nil {
			ev2.Text += ", as asked"
		}
	}
	fl.record.emit(ev2)
	fl.reconcile(h, ev.Hello.Members, rebooted, emptied)
	fl.cardsMissing(h, had)
	gone := ""
	if rebooted {
		gone = name + ": " + nodeRebooted
	}
	fl.stops.fateOf(h, gone)
	fl.nodes.wake(name)
	if wasCutOff && !fl.nodes.cutOff() {
		fl.releaseExpired()
	}
	fl.rebootSaid(h, ev.Hello.Reboot)
	fl.rebootLate(h)
	fl.issueReboot(h)
	return applied()
}

func (fl *fleet) connect(h *host, ev *NodeHello) {
	was, n := *h.node, fl.nodes.show(h)
	if !n.Connected {
		fl.nodes.away--
	}
	n.Connected, n.BootID, n.LastSeen = true, ev.Hello.BootID, fl.clock.now.Wall
	h.since = fl.clock.now.Mono
	n.LostSince = time.Time{}
	fl.sick(h, ev.Hello.Health.Sick)
	fl.rebooted(h)
	features := ev.Hello.Features
	if n.Hello.Node != "" && slices.Equal(n.Hello.Features, features) {
		features = n.Res.Features // a person may have said others since the node's configuration was edited
	}
	n.Hello = lasting(ev.Hello)
	n.Res = resources(n.Res, ev)
	n.Res.Features = features
	n.Res.Partitions = fl.partitions.of(n.Name, ev.Partitions)
	// Thousands may come back at once, as they were.
	if !was.LostSince.IsZero() || !reflect.DeepEqual(n.Hello, was.Hello) || !slices.Equal(n.Res.Partitions, was.Res.Partitions) {
		fl.nodes.edit(h)
	}
	fl.nodes.room = true
	h.staleLogged, h.strays = nil, nil
	clear(h.expired)
	fl.clock.timers.cancel(timer{kind: timerLost, node: n.Name})
	for _, l := range n.Left {
		fl.clock.timers.cancel(leaseTimer(h, l.MemberKey))
	}
	fl.refresh(h)
}

// lasting is what a hello says of the node itself, and not of what it does and was told.
func lasting(h api.Hello) api.Hello {
	h.Members, h.Health, h.Load, h.Reboot = nil, api.NodeHealth{}, nil, nil
	h.LineageSeen, h.RunSeen, h.LineageProof, h.Made = 0, "", "", 0
	return h
}

// resources is the node as its hello describes it, with the grants it has and what was
// known of its cards. A grant on a card that is gone stays all the same: who holds it may
// still run.
func resources(old *cluster.Node, ev *NodeHello) *cluster.Node {
	hl := &ev.Hello
	res := &cluster.Node{Name: hl.Node, Address: hl.Address, Shape: hl.Shape.OrFlat(hl.CPUs),
		Features: hl.Features, Partitions: ev.Partitions, Ready: old.Ready, NotReady: old.NotReady}
	res.Has, res.Each = cluster.HasOf(hl)
	for _, info := range hl.Cards {
		c := cluster.Card{CardInfo: info, State: api.CardOK, Utilization: -1}
		if i := cardAt(old, info.UUID); i >= 0 {
			was := old.Cards[i]
			was.CardInfo = info
			c = was
		}
		res.Cards = append(res.Cards, c)
	}
	for _, c := range old.Cards { // a card that somebody has is not forgotten, it is bad
		if !slices.ContainsFunc(hl.Cards, func(i api.CardInfo) bool { return i.UUID == c.UUID }) && granted(old, c.UUID) {
			if c.Fault == "" && !hl.CardsUnread {
				c.Fault = missingCard
			}
			res.Cards = append(res.Cards, c.Judged())
		}
	}
	res = res.Counted()
	for _, g := range old.Grants {
		res = res.Restore(g)
	}
	return res
}

// cardsMissing judges what a node lists as it judges what it sees later: a card that a gang has, and that was there in the
// session before, has gone bad meanwhile.
func (fl *fleet) cardsMissing(h *host, had *cluster.Node) {
	for i := range h.node.Res.Cards {
		c := &h.node.Res.Cards[i]
		was := cardAt(had, c.UUID)
		if c.Fault != missingCard || was < 0 || had.Cards[was].Fault != "" {
			continue
		}
		fl.record.emit(api.Event{Type: api.EventCardState, Node: h.node.Name, Text: fmt.Sprintf("card %d %s: %s", c.Index, c.State, c.Reason)})
		fl.cardBroken(h, i)
	}
}

// missingCard is the fault of a card that a gang has and that its node does not list when it comes back.
const missingCard = "its node does not list it any more"

// reconcile compares the full list of a hello. What is missing in it is gone; what was
// only to be prepared is prepared when the node is told again, and so is what its node had to start by itself and, by
// a record that lasts as long as its processes, has never heard of.
func (fl *fleet) reconcile(h *host, members []api.MemberActual, rebooted, emptied bool) {
	listed := map[api.MemberKey]bool{}
	if !rebooted {
		for i := range members {
			listed[members[i].MemberKey] = true
		}
	}
	why := "missing on the node"
	if rebooted {
		why = nodeRebooted
	}
	maps.DeleteFunc(h.found, func(k api.MemberKey, _ struct{}) bool { return !listed[k] })
	for _, l := range slices.Clone(h.node.Left) {
		if !listed[l.MemberKey] {
			fl.leftGone(h, l.MemberKey)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.members), api.MemberKey.Compare) {
		p, ok := h.members[k]
		switch {
		case !ok || listed[k] || p.preparing():
		case p.e.job.Presumed != nil && !rebooted && !emptied:
			fl.launches.extendLaunch(p.e)
		default:
			fl.reports.gone(h, k, why)
		}
	}
	for i := range members {
		fl.reports.member(h, &members[i])
		fl.lookForStray(h, &members[i])
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.members), api.MemberKey.Compare) {
		if p, ok := h.members[k]; ok && reserved(p.e.job) {
			fl.launches.openPrepared(p.e) // which may have waited for this word alone
		}
	}
}

const nodeRebooted = "the node rebooted"

// sessionCut: by itself this ends nothing that runs, the daemon may just be restarting.
func (fl *fleet) sessionCut(ev NodeGone) Outcome {
	h := fl.nodes.byName[ev.Node]
	if h == nil {
		return refused(fl.nodes.unknown(ev.Node))
	}
	if !h.node.Connected {
		return ignored("no session")
	}
	n := fl.nodes.show(h)
	n.Connected, n.LastSeen = false, fl.clock.now.Wall
	h.contact = fl.clock.now.Mono
	fl.nodes.away++
	fl.refresh(h)
	fl.clock.in(fl.silenceOf(n), timer{kind: timerLost, node: n.Name})
	fl.record.emit(api.Event{Type: api.EventNodeSuspect, Node: n.Name})
	fl.watchdogs.blindfold(h)
	return applied()
}

// nodeLost: silent for too long. Its gangs drain; what ran there may still run.
func (fl *fleet) nodeLost(h *host) {
	if h == nil || h.node.Connected || !h.node.LostSince.IsZero() {
		return
	}
	n := fl.nodes.edit(h)
	n.LostSince = fl.clock.now.Wall
	fl.refresh(h)
	keys := slices.SortedFunc(maps.Keys(h.members), api.MemberKey.Compare)
	ev := api.Event{Type: api.EventNodeLost, Node: n.Name, LastSeen: n.LastSeen}
	for _, k := range keys {
		ev.Jobs = append(ev.Jobs, k.Job)
	}
	fl.record.emit(ev)
	fl.abandonEpilogs(h)
	for _, l := range n.Left {
		if l.Ran {
			fl.armLease(h, l.MemberKey)
		}
	}
	for _, k := range keys {
		if p, ok := h.members[k]; ok {
			fl.lostMember(h, p)
		}
	}
	fl.stops.fateOf(h, lostText(h))
}

func lostText(h *host) string { return fmt.Sprintf("node %s is lost", h.node.Name) }

func (fl *fleet) lostMember(h *host, p place) {
	e, text := p.e, lostText(h)
	switch e.job.Members[p.i].State {
	case MemberPreparing:
		fl.launches.rollback(e, text, []string{h.node.Name}, func(int) bool { return false })
		return
	}
	fl.stops.missing(e, p.i, text)
	if e.job.Drain != nil {
		fl.stops.drain(e, api.CauseNodeLost, -1, "") // on record in any case
	}
	fl.stops.fence(e, p.i, text)
}

// releaseExpired: most nodes are back, so those whose lease ran out meanwhile are gone.
func (fl *fleet) releaseExpired() {
	for _, h := range fl.nodes.sorted {
		for _, k := range slices.SortedFunc(maps.Keys(h.expired), api.MemberKey.Compare) {
			delete(h.expired, k)
			fl.leaseOut(h, k)
		}
	}
}

// fenceNode takes a person's word that nothing runs on a lost node any more.
func (fl *fleet) fenceNode(ev NodeFence) Outcome {
	h := fl.nodes.byName[ev.Node]
	switch {
	case h == nil:
		return refused(fl.nodes.unknown(ev.Node))
	case h.node.State != api.NodeLost:
		return refused(conflict("", "node %s is %s: only a lost node can be fenced", ev.Node, h.node.State))
	case len(h.node.Left) == 0:
		return ignored("nothing is waited for on this node")
	}
	out := api.Event{Type: api.EventNodeFenced, Node: ev.Node, Text: "by " + cmp.Or(ev.By, "hand")}
	lefts := slices.Clone(h.node.Left)
	for _, l := range lefts {
		out.Jobs = append(out.Jobs, l.Job)
	}
	fl.record.emit(out)
	for _, l := range lefts {
		fl.leftGone(h, l.MemberKey)
	}
	return applied()
}

// forgetNode drops a node that is lost, or drained and cut off: a machine that was scrapped is neither in tables nor an alarm for
// ever. Nothing of it may be waited for, or what lives there would be forgotten with it.
func (fl *fleet) forgetNode(ev NodeForget) Outcome {
	h := fl.nodes.byName[ev.Node]
	if h == nil {
		return refused(fl.nodes.unknown(ev.Node))
	}
	emptied := h.node.Admin != "" && !h.node.Connected // by a person who wants it gone, and cut off by now
	if h.node.State != api.NodeLost && !emptied {
		err := conflict("", "node %s is %s: only a lost node, or one that is drained and cut off, can be forgotten", ev.Node, h.node.State)
		err.Hint = "stop its gnoded, and wait until it is lost; with TLS, gangd token revoke " + ev.Node + " keeps it out"
		return refused(err)
	}
	if len(h.members)+len(h.node.Left) > 0 {
		err := conflict("", "node %s may still run something of %s", ev.Node, jobsOn(h))
		err.Hint = "when it is switched off: gctl node fence " + ev.Node
		return refused(err)
	}
	for j := range fl.jobs.all() {
		if admitted(j) && slices.ContainsFunc(j.Members, func(m Member) bool { return m.Node == ev.Node }) {
			err := conflict("", "job %d, which has not ended, has a part on node %s", j.ID, ev.Node)
			err.Hint = fmt.Sprintf("it goes with its other parts: gqueue -j %d", j.ID)
			return refused(err)
		}
	}
	for _, r := range fl.reservations.list() {
		if slices.Contains(r.Nodes, ev.Node) {
			err := conflict("", "node %s is of reservation %s", ev.Node, r.Name)
			err.Hint = "gctl delete reservation " + r.Name + ", or give it other nodes"
			return refused(err)
		}
	}
	for _, kind := range []timerKind{timerLost, timerClear, timerReboot} {
		fl.clock.timers.cancel(timer{kind: kind, node: ev.Node})
	}
	delete(fl.nodes.byName, ev.Node)
	at := fl.nodes.at(ev.Node)
	fl.nodes.sorted = slices.Delete(fl.nodes.sorted, at, at+1)
	fl.nodes.away--
	fl.nodes.dirty = slices.DeleteFunc(fl.nodes.dirty, func(d *host) bool { return d == h })
	fl.nodes.forgot = append(fl.nodes.forgot, ev.Node)
	fl.nodes.room = true
	fl.launches.lookAgain()
	fl.record.emit(api.Event{Type: api.EventNodeForgotten, Node: ev.Node, Text: "by " + cmp.Or(ev.By, "hand")})
	return applied()
}

// jobsOn names the jobs of which something is on a node.
func jobsOn(h *host) string {
	var ids []int64
	for k := range h.members {
		ids = append(ids, k.Job)
	}
	for _, l := range h.node.Left {
		ids = append(ids, l.Job)
	}
	text := "job"
	for i, id := range unique(ids) {
		if text += fmt.Sprintf(" %d", id); i == 9 {
			return text + " and others"
		}
	}
	return text
}

// fenceable names the lost nodes on which ranks that keep their gangs waiting may still
// run, for the site's fence hook. None while most nodes are away: this controller is the
// likely victim then, and the hook would cut the power of all that it can not see.
func (fl *fleet) fenceable() []string {
	if fl.nodes.cutOff() {
		return nil
	}
	var out []string
	for _, n := range fl.nodes.all() {
		if n.State == api.NodeLost && slices.ContainsFunc(n.Left, func(l Left) bool { return l.Ran }) {
			out = append(out, n.Name)
		}
	}
	return out
}

func (fl *fleet) drainNode(ev NodeDrain) Outcome {
	h := fl.nodes.byName[ev.Node]
	reason := cmp.Or(ev.Reason, "no reason given")
	switch {
	case h == nil:
		return refused(fl.nodes.unknown(ev.Node))
	case h.node.Admin == reason && h.node.Down == ev.Down && (ev.Down || h.node.DrainBy.Equal(ev.By)):
		return ignored("out of service already")
	}
	if ev.Down {
		ev.By = fl.clock.now.Wall
	}
	fl.takeOut(h, ev.User, reason, ev.By, ev.Down)
	return applied()
}

func (fl *fleet) takeOut(h *host, user, reason string, by time.Time, down bool) {
	n := fl.nodes.edit(h)
	n.Admin, n.DrainUser, n.DrainTime, n.DrainBy, n.Down = reason, user, fl.clock.now.Wall, by, down
	if r := n.Reboot; r != nil && r.Then == api.RebootResume { // which was before this
		stays := *r
		stays.Then = api.RebootAsBefore
		n.Reboot = &stays
	}
	fl.refresh(h)
	text := reason
	switch {
	case down:
		text += "; down"
	case !by.IsZero():
		text += "; to be empty by " + timeText(by)
	}
	fl.record.emit(api.Event{Type: api.EventNodeDrained, Node: n.Name, Text: text})
	fl.armClear(h)
}

// setFeatures is what a person says a node has. What it says of itself stays in its hello, and
// holds again when it says something else.
func (fl *fleet) setFeatures(ev NodeFeatures) Outcome {
	h := fl.nodes.byName[ev.Node]
	switch {
	case h == nil:
		return refused(fl.nodes.unknown(ev.Node))
	case slices.Equal(h.node.Res.Features, ev.Features):
		return ignored("it has them already")
	}
	res := *h.node.Res
	res.Features = ev.Features
	fl.nodes.edit(h).Res = &res
	fl.nodes.room = true
	fl.record.emit(api.Event{Type: api.EventNodeFeatures, Node: ev.Node, Text: strings.Join(ev.Features, ",") + " (" +
		cmp.Or(ev.By, "by hand") + ")"})
	return applied()
}

func (fl *fleet) resumeNode(ev NodeResume) Outcome {
	h := fl.nodes.byName[ev.Node]
	switch {
	case h == nil:
		return refused(fl.nodes.unknown(ev.Node))
	case h.node.Admin == "" && h.node.Sick != "":
		return refused(&api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("node %s is out of service by its own check: %s", ev.Node,
			h.node.Sick),
			Hint: "it comes back by itself when that is mended"})
	case h.node.Admin == "" && h.node.Reboot != nil && (h.node.Reboot.Asap || Rebooting(h.node)):
		return refused(conflict("gctl node reboot --cancel "+ev.Node+" takes that back until it was told to",
			"node %s is out of service for its %s", ev.Node, h.node.Reboot.text()))
	case h.node.Admin == "" && len(h.node.Strikes) == 0:
		return ignored("in service already")
	}
	n := fl.nodes.edit(h) // of one that is in service the strikes go
	n.Admin, n.DrainUser, n.DrainTime, n.DrainBy, n.Down, n.Strikes = "", "", time.Time{}, time.Time{}, false, nil
	fl.armClear(h)
	fl.refresh(h)
	fl.record.emit(api.Event{Type: api.EventNodeResumed, Node: n.Name})
	return applied()
}

func (fl *fleet) restoreNode(saved *Node) {
	n := *saved
	n.Connected = false
	if n.LostSince.IsZero() {
		n.State = api.NodeUnknown
	}
	if n.Res == nil {
		n.Res = &cluster.Node{Name: n.Name}
	}
	h := fl.nodes.add(n.Name)
	h.node, h.contact = &n, fl.clock.now.Mono
	if n.LostSince.IsZero() {
		fl.clock.in(fl.silenceOf(&n), timer{kind: timerLost, node: n.Name})
	}
	fl.armReboot(h)
}

// restoreGrants makes the grants of a node anew from who is on it, so that the two can't
// disagree; only those of left members are taken as they were stored.
func (fl *fleet) restoreGrants(h *host) {
	n := h.node
	res := n.Res.Emptied()
	for _, l := range n.Left {
		if g, ok := n.Res.Grant(l.MemberKey); ok {
			res = res.Restore(g)
		}
		fl.countLeft(l, 1)
		if l.Ran && !n.LostSince.IsZero() {
			fl.armLease(h, l.MemberKey)
		}
	}
	for k, p := range h.members {
		j := p.e.job
		at := func(rank int) cluster.Slot { return j.Ranks[rank].Slot }
		res = res.Restore(cluster.GrantOf(p.e.asked.ask, k, j.Members[p.i].Ranks, at, endsBy(fl.set, j, baseLimit(j), j.ReservedAt)))
	}
	n.Res = res
	fl.refresh(h)
	fl.armClear(h)
	h.owned, h.stored, fl.nodes.dirty = false, false, nil
}

// health takes what a node's health program said.
func (fl *fleet) health(h *host, now *api.NodeHealth) Outcome {
	if now == nil || h.node.Sick == now.Sick {
		return ignored("nothing new")
	}
	fl.sick(h, now.Sick)
	fl.refresh(h)
	return applied()
}

// sick records a new word of the health program. The caller refreshes.
func (fl *fleet) sick(h *host, text string) {
	if h.node.Sick == text {
		return
	}
	fl.nodes.edit(h).Sick = text
	fl.record.emit(api.Event{Type: api.EventNodeHealth, Node: h.node.Name, Text: text})
}

// outOfService says why a node that is in contact takes no new work; empty: it does. A
// person's word counts first.
func outOfService(n *Node) string {
	switch {
	case n.Admin != "":
		return n.Admin
	case n.Reboot != nil && (n.Reboot.Asap || Rebooting(n)):
		return n.Reboot.text()
	case n.Sick != "":
		return "health: " + n.Sick
	}
	return ""
}
