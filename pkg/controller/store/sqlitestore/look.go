package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"

	"gangd/pkg/controller/store/internal/sqlstore"
)

// Summary is what a store is found to be that no gangd has open.
type Summary struct {
	Lineage uint64 // its newest commit
	NextID  int64  // the smallest job id never given out
	Live    int    // jobs that have not ended
	Found   []Finding
}

// Look reads all rows of the store in a directory, and changes nothing there. The caller sees to it that nobody else has it.
// [fs.ErrNotExist]: there is none.
func Look(ctx context.Context, dir string) (*Summary, error) {
	name := filepath.Join(dir, DatabaseName)
	if !exists(name) {
		return nil, fmt.Errorf("%s: there is no store: %w", name, fs.ErrNotExist)
	}
	s := &Summary{}
	err := repairing(ctx, name, "ro", func(tx *sql.Tx, _ *sqlstore.Reader, found []Finding) error {
		s.Found = found
		row := tx.QueryRowContext(ctx, "SELECT lineage, next_id, (SELECT count(*) FROM job WHERE ended IS NULL) FROM meta")
		return row.Scan(&s.Lineage, &s.NextID, &s.Live)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
