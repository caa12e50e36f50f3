package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/store"
	"gangd/pkg/store/internal/row"
)

// reading runs f on what was committed.
func (s *Store) reading(ctx context.Context, f func(d *data) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.dead != nil {
		return s.dead
	}
	return f(&s.disk.d)
}

// jobs decodes the jobs that want selects, by id.
func (d *data) jobs(want func(*jobRow) bool) ([]*gang.Job, error) {
	specs := make(map[string]*api.Spec)
	var out []*gang.Job
	for _, id := range slices.Sorted(maps.Keys(d.Jobs)) {
		if r := d.Jobs[id]; want(&r) {
			j, err := d.job(id, specs)
			if err != nil {
				return nil, err
			}
			out = append(out, j)
		}
	}
	return out, nil
}

func (d *data) job(id int64, specs map[string]*api.Spec) (*gang.Job, error) {
	r := d.Jobs[id]
	j, err := row.DecodeJob(id, r.Spec, r.Data)
	if err != nil {
		return nil, err
	}
	if specs[r.Spec] == nil {
		enc, ok := d.Specs[r.Spec]
		if !ok {
			return nil, fmt.Errorf("job %d: its spec %s is missing", id, r.Spec)
		}
		if specs[r.Spec], err = row.DecodeSpec(r.Spec, enc); err != nil {
			return nil, err
		}
	}
	j.Spec = specs[r.Spec]
	for index, enc := range d.Ranks[id] {
		if index >= len(j.Ranks) {
			return nil, fmt.Errorf("rank %d of job %d has a row, but the job has no such rank", index, id)
		}
		if j.Ranks[index], err = row.DecodeRank(id, index, enc); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Load reads what the controller keeps in memory.
func (s *Store) Load(ctx context.Context, keep time.Time) (*gang.Saved, error) {
	out := &gang.Saved{Keys: make(map[string]int64)}
	err := s.reading(ctx, func(d *data) (err error) {
		out.NextID, out.NextSeq, out.Claims = d.NextID, d.NextSeq, slices.Clone(d.Claims)
		if out.Jobs, err = d.jobs(func(r *jobRow) bool { return r.Ended == nil || r.Ended.After(keep) }); err != nil {
			return err
		}
		for _, j := range out.Jobs {
			if j.Key != "" {
				out.Keys[j.Key] = j.ID
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Nodes)) {
			n, err := row.DecodeNode(name, d.Nodes[name])
			if err != nil {
				return err
			}
			out.Nodes = append(out.Nodes, n)
		}
		for _, name := range slices.Sorted(maps.Keys(d.Reservations)) {
			r, err := row.DecodeReservation(name, d.Reservations[name])
			if err != nil {
				return err
			}
			out.Reservations = append(out.Reservations, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return out, nil
}

// Job reads one job.
func (s *Store) Job(ctx context.Context, id int64) (j *gang.Job, err error) {
	err = s.reading(ctx, func(d *data) (err error) {
		if _, ok := d.Jobs[id]; !ok {
			return store.ErrNotFound
		}
		j, err = d.job(id, make(map[string]*api.Spec))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("job %d: %w", id, err)
	}
	return j, nil
}

// Jobs reads ended jobs, the one that ended last first.
func (s *Store) Jobs(ctx context.Context, f store.HistoryFilter) (out []*gang.Job, err error) {
	err = s.reading(ctx, func(d *data) (err error) {
		out, err = d.jobs(func(r *jobRow) bool { return r.Ended != nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	out = slices.DeleteFunc(out, func(j *gang.Job) bool { return !selects(&f, j) })
	slices.SortFunc(out, func(a, b *gang.Job) int {
		aEnd, _ := row.Ended(a)
		bEnd, _ := row.Ended(b)
		return cmp.Or(bEnd.Compare(aEnd), cmp.Compare(b.ID, a.ID))
	})
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
}

func selects(f *store.HistoryFilter, j *gang.Job) bool {
	ended, _ := row.Ended(j)
	return (f.User == "" || j.User == f.User) &&
		(f.ArrayID == 0 || j.ArrayID == f.ArrayID) &&
		(f.EndedAfter.IsZero() || ended.After(f.EndedAfter)) &&
		(f.SubmittedAfter.IsZero() || j.Submit.After(f.SubmittedAfter))
}

// Epochs reads the attempts of a job.
func (s *Store) Epochs(ctx context.Context, job int64) (out []gang.EpochRow, err error) {
	err = s.reading(ctx, func(d *data) error {
		for _, number := range slices.Sorted(maps.Keys(d.Epochs[job])) {
			e, err := row.DecodeEpoch(job, number, d.Epochs[job][number])
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// Steps reads the ended steps of a job, oldest first.
func (s *Store) Steps(ctx context.Context, job int64) (out []api.Step, err error) {
	err = s.reading(ctx, func(d *data) error {
		for _, at := range slices.Sorted(maps.Keys(d.Steps[job])) {
			st, err := row.DecodeStep(job, d.Steps[job][at])
			if err != nil {
				return err
			}
			out = append(out, st)
		}
		return nil
	})
	return out, err
}

// Events reads events in their order.
func (s *Store) Events(ctx context.Context, job, since int64, limit int) (out []api.Event, err error) {
	err = s.reading(ctx, func(d *data) error {
		from, _ := slices.BinarySearchFunc(d.Events, since+1, func(e eventRow, seq int64) int { return cmp.Compare(e.Seq, seq) })
		for _, r := range d.Events[from:] {
			if job != 0 && r.Job != job {
				continue
			}
			if limit > 0 && len(out) == limit {
				break
			}
			e, err := row.DecodeEvent(r.Seq, r.Data)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// Verify recounts what rows say of each other.
func (s *Store) Verify(ctx context.Context) (out []string, err error) {
	err = s.reading(ctx, func(d *data) error {
		jobs, err := d.jobs(func(*jobRow) bool { return true })
		if err != nil {
			out = append(out, err.Error())
			return nil
		}
		epochs := make(map[int64]int)
		for _, j := range jobs {
			epochs[j.ID] = j.Epoch
			if j.ID >= d.NextID {
				out = append(out, fmt.Sprintf("job %d is not below the next id %d", j.ID, d.NextID))
			}
		}
		out = append(out, d.verifyRows(epochs)...)
		return nil
	})
	return out, err
}

// verifyRows compares what hangs on jobs with the epochs these are at.
func (d *data) verifyRows(epochs map[int64]int) (out []string) {
	for _, id := range slices.Sorted(maps.Keys(d.Ranks)) {
		if _, ok := epochs[id]; !ok && len(d.Ranks[id]) > 0 {
			out = append(out, fmt.Sprintf("rank %d of job %d has a row, the job has none", slices.Min(slices.Collect(maps.Keys(d.Ranks[id]))), id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.Epochs)) {
		for _, number := range slices.Sorted(maps.Keys(d.Epochs[id])) {
			switch at, ok := epochs[id]; {
			case !ok:
				out = append(out, fmt.Sprintf("epoch %d of job %d has a row, the job has none", number, id))
			case number > at:
				out = append(out, fmt.Sprintf("epoch %d of job %d has a row, the job is at epoch %d", number, id, at))
			}
		}
	}
	for _, e := range d.Events {
		if e.Seq >= d.NextSeq {
			out = append(out, fmt.Sprintf("event %d is not below the next number %d", e.Seq, d.NextSeq))
		}
	}
	return out
}

// Backup writes what was committed as JSON; [OpenBackup] reads it.
func (s *Store) Backup(ctx context.Context, path string) error {
	var enc []byte
	err := s.reading(ctx, func(d *data) (err error) {
		enc, err = json.Marshal(d)
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		err = store.ErrExists
	}
	if err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	_, err = f.Write(enc)
	return errors.Join(err, f.Close())
}

// OpenBackup is a disk with what a backup holds.
func OpenBackup(path string) (*Disk, error) {
	enc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := &Disk{d: newData()}
	return d, json.Unmarshal(enc, &d.d)
}
