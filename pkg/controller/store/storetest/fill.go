package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// Fill uses each table.
func Fill(t *testing.T, s store.Store) {
	t.Helper()
	ctx := context.Background()
	over := NewJob(1, 2)
	over.Verdict, over.End, over.Epoch = &gang.Verdict{State: api.JobCompleted}, T0, 1
	runs := NewJob(2, 1500)
	runs.Epoch = 1
	ch := Submitted(over, runs)
	for i := range runs.Ranks {
		ch.Ranks = append(ch.Ranks, gang.RankRow{Job: 2, Index: i, Rank: gang.Rank{State: api.RankRunning, PID: i}})
	}
	ch.Epochs = []gang.EpochRow{{Job: 1, Epoch: 1}, {Job: 2, Epoch: 1}}
	ch.Steps = []api.Step{{JobID: 1, Epoch: 1, StepID: "0"}}
	ch.Measures = []gang.MeasureRow{{Job: 2, Epoch: 1, Measure: &api.Measure{Node: "n10"}}}
	ch.Epochs[0].Booking = Booking(api.CauseCrash, time.Hour)
	ch.Epochs[0].Started, ch.Ledger = ch.Epochs[0].Booking.Started, gang.Booked(ch.Epochs[0].Booking)
	ch.Nodes = []*gang.Node{{Name: "n10"}, {Name: "N9"}, {Name: "n-1"}} // an order that locales see otherwise
	ch.Reservations = []gang.ReservationRow{{Name: "r", R: &api.Reservation{Name: "r", Start: T0}}}
	ch.Partitions = []gang.PartitionRow{{Name: "p", C: &api.PartitionChange{Name: "p", Partition: &api.Partition{Name: "p"}, Time: T0}}}
	ch.Crontabs = []gang.CrontabRow{{User: "ada", T: &api.Crontab{User: "ada", Text: "@daily x\n", Time: T0}}}
	ch.Letters = []gang.LetterRow{{ID: 16, Letter: &api.Letter{ID: 16, User: "ada", Time: T0}}}
	ch.Claims = []byte("[]")
	ch.Events, ch.NextSeq = []api.Event{{Seq: 1, JobID: 1, Time: T0}}, 2
	if _, err := s.Commit(ctx, ch); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		key := store.SetKey{MemberKey: api.MemberKey{Job: 2, Epoch: 1}, Step: store.OfRanks}
		if _, _, err := s.PutCheckpoint(ctx, key, i, "k", strings.NewReader(strings.Repeat("\x00\xff", store.CheckpointPiece))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PutRelease(ctx, store.Release{Name: "x", SetKey: store.SetKey{MemberKey: api.MemberKey{Job: 2, Epoch: 1},
		Step: 3}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(ctx, "run"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Forget(ctx, []int64{1}); err != nil { // its parts stay until the next call
		t.Fatal(err)
	}
}
