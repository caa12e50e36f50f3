package sinfo

import (
	"testing"

	"gangd/pkg/api"
)

// TestStates: Slurm's words for what a node is here.
func TestStates(t *testing.T) {
	resv, maint := &api.NodeReservation{Name: "r"}, &api.NodeReservation{Name: "m", Maint: true}
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
	} {
		if s := stateOf(&c.n); s.compact() != c.compact || s.long() != c.long {
			t.Errorf("%+v: %s %s, want %s %s", c.n, s.compact(), s.long(), c.compact, c.long)
		}
	}
	for list, want := range map[string]bool{"idle": true, "i": true, "drain": true, "drained": true, "draining": false, "alloc": false, "down,idle": true} {
		w, err := parseStates(list)
		if err != nil || w.takes(nodeState{base: "idle", drain: true}) != want {
			t.Errorf("-t %s of a drained node: %v, want %v (%v)", list, !want, want, err)
		}
	}
}
