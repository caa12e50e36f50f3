package sinfo

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestStates: Slurm's words for what a node is here.
func TestStates(t *testing.T) {
	resv, maint := &api.NodeReservation{Name: "r"}, &api.NodeReservation{Name: "m", Maint: true}
	asked, asap, told := &api.RebootPending{}, &api.RebootPending{Asap: true}, &api.RebootPending{Issued: time.Unix(1, 0)}
	for _, c := range []struct {
		n             api.Node
		compact, long string
	}{
		{api.Node{State: api.NodeUp, CPUs: 8}, "idle", "idle"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 3}, "mix", "mixed"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 8}, "alloc", "allocated"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 1, Exclusive: true}, "alloc", "allocated"},
		{api.Node{State: api.NodeDraining, CPUs: 8, CPUsUsed: 1}, "drng", "draining"},
		{api.Node{State: api.NodeDraining, CPUs: 8}, "drain", "drained"},
		{api.Node{State: api.NodeDrained, CPUs: 8}, "drain", "drained"},
		{api.Node{State: api.NodeLost, CPUs: 8}, "down*", "down*"},
		{api.Node{State: api.NodeSuspect, CPUs: 8}, "idle*", "idle*"},
		{api.Node{State: api.NodeSuspect, CPUs: 8, CPUsUsed: 2}, "mix*", "mixed*"},
		{api.Node{State: api.NodeUnknown}, "unk*", "unknown*"},
		{api.Node{State: api.NodeUp, CPUs: 8, Reservation: resv}, "resv", "reserved"},
		{api.Node{State: api.NodeUp, CPUs: 8, Reservation: maint}, "maint", "maint"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 1, Reservation: resv}, "mix", "mixed"},
		{api.Node{State: api.NodeDrained, CPUs: 8, Reservation: maint}, "drain", "drained"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 8, Reboot: asked}, "alloc@", "allocated@"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 1, Reboot: asked}, "mix@", "mixed@"},
		{api.Node{State: api.NodeSuspect, CPUs: 8, CPUsUsed: 1, Reboot: asked}, "mix@", "mixed@"},
		{api.Node{State: api.NodeDraining, CPUs: 8, CPUsUsed: 1, Reboot: asap}, "drng@", "draining@"},
		{api.Node{State: api.NodeUp, CPUs: 8, Reboot: asked}, "boot", "reboot"},
		{api.Node{State: api.NodeSuspect, CPUs: 8, Reboot: asked}, "boot*", "reboot*"},
		{api.Node{State: api.NodeRebooting, CPUs: 8, Reboot: told}, "boot^", "reboot^"},
		{api.Node{State: api.NodeLost, CPUs: 8, Reboot: told}, "boot^", "reboot^"},
		{api.Node{State: api.NodeUp, CPUs: 8, Reservation: maint, Reboot: asked}, "maint", "maint"},
	} {
		if s := stateOf(&c.n); s.compact() != c.compact || s.long() != c.long {
			t.Errorf("%+v: %s %s, want %s %s", c.n, s.compact(), s.long(), c.compact, c.long)
		}
	}
	for list, want := range map[string]bool{"reboot": false, "reboot^": true, "idle": false, "down": true} {
		w, err := parseStates(list)
		if err != nil || w.takes(nodeState{base: "down", told: true}) != want {
			t.Errorf("-t %s of a node that reboots: %v, want %v (%v)", list, !want, want, err)
		}
	}
	for list, want := range map[string]bool{"idle": true, "i": true, "drain": true, "drained": true, "draining": false, "alloc": false, "down,idle": true} {
		w, err := parseStates(list)
		if err != nil || w.takes(nodeState{base: "idle", drain: true}) != want {
			t.Errorf("-t %s of a drained node: %v, want %v (%v)", list, !want, want, err)
		}
	}
}

// TestStateFlags: what is said beside the base is said of every node, also of one that is in use.
func TestStateFlags(t *testing.T) {
	resv, maint := &api.NodeReservation{Name: "r"}, &api.NodeReservation{Name: "m", Maint: true}
	for _, c := range []struct {
		n    api.Node
		want string
	}{
		{api.Node{State: api.NodeUp, CPUs: 8}, "IDLE"},
		{api.Node{State: api.NodeUp, CPUs: 8, Reservation: resv}, "IDLE+RESERVED"},
		{api.Node{State: api.NodeUp, CPUs: 8, Reservation: maint}, "IDLE+MAINTENANCE+RESERVED"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 1, Reservation: resv}, "MIXED+RESERVED"},
		{api.Node{State: api.NodeUp, CPUs: 8, CPUsUsed: 1, Exclusive: true}, "ALLOCATED"},
		{api.Node{State: api.NodeDraining, CPUs: 8, CPUsUsed: 1}, "MIXED+DRAIN"},
		{api.Node{State: api.NodeSuspect, CPUs: 8}, "IDLE+NOT_RESPONDING"},
		{api.Node{State: api.NodeLost, CPUs: 8}, "DOWN+NOT_RESPONDING"},
		{api.Node{State: api.NodeDrained, CPUs: 8, Down: true}, "DOWN"},
		{api.Node{State: api.NodeDrained, CPUs: 8, Reservation: maint, Reboot: &api.RebootPending{Asap: true}},
			"IDLE+DRAIN+MAINTENANCE+REBOOT_REQUESTED+RESERVED"},
		{api.Node{State: api.NodeRebooting, CPUs: 8, Reboot: &api.RebootPending{Issued: time.Unix(1, 0)}}, "DOWN+REBOOT_ISSUED"},
	} {
		if got := strings.Join(StateFlags(&c.n), "+"); got != c.want {
			t.Errorf("%+v: %s, want %s", c.n, got, c.want)
		}
	}
}

// Who drained a node stands where sinfo says why, and nobody where something else is why.
func TestReasonUser(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	n := &api.Node{State: api.NodeDrained, Reason: "fan", DrainUser: "root", DrainTime: at, LostSince: at.Add(time.Hour)}
	if reasonUser(n) != "root" || reasonUserLong(n) != "root(0)" || !reasonSince(n).Equal(at) {
		t.Errorf("%s, %s, %v", reasonUser(n), reasonUserLong(n), reasonSince(n))
	}
	n.State = api.NodeLost
	if reasonUser(n) != "Unknown" || reasonUserLong(n) != "Unknown" || !reasonSince(n).Equal(n.LostSince) {
		t.Errorf("lost: %s, %s, %v", reasonUser(n), reasonUserLong(n), reasonSince(n))
	}
	n = &api.Node{State: api.NodeDrained, Reason: "health: /scratch is full"}
	if reasonUser(n) != "Unknown" || !reasonSince(n).IsZero() {
		t.Errorf("by its health program: %s, %v", reasonUser(n), reasonSince(n))
	}
}
