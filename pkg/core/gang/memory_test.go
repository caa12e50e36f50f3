package gang

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
)

// keyed submits a job under a key and ends it.
func (b *bench) keyed(key string) (id int64) {
	b.t.Helper()
	s := specOf(1)
	id = b.must(Submit{Key: key, Spec: s, SpecHash: hashOf(s), Partition: "main"}).JobIDs[0]
	b.must(Cancel{Job: id})
	return id
}

// submitsAgain checks whether a key is answered with a job; 0: it is another one.
func (b *bench) submitsAgain(key string, job int64) {
	b.t.Helper()
	s := specOf(1)
	out := b.step(Submit{Key: key, Spec: s, SpecHash: hashOf(s), Partition: "main"})
	switch {
	case job != 0 && (out.Applied || len(out.JobIDs) == 0 || out.JobIDs[0] != job):
		b.t.Fatalf("key %s: %+v, want job %d", key, out, job)
	case job == 0 && !out.Applied:
		b.t.Fatalf("key %s: %+v, want another job", key, out)
	}
}

// Of more ended jobs than are kept those that ended first leave memory; a submission that is repeated is none of its own.
func TestTooManyEndedLeaveEarly(t *testing.T) {
	b := newBench(t, 0)
	b.w.memory.mostEnded = 3
	var ids []int64
	for i := range 6 {
		ids = append(ids, b.keyed(fmt.Sprint("k", i)))
		b.after(time.Second)
	}
	for i, id := range ids {
		if kept := b.w.Job(id) != nil; kept != (i >= 3) {
			t.Errorf("job %d, number %d of 6 to end, is in memory: %t", id, i, kept)
		}
	}
	purged := b.w.Take().Purged
	if len(purged) != 3 || purged[0] != ids[0] || purged[2] != ids[2] {
		t.Errorf("purged %v of %v", purged, ids)
	}
	b.submitsAgain("k0", ids[0])
	b.reborn(time.Second)
	b.submitsAgain("k4", ids[4])
	b.after(b.w.set.KeepEnded)
	b.submitsAgain("k4", 0)
}

func TestKeysOfThoseThatLeftEarlyAreForgottenInTime(t *testing.T) {
	b := newBench(t, 0)
	b.w.memory.mostEnded = 1
	first := b.keyed("k")
	b.keyed("")
	b.after(b.w.set.KeepEnded - time.Second)
	b.submitsAgain("k", first)
	b.after(time.Second)
	b.submitsAgain("k", 0)
	if len(b.w.memory.pastKeys) != 0 {
		t.Errorf("%v is remembered", b.w.memory.pastKeys)
	}
}

// A restart reads the keys of those that it does not read.
func TestRestartRemembersKeysOfThoseThatLeftEarly(t *testing.T) {
	set := settings()
	w := Restore(Instant{Wall: time.Unix(1e9, 0), Mono: time.Hour}, set, &Snapshot{Keys: map[string]int64{"k": 7}, NextID: 9, NextSeq: 1})
	b := &bench{t: t, w: w, now: Instant{Wall: time.Unix(1e9, 0), Mono: time.Hour}}
	b.submitsAgain("k", 7)
	b.after(set.KeepEnded)
	b.submitsAgain("k", 0)
}

// The first element of an array has its key, and stays while others do; who is waited for stays as well.
func TestWhoIsNeededStays(t *testing.T) {
	b := newBench(t, 0)
	b.w.memory.mostEnded = 0
	s := specOf(1)
	ids := b.must(Submit{Key: "a", Spec: s, SpecHash: hashOf(s), Partition: "main", Array: &api.Array{Indices: []int{0, 1, 2}}}).JobIDs
	b.must(Cancel{Job: ids[0]})
	b.must(Cancel{Job: ids[1]})
	if b.w.Job(ids[0]) == nil || b.w.Job(ids[1]) != nil {
		t.Fatalf("the first is in memory: %t, the second: %t", b.w.Job(ids[0]) != nil, b.w.Job(ids[1]) != nil)
	}
	b.must(Cancel{Job: ids[2]})
	if b.w.Job(ids[0]) != nil || len(b.w.queue.arrays) != 0 {
		t.Fatal("the first stays, of none")
	}
	b.submitsAgain("a", ids[0])

	on := b.submit(specOf(1))
	b.depending(&api.Dependency{On: []api.Condition{{Kind: api.AfterAny, Job: on}, {Kind: api.AfterOK, Job: b.submit(specOf(1))}}})
	b.must(Cancel{Job: on})
	if b.w.Job(on) == nil {
		t.Fatal("who is waited for has left memory")
	}
}

// A million that are to leave at once do not keep the engine from anything else.
func TestManyLeaveInTurns(t *testing.T) {
	b := newBench(t, 0)
	first := b.array(1000, nil)
	for id := first; id < first+1000; id++ {
		b.w.Step(b.now, Cancel{Job: id})
	}
	b.now.Mono += 2 * b.w.set.KeepEnded // as after a pause
	for turns := 0; ; turns++ {
		before := len(b.w.jobs.byID)
		b.must(Tick{})
		if left := before - len(b.w.jobs.byID); left > mostLeave+1 {
			t.Fatalf("%d left in one turn", left)
		}
		if len(b.w.jobs.byID) == 0 {
			if turns != 1000/mostLeave {
				t.Errorf("%d turns", turns)
			}
			return
		}
		at, ok := b.w.NextDeadline()
		if !ok || at != b.now.Mono+leavePause {
			t.Fatalf("%d are left, and the next leave in %s (%t)", len(b.w.jobs.byID), at-b.now.Mono, ok)
		}
		b.now.Mono = at
	}
}
