package gang

import (
	"cmp"
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// Purpose: a reboot that was asked for, from then until the node is back under another run of its kernel.
// Input: a person's word, grants that become free, hellos, time.
// Output: an order to the node, events, whether the node takes new work.
// Caveats: a node that is told to reboot has nothing, and gets nothing before it has said hello with another boot id, well by
// its own checks. Its daemon may be told several times of one reboot, and by another controller: what names it is the boot
// that is to end.

// Reboot is one that was asked for. It is never changed, only replaced.
type Reboot struct {
	Boot   string         `json:"boot"` // the run of the node's kernel that is to end
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Asked  time.Time      `json:"asked"`
	Asap   bool           `json:"asap,omitempty"` // the node takes no new work until then
	Then   api.RebootThen `json:"then,omitempty"`
	Issued time.Time      `json:"issued,omitzero"` // the node was told to; zero: it waits until nothing runs there
}

// text says it for people.
func (r *Reboot) text() string {
	text := "reboot"
	if r.By != "" {
		text += " asked by " + r.By
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// Rebooting: the node was told to, and has not said hello since by another run of its kernel.
func Rebooting(n *Node) bool { return n.Reboot != nil && !n.Reboot.Issued.IsZero() }

// RebootOrder is what the node is to be told of it; nil: nothing.
func RebootOrder(n *Node) *api.RebootOrder {
	if n == nil || !Rebooting(n) {
		return nil
	}
	return &api.RebootOrder{Boot: n.Reboot.Boot, Asked: n.Reboot.Asked}
}

// askReboot takes a person's wish. A later one replaces it until the node was told.
func (fl *fleet) askReboot(ev NodeReboot) Outcome {
	h := fl.nodes.byName[ev.Node]
	if h == nil {
		return refused(fl.nodes.unknown(ev.Node))
	}
	n, old := h.node, h.node.Reboot
	switch {
	case n.State == api.NodeLost || n.BootID == "":
		return refused(conflict("gctl node reboot when it is back", "node %s is %s: nobody there can be told to reboot", n.Name, n.State))
	case !n.Hello.Reboots:
		return refused(conflict("name one in its gnoded.toml: reboot_program", "node %s has no program that reboots it", n.Name).About(
			api.ReasonNoReboot, n.Name))
	case Rebooting(n):
		return ignored("it was told to reboot already")
	case old != nil && old.Asap == ev.Asap && old.Then == ev.Then && old.Reason == ev.Reason:
		return ignored("it is asked for already")
	}
	r := &Reboot{Boot: n.BootID, By: ev.By, Reason: ev.Reason, Asked: fl.clock.now.Wall, Asap: ev.Asap, Then: ev.Then}
	fl.nodes.edit(h).Reboot = r
	fl.refresh(h)
	when := "when nothing runs there"
	if r.Asap {
		when = "as soon as what runs there has ended"
	}
	fl.record.emit(api.Event{Type: api.EventNodeRebootAsked, Node: n.Name, Text: when + ": " + r.text()})
	fl.issueReboot(h)
	return applied()
}

func (fl *fleet) cancelReboot(ev NodeRebootCancel) Outcome {
	h := fl.nodes.byName[ev.Node]
	switch {
	case h == nil:
		return refused(fl.nodes.unknown(ev.Node))
	case h.node.Reboot == nil:
		return ignored("no reboot was asked for")
	case Rebooting(h.node):
		return refused(conflict("wait until it is back: ginfo", "node %s was told to reboot at %s: that can't be taken back", ev.Node,
			timeText(h.node.Reboot.Issued)))
	}
	fl.nodes.edit(h).Reboot = nil
	fl.refresh(h)
	fl.record.emit(api.Event{Type: api.EventNodeRebootCancelled, Node: ev.Node, Text: "by " + cmp.Or(ev.By, "hand")})
	return applied()
}

// issueReboot tells a node of which a reboot is asked for, once nothing is there that it would end.
func (fl *fleet) issueReboot(h *host) {
	n := h.node
	if n.Reboot == nil || Rebooting(n) || !n.Connected || len(n.Res.Grants) > 0 || len(h.strays) > 0 {
		return
	}
	r := *n.Reboot
	r.Issued = fl.clock.now.Wall
	fl.nodes.edit(h).Reboot = &r
	fl.armReboot(h)
	fl.refresh(h)
	fl.record.emit(api.Event{Type: api.EventNodeRebooting, Node: n.Name, Text: r.text()})
	fl.nodes.wake(n.Name)
}

// armReboot: the node has so long to come back.
func (fl *fleet) armReboot(h *host) {
	if Rebooting(h.node) {
		fl.clock.in(fl.rebootLeft(h.node), rebootTimer(h))
	}
}

func (fl *fleet) rebootLeft(n *Node) time.Duration {
	return n.Reboot.Issued.Add(fl.set.RebootTimeout).Sub(fl.clock.now.Wall)
}

func rebootTimer(h *host) timer { return timer{kind: timerReboot, node: h.node.Name} }

// silenceOf is for how long a node may be silent before it is lost: one that reboots has the time for that.
func (fl *fleet) silenceOf(n *Node) time.Duration {
	if !Rebooting(n) {
		return fl.set.NodeTimeout
	}
	return max(fl.set.NodeTimeout, fl.rebootLeft(n))
}

// rebootLate: its time is over. A node that is away is lost by its silence; of one that is there, nothing came of the reboot.
func (fl *fleet) rebootLate(h *host) {
	if h == nil || !Rebooting(h.node) || !h.node.Connected {
		return
	}
	if fl.rebootLeft(h.node) > 0 { // a wall time may be farther away again than when the timer was set
		fl.armReboot(h)
		return
	}
	fl.rebootFailed(h, fmt.Sprintf("it runs on as before %s after it was told to", when.Words(fl.set.RebootTimeout)))
}

// rebootFailed keeps the node out of service for a person to look at.
func (fl *fleet) rebootFailed(h *host, why string) {
	r := h.node.Reboot
	n := fl.nodes.edit(h)
	n.Reboot = nil
	fl.clock.timers.cancel(rebootTimer(h))
	text := "reboot failed: " + why
	if n.Admin != "" {
		text = n.Admin + "; " + text
	} else {
		n.DrainUser, n.DrainTime = cmp.Or(r.By, Breaker), fl.clock.now.Wall
	}
	n.Admin = text
	fl.refresh(h)
	fl.record.emit(api.Event{Type: api.EventNodeRebootFailed, Node: n.Name, Text: why})
}

// rebootSaid takes what a node says of the reboot that it was told of.
func (fl *fleet) rebootSaid(h *host, a *api.RebootActual) Outcome {
	if a == nil || !Rebooting(h.node) || !a.Same(RebootOrder(h.node)) {
		return ignored("nothing new")
	}
	fl.rebootFailed(h, a.Failed)
	return applied()
}

// rebooted: the node has said hello by another run of its kernel, so whatever was asked for has happened. The caller refreshes.
func (fl *fleet) rebooted(h *host) {
	r := h.node.Reboot
	if r == nil || r.Boot == h.node.BootID {
		return
	}
	n := fl.nodes.edit(h)
	n.Reboot = nil
	fl.clock.timers.cancel(rebootTimer(h))
	switch r.Then {
	case api.RebootResume:
		n.Admin, n.DrainUser, n.DrainTime, n.DrainBy, n.Down, n.Strikes = "", "", time.Time{}, time.Time{}, false, nil
	case api.RebootDown:
		now := fl.clock.now.Wall
		n.Admin, n.DrainUser, n.DrainTime, n.DrainBy, n.Down = cmp.Or(r.Reason, "down after its reboot"), r.By, now, now, true
	}
}
