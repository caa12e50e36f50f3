package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gangd/pkg/controller/config"
	"gangd/pkg/controller/store"
	"gangd/pkg/wire/dirlock"
)

// Backups by themselves: the controller that leads writes one each `backup_every`, and removes the oldest of those that it
// has written beyond `backup_keep`, when the newest is whole. What else lies in the directory is nobody's business here.

// backupName is a backup's, by its time.
const backupName = "gangd-20060102T150405Z"

// backupLook is how often it is looked whether one is due: the configuration may say otherwise meanwhile.
const backupLook = time.Minute

// backupAgain is how long after one that failed the next is tried, unless one is due sooner.
const backupAgain = 10 * time.Minute

// backups are what a directory holds of them, the oldest first.
func backups(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := backupTime(e.Name()); ok && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func backupTime(name string) (time.Time, bool) {
	at, err := time.Parse(backupName, name)
	return at, err == nil
}

// keepBackups writes them until ctx ends.
func (p *process) keepBackups(ctx context.Context, st store.Store) error {
	var failed time.Time
	for {
		cfg, now := p.running.Load(), time.Now()
		if backupDue(cfg, now, failed) {
			if err := p.backUp(ctx, st, cfg, now); err != nil && ctx.Err() == nil {
				failed = now
				p.m.BackedUp(time.Time{}, 0)
				p.log.Error("no backup was written", "dir", cfg.BackupDir, "err", err, "again in", min(backupAgain, cfg.BackupEvery))
			} else {
				failed = time.Time{}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backupLook):
		}
	}
}

// backupDue says whether one is. A newest one of a time to come is of a clock that was wrong, and none that counts.
func backupDue(cfg *config.Controller, now, failed time.Time) bool {
	switch {
	case cfg.BackupEvery <= 0:
		return false
	case !failed.IsZero():
		return now.Sub(failed) >= min(backupAgain, cfg.BackupEvery)
	}
	names, err := backups(cfg.BackupDir)
	if err != nil || len(names) == 0 {
		return true
	}
	at, _ := backupTime(names[len(names)-1])
	return at.After(now) || now.Sub(at) >= cfg.BackupEvery
}

func (p *process) backUp(ctx context.Context, st store.Store, cfg *config.Controller, now time.Time) error {
	if err := dirlock.Open(cfg.BackupDir, 0o700); err != nil {
		return err
	}
	to := filepath.Join(cfg.BackupDir, now.UTC().Format(backupName))
	reply, err := backup(ctx, st, p.vault, to)
	if err != nil {
		return err
	}
	p.m.BackedUp(now, reply.Bytes)
	p.log.Info("backup written", "path", to, "bytes", reply.Bytes, "took", time.Since(now).Round(time.Millisecond))
	names, err := backups(cfg.BackupDir)
	if err != nil {
		return err
	}
	for _, old := range names[:max(0, len(names)-cfg.BackupKeep)] {
		if old == filepath.Base(to) { // of a clock that went back
			continue
		}
		if err := os.RemoveAll(filepath.Join(cfg.BackupDir, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("an old backup is not removed: %w", err)
		}
	}
	return nil
}
