package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gangd/pkg/controller/store/internal/row"
)

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

// jobRow is what other rows are held against.
type jobRow struct{ size, epoch int }

// examination looks at all rows in one transaction.
type examination struct {
	*Reader
	goneJobs map[int64]bool
	jobs     map[int64]jobRow
	bad      map[int64]string // jobs that are set aside whole, with why
	// specOf is the spec of each job that has one.
	specOf map[int64]string
	found  []Finding
}

// mostID is the largest id of a job: the ids of its ranks have room.
const mostID = 1 << 46

// Examine reads all rows and gives those that are impossible.
func Examine(reader *Reader) ([]Finding, error) {
	r := &examination{Reader: reader, jobs: map[int64]jobRow{}, bad: map[int64]string{}, specOf: map[int64]string{},
		goneJobs: map[int64]bool{}}
	if err := r.ids("SELECT job FROM gone", func(id int64) { r.goneJobs[id] = true }); err != nil {
		return nil, err
	}
	for _, look := range []func() error{r.specs, r.rowsOfJobs, r.ranks, r.parts, r.others, r.ledgerRows, r.wholeJobs, r.meta} {
		if err := look(); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

func (r *examination) find(table, row string, why error, where string, args ...any) {
	r.found = append(r.found, Finding{Table: table, Row: row, Why: why.Error(), where: where, args: args})
}

// keyed looks at each row of a table with an integer key.
func (r *examination) keyed(query string, look func(id int64, data []byte)) error {
	return r.Each(func(scan func(...any) error) error {
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
func (r *examination) specs() error {
	if err := r.named(func(hash string, data []byte) error {
		if err := readable(data, "spec "+hash, row.CheckSpec); err != nil {
			r.find("spec", hash, err, "hash = $1", hash)
		}
		return nil
	}, "SELECT hash, data FROM spec"); err != nil {
		return err
	}
	for i := range r.found {
		hash := r.found[i].Row
		if err := r.ids("SELECT id FROM job WHERE spec = $1", func(id int64) { r.bad[id] = "its spec " + hash + " can't be read" },
			hash); err != nil {
			return err
		}
	}
	return nil
}

func (r *examination) rowsOfJobs() error {
	return r.Each(func(scan func(...any) error) error {
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
func (r *examination) ranks() error {
	return r.keyed("SELECT id, data FROM rank", func(id int64, data []byte) {
		job, index := id>>rankBits, int(id&(1<<rankBits-1))
		name := fmt.Sprintf("%d of job %d", index, job)
		j, known := r.jobs[job]
		switch err := readable(data, rowName("rank", id), row.CheckRank); {
		case known && index >= j.size:
			r.find("rank", name, fmt.Errorf("its job has %d ranks", j.size), "id = $1", id)
		case known && err != nil && r.bad[job] == "":
			r.bad[job] = fmt.Sprintf("the row of its rank %d can't be read: %v", index, err)
		case !known && r.bad[job] == "" && !r.gone(job):
			r.find("rank", name, errors.New("there is no such job"), "id = $1", id)
		}
	})
}

// gone: its rows are removed by gangd in its own time.
func (r *examination) gone(job int64) bool { return r.goneJobs[job] }

// third is the last column of the key of a part that has three.
var third = map[string]string{"step": "step", "measure": "member"}

// parts are rows of a job with a number: attempts, steps and measures.
func (r *examination) parts() error {
	for _, t := range []struct {
		table, query string
		check        func([]byte) error
	}{
		{"epoch", "SELECT job, epoch, -1, data FROM epoch", row.CheckEpoch},
		{"step", "SELECT job, epoch, step, data FROM step", row.CheckStep},
		{"measure", "SELECT job, epoch, member, data FROM measure", row.CheckMeasure},
	} {
		if err := r.Each(func(scan func(...any) error) error {
			var job, epoch, step int64
			var data []byte
			if err := scan(&job, &epoch, &step, &data); err != nil {
				return err
			}
			name, where, args, keys := fmt.Sprintf("%d of job %d", epoch, job), "job = $1 AND epoch = $2", []any{job, epoch}, []int64{job, epoch}
			if step >= 0 {
				name, where = fmt.Sprintf("%d of job %d epoch %d", step, job, epoch), where+" AND "+third[t.table]+" = $3"
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
func (r *examination) others() error {
	if err := r.keyed("SELECT seq, data FROM event", func(seq int64, data []byte) {
		err := readable(data, rowName("event", seq), row.CheckEvent)
		if err == nil && (seq < 1 || seq > mostID) {
			err = errors.New("its number is out of range")
		}
		if err != nil {
			r.find("event", fmt.Sprint(seq), err, "seq = $1", seq)
		}
	}); err != nil {
		return err
	}
	if err := r.keyed("SELECT id, data FROM letter", func(id int64, data []byte) {
		if err := readable(data, rowName("letter", id), row.CheckLetter); err != nil {
			r.find("letter", fmt.Sprint(id), err, "id = $1", id)
		}
	}); err != nil {
		return err
	}
	if err := r.keyed("SELECT one, CAST(data AS TEXT) FROM claims", func(_ int64, data []byte) {
		claims, err := openClaims(data)
		if err == nil && !json.Valid(claims) {
			err = errors.New("it is no JSON")
		}
		if err != nil {
			r.find("claims", "1", err, "one = 1")
		}
	}); err != nil {
		return err
	}
	if err := r.keyed("SELECT id, keys FROM release", func(id int64, data []byte) {
		if !json.Valid(data) {
			r.find("release", fmt.Sprint(id), errors.New("its keys are no JSON"), "id = $1", id)
		}
	}); err != nil {
		return err
	}
	for table, check := range map[string]func([]byte) error{"node": row.CheckNode, "reservation": row.CheckReservation,
		"partition": row.CheckPartition, "crontab": row.CheckCrontab} {
		if err := r.named(func(name string, data []byte) error {
			if err := readable(data, table+" "+name, check); err != nil {
				r.find(table, name, err, "name = $1", name)
			}
			return nil
		}, "SELECT name, data FROM "+table); err != nil {
			return err
		}
	}
	return r.ids("SELECT gone.job FROM gone JOIN job ON job.id = gone.job", func(id int64) {
		r.find("gone", fmt.Sprint(id), errors.New("it was forgotten and is there"), "job = $1", id)
	})
}

// wholeJobs lists the jobs that are set aside with all their rows.
func (r *examination) wholeJobs() error {
	if err := r.sparedSpecs(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.bad)) {
		name := fmt.Sprint(id)
		r.find("job", name, errors.New(r.bad[id]), "id = $1", id)
		with := fmt.Errorf("it goes with job %d", id)
		if id >= 0 && id <= mostID {
			if err := r.ids("SELECT id FROM rank WHERE id >= $1 AND id < $2", func(rank int64) {
				r.find("rank", fmt.Sprintf("%d of job %d", rank&(1<<rankBits-1), id), with, "id = $1", rank)
			}, id<<rankBits, (id+1)<<rankBits); err != nil {
				return err
			}
		}
		if err := r.ids("SELECT epoch FROM epoch WHERE job = $1", func(n int64) {
			r.find("epoch", fmt.Sprintf("%d of job %d", n, id), with, "job = $1 AND epoch = $2", id, n)
		}, id); err != nil {
			return err
		}
		for _, table := range slices.Sorted(maps.Keys(third)) {
			column := third[table]
			if err := r.Each(func(scan func(...any) error) error {
				var epoch, n int64
				err := scan(&epoch, &n)
				r.find(table, fmt.Sprintf("%d of job %d epoch %d", n, id, epoch), with, "job = $1 AND epoch = $2 AND "+column+" = $3", id, epoch, n)
				return err
			}, fmt.Sprintf("SELECT epoch, %s FROM %s WHERE job = $1", column, table), id); err != nil {
				return err
			}
		}
	}
	return nil
}

// sparedSpecs lists the specs of no job that is kept.
func (r *examination) sparedSpecs() error {
	has := map[string]bool{} // a job, or is listed already
	for id, hash := range r.specOf {
		has[hash] = has[hash] || r.bad[id] == ""
	}
	for i := range r.found {
		if r.found[i].Table == "spec" {
			has[r.found[i].Row] = true
		}
	}
	return r.Each(func(scan func(...any) error) error {
		var hash string
		err := scan(&hash)
		if !has[hash] {
			r.find("spec", hash, errors.New("no job that is kept has it"), "hash = $1", hash)
		}
		return err
	}, "SELECT hash FROM spec")
}

// meta are the counters: each has to be above all that was given out, and far from overflow.
func (r *examination) meta() error {
	var least struct{ job, gone, id, seq int64 }
	if err := r.One("SELECT coalesce((SELECT max(id) FROM job WHERE id <= $1), 0), coalesce((SELECT max(job) FROM gone WHERE job <= $1), 0), "+
		"coalesce((SELECT max(seq) FROM event WHERE seq <= $1), 0) + 1", []any{int64(mostID)}, &least.job, &least.gone, &least.seq); err != nil {
		return err
	}
	least.id = max(least.job, least.gone) + 1
	var lineage, id, seq int64
	err := r.One("SELECT lineage, next_id, next_seq FROM meta", nil, &lineage, &id, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		r.found = append(r.found, Finding{Table: "meta", Row: "1", Why: "it is missing: ids go on behind those of the jobs that are here; " +
			"nodes that have seen more commits put gangd on HOLD",
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

// Read reads the row of a finding by its columns, if it has one.
func (r *Reader) Read(f *Finding) error {
	if f.where == "" {
		return nil
	}
	rows, err := r.tx.QueryContext(r.ctx, fmt.Sprintf("SELECT * FROM %s WHERE %s", f.Table, f.where), f.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		return errors.Join(err, rows.Err())
	}
	values, to := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		to[i] = &values[i]
	}
	err = rows.Scan(to...)
	f.Content = map[string]any{}
	for i, name := range names {
		f.Content[name] = values[i]
	}
	return err
}

// Remove takes the row of a finding away, or puts it right, in a transaction that may write.
func (r *Reader) Remove(f *Finding) error {
	if f.where == "" && f.set == "" {
		return nil // its store mends it
	}
	text := f.set
	if text == "" {
		text = fmt.Sprintf("DELETE FROM %s WHERE %s", f.Table, f.where)
	}
	_, err := r.tx.ExecContext(r.ctx, text, f.args...)
	return err
}
