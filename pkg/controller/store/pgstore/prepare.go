package pgstore

import (
	"context"
	"embed"
	"fmt"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/core/cmdline/when"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// marker is the table by which a database is known as gangd's; its number is the schema's.
const marker = "gangd_schema"

// prepare looks at the database and makes its tables where there are none. Those of an older gangd are
// changed by whoever takes over: the leader may still be that older one.
func (s *Store) prepare(ctx context.Context) error {
	tx, err := s.begin(ctx, s.write, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var version, encoding string
	var number int
	if err := tx.QueryRowContext(ctx, "SELECT current_setting('server_version'), current_setting('server_version_num')::int, "+
		"current_setting('server_encoding')").
		Scan(&version, &number, &encoding); err != nil {
		return err
	}
	if number < oldest*10000 {
		return fmt.Errorf("the database is PostgreSQL %s: gangd needs %d or newer", version, oldest)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database has encoding %s: make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	schema, err := schemaOf(ctx, tx)
	if err != nil || schema > 0 {
		return err
	}
	if err := migrate(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// oldest is the oldest version of PostgreSQL that its own people still mend and that gangd is tested with.
const oldest = 14

// schemaOf gives the number of the schema, 0 where nothing is yet.
func schemaOf(ctx context.Context, q querier) (int, error) {
	var tables, ours int
	if err := q.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE relname = '"+marker+
		"') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "+
		"WHERE n.nspname = current_schema() AND c.relkind = 'r'").Scan(&tables, &ours); err != nil {
		return 0, err
	}
	if ours == 0 && tables > 0 {
		return 0, fmt.Errorf("the database holds %d tables of another program: gangd needs one of its own", tables)
	}
	if ours == 0 {
		return 0, nil
	}
	var version int
	if err := q.QueryRowContext(ctx, "SELECT version FROM "+marker).Scan(&version); err != nil {
		return 0, err
	}
	texts, err := sqlstore.Migrations(migrationFiles)
	if err == nil && version > len(texts) {
		err = fmt.Errorf("the database has schema %d, this gangd knows schemas up to %d: start the gangd that wrote it or a newer one: %w",
			version, len(texts), store.ErrNewerSchema)
	}
	return version, err
}

// migrate brings the schema up to date in a transaction. Two that begin at once wait for each other.
func migrate(ctx context.Context, tx querier) error {
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext('"+marker+"'))"); err != nil {
		return err
	}
	version, err := schemaOf(ctx, tx)
	if err != nil {
		return err
	}
	texts, err := sqlstore.Migrations(migrationFiles)
	if err != nil {
		return err
	}
	for n := version + 1; n <= len(texts); n++ {
		text := texts[n-1]
		if n == 1 {
			text += "; CREATE TABLE " + marker + " (version BIGINT NOT NULL); INSERT INTO " + marker + " VALUES (0)"
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("%s; UPDATE %s SET version = %d", text, marker, n)); err != nil {
			return fmt.Errorf("migration to schema %d: %w", n, err)
		}
	}
	return nil
}

// maxSkew is by how much clocks may differ before the difference is said. Nothing is decided by comparing
// them; times that people read would disagree.
const maxSkew = 2 * time.Second

// Doctor says, a sentence each, what of the database makes it lose commits or disagree. Open logs them.
func (s *Store) Doctor(ctx context.Context) (all []string, err error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	var fsync, whole, sync, names string
	var now float64
	var standbys int
	var sent time.Time
	if err := s.twice(ctx, func() error {
		sent = time.Now()
		return s.read.QueryRowContext(ctx, "SELECT extract(epoch FROM clock_timestamp())::float8, current_setting('fsync'), "+
			"current_setting('full_page_writes'), "+
			"current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication)").
			Scan(&now, &fsync, &whole, &sync, &names, &standbys)
	}); err != nil {
		return nil, err
	}
	took := time.Since(sent)
	if fsync != "on" {
		all = append(all, "fsync is off: a power cut can destroy the database; set fsync = on")
	}
	if whole != "on" {
		all = append(all, "full_page_writes is off: a power cut can destroy the database; set full_page_writes = on")
	}
	switch {
	case sync == "off":
		all = append(all, "synchronous_commit is off: jobs that were acknowledged are lost when the server dies; set synchronous_commit = on")
	case standbys > 0 && (names == "" || sync == "local"):
		all = append(all, fmt.Sprintf("%d standbys follow asynchronously: promoting one loses what it lacks, and gangd will HOLD; set "+
			"synchronous_standby_names", standbys))
	case sync == "remote_write":
		all = append(all, "synchronous_commit is remote_write: a standby that loses its power loses what was acknowledged; set "+
			"synchronous_commit = on")
	}
	if skew := sent.Add(took / 2).Sub(time.UnixMicro(int64(now * 1e6))); skew.Abs() > maxSkew+took {
		all = append(all, fmt.Sprintf("this host's clock is %v ahead of the database's: times of jobs will disagree; keep both by NTP",
			when.Words(skew)))
	}
	return all, nil
}
