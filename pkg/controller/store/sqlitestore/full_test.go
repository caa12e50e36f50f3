package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

// TestFullRollsBack: SQLite says full in the middle of a batch; nothing of it is left and
// the store goes on when there is room.
func TestFullRollsBack(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := openDir(t, dir)
	if _, err := s.Commit(ctx, running(1, 10, 1)); err != nil {
		t.Fatal(err)
	}
	pages, err := s.w.Ints("PRAGMA page_count", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.w.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages[0]+2)); err != nil {
		t.Fatal(err)
	}
	batch := running(11, 200, 11)
	for _, j := range batch.Jobs {
		j.SpecHash = "first seen in the refused batch"
	}
	storetest.WithSpecs(batch)
	if _, err := s.Commit(ctx, batch); !errors.Is(err, store.ErrFull) {
		t.Fatalf("commit: %v", err)
	}
	if !exists(filepath.Join(dir, "reserve")) {
		t.Error("the reserve was given up for new jobs")
	}
	// The spec of the refused batch may not count as stored.
	if saved, err := s.Load(ctx, time.Time{}); err != nil || len(saved.Jobs) != 10 || saved.NextID != 11 {
		t.Errorf("load: %+v, %v", saved, err)
	}
	if err := s.w.exec("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Commit(ctx, batch); err != nil || n != 2 {
		t.Errorf("commit with room again: %d, %v", n, err)
	}
	if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
		t.Errorf("verify: %q, %v", found, err)
	}
}

// TestFullBesideCommits: a checkpoint that finds no room leaves nothing, and ends nothing.
func TestFullBesideCommits(t *testing.T) {
	ctx, s := context.Background(), openDir(t, t.TempDir())
	pages, err := s.w.Ints("PRAGMA page_count", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.w.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages[0]+2)); err != nil {
		t.Fatal(err)
	}
	key := store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Step: store.OfRanks}
	if _, _, err := s.PutCheckpoint(ctx, key, 0, "", strings.NewReader(strings.Repeat("x", 1<<20))); !errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrFailed) {
		t.Errorf("put: %v", err)
	}
	if left, err := s.w.Ints("SELECT count(*) FROM checkpoint_piece", 1); err != nil || left[0] != 0 {
		t.Errorf("left: %d pieces, %v", left, err)
	}
	if _, err := s.Commit(ctx, &gang.Changes{NextID: 1, NextSeq: 1, Claims: []byte("[]")}); err != nil {
		t.Errorf("a small commit: %v", err)
	}
}

// TestTooFull: below the room or the two files that opening needs.
func TestTooFull(t *testing.T) {
	for _, c := range []struct {
		blocks, files, free uint64
		want                bool
	}{
		{startBytes / 4096, 0, 0, false}, {startBytes/4096 - 1, 0, 0, true}, // no bound for files
		{startBytes, 1, 2, false}, {startBytes, 1, 1, true}, {startBytes, 9, 0, true}, {startBytes, 9, 9, false},
		{startBytes / 4096, 9, 9, false},
	} {
		if got := tooFull(&unix.Statfs_t{Bsize: 4096, Bavail: c.blocks, Files: c.files, Ffree: c.free}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestNewJobsNeedTheFloor(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, err := Open(ctx, dir, Options{NewJobFloor: 1 << 62})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Commit(ctx, running(1, 1, 1))
	want := fmt.Sprintf("state disk full: %d MiB free under %s, new jobs need %d MiB there", s.spare.free()>>20, dir, int64(1<<62)>>20)
	if !errors.Is(err, store.ErrFull) || len(err.Error()) != len(want) {
		t.Errorf("commit: %v\nwant: %s", err, want)
	}
	if set, n, err := s.PutCheckpoint(ctx, store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 1}}, 0, "", strings.NewReader("x")); !errors.Is(err, store.ErrFull) || n != 0 || set.Ranks != 0 {
		t.Errorf("checkpoint: %+v, %d, %v", set, n, err)
	}
	if _, err := s.Commit(ctx, &gang.Changes{Nodes: []*gang.Node{{Name: "n1"}}}); err != nil {
		t.Errorf("a commit without new jobs: %v", err)
	}
}

// TestFullDisk fills a real file system of 24 MiB.
func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("mounting a small tmpfs needs root: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(ctx, dir, Options{NewJobFloor: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	next := int64(1)
	for ; err == nil; next += 50 {
		_, err = s.Commit(ctx, running(next, 50, next))
	}
	next -= 50 // of the batch that was refused
	if !errors.Is(err, store.ErrFull) || next < 50 {
		t.Fatalf("job %d: %v", next, err)
	}
	// Someone else takes the rest.
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	ended := int64(0)
	for err = nil; err == nil && ended < next-1; ended++ {
		j := storetest.NewJob(ended+1, 1)
		j.Epoch, j.End, j.Verdict = 1, storetest.T0, &gang.Verdict{Trigger: -1}
		_, err = s.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{j}, NextID: next})
	}
	if err != nil {
		ended--
	}
	t.Logf("%d jobs accepted, %d ends recorded on the full disk, then: %v", next-1, ended, err)
	if ended < 100 || (err != nil && !errors.Is(err, store.ErrFull)) {
		t.Errorf("%d ends recorded, then: %v", ended, err)
	}
	if exists(filepath.Join(dir, "reserve")) {
		t.Error("the reserve was not needed: the disk was not full")
	}
	if err := errors.Join(os.Remove(filler), os.Remove(ballast)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, running(next, 50, next)); err != nil {
		t.Fatalf("a new job with room again: %v", err)
	}
	if !exists(filepath.Join(dir, "reserve")) {
		t.Error("the reserve was not taken again")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, dir)
	defer s.Close()
	saved, err := s.Load(ctx, storetest.T0)
	if err != nil || int64(len(saved.Jobs)) != next+49-ended || saved.NextID != next+50 {
		t.Errorf("%d live jobs, next id %d, %v; want %d, %d", len(saved.Jobs), saved.NextID, err, next+49-ended, next+50)
	}
	if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
		t.Errorf("verify: %q, %v", found, err)
	}
}

// A store that was closed opens on a disk without a free byte, from its reserve; without a
// free inode it says what is wrong.
func TestOpensOnFullDisk(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m,nr_inodes=20"); err != nil {
		t.Skipf("mounting a small tmpfs needs root: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(ctx, dir, Options{NewJobFloor: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, running(1, 10, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	if s, err = Open(ctx, dir, Options{NewJobFloor: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	if s.Room() == nil {
		t.Error("there is room for new jobs")
	}
	j := storetest.NewJob(1, 1)
	j.Epoch, j.End, j.Verdict = 1, storetest.T0, &gang.Verdict{Trigger: -1}
	if _, err := s.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{j}, NextID: 11}); err != nil {
		t.Errorf("an end on the full disk: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("inode%d", i)))
		if err != nil {
			break
		}
		f.Close()
	}
	_, err = Open(ctx, dir, Options{})
	want := "state disk full under " + dir + ": free some room there to start: "
	if !errors.Is(err, store.ErrFull) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("without an inode: %v, want %s...", err, want)
	}
}

func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
