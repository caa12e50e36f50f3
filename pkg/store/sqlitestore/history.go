package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"gangd/pkg/store"
)

// forgetRows is how many rows one transaction deletes of what forgotten jobs have left. A
// commit that comes meanwhile waits for one: 256 rows take about 1 ms.
const forgetRows = 256

// EndedNth walks the index of ends: 40 ns a job, no row is read.
func (s *Store) EndedNth(ctx context.Context, n int) (time.Time, error) {
	var at int64
	err := s.reading(ctx, func(r *reader) error {
		return r.tx.QueryRowContext(ctx, "SELECT ended FROM job WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT 1 OFFSET ?1", n-1).Scan(&at)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && at == 0:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("history: %w", err)
	}
	return time.Unix(0, at).UTC(), nil
}

// ended is one line of the index of ends.
type ended struct{ id, array int64 }

// Due reads the ended jobs by their end, in one snapshot, until it has enough of them.
func (s *Store) Due(ctx context.Context, before time.Time, keep func(id int64) bool, limit int) ([]int64, error) {
	var out []int64
	err := s.reading(ctx, func(r *reader) error {
		d := &due{r: r, before: nanos(before), keep: keep, arrays: map[int64]bool{}, taken: map[int64]bool{}}
		enough := errors.New("enough")
		err := r.each(func(scan func(...any) error) error {
			var e ended
			if err := scan(&e.id, &e.array); err != nil {
				return err
			}
			if len(d.out) >= limit {
				return enough
			}
			return d.take(e)
		}, "SELECT id, array_id FROM job WHERE ended < ?1 AND ended IS NOT NULL ORDER BY ended, id", d.before)
		out = d.out[:min(limit, len(d.out))]
		if errors.Is(err, enough) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return out, nil
}

// due gathers who is to be forgotten.
type due struct {
	r      *reader
	before int64
	keep   func(id int64) bool
	arrays map[int64]bool // whether all elements may go
	taken  map[int64]bool
	out    []int64
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
	err := d.r.each(func(scan func(...any) error) error {
		var id int64
		var at sql.NullInt64
		if err := scan(&id, &at); err != nil {
			return err
		}
		first = first || id == array
		stays = stays || !at.Valid || at.Int64 >= d.before || d.keep != nil && d.keep(id)
		return nil
	}, "SELECT id, ended FROM job WHERE array_id = ?1 AND array_id != 0", array)
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
	err = s.lazily(func() (err error) {
		if len(jobs) > 0 {
			more = true
			return s.hide(jobs)
		}
		more, err = s.sweepGone()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget jobs: %w", err)
	}
	return more, nil
}

// hide moves jobs that have ended from job to gone, and drops the specs nobody else has.
func (s *Store) hide(jobs []int64) error {
	list := make([]string, len(jobs))
	for i, id := range jobs {
		list[i] = fmt.Sprint(id)
	}
	these := "id IN (" + strings.Join(list, ",") + ") AND ended IS NOT NULL"
	hashes, err := s.w.texts("SELECT DISTINCT spec FROM job WHERE " + these)
	if err != nil {
		return err
	}
	for _, text := range []string{
		"INSERT INTO gone (job) SELECT id FROM job WHERE " + these,
		"DELETE FROM job WHERE " + these,
	} {
		if err := s.w.exec(text); err != nil {
			return err
		}
	}
	for _, h := range hashes {
		if err := s.st.specGone.run(h); err != nil {
			return err
		}
		delete(s.specs, h) // stored again with the next job that has it
	}
	return nil
}

// parts are what hangs on a job, each with the condition that finds it by gone.job.
var parts = []string{
	"DELETE FROM event WHERE seq IN (SELECT event.seq FROM gone CROSS JOIN event ON event.job = gone.job LIMIT %d)",
	"DELETE FROM rank WHERE id IN (SELECT rank.id FROM gone CROSS JOIN rank ON rank.id >= gone.job << 16 AND rank.id < (gone.job + 1) << 16 LIMIT %d)",
	"DELETE FROM epoch WHERE (job, epoch) IN (SELECT epoch.job, epoch.epoch FROM gone CROSS JOIN epoch ON epoch.job = gone.job LIMIT %d)",
	"DELETE FROM step WHERE (job, epoch, step) IN (SELECT step.job, step.epoch, step.step FROM gone CROSS JOIN step ON step.job = gone.job LIMIT %d)",
	"DELETE FROM release WHERE id IN (SELECT release.id FROM gone CROSS JOIN release ON release.job = gone.job LIMIT %d)",
}

// sweepGone deletes up to forgetRows rows of jobs that are gone, a checkpoint with its pieces
// as one; left says that there may be more.
func (s *Store) sweepGone() (left bool, err error) {
	room := int64(forgetRows)
	for _, text := range parts {
		if err := s.w.exec(fmt.Sprintf(text, room)); err != nil {
			return false, err
		}
		n, err := s.w.ints("SELECT changes()", 1)
		if err != nil {
			return false, err
		}
		if room -= n[0]; room <= 0 {
			return true, nil
		}
	}
	const one = "SELECT count(*), coalesce(max(job), 0), coalesce(max(epoch), 0), coalesce(max(rank), 0), coalesce(max(put), 0) FROM " +
		"(SELECT checkpoint.* FROM gone CROSS JOIN checkpoint ON checkpoint.job = gone.job LIMIT 1)"
	blob, err := s.w.ints(one, 5)
	if err != nil {
		return false, err
	}
	if blob[0] != 0 {
		return true, s.dropWhere(fmt.Sprintf("job = %d AND epoch = %d AND rank = %d AND put = %d", blob[1], blob[2], blob[3], blob[4]))
	}
	return false, s.w.exec("DELETE FROM gone")
}

// ForgetNodeEvents reads the oldest beside the writer and deletes them in one transaction.
func (s *Store) ForgetNodeEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	var seqs []string
	young := errors.New("young")
	err := s.reading(ctx, func(r *reader) error {
		err := r.each(func(scan func(...any) error) error {
			var seq int64
			var at string
			if err := scan(&seq, &at); err != nil {
				return err
			}
			t, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				return fmt.Errorf("row of event %d: %w", seq, err)
			}
			if !t.Before(before) {
				return young
			}
			seqs = append(seqs, fmt.Sprint(seq))
			return nil
		}, "SELECT seq, data ->> 'time' FROM event WHERE job = 0 ORDER BY seq LIMIT ?1", min(limit, forgetRows))
		if errors.Is(err, young) {
			err = nil
		}
		return err
	})
	if err == nil && len(seqs) > 0 {
		err = s.lazily(func() error { return s.w.exec("DELETE FROM event WHERE seq IN (" + strings.Join(seqs, ",") + ")") })
	}
	if err != nil {
		return 0, fmt.Errorf("forget events of nodes: %w", err)
	}
	return len(seqs), nil
}

// lazily runs a transaction that need not survive a power cut and so waits for no disk. The
// next commit makes it durable with itself, as the log has one order.
func (s *Store) lazily(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.w.exec("PRAGMA synchronous = NORMAL"); err != nil {
		return s.fail(err)
	}
	err := s.transaction(f)
	if back := s.w.exec("PRAGMA synchronous = FULL"); back != nil {
		return s.fail(back)
	}
	return err
}

var _ store.History = (*Store)(nil)
