package gang

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// epoch0 and mono0 are what the clocks of a bench begin with.
var epoch0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const mono0 = time.Hour

// bench is a world with a clock and a few verbs; after each of them everything is
// recounted.
type bench struct {
	t       testing.TB
	w       *World
	now     Instant
	desired map[string][]api.Assignment // of each node after the last step
	witness *witness                    // nil: nothing is written down
}

func newBench(t testing.TB, nodes int) *bench {
	t.Helper()
	return benchWith(t, nodes, settings())
}

func settings() api.Settings {
	s := api.DefaultSettings()
	s.Licences = []api.Pool{{Name: "l", Count: 2}}
	return s
}

func benchWith(t testing.TB, nodes int, s api.Settings) *bench {
	b := &bench{t: t, w: New(s), now: Instant{Wall: epoch0, Mono: mono0}}
	for i := 1; i <= nodes; i++ {
		b.hello(fmt.Sprintf("n%d", i))
	}
	b.beginTranscript()
	return b
}

func helloOf(name string, members ...api.MemberActual) NodeHello {
	h := api.Hello{Node: name, BootID: "boot-1", Address: "10.0.0." + name[1:], CPUs: 8, MemoryBytes: 64 << 30, Members: members}
	for i := range 4 {
		h.Cards = append(h.Cards, api.CardInfo{Index: i, UUID: fmt.Sprintf("GPU-%s-%d", name, i), VRAMBytes: 80 << 30})
	}
	return NodeHello{Hello: h, Partitions: []string{"main"}}
}

// step applies an event, recounts the world, and looks whether it named each node that is to be
// told something else now.
func (b *bench) step(ev Event) Outcome {
	b.t.Helper()
	m := b.w.marks()
	out := b.w.Step(b.now, ev)
	if bad := b.w.Verify(); len(bad) > 0 {
		b.t.Fatalf("after %T %+v: %q", ev, ev, bad)
	}
	desired := map[string][]api.Assignment{}
	for _, n := range b.w.Nodes() {
		now, was := b.w.Desired(n.Name), b.desired[n.Name]
		desired[n.Name] = now
		if _, known := b.desired[n.Name]; known && !sameWords(was, now) && !slices.Contains(b.w.nodes.woken[m.desired:], n.Name) {
			b.t.Fatalf("after %T %+v: %s is not told of\n%+v\nin place of\n%+v", ev, ev, n.Name, now, was)
		}
	}
	b.desired = desired
	b.tell(eventText(ev), out, m)
	return out
}

// sameWords compares what a node has been told with what it would be told now. A stop of what has
// ended by itself since is not taken back.
func sameWords(was, now []api.Assignment) bool {
	return slices.EqualFunc(was, now, func(was, now api.Assignment) bool {
		if was.Gate != nil && was.Gate.Alone && now.Gate != nil { // nor is a node told what it has opened by itself
			now.Gate = was.Gate
		}
		return was.MemberKey == now.MemberKey && was.Stop != nil && now.Stop == nil || reflect.DeepEqual(was, now)
	})
}

// must is step for what has to be applied.
func (b *bench) must(ev Event) Outcome {
	b.t.Helper()
	out := b.step(ev)
	if !out.Applied {
		b.t.Fatalf("%T %+v: %+v (refused: %v)", ev, ev, out, out.Refused)
	}
	return out
}

func (b *bench) hello(name string, members ...api.MemberActual) { b.must(helloOf(name, members...)) }

// after lets time pass and the timers fire, each at its moment.
func (b *bench) after(d time.Duration) {
	b.t.Helper()
	end := b.now.Mono + d
	forward := func(mono time.Duration) {
		b.now.Wall, b.now.Mono = b.now.Wall.Add(mono-b.now.Mono), mono
	}
	for {
		at, ok := b.w.NextDeadline()
		if !ok || at > end {
			forward(end)
			return
		}
		forward(max(at, b.now.Mono))
		b.must(Tick{})
	}
}

func specOf(size int) *api.Spec {
	return &api.Spec{Name: "job", Size: size, Launch: api.LaunchRanks, CPUsPerRank: 1, Script: []byte("#!/bin/sh\n")}
}

// hashOf is a hash as the engine makes one: of equal specs the same.
func hashOf(s *api.Spec) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (b *bench) submit(s *api.Spec) int64 {
	b.t.Helper()
	return b.must(Submit{Spec: s, SpecHash: hashOf(s), User: "ada", Partition: "main", TimeLimit: s.TimeLimit}).JobIDs[0]
}

// spread puts rank i on node i+1.
func (b *bench) spread(id int64) Admit {
	n := len(b.w.Nodes())
	r := Admit{Job: id}
	for i := range b.w.Job(id).Ranks {
		r.Slots = append(r.Slots, cluster.Slot{Node: fmt.Sprintf("n%d", i%n+1)})
	}
	return r
}

func (b *bench) key(id int64) api.MemberKey { return b.w.Job(id).key() }

func (b *bench) say(node string, ma api.MemberActual) Outcome {
	b.t.Helper()
	return b.step(NodeReport{Node: node, Actual: api.Actual{Members: []api.MemberActual{ma}}})
}

func (b *bench) phase(id int64, node string, p api.MemberPhase, ranks ...api.RankActual) Outcome {
	b.t.Helper()
	return b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: p, Port: 4000, Ranks: ranks})
}

// start takes a waiting gang to running, its members spread.
func (b *bench) start(id int64) {
	b.t.Helper()
	b.asOne(fmt.Sprintf("job %d is started, spread", id), func() { b.startSpread(id) })
}

func (b *bench) startSpread(id int64) {
	b.t.Helper()
	b.must(b.spread(id))
	b.ready(id)
	for _, m := range b.w.Job(id).Members {
		ma := api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning}
		for _, r := range m.Ranks {
			if hasProcess(b.w.Job(id), r) {
				ma.Ranks = append(ma.Ranks, api.RankActual{Rank: r, PID: 100 + r, Started: b.now.Wall})
			}
		}
		b.say(m.Node, ma)
	}
}

func (b *bench) ready(id int64) {
	b.t.Helper()
	b.asOne(fmt.Sprintf("all members of job %d are ready", id), func() {
		for _, m := range b.w.Job(id).Members {
			b.phase(id, m.Node, api.PhaseReady)
		}
	})
}

func exit(rank, code int) api.RankActual {
	return api.RankActual{Rank: rank, PID: 100 + rank, Exited: true, ExitCode: code}
}

// ack lets every stopping member of a draining gang answer.
func (b *bench) ack(id int64) {
	b.t.Helper()
	b.asOne(fmt.Sprintf("all members of job %d have stopped", id), func() { b.ackAll(id) })
}

func (b *bench) ackAll(id int64) {
	b.t.Helper()
	j := b.w.Job(id)
	for _, m := range j.Members {
		if m.State != MemberStopping {
			continue
		}
		ma := api.MemberActual{MemberKey: j.key(), Phase: api.PhaseStopped, Stopping: j.Drain.Cause}
		for _, r := range m.Ranks {
			if hasProcess(j, r) {
				ma.Ranks = append(ma.Ranks, exit(r, 143))
			}
		}
		b.say(m.Node, ma)
	}
}

func (b *bench) state(id int64, want api.JobState) {
	b.t.Helper()
	if got := JobState(b.w.Job(id)); got != want {
		b.t.Fatalf("job %d is %s, want %s (verdict %+v)", id, got, want, b.w.Job(id).Verdict)
	}
}

func ranksOf(j *Job) string {
	s := ""
	for i := range j.Ranks {
		s += string(j.Ranks[i].State[:4]) + " "
	}
	return s
}

// blames are all that a node may say.
var blames = []api.Blame{api.BlameJob, api.BlameFiles, api.BlameSite, api.BlameUser, api.BlameCard, api.BlameUnfit, api.BlameNode, api.BlameUnknown}

func intPtr(n int) *int { return &n }
