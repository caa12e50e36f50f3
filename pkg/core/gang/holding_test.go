package gang

import (
	"strings"
	"testing"

	"gangd/pkg/api"
)

// holds submits jobs of a user; want is a part of the refusal, empty: they are taken.
func (b *bench) holds(uid uint32, hash string, env int, elements int, want string) (id int64) {
	b.t.Helper()
	s := specOf(1)
	s.Env = []string{"A=" + strings.Repeat("x", env)}
	ev := Submit{Spec: s, SpecHash: hash, Partition: "main", UID: uid, User: "ada"}
	if elements > 1 {
		ev.Array = &api.Array{}
		for i := range elements {
			ev.Array.Indices = append(ev.Array.Indices, i)
		}
	}
	out := b.step(ev)
	switch {
	case want == "" && out.Applied:
		return out.JobIDs[0]
	case want == "":
		b.t.Fatalf("refused: %v", out.Refused)
	case out.Refused == nil || out.Refused.Code != api.CodeTooMany || !strings.Contains(out.Refused.Message, want):
		b.t.Errorf("%+v, want %q", out, want)
	}
	return 0
}

func TestAUserHoldsSoManyJobs(t *testing.T) {
	b := newBench(t, 0)
	b.w.set.UserJobs = 3
	first := b.holds(1, "a", 0, 1, "")
	b.holds(1, "a", 0, 3, "ada has 1 jobs that have not ended, 3 more are asked for, and a user may have 3")
	b.holds(1, "a", 0, 2, "")
	b.holds(1, "b", 0, 1, "ada has 3 jobs")
	b.holds(2, "a", 0, 3, "") // somebody else's count by themselves
	b.must(Cancel{Job: first})
	b.holds(1, "b", 0, 1, "")
}

func TestAUserHoldsSoManyBytes(t *testing.T) {
	b := newBench(t, 0)
	b.w.set.UserBytes = 10 * specOverhead
	first := b.holds(1, "a", 5*specOverhead, 4, "") // its elements share one
	b.holds(1, "a", 5*specOverhead, 1, "")          // and so does who submits it again
	b.holds(1, "b", 5*specOverhead, 1, "and a user may have 10240")
	b.holds(2, "b", 5*specOverhead, 1, "")
	for id := first; id < first+4; id++ {
		b.must(Cancel{Job: id})
	}
	b.holds(1, "b", 5*specOverhead, 1, "and a user may have 10240") // one job has it still
	b.must(Cancel{Job: first + 4})
	b.holds(1, "b", 5*specOverhead, 1, "")
}

func TestTheClusterHoldsSoManyJobs(t *testing.T) {
	b := newBench(t, 0)
	b.w.set.MaxJobs = 2
	first := b.holds(1, "a", 0, 1, "")
	b.holds(2, "a", 0, 2, "the cluster has 1 jobs that have not ended, 2 more are asked for, and it takes 2")
	b.holds(2, "a", 0, 1, "")
	b.holds(1, "a", 0, 1, "the cluster has 2 jobs")
	b.must(Cancel{Job: first})
	b.holds(1, "a", 0, 1, "")
}
