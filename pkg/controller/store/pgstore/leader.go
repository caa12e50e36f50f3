package pgstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/core/cmdline/when"
)

// Leader reads the row of who leads.
func (s *Store) Leader(ctx context.Context) (l store.Leader, err error) {
	if err := s.readable(); err != nil {
		return l, err
	}
	err = s.twice(ctx, func() error {
		l, _, err = leaderRow(ctx, s.write, "")
		return err
	})
	return l, err
}

// querier is a transaction or the database itself.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func leaderRow(ctx context.Context, q querier, lock string) (l store.Leader, session string, err error) {
	var term int64
	var who []byte
	var left float64
	err = q.QueryRowContext(ctx, "SELECT term, session, controller, extract(epoch FROM until - clock_timestamp())::float8, extract(epoch "+
		"FROM until)::text, until = 'epoch' FROM leader "+lock).
		Scan(&term, &session, &who, &left, &l.Mark, &l.Free)
	if err != nil {
		return l, "", err
	}
	l.Term, l.Left = uint64(term), time.Duration(left*float64(time.Second))
	return l, session, json.Unmarshal(who, &l.Controller)
}

// TakeOver makes this process the leader.
func (s *Store) TakeOver(ctx context.Context, who store.Controller, ttl time.Duration, seen store.Leader, least uint64) (uint64, error) {
	return s.seize(ctx, who, ttl, seen, least, listed)
}

// seize is TakeOver by whoever is allowed; nil: anybody is.
func (s *Store) seize(ctx context.Context, who store.Controller, ttl time.Duration, seen store.Leader, least uint64,
	allowed func(context.Context, querier, string) error) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return 0, err
	}
	term, err := s.takeOver(ctx, who, ttl, seen, least, allowed)
	s.note(err)
	if err != nil {
		return 0, fmt.Errorf("take over: %w", said(err))
	}
	s.term.Store(term)
	return term, nil
}

func (s *Store) takeOver(ctx context.Context, who store.Controller, ttl time.Duration, seen store.Leader, least uint64,
	allowed func(context.Context, querier, string) error) (uint64, error) {
	name, err := json.Marshal(who)
	if err != nil {
		return 0, err
	}
	var before store.Leader
	var session string
	if err := s.twice(ctx, func() error {
		before, session, err = leaderRow(ctx, s.write, "")
		return err
	}); err != nil {
		return 0, err
	}
	if err := s.free(before, session, seen); err != nil {
		return 0, err
	}
	// First, and not within the transaction: one that was frozen amid a write holds locks that the
	// transaction would wait for.
	if session != s.session {
		if _, err := s.write.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
			"WHERE usename = current_user AND datname = current_database() AND application_name = $1 AND pid != pg_backend_pid()",
			session); err != nil {
			return 0, err
		}
	}
	tx, err := s.begin(ctx, s.write, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	if before, session, err = leaderRow(ctx, tx, "FOR UPDATE"); err == nil {
		err = s.free(before, session, seen)
	}
	if err != nil {
		return 0, err
	}
	if err := migrate(ctx, tx); err != nil {
		return 0, err
	}
	if allowed != nil {
		if err := allowed(ctx, tx, who.Name); err != nil {
			return 0, err
		}
	}
	term := max(before.Term, least) + 1
	if _, err := tx.ExecContext(ctx, "UPDATE leader SET term = $1, session = $2, controller = $3, until = clock_timestamp() + "+
		"make_interval(secs => $4)",
		int64(term), s.session, string(name), ttl.Seconds()); err != nil {
		return 0, err
	}
	// These wait for a write of the leader before that is under way.
	var lineage, nextID, nextSeq, beside int64
	if err := tx.QueryRowContext(ctx, "UPDATE meta SET term = $1 RETURNING lineage, next_id, next_seq", int64(term)).Scan(&lineage, &nextID,
		&nextSeq); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, "UPDATE beside SET term = $1 RETURNING lineage", int64(term)).Scan(&beside); err != nil {
		return 0, err
	}
	if err := s.Start(writer{ctx, tx}); err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	s.meta.number, s.nextID, s.nextSeq, s.beside.number = lineage, nextID, nextSeq, beside
	s.lineage.Store(uint64(lineage))
	clear(s.specs)
	return term, nil
}

// free gives ErrLocked where the row is not as it was seen, or, seen by nobody, somebody else leads.
func (s *Store) free(l store.Leader, session string, seen store.Leader) error {
	switch {
	case seen.Mark != "" && (l.Term != seen.Term || l.Mark != seen.Mark):
		return fmt.Errorf("%w: controller %q has the seat by now, in term %d", store.ErrLocked, l.Name, l.Term)
	case seen.Mark == "" && l.Left > 0 && session != s.session:
		return fmt.Errorf("%w: controller %q leads, for %v more", store.ErrLocked, l.Name, when.Words(l.Left))
	}
	return nil
}

// listed gives ErrLocked to who is not on the list, or is joining. The list stays as it is until the
// transaction is over; where there is none, everybody may lead.
func listed(ctx context.Context, q querier, name string) error {
	var version int64
	var data []byte
	if err := q.QueryRowContext(ctx, "SELECT version, data FROM controllers FOR UPDATE").Scan(&version, &data); err != nil || version == 0 {
		return err
	}
	l := store.Controllers{Version: version}
	if err := json.Unmarshal(data, &l.All); err != nil {
		return err
	}
	if c := l.Named(name); c != nil && c.MayLead() {
		return nil
	}
	return fmt.Errorf("%w: controller %q is not on version %d of the list, or is joining", store.ErrLocked, name, version)
}

// Renew gives the leader its ttl again. Where another try waits for its answer, its connection may be dead, and those that
// nobody uses with it: this one gets a new one.
func (s *Store) Renew(ctx context.Context, ttl time.Duration) error {
	if s.renews.Add(1) > 1 {
		dropIdle(s.write, writers)
	}
	defer s.renews.Add(-1)
	return s.until(ctx, "clock_timestamp() + make_interval(secs => $1)", ttl)
}

// Resign ends it. What is under way may still be written, by the term that nobody else has.
func (s *Store) Resign(ctx context.Context) error {
	if err := s.until(ctx, "'epoch'::timestamptz + make_interval(secs => $1)", 0); err != nil {
		return err
	}
	resigned := fmt.Errorf("this controller has resigned: %w", store.ErrFenced)
	s.failed.CompareAndSwap(nil, &resigned)
	return nil
}

// until sets when the seat has run out: to what SQL makes of ttl in seconds.
func (s *Store) until(ctx context.Context, to string, ttl time.Duration) error {
	if err := s.leads(); err != nil {
		return err
	}
	known, lineage := s.lineage.Load(), int64(0)
	err := s.twice(ctx, func() error {
		return s.write.QueryRowContext(ctx, "UPDATE leader SET until = "+to+" WHERE term = $2 AND session = $3 RETURNING (SELECT lineage FROM "+
			"meta)",
			ttl.Seconds(), int64(s.term.Load()), s.session).Scan(&lineage)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return s.fail(store.ErrFenced)
	case err == nil && uint64(lineage) < known: // a replica may have the row, and lack commits
		return s.fail(fmt.Errorf("%w: it is at commit %d, this process has written %d", store.ErrWentBack, lineage, known))
	}
	return err
}

// Controllers reads the list.
func (s *Store) Controllers(ctx context.Context) (c store.Controllers, err error) {
	if err := s.readable(); err != nil {
		return c, err
	}
	var data []byte
	if err := s.twice(ctx, func() error {
		return s.write.QueryRowContext(ctx, "SELECT version, data FROM controllers").Scan(&c.Version, &data)
	}); err != nil {
		return c, err
	}
	return c, json.Unmarshal(data, &c.All)
}

// SetControllers replaces the list by the next. Who takes the seat locks the list first, so that the
// seat is as it is here until the new list is there.
func (s *Store) SetControllers(ctx context.Context, c store.Controllers) error {
	data, err := json.Marshal(c.All)
	if err != nil {
		return err
	}
	if err := s.readable(); err != nil {
		return err
	}
	tx, err := s.begin(ctx, s.write, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var version int64
	err = tx.QueryRowContext(ctx, "SELECT version FROM controllers FOR UPDATE").Scan(&version)
	var l store.Leader
	if err == nil {
		l, _, err = leaderRow(ctx, tx, "")
	}
	if err == nil {
		if seated := c.Named(l.Name); version != c.Version-1 || seated != nil && !seated.MayLead() {
			return store.ErrConflict
		}
		_, err = tx.ExecContext(ctx, "UPDATE controllers SET version = $1, data = $2, since = clock_timestamp()", c.Version, string(data))
	}
	if err == nil {
		err = tx.Commit()
	}
	s.note(err)
	return said(err)
}

// Sealed reads all that is sealed.
func (s *Store) Sealed(ctx context.Context) (map[string][]byte, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	var rows *sql.Rows
	if err := s.twice(ctx, func() (err error) {
		rows, err = s.write.QueryContext(ctx, "SELECT name, data FROM sealed")
		return err
	}); err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var data []byte
		if err := rows.Scan(&name, &data); err != nil {
			return nil, err
		}
		all[name] = data
	}
	return all, said(rows.Err())
}

// PutSealed replaces one.
func (s *Store) PutSealed(ctx context.Context, name string, old, sealed []byte) error {
	if bytes.Equal(old, sealed) && old != nil {
		return nil
	}
	if old == nil {
		return s.changed(ctx, "INSERT INTO sealed (name, data) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, sealed)
	}
	return s.changed(ctx, "UPDATE sealed SET data = $2 WHERE name = $1 AND data = $3", name, sealed, old)
}

// changed runs a statement that changes one row, or none where somebody else was faster.
func (s *Store) changed(ctx context.Context, text string, args ...any) error {
	if err := s.readable(); err != nil {
		return err
	}
	res, err := s.write.ExecContext(ctx, text, args...)
	s.note(err)
	if err != nil {
		return said(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, store.ErrConflict)
	}
	return nil
}
