package cli

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestStopLines(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2030, 1, 1, 14, 2, s, 0, time.Local) }
	one, two := 1, 2
	events := []api.Event{
		{JobID: 3, Time: at(0), Type: api.EventSubmitted},
		{JobID: 3, Epoch: 1, Time: at(0), Type: api.EventStarted},
		{JobID: 3, Epoch: 1, Time: at(5), Type: api.EventDrainStarted, Cause: api.CausePreempted},
		{JobID: 3, Epoch: 1, Time: at(5), Type: api.EventNotice, Signal: "USR1", Cause: api.CausePreempted},
		{JobID: 3, Epoch: 1, Time: at(6), Type: api.EventAcknowledged, Acknowledged: 1, Size: 4},
		{JobID: 3, Epoch: 1, Time: at(7), Type: api.EventAcknowledged, Acknowledged: 3, Size: 4},
		{JobID: 3, Epoch: 1, Time: at(9), Type: api.EventMemberStopped, Node: "n1"},
		{JobID: 3, Epoch: 1, Time: at(20), Type: api.EventMemberStopped, Node: "n3", Forced: true},
		{JobID: 3, Epoch: 1, Time: at(20), Type: api.EventMemberStopped, Node: "n2", Forced: true},
		{JobID: 3, Epoch: 1, Time: at(20), Type: api.EventDrainCompleted, Outcome: "blocked"},
		{JobID: 3, Epoch: 2, Time: at(30), Type: api.EventDrainStarted, Cause: api.CauseCrash, Trigger: &one},
		{JobID: 3, Epoch: 2, Time: at(40), Type: api.EventMemberStopped, Node: "n2", Forced: true, Text: "node n2 is lost"},
		{JobID: 3, Epoch: 2, Time: at(40), Type: api.EventDrainCompleted, Outcome: "blocked"},
		{JobID: 3, Epoch: 3, Time: at(41), Type: api.EventNotice, Signal: "TERM", Cause: api.CauseTimeout},
		{JobID: 3, Epoch: 3, Time: at(51), Type: api.EventDrainStarted, Cause: api.CauseTimeout},
		{JobID: 3, Epoch: 4, Time: at(52), Type: api.EventStarted},
		{JobID: 3, Epoch: 5, Time: at(53), Type: api.EventNotice, Signal: "TERM", Cause: api.CauseTimeout},
		{JobID: 3, Epoch: 6, Time: at(54), Type: api.EventDrainStarted, Cause: api.CauseRequeued},
		{JobID: 3, Epoch: 6, Time: at(54), Type: api.EventNotice, Signal: "USR1", Cause: api.CauseRequeued},
		{JobID: 3, Epoch: 6, Time: at(54), Type: api.EventUnheard},
		{JobID: 3, Epoch: 6, Time: at(55), Type: api.EventDrainCompleted, Outcome: "blocked"},
		{JobID: 3, Epoch: 7, Time: at(56), Type: api.EventDrainStarted, Cause: api.CauseCrash, Trigger: &one},
		{JobID: 3, Epoch: 7, Time: at(57), Type: api.EventDrainCompleted, Cause: api.CauseNodeLost, Trigger: &two, Outcome: "blocked"},
	}
	want := []string{
		"attempt 1, preempted: stopped 14:02:05, notice USR1 14:02:05, acknowledged 3/4 14:02:07, forced 14:02:20 on n[2-3], over 14:02:20: blocked",
		"attempt 2, crash of rank 1: stopped 14:02:30, given up 14:02:40 on n2, over 14:02:40: blocked",
		"attempt 3, timeout: notice TERM 14:02:41, stopped 14:02:51",
		"attempt 5, timeout: notice TERM 14:02:53",
		"attempt 6, requeued: stopped 14:02:54, notice USR1 14:02:54, nobody listened, over 14:02:55: blocked",
		"attempt 7, node-lost of rank 2: stopped 14:02:56, over 14:02:57: blocked", // and not what was reported first
	}
	if got := stopLines(events); !slices.Equal(got, want) {
		for _, l := range got {
			t.Log(l)
		}
		t.Errorf("want\n%q", want)
	}
}
