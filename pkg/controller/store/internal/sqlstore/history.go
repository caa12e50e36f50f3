package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"gangd/pkg/controller/store/internal/row"
)

// forgetRows is how many rows one transaction deletes of what forgotten jobs have left. A
// commit that comes meanwhile waits for one: 256 rows take about 1 ms.
const forgetRows = 256

// EndedNth walks the index of ends: 40 ns a job, no row is read.
func (s *Store) EndedNth(ctx context.Context, n int) (time.Time, error) {
	var at int64
	err := s.db.Reading(ctx, func(r *Reader) error {
		return r.One("SELECT ended FROM job WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT 1 OFFSET $1", []any{n - 1}, &at)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && at == 0:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("history: %w", err)
	}
	return time.Unix(0, at).UTC(), nil
}

// newestRows is how many rows are read at a time of a user's newest.
const newestRows = 64

// Newest walks the index of a user's ends for ids, and reads a few rows for the arrays that they are of.
func (s *Store) Newest(ctx context.Context, user string, n int) ([]int64, error) {
	var out []int64
	err := s.db.Reading(ctx, func(r *Reader) error {
		below := int64(math.MaxInt64)
		for more := true; more && len(out) < n; {
			rows := 0
			err := r.Each(func(scan func(...any) error) error {
				var id, array int64
				if err := scan(&id, &array); err != nil {
					return err
				}
				rows++
				if array != 0 {
					id = array // which is the id of its first element
				}
				if below > id {
					below = id
					out = append(out, id)
				}
				return nil
			}, `SELECT id, array_id FROM job WHERE id IN (SELECT id FROM job WHERE "user" = $1 AND ended IS NOT NULL AND id < $2 ORDER BY id `+
				`DESC LIMIT $3) ORDER BY id DESC`,
				user, below, newestRows)
			if err != nil {
				return err
			}
			more = rows == newestRows
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("newest jobs of %s: %w", user, err)
	}
	return out[:min(n, len(out))], nil
}

// ended is one line of the index of ends.
type ended struct{ at, id, array int64 }

// dueLines is how many lines are read at a time.
const dueLines = 512

// Due reads the ended jobs by their end, in one snapshot, until it has enough of them.
func (s *Store) Due(ctx context.Context, before time.Time, keep func(id int64) bool, limit int) ([]int64, error) {
	var out []int64
	err := s.db.Reading(ctx, func(r *Reader) error {
		d := &due{r: r, before: nanos(before), keep: keep, arrays: map[int64]bool{}, taken: map[int64]bool{}}
		last := ended{at: math.MinInt64}
		for more := true; more && len(d.out) < limit; {
			lines, err := d.lines(last)
			if err != nil {
				return err
			}
			for _, e := range lines {
				if err := d.take(e); err != nil {
					return err
				}
				last = e
			}
			more = len(lines) == dueLines
		}
		out = d.out[:min(limit, len(d.out))]
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return out, nil
}

// due gathers who is to be forgotten.
type due struct {
	r      *Reader
	before int64
	keep   func(id int64) bool
	arrays map[int64]bool // whether all elements may go
	taken  map[int64]bool
	out    []int64
}

// lines are the next of the index of ends.
func (d *due) lines(last ended) (lines []ended, err error) {
	err = d.r.Each(func(scan func(...any) error) error {
		var e ended
		err := scan(&e.at, &e.id, &e.array)
		lines = append(lines, e)
		return err
	}, "SELECT ended, id, array_id FROM job WHERE ended < $1 AND ended >= $2 AND (ended > $2 OR id > $3) AND ended IS NOT NULL ORDER BY "+
		"ended, id LIMIT $4",
		d.before, last.at, last.id, dueLines)
	return lines, err
}

func (d *due) take(e ended) error {
	if d.taken[e.id] || d.keep != nil && d.keep(e.id) {
		return nil
	}
	if e.array == 0 {
		d.out = append(d.out, e.id)
		return nil
	}
	whole, known := d.arrays[e.array]
	if !known {
		var err error
		if whole, err = d.whole(e.array); err != nil {
			return err
		}
		d.arrays[e.array] = whole
	}
	if whole && !d.taken[e.id] {
		d.add(e.id)
	}
	return nil
}

func (d *due) add(id int64) {
	d.taken[id] = true
	d.out = append(d.out, id)
}

// whole reports whether all of an array may go, and takes the first when it does.
func (d *due) whole(array int64) (bool, error) {
	stays, first := false, false
	err := d.r.Each(func(scan func(...any) error) error {
		var id int64
		var at sql.NullInt64
		if err := scan(&id, &at); err != nil {
			return err
		}
		first = first || id == array
		stays = stays || !at.Valid || at.Int64 >= d.before || d.keep != nil && d.keep(id)
		return nil
	}, "SELECT id, ended FROM job WHERE array_id = $1 AND array_id != 0", array)
	if err == nil && !stays && first {
		d.add(array)
	}
	return !stays, err
}

// Forget takes the jobs' own rows away in a transaction that notes them as gone; what hangs
// on them follows, a transaction a call.
func (s *Store) Forget(ctx context.Context, jobs []int64) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = s.db.Alone(ctx, true, func(w Writer) (err error) {
		if len(jobs) > 0 {
			more = true
			return s.hide(w, jobs)
		}
		more, err = sweepGone(w)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget jobs: %w", err)
	}
	return more, nil
}

// hide moves jobs that have ended from job to gone, and drops the specs nobody else has.
func (s *Store) hide(w Writer, jobs []int64) error {
	these := "id IN (" + list(jobs) + ") AND ended IS NOT NULL"
	hashes, err := w.Texts("SELECT DISTINCT spec FROM job WHERE " + these)
	if err != nil {
		return err
	}
	for _, text := range []string{
		"INSERT INTO gone (job) SELECT id FROM job WHERE " + these,
		"DELETE FROM job WHERE " + these,
	} {
		if _, err := w.Exec(text); err != nil {
			return err
		}
	}
	for _, h := range hashes {
		_, err := w.Exec(DropUnused, h)
		if err != nil {
			return err
		}
	}
	s.db.Forgotten(hashes) // stored again with the next job that has one
	return nil
}

// list is what stands in an IN of ids.
func list(ids []int64) string {
	var b []byte
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(b)
}

// parts are what hangs on a job, each with the condition that finds it by gone.job.
var parts = []string{
	"DELETE FROM event WHERE seq IN (SELECT event.seq FROM gone CROSS JOIN event WHERE event.job = gone.job LIMIT %d)",
	"DELETE FROM rank WHERE id IN (SELECT rank.id FROM gone CROSS JOIN rank WHERE rank.id >= gone.job << 16 AND rank.id < (gone.job + 1) " +
		"<< 16 LIMIT %d)",
	"DELETE FROM epoch WHERE (job, epoch) IN (SELECT epoch.job, epoch.epoch FROM gone CROSS JOIN epoch WHERE epoch.job = gone.job LIMIT %d)",
	"DELETE FROM step WHERE (job, epoch, step) IN (SELECT step.job, step.epoch, step.step FROM gone CROSS JOIN step WHERE step.job = " +
		"gone.job LIMIT %d)",
	"DELETE FROM measure WHERE (job, epoch, member) IN (SELECT measure.job, measure.epoch, measure.member FROM gone CROSS JOIN measure " +
		"WHERE measure.job = gone.job LIMIT %d)",
	"DELETE FROM release WHERE id IN (SELECT release.id FROM gone CROSS JOIN release WHERE release.job = gone.job LIMIT %d)",
}

// sweepGone deletes up to forgetRows rows of jobs that are gone, a checkpoint with its pieces
// as one; left says that there may be more.
func sweepGone(w Writer) (left bool, err error) {
	room := int64(forgetRows)
	for _, text := range parts {
		n, err := w.Exec(fmt.Sprintf(text, room))
		if err != nil {
			return false, err
		}
		if room -= n; room <= 0 {
			return true, nil
		}
	}
	blob, err := w.Ints("SELECT coalesce(min(checkpoint.id), 0) FROM gone CROSS JOIN checkpoint WHERE checkpoint.job = gone.job", 1)
	if err != nil {
		return false, err
	}
	if blob[0] != 0 {
		return true, dropBlobs(w, "id = $1", blob[0])
	}
	_, err = w.Exec("DELETE FROM gone")
	return false, err
}

// ForgetNodeEvents reads the oldest beside the writer and deletes them in one transaction.
func (s *Store) ForgetNodeEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	var seqs []int64
	young := errors.New("young")
	err := s.db.Reading(ctx, func(r *Reader) error {
		err := r.Each(func(scan func(...any) error) error {
			var seq int64
			var data sql.RawBytes
			if err := scan(&seq, &data); err != nil {
				return err
			}
			e, err := row.DecodeEvent(seq, data)
			if err != nil {
				return err
			}
			if !e.Time.Before(before) {
				return young
			}
			seqs = append(seqs, seq)
			return nil
		}, "SELECT seq, data FROM event WHERE job = 0 ORDER BY seq LIMIT $1", min(limit, forgetRows))
		if errors.Is(err, young) {
			err = nil
		}
		return err
	})
	if err == nil && len(seqs) > 0 {
		err = s.db.Alone(ctx, true, func(w Writer) error {
			_, err := w.Exec("DELETE FROM event WHERE seq IN (" + list(seqs) + ")")
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("forget events of nodes: %w", err)
	}
	return len(seqs), nil
}
