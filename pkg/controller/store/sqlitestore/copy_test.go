package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/storetest"
)

// TestCopyFrom: every row of every table, told of as it is copied and compared; into nothing that was used.
func TestCopyFrom(t *testing.T) {
	ctx := context.Background()
	from, to := openMemory(t), openMemory(t)
	storetest.Fill(t, from)
	var done, all, calls int64
	to.Copying = func(d, a int64) {
		if done, all, calls = d, a, calls+1; done != calls {
			t.Fatalf("told of %d at call %d", done, calls)
		}
	}
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

// TestRowsThatCanNotBeRead: what reads one says which it is.
func TestRowsThatCanNotBeRead(t *testing.T) {
	ctx := context.Background()
	load := func(s *Store) error { _, err := s.Load(ctx, time.Time{}); return err }
	whole := filled(t)
	for sql, c := range map[string]struct {
		want string
		call func(s *Store) error
	}{
		"UPDATE claims SET data = '{'":                        {"load: row claims: it is no list", load},
		"UPDATE claims SET data = replace(data, '[]', '[1]')": {"load: row claims: damaged: ", load},
		"INSERT INTO rank VALUES ((2 << 16) + 1500, '{}')":    {"load: rank 1500 of job 2 has a row, but the job has no such rank", load},
		"UPDATE rank SET data = '{' WHERE id = 2 << 16":       {"load: row of rank 0 of job 2: unexpected end of JSON input", load},
		"UPDATE rank SET data = replace(data, 'pid', 'uid')":  {"load: row rank 13107", load},
		"DELETE FROM spec":                                                    {"load: job 2: its spec hash-of-train is missing", load},
		"UPDATE spec SET data = '{'":                                          {"load: row of spec hash-of-train: unexpected end of JSON input", load},
		"UPDATE spec SET data = replace(data, 'ada', 'bob')":                  {"load: row spec hash-of-train: damaged: ", load},
		"UPDATE job SET data = '{' WHERE id = 2":                              {"load: row of job 2: unexpected end of JSON input", load},
		"UPDATE job SET data = replace(data, 'ada', 'bob')":                   {"load: row job 2 hash-of-train: damaged: ", load},
		"UPDATE letter SET data = '{'":                                        {"load: row of letter 16: unexpected end of JSON input", load},
		"UPDATE letter SET data = replace(data, 'ada', 'bob')":                {"load: row letter 16: damaged: ", load},
		"UPDATE node SET data = '{' WHERE name = 'n10'":                       {"load: row of node n10: unexpected end of JSON input", load},
		"UPDATE reservation SET data = '{'":                                   {"load: row of reservation r: unexpected end of JSON input", load},
		"UPDATE partition SET data = '{'":                                     {"load: row of partition p: unexpected end of JSON input", load},
		"UPDATE crontab SET data = '{'":                                       {"load: row of the cron table of ada: unexpected end of JSON input", load},
		"UPDATE crontab SET data = replace(data, '@daily', '@hourly')":        {"load: row crontab ada: damaged: ", load},
		"DELETE FROM meta":                                                    {"load: sql: no rows in result set", load},
		"UPDATE measure SET data = '{'":                                       {"measures of job 2: ", func(s *Store) error { _, err := s.Measures(ctx, 2); return err }},
		"UPDATE measure SET data = replace(data, 'n10', 'n11')":               {"measures of job 2: row measure 2 1 0: damaged: ", func(s *Store) error { _, err := s.Measures(ctx, 2); return err }},
		"UPDATE epoch SET data = '{' WHERE job = 2":                           {"attempts of job 2: ", func(s *Store) error { _, err := s.Epochs(ctx, 2); return err }},
		"UPDATE epoch SET epoch = 2 WHERE job = 2":                            {"attempts of job 2: row epoch 2 2: damaged: ", func(s *Store) error { _, err := s.Epochs(ctx, 2); return err }},
		"UPDATE step SET data = '{'":                                          {"steps of job 1: ", func(s *Store) error { _, err := s.Steps(ctx, 1); return err }},
		"UPDATE step SET step = 7":                                            {"steps of job 1: row step 1 1 7: damaged: ", func(s *Store) error { _, err := s.Steps(ctx, 1); return err }},
		"UPDATE event SET data = '{' WHERE seq = 2":                           {"events: ", func(s *Store) error { _, err := s.Events(ctx, 0, 0, 0); return err }},
		"UPDATE event SET seq = 3 WHERE seq = 2":                              {"events: row event 3: damaged: ", func(s *Store) error { _, err := s.Events(ctx, 0, 0, 0); return err }},
		"UPDATE event SET data = '{' WHERE job = 0":                           {"forget events of nodes: ", func(s *Store) error { _, err := s.ForgetNodeEvents(ctx, time.Now(), 5); return err }},
		"UPDATE spec SET data = '{' WHERE hash = 'hash-of-train'":             {"spec hash-of-train: row of spec hash-of-train: unexpected end of JSON input", func(s *Store) error { _, err := s.Spec(ctx, "hash-of-train"); return err }},
		"UPDATE spec SET data = replace(data, 'ada', 'bob') WHERE 1":          {"spec hash-of-train: row spec hash-of-train: damaged: ", func(s *Store) error { _, err := s.Spec(ctx, "hash-of-train"); return err }},
		"UPDATE release SET keys = '{'":                                       {"unexpected end of JSON input", func(s *Store) error { _, err := s.Releases(ctx); return err }},
		"UPDATE epoch SET data = '{'":                                         {"verify: ", func(s *Store) error { _, err := s.Verify(ctx); return err }},
		"UPDATE job SET id = 5 WHERE id = 2; UPDATE job SET data='{' WHERE 1": {"job 5: row of job 5: unexpected end of JSON input", func(s *Store) error { _, err := s.Job(ctx, 5); return err }},
	} {
		m, err := whole.Copy(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.w.exec(sql); err != nil {
			t.Fatal(sql, err)
		}
		if err := c.call(s); err == nil || !strings.HasPrefix(err.Error(), c.want) || s.usable() != nil {
			t.Errorf("%s: %v\nwant %s", sql, err, c.want)
		}
		s.Close()
		m.Close()
	}
}
