package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

// rowsOf notes the rows of a batch.
type rowsOf struct{ said []string }

func (r *rowsOf) Put(t *sqlstore.Table, values ...any) error {
	key := []string{}
	for _, v := range values[:t.Key] {
		key = append(key, fmt.Sprint(v))
	}
	if len(values) != len(t.Columns) {
		return fmt.Errorf("%d values for table %s", len(values), t.Name)
	}
	r.said = append(r.said, "+"+t.Name+" "+strings.Join(key, "/"))
	return nil
}

func (r *rowsOf) Drop(t *sqlstore.Table, key any) error {
	r.said = append(r.said, fmt.Sprintf("-%s %v", t.Name, key))
	return nil
}

func (r *rowsOf) DropSpec(hash string) error {
	r.said = append(r.said, "-unused spec "+hash)
	return nil
}

// TestRowsOfABatch: what is written of a batch, in which order, and which specs are stored already.
func TestRowsOfABatch(t *testing.T) {
	job := func(id int64, epoch int, hash string) *gang.Job {
		j := storetest.NewJob(id, 2)
		j.Epoch, j.SpecHash = epoch, hash
		return j
	}
	blank, works := gang.Rank{State: api.RankBlocked}, gang.Rank{State: api.RankRunning}
	ch := storetest.Submitted(job(4, 1, "old"), job(5, 0, "known"), job(6, 0, "new"), job(7, 0, "new"))
	ch.Revived, ch.LeftSpecs = []int64{3}, []string{"left"}
	ch.Ranks = []gang.RankRow{{Job: 4, Index: 0, Rank: blank}, {Job: 4, Index: 1, Rank: works}, {Job: 5, Index: 0, Rank: blank}, {Job: 6, Index: 1, Rank: works}, {Job: 9, Index: 1, Rank: blank}}
	ch.Epochs, ch.Steps = []gang.EpochRow{{Job: 4, Epoch: 2}}, []api.Step{{JobID: 4, Epoch: 2, StepID: "8"}}
	ch.Measures, ch.Ledger = []gang.MeasureRow{{Job: 4, Epoch: 2, Member: 3, Measure: &api.Measure{}}}, []api.LedgerRow{{LedgerKey: api.LedgerKey{Day: "2026-01-02", User: "ada"}}}
	ch.Forgot, ch.Nodes = []string{"n1"}, []*gang.Node{{Name: "n2"}}
	ch.Reservations = []gang.ReservationRow{{Name: "r1"}, {Name: "r2", R: &api.Reservation{Name: "r2"}}}
	ch.Partitions = []gang.PartitionRow{{Name: "p1"}, {Name: "p2", C: &api.PartitionChange{Name: "p2"}}}
	ch.Crontabs = []gang.CrontabRow{{User: "u1"}, {User: "u2", T: &api.Crontab{User: "u2"}}}
	ch.Letters = []gang.LetterRow{{ID: 1}, {ID: 2, Letter: &api.Letter{ID: 2}}}
	ch.Claims, ch.Events = []byte("[]"), []api.Event{{Seq: 11, JobID: 4}}
	known := sqlstore.Specs{"known": {}}
	var got rowsOf
	if err := sqlstore.Batch(ch, 5, known, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"-job 3", "-job 4", "+spec old", "+job 4", "+job 5", "+spec new", "+job 6", "+job 7", "-unused spec left",
		fmt.Sprint("-rank ", 4<<16), fmt.Sprint("+rank ", 4<<16|1), fmt.Sprint("+rank ", 6<<16|1), fmt.Sprint("-rank ", 9<<16|1), "+epoch 4/2", "+step 4/2/8", "+measure 4/2/3", "+ledger 2026-01-02/ada////",
		"-node n1", "+node n2", "-reservation r1", "+reservation r2", "-partition p1", "+partition p2", "-crontab u1", "+crontab u2", "-letter 1", "+letter 2", "+claims 1", "+event 11"}
	if !slices.Equal(got.said, want) {
		t.Errorf("%q\nwant\n%q", got.said, want)
	}
	if !maps.Equal(known, sqlstore.Specs{"known": {}, "new": {}, "old": {}}) {
		t.Errorf("known are %v", known)
	}
	// So many are remembered, and then all are forgotten.
	for n, left := range map[int]int{4095: 4096, 4096: 1} {
		many := sqlstore.Specs{}
		for i := range n {
			many[fmt.Sprint(i)] = struct{}{}
		}
		if err := sqlstore.Batch(storetest.Submitted(job(5, 0, "new")), 5, many, &rowsOf{}); err != nil || len(many) != left {
			t.Errorf("%d were known, and then %d: %v", n, len(many), err)
		}
	}
	for id, want := range map[int64]bool{6: false, 5: true, 4: true} {
		if sqlstore.NewJobs(&gang.Changes{Jobs: []*gang.Job{job(2, 0, ""), job(5, 0, "")}}, id) != want {
			t.Errorf("a job from %d on is new: %v", id, !want)
		}
	}
	if sqlstore.NewJobs(&gang.Changes{}, 1) {
		t.Error("no job is new")
	}
}

// ended commits jobs that have ended, each at an hour.
func ended(t *testing.T, s *Store, hours ...int) {
	t.Helper()
	var jobs []*gang.Job
	for i, h := range hours {
		j := storetest.NewJob(int64(i+1), 1)
		j.End, j.Verdict = storetest.T0.Add(time.Duration(h)*time.Hour), &gang.Verdict{Trigger: -1}
		jobs = append(jobs, j)
	}
	if _, err := s.Commit(context.Background(), storetest.Submitted(jobs...)); err != nil {
		t.Fatal(err)
	}
}

// TestManyAreDue: they are read some hundreds at a time, in the order of their ends and ids, each once.
func TestManyAreDue(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	var hours []int
	for i := range 1300 {
		hours = append(hours, i/700) // many at one time
	}
	hours = append(hours, 5, 6)
	ended(t, s, hours...)
	at := func(h int) time.Time { return storetest.T0.Add(time.Duration(h) * time.Hour) }
	for _, c := range []struct {
		before time.Time
		keep   func(int64) bool
		limit  int
		want   int
		last   int64
	}{
		{at(9), nil, 9999, 1302, 1302}, {at(5), nil, 9999, 1300, 1300}, {at(6), nil, 9999, 1301, 1301}, {at(1), nil, 9999, 700, 700}, {at(0), nil, 9999, 0, 0},
		{at(9), nil, 1200, 1200, 1200}, {at(9), nil, 1, 1, 1}, {at(9), func(id int64) bool { return id < 1300 }, 2, 2, 1301},
		{at(9), func(id int64) bool { return id < 1024 }, 9999, 279, 1302},
	} {
		ids, err := s.Due(ctx, c.before, c.keep, c.limit)
		if err != nil || len(ids) != c.want || !slices.IsSorted(ids) || c.want > 0 && ids[len(ids)-1] != c.last || len(slices.Compact(ids)) != c.want {
			t.Errorf("before %v, %d at most: %d, %v", c.before, c.limit, len(ids), err)
		}
	}
	for n, want := range map[int]int{1: 6, 2: 5, 3: 1, 602: 1, 603: 0, 1302: 0} {
		if end, err := s.EndedNth(ctx, n); err != nil || !end.Equal(at(want)) {
			t.Errorf("number %d ended at %v, %v", n, end, err)
		}
	}
	if end, err := s.EndedNth(ctx, 1303); err != nil || !end.IsZero() {
		t.Errorf("one that there is not ended at %v, %v", end, err)
	}
}

// TestForgettingIsCutToSize: a call takes so many rows, whatever they are of, and says whether there may be more.
func TestForgettingIsCutToSize(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		events, epochs int
		more           []bool // of each call
	}{{255, 0, []bool{false}}, {256, 0, []bool{true, false}}, {250, 5, []bool{false}}, {250, 6, []bool{true, false}}, {500, 20, []bool{true, true, false}}} {
		s := openMemory(t)
		ended(t, s, 1)
		ch := &gang.Changes{NextSeq: int64(c.events + 1)}
		for i := range c.events {
			ch.Events = append(ch.Events, api.Event{Seq: int64(i + 1), JobID: 1, Time: storetest.T0})
		}
		for i := range c.epochs {
			ch.Epochs = append(ch.Epochs, gang.EpochRow{Job: 1, Epoch: i + 1})
		}
		if _, err := s.Commit(ctx, ch); err != nil {
			t.Fatal(err)
		}
		if more, err := s.Forget(ctx, []int64{1}); err != nil || !more {
			t.Errorf("hidden: %v, %v", more, err)
		}
		left := int64(c.events + c.epochs)
		for i, want := range c.more {
			more, err := s.Forget(ctx, nil)
			left = max(left-256, 0)
			n, err2 := s.w.Ints("SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM epoch), (SELECT count(*) FROM gone)", 2)
			if err != nil || err2 != nil || more != want || n[0] != left || (n[1] == 0) != (i == len(c.more)-1) {
				t.Errorf("%d events and %d attempts, call %d: more %v, %v, %v; left %v", c.events, c.epochs, i+1, more, err, err2, n)
			}
		}
	}
	// Events of nodes, too.
	s := openMemory(t)
	ch := &gang.Changes{NextSeq: 301}
	for i := range 300 {
		ch.Events = append(ch.Events, api.Event{Seq: int64(i + 1), Node: "n", Time: storetest.T0})
	}
	if _, err := s.Commit(ctx, ch); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before time.Time
		limit  int
		want   int
	}{{storetest.T0, 999, 0}, {storetest.T0.Add(1), 999, 256}, {storetest.T0.Add(1), 40, 40}, {storetest.T0.Add(1), 999, 4}, {storetest.T0.Add(1), 999, 0}} {
		if n, err := s.ForgetNodeEvents(ctx, c.before, c.limit); n != c.want || err != nil {
			t.Errorf("%d at most: %d, %v, want %d", c.limit, n, err, c.want)
		}
	}
}

// TestPiecesOfCheckpoints: as many as are needed, of the last two puts alone, and none of one that failed or was put again.
func TestPiecesOfCheckpoints(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	key := store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Step: store.OfRanks}
	put := func(rank int, key0 string, size int) {
		t.Helper()
		if _, n, err := s.PutCheckpoint(ctx, key, rank, key0, strings.NewReader(strings.Repeat("x", size))); err != nil || n != int64(size) {
			t.Fatal(n, err)
		}
	}
	want := func(what string, rows, pieces int64) {
		t.Helper()
		if n, err := s.w.Ints("SELECT (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM checkpoint_piece)", 2); err != nil || n[0] != rows || n[1] != pieces {
			t.Errorf("%s: %v, %v, want %d rows and %d pieces", what, n, err, rows, pieces)
		}
	}
	put(0, "", 0)
	want("nothing", 1, 0)
	put(1, "", store.CheckpointPiece)
	want("a whole piece", 2, 1)
	put(2, "k", store.CheckpointPiece+1)
	want("a little more", 3, 3)
	put(2, "k", store.CheckpointPiece+1)
	want("the same again", 3, 3)
	put(2, "", 1)
	put(2, "", 1)
	want("two more of a rank", 4, 3)
	put(2, "", 1)
	want("and one more", 4, 3)
	if n, err := s.w.Texts("SELECT CAST(put AS TEXT) FROM checkpoint WHERE rank = 2 ORDER BY put"); err != nil || !slices.Equal(n, []string{"3", "4"}) {
		t.Errorf("kept are %v, %v", n, err)
	}
	// A reader sees what it began with, or that it is gone.
	r, size, err := s.Checkpoint(ctx, key, 1)
	if err != nil || size != store.CheckpointPiece {
		t.Fatal(size, err)
	}
	small := make([]byte, 3)
	if n, err := r.Read(small); n != 3 || err != nil || string(small) != "xxx" {
		t.Errorf("%d, %v", n, err)
	}
	late, _, err := s.Checkpoint(ctx, key, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DropCheckpoints(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := late.Read(small); n != 0 || !errors.Is(err, store.ErrNotFound) || !strings.HasPrefix(err.Error(), "checkpoint was replaced while it was read: ") {
		t.Errorf("%d, %v", n, err)
	}
	_, _, err = s.Checkpoint(ctx, key, 1)
	if !errors.Is(err, store.ErrNotFound) || !strings.HasPrefix(err.Error(), "checkpoint of rank 1 in epoch 1 of job 1: ") {
		t.Errorf("%v", err)
	}
	// What is read of a store that was closed is nothing.
	closed := openMemory(t)
	if _, _, err := closed.PutCheckpoint(ctx, key, 0, "", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if r, _, err = closed.Checkpoint(ctx, key, 0); err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if n, err := r.Read(small); n != 0 || !errors.Is(err, store.ErrClosed) {
		t.Errorf("%d, %v", n, err)
	}
	// What a crash has left is gone at the next start, and numbers go on.
	if err := s.w.exec("INSERT INTO checkpoint_piece (id, data) VALUES (7*1024, x'00'), (9*1024+3, x'00'); INSERT INTO checkpoint (job, epoch, step, rank, id, put, bytes, key) VALUES (2, 1, -1, 0, 9, 1, 1, '')"); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(s.w); err != nil {
		t.Fatal(err)
	}
	put(0, "", 1)
	if ids, err := s.w.Texts("SELECT CAST(id AS TEXT) FROM checkpoint_piece ORDER BY id"); err != nil || !slices.Equal(ids, []string{fmt.Sprint(9*1024 + 3), fmt.Sprint(10 * 1024)}) {
		t.Errorf("pieces %v, %v", ids, err)
	}
}

// TestTheFirstCheckpointAgain: its answer was lost, and it is put once more.
func TestTheFirstCheckpointAgain(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	key := store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Step: store.OfRanks}
	for range 2 {
		if set, _, err := s.PutCheckpoint(ctx, key, 0, "k", strings.NewReader("x")); err != nil || set != (store.CheckpointSet{Ranks: 1, Bytes: 1}) {
			t.Fatal(set, err)
		}
	}
	if n, err := s.w.Ints("SELECT (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM checkpoint_piece)", 2); err != nil || n[0] != 1 || n[1] != 1 {
		t.Errorf("%v rows and pieces, %v", n, err)
	}
}

// TestReleasesOfAllStepsAreBounded: of all steps of an epoch together so many are kept, the newest.
func TestReleasesOfAllStepsAreBounded(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	if err := s.w.exec(fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) "+
		"INSERT INTO release (id, job, epoch, step, name, keys) SELECT i, 1, 1, i/%d, 'b' || i, '{}' FROM n", store.MostReleases-1, store.KeptReleases)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := s.PutRelease(ctx, store.Release{SetKey: store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Step: 99}, Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		all, err := s.Releases(ctx)
		if err != nil || len(all) != store.MostReleases || all[0].Name != fmt.Sprintf("b%d", i+1) {
			t.Errorf("%d are kept after %d more, %v", len(all), i+1, err)
		}
	}
}

// TestElementsAreDueOnce: an array goes whole, its first element before all others.
func TestElementsAreDueOnce(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		hours []int // at which its elements end
		want  []int64
	}{{[]int{1, 2, 3}, []int64{1, 2, 3}}, {[]int{3, 1, 2}, []int64{1, 2, 3}}, {[]int{2, 3, 1}, []int64{1, 3, 2}}, {[]int{2, 2, 2}, []int64{1, 2, 3}}, {[]int{1, 2, 9}, nil}} {
		s := openMemory(t)
		var jobs []*gang.Job
		for i, h := range c.hours {
			j := storetest.NewJob(int64(i+1), 1)
			j.ArrayID, j.ArrayIndex, j.Array = 1, i, &gang.ArrayInfo{Count: 3, Max: 2, Step: 1}
			j.End, j.Verdict = storetest.T0.Add(time.Duration(h)*time.Hour), &gang.Verdict{Trigger: -1}
			jobs = append(jobs, j)
		}
		if _, err := s.Commit(ctx, storetest.Submitted(jobs...)); err != nil {
			t.Fatal(err)
		}
		if ids, err := s.Due(ctx, storetest.T0.Add(9*time.Hour), nil, 9); err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%v: %v, %v, want %v", c.hours, ids, err, c.want)
		}
	}
}

// TestClaimsOfAVersionBefore are a list without a checksum, and are taken as they are.
func TestClaimsOfAVersionBefore(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	if _, err := s.Commit(ctx, &gang.Changes{NextID: 2, Claims: []byte("[1]")}); err != nil {
		t.Fatal(err)
	}
	if err := s.w.exec("UPDATE claims SET data = '[7, 8]'"); err != nil {
		t.Fatal(err)
	}
	if saved, err := s.Load(ctx, time.Time{}); err != nil || string(saved.Claims) != "[7, 8]" {
		t.Errorf("%s, %v", saved.Claims, err)
	}
}

// TestMemoryOfACallThatIsTooLate: none is made.
func TestMemoryOfACallThatIsTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s, err := OpenMemory(ctx); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", s, err)
	}
}

// TestHistoryIsChosen: each field of a filter by itself, and after excludes the instant.
func TestHistoryIsChosen(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	at := func(h int) time.Time { return storetest.T0.Add(time.Duration(h) * time.Hour) }
	var jobs []*gang.Job
	for i := range 4 {
		j := storetest.NewJob(int64(i+1), 1)
		j.Submit, j.End, j.Verdict = at(3-i), at(4+i), &gang.Verdict{Trigger: -1}
		if i > 1 {
			j.User, j.ArrayID, j.Array = "bob", 3, &gang.ArrayInfo{Count: 2, Step: 1}
		}
		jobs = append(jobs, j)
	}
	never := storetest.NewJob(8, 1) // nobody knows when it ended: as it was submitted
	never.User, never.Verdict = "eve", &gang.Verdict{Trigger: -1}
	if _, err := s.Commit(ctx, storetest.Submitted(append(jobs, never, storetest.NewJob(9, 1))...)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    store.HistoryFilter
		want string
	}{
		{store.HistoryFilter{}, "[4 3 2 1 8]"}, {store.HistoryFilter{User: "eve"}, "[8]"}, {store.HistoryFilter{EndedAfter: at(0)}, "[4 3 2 1]"}, {store.HistoryFilter{User: "ada"}, "[2 1]"}, {store.HistoryFilter{ArrayID: 3}, "[4 3]"}, {store.HistoryFilter{ArrayID: 1}, "[]"}, {store.HistoryFilter{Limit: 1}, "[4]"},
		{store.HistoryFilter{Limit: 3}, "[4 3 2]"}, {store.HistoryFilter{EndedAfter: at(5)}, "[4 3]"}, {store.HistoryFilter{EndedAfter: at(5).Add(-1)}, "[4 3 2]"},
		{store.HistoryFilter{SubmittedAfter: at(1)}, "[2 1]"}, {store.HistoryFilter{SubmittedAfter: at(1).Add(-1)}, "[3 2 1]"},
		{store.HistoryFilter{SubmittedAfter: at(1), EndedAfter: at(4)}, "[2]"}, {store.HistoryFilter{User: "bob", Limit: 1}, "[4]"},
	} {
		found, err := s.Jobs(ctx, c.f)
		ids := []int64{}
		for _, j := range found {
			ids = append(ids, j.ID)
		}
		if err != nil || fmt.Sprint(ids) != c.want {
			t.Errorf("%+v: %v, %v, want %s", c.f, ids, err, c.want)
		}
	}
	if _, err := s.Commit(ctx, &gang.Changes{Events: []api.Event{{Seq: 1, JobID: 1, Time: at(1)}, {Seq: 2, JobID: 2, Time: at(1)}, {Seq: 3, JobID: 1, Time: at(1)}}, NextSeq: 4}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job, since int64
		limit      int
		want       string
	}{{0, 0, 0, "[1 2 3]"}, {0, 0, 1, "[1]"}, {0, 1, 0, "[2 3]"}, {1, 0, 0, "[1 3]"}, {1, 1, 0, "[3]"}, {1, 0, 1, "[1]"}, {2, 2, 0, "[]"}, {0, 3, 0, "[]"}} {
		events, err := s.Events(ctx, c.job, c.since, c.limit)
		seqs := []int64{}
		for _, e := range events {
			seqs = append(seqs, e.Seq)
		}
		if err != nil || fmt.Sprint(seqs) != c.want {
			t.Errorf("events %+v: %v, %v", c, seqs, err)
		}
	}
	if _, err := s.Job(ctx, 7); !errors.Is(err, store.ErrNotFound) || !strings.HasPrefix(err.Error(), "job 7: ") {
		t.Errorf("%v", err)
	}
	if _, err := s.Spec(ctx, "x"); !errors.Is(err, store.ErrNotFound) || !strings.HasPrefix(err.Error(), "spec x: ") {
		t.Errorf("%v", err)
	}
	if err := (database{s}).Reading(ctx, func(r *sqlstore.Reader) error {
		over, err := r.EndedAfter(at(6))
		if !maps.Equal(over, map[int64]bool{4: true}) {
			t.Errorf("%v", over)
		}
		shared := storetest.NewJob(2, 1)
		r.Share(shared)
		some, err2 := r.Jobs([]int64{2, 4, 77})
		if len(some) != 2 || some[0].Spec != shared.Spec || some[0].TextBytes != shared.TextBytes {
			t.Errorf("%+v", some)
		}
		return errors.Join(err, err2)
	}); err != nil {
		t.Error(err)
	}
}

// TestLoadingTellsOfProgress: of each row that a start reads.
func TestLoadingTellsOfProgress(t *testing.T) {
	ctx := context.Background()
	told := 0
	s, err := Open(ctx, t.TempDir(), Options{NewJobFloor: 1, Progress: func() { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if texts, err := sqlstore.Migrations(migrationFiles); err != nil || told != len(texts) {
		t.Errorf("told of %d migrations of %d, %v", told, len(texts), err)
	}
	if _, err := s.Commit(ctx, running(1, 3, 1)); err != nil {
		t.Fatal(err)
	}
	told = 0
	if _, err := s.Load(ctx, time.Time{}); err != nil || told != 7 { // a spec, three jobs, three ranks
		t.Errorf("told of %d rows, %v", told, err)
	}
	if _, err := s.Job(ctx, 1); err != nil || told != 7 {
		t.Errorf("told of what is no start, %v", err)
	}
	if texts, err := sqlstore.Migrations(fstest.MapFS{"migrations/0001_a.sql/x": {}}); texts != nil || err == nil {
		t.Errorf("a directory is a migration: %q", texts)
	}
	if most, spec := s.read.Stats().MaxOpenConnections, s.readSpec.Stats().MaxOpenConnections; most != 4 || spec != 2 {
		t.Errorf("%d and %d readers at a time", most, spec)
	}
	for name, files := range map[string]fstest.MapFS{"migration migrations/1x_a.sql stands at place 1": {"migrations/1x_a.sql": {}}, "migration migrations/0002_a.sql stands at place 1": {"migrations/0002_a.sql": {}}} {
		if texts, err := sqlstore.Migrations(files); texts != nil || err == nil || err.Error() != name {
			t.Errorf("%q, %v", texts, err)
		}
	}
	if texts, err := sqlstore.Migrations(fstest.MapFS{"migrations/0001_a.sql": {Data: []byte("a")}, "migrations/0002_b.sql": {Data: []byte("b")}}); err != nil || !slices.Equal(texts, []string{"a", "b"}) {
		t.Errorf("%q, %v", texts, err)
	}
}

// TestLooksAfterSoManyRows: the log is looked at after 64 rows, of which each commit is one more.
func TestLooksAfterSoManyRows(t *testing.T) {
	(*checkpointer)(nil).committed(9)
	c := &checkpointer{wake: make(chan struct{}, 1)}
	for i, want := range []int{0, 0, 1, 1, 1} {
		c.committed([]int{30, 31, 0, 62, 63}[i])
		if len(c.wake) != want {
			t.Errorf("commit %d: woken %d times", i+1, len(c.wake))
		}
	}
	s := openDir(t, t.TempDir())
	b := &breaking{at: 99}
	if err := (&checkpointer{s: s, w: &writer{conn: &breakingConn{Conn: s.w.conn, b: b, writer: true}}}).look(); err != nil || b.steps != 2 { // a statement and its row
		t.Errorf("a short log: %v in %d steps", err, b.steps)
	}
	for pragma, want := range map[string]int64{"journal_size_limit": walKeep, "synchronous": 2, "busy_timeout": 10000, "wal_autocheckpoint": 0, "query_only": 0} {
		if n, err := s.w.Ints("PRAGMA "+pragma, 1); err != nil || n[0] != want {
			t.Errorf("%s is %v, %v", pragma, n, err)
		}
	}
	if c.rows != 0 { // it wakes who is awake already without waiting
		t.Errorf("%d rows are counted", c.rows)
	}
}

// TestLogThatCanNotBeCopied: an error of the copy ends the store, and is said.
func TestLogThatCanNotBeCopied(t *testing.T) {
	for n := 1; n <= 3; n++ {
		ctx := context.Background()
		var log bytes.Buffer
		s, err := Open(ctx, t.TempDir(), Options{NewJobFloor: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 { // more than the log may hold
			if err := s.w.exec(fmt.Sprintf("INSERT INTO checkpoint_piece (id, data) VALUES (%d, zeroblob(262144))", i)); err != nil {
				t.Fatal(err)
			}
		}
		b := &breaking{at: 2*n - 1} // the statement or its row
		broken := &checkpointer{s: s, w: &writer{conn: &breakingConn{Conn: s.check.w.conn, b: b, writer: true}}}
		if n == 3 {
			b.at = 5
		}
		if err := broken.look(); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "PRAGMA wal_checkpoint("+[]string{"NOOP", "PASSIVE", "PASSIVE"}[n-1]+"): ") {
			t.Errorf("step %d: %v", n, err)
		}
		*b = breaking{}
		if err := broken.look(); err != nil {
			t.Error(err)
		}
		if pages, err := broken.pass("NOOP"); err != nil || pages < walSoft {
			t.Errorf("%d pages, %v", pages, err)
		}
		// By itself.
		s.check.w = broken.w
		*b = breaking{at: 1}
		s.check.committed(lookAfterRows)
		waitFor(t, func() bool { return s.usable() != nil })
		if err := s.usable(); !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), "checkpoint: PRAGMA wal_checkpoint(NOOP): ") {
			t.Errorf("%v", err)
		}
		if _, err := s.Commit(ctx, &gang.Changes{NextID: 2}); !errors.Is(err, store.ErrFailed) {
			t.Errorf("%v", err)
		}
		s.Close()
		s.w.close()
	}
}

// TestSpareRoom: it is taken where there is room, given up once, and taken again when there is more than new jobs need.
func TestSpareRoom(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "reserve")
	r := newSpareFile(dir, 0)
	if st, err := os.Stat(name); err != nil || st.Size() != spareBytes || st.Mode().Perm() != 0o600 || !r.held || r.floor != DefaultNewJobFloor {
		t.Errorf("%+v, %v", r, err)
	}
	if !r.release() || r.held || exists(name) || r.release() {
		t.Errorf("given up: %+v", r)
	}
	for _, c := range []struct {
		floor int64
		jobs  bool
		held  bool
		full  bool
	}{{1, false, true, false}, {1, true, true, false}, {1 << 62, false, false, false}, {1 << 62, true, false, true}} {
		r := &spareFile{name: name, floor: c.floor}
		if err := r.admit(c.jobs); errors.Is(err, store.ErrFull) != c.full || (err == nil) == c.full || r.held != c.held || exists(name) != c.held {
			t.Errorf("%+v: %v, held %v", c, err, r.held)
		}
		r.release()
	}
	held := &spareFile{name: name, floor: 1 << 62, held: true}
	if err := held.admit(false); err != nil {
		t.Errorf("what ends needs no floor: %v", err)
	}
	if held.release() { // somebody has taken it away
		t.Error("it gave what was not there")
	}
	gone := &spareFile{name: filepath.Join(dir, "no", "reserve"), floor: 1}
	if gone.hold(); gone.held || gone.free() != 0 || gone.full() {
		t.Errorf("of a directory that is not there: %+v, %d free", gone, gone.free())
	}
	none := (*spareFile)(nil)
	if none.admit(true) != nil || none.room() != nil || none.release() {
		t.Error("in memory there is always room")
	}
	if s := openMemory(t); s.Room() != nil {
		t.Error("in memory there is always room")
	}
}

// TestCanNotBeOpened: what is in the way is said, and the directory is free again.
func TestCanNotBeOpened(t *testing.T) {
	ctx := context.Background()
	if _, err := Open(ctx, "/dev/null/x", Options{}); err == nil || !strings.Contains(err.Error(), "/dev/null: not a directory") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, DatabaseName, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(ctx, dir, Options{}); err == nil || !strings.HasPrefix(err.Error(), "open "+filepath.Join(dir, DatabaseName)+": ") {
			t.Errorf("%v", err)
		}
	}
	for sql, want := range map[string]string{
		"UPDATE meta SET next_seq = 9":     "row meta is damaged: commit 1, next id 2 or next event 9 is not what was written; gangd verify --repair goes on behind all that is here",
		"DROP TABLE letter":                "prepare \"INSERT INTO letter",
		"DROP TABLE gone; DROP TABLE meta": "prepare \"UPDATE meta",
	} {
		dir := t.TempDir()
		s := openDir(t, dir)
		if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(1, 1))); err != nil {
			t.Fatal(err)
		}
		if err := s.w.exec(sql); err != nil {
			t.Fatal(err)
		}
		s.Close()
		for range 2 {
			if _, err := Open(ctx, dir, Options{}); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, DatabaseName)+": "+want) {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	m, err := NewMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.keep.exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if s, err := m.Open(ctx); s != nil || err == nil || !strings.HasPrefix(err.Error(), "state in memory has schema 99") {
		t.Errorf("%v", err)
	}
	if pages, size, err := m.Pages(); err != nil || pages < 1 || pages > 99 || size != 4096 {
		t.Errorf("%d pages of %d, %v", pages, size, err)
	}
	if _, _, err := m.Ended(); err == nil {
		t.Error("there are no jobs to count")
	}
	m.keep.conn = &breakingConn{Conn: m.keep.conn, b: &breaking{at: 1, after: true}, writer: true}
	pages, size, err := m.Pages()
	ended, free, err2 := m.Ended()
	copied, err3 := m.Copy(ctx)
	if !errors.Is(err, errBroken) || !errors.Is(err2, errBroken) || !errors.Is(err3, errBroken) || pages+size+ended+free != 0 || copied != nil {
		t.Errorf("%d %d %d %d: %v, %v, %v", pages, size, ended, free, err, err2, err3)
	}
	if c, err := startCheckpointer(ctx, nil, "file:/dev/null/x"); c != nil || err == nil {
		t.Errorf("a log of nothing: %v", err)
	}
}

// TestDirectoriesOfTheStore: what can't be looked at is said, and what is mounted is found in the line of its device.
func TestDirectoriesOfTheStore(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if magic, err := fileSystem(none); err == nil || magic != 0 {
		t.Errorf("%v, %v", magic, err)
	}
	if err := syncDir(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if f, err := lockDir(none); f != nil || err == nil || errors.Is(err, store.ErrLocked) {
		t.Errorf("%v, %v", f, err)
	}
	if got := remoteFuse(none, ""); got != "FUSE" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{"a?b": "a%3fb", "a#b": "a%23b", "100%": "100%25", "plain/ä": "plain/ä", "": ""} {
		if got := uriPath(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	dir := t.TempDir()
	if !exists(dir) || exists(none) || exists(none+"/x") {
		t.Error("what is there")
	}
}

// TestAdvanceGoesForward: neither the commit nor the next id goes back, and the runs are forgotten.
func TestAdvanceGoesForward(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := openDir(t, dir)
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(7, 1))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lineage uint64
		id      int64
		want    string
	}{{9, 3, "9 8"}, {2, 20, "9 20"}, {9, 20, "9 20"}} {
		if err := s.Advance(ctx, c.lineage, c.id); err != nil {
			t.Fatal(err)
		}
		saved, err := s.Load(ctx, time.Time{})
		if err != nil || fmt.Sprint(s.Lineage(), saved.NextID) != c.want || s.nextID != saved.NextID {
			t.Errorf("%+v: %d %d, %v", c, s.Lineage(), saved.NextID, err)
		}
	}
	if n, err := s.Commit(ctx, &gang.Changes{NextID: 20, NextSeq: 1}); n != 9 || err != nil {
		t.Errorf("nothing to store is commit %d, %v", n, err)
	}
	if n, err := s.Commit(ctx, &gang.Changes{NextID: 21}); n != 10 || err != nil {
		t.Errorf("a higher id alone is commit %d, %v", n, err)
	}
	if n, err := s.Commit(ctx, &gang.Changes{NextSeq: 2}); n != 11 || err != nil {
		t.Errorf("a higher number of an event alone is commit %d, %v", n, err)
	}
	if n, err := s.Commit(ctx, &gang.Changes{NextID: 3, NextSeq: 1, Claims: []byte("[]")}); n != 12 || err != nil {
		t.Errorf("commit %d, %v", n, err)
	}
	s.Close()
	s = openDir(t, dir)
	if s.Lineage() != 12 || s.nextID != 21 || s.nextSeq != 2 {
		t.Errorf("after it: %d %d %d", s.Lineage(), s.nextID, s.nextSeq)
	}
	// What a person accepts is said where it can't be written.
	if err := s.w.exec("CREATE TRIGGER t BEFORE UPDATE ON meta BEGIN SELECT RAISE(FAIL, 'no room'); END"); err != nil {
		t.Fatal(err)
	}
	if err := s.Advance(ctx, 99, 99); !errors.Is(err, store.ErrFailed) || !strings.HasPrefix(err.Error(), "store failed: advance to commit 99: ") || s.Lineage() != 12 || s.nextID != 21 {
		t.Errorf("%v; %d %d", err, s.Lineage(), s.nextID)
	}
}

// TestRepairLooksFirst: another schema and an empty store are left as they are.
func TestRepairLooksFirst(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	openDir(t, dir).Close()
	if found, aside, err := Repair(ctx, dir, true, time.Now()); err != nil || len(found) > 0 || aside != "" {
		t.Errorf("of nothing: %v, %q, %v", found, aside, err)
	}
	s := openDir(t, dir)
	if err := s.w.exec("PRAGMA user_version = 14"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	want := filepath.Join(dir, DatabaseName) + ": it has schema 14, this gangd's is 15: use the gangd that wrote it, or start this one once"
	if found, _, err := Repair(ctx, dir, true, time.Now()); err == nil || err.Error() != want || errors.Is(err, errMalformed) || found != nil {
		t.Errorf("%v, %v", found, err)
	}
	if err := malformed("x", nil); err != nil {
		t.Error(err)
	}
}

// TestVerifyIsBounded: beyond a hundred rows no more are named.
func TestVerifyIsBounded(t *testing.T) {
	ctx, s := context.Background(), openMemory(t)
	for n, want := range map[int]int{99: 99, 100: 100, 101: 100} {
		if err := s.w.exec(fmt.Sprintf("DELETE FROM epoch; DELETE FROM rank; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO epoch SELECT i, 1, '{}' FROM n; "+
			"INSERT INTO rank SELECT job << 16, '{}' FROM epoch WHERE job > 99", n)); err != nil {
			t.Fatal(err)
		}
		found, err := s.Verify(ctx)
		if err != nil || len(found) != min(want+max(n-99, 0), 100) {
			t.Errorf("%d: %d, %v", n, len(found), err)
		}
	}
}
