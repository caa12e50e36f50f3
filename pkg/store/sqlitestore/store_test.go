package sqlitestore

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"gangd/pkg/store"
	"gangd/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("GANGD_STORE_CRASH_DIR"); dir != "" {
		commitUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

type place struct{ dir string }

func (p place) Open() (store.Store, error) {
	s, err := Open(context.Background(), p.dir, Options{NewJobFloor: 1})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p place) FromBackup(t *testing.T, path string) storetest.Place {
	dir := t.TempDir()
	if err := os.Rename(path, filepath.Join(dir, DatabaseName)); err != nil {
		t.Fatal(err)
	}
	// The backup's name has moved, which the suite still needs to be taken.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return place{dir}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place { return place{t.TempDir()} })
}

func commitUntilKilled(string) {}
