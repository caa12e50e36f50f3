package memstore

import (
	"context"
	"maps"
	"slices"

	"gangd/pkg/store"
)

// PutRelease keeps one.
func (s *Store) PutRelease(ctx context.Context, r store.Release) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	kept := 1
	var all []store.Release // a new one: rows are never changed in place
	for i := len(d.d.Releases) - 1; i >= 0; i-- {
		old := d.d.Releases[i]
		if old.Job == r.Job && (old.Epoch != r.Epoch || old.Name == r.Name || kept == store.KeptReleases) {
			continue
		}
		if old.Job == r.Job {
			kept++
		}
		all = append(all, old)
	}
	slices.Reverse(all)
	r.Keys = maps.Clone(r.Keys)
	d.d.Releases = append(all, r)
	return nil
}

// Releases reads all.
func (s *Store) Releases(context.Context) ([]store.Release, error) {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Clone(d.d.Releases)
	for i := range all {
		all[i].Keys = maps.Clone(all[i].Keys)
	}
	return all, s.usable()
}

// DropReleases drops what a job has.
func (s *Store) DropReleases(ctx context.Context, job int64) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	d.d.Releases = slices.DeleteFunc(slices.Clone(d.d.Releases), func(r store.Release) bool { return r.Job == job })
	return ctx.Err()
}
