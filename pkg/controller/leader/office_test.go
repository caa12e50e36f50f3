package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
)

// table is the part of a shared store that an office knows.
type table struct {
	store.Shared
	row    store.Leader
	list   store.Controllers
	away   bool
	taken  store.Leader // as who took over had seen it
	fenced bool
	failed bool
	tries  int // to resign
}

func (s *table) Leader(context.Context) (store.Leader, error) {
	if s.away {
		return store.Leader{}, store.ErrAway
	}
	return s.row, nil
}

func (s *table) Controllers(context.Context) (store.Controllers, error) { return s.list, nil }

func (s *table) SetControllers(_ context.Context, c store.Controllers) error {
	if c.Version != s.list.Version+1 {
		return store.ErrConflict
	}
	s.list = c
	return nil
}

func (s *table) TakeOver(_ context.Context, who store.Controller, _ time.Duration, seen store.Leader, least uint64) (uint64, error) {
	if s.away {
		return 0, store.ErrAway
	}
	s.taken = seen
	s.row = store.Leader{Controller: who, Term: max(s.row.Term, least) + 1, Mark: s.row.Mark + "+"}
	return s.row.Term, nil
}

func (s *table) Renew(context.Context, time.Duration) error {
	switch {
	case s.fenced:
		return store.ErrFenced
	case s.failed:
		return fmt.Errorf("%w: %w", store.ErrFailed, store.ErrWentBack)
	case s.away:
		return store.ErrAway
	}
	return nil
}

func (s *table) Resign(context.Context) error {
	s.tries++
	if s.tries < 3 {
		return store.ErrAway
	}
	return nil
}

func newOffice(s *table, name string) (*Office, *time.Duration) {
	now := time.Hour
	return New(Options{Store: s, Me: store.Controller{Name: name, Address: []string{name + ":1"}}, Log: slog.New(slog.DiscardHandler), Lease: time.Minute,
		Now: func() time.Duration { return now }}), &now
}

func followed(context.Context) error { return nil }

func TestFirstControllerLeads(t *testing.T) {
	s := &table{row: store.Leader{Free: true, Mark: "0"}}
	f, now := newOffice(s, "a")
	if err := f.Enlist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := f.Word(); w == nil || w.Leads || w.Leader != nil {
		t.Errorf("who waits says %+v", w)
	}
	if err := f.Campaign(t.Context(), followed); err != nil {
		t.Fatal(err)
	}
	name, term := f.Seat()
	if !f.Leads() || name != "a" || term < uint64(time.Now().Add(-time.Hour).UnixMilli()) || s.taken.Mark != "0" {
		t.Errorf("leads %t in term %d, having seen %+v", f.Leads(), term, s.taken)
	}
	if w := f.Word(); w == nil || !w.Leads || w.Leader.Name != "a" {
		t.Errorf("who leads says %+v", w)
	}
	*now += TTL
	if f.Leads() || f.Word() != nil || f.Leader() != nil && f.Leader().Name == "a" && f.Leads() {
		t.Errorf("a seat that was not renewed: leads %t, says %+v", f.Leads(), f.Word())
	}
	if _, err := f.renew(t.Context(), nil); !errors.Is(err, ErrLost) {
		t.Errorf("a seat that has run out is renewed: %v", err)
	}
}

func TestJoiningControllerWaits(t *testing.T) {
	s := &table{row: store.Leader{Free: true, Mark: "0"}, list: store.Controllers{Version: 1, All: []store.Controller{{Name: "a", Address: []string{"a:1"}}}}}
	a, now := newOffice(s, "a")
	if err := a.Campaign(t.Context(), followed); err != nil {
		t.Fatal(err)
	}
	b, _ := newOffice(s, "b")
	if err := b.Enlist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.list.All[1].Joining || s.list.Version != 2 {
		t.Fatalf("the list is %+v", s.list)
	}
	if _, may, err := b.look(t.Context()); may || err != nil {
		t.Errorf("who joins may lead: %t, %v", may, err)
	}
	known := false
	nodes := func() ([]string, bool) {
		if !known {
			return nil, false
		}
		return []string{"n1"}, true
	}
	if _, err := a.renew(t.Context(), nodes); err != nil || !s.list.All[1].Joining {
		t.Errorf("admitted before it is known which nodes there are: %v, %+v", err, s.list)
	}
	known = true
	*now += time.Second
	if _, err := a.renew(t.Context(), nodes); err != nil || !s.list.All[1].Joining {
		t.Fatalf("let in before n1 knows of it: %v", err)
	}
	if got := a.Lacking(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("it waits for %v", got)
	}
	a.Listed("n1", 2)
	if _, err := a.renew(t.Context(), nodes); err != nil || s.list.All[1].Joining || s.list.Version != 3 {
		t.Errorf("not let in: %+v, %v", s.list, err)
	}
	if _, may, _ := b.look(t.Context()); !may {
		t.Error("who was let in may not lead")
	}
}

// Who led is dead. One that stands by does not say that it leads for longer than its seat lasts, and one that joins says why it does
// not lead itself.
func TestDeadLeaderDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &table{row: store.Leader{Controller: store.Controller{Name: "a"}, Term: 3, Mark: "1"}, list: store.Controllers{Version: 2,
			All: []store.Controller{{Name: "a"}, {Name: "b", Joining: true}}}}
		b, _ := newOffice(s, "b")
		start := time.Now()
		b.Now = func() time.Duration { return time.Since(start) }
		ctx, end := context.WithCancel(t.Context())
		var campaign sync.WaitGroup
		campaign.Go(func() { _ = b.Campaign(ctx, followed) })
		time.Sleep(TTL - Look)
		if l := b.Leader(); l == nil || l.Name != "a" || b.Barred() != nil {
			t.Errorf("within its time %+v leads, and b is barred behind %+v", l, b.Barred())
		}
		time.Sleep(2 * Look)
		if l := b.Leader(); l != nil {
			t.Errorf("it is dead, and b says that %s leads", l.Name)
		}
		if l := b.Barred(); l == nil || l.Name != "a" {
			t.Errorf("b is barred behind %+v", l)
		}
		if w := b.Word(); w == nil || w.Leads || w.Leader != nil {
			t.Errorf("its word is %+v", w)
		}
		end()
		campaign.Wait()
	})
}

// One that is taken off the list neither leads nor puts itself there again, before it was let in anew.
func TestRemovedController(t *testing.T) {
	s := &table{row: store.Leader{Free: true, Mark: "0"}, list: store.Controllers{Version: 1, All: []store.Controller{{Name: "a", Address: []string{"a:1"}}, {Name: "b", Address: []string{"b:1"}}}}}
	a, _ := newOffice(s, "a")
	if err := a.Campaign(t.Context(), followed); err != nil {
		t.Fatal(err)
	}
	refused := func(err error, code api.Code, want string) {
		t.Helper()
		if api.CodeOf(err) != code || err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	refused(a.Remove(t.Context(), "c"), api.CodeNotFound, `there is no controller "c"; there are: a, b`)
	refused(a.Remove(t.Context(), "a"), api.CodeConflict, "controller a leads, and can't be taken off the list; end it first, so that another leads: systemctl stop gangd")
	refused(a.Admit(t.Context(), "b"), api.CodeConflict, "there is a controller b already; set another name in gangd.toml; or where this host is to take its place: gangd controller remove b")
	if err := a.Admit(t.Context(), "c"); err != nil || s.list.Version != 1 {
		t.Errorf("a new name: %v, list %+v", err, s.list)
	}
	if err := a.Remove(t.Context(), "b"); err != nil || s.list.Version != 2 {
		t.Fatalf("%v, list %+v", err, s.list)
	}
	if _, err := a.renew(t.Context(), func() ([]string, bool) { return nil, true }); err != nil {
		t.Fatal(err)
	}
	if l := a.Controllers(); l.Version != 2 || len(l.List) != 1 || l.List[0].Name != "a" {
		t.Errorf("nodes are told %+v", l)
	}
	refused(a.Remove(t.Context(), "b"), api.CodeNotFound, `there is no controller "b"; there are: a`)
	b, _ := newOffice(s, "b")
	if err := b.Enlist(t.Context()); !errors.Is(err, ErrRemoved) {
		t.Errorf("it puts itself on the list again: %v", err)
	}
	if err := b.Campaign(t.Context(), followed); !errors.Is(err, ErrRemoved) {
		t.Errorf("it stands by all the same: %v", err)
	}
	if err := a.Admit(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := b.Enlist(t.Context()); err != nil || !s.list.Named("b").Joining {
		t.Errorf("let in anew: %v, %+v", err, s.list)
	}
}

func TestSeatIsLost(t *testing.T) {
	s := &table{row: store.Leader{Free: true, Mark: "0"}}
	f, now := newOffice(s, "a")
	if _, may, err := f.look(t.Context()); may || err != nil {
		t.Fatalf("who is not on the list may lead: %t, %v", may, err)
	}
	if err := f.Enlist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Campaign(t.Context(), followed); err != nil {
		t.Fatal(err)
	}
	s.away = true
	*now += time.Second
	if _, err := f.renew(t.Context(), nil); err != nil || !f.Leads() {
		t.Errorf("a database that is away for a moment ends a leader: %v", err)
	}
	s.away, s.fenced = false, true
	if err := f.Hold(t.Context(), nil); !errors.Is(err, ErrLost) || f.Leads() || f.Word() != nil {
		t.Errorf("replaced: %v, leads %t", err, f.Leads())
	}
	s.fenced, s.failed = false, true
	w, _ := newOffice(s, "a")
	w.seat.Took(9, w.Now())
	if err := w.Hold(t.Context(), nil); !errors.Is(err, store.ErrWentBack) || w.Leads() {
		t.Errorf("a store that has failed: %v, leads %t", err, w.Leads())
	}
	g, _ := newOffice(&table{away: true}, "b")
	g.seat.Try()
	if _, err := g.take(t.Context(), store.Leader{}); !errors.Is(err, store.ErrAway) || g.Word() != nil {
		t.Errorf("who does not know whether it has the seat goes on: %v", err)
	}
}

// The database comes back under one that ends: the seat is given up then, or the next would wait for its time.
func TestSeatIsGivenUpWhenTheDatabaseIsBack(t *testing.T) {
	s := &table{row: store.Leader{Free: true, Mark: "0"}}
	f, _ := newOffice(s, "a")
	if err := f.Resign(t.Context()); err != nil || s.tries != 3 {
		t.Errorf("given up at try %d: %v", s.tries, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if s.tries = 0; !errors.Is(f.Resign(gone), store.ErrAway) || s.tries != 1 {
		t.Errorf("%d tries by one that has no time", s.tries)
	}
}

// losses are what becomes of what is asked next.
type losses struct {
	list    bool // an answer with the list is lost, and only then
	renewal int  // those of so many tries to renew are
	fails   int  // so many tries fail at once
}

// lossy is a table whose answers get lost.
type lossy struct {
	*table
	mu    sync.Mutex
	next  losses
	asked []time.Time // to renew
}

func never(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", store.ErrAway, ctx.Err())
}

func (s *lossy) Renew(ctx context.Context, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Now())
	switch {
	case s.next.list:
	case s.next.fails > 0:
		s.next.fails--
		return store.ErrAway
	case s.next.renewal > 0:
		s.next.renewal--
		s.mu.Unlock()
		defer s.mu.Lock()
		return never(ctx)
	}
	return nil
}

func (s *lossy) Controllers(ctx context.Context) (store.Controllers, error) {
	s.mu.Lock()
	lost := s.next.list
	s.next.list = false
	s.mu.Unlock()
	if lost {
		return store.Controllers{}, never(ctx)
	}
	return s.list, nil
}

// lose gives when it was asked since it was called last.
func (s *lossy) lose(next losses) (asked []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
	asked, s.asked = s.asked, nil
	return asked
}

// An answer of the database that never comes costs no seat: a renewal is tried again beside it, long before the trust ends,
// and who looks at the list does not wait for as long as that lasts. Between renewals there is a pause.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lossy{table: &table{row: store.Leader{Free: true, Mark: "0"}}}
		f, _ := newOffice(s.table, "a")
		f.Store = s
		start := time.Now()
		f.Now = func() time.Duration { return time.Since(start) }
		if err := f.Enlist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Campaign(t.Context(), followed); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		var holds sync.WaitGroup
		holds.Go(func() {
			if err := f.Hold(ctx, func() ([]string, bool) { return nil, false }); err != nil {
				t.Errorf("the seat is lost: %v", err)
			}
		})
		for name, c := range map[string]struct {
			lost  losses
			pause time.Duration // the shortest between two tries
		}{
			"nothing":              {losses{}, Renew},
			"a renewal":            {losses{renewal: 1}, tryAgain},
			"a list":               {losses{list: true}, Renew},
			"a list, then two":     {losses{list: true, renewal: 2}, tryAgain},
			"each try of a second": {losses{fails: 5}, Look},
		} {
			s.lose(c.lost)
			for range 40 {
				time.Sleep(100 * time.Millisecond)
				if !f.Leads() {
					t.Fatalf("%s is lost: it does not lead any more", name)
				}
			}
			asked := s.lose(losses{})
			shortest := time.Hour
			for i := range asked[1:] {
				shortest = min(shortest, asked[i+1].Sub(asked[i]))
			}
			if shortest != c.pause || len(asked) > 12 {
				t.Errorf("%s is lost: %d tries in 4 s, %s between two at least, want %s", name, len(asked), shortest, c.pause)
			}
		}
		end()
		holds.Wait()
	})
}
