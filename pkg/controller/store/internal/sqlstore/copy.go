package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"

	"gangd/pkg/controller/store"
)

// ErrNotEmpty: a store that is to get a copy holds something.
var ErrNotEmpty = errors.New("the store is not empty")

// Copied says what of a table was copied.
type Copied struct {
	Table string
	Rows  int64
}

// most values that one statement is given: SQLite takes 32,766, PostgreSQL 65,535.
const most = 4000

// CopyFrom copies all of another store, as of one commit, into this one, which has to be empty: [ErrNotEmpty].
// It then reads both and compares the rows of each table by their number and a checksum. After an
// error this store holds nothing, or what could not be proven the same.
func (s *Store) CopyFrom(ctx context.Context, from *Store) (all []Copied, err error) {
	err = from.db.Reading(ctx, func(r *Reader) error {
		sums := map[string]sum{}
		count, err := s.counting(r)
		if err != nil {
			return err
		}
		err = s.db.Alone(ctx, false, func(w Writer) error {
			clear(sums) // it may be tried again
			if err := empty(w); err != nil {
				return err
			}
			for _, t := range tables() {
				var err error
				if sums[t.Name], err = copyTable(r, w, t, count); err != nil {
					return fmt.Errorf("table %s: %w", t.Name, err)
				}
			}
			var lineage, id, seq int64
			if err := r.One("SELECT lineage, next_id, next_seq FROM meta", nil, &lineage, &id, &seq); err != nil {
				return err
			}
			_, err := w.Exec("UPDATE meta SET lineage = $1, next_id = $2, next_seq = $3", lineage, id, seq)
			return err
		})
		if err != nil {
			return err
		}
		all, err = s.compare(ctx, sums, count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	return all, nil
}

// counting gives who counts the rows that are copied, and then those that are compared.
func (s *Store) counting(r *Reader) (count func(), err error) {
	if s.Copying == nil {
		return func() {}, nil
	}
	all, done := int64(0), int64(0)
	for _, t := range tables() {
		n := int64(0)
		if err := r.One("SELECT count(*) FROM "+t.Name, nil, &n); err != nil {
			return nil, err
		}
		all += 2 * n
	}
	return func() {
		done++
		s.Copying(min(done, all), all) // what was tried again counts again
	}, nil
}

func tables() []*Table { return append(Batched[:len(Batched):len(Batched)], Beside...) }

func empty(w Writer) error {
	n, err := w.Ints("SELECT lineage, next_id, next_seq FROM meta", 3)
	if err != nil {
		return err
	}
	if n[0] != 0 || n[1] != 1 || n[2] != 1 {
		return fmt.Errorf("%w: it has commit %d", ErrNotEmpty, n[0])
	}
	for _, t := range tables() {
		n, err := w.Ints("SELECT count(*) FROM "+t.Name, 1)
		if err != nil {
			return err
		}
		if n[0] != 0 {
			return fmt.Errorf("%w: it has %d rows in table %s", ErrNotEmpty, n[0], t.Name)
		}
	}
	return nil
}

// sum is the number of a table's rows and the checksum of what is in them.
type sum struct {
	rows int64
	hash [sha256.Size]byte
}

// copyTable writes many rows at a time.
func copyTable(r *Reader, w Writer, t *Table, count func()) (sum, error) {
	one := "(" + strings.Repeat(", ?", len(t.Columns))[2:] + ")"
	var args []any
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		rows := strings.Repeat(", "+one, len(args)/len(t.Columns))[2:]
		_, err := w.Exec(fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.Name, t.Names(), numbered(rows)), args...)
		args = args[:0]
		return err
	}
	size := 0
	total, err := each(r, t, func(values []any) error {
		count()
		for _, v := range values {
			if b, ok := v.([]byte); ok {
				size += len(b)
			}
		}
		if args = append(args, values...); len(args) < most && size < 1<<20 {
			return nil
		}
		size = 0
		return flush()
	})
	if err != nil {
		return total, err
	}
	return total, flush()
}

// numbered makes $1, $2 ... of question marks.
func numbered(text string) string {
	var b strings.Builder
	n := 0
	for _, c := range text {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		n++
		fmt.Fprintf(&b, "$%d", n)
	}
	return b.String()
}

// each gives the rows of a table in the order of its key; values are the caller's.
func each(r *Reader, t *Table, f func(values []any) error) (total sum, err error) {
	h := sha256.New()
	err = r.Each(func(scan func(...any) error) error {
		ints, texts, raws := make([]*int64, len(t.Columns)), make([]string, len(t.Columns)), make([][]byte, len(t.Columns))
		to := make([]any, len(t.Columns))
		for i, c := range t.Columns {
			switch c.Kind {
			case Int:
				to[i] = &ints[i]
			case Text:
				to[i] = &texts[i]
			default:
				to[i] = &raws[i]
			}
		}
		if err := scan(to...); err != nil {
			return err
		}
		values := make([]any, len(t.Columns))
		for i, c := range t.Columns {
			switch {
			case c.Kind == Text:
				values[i] = texts[i]
			case c.Kind == Bytes:
				values[i] = raws[i]
			case ints[i] != nil:
				values[i] = *ints[i]
			}
		}
		total.rows++
		count(h, values)
		return f(values)
	}, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", t.Names(), t.Name, t.KeyNames()))
	h.Sum(total.hash[:0])
	return total, err
}

// count adds values with their lengths, so that no two rows have one form.
func count(h hash.Hash, values []any) {
	for _, v := range values {
		var b []byte
		switch v := v.(type) {
		case int64:
			b = binary.BigEndian.AppendUint64([]byte{'i'}, uint64(v))
		case string:
			b = append(binary.BigEndian.AppendUint64([]byte{'t'}, uint64(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint64([]byte{'b'}, uint64(len(v))), v...)
		default:
			b = []byte{'0'}
		}
		_, _ = h.Write(b) // never fails
	}
}

// compare reads the copy again.
func (s *Store) compare(ctx context.Context, sums map[string]sum, count func()) (all []Copied, err error) {
	err = s.db.Reading(ctx, func(r *Reader) error {
		for _, t := range tables() {
			is, err := each(r, t, func([]any) error { count(); return nil })
			if err != nil {
				return err
			}
			was := sums[t.Name]
			if is.rows != was.rows {
				return fmt.Errorf("%w: table %s has %d rows, of %d", store.ErrFailed, t.Name, is.rows, was.rows)
			}
			if is.hash != was.hash {
				return fmt.Errorf("%w: the %d rows of table %s are not what they were", store.ErrFailed, is.rows, t.Name)
			}
			all = append(all, Copied{Table: t.Name, Rows: is.rows})
		}
		return nil
	})
	return all, err
}
