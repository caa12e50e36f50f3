package sqlitestore

import (
	"context"
	"encoding/json"
	"fmt"

	"gangd/pkg/store"
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
	return s.alone(func() error {
		if err := s.st.release.run(r.Job, int64(r.Epoch), int64(r.Step), r.Name, string(keys)); err != nil {
			return err
		}
		return s.w.exec(fmt.Sprintf("DELETE FROM release WHERE job = %d AND (epoch != %d OR "+
			"step = %d AND id NOT IN (SELECT id FROM release WHERE job = %d AND step = %d ORDER BY id DESC LIMIT %d) OR "+
			"id NOT IN (SELECT id FROM release WHERE job = %d ORDER BY id DESC LIMIT %d))", r.Job, r.Epoch, r.Step, r.Job, r.Step,
			store.KeptReleases, r.Job, store.MostReleases))
	})
}

// Releases reads all.
func (s *Store) Releases(ctx context.Context) (all []store.Release, err error) {
	err = s.reading(ctx, func(rd *reader) error {
		return rd.each(func(scan func(...any) error) error {
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
	return s.alone(func() error { return s.w.exec(fmt.Sprintf("DELETE FROM release WHERE job = %d", job)) })
}
