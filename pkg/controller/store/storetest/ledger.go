package storetest

import (
	"context"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

func figure(v float64) *api.Figure { return &api.Figure{Seconds: 60, Mean: v, Max: v} }

// Booking is of an attempt of two cards and four CPUs that began an hour before midnight.
func Booking(cause api.Cause, ran time.Duration) *gang.Booking {
	start := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
	return &gang.Booking{Epoch: 1, User: "ada", Account: "vision", Partition: "gpu", CPUs: 4,
		Cards:   []gang.BookedCards{{Type: "H200", Cards: 2, SeenMS: 7200_000, BusyMS: 3600_000}},
		Started: start, Until: start.Add(ran), Cause: cause, Waited: time.Minute}
}

// testMeasures: what members used comes back as it was, and goes with its job.
func testMeasures(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	cpu := 12.5
	m := api.Measure{Node: "n1", Seconds: 60, CPUs: 4, CPUSeconds: &cpu, CPU: figure(20), Series: &api.MeasureSeries{Step: 2,
		Use: api.Points{1, api.UnknownPoint, 3}, Memory: api.Points{0, 0, 9}},
		Cards: []api.CardMeasure{{UUID: "GPU-a", Utilization: figure(90), Series: &api.MeasureSeries{Step: 1, Use: api.Points{100},
			Memory: api.Points{50}}}, {UUID: "GPU-b"}}}
	j := NewJob(1, 2)
	j.Epoch = 2
	rows := []gang.MeasureRow{{Job: 1, Epoch: 1, Member: 1, Measure: &m}, {Job: 1, Epoch: 2, Member: 0, Measure: &api.Measure{Node: "n2"}}}
	mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{j}, Measures: []gang.MeasureRow{rows[1], rows[0]}, NextID: 2, NextSeq: 1})
	got, err := s.Measures(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "measures", got, rows)
	mustVerify(t, s)
	mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{end(j, T0)}, NextID: 2, NextSeq: 1})
	mustForget(t, s, 1)
	if left, err := s.Measures(ctx, 1); err != nil || len(left) != 0 {
		t.Errorf("of a forgotten job: %v %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// testLedger: commits add to it, it is summed up by what is asked, it stays when jobs are forgotten, and
// what is not in the attempts is found.
func testLedger(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	j := NewJob(1, 2)
	j.Epoch = 1
	running, over := Booking("", 30*time.Minute), Booking(api.CauseCrash, 2*time.Hour)
	book := func(j *gang.Job, b *gang.Booking, rows ...api.LedgerRow) {
		t.Helper()
		mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{j}, Epochs: []gang.EpochRow{{Job: 1, Epoch: 1, Trigger: -1, Started: b.Started,
			Booking: b}}, Ledger: rows, NextID: 2, NextSeq: 1})
		mustVerify(t, s)
	}
	was := gang.Booked(running)
	book(j, running, was...)
	var change []api.LedgerRow
	for _, r := range was {
		r.LedgerFigures = api.LedgerFigures{}
		r.Sub(was[0].LedgerFigures)
		change = append(change, r)
	}
	ended := end(j, T0)
	book(ended, over, append(change, gang.Booked(over)...)...)
	read := func(q api.LedgerQuery) []api.LedgerRow {
		t.Helper()
		rows, err := s.Ledger(ctx, &q)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	all := []string{"day", "user", "account", "partition", "card_type", "cause"}
	same(t, "ledger", read(api.LedgerQuery{By: all}), gang.Booked(over))
	hour := int64(3600_000)
	if got := read(api.LedgerQuery{By: []string{"month", "user"}, From: "2026-11-22", Users: []string{"ada", "bob"},
		Cause: []string{"crash"}}); len(got) != 1 || got[0].CardMS != 4*hour || got[0].LostCPUMS != 8*hour ||
		got[0].LedgerKey != (api.LedgerKey{Day: "2026-11", User: "ada"}) || got[0].Attempts != 1 || got[0].Starts != 1 ||
		got[0].WaitMS != 60_000 {
		t.Errorf("%+v", got)
	}
	if got := read(api.LedgerQuery{To: "2026-11-22"}); len(got) != 1 || got[0].CardMS != 2*hour || got[0].Starts != 1 {
		t.Errorf("to a day: %+v", got)
	}
	if got := read(api.LedgerQuery{From: "2026-11-23", To: "2026-11-23"}); len(got) != 1 || got[0].CardMS != 2*hour ||
		got[0].BusyCardMS != hour/2 || got[0].Starts != 0 {
		t.Errorf("%+v", got)
	}
	if got := read(api.LedgerQuery{Users: []string{"bob"}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	// Too much is found while every job is there, too little always.
	more := api.LedgerRow{LedgerKey: gang.Booked(over)[0].LedgerKey, LedgerFigures: api.LedgerFigures{CardMS: 2 * hour}}
	mustCommit(t, s, &gang.Changes{Ledger: []api.LedgerRow{more}})
	disagrees(t, s, 1)
	less := more
	less.CardMS = -3 * hour
	mustCommit(t, s, &gang.Changes{Ledger: []api.LedgerRow{less}})
	disagrees(t, s, 1)
	more.CardMS = hour
	mustCommit(t, s, &gang.Changes{Ledger: []api.LedgerRow{more}})
	mustForget(t, s, 1)
	if got := read(api.LedgerQuery{}); len(got) != 1 || got[0].CardMS != 4*hour {
		t.Errorf("after its jobs were forgotten: %+v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	if got := read(api.LedgerQuery{}); len(got) != 1 || got[0].CardMS != 4*hour {
		t.Errorf("after it was opened again: %+v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func disagrees(t *testing.T, s store.Store, n int) {
	t.Helper()
	if found, err := s.Verify(context.Background()); err != nil || len(found) != n {
		t.Errorf("Verify: %q, %v", found, err)
	}
}
