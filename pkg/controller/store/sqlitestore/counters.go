package sqlitestore

import (
	"database/sql"
	"fmt"

	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/core/checksum"
)

// The counters are columns, and their checksum is one beside them. It is NULL in a store of a version before and in one that
// was copied or repaired, until the next commit.

// counters are the row of meta.
type counters struct {
	lineage, nextID, nextSeq int64
	sum                      sql.NullInt64
}

const readCounters = "SELECT lineage, next_id, next_seq, sum FROM meta"

// counters reads them as they are when a store is opened.
func (s *Store) counters() (c counters, err error) {
	v, err := s.w.Ints("SELECT lineage, next_id, next_seq, coalesce(sum, 0), sum IS NOT NULL FROM meta", 5)
	if err != nil {
		return c, err
	}
	c = counters{v[0], v[1], v[2], sql.NullInt64{Int64: v[3], Valid: v[4] != 0}}
	return c, c.intact()
}

// check is their checksum.
func (c *counters) check() int64 {
	return int64(checksum.Of(fmt.Sprintf("meta %d %d %d", c.lineage, c.nextID, c.nextSeq)))
}

// intact says that one of them is not what was written; nil: nothing that a checksum finds.
func (c *counters) intact() error {
	if c.sum.Valid && c.sum.Int64 != c.check() {
		return fmt.Errorf("row meta is damaged: commit %d, next id %d or next event %d is not what was written; gangd verify --repair goes on "+
			"behind all that is here",
			c.lineage, c.nextID, c.nextSeq)
	}
	return nil
}

// examineCounters adds what their checksum says to what is impossible.
func examineCounters(r *sqlstore.Reader, found []Finding) ([]Finding, error) {
	for i := range found {
		if found[i].Table == "meta" {
			return found, nil // it is changed anyhow
		}
	}
	var c counters
	if err := r.One(readCounters, nil, &c.lineage, &c.nextID, &c.nextSeq, &c.sum); err != nil {
		return nil, err
	}
	if c.intact() != nil {
		found = append(found, Finding{Table: "meta", Row: "1", Why: fmt.Sprintf("its checksum is that of other counters: ids go on behind %d, "+
			"events behind %d", c.nextID-1, c.nextSeq-1)})
	}
	return found, nil
}
