package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/wire/dirlock"
)

// Restoration is a backup that is to take the place of a state directory, and what is lost by that.
type Restoration struct {
	From, To string
	Backup   *sqlitestore.Summary
	Now      *sqlitestore.Summary // nil: there is none, or it can't be read
	NowWhy   error                // why it can't be read; nil: there is none, or it can
}

// PlanRestore looks at both. It refuses while a gangd has the state directory, and a backup that is not whole.
func PlanRestore(ctx context.Context, stateDir, from string) (*Restoration, error) {
	r := &Restoration{From: filepath.Clean(from), To: filepath.Clean(stateDir)}
	var err error
	if r.Backup, err = sqlitestore.Look(ctx, r.From); err != nil {
		return nil, fmt.Errorf("the backup can't be used: %w", err)
	}
	if found := r.Backup.Found; len(found) > 0 {
		return nil, fmt.Errorf("the backup in %s is not whole: %s and %d more: gangd verify --repair mends a copy of it", r.From, &found[0],
			len(found)-1)
	}
	if _, err := os.Lstat(r.To); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	lock, err := r.alone()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if r.Now, err = sqlitestore.Look(ctx, r.To); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.NowWhy = err
	}
	return r, nil
}

// alone keeps a gangd from the state directory.
func (r *Restoration) alone() (*os.File, error) {
	lock, err := dirlock.Take(r.To)
	if held := new(dirlock.HeldError); errors.As(err, &held) {
		return nil, fmt.Errorf("%w, which is a gangd that runs: stop it first", held)
	}
	return lock, err
}

// Lost is how many commits are newer than the backup; 0 where there is nothing to lose, or nobody can say.
func (r *Restoration) Lost() uint64 {
	if r.Now == nil || r.Now.Lineage <= r.Backup.Lineage {
		return 0
	}
	return r.Now.Lineage - r.Backup.Lineage
}

// Text says what the restoration does, a line each.
func (r *Restoration) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "backup   %s: commit %d, %d jobs that have not ended, next job %d\n", r.From, r.Backup.Lineage, r.Backup.Live,
		r.Backup.NextID)
	switch {
	case r.NowWhy != nil:
		fmt.Fprintf(&b, "now      %s: can't be read: %v\nlost     what was committed behind commit %d, as far as nobody can say\n", r.To,
			r.NowWhy, r.Backup.Lineage)
	case r.Now == nil:
		fmt.Fprintf(&b, "now      %s: no store is there\nlost     what was committed behind commit %d, as far as nobody can say\n", r.To,
			r.Backup.Lineage)
	default:
		fmt.Fprintf(&b, "now      %s: commit %d, %d jobs that have not ended, next job %d\n", r.To, r.Now.Lineage, r.Now.Live, r.Now.NextID)
		if r.Lost() == 0 {
			fmt.Fprintf(&b, "lost     nothing\n")
			break
		}
		fmt.Fprintf(&b, "lost     commits %d to %d", r.Backup.Lineage+1, r.Now.Lineage)
		if n := r.Now.NextID - r.Backup.NextID; n > 0 {
			fmt.Fprintf(&b, ": jobs %d to %d are not known any more", r.Backup.NextID, r.Now.NextID-1)
		}
		fmt.Fprintf(&b, "; what has ended since may run again\n")
	}
	if r.Lost() > 0 || r.Now == nil {
		fmt.Fprintf(&b, "then     nodes that have seen commit %d or a later one put gangd on hold; --accept-store at one start takes the store\n",
			r.Backup.Lineage+1)
	}
	return b.String()
}

// Do puts the backup in place, and gives where what was there is now; empty: nothing was.
func (r *Restoration) Do(now time.Time) (aside string, err error) {
	owner := r.From
	var lock *os.File
	if _, err := os.Lstat(r.To); err == nil {
		owner = r.To
		if lock, err = r.alone(); err != nil {
			return "", err
		}
		defer lock.Close()
	}
	part, err := os.MkdirTemp(filepath.Dir(r.To), "."+filepath.Base(r.To)+"-restore-") // mode 0700
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := copyState(r.From, part, owner); err != nil {
		return "", err
	}
	if lock != nil {
		aside = r.To + ".before-" + now.UTC().Format("20060102T150405Z")
		if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s is there already", aside)
		}
		if err := os.Rename(r.To, aside); err != nil {
			return "", err
		}
	}
	if err := os.Rename(part, r.To); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, r.To))
		}
		return "", err
	}
	return aside, syncDir(filepath.Dir(r.To))
}

// copyState copies the store and what is kept about certificates, and no more, with the owner of another directory.
func copyState(from, to, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner can't be told", like)
	}
	give := func(path string) error {
		if int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid() {
			return nil
		}
		return os.Chown(path, int(st.Uid), int(st.Gid))
	}
	put := func(name string) error {
		in, err := os.Open(filepath.Join(from, name)) // a store may be larger than memory
		if err != nil {
			return err
		}
		defer in.Close()
		if err := writeSynced(filepath.Join(to, name), in); err != nil {
			return err
		}
		return give(filepath.Join(to, name))
	}
	if err := put(sqlitestore.DatabaseName); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(from, pkiDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if err := os.Mkdir(filepath.Join(to, pkiDir), 0o700); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			if err := put(filepath.Join(pkiDir, e.Name())); err != nil {
				return err
			}
		}
	}
	if len(entries) > 0 {
		if err := errors.Join(give(filepath.Join(to, pkiDir)), syncDir(filepath.Join(to, pkiDir))); err != nil {
			return err
		}
	}
	return errors.Join(give(to), syncDir(to))
}
