package controller

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/config"
	"gangd/pkg/engine"
	"gangd/pkg/gang"
	"gangd/pkg/leader"
	"gangd/pkg/session"
	"gangd/pkg/store"
	"gangd/pkg/store/pgserver"
	"gangd/pkg/store/pgserver/pgtest"
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
