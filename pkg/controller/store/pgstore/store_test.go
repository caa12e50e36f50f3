package pgstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/controller/store/storetest"
)

// One server for all tests that don't break it. It syncs nothing.
var (
	common    *pgserver.Server
	notCommon error
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Each check reads the store whole several times, over a connection: fewer than the usual 100.
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("25")
	}
	dir, err := os.MkdirTemp("", "gangd-pgstore")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err == nil {
		common, err = pgserver.Start(context.Background(), pgserver.Options{Dir: dir + "/a", Unsafe: true, Settings: []string{"max_connections = 50"}})
	}
	notCommon = err
	code := m.Run()
	if common != nil {
		if err := common.Stop(syscall.SIGQUIT); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var schemas atomic.Int64

// newDatabase is an empty schema on the common server, which is made sooner than a database.
func newDatabase(t testing.TB) string {
	t.Helper()
	if notCommon != nil {
		if errors.Is(notCommon, pgserver.ErrNotInstalled) {
			t.Skip(notCommon)
		}
		t.Fatal(notCommon)
	}
	name := fmt.Sprintf("test%d", schemas.Add(1))
	cfg, err := configOf(common.URL(pgserver.Database), "tests")
	if err != nil {
		t.Fatal(err)
	}
	db := connect(cfg, 1)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	return common.URL(pgserver.Database) + "&search_path=" + name
}

func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(context.Background(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

const long = time.Minute

// leading is a store that leads.
func leading(t testing.TB, url, name string) *Store {
	t.Helper()
	s := open(t, url)
	if _, err := s.TakeOver(context.Background(), store.Controller{Name: name}, long, store.Leader{}, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// testPlace is a database, on which whoever opens it leads.
type testPlace struct{ url string }

// resigning lets the next lead once it is closed.
type resigning struct{ *Store }

func (r resigning) Close() error {
	if r.usable() == nil {
		if err := r.Resign(context.Background()); err != nil {
			return err
		}
		r.failed.Store(nil)
	}
	return r.Store.Close()
}

func (p testPlace) Open() (store.Store, error) {
	s, err := Open(context.Background(), Options{URL: p.url})
	if err != nil {
		return nil, err
	}
	if _, err := s.TakeOver(context.Background(), store.Controller{Name: "a"}, long, store.Leader{}, 0); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return resigning{s}, nil
}

func (p testPlace) FromBackup(t *testing.T, path string) storetest.Place {
	dir := t.TempDir()
	if err := os.Link(path, dir+"/"+sqlitestore.DatabaseName); err != nil {
		t.Fatal(err)
	}
	from, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	url := newDatabase(t)
	to := leading(t, url, "copy")
	if _, err := to.CopyFrom(t.Context(), from.Store); err != nil {
		t.Fatal(err)
	}
	if err := (resigning{to}).Close(); err != nil {
		t.Fatal(err)
	}
	return testPlace{url}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place { return testPlace{newDatabase(t)} })
}
