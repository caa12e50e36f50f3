package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		commitUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

type place struct{ dir string }

func (p place) Open() (store.Store, error) {
	s, err := Open(context.Background(), p.dir, Options{NewJobFloor: 1})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p place) FromBackup(t *testing.T, path string) storetest.Place {
	dir := t.TempDir()
	if err := os.Link(path, filepath.Join(dir, DatabaseName)); err != nil {
		t.Fatal(err)
	}
	return place{dir}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place { return place{t.TempDir()} })
}

// TestMemory: the SQL is the same; only what needs a disk is left out.
func TestMemory(t *testing.T) {
	ctx := context.Background()
	s := openMemory(t)
	other := openMemory(t) // its own, not a second view of the first
	ch := running(1, 10, 1)
	if n, err := s.Commit(ctx, ch); err != nil || n != 1 {
		t.Fatalf("commit: %d, %v", n, err)
	}
	for _, c := range []struct {
		s    *Store
		want int
	}{{s, 10}, {other, 0}} {
		if saved, err := c.s.Load(ctx, time.Time{}); err != nil || len(saved.Jobs) != c.want {
			t.Errorf("load: %+v, %v; want %d jobs", saved, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "b")
	if err := s.Backup(ctx, path); err != nil {
		t.Fatal(err)
	}
	copied := openDir(t, place{t.TempDir()}.FromBackup(t, path).(place).dir)
	if found, err := copied.Verify(ctx); err != nil || len(found) > 0 || copied.Lineage() != 1 {
		t.Errorf("the copy on a disk: %q, %v, lineage %d", found, err, copied.Lineage())
	}
}

func openMemory(t *testing.T) *Store {
	t.Helper()
	s, err := OpenMemory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openDir(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, Options{NewJobFloor: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestFailedCommitPoisons: an error that is not a full disk ends all use.
func TestFailedCommitPoisons(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := openDir(t, dir)
	if _, err := s.Commit(ctx, running(1, 2, 1)); err != nil {
		t.Fatal(err)
	}
	// An event number twice: SQLite refuses the row, in the middle of the batch.
	if _, err := s.Commit(ctx, running(3, 2, 2)); !errors.Is(err, store.ErrFailed) {
		t.Fatalf("commit: %v", err)
	}
	if _, err := s.Commit(ctx, running(5, 1, 9)); !errors.Is(err, store.ErrFailed) {
		t.Errorf("commit after a failed one: %v", err)
	}
	if _, err := s.Load(ctx, time.Time{}); !errors.Is(err, store.ErrFailed) {
		t.Errorf("load after a failed commit: %v", err)
	}
	if s.Lineage() != 1 {
		t.Errorf("lineage %d", s.Lineage())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	saved, err := openDir(t, dir).Load(ctx, time.Time{})
	if err != nil || len(saved.Jobs) != 2 {
		t.Errorf("after reopening: %+v, %v", saved, err)
	}
}

// TestFailsOnce: who fails says so once, with its first error, and leaves its log as the disk has it.
func TestFailsOnce(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var log bytes.Buffer
	s, err := Open(ctx, dir, Options{NewJobFloor: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, running(1, 2, 1)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := s.fail(errors.New(text)); !errors.Is(err, store.ErrFailed) || !strings.HasSuffix(err.Error(), ": first") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := strings.Count(log.String(), "state store failed"); n != 1 || !strings.Contains(log.String(), "first") {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	defer s.w.close()
	if st, err := os.Stat(filepath.Join(dir, DatabaseName+"-wal")); err != nil || st.Size() == 0 {
		t.Errorf("its log was copied into the database: %v", err)
	}
}

// TestAloneWaitsForTheDisk: what must be there after a power cut does, what need not be does not.
func TestAloneWaitsForTheDisk(t *testing.T) {
	s := openDir(t, t.TempDir())
	for _, lazy := range []bool{false, true, false} {
		if err := (database{s}).Alone(context.Background(), lazy, func(w sqlstore.Writer) error {
			n, err := w.Ints("PRAGMA synchronous", 1)
			if want := map[bool]int64{false: 2, true: 1}[lazy]; err == nil && n[0] != want {
				t.Errorf("lazy %v: synchronous is %d, want %d", lazy, n[0], want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerify breaks rows behind the store's back, one way each.
func TestVerify(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ sql, want string }{
		{"UPDATE meta SET next_id = 2", "job 2 is not below the next id 2"},
		{"INSERT INTO rank VALUES (9 << 16 | 3, '{}')", "rank 3 of job 9 has a row, the job has none"},
		{"INSERT INTO rank VALUES (2 << 16 | 3, '{}')", "rank 3 of job 2 has a row, the job has 1 ranks"},
		{"INSERT INTO epoch VALUES (9, 1, '{}')", "epoch 1 of job 9 has a row, the job has none"},
		{"INSERT INTO epoch VALUES (2, 7, '{}')", "epoch 7 of job 2 has a row, the job is at epoch 1"},
		{"UPDATE meta SET next_seq = 2", "event 2 is not below the next number 2"},
		{"UPDATE event SET seq = 77 WHERE seq = 1; UPDATE meta SET next_seq = 99", "event 77 says that its number is 1"},
		{"UPDATE event SET job = 2 WHERE seq = 1", "event 1 is of job 1, its row is under job 2"},
		{"DELETE FROM spec", "spec hash-of-train of job 1 is missing|spec hash-of-train of job 2 is missing"},
		{"UPDATE job SET ended = 5 WHERE id = 1", "job 1 has an end but no verdict"},
		{"UPDATE job SET data = json_set(data, '$.verdict', json('{}')) WHERE id = 1", "job 1 has a verdict but no end"},
	} {
		s := openMemory(t)
		if _, err := s.Commit(ctx, running(1, 2, 1)); err != nil {
			t.Fatal(err)
		}
		if err := s.w.exec(c.sql); err != nil {
			t.Fatal(err)
		}
		found, err := s.Verify(ctx)
		if err != nil || strings.Join(found, "|") != c.want {
			t.Errorf("%s: %q, %v; want %q", c.sql, found, err, c.want)
		}
	}
}

// TestLogStaysShort: whatever is committed, the log is used again from its start.
func TestLogStaysShort(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := openDir(t, dir)
	var written int64
	longest := func() int64 {
		st, err := os.Stat(filepath.Join(dir, DatabaseName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	for n := range 400 { // each is some 25 pages: 40 MiB in all
		ch := running(int64(n*100+1), 100, int64(n*100+1))
		if _, err := s.Commit(ctx, ch); err != nil {
			t.Fatal(err)
		}
		written++
		if n%50 == 49 { // let it catch up, as it does between bursts
			waitFor(t, func() bool {
				pages, err := s.w.Ints("PRAGMA wal_checkpoint(NOOP)", 3)
				return err == nil && (pages[1] < walSoft || pages[1] == pages[2])
			})
		}
	}
	if got := longest(); got > 16<<20 {
		t.Errorf("the log has grown to %d MiB", got>>20)
	}
}

// waitFor polls for what another goroutine will do soon; the test's own deadline bounds it.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited for 30 s")
		}
	}
}

// TestQueueingWritesNoRanks: a gang of any size is one row until it is admitted.
func TestQueueingWritesNoRanks(t *testing.T) {
	s := openMemory(t)
	j := storetest.NewJob(1, api.MaxGangSize)
	ch := storetest.Submitted(j)
	for i, r := range j.Ranks {
		ch.Ranks = append(ch.Ranks, gang.RankRow{Job: 1, Index: i, Rank: r})
	}
	if _, err := s.Commit(context.Background(), ch); err != nil {
		t.Fatal(err)
	}
	if n, err := s.w.Ints("SELECT count(*) FROM rank", 1); err != nil || n[0] != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
	got, err := s.Job(context.Background(), 1)
	if err != nil || len(got.Ranks) != api.MaxGangSize || got.Ranks[api.MaxGangSize-1].State != api.RankBlocked {
		t.Errorf("%d ranks, %v", len(got.Ranks), err)
	}
}
