package pgstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/store"
	"gangd/pkg/store/internal/sqlstore"
)

// followPiece is how many commits are taken in at a time.
const followPiece = 500

// Follow reads which rows were changed since, and these as they are now: they may be of a later commit
// than the piece ends with, which the next pieces bring up to. Once there is no more, k is what the
// newest commit left.
func (s *Store) Follow(ctx context.Context, k *store.Known, keep time.Time) (more bool, err error) {
	var news *store.Known
	err = database{s}.Reading(ctx, func(r *sqlstore.Reader) error {
		var lineage, id, seq int64
		if err := r.One("SELECT lineage, next_id, next_seq FROM meta", nil, &lineage, &id, &seq); err != nil {
			return err
		}
		if uint64(lineage) == k.Lineage && k.Term != 0 {
			var same int
			if err := r.One("SELECT count(*) FROM commit_log WHERE lineage = $1 AND term = $2", []any{lineage, int64(k.Term)}, &same); err != nil || same == 1 {
				return err
			}
		}
		since, err := piece(r, k)
		switch {
		case err != nil:
			return err
		case since == nil || k.Lineage > uint64(lineage):
			news, err = afresh(r, lineage, keep)
			return err
		}
		more = since.lineage < lineage
		if news, err = since.read(r, k); err == nil {
			news.NextID, news.NextSeq = id, seq
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("follow: %w", err)
	}
	if news != nil {
		*k = *news
	}
	return more, nil
}

// afresh loads all.
func afresh(r *sqlstore.Reader, lineage int64, keep time.Time) (*store.Known, error) {
	saved, err := r.Load(keep)
	if err != nil {
		return nil, err
	}
	var term int64
	err = r.One("SELECT coalesce(max(term), 0) FROM commit_log WHERE lineage = $1", []any{lineage}, &term)
	return store.KnownOf(saved, uint64(lineage), uint64(term)), err
}

// changes are the keys of what some commits changed.
type changes struct {
	lineage, term       int64 // of the last of them
	jobs                []int64
	nodes, reservations []string
}

// piece reads them; nil: the place of k is not kept, or what follows isn't.
func piece(r *sqlstore.Reader, k *store.Known) (*changes, error) {
	c := &changes{}
	found, next := 0, int64(k.Lineage)
	types := pgtype.NewMap() // reads arrays
	err := r.Each(func(scan func(...any) error) error {
		var jobs []int64
		var nodes, reservations []string
		if err := scan(&c.lineage, &c.term, types.SQLScanner(&jobs), types.SQLScanner(&nodes), types.SQLScanner(&reservations)); err != nil {
			return err
		}
		if found == 0 && (c.lineage != next || uint64(c.term) != k.Term) {
			return nil
		}
		found++
		if found == 1 {
			return nil // what k has
		}
		c.jobs, c.nodes, c.reservations = append(c.jobs, jobs...), append(c.nodes, nodes...), append(c.reservations, reservations...)
		return nil
	}, "SELECT lineage, term, jobs, nodes, reservations FROM commit_log WHERE lineage >= $1 ORDER BY lineage LIMIT $2", next, followPiece+1)
	if err != nil || found < 2 {
		return nil, err
	}
	return c, nil
}

// read reads the rows and puts them over those of k, in new maps' places: k itself is not touched.
func (c *changes) read(r *sqlstore.Reader, k *store.Known) (*store.Known, error) {
	news := *k
	news.Lineage, news.Term = uint64(c.lineage), uint64(c.term)
	slices.Sort(c.jobs)
	ids := slices.Compact(c.jobs)
	for _, id := range ids {
		if j := k.Jobs[id]; j != nil {
			r.Share(j.SpecHash, j.Spec)
		}
	}
	var jobs []*gang.Job
	var nodes []*gang.Node
	var reservations []*api.Reservation
	var err error
	if len(ids) > 0 {
		if jobs, err = r.Jobs(ids); err != nil {
			return nil, err
		}
	}
	if len(c.nodes) > 0 {
		if nodes, err = r.Nodes(unique(c.nodes)); err != nil {
			return nil, err
		}
	}
	if len(c.reservations) > 0 {
		if reservations, err = r.Reservations(unique(c.reservations)); err != nil {
			return nil, err
		}
	}
	if news.Claims, err = r.Claims(); err != nil {
		return nil, err
	}
	// From here on nothing fails.
	for _, id := range ids {
		delete(k.Jobs, id)
	}
	for _, j := range jobs {
		k.Jobs[j.ID] = j
	}
	for _, name := range c.nodes {
		delete(k.Nodes, name)
	}
	for _, n := range nodes {
		k.Nodes[n.Name] = n
	}
	for _, name := range c.reservations {
		delete(k.Reservations, name)
	}
	for _, x := range reservations {
		k.Reservations[x.Name] = x
	}
	return &news, nil
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
