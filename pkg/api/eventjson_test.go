package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEventsHaveWhatTheContractNames(t *testing.T) {
	rank := 0
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	head := `{"seq":1,"time":"2026-01-02T03:04:05Z","job_id":12,"epoch":1,`
	for want, ev := range map[string]Event{
		`"type":"drain_started","cause":"cancelled","trigger":null,"moved":0}`:      {Type: EventDrainStarted, Cause: CauseCancelled},
		`"type":"drain_started","cause":"crash","trigger":0,"moved":3}`:             {Type: EventDrainStarted, Cause: CauseCrash, Trigger: &rank, Moved: 3},
		`"type":"member_stopped","node":"n1","exit_codes":{"0":0},"forced":false}`:  {Type: EventMemberStopped, Node: "n1", ExitCodes: map[int]int{0: 0}},
		`"type":"drain_completed","cause":"crash","outcome":"blocked","seconds":0}`: {Type: EventDrainCompleted, Cause: CauseCrash, Outcome: "blocked"},
		`"type":"submitted","size":4}`:                                              {Type: EventSubmitted, Size: 4},
	} {
		ev.Seq, ev.Time, ev.JobID, ev.Epoch = 1, at, 12, 1
		b, err := json.Marshal(ev)
		if err != nil || string(b) != head+want {
			t.Errorf("%s, %v\nwant %s", b, err, head+want)
		}
		var back Event
		if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(back, ev) {
			t.Errorf("read back %+v, %v, want %+v", back, err, ev)
		}
	}
}
