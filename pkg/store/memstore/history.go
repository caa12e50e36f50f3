package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gangd/pkg/store"
	"gangd/pkg/store/internal/row"
)

// byEnd gives the ended jobs, the one that ended first first.
func (d *data) byEnd() []int64 {
	var out []int64
	for id, r := range d.Jobs {
		if r.Ended != nil {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b int64) int {
		return cmp.Or(d.Jobs[a].Ended.Compare(*d.Jobs[b].Ended), cmp.Compare(a, b))
	})
	return out
}

// EndedNth looks from the end.
func (s *Store) EndedNth(ctx context.Context, n int) (at time.Time, err error) {
	err = s.reading(ctx, func(d *data) error {
		if all := d.byEnd(); len(all) >= n {
			at = *d.Jobs[all[len(all)-n]].Ended
		}
		return nil
	})
	return at, err
}

// Due gathers from the oldest on.
func (s *Store) Due(ctx context.Context, before time.Time, keep func(id int64) bool, limit int) (out []int64, err error) {
	err = s.reading(ctx, func(d *data) error {
		stays := make(map[int64]bool) // arrays
		arrays := make(map[int64]int64)
		for id := range d.Jobs {
			r := d.Jobs[id]
			j, err := row.DecodeJob(id, r.Spec, r.Data)
			if err != nil {
				return err
			}
			if arrays[id] = j.ArrayID; j.ArrayID != 0 && (r.Ended == nil || !r.Ended.Before(before) || keep != nil && keep(id)) {
				stays[j.ArrayID] = true
			}
		}
		for _, id := range d.byEnd() {
			if len(out) >= limit || !d.Jobs[id].Ended.Before(before) {
				break
			}
			array := arrays[id]
			if stays[array] || keep != nil && keep(id) || slices.Contains(out, id) {
				continue
			}
			if _, first := d.Jobs[array]; first && array != id && !slices.Contains(out, array) {
				out = append(out, array)
			}
			out = append(out, id)
		}
		out = out[:min(limit, len(out))]
		return nil
	})
	return out, err
}

// Forget drops jobs at once: there is no disk to be waited for.
func (s *Store) Forget(ctx context.Context, jobs []int64) (more bool, err error) {
	return false, s.reading(ctx, func(d *data) error {
		for _, id := range jobs {
			if r, ok := d.Jobs[id]; ok && r.Ended != nil {
				d.forget(id)
			}
		}
		return nil
	})
}

func (d *data) forget(id int64) {
	spec := d.Jobs[id].Spec
	delete(d.Jobs, id)
	delete(d.Ranks, id)
	delete(d.Epochs, id)
	delete(d.Steps, id)
	delete(d.Checkpoints, id)
	d.Releases = slices.DeleteFunc(slices.Clone(d.Releases), func(r store.Release) bool { return r.Job == id })
	d.Events = slices.DeleteFunc(slices.Clone(d.Events), func(e eventRow) bool { return e.Job == id })
	for _, r := range d.Jobs {
		if r.Spec == spec {
			return
		}
	}
	delete(d.Specs, spec)
}

// ForgetNodeEvents drops the oldest.
func (s *Store) ForgetNodeEvents(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = s.reading(ctx, func(d *data) error {
		var old []int64
		for _, r := range d.Events {
			if r.Job != 0 || len(old) == limit {
				continue
			}
			e, err := row.DecodeEvent(r.Seq, r.Data)
			if err != nil {
				return err
			}
			if !e.Time.Before(before) {
				break
			}
			old = append(old, r.Seq)
		}
		n = len(old)
		d.Events = slices.DeleteFunc(slices.Clone(d.Events), func(e eventRow) bool { return slices.Contains(old, e.Seq) })
		return nil
	})
	return n, err
}
