package pgstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/core/gang"
)

// followPiece is how many commits are taken in at a time.
const followPiece = 100

// Follow reads which rows were changed since, and these as they are now: they may be of a later commit
// than the piece ends with, which the next pieces bring up to. Once there is no more, k is what the
// newest commit left.
func (s *Store) Follow(ctx context.Context, k *store.Known, keep time.Time) (more bool, err error) {
	err = database{s}.Reading(ctx, func(r *sqlstore.Reader) error {
		var now place
		if err := r.One("SELECT meta.lineage, coalesce(commit_log.term, 0), next_id, next_seq, beside.lineage FROM beside, meta LEFT JOIN "+
			"commit_log USING (lineage)", nil,
			&now.lineage, &now.term, &now.nextID, &now.nextSeq, &now.beside); err != nil {
			return err
		}
		more, err = now.reach(r, k, keep)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("follow: %w", err)
	}
	return more, nil
}

// place is where a store is.
type place struct{ lineage, term, nextID, nextSeq, beside int64 }

// reach brings k to a place, or nearer. It changes k as the last thing it does.
func (now place) reach(r *sqlstore.Reader, k *store.Known, keep time.Time) (more bool, err error) {
	if k.Lineage != uint64(now.lineage) || k.Term != uint64(now.term) || k.Term == 0 {
		since, err := piece(r, k)
		switch {
		case err != nil:
			return false, err
		case since == nil || k.Lineage > uint64(now.lineage):
			saved, err := r.Load(keep, gang.MostEnded)
			if err != nil {
				return false, err
			}
			*k = *store.KnownOf(saved, uint64(now.lineage), uint64(now.term))
			k.Beside = uint64(now.beside)
			return false, nil
		}
		if err := since.read(r, k); err != nil {
			return false, err
		}
		k.NextID, k.NextSeq = now.nextID, now.nextSeq
		if since.lineage < now.lineage {
			return true, nil
		}
	}
	if k.Beside == uint64(now.beside) {
		return false, nil
	}
	left, err := r.EndedAfter(keep)
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(k.Jobs, func(id int64, j *gang.Job) bool { // forgotten, or too old
		return j.Verdict != nil && !left[id]
	})
	k.Beside = uint64(now.beside)
	return false, nil
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

// read reads the rows and puts them over those of k.
func (c *changes) read(r *sqlstore.Reader, k *store.Known) error {
	slices.Sort(c.jobs)
	ids := slices.Compact(c.jobs)
	for _, id := range ids {
		if j := k.Jobs[id]; j != nil {
			r.Share(j)
		}
	}
	var jobs []*gang.Job
	var nodes []*gang.Node
	var reservations []*api.Reservation
	var err error
	if len(ids) > 0 {
		if jobs, err = r.Jobs(ids); err != nil {
			return err
		}
	}
	if len(c.nodes) > 0 {
		if nodes, err = r.Nodes(unique(c.nodes)); err != nil {
			return err
		}
	}
	if len(c.reservations) > 0 {
		if reservations, err = r.Reservations(unique(c.reservations)); err != nil {
			return err
		}
	}
	claims, err := r.Claims()
	if err != nil {
		return err
	}
	partitions, err := r.Partitions() // few rows, that seldom change
	if err != nil {
		return err
	}
	crontabs, err := r.Crontabs() // and these
	if err != nil {
		return err
	}
	// From here on nothing fails.
	k.Lineage, k.Term, k.Claims, k.Partitions, k.Crontabs = uint64(c.lineage), uint64(c.term), claims, partitions, crontabs
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
	return nil
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
