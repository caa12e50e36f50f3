package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/store"
	"gangd/pkg/store/internal/sqlstore"
	"gangd/pkg/store/storetest"
)

// TestCopyFrom: every row of every table, told of as it is copied and compared; into nothing that was used.
func TestCopyFrom(t *testing.T) {
	ctx := context.Background()
	from, to := openMemory(t), openMemory(t)
	storetest.Fill(t, from)
	var done, all, calls int64
	to.Copying = func(d, a int64) { done, all, calls = d, a, calls+1 }
	copied, err := to.CopyFrom(ctx, from.Store)
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for _, c := range copied {
		n, err := from.w.Ints("SELECT count(*) FROM "+c.Table, 1)
		if err != nil || n[0] == 0 || n[0] != c.Rows {
			t.Errorf("%d rows of table %s were copied, of %v, %v", c.Rows, c.Table, n, err)
		}
		rows += c.Rows
	}
	if all != 2*rows || done != all || calls != all {
		t.Errorf("told of %d of %d in %d calls, rows are %d", done, all, calls, rows)
	}
	was, err := from.w.Ints("SELECT lineage, next_id, next_seq FROM meta", 3)
	is, err2 := to.w.Ints("SELECT lineage, next_id, next_seq FROM meta", 3)
	if err != nil || err2 != nil || !slices.Equal(was, is) {
		t.Errorf("counters %v, of %v", is, was)
	}
	if letters, err := to.Letters(ctx); err != nil || len(letters) != 1 || letters[0].ID != 16 {
		t.Errorf("letters %+v, %v", letters, err)
	}
	// Without anybody who wants to know.
	if _, err := openMemory(t).CopyFrom(ctx, from.Store); err != nil {
		t.Error(err)
	}
	used := func(sql string) *Store {
		s := openMemory(t)
		if err := s.w.exec(sql); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for want, s := range map[string]*Store{
		"the store is not empty: it has commit 2":                                                                   used("UPDATE meta SET lineage = 2"),
		"the store is not empty: it has commit 0":                                                                   used("UPDATE meta SET next_id = 2"),
		"the store is not empty: it has commit 0 ":                                                                  used("UPDATE meta SET next_seq = 2"),
		"the store is not empty: it has 1 rows in table release":                                                    used("INSERT INTO release (job, epoch, step, name, keys) VALUES (1, 1, -1, 'a', '[]')"),
		"the 1 rows of table reservation are not what they were":                                                    used("CREATE TRIGGER t AFTER INSERT ON reservation BEGIN UPDATE reservation SET data = 'x'; END"),
		"table event has 0 rows, of 1":                                                                              used("CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM event; END"),
		"table node: INSERT INTO node (name, data) VALUES ($1, $2), ($3, $4), ($5, $6): constraint failed: no room": used("CREATE TRIGGER t BEFORE INSERT ON node BEGIN SELECT RAISE(FAIL, 'no room'); END"),
	} {
		all, err := s.CopyFrom(ctx, from.Store)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || all != nil || strings.HasPrefix(want, "the store is not empty") != errors.Is(err, sqlstore.ErrNotEmpty) {
			t.Errorf("%v, %v, want %s", all, err, want)
		}
	}
}

// TestErrorsOfTheDatabase: what a statement says ends the call that made it.
func TestErrorsOfTheDatabase(t *testing.T) {
	ctx := context.Background()
	key := store.SetKey{MemberKey: api.MemberKey{Job: 2, Epoch: 1}, Step: store.OfRanks}
	refuse := func(what, table string) string {
		return "CREATE TRIGGER t BEFORE " + what + " ON " + table + " BEGIN SELECT RAISE(FAIL, 'no room'); END"
	}
	for name, c := range map[string]struct {
		sql  string
		call func(s *Store) error
	}{
		"put of a piece": {refuse("INSERT", "checkpoint_piece"), func(s *Store) error {
			_, _, err := s.PutCheckpoint(ctx, key, 0, "", strings.NewReader("x"))
			return err
		}},
		"put of its row": {refuse("INSERT", "checkpoint"), func(s *Store) error {
			_, _, err := s.PutCheckpoint(ctx, key, 0, "", strings.NewReader("x"))
			return err
		}},
		"dropped checkpoints": {refuse("DELETE", "checkpoint"), func(s *Store) error { return s.DropCheckpoints(ctx, 2) }},
		"dropped pieces":      {refuse("DELETE", "checkpoint_piece"), func(s *Store) error { return s.DropCheckpoints(ctx, 2) }},
		"release":             {refuse("INSERT", "release"), func(s *Store) error { return s.PutRelease(ctx, store.Release{Name: "y", SetKey: key}) }},
		"a release before": {refuse("DELETE", "release"), func(s *Store) error {
			return s.PutRelease(ctx, store.Release{Name: "x", SetKey: store.SetKey{MemberKey: key.MemberKey, Step: 3}})
		}},
		"dropped releases":     {refuse("DELETE", "release"), func(s *Store) error { return s.DropReleases(ctx, 2) }},
		"run":                  {refuse("INSERT", "run"), func(s *Store) error { _, err := s.Begin(ctx, "x"); return err }},
		"runs":                 {"DROP TABLE run", func(s *Store) error { return s.ForgetRuns(ctx) }},
		"events of nodes":      {"INSERT INTO event (seq, job, data) VALUES (77, 0, '{}'); " + refuse("DELETE", "event"), func(s *Store) error { _, err := s.ForgetNodeEvents(ctx, time.Now(), 5); return err }},
		"event of a node":      {"INSERT INTO event (seq, job, data) VALUES (77, 0, '{')", func(s *Store) error { _, err := s.ForgetNodeEvents(ctx, time.Now(), 5); return err }},
		"forgotten":            {refuse("DELETE", "epoch"), func(s *Store) error { _, err := s.Forget(ctx, nil); return err }},
		"jobs that ended":      {"ALTER TABLE job RENAME TO work", func(s *Store) error { _, err := s.Due(ctx, time.Now(), nil, 5); return err }},
		"claims":               {"UPDATE claims SET data = '{'", func(s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }},
		"no claims":            {"DROP TABLE claims", func(s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }},
		"rank of no job":       {"INSERT INTO rank VALUES ((2 << 16) + 1600, '{}')", func(s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }},
		"job without its spec": {"DELETE FROM spec", func(s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }},
		"letter":               {"UPDATE letter SET data = '{'", func(s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }},
		"measure":              {"UPDATE measure SET data = '{'", func(s *Store) error { _, err := s.Measures(ctx, 2); return err }},
		"ledger":               {"DROP TABLE ledger", func(s *Store) error { _, err := s.Ledger(ctx, &api.LedgerQuery{}); return err }},
		"attempts":             {"UPDATE epoch SET data = '{' WHERE job = 2", func(s *Store) error { _, err := s.Epochs(ctx, 2); return err }},
		"partition in a commit": {refuse("INSERT", `"partition"`), func(s *Store) error {
			_, err := s.Commit(ctx, &gang.Changes{Partitions: []gang.PartitionRow{{Name: "q", C: &api.PartitionChange{Name: "q", Partition: &api.Partition{Name: "q"}}}}})
			return err
		}},
	} {
		s := openMemory(t)
		storetest.Fill(t, s)
		if err := s.w.exec(c.sql); err != nil {
			t.Fatal(name, err)
		}
		if err := c.call(s); err == nil {
			t.Errorf("%s: done", name)
		}
	}
}
