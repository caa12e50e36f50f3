package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/row"
)

// sharers is how many jobs a spec may have whose texts are dropped: with more the rows of its jobs take as much as they do.
const sharers = 64

// DropTexts walks the index of ends, and drops the texts of specs that only jobs have which never had an attempt.
func (s *Store) DropTexts(ctx context.Context, after store.End, before time.Time, keep func(id int64) bool) (last store.End, more bool,
	err error) {
	if err := ctx.Err(); err != nil {
		return after, false, err
	}
	last = after
	var hashes []string
	err = s.db.Reading(ctx, func(r *Reader) error {
		lines, at := 0, nanos(after.At)
		if after.At.IsZero() {
			at = math.MinInt64
		}
		seen := map[string]bool{}
		err := r.Each(func(scan func(...any) error) error {
			var ended, id int64
			var hash string
			var ran bool
			if err := scan(&ended, &id, &hash, &ran); err != nil {
				return err
			}
			lines++
			last = store.End{At: time.Unix(0, ended).UTC(), ID: id}
			if !ran && !seen[hash] && !keep(id) {
				seen[hash] = true
				hashes = append(hashes, hash)
			}
			return nil
		}, "SELECT ended, id, spec, EXISTS (SELECT 1 FROM epoch WHERE epoch.job = job.id) FROM job WHERE ended < $1 AND ended >= $2 AND "+
			"(ended > $2 OR id > $3) AND ended IS NOT NULL ORDER BY ended, id LIMIT $4",
			nanos(before), at, after.ID, dueLines)
		more = lines == dueLines
		return err
	})
	if err == nil && len(hashes) > 0 {
		err = s.db.Alone(ctx, true, func(w Writer) error {
			for _, h := range hashes {
				if err := s.dropTexts(w, h, keep); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return after, false, fmt.Errorf("drop texts: %w", err)
	}
	return last, more, nil
}

// dropTexts cuts the row of a spec, unless some job needs it.
func (s *Store) dropTexts(w Writer, hash string, keep func(id int64) bool) error {
	const these = "FROM job WHERE substr(spec, 1, 8) = substr($1, 1, 8) AND spec = $1"
	n, err := w.Ints(fmt.Sprintf("SELECT count(*), coalesce(sum(CASE WHEN ended IS NULL OR EXISTS (SELECT 1 FROM epoch WHERE epoch.job = "+
		"j.id) THEN 1 ELSE 0 END), 0) FROM (SELECT id, ended %s LIMIT %d) AS j",
		these, sharers+1), 2, hash)
	if err != nil || n[0] > sharers || n[1] > 0 {
		return err
	}
	ids, err := w.Texts("SELECT CAST(id AS TEXT) "+these, hash)
	if err != nil {
		return err
	}
	for _, text := range ids {
		if id, err := strconv.ParseInt(text, 10, 64); err != nil || keep(id) {
			return err
		}
	}
	rows, err := w.Texts("SELECT data FROM spec WHERE hash = $1", hash)
	if err != nil || len(rows) != 1 {
		return err
	}
	whole, err := specOf(hash, []byte(rows[0]))
	if err != nil {
		return nil // a damaged row is not made one that looks whole: see Verify
	}
	data, err := row.Spec(whole.WithoutTexts())
	if err != nil {
		return err
	}
	cut := sealed(data, "spec "+hash)
	if len(cut) >= len(rows[0]) {
		return nil
	}
	s.db.Forgotten([]string{hash}) // written whole again with the next job that has it
	_, err = w.Exec("UPDATE spec SET data = $1 WHERE hash = $2", cut, hash)
	return err
}
