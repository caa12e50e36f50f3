package gang

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// seenOn is where the ranks of a node are, each by its innermost frame.
func seenOn(frames map[int]string) *api.MemberStacks {
	m := &api.MemberStacks{}
	for _, r := range slices.Sorted(maps.Keys(frames)) {
		f := frames[r]
		m.Groups = append(m.Groups, api.StackGroup{Kind: "python3", Count: 1, Processes: []api.StackProcess{{Rank: r, PID: 100 + r}},
			Threads: []api.ThreadStack{{Does: api.DoesLock, Frames: []string{f, "main (train.py)"}}}})
	}
	return m
}

const oddWords = "rank 3 on n2 is in recv (c10d.py), 3 others are in all_reduce (c10d.py)"

// hang has a gang of four ranks on two nodes stopped for a cause.
func hang(b *bench, cause api.Cause, at ...*api.MemberStacks) int64 {
	s := timed(4, time.Hour)
	s.MinNodes, s.MaxNodes = 2, 2
	s.Notify = []api.Notify{{To: "ada@uni.example", Types: []api.NotifyType{api.NotifyStall, api.NotifyFail, api.NotifyTimeLimit}}}
	id := b.submit(s)
	b.start(id)
	b.stopOf(id, cause, at...)
	return id
}

func (b *bench) stopOf(id int64, cause api.Cause, at ...*api.MemberStacks) {
	for i, node := range []string{"n1", "n2"} {
		b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: cause, Stacks: at[i]})
	}
}

func (b *bench) story() string { return strings.Join(eventsSince(b), "\n") }

// TestStacksName: the rank that is elsewhere is in the event, in the notice, in the end and with the attempt, for each cause that is a hang.
func TestStacksName(t *testing.T) {
	for _, cause := range []api.Cause{api.CauseStalled, api.CauseGPUHang, api.CauseTimeout} {
		t.Run(string(cause), func(t *testing.T) {
			b := newBench(t, 2)
			zero := 0
			b.w.set.StallRetries = zero
			id := hang(b, cause, seenOn(map[int]string{0: "all_reduce (c10d.py)", 1: "all_reduce (c10d.py)"}), seenOn(map[int]string{2: "all_reduce (c10d.py)", 3: "recv (c10d.py)"}))
			if got := b.story(); strings.Count(got, "stacks : "+oddWords) != 1 || strings.Contains(got, "ended") {
				t.Errorf("before the drain is over:\n%s", got)
			}
			b.ack(id)
			ch := b.w.Take()
			if got := b.w.Job(id).Verdict.Text; !strings.HasSuffix(got, "; "+oddWords) {
				t.Errorf("verdict %q", got)
			}
			kept := false
			for _, row := range ch.Epochs {
				kept = kept || row.Stacks != nil && row.Stacks.Text == oddWords && len(row.Stacks.Odd) == 1
			}
			if !kept {
				t.Error("not kept with the attempt")
			}
			want := map[api.NotifyType]int{api.NotifyStall: 1, api.NotifyFail: 1}
			if cause == api.CauseTimeout {
				want = map[api.NotifyType]int{api.NotifyTimeLimit: 1, api.NotifyFail: 1}
			}
			for _, l := range b.w.Outbox() {
				want[l.Type]--
				if l.Type != api.NotifyTimeLimit && !strings.Contains(l.Text, oddWords) {
					t.Errorf("%s: %q", l.Type, l.Text)
				}
			}
			for kind, n := range want {
				if n != 0 {
					t.Errorf("letters of %s: %d too few", kind, n)
				}
			}
		})
	}
}

// TestStacksOfNobody: all alike is said and names nobody; a node that says nothing holds nothing up and is told of; of a time limit
// without anybody odd the end says nothing.
func TestStacksOfNobody(t *testing.T) {
	alike := func() []*api.MemberStacks {
		return []*api.MemberStacks{seenOn(map[int]string{0: "all_reduce (c10d.py)", 1: "all_reduce (c10d.py)"}), seenOn(map[int]string{2: "all_reduce (c10d.py)", 3: "all_reduce (c10d.py)"})}
	}
	b := newBench(t, 2)
	b.w.set.StallRetries = 0
	id := hang(b, api.CauseStalled, alike()...)
	b.ack(id)
	if got := b.w.Job(id).Verdict.Text; !strings.HasSuffix(got, "; all 4 ranks are in all_reduce (c10d.py): nobody stands out") {
		t.Error(got)
	}
	b.w.Take()
	id = hang(b, api.CauseStalled, alike()[0], nil)
	if got := b.story(); strings.Contains(got, "stacks") {
		t.Errorf("not all have said where they are:\n%s", got)
	}
	b.ack(id)
	if got := b.story(); !strings.Contains(got, "stacks : 2 ranks: too few to compare; 2 are in all_reduce (c10d.py); nothing was seen of ranks 2, 3; no answer from n2") {
		t.Error(got)
	}
	id = hang(b, api.CauseTimeout, alike()...)
	b.ack(id)
	if got := b.w.Job(id).Verdict.Text; strings.Contains(got, "all_reduce") {
		t.Error(got)
	}
	id = hang(b, api.CauseTimeout, nil, nil)
	b.ack(id)
	if got := b.story(); strings.Count(got, "stacks") != 1 { // of the one before
		t.Error(got)
	}
	// What was seen before an end of another kind is nobody's matter.
	id = hang(b, api.CauseOOM, alike()...)
	b.ack(id)
	if got := b.story(); strings.Contains(got, "stacks") {
		t.Error(got)
	}
}

// TestStallWithoutStacks: where none are taken the notice comes with the stop.
func TestStallWithoutStacks(t *testing.T) {
	s := settings()
	s.StallDump = 0
	b := benchWith(t, 2, s)
	hang(b, api.CauseStalled, nil, nil)
	b.wantTold("1 STALL")
	b = newBench(t, 2)
	id := hang(b, api.CauseStalled, nil, nil)
	b.wantTold("")
	b.ack(id)
	b.wantTold("1 STALL")
}
