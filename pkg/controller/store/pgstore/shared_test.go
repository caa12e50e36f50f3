package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

func follow(t *testing.T, s *Store, k *store.Known) (pieces int) {
	t.Helper()
	for {
		more, err := s.Follow(context.Background(), k, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if pieces++; !more {
			return pieces
		}
	}
}

// TestFollow: in pieces, over take-overs and what has no place in the log. That it is what Load gives
// after any batch is storetest's.
func TestFollow(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	a, b := leading(t, url, "a"), open(t, url)
	var k store.Known
	ids := func() string {
		var all []string
		for _, j := range k.Snapshot(time.Time{}).Jobs {
			all = append(all, fmt.Sprint(j.ID))
		}
		return strings.Join(all, " ")
	}
	if follow(t, b, &k); ids() != "" || k.Lineage != 0 || k.NextID != 1 {
		t.Errorf("of an empty store: %+v", k)
	}
	job(t, a, 1)
	if follow(t, b, &k); ids() != "1" || k.Lineage != 1 || k.Term != 1 || k.NextID != 2 {
		t.Errorf("after one commit: %+v", k)
	}
	first := k.Jobs[1]
	for n := range 2*followPiece + 1 {
		if _, err := a.Commit(ctx, &gang.Changes{NextID: int64(n + 3), Claims: fmt.Append(nil, n)}); err != nil {
			t.Fatal(err)
		}
	}
	if pieces := follow(t, b, &k); pieces != 3 || k.Jobs[1] != first || k.NextID != 2*followPiece+3 || string(k.Claims) != fmt.Sprint(2*followPiece) {
		t.Errorf("%d pieces, %+v", pieces, k)
	}
	// What is in memory of a job that changes has the spec that it had.
	changed := storetest.NewJob(1, 1)
	changed.Name = "other"
	if _, err := a.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{changed}}); err != nil {
		t.Fatal(err)
	}
	if follow(t, b, &k); k.Jobs[1].Name != "other" || k.Jobs[1].Spec != first.Spec || first.Name != "train" {
		t.Errorf("changed: %+v", k.Jobs[1])
	}
	if err := a.Advance(ctx, 5000, 9000); err != nil {
		t.Fatal(err)
	}
	if follow(t, b, &k); k.Lineage != 5000 || k.NextID != 9000 || ids() != "1" {
		t.Errorf("advanced: %+v", k)
	}
	// Another history under the same numbers, as of a copy that was put in place.
	job(t, a, 9000)
	follow(t, b, &k)
	if _, err := a.write.ExecContext(ctx, "UPDATE commit_log SET term = 7 WHERE lineage = 5001; DELETE FROM job WHERE id = 9000; UPDATE meta SET next_id = 9001"); err != nil {
		t.Fatal(err)
	}
	job(t, a, 9001)
	if follow(t, b, &k); ids() != "1 9001" || k.Lineage != 5002 || k.Term != 1 {
		t.Errorf("of another history: %v, %+v", ids(), k)
	}
	// Its place is not kept any more.
	job(t, a, 9002)
	job(t, a, 9003)
	if _, err := a.write.ExecContext(ctx, "DELETE FROM commit_log WHERE lineage <= 5003"); err != nil {
		t.Fatal(err)
	}
	if follow(t, b, &k); ids() != "1 9001 9002 9003" || k.Lineage != 5004 {
		t.Errorf("from too far: %v, %+v", ids(), k)
	}
}

// TestShare: what controllers share is replaced by whoever has seen the newest.
func TestShare(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	a, b := open(t, url), open(t, url)
	c, err := a.Controllers(ctx)
	if err != nil || c.Version != 0 || len(c.All) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	c = store.Controllers{Version: 1, All: []store.Controller{{Name: "a", Address: []string{"x:1"}}, {Name: "b"}}}
	if err := a.SetControllers(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := b.SetControllers(ctx, store.Controllers{Version: 1}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the same version again: %v", err)
	}
	if got, err := b.Controllers(ctx); err != nil || got.Version != 1 || len(got.All) != 2 || got.All[0].Address[0] != "x:1" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := a.PutSealed(ctx, "ca", nil, []byte{0, 1, 255}); err != nil {
		t.Fatal(err)
	}
	for i, err := range []error{b.PutSealed(ctx, "ca", nil, []byte("x")), b.PutSealed(ctx, "ca", []byte("y"), []byte("x")), b.PutSealed(ctx, "none", []byte("y"), []byte("x"))} {
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("put %d: %v", i, err)
		}
	}
	if err := b.PutSealed(ctx, "ca", []byte{0, 1, 255}, []byte("new")); err != nil {
		t.Error(err)
	}
	if all, err := a.Sealed(ctx); err != nil || len(all) != 1 || string(all["ca"]) != "new" {
		t.Errorf("%q, %v", all, err)
	}
}

// TestCopies: SQLite to PostgreSQL and back, with every table in use; what is not empty is refused.
func TestCopies(t *testing.T) {
	ctx := context.Background()
	lite := func() *sqlitestore.Store {
		s, err := sqlitestore.Open(ctx, t.TempDir(), sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	from := lite()
	storetest.Fill(t, from)
	url := newDatabase(t)
	middle := leading(t, url, "copy")
	var done, all, calls int64
	middle.Copying = func(d, a int64) { done, all, calls = d, a, calls+1 }
	copied, err := middle.CopyFrom(ctx, from.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range copied {
		if c.Rows == 0 {
			t.Errorf("table %s was empty", c.Table)
		}
	}
	if done != all || calls != all || all == 0 {
		t.Errorf("%d of %d rows were told of, in %d calls", done, all, calls)
	}
	if _, err := middle.CopyFrom(ctx, from.Store); err == nil || !strings.Contains(err.Error(), "the store is not empty: it has commit ") {
		t.Errorf("a copy over a copy: %v", err)
	}
	if err := (resigning{middle}).Close(); err != nil {
		t.Fatal(err)
	}
	again := leading(t, url, "again")
	if again.Lineage() != from.Lineage() {
		t.Errorf("commit %d, want %d", again.Lineage(), from.Lineage())
	}
	if found, err := again.Verify(ctx); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
	var k store.Known // zero, at commit 0
	b := open(t, url)
	if follow(t, b, &k); k.Lineage != from.Lineage() || len(k.Jobs) == 0 {
		t.Errorf("one that follows knows %+v", k)
	}
	to := lite()
	back, err := to.CopyFrom(ctx, again.Store)
	if err != nil || fmt.Sprint(back) != fmt.Sprint(copied) {
		t.Errorf("back %v, there %v, %v", back, copied, err)
	}
	// A counter alone makes a store one that was used.
	other := lite()
	if err := other.Advance(ctx, 0, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := other.CopyFrom(ctx, from.Store); err == nil {
		t.Error("copied over a store that has given out ids")
	}
}

// TestCopyByName: as gangd store copy does it, between a state directory and a database; a store in use
// is refused, and the seat is given back.
func TestCopyByName(t *testing.T) {
	ctx := context.Background()
	dir, url := t.TempDir(), newDatabase(t)
	from, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Fill(t, from)
	if _, err := Copy(ctx, dir, url, nil); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a state directory in use: %v", err)
	}
	lineage := from.Lineage()
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	a := leading(t, url, "a")
	if _, err := Copy(ctx, dir, url, nil); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a database in use: %v", err)
	}
	if err := a.PutSealed(ctx, "ca", nil, []byte{0, 255}); err != nil {
		t.Fatal(err)
	}
	if err := a.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	other := newDatabase(t)
	for _, c := range [][2]string{{dir, url}, {url, t.TempDir()}, {url, other}} {
		copied, err := Copy(ctx, c[0], c[1], nil)
		if err != nil || len(copied) != 19 {
			t.Fatalf("%v, %v", copied, err)
		}
	}
	for _, at := range []string{url, other} {
		b := leading(t, at, "b")
		if got := b.Lineage(); got != lineage {
			t.Errorf("commit %d, want %d", got, lineage)
		}
		if got, err := b.Sealed(ctx); err != nil || string(got["ca"]) != "\x00\xff" {
			t.Errorf("sealed: %q, %v", got, err)
		}
	}
	if _, err := Copy(ctx, t.TempDir(), url, nil); err == nil {
		t.Error("a directory without a store was copied")
	}
}

// TestDoctor: what is wrong with a server is said; all of it, as this one is for tests.
func TestDoctor(t *testing.T) {
	s := open(t, newDatabase(t))
	all, err := s.Doctor(context.Background())
	want := []string{
		"fsync is off: a power cut can destroy the database; set fsync = on",
		"full_page_writes is off: a power cut can destroy the database; set full_page_writes = on",
		"synchronous_commit is off: jobs that were acknowledged are lost when the server dies; set synchronous_commit = on",
	}
	if err != nil || strings.Join(all, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, %v", all, err)
	}
}

// TestRefusedDatabases: what is not gangd's, or a newer gangd's, is left alone; which server it is is said.
func TestRefusedDatabases(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	cfg, err := configOf(url, "tests")
	if err != nil {
		t.Fatal(err)
	}
	db := connect(cfg, 1)
	defer db.Close()
	exec := func(text string) {
		t.Helper()
		if _, err := db.ExecContext(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(url, text string) error {
		t.Helper()
		s, err := Open(ctx, Options{URL: url})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("err %v, want %q", err, text)
		}
		return err
	}
	exec("CREATE TABLE people (n int)")
	refused(url, "the database holds 1 tables of another program: gangd needs one of its own")
	exec("DROP TABLE people")
	open(t, url)
	exec("UPDATE gangd_schema SET version = 99")
	if err := refused(url, "the database has schema 99, this gangd knows schemas up to "); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("err %v", err)
	}
	if err := refused("postgres://gangd:geheim@/none?host=/nowhere", "database away"); strings.Contains(err.Error(), "geheim") {
		t.Errorf("the password is said: %v", err)
	}
	if err := refused("postgres://gangd:geheim@h:port/x", "cannot parse"); strings.Contains(err.Error(), "geheim") {
		t.Errorf("the password is said: %v", err)
	}
	if _, err := Open(ctx, Options{URL: strings.Replace(url, "/gangd?", "/nothere?", 1)}); err == nil || errors.Is(err, store.ErrAway) {
		t.Errorf("a database that is not there: %v", err)
	}
}
