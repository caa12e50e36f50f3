package memstore

import (
	"context"
	"slices"

	"gangd/pkg/store"
)

// Begin notes a process.
func (s *Store) Begin(ctx context.Context, name string) (all []store.Run, err error) {
	err = s.reading(ctx, func(d *data) error {
		d.Runs = append(slices.Clone(d.Runs), store.Run{Name: name, Began: d.Lineage})
		d.Runs = d.Runs[max(0, len(d.Runs)-store.KeptRuns):]
		all = slices.Clone(d.Runs)
		return nil
	})
	return all, err
}
