package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"gangd/pkg/store/internal/row"
)

// A store whose rows are impossible (text that is no JSON, numbers that overflow, ranks without their job)
// can't be loaded, and gangd does not start. Repair sets such rows aside, one by one, into a file, and
// leaves the rest. A file that is damaged below its rows is not touched: what SQLite can't read
// nobody can judge, and a backup is better than a guess.

// ErrMalformed: the file is damaged below its rows.
var ErrMalformed = errors.New("the store is damaged below its rows, it was left as it is: with gangd stopped move its directory away and put a backup " +
	"there (gangd backup), or keep what sqlite3's .recover can read of a copy")

// Finding is a row that is impossible.
type Finding struct {
	Table string `json:"table"`
	Row   string `json:"row"` // which, for people
	Why   string `json:"why"`
	// Content is the row, by column, as it was.
	Content map[string]any `json:"content,omitempty"`

	where string
	args  []any
	set   string // not empty: what it is changed to, without args, instead of being set aside
}

func (f *Finding) String() string { return fmt.Sprintf("%s %s: %s", f.Table, f.Row, f.Why) }

// asideFile is the name of the file for rows, by the time.
const asideFile = "set-aside-20060102T150405.000.jsonl"

// Repair reads all rows of the store in a directory that no gangd has open, and gives those that are
// impossible. With fix they are written to a file there, whose path it gives, and removed.
// An [ErrMalformed] changes nothing.
func Repair(ctx context.Context, dir string, fix bool, now time.Time) (found []Finding, aside string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	name := filepath.Join(dir, DatabaseName)
	if !exists(name) {
		return nil, "", fmt.Errorf("%s: there is no store", name)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, "", err
	}
	defer lock.Close()
	// Read-only first: a connection that may write copies the log into the file as it closes.
	err = repairing(ctx, name, "ro", func(r *repair) error {
		found = r.found
		return nil
	})
	if err != nil || !fix || len(found) == 0 {
		return found, "", err
	}
	aside = filepath.Join(dir, now.UTC().Format(asideFile))
	return found, aside, repairing(ctx, name, "rw", func(r *repair) error { return r.setAside(aside) })
}

// repairing looks at all rows in one transaction, and then does something.
func repairing(ctx context.Context, name, mode string, then func(*repair) error) (err error) {
	defer func() { err = malformed(name, err) }()
	connector, err := sqlite.NewConnector("file:" + uriPath(name) + "?mode=" + mode + "&" + pragmas)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	r := &repair{reader: reader{ctx: ctx, tx: tx}, jobs: map[int64]jobRow{}, bad: map[int64]string{}, specOf: map[int64]string{}}
	if err := r.examine(); err != nil {
		return err
	}
	return then(r)
}

// malformed names an error of SQLite that is about the file itself.
func malformed(name string, err error) error {
	if err == nil {
		return nil
	}
	if code := sqliteCode(err); code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB {
		return fmt.Errorf("%s: %w: %w", name, ErrMalformed, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// jobRow is what other rows are held against.
type jobRow struct{ size, epoch int }

type repair struct {
	reader
	jobs map[int64]jobRow
	bad  map[int64]string // jobs that are set aside whole, with why
	// specOf is the spec of each job that has one.
	specOf map[int64]string
	found  []Finding
}

// mostID is the largest id of a job: the ids of its ranks have room.
const mostID = 1 << 46

func (r *repair) examine() error {
	texts, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	var version int
	if err := r.tx.QueryRowContext(r.ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != len(texts) {
		return fmt.Errorf("it has schema %d, this gangd's is %d: use the gangd that wrote it, or start this one once", version, len(texts))
	}
	var below []string
	if err := r.each(func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		if text != "ok" {
			below = append(below, text)
		}
		return err
	}, "PRAGMA integrity_check(20)"); err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("%w:\n%s", ErrMalformed, strings.Join(below, "\n"))
	}
	for _, look := range []func() error{r.specs, r.rowsOfJobs, r.ranks, r.parts, r.others, r.wholeJobs, r.meta} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

func (r *repair) find(table, row string, why error, where string, args ...any) {
	r.found = append(r.found, Finding{Table: table, Row: row, Why: why.Error(), where: where, args: args})
}

// keyed looks at each row of a table with an integer key.
func (r *repair) keyed(query string, look func(id int64, data []byte)) error {
	return r.each(func(scan func(...any) error) error {
		var id int64
		var data []byte
		if err := scan(&id, &data); err != nil {
			return err
		}
		look(id, data)
		return nil
	}, query)
}

// specs that can't be read take their jobs with them.
func (r *repair) specs() error {
	return r.named(func(hash string, data []byte) error {
		if err := readable(data, "spec "+hash, row.CheckSpec); err != nil {
			r.find("spec", hash, err, "hash = ?", hash)
			return r.ids("SELECT id FROM job WHERE spec = ?", func(id int64) { r.bad[id] = "its spec " + hash + " can't be read" }, hash)
		}
		return nil
	}, "SELECT hash, data FROM spec")
}

// ids reads one column of ids.
func (r *repair) ids(query string, take func(id int64), args ...any) error {
	return r.each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		take(id)
		return err
	}, query, args...)
}

func (r *repair) rowsOfJobs() error {
	return r.each(func(scan func(...any) error) error {
		var id int64
		var ended *int64
		var spec bool
		var hash string
		var data []byte
		if err := scan(&id, &ended, &data, &hash, &spec); err != nil {
			return err
		}
		if spec {
			r.specOf[id] = hash
		}
		why := ""
		if err := readable(data, jobName(id, hash), row.CheckJob); err != nil {
			why = err.Error()
		} else if size, epoch, over := row.JobSize(data); over != (ended != nil) {
			why = "it has an end and no verdict, or a verdict and no end"
		} else {
			r.jobs[id] = jobRow{size, epoch}
		}
		switch {
		case r.bad[id] != "":
		case id < 1 || id > mostID:
			r.bad[id] = "its id is out of range"
		case why != "":
			r.bad[id] = why
		case !spec:
			r.bad[id] = "its spec is missing"
		}
		return nil
	}, "SELECT id, ended, data, spec, EXISTS (SELECT 1 FROM spec WHERE spec.hash = job.spec) FROM job")
}

// ranks: one that can't be read takes its job with it, which would be half a gang.
func (r *repair) ranks() error {
	return r.keyed("SELECT id, data FROM rank", func(id int64, data []byte) {
		job, index := id>>rankBits, int(id&(1<<rankBits-1))
		name := fmt.Sprintf("%d of job %d", index, job)
		j, known := r.jobs[job]
		switch err := readable(data, rowName("rank", id), row.CheckRank); {
		case known && index >= j.size:
			r.find("rank", name, fmt.Errorf("its job has %d ranks", j.size), "id = ?", id)
		case known && err != nil && r.bad[job] == "":
			r.bad[job] = fmt.Sprintf("the row of its rank %d can't be read: %v", index, err)
		case !known && r.bad[job] == "" && !r.gone(job):
			r.find("rank", name, errors.New("there is no such job"), "id = ?", id)
		}
	})
}

// gone: its rows are removed by gangd in its own time.
func (r *repair) gone(job int64) bool {
	var n int
	return r.tx.QueryRowContext(r.ctx, "SELECT count(*) FROM gone WHERE job = ?", job).Scan(&n) == nil && n > 0
}

// parts are rows of a job with a number: attempts and steps.
func (r *repair) parts() error {
	for _, t := range []struct {
		table, query string
		check        func([]byte) error
	}{
		{"epoch", "SELECT job, epoch, -1, data FROM epoch", row.CheckEpoch},
		{"step", "SELECT job, epoch, step, data FROM step", row.CheckStep},
	} {
		if err := r.each(func(scan func(...any) error) error {
			var job, epoch, step int64
			var data []byte
			if err := scan(&job, &epoch, &step, &data); err != nil {
				return err
			}
			name, where, args, keys := fmt.Sprintf("%d of job %d", epoch, job), "job = ? AND epoch = ?", []any{job, epoch}, []int64{job, epoch}
			if step >= 0 {
				name, where = fmt.Sprintf("%d of job %d epoch %d", step, job, epoch), where+" AND step = ?"
				args, keys = append(args, step), append(keys, step)
			}
			j, known := r.jobs[job]
			switch err := readable(data, rowName(t.table, keys...), t.check); {
			case r.bad[job] != "": // goes with it
			case err != nil:
				r.find(t.table, name, err, where, args...)
			case known && (epoch < 1 || epoch > int64(j.epoch)):
				r.find(t.table, name, fmt.Errorf("its job is at epoch %d", j.epoch), where, args...)
			case !known && !r.gone(job):
				r.find(t.table, name, errors.New("there is no such job"), where, args...)
			}
			return nil
		}, t.query); err != nil {
			return err
		}
	}
	return nil
}

// others are rows of no job.
func (r *repair) others() error {
	if err := r.keyed("SELECT seq, data FROM event", func(seq int64, data []byte) {
		err := readable(data, rowName("event", seq), row.CheckEvent)
		if err == nil && (seq < 1 || seq > mostID) {
			err = errors.New("its number is out of range")
		}
		if err != nil {
			r.find("event", fmt.Sprint(seq), err, "seq = ?", seq)
		}
	}); err != nil {
		return err
	}
	if err := r.keyed("SELECT one, CAST(data AS TEXT) FROM claims", func(_ int64, data []byte) {
		if !json.Valid(data) {
			r.find("claims", "1", errors.New("it is no JSON"), "one = 1")
		}
	}); err != nil {
		return err
	}
	if err := r.keyed("SELECT id, keys FROM release", func(id int64, data []byte) {
		if !json.Valid(data) {
			r.find("release", fmt.Sprint(id), errors.New("its keys are no JSON"), "id = ?", id)
		}
	}); err != nil {
		return err
	}
	for table, check := range map[string]func([]byte) error{"node": row.CheckNode, "reservation": row.CheckReservation} {
		if err := r.named(func(name string, data []byte) error {
			if err := readable(data, table+" "+name, check); err != nil {
				r.find(table, name, err, "name = ?", name)
			}
			return nil
		}, "SELECT name, data FROM "+table); err != nil {
			return err
		}
	}
	return r.ids("SELECT gone.job FROM gone JOIN job ON job.id = gone.job", func(id int64) {
		r.find("gone", fmt.Sprint(id), errors.New("it was forgotten and is there"), "job = ?", id)
	})
}

// wholeJobs lists the jobs that are set aside with all their rows.
func (r *repair) wholeJobs() error {
	if err := r.sparedSpecs(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.bad)) {
		name := fmt.Sprint(id)
		r.find("job", name, errors.New(r.bad[id]), "id = ?", id)
		delete(r.jobs, id)
		with := fmt.Errorf("it goes with job %d", id)
		if id >= 0 && id <= mostID {
			if err := r.ids("SELECT id FROM rank WHERE id >= ? AND id < ?", func(rank int64) {
				r.find("rank", fmt.Sprintf("%d of job %d", rank&(1<<rankBits-1), id), with, "id = ?", rank)
			}, id<<rankBits, (id+1)<<rankBits); err != nil {
				return err
			}
		}
		if err := r.ids("SELECT epoch FROM epoch WHERE job = ?", func(n int64) {
			r.find("epoch", fmt.Sprintf("%d of job %d", n, id), with, "job = ? AND epoch = ?", id, n)
		}, id); err != nil {
			return err
		}
		if err := r.each(func(scan func(...any) error) error {
			var epoch, step int64
			err := scan(&epoch, &step)
			r.find("step", fmt.Sprintf("%d of job %d epoch %d", step, id, epoch), with, "job = ? AND epoch = ? AND step = ?", id, epoch, step)
			return err
		}, "SELECT epoch, step FROM step WHERE job = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// sparedSpecs lists the specs of no job that is kept.
func (r *repair) sparedSpecs() error {
	has := map[string]bool{} // a job, or is listed already
	for id, hash := range r.specOf {
		has[hash] = has[hash] || r.bad[id] == ""
	}
	for i := range r.found {
		if r.found[i].Table == "spec" {
			has[r.found[i].Row] = true
		}
	}
	return r.each(func(scan func(...any) error) error {
		var hash string
		err := scan(&hash)
		if !has[hash] {
			r.find("spec", hash, errors.New("no job that is kept has it"), "hash = ?", hash)
		}
		return err
	}, "SELECT hash FROM spec")
}

// meta are the counters: each has to be above all that was given out, and far from overflow.
func (r *repair) meta() error {
	var least struct{ id, seq int64 }
	if err := r.tx.QueryRowContext(r.ctx, "SELECT max(coalesce((SELECT max(id) FROM job WHERE id <= ?1), 0), coalesce((SELECT max(job) FROM gone WHERE job <= ?1), 0)) + 1, "+
		"coalesce((SELECT max(seq) FROM event WHERE seq <= ?1), 0) + 1", int64(mostID)).Scan(&least.id, &least.seq); err != nil {
		return err
	}
	var lineage, id, seq int64
	err := r.tx.QueryRowContext(r.ctx, "SELECT lineage, next_id, next_seq FROM meta").Scan(&lineage, &id, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		r.found = append(r.found, Finding{Table: "meta", Row: "1", Why: "it is missing: ids go on behind those of the jobs that are here; nodes that have seen more commits put gangd on HOLD",
			set: fmt.Sprintf("INSERT INTO meta (one, lineage, next_id, next_seq) VALUES (1, 1, %d, %d)", least.id, least.seq)})
		return nil
	}
	if err != nil {
		return err
	}
	wrong := func(what string, is, to int64) {
		r.found = append(r.found, Finding{Table: "meta", Row: what, Why: fmt.Sprintf("%d is impossible: %d is put in its place", is, to),
			where: "one = 1", set: fmt.Sprintf("UPDATE meta SET %s = %d", what, to)})
	}
	if lineage < 0 || lineage > 1<<62 {
		wrong("lineage", lineage, 1)
	}
	if id < least.id || id > mostID {
		wrong("next_id", id, least.id)
	}
	if seq < least.seq || seq > mostID {
		wrong("next_seq", seq, least.seq)
	}
	return nil
}

// setAside writes the rows to a file that is on the disk before they are removed.
func (r *repair) setAside(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	out := json.NewEncoder(f)
	for i := range r.found {
		x := &r.found[i]
		if x.where != "" {
			if x.Content, err = r.content(x); err != nil {
				return err
			}
		}
		if err := out.Encode(x); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Sync(), syncDir(filepath.Dir(path))); err != nil {
		return err
	}
	for i := range r.found {
		x := &r.found[i]
		text := x.set
		if text == "" {
			text = fmt.Sprintf("DELETE FROM %s WHERE %s", x.Table, x.where)
		}
		if _, err := r.tx.ExecContext(r.ctx, text, x.args...); err != nil {
			return err
		}
	}
	return r.tx.Commit()
}

// content is a row by its columns.
func (r *repair) content(x *Finding) (map[string]any, error) {
	rows, err := r.tx.QueryContext(r.ctx, fmt.Sprintf("SELECT * FROM %s WHERE %s", x.Table, x.where), x.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		return nil, errors.Join(err, rows.Err())
	}
	values, to := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		to[i] = &values[i]
	}
	if err := rows.Scan(to...); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for i, name := range names {
		out[name] = values[i]
	}
	return out, rows.Err()
}
