package sqlstore

import (
	"context"
	"fmt"

	"gangd/pkg/controller/store"
)

// Begin writes one row in a transaction of its own and reads them all.
func (s *Store) Begin(ctx context.Context, name string) (all []store.Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.db.Alone(ctx, false, func(w Writer) error {
		if _, err := w.Exec("INSERT INTO run (id, name, began) SELECT coalesce(max(id), 0) + 1, $1, $2 FROM run", name,
			int64(s.db.Lineage())); err != nil {
			return err
		}
		_, err := w.Exec("DELETE FROM run WHERE id <= (SELECT max(id) FROM run) - $1", store.KeptRuns)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note a run: %w", err)
	}
	err = s.db.Reading(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
			var x store.Run
			if err := scan(&x.Name, &x.Began); err != nil {
				return err
			}
			all = append(all, x)
			return nil
		}, "SELECT name, began FROM run ORDER BY id")
	})
	return all, err
}

// ForgetRuns keeps the newest alone, because a person has accepted a copy.
func (s *Store) ForgetRuns(ctx context.Context) error {
	return s.db.Alone(ctx, false, func(w Writer) error {
		_, err := w.Exec("DELETE FROM run WHERE id < (SELECT max(id) FROM run)")
		return err
	})
}
