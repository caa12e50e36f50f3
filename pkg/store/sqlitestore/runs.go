package sqlitestore

import (
	"context"
	"fmt"

	"gangd/pkg/store"
)

// Begin writes one row in a transaction of its own and reads them all.
func (s *Store) Begin(ctx context.Context, name string) (all []store.Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.alone(func() error {
		if err := s.st.run.run(name, int64(s.lineage.Load())); err != nil {
			return err
		}
		return s.w.exec(fmt.Sprintf("DELETE FROM run WHERE id <= (SELECT max(id) FROM run) - %d", store.KeptRuns))
	})
	if err != nil {
		return nil, fmt.Errorf("note a run: %w", err)
	}
	err = s.reading(ctx, func(r *reader) error {
		return r.each(func(scan func(...any) error) error {
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
