package sqlstore

import (
	"context"
	"encoding/json"

	"gangd/pkg/controller/store"
)

// PutRelease writes one in a transaction of its own.
func (s *Store) PutRelease(ctx context.Context, r store.Release) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	keys, err := json.Marshal(r.Keys)
	if err != nil {
		return err
	}
	return s.db.Alone(ctx, false, func(w Writer) error {
		for _, d := range []struct {
			text string
			args []any
		}{
			{"DELETE FROM release WHERE job = $1 AND (epoch != $2 OR step = $3 AND name = $4)", []any{r.Job, r.Epoch, r.Step, r.Name}},
			{"INSERT INTO release (id, job, epoch, step, name, keys) SELECT coalesce(max(id), 0) + 1, $1, $2, $3, $4, $5 FROM release",
				[]any{r.Job, r.Epoch, r.Step, r.Name, string(keys)}},
			{"DELETE FROM release WHERE job = $1 AND (step = $2 AND id NOT IN (SELECT id FROM release WHERE job = $1 AND step = $2 ORDER BY id " +
				"DESC LIMIT $3) OR " +
				"id NOT IN (SELECT id FROM release WHERE job = $1 ORDER BY id DESC LIMIT $4))", []any{r.Job, r.Step, store.KeptReleases,
				store.MostReleases}},
		} {
			if _, err := w.Exec(d.text, d.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Releases reads all.
func (s *Store) Releases(ctx context.Context) (all []store.Release, err error) {
	err = s.db.Reading(ctx, func(rd *Reader) error {
		return rd.Each(func(scan func(...any) error) error {
			var r store.Release
			var keys []byte
			if err := scan(&r.Job, &r.Epoch, &r.Step, &r.Name, &keys); err != nil {
				return err
			}
			all = append(all, r)
			return json.Unmarshal(keys, &all[len(all)-1].Keys)
		}, "SELECT job, epoch, step, name, keys FROM release ORDER BY id")
	})
	return all, err
}

// DropReleases drops what a job has.
func (s *Store) DropReleases(ctx context.Context, job int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.db.Alone(ctx, false, func(w Writer) error {
		_, err := w.Exec("DELETE FROM release WHERE job = $1", job)
		return err
	})
}
