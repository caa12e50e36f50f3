package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"gangd/pkg/controller/store/internal/sqlstore"
)

// A store whose rows are impossible (text that is no JSON, numbers that overflow, ranks without their job)
// can't be loaded, and gangd does not start. Repair sets such rows aside, one by one, into a file, and
// leaves the rest. A file that is damaged below its rows is not touched: what SQLite can't read
// nobody can judge, and a backup is better than a guess.

// errMalformed: the file is damaged below its rows.
var errMalformed = errors.New("the store is damaged below its rows, it was left as it is: with gangd stopped move its directory away " +
	"and put a backup " +
	"there (gangd backup), or keep what sqlite3's .recover can read of a copy")

// Finding is a row that is impossible.
type Finding = sqlstore.Finding

// asideFile is the name of the file for rows, by the time.
const asideFile = "set-aside-20060102T150405.000.jsonl"

// Repair reads all rows of the store in a directory that no gangd has open, and gives those that are
// impossible. With fix they are written to a file there, whose path it gives, and removed.
// An [errMalformed] changes nothing.
func Repair(ctx context.Context, dir string, fix bool, now time.Time) (found []Finding, aside string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	name := filepath.Join(dir, DatabaseName)
	if !exists(name) {
		return nil, "", fmt.Errorf("%s: there is no store", name)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, "", err
	}
	defer lock.Close()
	// Read-only first: a connection that may write copies the log into the file as it closes.
	err = repairing(ctx, name, "ro", func(_ *sql.Tx, _ *sqlstore.Reader, all []Finding) error {
		found = all
		return nil
	})
	if err != nil || !fix || len(found) == 0 {
		return found, "", err
	}
	aside = filepath.Join(dir, now.UTC().Format(asideFile))
	return found, aside, repairing(ctx, name, "rw", func(tx *sql.Tx, r *sqlstore.Reader, found []Finding) error {
		return setAside(tx, r, found, aside)
	})
}

// repairing is examining of a file.
func repairing(ctx context.Context, name, mode string, then func(*sql.Tx, *sqlstore.Reader, []Finding) error) (err error) {
	defer func() { err = malformed(name, err) }()
	connector, err := sqlite.NewConnector("file:" + uriPath(name) + "?mode=" + mode + "&" + pragmas)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	return examining(ctx, db, then)
}

// examining looks at all rows in one transaction, and then does something.
func examining(ctx context.Context, db *sql.DB, then func(*sql.Tx, *sqlstore.Reader, []Finding) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	r := sqlstore.NewReader(ctx, tx)
	if err := whole(ctx, tx, r); err != nil {
		return err
	}
	found, err := sqlstore.Examine(r)
	if err == nil {
		found, err = examineCounters(r, found)
	}
	if err != nil {
		return err
	}
	return then(tx, r, found)
}

// malformed names an error of SQLite that is about the file itself.
func malformed(name string, err error) error {
	if err == nil {
		return nil
	}
	if code := sqliteCode(err); code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB {
		return fmt.Errorf("%s: %w: %w", name, errMalformed, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// whole looks at the file below its rows.
func whole(ctx context.Context, tx *sql.Tx, r *sqlstore.Reader) error {
	texts, err := sqlstore.Migrations(migrationFiles)
	if err != nil {
		return err
	}
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != len(texts) {
		return fmt.Errorf("it has schema %d, this gangd's is %d: use the gangd that wrote it, or start this one once", version, len(texts))
	}
	var below []string
	if err := r.Each(func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		if text != "ok" {
			below = append(below, text)
		}
		return err
	}, "PRAGMA integrity_check(20)"); err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("%w:\n%s", errMalformed, strings.Join(below, "\n"))
	}
	return nil
}

// setAside writes the rows to a file that is on the disk before they are removed.
func setAside(tx *sql.Tx, r *sqlstore.Reader, found []Finding, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	out := json.NewEncoder(f)
	for i := range found {
		if err := errors.Join(r.Read(&found[i]), out.Encode(&found[i])); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Sync(), syncDir(filepath.Dir(path))); err != nil {
		return err
	}
	for i := range found {
		if err := r.Remove(&found[i]); err != nil {
			return err
		}
		if found[i].Table == "meta" {
			if _, err := tx.Exec("UPDATE meta SET sum = NULL"); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}
