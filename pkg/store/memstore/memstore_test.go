package memstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"gangd/pkg/gang"
	"gangd/pkg/store"
	"gangd/pkg/store/storetest"
)

type place struct{ disk *Disk }

func (p place) Open() (store.Store, error) {
	s, err := p.disk.Open()
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p place) FromBackup(t *testing.T, path string) storetest.Place {
	d, err := OpenBackup(path)
	if err != nil {
		t.Fatal(err)
	}
	return place{d}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Place { return place{NewDisk()} })
}

func TestCrashKeepsWhatWasCommitted(t *testing.T) {
	ctx := context.Background()
	d := NewDisk()
	s, _ := d.Open()
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(1, 1))); err != nil {
		t.Fatal(err)
	}
	before := d.Clone()
	d.FailCommit(errors.New("i/o error"), true)
	_, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1)))
	if !errors.Is(err, store.ErrFailed) {
		t.Fatalf("commit: %v", err)
	}
	if _, err := s.Load(ctx, time.Time{}); !errors.Is(err, store.ErrFailed) {
		t.Errorf("load after a failed commit: %v", err)
	}
	d.Crash()
	if _, err := s.Commit(ctx, &gang.Changes{NextID: 9}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("commit of a dead process: %v", err)
	}
	for disk, want := range map[*Disk]int{d: 2, before: 1} {
		s, err := disk.Open()
		if err != nil {
			t.Fatal(err)
		}
		if saved, err := s.Load(ctx, time.Time{}); err != nil || len(saved.Jobs) != want || s.Lineage() != uint64(want) {
			t.Errorf("%d jobs, want %d; lineage %d, %v", len(saved.Jobs), want, s.Lineage(), err)
		}
	}
}

func TestFullRefusesNewJobsOnly(t *testing.T) {
	ctx := context.Background()
	d := NewDisk()
	s, _ := d.Open()
	j := storetest.NewJob(1, 1)
	if _, err := s.Commit(ctx, storetest.Submitted(j)); err != nil {
		t.Fatal(err)
	}
	d.SetFull(true)
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1))); !errors.Is(err, store.ErrFull) {
		t.Errorf("a new job on a full disk: %v", err)
	}
	if _, err := s.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{j}, NextID: 2}); err != nil {
		t.Errorf("a change on a full disk: %v", err)
	}
	d.SetFull(false)
	if n, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1))); err != nil || n != 3 {
		t.Errorf("a new job with room again: %d, %v", n, err)
	}
}
