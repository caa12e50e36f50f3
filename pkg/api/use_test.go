package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What moves of a node is taken out and put back, and what is left is the same for two that differ in nothing else.
func TestNodeUse(t *testing.T) {
	make := func(used int64, busy int, jobs ...int64) *Node {
		return &Node{Name: "n1", State: NodeUp, CPUsUsed: int(used), MemoryUsed: used, Exclusive: used > 3, Jobs: append([]int64{}, jobs...), Cards: []Card{{Index: 0, VRAMBytes: 80 << 30, UsedBytes: used << 20, StrangersBytes: used << 20, Utilization: busy, ReservedBytes: 7 << 20, Jobs: append([]int64{}, jobs...)}}}
	}
	one, other, want := make(5, 40, 12, 13), make(2, -1), make(5, 40, 12, 13)
	u := one.Use()
	other.Use()
	if d := cmp.Diff(one, other); d != "" {
		t.Error(d)
	}
	b, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	var back NodeUse
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	back.Apply(other)
	if d := cmp.Diff(want, other); d != "" {
		t.Errorf("%s\n%s", b, d)
	}
	few := make(1, 1)
	few.Cards[0].StrangersBytes = 3 // some bytes are not none
	if u := few.Use(); u.Cards[0][1] != 1 {
		t.Errorf("%v", u.Cards)
	}
	(&NodeUse{Cards: [][]int64{{1}}}).Apply(few) // what is cut short changes nothing
}

func TestQueueOrder(t *testing.T) {
	o := QueueOrder{Order: "4-6,9,1", Starts: []QueueStart{{Job: 4}, {Job: 9, At: time.Unix(1700000000, 0), Sure: true}}}
	b, err := json.Marshal(o)
	if err != nil || string(b) != `{"order":"4-6,9,1","starts":[[4,1,0],[9,1700000000,1]]}` {
		t.Fatalf("%s %v", b, err)
	}
	var back QueueOrder
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(o, back); d != "" {
		t.Error(d)
	}
	for text, want := range map[string][]int64{"": nil, "7": {7}, "4-6,9,1": {4, 5, 6, 9, 1}, "1-99999999999": nil, "2,x": {2}} {
		if got := (&QueueOrder{Order: text}).Jobs(); !cmp.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}
