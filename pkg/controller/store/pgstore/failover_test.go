package pgstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/pgserver/pgtest"
	"gangd/pkg/controller/store/storetest"
)

// rounds of what breaks servers. CI plays one restart and no promotion under load: each round starts two servers.
var rounds = flag.Int("pgstore.rounds", 0, "how often servers are restarted, and standbys promoted, under load")

// load commits jobs, one after the other, until it is ended, and knows which were acknowledged.
type load struct {
	t     *testing.T
	s     *Store
	mu    sync.Mutex
	acked []int64
	times []time.Time
	stop  chan struct{}
	done  sync.WaitGroup
}

func startLoad(t *testing.T, s *Store) *load {
	l := &load{t: t, s: s, stop: make(chan struct{})}
	l.done.Go(func() {
		for id := int64(1); ; id++ {
			select {
			case <-l.stop:
				return
			default:
			}
			if _, err := s.Commit(context.Background(), storetest.Submitted(storetest.NewJob(id, 1))); err != nil {
				t.Errorf("job %d: %v", id, err)
				return
			}
			l.mu.Lock()
			l.acked, l.times = append(l.acked, id), append(l.times, time.Now())
			l.mu.Unlock()
		}
	})
	t.Cleanup(l.end)
	return l
}

// more waits until so many more were acknowledged after a moment, and gives when the first was.
func (l *load) more(n int, after time.Time) time.Time {
	l.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		i, _ := slices.BinarySearchFunc(l.times, after, time.Time.Compare)
		left := l.times[i:]
		l.mu.Unlock()
		if len(left) >= n {
			return left[0]
		}
		if l.t.Failed() {
			break
		}
	}
	l.t.Fatalf("not %d commits after %v", n, after)
	return time.Time{}
}

func (l *load) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
		l.mu.Unlock()
		l.done.Wait()
		l.mu.Lock()
	}
}

// check compares what was acknowledged with what is there.
func (l *load) check(url string) {
	l.t.Helper()
	l.end()
	ids, lineage := jobs(l.t, url)
	if !slices.Equal(ids, l.acked) || lineage != uint64(len(l.acked)) {
		l.t.Errorf("%d jobs were acknowledged, %d are there, at commit %d", len(l.acked), len(ids), lineage)
	}
}

// crashSafe are settings under which the end of a process loses nothing; only the machine's would.
var crashSafe = []string{"fsync = off"}

// TestRestart: a server that is ended at once, again and again, under load.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := pgtest.Run(t, pgtest.Dir(t), "a", pgserver.Options{Settings: crashSafe})
	url := server.URL(pgserver.Database)
	l := startLoad(t, leading(t, url, "a"))
	for range max(*rounds, 1) {
		l.more(20, time.Now())
		if err := server.Stop(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		t.Logf("first commit %v after the server was back", l.more(20, back).Sub(back).Round(time.Millisecond))
	}
	l.check(url)
}

// TestPromotion: the primary is killed under load, and its synchronous standby promoted.
func TestPromotion(t *testing.T) {
	if *rounds == 0 {
		t.Skip("starts two servers a round: -pgstore.rounds=20")
	}
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint("pooled=", pooled), func(t *testing.T) {
			for range *rounds {
				t.Run("round", func(t *testing.T) { promote(t, pooled) })
			}
		})
	}
}

// pair is a primary and a standby of it.
func pair(t *testing.T) (a, b *pgserver.Server) {
	t.Helper()
	dir := pgtest.Dir(t)
	a = pgtest.Run(t, dir, "a", pgserver.Options{Settings: crashSafe})
	b = pgtest.Run(t, dir, "b", pgserver.Options{Of: a, Settings: crashSafe})
	return a, b
}

// waitStandby waits until the primary has a standby in a state of synchrony.
func waitStandby(t *testing.T, s *Store, state string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var n int
		err := s.read.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1", state).Scan(&n)
		if err == nil && n == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no standby became %s: %v", state, err)
		}
	}
}

func promote(t *testing.T, pooled bool) {
	a, b := pair(t)
	url := a.URL(pgserver.Database, b)
	var pooler *pgtest.Bouncer
	if pooled {
		pooler = pgtest.NewBouncer(t, a)
		url = pooler.URL(pgserver.Database)
	}
	s := leading(t, url, "a")
	if err := errors.Join(a.Set("synchronous_standby_names = '*'"), a.Signal(syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	waitStandby(t, s, "sync")
	l := startLoad(t, s)
	l.more(50, time.Now())
	if err := a.Stop(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := b.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	if pooled {
		pooler.To(t, b)
	}
	t.Logf("first commit %v after the promotion", l.more(20, promoted).Sub(promoted).Round(time.Millisecond))
	l.check(b.URL(pgserver.Database))
}

// TestReplicaThatLacksCommits: the leader whose commits are gone ends, and the next finds the number that
// HOLD compares with what nodes have seen.
func TestReplicaThatLacksCommits(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	url := a.URL(pgserver.Database, b)
	s := leading(t, url, "a")
	waitStandby(t, s, "async")
	all, err := s.Doctor(t.Context())
	if err != nil || len(all) != 2 || all[1] != "1 standbys follow asynchronously: promoting one loses what it lacks, and gangd will HOLD; set synchronous_standby_names" {
		t.Errorf("%q, %v", all, err)
	}
	for id := range int64(10) {
		job(t, s, id+1)
	}
	cfg, err := configOf(b.URL(pgserver.Database), "tests")
	if err != nil {
		t.Fatal(err)
	}
	standby := connect(cfg, 1)
	defer standby.Close()
	lineage := 0
	for deadline := time.Now().Add(time.Minute); lineage != 10; time.Sleep(20 * time.Millisecond) {
		if err := standby.QueryRowContext(t.Context(), "SELECT lineage FROM meta").Scan(&lineage); err != nil && time.Now().After(deadline) {
			t.Fatal(err) // at first it lacks the table
		}
	}
	if err := b.Stop(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	const lacks = 7
	for id := range int64(lacks) {
		job(t, s, id+11)
	}
	if err := errors.Join(a.Stop(syscall.SIGKILL), b.Restart(t.Context()), b.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), long); !errors.Is(err, store.ErrWentBack) {
		t.Errorf("the leader whose commits are gone keeps its seat: %v", err)
	}
	s.failed.Store(nil) // as if it had committed first
	if _, err := s.Commit(t.Context(), storetest.Submitted(storetest.NewJob(18, 1))); !errors.Is(err, store.ErrWentBack) {
		t.Errorf("the leader whose commits are gone: %v", err)
	}
	next := open(t, url)
	seen, err := next.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The replica's row is as old as its commits; whoever has heard of a higher term names it.
	if term, err := next.TakeOver(t.Context(), store.Controller{Name: "b"}, long, seen, 4); err != nil || term != 5 || next.Lineage() != 10 {
		t.Errorf("term %d at commit %d, %v", term, next.Lineage(), err)
	}
	job(t, next, 11)
}

// TestPooler: through a pooler in transaction mode, where each transaction may get another connection: all kinds
// of writes, two that follow, and a leader that is frozen amid a commit.
func TestPooler(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := pgtest.Run(t, pgtest.Dir(t), "a", pgserver.Options{Unsafe: true})
	pooler := pgtest.NewBouncer(t, server)
	url := pooler.URL(pgserver.Database)
	s := leading(t, url, "a")
	storetest.Fill(t, s)
	var wg sync.WaitGroup
	var known [2]store.Known
	for i := range known {
		f := open(t, url)
		wg.Go(func() {
			for known[i].Lineage < 100 && !t.Failed() {
				follow(t, f, &known[i])
			}
		})
	}
	for id := int64(3); s.Lineage() < 100; id++ {
		job(t, s, id)
	}
	wg.Wait()
	for i := range known {
		if n := len(known[i].Snapshot(time.Time{}).Jobs); n != 100 { // one was forgotten
			t.Errorf("%d knows %d jobs", i, n)
		}
	}
	if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
	if err := s.until(ctx, "to_timestamp($1)", 0); err != nil {
		t.Fatal(err)
	}
	next := leading(t, url, "b")
	if _, err := s.Commit(ctx, storetest.Submitted(storetest.NewJob(999, 1))); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the one before: %v", err)
	}
	job(t, next, 999)
}
