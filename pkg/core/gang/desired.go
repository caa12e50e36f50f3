package gang

import (
	"cmp"
	"maps"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// desired is all that a node shall have: what is not in here must go. What is left of epochs that are over is listed too,
// without a body: the node may never have been told of it, and then nothing but a question makes it say that it has
// nothing. Its cost is that of the node's members. Nothing in it is changed later.
func (ns *nodes) desired(node string) []api.Assignment {
	h := ns.byName[node]
	if h == nil {
		return nil
	}
	var out []api.Assignment
	for _, k := range slices.SortedFunc(maps.Keys(h.members), api.MemberKey.Compare) {
		p := h.members[k]
		j := p.e.job
		a := ns.assignment(p.e, k, &j.Members[p.i])
		if a.Gate != nil {
			a.Steps = stepOrders(ns.set, j, p.i)
		}
		out = append(out, a)
	}
	for _, l := range h.node.Left {
		out = append(out, api.Assignment{MemberKey: l.MemberKey})
	}
	return out
}

func (ns *nodes) assignment(e *entry, k api.MemberKey, m *Member) api.Assignment {
	a := api.Assignment{MemberKey: k, Body: ns.bodyOf(e), Stop: stopOrder(ns.set, e.job, m)}
	if a.Stop != nil {
		a.Stop.Asker = e.asker
	}
	// A member that has to stop is never told to start as well: where the gate had not been
	// seen open before, it stays shut.
	a.Passed = working(m.State) && !m.Passed && slices.ContainsFunc(e.job.Members, func(o Member) bool { return o.Passed })
	if a.Stop == nil && working(m.State) {
		a.Gate = &api.Gate{MasterPort: e.job.Members[0].Port, TimeLimit: cmp.Or(TimeLimit(e.job), api.NoLimit), Alone: e.job.Presumed != nil}
		a.Check = checkOrder(ns.set, e, m)
	}
	return a
}

// stopOrder is nil where the member shall run, or is only asked to prove that it is over.
func stopOrder(set *api.Settings, j *Job, m *Member) *api.Stop {
	d := j.Drain
	if d == nil || m.State != MemberStopping {
		return nil
	}
	if d.Cause == api.CauseCompleted && endedItself(j, m) {
		return nil
	}
	s := &api.Stop{Cause: d.Cause, Text: d.Text, Signal: "TERM", Lead: d.Lead, Grace: graceOf(set, j)}
	if j.Spec.StopSignal != "" {
		s.Signal = j.Spec.StopSignal
	}
	if d.Cause == api.CauseStalled || d.Cause == api.CauseGPUHang {
		// Within the slack, so that a drain takes no longer than it may.
		s.Dump = min(set.StallDump, set.DrainSlack/2)
	}
	return s
}

// endedItself: the member has processes, and each had ended before anything stopped it.
func endedItself(j *Job, m *Member) bool {
	had := false
	for _, r := range m.Ranks {
		if !hasProcess(j, r) {
			continue
		}
		if s := j.Ranks[r].State; s == api.RankPreempting || s == api.RankPreempted {
			return false
		}
		had = true
	}
	return had
}

// bodyOf is made once an epoch: of a gang on a thousand nodes each is sent the same. Its time
// limit is the one at the reservation also when it is made anew, after a restart of a gang
// that runs; the gate has the one that counts from the start.
func (ns *nodes) bodyOf(e *entry) *api.AssignmentBody {
	if e.body != nil {
		return e.body
	}
	j := e.job
	b := &api.AssignmentBody{
		SpecHash: j.SpecHash, Name: j.Name, User: j.User, UID: j.UID, GID: j.GID, Partition: RunsIn(j, ns.find),
		ArrayJobID: j.ArrayID, RestartCount: restartCount(j), TimeLimit: timeLimitFrom(j, j.ReservedAt), Grace: graceOf(ns.set, j),
		Watch: WatchOf(ns.set, j), Checkpoint: HandOver(j), Image: j.Image, Ports: hostlist.Ranges(j.Ports),
		Ranks: make([]api.RankPlace, len(j.Ranks)),
	}
	if j.ArrayID != 0 {
		index := j.ArrayIndex
		b.ArrayIndex = &index
	}
	if a := j.Array; a != nil {
		b.ArrayMin, b.ArrayMax, b.ArrayStep, b.ArrayCount = a.Min, a.Max, a.Step, a.Count
	}
	for i := range j.Members {
		m := &j.Members[i]
		b.Nodes = append(b.Nodes, api.Place{Name: m.Node, Address: ns.byName[m.Node].node.Hello.Address, Switches: ns.paths[m.Node],
			CPUs: m.CPUs})
		for _, r := range m.Ranks {
			b.Ranks[r] = api.RankPlace{Node: i, Cards: j.Ranks[r].Slot.Cards}
		}
	}
	if len(b.Nodes) > 1 { // one node has all of it
		b.Layout = api.NewLayout(b.Nodes, b.Ranks)
	}
	e.body = b
	return b
}

// restartCount is what the ranks of the current epoch are told: while it is prepared it
// has not been counted yet.
func restartCount(j *Job) int {
	if reserved(j) && !j.Start.IsZero() {
		return j.Restarts + 1
	}
	return j.Restarts
}
