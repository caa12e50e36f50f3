package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/leader"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/pgserver/pgtest"
	"gangd/pkg/controller/store/pgstore"
	"gangd/pkg/core/gang"
	"gangd/pkg/wire/session"
)

// slow is a clock on which the first look takes longer than a seat lasts: the engine begins with one.
type slow struct {
	engine.Clock
	looked bool
}

func (s *slow) Now() gang.Instant {
	if !s.looked {
		s.looked = true
		time.Sleep(leader.TTL + time.Second)
	}
	return s.Clock.Now()
}

// A leader with so many jobs that it takes longer to read them than its seat lasts keeps the seat meanwhile, and leads.
func TestSeatIsKeptWhileTheEngineIsMade(t *testing.T) {
	server := pgtest.Run(t, pgtest.Dir(t), "db", pgserver.Options{})
	log := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	file := filepath.Join(dir, "gangd.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadController(file, []string{"state_dir=" + dir, "socket=" + filepath.Join(dir, "s"), "database=" + server.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, p, err := openDatabase(ctx, cfg, Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p.parts.Clock = &slow{Clock: p.parts.Clock}
	office := leader.New(leader.Options{Store: st, Me: store.Controller{Name: cfg.Name, Address: addresses(cfg)}, Log: log, Lease: cfg.Lease,
		Now: session.BootTime, Round: func() {}})
	f := newFront(p, office, &standby{st: st, keep: cfg.KeepEnded})
	group, ctx := errgroup.WithContext(ctx)
	led := make(chan struct{})
	group.Go(func() error {
		err := f.stand(ctx, group)
		close(led)
		return err
	})
	<-led
	if !office.Leads() || f.leads.Load() == nil {
		t.Errorf("it leads: %v, and answers: %v", office.Leads(), f.leads.Load() != nil)
	}
	cancel()
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// One that stands by is ready when it can take over warm.
func TestReadyOnceAllIsRead(t *testing.T) {
	by := &standby{}
	f := &front{own: http.NewServeMux(), by: by, office: leader.New(leader.Options{Now: session.BootTime})}
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != want {
			t.Errorf("it has read all: %t, and answers %d: %s", by.whole.Load(), w.Code, w.Body)
		}
		by.whole.Store(true)
	}
}

// dead is a database in which somebody led who is dead.
type dead struct {
	store.Shared
	list store.Controllers
}

func (dead) Leader(context.Context) (store.Leader, error) {
	return store.Leader{Controller: store.Controller{Name: "a"}, Term: 3, Mark: "1"}, nil
}
func (d dead) Controllers(context.Context) (store.Controllers, error) { return d.list, nil }

// The leader is dead, and the other has not been on the list for long enough: it says so, not that the dead one leads.
func TestJoiningSurvivorSaysWhyNobodyLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := dead{list: store.Controllers{Version: 2, All: []store.Controller{{Name: "a"}, {Name: "b", Joining: true}}}}
		office := leader.New(leader.Options{Store: d, Me: store.Controller{Name: "b"}, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Duration { return time.Since(start) }})
		f := &front{own: http.NewServeMux(), by: &standby{st: new(pgstore.Store)}, office: office, p: &process{cfg: &config.Controller{Name: "b"}}}
		ctx, end := context.WithCancel(t.Context())
		var campaign sync.WaitGroup
		campaign.Go(func() { _ = office.Campaign(ctx, func(context.Context) error { return nil }) })
		for _, want := range []string{
			"controller a leads, not b",
			"no controller leads: a led last, and b has joined too late for all nodes to know of it; start gangd again on the host of controller a",
		} {
			time.Sleep(leader.TTL - leader.Look)
			w := httptest.NewRecorder()
			f.refuse(w, "")
			e := new(api.Error)
			if err := json.Unmarshal(w.Body.Bytes(), e); err != nil || e.Code != api.CodeNotLeader || e.Error() != want {
				t.Errorf("it says %v %v\nwant %s", e, err, want)
			}
		}
		end()
		campaign.Wait()
	})
}
