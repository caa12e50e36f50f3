package controller

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gangd/pkg/controller/config"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/wire/auth"
)

// TestBackupIsDue: by the newest that is there, whoever wrote it, and after a failure not before a while.
func TestBackupIsDue(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		every  time.Duration
		have   []string
		failed time.Time
		want   bool
	}{
		"off":                {0, nil, time.Time{}, false},
		"none yet":           {time.Hour, nil, time.Time{}, true},
		"young":              {time.Hour, []string{"gangd-20260301T113000Z", "gangd-20260228T113000Z"}, time.Time{}, false},
		"old":                {time.Hour, []string{"gangd-20260301T110000Z"}, time.Time{}, true},
		"of a clock ahead":   {time.Hour, []string{"gangd-20270301T110000Z"}, time.Time{}, true},
		"others' alone":      {time.Hour, []string{"before-upgrade", "gangd-2026"}, time.Time{}, true},
		"failed just now":    {time.Hour, nil, now.Add(-time.Minute), false},
		"failed a while ago": {time.Hour, nil, now.Add(-10 * time.Minute), true},
		"failed, and often":  {time.Minute, nil, now.Add(-time.Minute), true},
	} {
		dir := t.TempDir()
		for _, d := range c.have {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if got := backupDue(&config.Controller{BackupEvery: c.every, BackupDir: dir}, now, c.failed); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestBackupsAreKept: the newest so many, and nothing is removed that gangd has not written itself, nor before another is whole.
func TestBackupsAreKept(t *testing.T) {
	st, err := sqlitestore.Open(t.Context(), t.TempDir(), sqlitestore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	dir := filepath.Join(t.TempDir(), "new", "backups")
	p := &process{log: slog.New(slog.DiscardHandler), m: metrics.New("test"), vault: auth.Files(t.TempDir())}
	cfg := &config.Controller{BackupKeep: 2, BackupDir: dir}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 4 {
		if err := p.backUp(t.Context(), st, cfg, at.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			for _, other := range []string{"before-upgrade", "gangd-20260101"} {
				if err := os.Mkdir(filepath.Join(dir, other), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	have := func() (names []string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	want := []string{"before-upgrade", "gangd-20260101", "gangd-20260301T140000Z", "gangd-20260301T150000Z"}
	if got := have(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if err := p.backUp(t.Context(), st, cfg, at.Add(3*time.Hour)); err == nil { // the name is taken
		t.Error("written over another")
	}
	if got := have(); !slices.Equal(got, want) {
		t.Errorf("after a failure: %v", got)
	}
	if _, err := sqlitestore.Look(t.Context(), filepath.Join(dir, want[3])); err != nil {
		t.Error(err)
	}
}

// TestRestoreIsPlanned: a backup that is damaged, or none, changes nothing; what was there stays beside what is put there.
func TestRestoreIsPlanned(t *testing.T) {
	base, ctx := t.TempDir(), t.Context()
	state, copied := filepath.Join(base, "state"), filepath.Join(base, "copied")
	st, err := sqlitestore.Open(ctx, state, sqlitestore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup(ctx, st, auth.Files(filepath.Join(state, pkiDir)), copied); err != nil {
		t.Fatal(err)
	}
	if _, err := PlanRestore(ctx, state, copied); err == nil {
		t.Error("while the store is open")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(base, "broken")
	if err := os.CopyFS(broken, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, sqlitestore.DatabaseName), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{broken, base, filepath.Join(base, "none")} {
		if _, err := PlanRestore(ctx, state, from); err == nil {
			t.Errorf("from %s", from)
		}
	}
	r, err := PlanRestore(ctx, state, copied)
	if err != nil || r.Lost() != 0 || r.Now == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, there := range []bool{true, false} {
		aside, err := r.Do(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		if err != nil || (aside != "") != there {
			t.Fatalf("%q, %v", aside, err)
		}
		want, _ := os.ReadFile(filepath.Join(copied, sqlitestore.DatabaseName))
		if got, err := os.ReadFile(filepath.Join(state, sqlitestore.DatabaseName)); err != nil || string(got) != string(want) {
			t.Errorf("another store: %v", err)
		}
		if there {
			if _, err := sqlitestore.Look(ctx, aside); err != nil {
				t.Error(err)
			}
			if err := os.RemoveAll(state); err != nil {
				t.Fatal(err)
			}
			if r, err = PlanRestore(ctx, state, copied); err != nil || r.Now != nil {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(base, ".*"))
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
