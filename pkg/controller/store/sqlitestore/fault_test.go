package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

var errBroken = errors.New("the medium is gone")

// breaking makes one of the steps fail that a store takes with its database: a transaction that begins, a statement, the first
// row of an answer, the end of one.
type breaking struct {
	at      int  // which step, from 1; 0: none
	after   bool // those behind it, too
	unread  bool // it is a row that can't be scanned, and only such rows count
	steps   int  // so far
	text    string
	written bool // it was one of the writer
}

// step says that this one fails.
func (b *breaking) step(text string, writer bool) bool {
	if b.at == 0 {
		return false
	}
	if b.steps++; b.steps < b.at || b.steps > b.at && !b.after {
		return false
	}
	if b.steps == b.at {
		b.text, b.written = text, writer
	}
	return true
}

func (b *breaking) err(text string, writer bool) error {
	if !b.unread && b.step(text, writer) {
		return errBroken
	}
	return nil
}

type breakingConnector struct {
	driver.Connector
	b *breaking
}

func (c breakingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return &breakingConn{Conn: conn, b: c.b}, err
}

type breakingConn struct {
	driver.Conn
	b      *breaking
	writer bool
}

func (c *breakingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.b.err("BEGIN", c.writer); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c *breakingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := c.b.err(text, c.writer); err != nil {
		return nil, err
	}
	st, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	return &breakingStmt{Stmt: st, text: text, b: c.b}, err
}

func (c *breakingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.b.err(text, c.writer); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (c *breakingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.b.err(text, c.writer); err != nil {
		return nil, err
	}
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
	return &breakingRows{Rows: rows, text: text, c: c}, err
}

type breakingStmt struct {
	driver.Stmt
	text string
	b    *breaking
}

func (s *breakingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.b.err(s.text, true); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

type breakingRows struct {
	driver.Rows
	text string
	c    *breakingConn
	n    int
}

func (r *breakingRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	r.n++
	if r.n == 1 || err != nil {
		if e := r.c.b.err(r.text, r.c.writer); e != nil {
			return e
		}
	}
	if r.n == 1 && err == nil && !r.c.writer && r.c.b.unread && r.c.b.step(r.text, false) {
		for i := range to {
			to[i] = struct{}{}
		}
	}
	return err
}

// breakable is a store in memory with rows in each table, whose steps may fail.
func breakable(t *testing.T, m *Memory) (*Store, *breaking) {
	t.Helper()
	s, err := m.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b := new(breaking)
	s.w.conn = &breakingConn{Conn: s.w.conn, b: b, writer: true}
	for _, st := range s.w.stmts {
		st.stmt = &breakingStmt{Stmt: st.stmt.(driver.Stmt), text: st.text, b: b}
	}
	connector, err := sqlite.NewConnector(m.dsn + "&" + pragmas + "&_pragma=query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []**sql.DB{&s.read, &s.readSpec} {
		(*db).Close()
		*db = sql.OpenDB(breakingConnector{connector, b})
	}
	return s, b
}

// content is all that a store has, in memory and in its tables.
func content(t *testing.T, m *Memory, s *Store) string {
	t.Helper()
	var all strings.Builder
	fmt.Fprintln(&all, s.Lineage(), s.nextID, s.nextSeq)
	for _, table := range append(append([]*sqlstore.Table{{Name: "meta", Columns: []sqlstore.Column{{Name: "lineage"}, {Name: "next_id"}, {Name: "next_seq"}, {Name: "sum"}}, Key: 1}},
		sqlstore.Batched...), sqlstore.Beside...) {
		var columns []string
		for _, c := range table.Columns {
			if c.Kind == sqlstore.Bytes {
				c.Name = "length(" + c.Name + ")"
			}
			columns = append(columns, "quote("+c.Name+")")
		}
		rows, err := m.keep.Texts(fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(columns, "||','||"), table.Name, table.KeyNames()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, table.Name, strings.Join(rows, "\n"))
	}
	return all.String()
}

// use is a call of a store.
type use struct {
	name  string
	words string // before the reason, in each of its errors
	call  func(ctx context.Context, s *Store) error
	// apart: it is of several transactions, and an error may leave the first.
	apart bool
	// inside: it is no call of the store, and does not look whether that is closed.
	inside bool
	empty  bool // it is one of a store that has nothing
}

// uses are all calls of a store that use its database, on what storetest.Fill has made.
func uses(t *testing.T) []use {
	key := store.SetKey{MemberKey: api.MemberKey{Job: 2, Epoch: 1}, Step: store.OfRanks}
	reading := func(f func(r *sqlstore.Reader) error) func(context.Context, *Store) error {
		return func(ctx context.Context, s *Store) error { return database{s}.Reading(ctx, f) }
	}
	next := storetest.NewJob(5, 2)
	next.SpecHash = "another"
	batch := storetest.Submitted(next)
	batch.Revived = []int64{2}
	batch.Ranks = []gang.RankRow{{Job: 2, Index: 1, Rank: gang.Rank{State: api.RankBlocked}}, {Job: 2, Index: 2, Rank: gang.Rank{State: api.RankDone}}}
	batch.Epochs = []gang.EpochRow{{Job: 2, Epoch: 2}}
	batch.Steps = []api.Step{{JobID: 2, Epoch: 1, StepID: "7"}}
	batch.Measures = []gang.MeasureRow{{Job: 2, Epoch: 1, Member: 1, Measure: &api.Measure{Node: "n"}}}
	batch.Ledger = gang.Booked(storetest.Booking(api.CauseCrash, time.Hour))
	batch.Forgot, batch.Nodes = []string{"N9"}, []*gang.Node{{Name: "new"}}
	batch.Reservations = []gang.ReservationRow{{Name: "r"}, {Name: "new", R: &api.Reservation{Name: "new"}}}
	batch.Partitions = []gang.PartitionRow{{Name: "p"}, {Name: "new", C: &api.PartitionChange{Name: "new"}}}
	batch.Crontabs = []gang.CrontabRow{{User: "ada"}, {User: "bob", T: &api.Crontab{User: "bob"}}}
	batch.Letters = []gang.LetterRow{{ID: 16}, {ID: 32, Letter: &api.Letter{ID: 32}}}
	batch.Claims = []byte("[1]")
	batch.Events, batch.NextSeq = []api.Event{{Seq: 3, JobID: 5}}, 4
	path := filepath.Join(t.TempDir(), "b")
	spare, few := openMemory(t), openMemory(t)
	spare.Copying = func(int64, int64) {}
	if _, err := few.Commit(context.Background(), storetest.Submitted(storetest.NewJob(1, 1))); err != nil {
		t.Fatal(err)
	}
	return []use{
		{name: "commit", words: "store failed: commit 3: ", call: func(ctx context.Context, s *Store) error { _, err := s.Commit(ctx, batch); return err }},
		{name: "advance", call: func(ctx context.Context, s *Store) error { return s.Advance(ctx, 9, 9) }, apart: true},
		{name: "load", words: "load: ", call: func(ctx context.Context, s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }},
		{name: "spec", words: "spec hash-of-train: ", call: func(ctx context.Context, s *Store) error { _, err := s.Spec(ctx, "hash-of-train"); return err }},
		{name: "job", words: "job 2: ", call: func(ctx context.Context, s *Store) error { _, err := s.Job(ctx, 2); return err }},
		{name: "jobs", words: "history: ", call: func(ctx context.Context, s *Store) error {
			_, err := s.Jobs(ctx, store.HistoryFilter{User: "ada"})
			return err
		}},
		{name: "attempts", words: "attempts of job 2: ", call: func(ctx context.Context, s *Store) error { _, err := s.Epochs(ctx, 2); return err }},
		{name: "steps", words: "steps of job 1: ", call: func(ctx context.Context, s *Store) error { _, err := s.Steps(ctx, 1); return err }},
		{name: "measures", words: "measures of job 2: ", call: func(ctx context.Context, s *Store) error { _, err := s.Measures(ctx, 2); return err }},
		{name: "ledger", words: "ledger: ", call: func(ctx context.Context, s *Store) error { _, err := s.Ledger(ctx, &api.LedgerQuery{}); return err }},
		{name: "events", words: "events: ", call: func(ctx context.Context, s *Store) error { _, err := s.Events(ctx, 0, 0, 0); return err }},
		{name: "letters", words: "outbox: ", call: func(ctx context.Context, s *Store) error { _, err := s.Letters(ctx); return err }},
		{name: "verify", words: "verify: ", call: func(ctx context.Context, s *Store) error { _, err := s.Verify(ctx); return err }},
		{name: "the nth that ended", words: "history: ", call: func(ctx context.Context, s *Store) error { _, err := s.EndedNth(ctx, 1); return err }},
		{name: "due", words: "history: ", call: func(ctx context.Context, s *Store) error {
			_, err := s.Due(ctx, storetest.T0.Add(9*time.Hour), nil, 9)
			return err
		}},
		{name: "forget", words: "forget jobs: ", call: func(ctx context.Context, s *Store) error { _, err := s.Forget(ctx, []int64{4}); return err }},
		{name: "forget what is left", words: "forget jobs: ", call: func(ctx context.Context, s *Store) error { _, err := s.Forget(ctx, nil); return err }},
		{name: "forget events of nodes", words: "forget events of nodes: ", call: func(ctx context.Context, s *Store) error {
			_, err := s.ForgetNodeEvents(ctx, storetest.T0.Add(time.Hour), 9)
			return err
		}},
		{name: "put a checkpoint", call: func(ctx context.Context, s *Store) error {
			set, n, err := s.PutCheckpoint(ctx, key, 0, "k2", strings.NewReader(strings.Repeat("x", store.CheckpointPiece+1)))
			if err != nil && (set != store.CheckpointSet{} || n != 0) {
				t.Errorf("%+v and %d bytes beside %v", set, n, err)
			}
			return err
		}},
		{name: "put it again", call: func(ctx context.Context, s *Store) error {
			_, _, err := s.PutCheckpoint(ctx, key, 0, "k", strings.NewReader("x"))
			return err
		}},
		{name: "checkpoint", call: func(ctx context.Context, s *Store) error {
			r, size, err := s.Checkpoint(ctx, key, 1)
			if err != nil && size != 0 {
				t.Errorf("%d bytes beside %v", size, err)
			}
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
			return err
		}},
		{name: "prune checkpoints", call: func(ctx context.Context, s *Store) error { return s.PruneCheckpoints(ctx, 2, false, nil) }},
		{name: "drop checkpoints", call: func(ctx context.Context, s *Store) error { return s.DropCheckpoints(ctx, 2) }},
		{name: "jobs with checkpoints", call: func(ctx context.Context, s *Store) error { _, err := s.CheckpointJobs(ctx); return err }},
		{name: "put a release", call: func(ctx context.Context, s *Store) error {
			return s.PutRelease(ctx, store.Release{Name: "y", SetKey: key})
		}},
		{name: "releases", call: func(ctx context.Context, s *Store) error { _, err := s.Releases(ctx); return err }},
		{name: "drop releases", call: func(ctx context.Context, s *Store) error { return s.DropReleases(ctx, 2) }},
		{name: "begin", call: func(ctx context.Context, s *Store) error { _, err := s.Begin(ctx, "another"); return err }, apart: true},
		{name: "forget runs", call: func(ctx context.Context, s *Store) error { return s.ForgetRuns(ctx) }},
		{name: "back up", words: "backup to " + path, call: func(ctx context.Context, s *Store) error {
			_ = os.Remove(path)
			return s.Backup(ctx, path)
		}},
		{name: "copy from it", words: "copy: ", call: func(ctx context.Context, s *Store) error {
			_, err := spare.CopyFrom(ctx, s.Store)
			if spare.failed.Store(nil); err == nil {
				spare = openMemory(t)
			}
			return err
		}, inside: true},
		{name: "copy into it", words: "copy: ", call: func(ctx context.Context, s *Store) error { _, err := s.CopyFrom(ctx, few.Store); return err }, apart: true, empty: true},
		{name: "examine", call: reading(func(r *sqlstore.Reader) error { _, err := sqlstore.Examine(r); return err }), inside: true},
		{name: "examine counters", call: reading(func(r *sqlstore.Reader) error { _, err := examineCounters(r, nil); return err }), inside: true},
		{name: "load of too many", call: reading(func(r *sqlstore.Reader) error { _, err := r.Load(time.Time{}, 0); return err }), inside: true},
		{name: "many nodes", call: reading(func(r *sqlstore.Reader) error { _, err := r.Nodes([]string{"n10", "N9"}); return err }), inside: true},
		{name: "who ended", call: reading(func(r *sqlstore.Reader) error { _, err := r.EndedAfter(time.Time{}); return err }), inside: true},
		{name: "counters", call: func(_ context.Context, s *Store) error { _, err := s.counters(); return err }, inside: true},
		{name: "what a crash has left", call: func(_ context.Context, s *Store) error { return s.Start(s.w) }, inside: true},
		{name: "migrate", words: "x: ", call: func(_ context.Context, s *Store) error {
			return migrate(s.w, "x", append(make([]string, 15), "SELECT 1"), func() {})
		}, inside: true, apart: true},
		{name: "prepare", words: "prepare \"", call: func(_ context.Context, s *Store) error { _, err := prepareStatements(s.w); return err }, inside: true},
	}
}

// filled is a database with rows in each table, and a job and an event of a node that may be forgotten.
func filled(t *testing.T) *Memory {
	t.Helper()
	ctx := context.Background()
	m, err := NewMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	s, err := m.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Fill(t, s)
	over := storetest.NewJob(4, 1)
	over.ArrayID, over.Array = 4, &gang.ArrayInfo{Count: 1, Step: 1}
	over.Verdict, over.End = &gang.Verdict{State: api.JobCompleted}, storetest.T0.Add(time.Minute)
	ch := storetest.Submitted(over)
	ch.Events, ch.NextSeq = []api.Event{{Seq: 2, Node: "n", Time: storetest.T0}}, 3
	if _, err := s.Commit(ctx, ch); err != nil {
		t.Fatal(err)
	}
	// Of large things a little is enough.
	if err := s.w.exec("DELETE FROM rank WHERE id & 65535 > 3; DELETE FROM checkpoint_piece WHERE id % 1024 > 0; UPDATE checkpoint_piece SET data = x'00ff'; UPDATE checkpoint SET bytes = 2"); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEachStepFails: whichever step of a call fails, the call says so with what it was about. What can't be read is only that; a write that failed ends the
// store, and nothing of it is there.
func TestEachStepFails(t *testing.T) {
	ctx := context.Background()
	whole := filled(t)
	none, err := NewMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	for _, u := range uses(t) {
		from, steps := whole, 0
		if u.empty {
			from = none
		}
		for _, way := range []breaking{{}, {after: true}, {unread: true}} {
			m, err := from.Copy(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s, b := breakable(t, m)
			before := content(t, m, s)
			for ; ; steps++ {
				if way.at++; u.empty && way.at > 1 { // what could be proven the same is there
					if m, err = from.Copy(ctx); err != nil {
						t.Fatal(err)
					}
					s, b = breakable(t, m)
				}
				*b = way
				err := u.call(ctx, s)
				now := *b
				*b = breaking{}
				if now.steps < now.at {
					if err != nil {
						t.Errorf("%s: %v", u.name, err)
					}
					break
				}
				about := fmt.Sprintf("%s, step %d (%+v)", u.name, now.at, now)
				for _, wrong := range faultSays(u, s, now, err) {
					t.Errorf("%s: %s: %v", about, wrong, err)
				}
				s.failed.Store(nil)
				_ = s.w.exec("ROLLBACK")
				if err := s.Start(s.w); err != nil {
					t.Fatal(err)
				}
				if now.text == "PRAGMA synchronous = FULL" { // what comes behind the end of its transaction
					break
				}
				if now.written && !u.apart && content(t, m, s) != before {
					t.Errorf("%s: something of it is there", about)
				}
			}
			s.Close()
			m.Close()
		}
		if steps == 0 {
			t.Errorf("%s: it takes no step", u.name)
		}
	}
}

// faultSays is what is wrong with the error of a call of which a step failed.
func faultSays(u use, s *Store, b breaking, err error) (wrong []string) {
	if err == nil {
		return []string{"done"}
	}
	text := err.Error()
	if !strings.Contains(text, u.words) {
		wrong = append(wrong, "it does not say "+u.words)
	}
	switch {
	case b.unread && !strings.Contains(text, "Scan error"), !b.unread && !strings.Contains(text, errBroken.Error()), b.at > 0 && !b.after && !b.unread && !errors.Is(err, errBroken):
		wrong = append(wrong, "the reason is lost")
	case b.written && !strings.Contains(text, b.text) && !strings.Contains(text, fmt.Sprintf("%q", b.text)) && !strings.HasPrefix(text, "x: migration to schema 16: "):
		wrong = append(wrong, "the statement is not named")
	}
	if !u.inside && (b.written != errors.Is(err, store.ErrFailed) || b.written != (s.usable() != nil)) {
		wrong = append(wrong, fmt.Sprintf("the store says %v", s.usable()))
	}
	return wrong
}

// TestNoCallIsTakenLate: one whose caller is gone does nothing, and after its end a store does nothing.
func TestNoCallIsTakenLate(t *testing.T) {
	m := filled(t)
	s, _ := breakable(t, m)
	before := content(t, m, s)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, u := range uses(t) {
		if u.inside || u.empty || u.name == "forget runs" {
			continue
		}
		if err := u.call(gone, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, its caller gone: %v", u.name, err)
		}
	}
	if err := s.Start(s.w); err != nil || content(t, m, s) != before {
		t.Errorf("something was done, %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, u := range uses(t) {
		if u.inside || u.empty {
			continue
		}
		if err := u.call(context.Background(), s); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s, closed: %v", u.name, err)
		} else if u.name == "events" && err.Error() != store.ErrClosed.Error() { // whoever follows them ends with the daemon
			t.Error(err)
		}
	}
}

// TestEachStepOfARepairFails: whichever fails, nothing is changed; what was written down before may be there.
func TestEachStepOfARepairFails(t *testing.T) {
	ctx, m := context.Background(), filled(t)
	s, b := breakable(t, m)
	if err := m.keep.exec("UPDATE spec SET data = '{'; UPDATE event SET data = '{' WHERE seq = 1; INSERT INTO measure VALUES (2, 1, 9, '{}'); UPDATE meta SET next_id = 1; UPDATE claims SET data = '{'"); err != nil {
		t.Fatal(err)
	}
	connector, err := sqlite.NewConnector(m.dsn + "&" + pragmas)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(breakingConnector{connector, b})
	defer db.Close()
	before, path := content(t, m, s), filepath.Join(t.TempDir(), "aside")
	repair := func() error {
		return examining(ctx, db, func(tx *sql.Tx, r *sqlstore.Reader, found []Finding) error { return setAside(tx, r, found, path) })
	}
	for n := 1; ; n++ {
		*b = breaking{at: n}
		err := repair()
		now := *b
		*b = breaking{}
		if now.steps < n {
			if err != nil || n < 90 || content(t, m, s) == before {
				t.Errorf("after %d steps: %v", n, err)
			}
			break
		}
		if !errors.Is(err, errBroken) || content(t, m, s) != before {
			t.Fatalf("step %d, %s: %v, or something was changed", n, now.text, err)
		}
		_ = os.Remove(path)
	}
	if sum, err := m.keep.Ints("SELECT sum IS NULL, next_id FROM meta", 2); err != nil || sum[0] != 1 || sum[1] != 5 {
		t.Errorf("counters %v, %v", sum, err)
	}
	// What has nothing to do writes nothing.
	*b = breaking{at: 4}
	if n, err := s.ForgetNodeEvents(ctx, storetest.T0, 9); n != 0 || err != nil || b.steps != 3 {
		t.Errorf("%d, %v in %d steps", n, err, b.steps)
	}
}

// TestBackupLeavesNothing: one that failed leaves neither a copy nor a part of one, and nothing that is there is written.
func TestBackupLeavesNothing(t *testing.T) {
	ctx, m := context.Background(), filled(t)
	s, b := breakable(t, m)
	for n := 1; n <= 3; n++ {
		dir := t.TempDir()
		*b = breaking{at: n}
		err := s.Backup(ctx, filepath.Join(dir, "b"))
		if left, e := os.ReadDir(dir); !errors.Is(err, errBroken) || e != nil || len(left) > 0 {
			t.Errorf("step %d: %v; left %v, %v", n, err, left, e)
		}
	}
	*b = breaking{}
	dir := t.TempDir()
	path := filepath.Join(dir, "b")
	// A part of one that was cut short is no obstacle; one that can't be taken away is.
	if err := os.WriteFile(path+".part", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(ctx, path); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "c.part", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(ctx, filepath.Join(dir, "c")); err == nil || !strings.HasPrefix(err.Error(), "backup to "+dir+"/c: remove ") {
		t.Errorf("%v", err)
	}
	if err := s.Backup(ctx, filepath.Join(dir, "no", "b")); err == nil || !strings.HasPrefix(err.Error(), "backup to "+dir+"/no/b: ") {
		t.Errorf("%v", err)
	}
	// Its connections still write nothing.
	if err := (database{s}).Reading(ctx, func(r *sqlstore.Reader) error { return r.Remove(&sqlstore.Finding{Table: "run", Row: "1"}) }); err != nil {
		t.Errorf("%v", err)
	}
	if _, err := s.read.ExecContext(ctx, "DELETE FROM run"); err == nil {
		t.Error("a connection for reading wrote")
	}
}

// TestWhatCanNotBeWritten: a row without a form on the disk ends the batch, of which nothing is there.
func TestWhatCanNotBeWritten(t *testing.T) {
	ctx := context.Background()
	never := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON has no such year
	job := func(change func(j *gang.Job)) *gang.Changes {
		j := storetest.NewJob(3, 1)
		change(j)
		return storetest.Submitted(j)
	}
	noSpec := storetest.Submitted(storetest.NewJob(3, 1))
	noSpec.Jobs[0].SpecHash, noSpec.Specs = "unheard", nil
	lateSpec := job(func(j *gang.Job) { j.SpecHash = "unheard"; s := *j.Spec; s.Begin, j.Spec = never, &s })
	const year = "year outside of range"
	s := openMemory(t)
	storetest.Fill(t, s)
	for name, c := range map[string]struct {
		ch   *gang.Changes
		want string
	}{
		"job":            {job(func(j *gang.Job) { j.Submit = never }), year},
		"spec":           {lateSpec, year},
		"no spec":        {noSpec, "job 3 is new, and its spec unheard is not in the batch"},
		"rank":           {&gang.Changes{Ranks: []gang.RankRow{{Job: 2, Index: 1, Rank: gang.Rank{State: api.RankRunning, Start: never}}}}, year},
		"attempt":        {&gang.Changes{Epochs: []gang.EpochRow{{Job: 2, Epoch: 2, Started: never}}}, year},
		"step":           {&gang.Changes{Steps: []api.Step{{JobID: 2, Epoch: 1, StepID: "1", StartTime: never}}}, year},
		"step of a name": {&gang.Changes{Steps: []api.Step{{JobID: 2, Epoch: 1, StepID: "batch"}}}, `step "batch" of job 2 has no number`},
		"node":           {&gang.Changes{Nodes: []*gang.Node{{Name: "n", LastSeen: never}}}, year},
		"reservation":    {&gang.Changes{SiteChanges: gang.SiteChanges{Reservations: []gang.ReservationRow{{Name: "q", R: &api.Reservation{Name: "q", Start: never}}}}}, year},
		"partition":      {&gang.Changes{SiteChanges: gang.SiteChanges{Partitions: []gang.PartitionRow{{Name: "q", C: &api.PartitionChange{Name: "q", Time: never}}}}}, year},
		"crontab":        {&gang.Changes{SiteChanges: gang.SiteChanges{Crontabs: []gang.CrontabRow{{User: "bob", T: &api.Crontab{User: "bob", Time: never}}}}}, year},
		"letter":         {&gang.Changes{Letters: []gang.LetterRow{{ID: 32, Letter: &api.Letter{ID: 32, Time: never}}}}, year},
		"measure":        {&gang.Changes{Measures: []gang.MeasureRow{{Job: 2, Epoch: 1, Member: 1, Measure: &api.Measure{CPU: &api.Figure{Mean: math.NaN()}}}}}, "unsupported value: NaN"},
		"event":          {&gang.Changes{Events: []api.Event{{Seq: 9, JobID: 2, Time: never}}, NextSeq: 10}, year},
	} {
		c.ch.Claims = []byte("[7]")
		n, err := s.Commit(ctx, c.ch)
		if err == nil || !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), c.want) || n != 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		s.failed.Store(nil)
	}
	saved, err := s.Load(ctx, time.Time{})
	if err != nil || len(saved.Jobs) != 1 || string(saved.Claims) != "[]" || s.Lineage() != 1 || saved.NextID != 3 || saved.NextSeq != 2 {
		t.Errorf("%+v at commit %d, %v", saved, s.Lineage(), err)
	}
}
