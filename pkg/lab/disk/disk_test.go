package disk

import (
	"context"
	"errors"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

func TestCrashKeepsWhatWasCommitted(t *testing.T) {
	ctx := context.Background()
	d := New(t)
	s := d.Open(t)
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(1, 1))); err != nil {
		t.Fatal(err)
	}
	before := d.Copy(t)
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1))); err != nil {
		t.Fatal(err)
	}
	d.FailCommit(errors.New("i/o error"))
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(3, 1))); !errors.Is(err, store.ErrFailed) {
		t.Fatalf("commit: %v", err)
	}
	d.Crash()
	if _, err := s.Commit(ctx, &gang.Changes{NextID: 9}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("commit of a dead process: %v", err)
	}
	for disk, want := range map[*Disk]int{d: 2, before: 1} {
		s := disk.Open(t)
		if saved, err := s.Load(ctx, time.Time{}); err != nil || len(saved.Jobs) != want || s.Lineage() != uint64(want) {
			t.Errorf("%d jobs, want %d; lineage %d, %v", len(saved.Jobs), want, s.Lineage(), err)
		}
	}
}

func TestFullRefusesNewJobsOnly(t *testing.T) {
	ctx := context.Background()
	d := New(t)
	s := d.Open(t)
	j := storetest.NewJob(1, 1)
	if _, err := s.Commit(ctx, storetest.Submitted(j)); err != nil {
		t.Fatal(err)
	}
	d.SetFull(true)
	second := storetest.Submitted(storetest.NewJob(2, 1))
	second.Events, second.NextSeq = []api.Event{{Seq: 7, Time: time.Unix(1, 0), JobID: 2, Type: api.EventSubmitted}}, 8
	if _, err := s.Commit(ctx, second); !errors.Is(err, store.ErrFull) || !errors.Is(s.Room(), store.ErrFull) {
		t.Errorf("a new job on a full disk: %v, %v", err, s.Room())
	}
	if _, err := s.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{j}, NextID: 2}); err != nil {
		t.Errorf("a change on a full disk: %v", err)
	}
	d.SetFull(false)
	if n, err := s.Commit(ctx, second); err != nil || n != 3 {
		t.Errorf("a new job with room again: %d, %v", n, err)
	}
}
