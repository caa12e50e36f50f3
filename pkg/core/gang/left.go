package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gangd/pkg/api"
)

func findLeft(n *Node, k api.MemberKey) (int, bool) {
	return slices.BinarySearchFunc(n.Left, k, func(l Left, k api.MemberKey) int { return l.MemberKey.Compare(k) })
}

// leave keeps a member's grant after its gang went on without it.
func (fl *fleet) leave(h *host, l Left) {
	n := fl.nodes.edit(h)
	at, _ := findLeft(n, l.MemberKey)
	n.Left = slices.Insert(n.Left, at, l)
	fl.countLeft(l, 1)
	if l.Ran && n.State == api.NodeLost {
		fl.armLease(h, l.MemberKey)
	}
}

// KeepsOut says that its gang is not admitted again while it is there.
func (l *Left) KeepsOut() bool { return l.Ran || l.Epilog }

// countLeft keeps the gang out of the queue while a past epoch of it may live, or is being cleaned up after.
func (fl *fleet) countLeft(l Left, d int) {
	e := fl.jobs.byID[l.Job]
	if e == nil || !l.KeepsOut() {
		return
	}
	e.left += int32(d)
	if e.left == 0 {
		fl.queue.touch(e)
	}
}

// leftRan corrects a left member: it did start.
func (fl *fleet) leftRan(h *host, k api.MemberKey) {
	if at, ok := findLeft(h.node, k); ok && !h.node.Left[at].Ran {
		n := fl.nodes.edit(h)
		n.Left[at].Ran = true
		fl.countLeft(n.Left[at], 1)
	}
}

// keptOut says what keeps a gang out.
func (fl *fleet) keptOut(e *entry) *api.Error {
	j, doubt := e.job, "the site's epilog after epoch %d of job %d runs on %s"
	for _, h := range fl.nodes.sorted {
		if slices.ContainsFunc(h.node.Left, func(l Left) bool { return l.Job == j.ID && l.Ran }) {
			doubt = "epoch %d of job %d may still run on %s"
		}
	}
	return api.Errorf(api.CodeConflict, doubt, j.Epoch, j.ID, strings.Join(fl.fenced(j.ID), ", "))
}

const epilogText = "the site's epilog runs"

// leftCleaned: a member that its gang did not wait for is proven gone after all, and the site's epilog runs.
func (fl *fleet) leftCleaned(h *host, at int) bool {
	if l := &h.node.Left[at]; !l.Ran {
		return false
	}
	l := &fl.nodes.edit(h).Left[at]
	l.Ran, l.Epilog, l.Text = false, true, epilogText // it counts as it did
	fl.clock.timers.cancel(leaseTimer(h, l.MemberKey))
	delete(h.expired, l.MemberKey)
	return true
}

// abandonEpilogs: of a node that is lost nobody hears how its epilogs end. What is proven gone keeps no gang waiting, and
// the grant stays.
func (fl *fleet) abandonEpilogs(h *host) {
	for i := range h.node.Left {
		l := h.node.Left[i]
		if !l.Epilog {
			continue
		}
		fl.countLeft(l, -1)
		n := fl.nodes.edit(h)
		n.Left[i].Epilog, n.Left[i].Text = false, "its node was lost while the site's epilog ran"
	}
}

// leftGone: it is known gone, its grant is free.
func (fl *fleet) leftGone(h *host, k api.MemberKey) {
	at, ok := findLeft(h.node, k)
	if !ok {
		return
	}
	l := h.node.Left[at]
	n := fl.nodes.edit(h)
	n.Left = slices.Delete(n.Left, at, at+1)
	fl.clock.timers.cancel(leaseTimer(h, k))
	delete(h.expired, k)
	fl.nodes.wake(n.Name)
	fl.free(h, k)
	fl.countLeft(l, -1)
}

// free gives a grant back.
func (fl *fleet) free(h *host, k api.MemberKey) {
	n := fl.nodes.edit(h)
	n.Res = n.Res.Release(k)
	fl.nodes.room = true
	fl.refresh(h)
	fl.issueReboot(h)
}

func leaseTimer(h *host, k api.MemberKey) timer {
	return timer{kind: timerLease, job: k.Job, epoch: k.Epoch, node: h.node.Name}
}

// armLease: on a node out of reach a member that ran stops by itself when its lease ends.
// The lease was last renewed by a beat sent before the last contact, so that counting from
// the contact is late, never early.
func (fl *fleet) armLease(h *host, k api.MemberKey) {
	if fl.set.Lease <= 0 {
		return
	}
	grace := fl.set.Grace
	if e := fl.jobs.byID[k.Job]; e != nil {
		grace = graceOf(fl.set, e.job)
	}
	fl.clock.in(h.contact+fl.set.Lease+grace+fl.set.DrainSlack-fl.clock.now.Mono, leaseTimer(h, k))
}

// leaseOut counts a member gone by its lease, unless so many nodes are away that it is
// more likely this controller that is cut off; then it waits for the nodes to come back.
func (fl *fleet) leaseOut(h *host, k api.MemberKey) {
	if h == nil || h.node.State != api.NodeLost {
		return
	}
	if fl.nodes.cutOff() {
		if h.expired == nil {
			h.expired = map[api.MemberKey]struct{}{}
		}
		h.expired[k] = struct{}{}
		return
	}
	fl.record.emit(api.Event{Type: api.EventNodeFenced, Node: h.node.Name, Jobs: []int64{k.Job}, Text: "lease ran out"})
	fl.leftGone(h, k)
}

// A member that was counted gone (by its lease, or a person's word) and lives all the same, on
// a node that is back, holds what its grant stood for, and nobody knows how much of it. Until
// its node says that it is gone nothing new is placed there.

// lookForStray takes in a member of a hello, which says what is there and not what was.
func (fl *fleet) lookForStray(h *host, ma *api.MemberActual) {
	if ma.Phase != api.PhaseRunning && ma.Phase != api.PhaseStuck && ma.Epilog == "" {
		return
	}
	if _, held := h.node.Res.Grant(ma.MemberKey); held {
		return
	}
	if h.strays == nil {
		h.strays = map[api.MemberKey]struct{}{}
	}
	h.strays[ma.MemberKey] = struct{}{}
	fl.refresh(h)
}

func (fl *fleet) strayGone(h *host, k api.MemberKey) {
	if _, known := h.strays[k]; !known {
		return
	}
	delete(h.strays, k)
	fl.refresh(h)
	fl.issueReboot(h)
}

// strayText names the first of them.
func strayText(h *host) string {
	keys := slices.SortedFunc(maps.Keys(h.strays), api.MemberKey.Compare)
	return fmt.Sprintf("epoch %d of job %d, which was counted gone, still runs here", keys[0].Epoch, keys[0].Job)
}

// fenced names the nodes on which something of a past epoch of the job may still run, or the site's epilog does; it
// is not admitted before that is over.
func (fl *fleet) fenced(id int64) []string {
	e := fl.jobs.byID[id]
	if e == nil || e.left == 0 {
		return nil
	}
	var out []string
	for _, n := range fl.nodes.all() {
		if slices.ContainsFunc(n.Left, func(l Left) bool { return l.Job == id && l.KeepsOut() }) {
			out = append(out, n.Name)
		}
	}
	return out
}
