package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/core/gang"
)

// logKept is how many commits a follower may be behind; logTrim is how often those before are dropped.
const (
	logKept = 100_000
	logTrim = 256
)

// fence raises the counter of commits; where the term or the number is another there is no row, and
// dividing by their number fails the transaction.
const fence = "WITH mine AS (UPDATE meta SET lineage = $1, next_id = $2, next_seq = $3 WHERE lineage = $4 AND term = $5 RETURNING one) " +
	"SELECT 1 / count(*) FROM mine"

// Commit writes one batch in one transaction and one round trip.
func (s *Store) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leads(); err != nil {
		return 0, err
	}
	nextID, nextSeq := max(s.nextID, ch.NextID), max(s.nextSeq, ch.NextSeq)
	if ch.Rows() == 0 && nextID == s.nextID && nextSeq == s.nextSeq {
		return s.lineage.Load(), nil
	}
	b := newBatch()
	if err := sqlstore.Batch(ch, s.nextID, s.specs, b); err != nil {
		return 0, s.fail(err)
	}
	return s.batch(b, ch, s.meta.number+1, nextID, nextSeq)
}

// batch sends a batch under a number: the next, or one that Advance chose.
func (s *Store) batch(b *batch, ch *gang.Changes, lineage, nextID, nextSeq int64) (uint64, error) {
	before := s.meta.number
	err := s.once(&s.meta, lineage, ch.Rows(), func(ctx context.Context) error {
		out := b.statements()
		out.Queue("INSERT INTO commit_log (lineage, term, jobs, nodes, reservations) VALUES ($1, $2, $3, $4, $5)",
			lineage, int64(s.term.Load()), b.jobs(ch), b.names(sqlstore.Node), b.names(sqlstore.Reservation))
		if lineage%logTrim == 0 {
			out.Queue("DELETE FROM commit_log WHERE lineage < $1", lineage-logKept)
		}
		out.Queue(fence, lineage, nextID, nextSeq, before, int64(s.term.Load()))
		return pipeline(ctx, s.write, out)
	})
	if err != nil {
		clear(s.specs)
		if errors.Is(err, store.ErrFull) || s.usable() != nil {
			return 0, err
		}
		return 0, s.fail(fmt.Errorf("commit %d: %w", lineage, err))
	}
	s.nextID, s.nextSeq = nextID, nextSeq
	s.lineage.Store(uint64(lineage))
	return uint64(lineage), nil
}

// batch gathers the rows of a batch by table, the newest of each key.
type batch struct {
	rows map[*sqlstore.Table]*rows
	left []string // specs that some job has no more
}

// rows are those of one table.
type rows struct {
	at   map[any]int // by key
	put  [][]any     // nil: another row of this key came after
	drop map[any]bool
}

func newBatch() *batch { return &batch{rows: map[*sqlstore.Table]*rows{}} }

func (b *batch) of(t *sqlstore.Table) *rows {
	r := b.rows[t]
	if r == nil {
		r = &rows{at: map[any]int{}, drop: map[any]bool{}}
		b.rows[t] = r
	}
	return r
}

// key of a row: up to six columns.
func key(t *sqlstore.Table, values []any) any {
	if t.Key == 1 {
		return values[0]
	}
	var k [6]any
	copy(k[:], values[:t.Key])
	return k
}

// Put keeps a row in place of an earlier one.
func (b *batch) Put(t *sqlstore.Table, values ...any) error {
	r := b.of(t)
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = clean(v)
	}
	k := key(t, row)
	if i, ok := r.at[k]; ok {
		r.put[i] = nil
	}
	delete(r.drop, k)
	r.at[k] = len(r.put)
	r.put = append(r.put, row)
	return nil
}

// Drop keeps that a row is to go.
func (b *batch) Drop(t *sqlstore.Table, k any) error {
	r := b.of(t)
	if i, ok := r.at[k]; ok {
		r.put[i] = nil
		delete(r.at, k)
	}
	r.drop[k] = true
	return nil
}

// DropSpec keeps that a spec is to go if no job has it.
func (b *batch) DropSpec(hash string) error {
	b.left = append(b.left, hash)
	return nil
}

// clean is a value as PostgreSQL takes it: its texts are UTF-8 without the byte zero.
func clean(v any) any {
	if s, ok := v.(string); ok && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s)) {
		return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	}
	return v
}

// statements are a statement a table, rows as arrays.
func (b *batch) statements() *pgx.Batch {
	out := &pgx.Batch{}
	for _, t := range sqlstore.Batched {
		r := b.rows[t]
		if r == nil {
			continue
		}
		if len(r.drop) > 0 {
			ids, names := split(r.drop)
			if t.Columns[0].Kind == sqlstore.Int {
				out.Queue(fmt.Sprintf("DELETE FROM %s WHERE %s = ANY($1)", t.Name, t.KeyNames()), ids)
			} else {
				out.Queue(fmt.Sprintf("DELETE FROM %s WHERE %s = ANY($1)", t.Name, t.KeyNames()), names)
			}
		}
		if len(r.at) > 0 {
			out.Queue(t.Put(unnest[t]), r.columns(t)...)
		}
	}
	for _, hash := range b.left {
		out.Queue(sqlstore.DropUnused, hash)
	}
	return out
}

// split sorts keys by their type.
func split(keys map[any]bool) (ids []int64, names []string) {
	for k := range keys {
		switch k := k.(type) {
		case int64:
			ids = append(ids, k)
		case string:
			names = append(names, k)
		}
	}
	return ids, names
}

// unnest is the SELECT of a table's rows from arrays.
var unnest = func() map[*sqlstore.Table]string {
	all := map[*sqlstore.Table]string{}
	for _, t := range sqlstore.Batched {
		var args []string
		for i, c := range t.Columns {
			kind := "bigint"
			if c.Kind == sqlstore.Text {
				kind = "text"
			}
			args = append(args, fmt.Sprintf("$%d::%s[]", i+1, kind))
		}
		all[t] = "SELECT * FROM unnest(" + strings.Join(args, ", ") + ")"
	}
	return all
}()

// columns are the rows as one array a column.
func (r *rows) columns(t *sqlstore.Table) []any {
	out := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		if c.Kind == sqlstore.Text {
			col := make([]string, 0, len(r.at))
			for _, row := range r.put {
				if row != nil {
					col = append(col, row[i].(string))
				}
			}
			out[i] = col
			continue
		}
		col := make([]*int64, 0, len(r.at))
		for _, row := range r.put {
			if row == nil {
				continue
			}
			var p *int64
			if n, ok := row[i].(int64); ok {
				p = &n
			}
			col = append(col, p)
		}
		out[i] = col
	}
	return out
}

// jobs are those that a follower has to read again.
func (b *batch) jobs(ch *gang.Changes) []int64 {
	ids := []int64{}
	seen := map[int64]bool{}
	add := func(id int64) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, j := range ch.Jobs {
		add(j.ID)
	}
	for i := range ch.Ranks {
		add(ch.Ranks[i].Job)
	}
	return ids
}

// names are the keys of a table's rows that came or went.
func (b *batch) names(t *sqlstore.Table) []string {
	names := []string{}
	if r := b.rows[t]; r != nil {
		for k := range r.at {
			names = append(names, k.(string))
		}
		for k := range r.drop {
			names = append(names, k.(string))
		}
	}
	return names
}

// Advance raises lineage and next id; what is remembered of runs is of another store.
func (s *Store) Advance(ctx context.Context, lineage uint64, nextID int64) error {
	if err := s.ForgetRuns(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leads(); err != nil {
		return err
	}
	if int64(lineage) <= s.meta.number && nextID <= s.nextID {
		return nil
	}
	_, err := s.batch(newBatch(), &gang.Changes{}, max(s.meta.number+1, int64(lineage)), max(s.nextID, nextID), s.nextSeq)
	return err
}
