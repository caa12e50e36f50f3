package gang

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// cardJob runs on two cards of n1, which have a model.
func cardJob(t *testing.T) (*bench, int64) {
	t.Helper()
	b := newBench(t, 0)
	h := helloOf("n1")
	for i := range h.Hello.Cards {
		h.Hello.Cards[i].Model = "H200"
	}
	b.must(h)
	s := specOf(2)
	s.GPUsPerRank, s.CPUsPerRank, s.Account = 1, 3, "vision"
	id := b.submit(s)
	b.after(time.Minute)
	b.must(Admit{Job: id, Slots: []cluster.Slot{{Node: "n1", Cards: []string{"GPU-n1-0"}}, {Node: "n1", Cards: []string{"GPU-n1-1"}}}})
	b.ready(id)
	b.phase(id, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 100}, api.RankActual{Rank: 1, PID: 101})
	return b, id
}

// total is the ledger so far, by cause and day.
func (b *bench) total(sum map[api.LedgerKey]api.LedgerFigures) map[api.LedgerKey]api.LedgerFigures {
	return add(sum, b.w.Take().Ledger)
}

func add(sum map[api.LedgerKey]api.LedgerFigures, rows []api.LedgerRow) map[api.LedgerKey]api.LedgerFigures {
	for _, r := range rows {
		f := sum[r.LedgerKey]
		f.Add(r.LedgerFigures)
		if sum[r.LedgerKey] = f; f == (api.LedgerFigures{}) {
			delete(sum, r.LedgerKey)
		}
	}
	return sum
}

// What runs is booked each hour, what ends under its cause, each on the day it was.
func TestBookings(t *testing.T) {
	b, id := cardJob(t)
	sum := b.total(map[api.LedgerKey]api.LedgerFigures{})
	key := func(day string, c api.Cause) api.LedgerKey {
		return api.LedgerKey{Day: day, User: "ada", Account: "vision", Partition: "main", CardType: "H200", Cause: c}
	}
	const ms, hour = int64(1), int64(3600_000)
	if got := sum[key("2026-03-01", "")]; len(sum) != 1 || got != (api.LedgerFigures{Starts: 1, WaitMS: 60_000 * ms}) {
		t.Fatalf("%+v", sum)
	}
	b.after(3*time.Hour + time.Minute)
	ch := b.w.Take()
	if n := len(ch.Epochs); n != 1 || ch.Epochs[0].Booking == nil || ch.Epochs[0].Booking.Until.Sub(ch.Epochs[0].Booking.Started) != 3*time.Hour {
		t.Errorf("the hours are not in the row of the attempt: %+v", ch.Epochs)
	}
	if sum = add(sum, ch.Ledger); sum[key("2026-03-01", "")].CardMS != 6*hour || sum[key("2026-03-01", "")].CPUMS != 18*hour || len(sum) != 1 {
		t.Fatalf("after three hours: %+v", sum)
	}
	b.after(20*time.Hour - time.Minute) // 24 hours since noon and a minute, less one: it began at 12:01
	cpu := 100.0 * 3600
	joules := 7200.0
	figure := &api.Figure{Seconds: 23 * 3600, Mean: 50, Max: 100}
	idle := 3600.0
	unused := 1800.0
	m := &api.Measure{Node: "forged", Seconds: 23 * 3600, CPUSeconds: &cpu, Start: &api.StartParts{CardUse: &unused}, Cards: []api.CardMeasure{
		{UUID: "GPU-n1-0", Utilization: figure, IdleSeconds: &idle, Joules: &joules}, {UUID: "GPU-n1-1"}, {UUID: "GPU-n1-3", Utilization: figure, IdleSeconds: &idle}}}
	ma := api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Ranks: []api.RankActual{exit(0, 3), exit(1, 143)}, Measure: m}
	b.say("n1", ma)
	ch = b.w.Take()
	add(sum, ch.Ledger)
	first, second := sum[key("2026-03-01", api.CauseCrash)], sum[key("2026-03-02", api.CauseCrash)]
	if len(sum) != 2 || first.Starts != 1 || first.Attempts != 0 || second.Starts != 0 || second.Attempts != 1 || first.WaitMS != 60_000 {
		t.Fatalf("%+v", sum)
	}
	all := first
	all.Add(second)
	want := api.LedgerFigures{Attempts: 1, Starts: 1, WaitMS: 60_000, CardMS: 46 * hour, CPUMS: 138 * hour, LostCardMS: 46 * hour, LostCPUMS: 138 * hour, SeenCardMS: 23 * hour, BusyCardMS: 23 * hour / 2,
		IdleCardMS: hour, StartCardMS: hour / 2, SeenCPUMS: 138 * hour, UsedCPUMS: 100 * hour, Joules: 7200}
	if all != want {
		t.Errorf("%+v\nwant %+v", all, want)
	}
	if noon := hour*12 - 60_000; first.CardMS != 2*noon || second.CardMS != 46*hour-2*noon {
		t.Errorf("%d and %d", first.CardMS, second.CardMS)
	}
	if len(ch.Measures) != 1 || ch.Measures[0].Measure.Node != "n1" || len(ch.Measures[0].Measure.Cards) != 2 || m.Node != "forged" {
		t.Errorf("%+v", ch.Measures)
	}
	// Told again, it changes nothing.
	b.say("n1", ma)
	if ch := b.w.Take(); len(ch.Ledger)+len(ch.Measures) != 0 {
		t.Errorf("%+v", ch)
	}
	b.after(5 * time.Hour)
	if ch := b.w.Take(); len(ch.Ledger) != 0 {
		t.Errorf("after its end: %+v", ch.Ledger)
	}
}

// A controller that was away books what ran meanwhile.
func TestBookingsAfterARestart(t *testing.T) {
	b, id := cardJob(t)
	b.after(90 * time.Minute)
	sum := b.total(map[api.LedgerKey]api.LedgerFigures{})
	b.w = Restore(b.now, b.w.set, &Snapshot{Jobs: []*Job{b.w.Job(id)}, Nodes: b.w.Nodes(), NextID: 2, NextSeq: 100})
	b.hello("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 0, PID: 100}, {Rank: 1, PID: 101}}})
	b.after(40 * time.Minute)
	sum = b.total(sum)
	if got := slices.Collect(func(yield func(int64) bool) {
		for _, f := range sum {
			yield(f.CardMS)
		}
	}); len(got) != 1 || got[0] != 2*2*3600_000 {
		t.Errorf("job %d: %v", id, got)
	}
}

// A job has waited since it may run, not since it was submitted.
func TestBookedWait(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	j := &Job{Submit: start.Add(-24 * time.Hour), Eligible: start.Add(-time.Minute), Wishes: new(Wishes), Past: &Past{Attempt: Attempt{Start: start}}, Spec: specOf(1)}
	if b := newBench(t, 1).w.books.newBooking(j); b.Waited != time.Minute {
		t.Errorf("waited %v", b.Waited)
	}
}

// What a checkpoint handed over is not lost; nor is what ended well or was cancelled.
func TestBookedLost(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		cause api.Cause
		kept  time.Duration
		want  int64
	}{{api.CauseCrash, 0, 120}, {api.CauseCrash, 45 * time.Second, 30}, {api.CausePreempted, time.Minute, 0}, {api.CauseNodeLost, time.Hour, 0}, {api.CauseCompleted, 0, 0}, {api.CauseCancelled, 0, 0}, {"", 0, 0}} {
		rows := Booked(&Booking{Started: start, Until: start.Add(time.Minute), Cause: c.cause, Kept: c.kept, CPUs: 2})
		if len(rows) != 1 || rows[0].LostCPUMS != c.want*1000 || rows[0].CPUMS != 120_000 {
			t.Errorf("%s with %v kept: %+v", c.cause, c.kept, rows)
		}
	}
}

// TestBookedKept: what an attempt has worked before its last whole set of checkpoints is not lost with it.
func TestBookedKept(t *testing.T) {
	b, id := cardJob(t)
	if r := b.w.Running(id); r.Cards != 2 {
		t.Errorf("it holds %d cards", r.Cards)
	}
	b.after(20 * time.Minute)
	b.must(saved(1, 0, 1))
	b.must(saved(1, 1, 2))
	b.after(10 * time.Minute)
	b.phase(id, "n1", api.PhaseStopped, exit(0, 3), exit(1, 143))
	for _, f := range b.total(map[api.LedgerKey]api.LedgerFigures{}) {
		if f.CardMS != 2*30*60_000 || f.LostCardMS != 2*10*60_000 {
			t.Errorf("%+v", f)
		}
	}
}

func TestMidnight(t *testing.T) {
	day := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{day, day.Add(time.Hour), day.Add(24*time.Hour - 1), day.Add(time.Hour).In(time.FixedZone("", 12*3600))} {
		if got := midnight(at); !got.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %s", at, got)
		}
	}
}

// TestMeasuresAreCut: a node may say what it likes, booked is no more than what its member held.
func TestMeasuresAreCut(t *testing.T) {
	b, id := cardJob(t)
	b.after(time.Hour)
	e := b.w.jobs.byID[id]
	booked := func() (seen, used int64, cards BookedCards) {
		k := e.job.Booking
		return k.SeenCPUMS, k.UsedCPUMS, k.Cards[0]
	}
	const hour = int64(3600_000)
	far := 1e12
	card := api.CardMeasure{UUID: "GPU-n1-0", Utilization: &api.Figure{Seconds: far, Mean: 300}, IdleSeconds: &far, Joules: &far}
	others := card
	others.UUID = "GPU-n1-3"
	b.w.books.measured(e, 0, nil)
	if seen, used, cards := booked(); seen+used+cards.SeenMS != 0 {
		t.Errorf("of nothing: %d %d %+v", seen, used, cards)
	}
	b.w.books.measured(e, 0, &api.Measure{Seconds: far, CPUSeconds: &far, Start: &api.StartParts{CardUse: &far}, Cards: []api.CardMeasure{others, card}})
	seen, used, cards := booked()
	if want := (BookedCards{Type: "H200", Cards: 2, SeenMS: hour, BusyMS: hour, IdleMS: hour, Joules: 10_000 * 3660, StartMS: hour}); seen != 6*hour || used != 8*(hour+60_000) || cards != want {
		t.Errorf("%d of %d, cards %+v", used, seen, cards)
	}
	little, few := 10.0, 5.0
	b.w.books.measured(e, 0, &api.Measure{Seconds: 20, CPUSeconds: &little, Cards: []api.CardMeasure{{UUID: "GPU-n1-1", Utilization: &api.Figure{Seconds: 10, Mean: 50}, IdleSeconds: &few, Joules: &few}}})
	b.w.books.measured(e, 0, &api.Measure{Seconds: 20, Cards: []api.CardMeasure{{UUID: "GPU-n1-1", Utilization: &api.Figure{Seconds: 10, Mean: 50}}, {UUID: "GPU-n1-1", IdleSeconds: &few}}}) // of which not all is known
	seen2, used2, cards2 := booked()
	if want := (BookedCards{Type: "H200", Cards: 2, SeenMS: hour + 10_000, BusyMS: hour + 5000, IdleMS: hour + 5000, Joules: 10_000*3660 + 5, StartMS: hour}); seen2-seen != 6*20_000 || used2-used != 10_000 || cards2 != want {
		t.Errorf("%d of %d more, cards %+v", used2-used, seen2-seen, cards2)
	}
	w := b.w.record.measures
	if len(w) != 3 || len(w[0].Measure.Cards) != 1 || w[0].Measure.Node != "n1" || w[0].Epoch != 1 || w[0].Job != id {
		t.Errorf("%s", text(w))
	}
	b.w.jobs.edit(e).Members[0].State = MemberStopped
	if b.w.books.measured(e, 0, &api.Measure{Seconds: 20}); len(b.w.record.measures) != 3 {
		t.Error("taken twice")
	}
}
