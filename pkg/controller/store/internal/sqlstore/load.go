package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/row"
	"gangd/pkg/core/gang"
)

// Load reads what the controller keeps in memory.
func (s *Store) Load(ctx context.Context, keep time.Time) (out *gang.Snapshot, err error) {
	err = s.db.Reading(ctx, func(r *Reader) (err error) {
		r.goes = s.Progress
		out, err = r.Load(keep, gang.MostEnded)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return out, nil
}

// Load is [Store.Load] within a transaction, with so many ended jobs at most.
func (r *Reader) Load(keep time.Time, most int) (*gang.Snapshot, error) {
	out := &gang.Snapshot{Keys: make(map[string]int64)}
	if err := r.One("SELECT next_id, next_seq FROM meta", nil, &out.NextID, &out.NextSeq); err != nil {
		return nil, err
	}
	var err error
	if out.Claims, err = r.Claims(); err != nil {
		return nil, err
	}
	live, err := r.jobs("ended IS NULL", "")
	if err != nil {
		return nil, err
	}
	first, err := r.tooMany(nanos(keep), most, out.Keys)
	if err != nil {
		return nil, err
	}
	ended, err := r.jobs("ended > $1 AND ended IS NOT NULL", "", first)
	if err != nil {
		return nil, err
	}
	out.Jobs = append(live, ended...)
	slices.SortFunc(out.Jobs, func(a, b *gang.Job) int { return int(a.ID - b.ID) })
	for _, j := range out.Jobs {
		if j.Key != "" {
			out.Keys[j.Key] = j.ID
		}
	}
	if out.Nodes, err = r.Nodes(nil); err != nil {
		return nil, err
	}
	if out.Reservations, err = r.Reservations(nil); err != nil {
		return nil, err
	}
	if out.Partitions, err = r.Partitions(); err != nil {
		return nil, err
	}
	if out.Crontabs, err = r.Crontabs(); err != nil {
		return nil, err
	}
	out.Letters, err = r.Letters()
	return out, err
}

// tooMany gives the time after which no more than so many jobs ended, and the keys of those that ended until then. Of a
// million rows only these are looked for: to read them whole takes ten times as long.
func (r *Reader) tooMany(after int64, most int, keys map[string]int64) (int64, error) {
	last := after
	if err := r.ids(fmt.Sprintf("SELECT ended FROM job WHERE ended > $1 AND ended IS NOT NULL ORDER BY ended DESC LIMIT 1 OFFSET %d", most),
		func(ended int64) { last = ended }, after); err != nil || last == after {
		return after, err
	}
	return last, r.Each(func(scan func(...any) error) error {
		var id int64
		var data sql.RawBytes
		if err := scan(&id, &data); err != nil {
			return err
		}
		if key := row.JobKey(data); key != "" {
			keys[key] = id
		}
		return nil
	}, "SELECT id, data FROM job WHERE ended > $1 AND ended <= $2 AND ended IS NOT NULL AND (array_id = 0 OR array_id = id)", after, last)
}

// Claims reads what the planner keeps; nil: nothing yet.
func (r *Reader) Claims() (claims []byte, err error) {
	err = r.Each(func(scan func(...any) error) (err error) {
		var text []byte
		if err = scan(&text); err == nil {
			claims, err = openClaims(text)
		}
		return err
	}, "SELECT data FROM claims")
	return claims, err
}

// Jobs reads those of some ids that there are.
func (r *Reader) Jobs(ids []int64) ([]*gang.Job, error) { return r.jobs("id IN ("+list(ids)+")", "") }

// EndedAfter gives the ids of jobs that ended after a time.
func (r *Reader) EndedAfter(keep time.Time) (map[int64]bool, error) {
	all := map[int64]bool{}
	return all, r.ids("SELECT id FROM job WHERE ended > $1 AND ended IS NOT NULL", func(id int64) { all[id] = true }, nanos(keep))
}

// Share makes jobs that are read with the hash of this one have its spec, as the caller has it already.
func (r *Reader) Share(j *gang.Job) { r.specs[j.SpecHash] = heldSpec{spec: j.Spec, bytes: j.TextBytes} }

// Nodes reads nodes by their names; no names: all.
func (r *Reader) Nodes(names []string) (all []*gang.Node, err error) {
	err = r.sealed(func(name string, data []byte) error {
		n, err := row.DecodeNode(name, data)
		all = append(all, n)
		return err
	}, "node", names)
	return all, err
}

// Reservations reads reservations by their names; no names: all.
func (r *Reader) Reservations(names []string) (all []*api.Reservation, err error) {
	err = r.sealed(func(name string, data []byte) error {
		one, err := row.DecodeReservation(name, data)
		all = append(all, one)
		return err
	}, "reservation", names)
	return all, err
}

// Partitions reads what was made of partitions at run time.
func (r *Reader) Partitions() (all []*api.PartitionChange, err error) {
	err = r.sealed(func(name string, data []byte) error {
		one, err := row.DecodePartition(name, data)
		all = append(all, one)
		return err
	}, "partition", nil)
	return all, err
}

// Crontabs reads the cron tables of users.
func (r *Reader) Crontabs() (all []*api.Crontab, err error) {
	err = r.sealed(func(user string, data []byte) error {
		one, err := row.DecodeCrontab(user, data)
		all = append(all, one)
		return err
	}, "crontab", nil)
	return all, err
}

// sealed reads a table of names.
func (r *Reader) sealed(f func(name string, data []byte) error, table string, names []string) error {
	where, args := "", make([]any, len(names))
	for i, n := range names {
		args[i] = n
		where += fmt.Sprintf(", $%d", i+1)
	}
	if where != "" {
		where = " WHERE name IN (" + where[2:] + ")"
	}
	return r.named(func(name string, data []byte) error {
		if err := intact(data, table+" "+name); err != nil {
			return err
		}
		return f(name, data)
	}, "SELECT name, data FROM "+table+where+" ORDER BY name", args...)
}

// jobs reads jobs whole. The condition and the tail are ours, never a caller's text. The
// three statements see one commit, so that a join needs no more than the same condition.
func (r *Reader) jobs(where, tail string, args ...any) ([]*gang.Job, error) {
	// The tail may cut (LIMIT), so that it goes into the sub-select of each statement.
	chosen := "SELECT id FROM job WHERE " + where + " " + tail
	err := r.Each(func(scan func(...any) error) error {
		var hash string
		var data sql.RawBytes
		if err := scan(&hash, &data); err != nil {
			return err
		}
		if r.specs[hash].spec != nil {
			return nil
		}
		if err := intact(data, "spec "+hash); err != nil {
			return err
		}
		s, texts, err := r.options.Decode(hash, data)
		r.specs[hash] = heldSpec{spec: s, bytes: texts}
		return err
	}, "SELECT hash, data FROM spec WHERE hash IN (SELECT spec FROM job WHERE id IN ("+chosen+"))", args...)
	if err != nil {
		return nil, err
	}

	var out []*gang.Job
	byID := make(map[int64]*gang.Job)
	err = r.Each(func(scan func(...any) error) error {
		var id int64
		var hash string
		var data sql.RawBytes
		if err := scan(&id, &hash, &data); err != nil {
			return err
		}
		if err := intact(data, jobName(id, hash)); err != nil {
			return err
		}
		j, err := row.DecodeJob(id, hash, data)
		if err != nil {
			return err
		}
		held, known := r.specs[hash]
		if !known {
			return fmt.Errorf("job %d: its spec %s is missing", id, hash)
		}
		j.Spec, j.TextBytes = held.spec, held.bytes
		out, byID[id] = append(out, j), j
		return nil
	}, "SELECT id, spec, data FROM job WHERE "+where+" "+tail, args...)
	if err != nil {
		return nil, err
	}

	err = r.Each(func(scan func(...any) error) error {
		var id int64
		var data sql.RawBytes
		if err := scan(&id, &data); err != nil {
			return err
		}
		return setRank(byID[id>>rankBits], id, data)
	}, "SELECT r.id, r.data FROM ("+chosen+") AS j CROSS JOIN rank AS r WHERE r.id >= j.id << 16 AND r.id < (j.id + 1) << 16", args...)
	return out, err
}

func specOf(hash string, data []byte) (*api.Spec, error) {
	if err := intact(data, "spec "+hash); err != nil {
		return nil, err
	}
	return row.DecodeSpec(hash, data)
}

// Spec reads one specification whole.
func (s *Store) Spec(ctx context.Context, hash string) (whole *api.Spec, err error) {
	err = s.db.ReadingSpec(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
			var data sql.RawBytes
			if err := scan(&data); err != nil {
				return err
			}
			whole, err = specOf(hash, data)
			return err
		}, "SELECT data FROM spec WHERE hash = $1", hash)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("spec %s: %w", hash, err)
	case whole == nil:
		return nil, fmt.Errorf("spec %s: %w", hash, store.ErrNotFound)
	}
	return whole, nil
}

func setRank(j *gang.Job, id int64, data []byte) error {
	index := int(id & (1<<rankBits - 1))
	if index >= len(j.Ranks) {
		return fmt.Errorf("rank %d of job %d has a row, but the job has no such rank", index, id>>rankBits)
	}
	if err := intact(data, rowName("rank", id)); err != nil {
		return err
	}
	rank, err := row.DecodeRank(j.ID, index, data)
	j.Ranks = gang.OwnRanks(j.Ranks)
	j.Ranks[index] = rank
	return err
}

// Job reads one job, in memory of the controller or not.
func (s *Store) Job(ctx context.Context, id int64) (*gang.Job, error) {
	var found []*gang.Job
	err := s.db.Reading(ctx, func(r *Reader) (err error) {
		found, err = r.jobs("id = $1", "", id)
		return err
	})
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("job %d: %w", id, err)
	}
	return found[0], nil
}

// Jobs reads ended jobs, the one that ended last first.
func (s *Store) Jobs(ctx context.Context, f store.HistoryFilter) ([]*gang.Job, error) {
	where := "ended IS NOT NULL"
	var args []any
	and := func(cond string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" AND "+cond, len(args))
	}
	if f.User != "" {
		and(`"user" = $%d`, f.User)
	}
	if f.ArrayID != 0 {
		and("array_id = $%d AND array_id != 0", f.ArrayID)
	}
	// What was submitted after a time has ended after it, which an index knows.
	if after := max(nanos(f.EndedAfter), nanos(f.SubmittedAfter)); after != 0 {
		and("ended > $%d", after)
	}
	if !f.SubmittedAfter.IsZero() {
		and("submit > $%d", nanos(f.SubmittedAfter))
	}
	tail := "ORDER BY ended DESC, id DESC"
	if f.Limit > 0 {
		tail += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	var found []*gang.Job
	err := s.db.Reading(ctx, func(r *Reader) (err error) {
		found, err = r.jobs(where, tail, args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return found, nil
}

// Epochs reads the attempts of a job.
func (s *Store) Epochs(ctx context.Context, job int64) ([]gang.EpochRow, error) {
	var out []gang.EpochRow
	err := s.db.Reading(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
			var number int
			var data sql.RawBytes
			if err := scan(&number, &data); err != nil {
				return err
			}
			if err := intact(data, rowName("epoch", job, int64(number))); err != nil {
				return err
			}
			e, err := row.DecodeEpoch(job, number, data)
			out = append(out, e)
			return err
		}, "SELECT epoch, data FROM epoch WHERE job = $1 AND job NOT IN (SELECT job FROM gone) ORDER BY epoch", job)
	})
	if err != nil {
		return nil, fmt.Errorf("attempts of job %d: %w", job, err)
	}
	return out, nil
}

// Events reads events in their order. Those of forgotten jobs are only filtered where one job
// is asked about: who follows all is behind them soon.
func (s *Store) Events(ctx context.Context, job, since int64, limit int) ([]api.Event, error) {
	where, tail := "seq > $1", ""
	args := []any{since}
	if job != 0 {
		where += " AND job = $2 AND $2 NOT IN (SELECT job FROM gone)"
		args = append(args, job)
	}
	if limit > 0 {
		tail = fmt.Sprintf(" LIMIT %d", limit)
	}
	return s.events(ctx, where+" ORDER BY seq"+tail, args...)
}

// SiteEvents reads the newest events of no job.
func (s *Store) SiteEvents(ctx context.Context, limit int) ([]api.Event, error) {
	out, err := s.events(ctx, "job = 0 ORDER BY seq DESC LIMIT $1", limit)
	slices.Reverse(out)
	return out, err
}

func (s *Store) events(ctx context.Context, which string, args ...any) ([]api.Event, error) {
	var out []api.Event
	err := s.db.Reading(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
			var seq int64
			var data sql.RawBytes
			if err := scan(&seq, &data); err != nil {
				return err
			}
			if err := intact(data, rowName("event", seq)); err != nil {
				return err
			}
			e, err := row.DecodeEvent(seq, data)
			out = append(out, e)
			return err
		}, "SELECT seq, data FROM event WHERE "+which, args...)
	})
	if err != nil && !errors.Is(err, store.ErrClosed) {
		err = fmt.Errorf("events: %w", err)
	}
	return out, err
}
