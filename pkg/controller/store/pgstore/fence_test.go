package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/pgserver/pgtest"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

func job(t testing.TB, s store.Store, id int64) {
	t.Helper()
	if _, err := s.Commit(context.Background(), storetest.Submitted(storetest.NewJob(id, 1))); err != nil {
		t.Fatal(err)
	}
}

// jobs are the ids of the jobs in a database, by another connection.
func jobs(t testing.TB, url string) (ids []int64, lineage uint64) {
	t.Helper()
	s := open(t, url)
	defer s.Close()
	var k store.Known
	if _, err := s.Follow(context.Background(), &k, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, j := range k.Snapshot(time.Time{}).Jobs {
		ids = append(ids, j.ID)
	}
	return ids, k.Lineage
}

// through is a proxy to the common server, and the connection string through it.
func through(t *testing.T, url string) (*pgtest.Proxy, string) {
	t.Helper()
	p := pgtest.NewProxy(t, pgtest.Dir(t), "p", common)
	return p, p.URL(common, pgserver.Database) + "&search_path=" + url[strings.LastIndexByte(url, '=')+1:]
}

// TestOneLeads: who may take over, and that the one before can do nothing more.
func TestOneLeads(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	a, b := open(t, url), open(t, url)
	if l, err := a.Leader(ctx); err != nil || l.Term != 0 || l.Left > 0 {
		t.Errorf("at first %+v leads, %v", l, err)
	}
	if _, err := a.Commit(ctx, storetest.Submitted(storetest.NewJob(1, 1))); !errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrFailed) {
		t.Errorf("a commit of one that follows: %v", err)
	}
	who := store.Controller{Name: "a", Address: []string{"h:1", "[::1]:2"}}
	if term, err := a.TakeOver(ctx, who, long, store.Leader{}, 0); err != nil || term != 1 {
		t.Fatalf("term %d, %v", term, err)
	}
	l, err := b.Leader(ctx)
	if err != nil || l.Term != 1 || l.Name != "a" || len(l.Address) != 2 || l.Left <= 0 || l.Left > long {
		t.Errorf("%+v leads, %v", l, err)
	}
	if _, err := b.TakeOver(ctx, store.Controller{Name: "b"}, long, store.Leader{}, 0); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), `controller "a" leads, for `) {
		t.Errorf("a second leader: %v", err)
	}
	job(t, a, 1)
	if err := a.Renew(ctx, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	job(t, a, 2) // its ttl is over, and nobody has taken over
	var term uint64
	for deadline := time.Now().Add(long); term == 0; {
		if term, err = b.TakeOver(ctx, store.Controller{Name: "b"}, long, store.Leader{}, 6); errors.Is(err, store.ErrLocked) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if term != 7 || b.Lineage() != 2 {
		t.Errorf("term %d at commit %d", term, b.Lineage())
	}
	if err := a.Renew(ctx, long); !errors.Is(err, store.ErrFenced) || !errors.Is(err, store.ErrFailed) {
		t.Errorf("a renewal by the one before: %v", err)
	}
	if _, err := a.Commit(ctx, storetest.Submitted(storetest.NewJob(3, 1))); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a commit by the one before: %v", err)
	}
	job(t, b, 3)
	if err := b.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(ctx, storetest.Submitted(storetest.NewJob(4, 1))); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a commit after resigning: %v", err)
	}
	c := leading(t, url, "c")
	job(t, c, 4)
	if ids, lineage := jobs(t, url); len(ids) != 4 || lineage != 4 {
		t.Errorf("jobs %v at commit %d", ids, lineage)
	}
}

// TestStaleWrites: each kind of write of one that was overtaken without knowing it changes nothing.
func TestStaleWrites(t *testing.T) {
	ctx := context.Background()
	for name, write := range map[string]func(s *Store) error{
		"commit": func(s *Store) error {
			_, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1)))
			return err
		},
		"checkpoint": func(s *Store) error {
			_, _, err := s.PutCheckpoint(ctx, store.SetKey{Step: store.OfRanks}, 0, "", strings.NewReader("x"))
			return err
		},
		"release": func(s *Store) error { return s.PutRelease(ctx, store.Release{Name: "x"}) },
		"forget":  func(s *Store) error { _, err := s.Forget(ctx, []int64{1}); return err },
		"run":     func(s *Store) error { _, err := s.Begin(ctx, "x"); return err },
		"advance": func(s *Store) error { return s.Advance(ctx, 99, 99) },
		"renew":   func(s *Store) error { return s.Renew(ctx, long) },
		"resign":  func(s *Store) error { return s.Resign(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			a := leading(t, url, "a")
			job(t, a, 1)
			if err := a.until(ctx, "to_timestamp($1)", 0); err != nil {
				t.Fatal(err)
			}
			b := leading(t, url, "b")
			if _, err := a.Leader(ctx); err != nil { // over new connections: b has ended those it had
				t.Fatal(err)
			}
			before := dump(t, b)
			if err := write(a); !errors.Is(err, store.ErrFenced) {
				t.Errorf("err %v", err)
			}
			if after := dump(t, b); after != before {
				t.Errorf("it changed the store from\n%s\nto\n%s", before, after)
			}
			if err := write(a); !errors.Is(err, store.ErrFenced) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// dump is all that a stale leader could change.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{"meta", "beside", "leader", "job", "spec", "event", "checkpoint", "checkpoint_piece", "release", "gone", "run", "commit_log"} {
		var text string
		if err := s.read.QueryRowContext(t.Context(), "SELECT coalesce(string_agg(x::text, ' ' ORDER BY x::text), '') FROM "+table+" x").Scan(&text); err != nil {
			t.Fatal(err)
		}
		all.WriteString(table + ": " + text + "\n")
	}
	return all.String()
}

// TestFrozenLeader: one that stood still amid a commit, with all of it at the server but the word that ends it,
// holds nobody up and changes nothing when it goes on.
func TestFrozenLeader(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	p, slow := through(t, url)
	a := leading(t, slow, "a")
	job(t, a, 1)
	frozen := make(chan struct{})
	p.On("commit_log", func(request []byte) ([]byte, pgtest.Then) {
		close(frozen)
		return request[:len(request)-5], pgtest.Hold // 5: Sync, which commits
	})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, err := a.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1))); !errors.Is(err, store.ErrFenced) {
			t.Errorf("the frozen commit: %v", err)
		}
	})
	<-frozen
	b := open(t, url)
	if _, err := b.write.ExecContext(ctx, "UPDATE leader SET until = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := b.TakeOver(ctx, store.Controller{Name: "b"}, long, store.Leader{}, 0); err != nil {
		t.Fatal(err)
	}
	t.Logf("took over in %v", time.Since(start))
	other := storetest.NewJob(2, 1)
	other.Name = "of b"
	if _, err := b.Commit(ctx, storetest.Submitted(other)); err != nil {
		t.Fatal(err)
	}
	p.Release()
	wg.Wait()
	if j, err := b.Job(ctx, 2); err != nil || j.Name != "of b" {
		t.Errorf("job 2: %+v, %v", j, err)
	}
	if _, lineage := jobs(t, url); lineage != 2 {
		t.Errorf("commit %d", lineage)
	}
}

// TestLostAnswers: a commit whose connection breaks is made once, whether it had reached the server or not.
func TestLostAnswers(t *testing.T) {
	ctx := context.Background()
	for name, strike := range map[string]func(request []byte) ([]byte, pgtest.Then){
		"cut before it":      func([]byte) ([]byte, pgtest.Then) { return nil, pgtest.Cut },
		"cut amid it":        func(r []byte) ([]byte, pgtest.Then) { return r[:len(r)/2], pgtest.Cut },
		"cut before Sync":    func(r []byte) ([]byte, pgtest.Then) { return r[:len(r)-5], pgtest.Cut },
		"the answer is lost": func(r []byte) ([]byte, pgtest.Then) { return r, pgtest.Mute },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			p, broken := through(t, url)
			a := leading(t, broken, "a")
			job(t, a, 1)
			p.On("commit_log", strike)
			ch := storetest.Submitted(storetest.NewJob(2, 1))
			if n, err := a.Commit(ctx, ch); err != nil || n != 2 {
				t.Errorf("commit %d, %v", n, err)
			}
			p.On("checkpoint_piece", strike)
			if _, _, err := a.PutCheckpoint(ctx, store.SetKey{Step: store.OfRanks}, 0, "", strings.NewReader("once")); err != nil {
				t.Error(err)
			}
			p.On("UPDATE beside SET lineage", strike)
			set, _, err := a.PutCheckpoint(ctx, store.SetKey{Step: store.OfRanks}, 1, "", strings.NewReader("once"))
			if err != nil || set != (store.CheckpointSet{Ranks: 2, Bytes: 8}) {
				t.Errorf("set %+v, %v", set, err)
			}
			job(t, a, 3)
			if ids, lineage := jobs(t, url); len(ids) != 3 || lineage != 3 {
				t.Errorf("jobs %v at commit %d", ids, lineage)
			}
			var puts int
			if err := a.read.QueryRowContext(ctx, "SELECT count(*) FROM checkpoint").Scan(&puts); err != nil || puts != 2 {
				t.Errorf("%d checkpoints, %v", puts, err)
			}
			if found, err := a.Verify(ctx); err != nil || len(found) > 0 {
				t.Errorf("%q, %v", found, err)
			}
		})
	}
}

// TestSilentConnections: those that there are die without a sign. A commit does not wait for them for as long as a large one
// may take, and a renewal is made over a new one while another waits.
func TestSilentConnections(t *testing.T) {
	url := newDatabase(t)
	p, through := through(t, url)
	a := leading(t, through, "a")
	job(t, a, 1)
	hush := func() {
		var all [writers]*sql.Conn
		for i := range all {
			var err error
			if all[i], err = a.write.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range all {
			if err := c.Close(); err != nil { // idle now
				t.Fatal(err)
			}
		}
		p.Hush(0)
	}
	hush()
	began := time.Now()
	job(t, a, 2)
	if took := time.Since(began); took >= longestTry {
		t.Errorf("the commit took %s", took)
	}
	hush()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var first sync.WaitGroup
	first.Go(func() { _ = a.Renew(ctx, long) })
	for a.renews.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	began = time.Now()
	if err := a.Renew(ctx, long); err != nil {
		t.Errorf("a second try: %v after %s", err, time.Since(began))
	}
	cancel()
	first.Wait()
	// One that is ended while it connects says nothing of the database.
	dropIdle(a.write, writers)
	p.Hush(1)
	made := p.Made()
	ctx, cancel = context.WithCancel(t.Context())
	first.Go(func() { _ = a.Renew(ctx, long) })
	for p.Made() == made {
		time.Sleep(time.Millisecond)
	}
	cancel()
	first.Wait()
	if since, why := a.Away(); !since.IsZero() {
		t.Errorf("away since %s: %v", since, why)
	}
	if ids, lineage := jobs(t, url); len(ids) != 2 || lineage != 2 {
		t.Errorf("jobs %v at commit %d", ids, lineage)
	}
}

// TestAway: commits wait for a database that is cut off, readers are told, and Away says since when.
func TestAway(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	p, cut := through(t, url)
	a := leading(t, cut, "a")
	job(t, a, 1)
	if since, why := a.Away(); !since.IsZero() || why != nil {
		t.Errorf("away since %v: %v", since, why)
	}
	p.Refuse()
	began := time.Now()
	if _, err := a.Job(ctx, 1); !errors.Is(err, store.ErrAway) {
		t.Errorf("a read: %v", err)
	}
	if err := a.Renew(ctx, long); !errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrFailed) {
		t.Errorf("a renewal: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := a.Commit(ctx, storetest.Submitted(storetest.NewJob(2, 1)))
		done <- err
	}()
	// It asks again and again, and pauses longer each time, up to 200 ms.
	const tries, pauses = 10, (20 + 40 + 80 + 160 + 4*200) * time.Millisecond
	waits, turned := time.Now(), p.Turned()
	for p.Turned() < turned+2*tries { // pgx makes two connections a try
		select {
		case err := <-done:
			t.Fatalf("a commit did not wait: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if took := time.Since(waits); took < pauses {
		t.Errorf("%d tries within %s", tries, took)
	}
	if since, why := a.Away(); since.Before(began) || since.After(time.Now()) || why == nil {
		t.Errorf("away since %v: %v", since, why)
	}
	p.Restore()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if since, why := a.Away(); !since.IsZero() || why != nil {
		t.Errorf("back, and away since %v: %v", since, why)
	}
	p.Refuse()
	go func() {
		_, err := a.Commit(ctx, storetest.Submitted(storetest.NewJob(3, 1)))
		done <- err
	}()
	for since := (time.Time{}); since.IsZero(); since, _ = a.Away() { // until it waits
		time.Sleep(time.Millisecond)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, store.ErrClosed) {
		t.Errorf("a commit of a closed store: %v", err)
	}
}

// TestWentBack: a leader whose database lacks commits that it made ends; the next finds the number
// that HOLD is about.
func TestWentBack(t *testing.T) {
	ctx := context.Background()
	url := newDatabase(t)
	a := leading(t, url, "a")
	for id := range int64(5) {
		job(t, a, id+1)
	}
	if _, err := a.write.ExecContext(ctx, "UPDATE meta SET lineage = 3; DELETE FROM job WHERE id > 3; DELETE FROM commit_log WHERE lineage > 3"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Commit(ctx, storetest.Submitted(storetest.NewJob(6, 1)))
	if !errors.Is(err, store.ErrWentBack) || !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), "meta is at 3, this process has written 5") {
		t.Errorf("err %v", err)
	}
	if err := a.until(ctx, "to_timestamp($1)", 0); !errors.Is(err, store.ErrWentBack) {
		t.Errorf("a store that failed: %v", err)
	}
	b := open(t, url)
	if _, err := b.write.ExecContext(ctx, "UPDATE leader SET until = now()"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.TakeOver(ctx, store.Controller{Name: "b"}, long, store.Leader{}, 0); err != nil || b.Lineage() != 3 {
		t.Errorf("lineage %d, %v", b.Lineage(), err)
	}
}

// TestOddTexts: what a person or a rank can put into a name that PostgreSQL's texts can't hold.
func TestOddTexts(t *testing.T) {
	ctx := context.Background()
	s := leading(t, newDatabase(t), "a")
	j := storetest.NewJob(1, 1)
	j.Name, j.User, j.Held = "a\x00b\xff", "u\x00", "\x00"
	if _, err := s.Commit(ctx, storetest.Submitted(j)); err != nil {
		t.Fatal(err)
	}
	if err := s.PutRelease(ctx, store.Release{Name: "a\x00\xff", Keys: map[int]string{0: "\x00"}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutCheckpoint(ctx, store.SetKey{Step: store.OfRanks}, 0, "k\x00\xff", io.LimitReader(strings.NewReader("x"), 1)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Job(ctx, 1); err != nil || !strings.HasPrefix(got.Name, "a\x00b") {
		t.Errorf("%+v, %v", got, err)
	}
	if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
}

// TestSameRowTwice: of a key that is twice in a batch the last counts.
func TestSameRowTwice(t *testing.T) {
	ctx := context.Background()
	s := leading(t, newDatabase(t), "a")
	one, two := storetest.NewJob(1, 2), storetest.NewJob(1, 2)
	two.Name = "later"
	ch := storetest.Submitted(one, two)
	ch.Nodes = []*gang.Node{{Name: "n1"}, {Name: "n1", Reason: "later"}}
	if _, err := s.Commit(ctx, ch); err != nil {
		t.Fatal(err)
	}
	saved, err := s.Load(ctx, time.Time{})
	if err != nil || len(saved.Jobs) != 1 || saved.Jobs[0].Name != "later" || len(saved.Nodes) != 1 || saved.Nodes[0].Reason != "later" {
		t.Errorf("%+v, %v", saved, err)
	}
}
