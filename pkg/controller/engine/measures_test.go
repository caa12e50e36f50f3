package engine

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

// What a job uses is shown while it runs and when it has ended, to the same words; the ledger has it.
func TestAttemptsShowWhatTheyUsed(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.running(2)
	cpu, peak := 30.0, int64(1<<30)
	live := &api.Measure{Node: "another", Seconds: 60, CPUs: 2, CPUSeconds: &cpu, MemoryPeak: &peak}
	r.NodeNotes("n2", []api.MemberNote{{MemberKey: k, Measure: live}}) // where no member of it is
	show := func() api.Attempt {
		t.Helper()
		d, err := r.Detail(t.Context(), r.view.job(id))
		if err != nil || len(d.Attempts) != 1 || d.SchemaVersion != api.SchemaVersion || len(d.Attempts[0].Steps) == 0 {
			t.Fatalf("%+v, %v", d, err)
		}
		return d.Attempts[0]
	}
	if a := show(); len(a.Measures) != 0 || a.Efficiency != nil {
		t.Errorf("%+v", a)
	}
	r.NodeNotes("n1", []api.MemberNote{{MemberKey: k, Measure: live}})
	if a := show(); len(a.Measures) != 1 || a.Measures[0].Node != "n1" || *a.Efficiency.CPUPercent != 25 {
		t.Errorf("%+v", a)
	}
	each := func() (n int) {
		r.EachMeasure(func(int64, *api.Measure) { n++ })
		return n
	}
	if n := each(); n != 1 {
		t.Errorf("%d measures of what runs", n)
	}
	most := 90.0
	over := &api.Measure{Seconds: 100, CPUs: 2, CPUSeconds: &most, MemoryPeak: &peak, Ranks: &api.RankUse{Ranks: 2, MaxRSS: 1 << 20}}
	ranks := []api.RankActual{{Rank: 0, PID: 100, Exited: true}, {Rank: 1, PID: 101, Exited: true}}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseStopped, Ranks: ranks, Measure: over}}})
	if err := r.inspect(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if n := each(); n != 0 {
		t.Errorf("%d measures of what runs no more", n)
	}
	a := show()
	if len(a.Measures) != 1 || a.Measures[0].Ranks == nil || *a.Efficiency.CPUPercent != 45 || *a.Efficiency.MaxRSS != 1<<20 || a.Cause != api.CauseCompleted {
		t.Errorf("%+v", a)
	}
	got, err := r.Ledger(t.Context(), &api.LedgerQuery{By: []string{"user", "cause"}, To: "2999-01-01", From: "2026-01-01"})
	if err != nil || got.SchemaVersion != api.SchemaVersion || got.From != "2026-01-01" || got.To != "2999-01-01" || len(got.By) != 2 || len(got.Rows) != 1 || got.Rows[0].Attempts != 1 || got.Rows[0].Starts != 1 || got.Rows[0].Cause != api.CauseCompleted {
		t.Errorf("%+v, %v", got, err)
	}
	if found, err := r.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
	if _, err := r.Ledger(t.Context(), &api.LedgerQuery{}); err != nil {
		t.Errorf("of all days: %v", err)
	}
	for _, q := range []api.LedgerQuery{{By: []string{"node"}}, {From: "yesterday"}, {To: "2026-13-01"}} {
		if _, err := r.Ledger(t.Context(), &q); err == nil {
			t.Errorf("%+v was taken", q)
		}
	}
}
