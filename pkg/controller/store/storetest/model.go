package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// model is what a store has to give back: the batches accumulated by hand.
type model struct {
	jobs   map[int64]*gang.Job
	nodes  map[string]*gang.Node
	events []api.Event
	epochs map[int64][]gang.EpochRow
	nextID int64
	seq    int64
}

// testModel commits random batches, reopens in between, and compares after each.
func testModel(t *testing.T, p Place) {
	s := mustOpen(t, p)
	m := &model{jobs: map[int64]*gang.Job{}, nodes: map[string]*gang.Node{}, epochs: map[int64][]gang.EpochRow{}, nextID: 1, seq: 1}
	var known store.Known // by one that follows, where the store can be followed
	// One store for all checks: a disk is slow, and what is left over from one check is
	// what the next has to cope with.
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			ch := m.batch(rt)
			if len(ch.Jobs)+len(ch.Events)+len(ch.Nodes) == 0 {
				continue
			}
			mustCommit(t, s, ch)
		}
		if rapid.IntRange(0, 9).Draw(rt, "reopen") == 0 {
			if err := s.Close(); err != nil {
				rt.Fatal(err)
			}
			s = mustOpen(t, p)
		}
		if rapid.IntRange(0, 3).Draw(rt, "forget") == 0 {
			m.forget(rt, t, s)
		}
		m.compare(t, s.Load)
		if sh, ok := s.(store.Shared); ok && rapid.Bool().Draw(rt, "follow") {
			m.compare(t, func(ctx context.Context, keep time.Time) (*gang.Snapshot, error) {
				return followed(ctx, sh, &known, keep)
			})
		}
		if id := rapid.Int64Range(1, m.nextID).Draw(rt, "look at"); m.jobs[id] != nil {
			got, err := s.Job(context.Background(), id)
			if err != nil {
				rt.Fatal(err)
			}
			same(t, "job", got, m.jobs[id])
			epochs, err := s.Epochs(context.Background(), id)
			if err != nil {
				rt.Fatal(err)
			}
			same(t, "attempts", epochs, m.epochs[id])
			events, err := s.Events(context.Background(), id, 0, 0)
			if err != nil {
				rt.Fatal(err)
			}
			same(t, "events", events, slices.DeleteFunc(slices.Clone(m.events), func(e api.Event) bool { return e.JobID != id }))
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
	mustVerify(t, s)
}

// followed is what one that follows has once there is no more.
func followed(ctx context.Context, s store.Shared, k *store.Known, keep time.Time) (*gang.Snapshot, error) {
	for {
		if more, err := s.Follow(ctx, k, keep); err != nil || !more {
			return k.Snapshot(keep), err
		}
	}
}

func (m *model) compare(t *testing.T, load func(context.Context, time.Time) (*gang.Snapshot, error)) {
	got, err := load(context.Background(), T0)
	if err != nil {
		t.Fatal(err)
	}
	want := &gang.Snapshot{Keys: map[string]int64{}, NextID: m.nextID, NextSeq: m.seq}
	for id := int64(1); id < m.nextID; id++ {
		if j := m.jobs[id]; j != nil && (j.Verdict == nil || j.End.After(T0)) {
			want.Jobs = append(want.Jobs, j)
			want.Keys[j.Key] = id
		}
	}
	for _, name := range []string{"n1", "n2"} {
		if n := m.nodes[name]; n != nil {
			want.Nodes = append(want.Nodes, n)
		}
	}
	same(t, "Load", got, want)
}

// forget drops what ended before a time, some of it.
func (m *model) forget(rt *rapid.T, t *testing.T, s store.Store) {
	before := T0.Add(time.Duration(rapid.IntRange(-2, 3).Draw(rt, "ended before")) * time.Second)
	due := mustDue(t, s, before, nil, rapid.IntRange(1, 20).Draw(rt, "at most"))
	forget(rt.Fatal, s, due)
	for _, id := range due {
		if j := m.jobs[id]; j == nil || j.Verdict == nil || !j.End.Before(before) {
			rt.Fatalf("job %d was due before %v: %+v", id, before, j)
		}
		delete(m.jobs, id)
		delete(m.epochs, id)
		m.events = slices.DeleteFunc(m.events, func(e api.Event) bool { return e.JobID == id })
	}
}

// batch draws one batch and applies it to the model.
func (m *model) batch(rt *rapid.T) *gang.Changes {
	ch := &gang.Changes{}
	changed := map[int64]bool{}
	for range rapid.IntRange(0, 3).Draw(rt, "new jobs") {
		j := NewJob(m.nextID, rapid.IntRange(1, 5).Draw(rt, "size"))
		j.Key = rapid.StringMatching(`[a-z]{4}`).Draw(rt, "key") + time.Duration(j.ID).String()
		j.SpecHash = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "spec")
		j.Spec = &api.Spec{WorkDir: j.SpecHash}
		m.jobs[j.ID] = j
		m.nextID++
		ch.Jobs = append(ch.Jobs, j)
		changed[j.ID] = true
		m.event(ch, j)
	}
	for range rapid.IntRange(0, 3).Draw(rt, "changes") {
		if m.nextID == 1 {
			break
		}
		id := rapid.Int64Range(1, m.nextID-1).Draw(rt, "job")
		switch j := m.jobs[id]; {
		case j == nil || changed[id]:
		case j.Verdict == nil:
			changed[id] = true
			m.change(rt, ch, j)
		case rapid.IntRange(0, 2).Draw(rt, "again") == 0:
			changed[id] = true
			m.revive(ch, j)
		}
	}
	if rapid.Bool().Draw(rt, "node") {
		n := &gang.Node{Name: rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "name"), Strikes: make([]gang.Strike,
			rapid.IntRange(0, 3).Draw(rt, "strikes")), LastSeen: T0}
		m.nodes[n.Name] = n
		ch.Nodes = append(ch.Nodes, n)
	}
	ch.NextID, ch.NextSeq = m.nextID, m.seq
	return ch
}

// change admits, runs, rolls back or ends a job.
func (m *model) change(rt *rapid.T, ch *gang.Changes, old *gang.Job) {
	j := old.Copy()
	j.Ranks = slices.Clone(old.Ranks)
	j.Name = rapid.String().Draw(rt, "name")
	state := rapid.SampledFrom(api.RankStates).Draw(rt, "state")
	if state != api.RankBlocked && j.Epoch == 0 || rapid.Bool().Draw(rt, "admit") {
		j.Epoch++
		e := gang.EpochRow{Job: j.ID, Epoch: j.Epoch, Trigger: -1, Slots: []cluster.Slot{{Node: "n1"}}}
		m.epochs[j.ID] = append(m.epochs[j.ID], e)
		ch.Epochs = append(ch.Epochs, e)
	}
	for i := range j.Ranks {
		if rapid.Bool().Draw(rt, "rank") {
			j.Ranks[i] = gang.Rank{State: state}
			if state != api.RankBlocked {
				j.Ranks[i].Slot.Node = "n1"
			}
			ch.Ranks = append(ch.Ranks, gang.RankRow{Job: j.ID, Index: i, Rank: j.Ranks[i]})
		}
	}
	if rapid.IntRange(0, 3).Draw(rt, "end") == 0 {
		j = end(j, T0.Add(time.Duration(rapid.IntRange(-2, 2).Draw(rt, "ended"))*time.Second))
	}
	m.jobs[j.ID] = j
	ch.Jobs = append(ch.Jobs, j)
	m.event(ch, j)
}

// revive queues a job again that had ended.
func (m *model) revive(ch *gang.Changes, old *gang.Job) {
	j := *old
	j.Verdict, j.End = nil, time.Time{}
	m.jobs[j.ID] = &j
	ch.Jobs, ch.Revived = append(ch.Jobs, &j), append(ch.Revived, j.ID)
	m.event(ch, &j)
}

func (m *model) event(ch *gang.Changes, j *gang.Job) {
	e := api.Event{Seq: m.seq, JobID: j.ID, Epoch: j.Epoch, Time: T0, Type: api.EventReserved}
	m.seq++
	m.events = append(m.events, e)
	ch.Events = append(ch.Events, e)
}
