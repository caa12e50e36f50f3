package sitetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/controller/notify"
	"gangd/pkg/controller/rpc"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

// Begun is when the site begins, and Now when it is looked at.
var (
	Begun = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	Now   = Begun.Add(4 * time.Hour)
)

// Ada calls, and may do all; Grace is somebody else.
var (
	Ada   = auth.Identity{Kind: auth.KindUser, UID: 1000, GID: 1000, User: "ada", Admin: true}
	Grace = auth.Identity{Kind: auth.KindUser, UID: 1001, GID: 1001, User: "grace"}
)

// Site is a controller and its nodes. Its methods are for the test's goroutine.
type Site struct {
	*engine.Engine
	t     testing.TB
	opt   engine.Options
	disk  *disk.Disk
	clock clock
	nodes map[string]*node
	end   func()
	began time.Time // of the controller

	mu      sync.Mutex
	frozen  chan struct{} // closed when calls are answered again; nil: they are
	caller  auth.Identity
	refusal *api.Error
	asked   []string

	// Followed has a value for each stream that has begun: what happens from then on is in it.
	Followed chan struct{}

	path   string // of the socket
	server *http.Server
	served chan struct{}
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now is the time that the test has set, on both clocks.
func (c *clock) Now() gang.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return gang.Instant{Wall: c.now, Mono: time.Hour + c.now.Sub(Begun)}
}

// begin begins a site without nodes; the first job has the number first.
func begin(t testing.TB, first int64, rows ...*gang.Changes) *Site {
	t.Helper()
	set := api.DefaultSettings()
	set.NodeTimeout, set.KeepEnded = time.Minute, 24*time.Hour
	policy := order.Policy{BackfillDepth: 1, Preempt: order.PreemptTier, MinRun: time.Minute, Partitions: []api.Partition{
		{Name: "gpu", Default: true, DefaultTime: 24 * time.Hour, MaxTime: 24 * time.Hour}, {Name: "long", Nodes: []string{"n2", "n3", "n4"}}}}
	s := &Site{t: t, disk: disk.New(t), nodes: map[string]*node{}, caller: Ada, end: func() {}, Followed: make(chan struct{}, 64)}
	s.clock.now = Begun
	mail := &notify.Site{Mail: &notify.Mail{Domain: "uni.example", Domains: []string{"uni.example"}},
		Targets: []*notify.Webhook{{Name: "chat"}}}
	s.opt = engine.Options{Sender: &notify.Sender{Log: slog.New(slog.DiscardHandler),
		Post: func(context.Context, *notify.Batch) error { return nil }},
		Clock: &s.clock, Log: slog.New(slog.DiscardHandler), Conf: engine.Conf{Settings: set, Policy: policy, Notify: mail},
		Record: metrics.New("1.2.3"), Version: "1.2.3"}
	s.Restart(first, rows...)
	t.Cleanup(s.Close)
	return s
}

// Restart ends the controller and begins it anew, with next as the number of the next job, and with rows that
// were in its store before the site's day.
func (s *Site) Restart(next int64, rows ...*gang.Changes) {
	s.t.Helper()
	s.end()
	s.disk.Crash()
	st := s.disk.Open(s.t)
	must(s.t, st.Advance(s.t.Context(), st.Lineage(), next))
	for _, ch := range rows {
		_, err := st.Commit(s.t.Context(), ch)
		must(s.t, err)
	}
	s.opt.Store = st
	e, err := engine.New(s.t.Context(), s.opt)
	must(s.t, err)
	s.Engine = e
	e.SetHub(hub{s})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			s.t.Error(err)
		}
	})
	s.began = s.clock.Now().Wall
	s.tick()
	for _, name := range s.names() {
		if n := s.nodes[name]; n.up {
			n.hello()
		}
	}
}

// Set is a site that has set something else, and has begun its controller anew.
func (s *Site) Set(change func(*api.Settings)) {
	s.t.Helper()
	change(&s.opt.Conf.Settings)
	s.Restart(0)
}

// Close ends the site.
func (s *Site) Close() {
	if s.server != nil {
		s.Stop()
	}
	s.end()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Scene is something that happens at a time.
type Scene struct {
	At time.Time
	Do func(*Site)
}

// At is a scene of the day on which all happens: "10:01:33.25".
func At(clock string, do func(*Site)) Scene {
	at, err := time.Parse("2006-01-02T15:04:05", "2026-03-01T"+clock)
	if err != nil {
		panic(err)
	}
	return Scene{at, do}
}

// Play sets the clock to each scene's time in their order, and plays it.
func (s *Site) Play(scenes ...Scene) {
	s.t.Helper()
	slices.SortStableFunc(scenes, func(a, b Scene) int { return a.At.Compare(b.At) })
	for _, x := range scenes {
		s.clock.mu.Lock()
		s.clock.now = x.At
		s.clock.mu.Unlock()
		s.settle()
		x.Do(s)
		s.settle()
	}
}

// settle has the engine do what is due by the clock, and the nodes forget what is over.
func (s *Site) settle() {
	s.t.Helper()
	s.tick()
	for _, name := range s.names() {
		s.nodes[name].forget()
	}
}

// tick returns when the engine has taken in what it was told before, and has done what is due. Between any two things
// that it is told, so that each day has the same rounds.
func (s *Site) tick() {
	s.t.Helper()
	_, err := s.Do(s.t.Context(), gang.Tick{})
	must(s.t, err)
}

// Submit queues jobs, and gives the number of the first.
func (s *Site) Submit(who auth.Identity, spec api.Spec, array *api.Array) int64 {
	s.t.Helper()
	r, err := s.Engine.Submit(s.t.Context(), &api.SubmitRequest{Spec: spec, Array: array},
		engine.Caller{UID: who.UID, GID: who.GID, User: who.User, Admin: true})
	must(s.t, err)
	return r.JobID
}

// Job is a job as the engine has it.
func (s *Site) Job(id int64) *gang.Job {
	s.t.Helper()
	j, err := s.One(s.t.Context(), api.JobRef{ID: id, Index: -1}, engine.Caller{})
	must(s.t, err)
	return j
}

// Serve listens where a command finds it when GANG_DIR is dir, and nowhere else from then on.
func (s *Site) Serve(dir string) {
	s.t.Helper()
	if s.server != nil {
		s.Die()
	}
	s.path = filepath.Join(dir, "run", "gangd.sock")
	l, err := auth.ListenUnix(s.path)
	must(s.t, err)
	calls := (&rpc.Server{Engine: s.Engine, Sessions: hub{s}, Log: s.opt.Log, Version: s.opt.Version, Started: s.began,
		People: people.Here, Reload: reread}).Handler()
	server, served := &http.Server{Handler: s.between(calls)}, make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // always http.ErrServerClosed, by Die
	}()
	s.server, s.served = server, served
}

// reread is a reload: one key of the file waits for a restart.
func reread(context.Context, string) (*api.ReloadReply, error) {
	return &api.ReloadReply{SchemaVersion: api.SchemaVersion, Changes: []api.ConfigChange{}, Restart: []api.ConfigChange{{Key: "listen"}},
		Warnings: []api.DoctorFinding{}}, nil
}

// Found is Serve where commands of this process look.
func (s *Site) Found() {
	s.t.Helper()
	dir := s.t.TempDir()
	s.Serve(dir)
	s.t.Setenv("GANG_DIR", dir)
}

// Die ends every connection and leaves the socket, as gangd does: one that is on its way back, by Serve.
func (s *Site) Die() {
	_ = s.server.Close()
	<-s.served
}

// Stop is Die, and takes the socket away: here is no cluster any more.
func (s *Site) Stop() {
	s.Die()
	_ = os.Remove(s.path)
}

// between is what stands between commands and calls: it says who calls, notes what is asked, and may be at fault.
func (s *Site) between(calls http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		if len(body) > 0 {
			s.asked = append(s.asked, string(bytes.TrimSpace(body)))
		}
		who, refusal, frozen := s.caller, s.refusal, s.frozen
		s.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		smallPage(r)
		if refusal != nil {
			w.WriteHeader(refusal.Code.HTTPStatus())
			_ = json.NewEncoder(w).Encode(refusal)
			return
		}
		calls.ServeHTTP(&told{ResponseWriter: w, began: s.Followed}, r.WithContext(auth.With(r.Context(), who)))
	})
}

// page is how many events an answer has at most, so that the story of a job is in several.
const page = 4

func smallPage(r *http.Request) {
	q := r.URL.Query()
	if r.URL.Path != "/v1/events" || q.Has("follow") {
		return
	}
	if n, err := strconv.Atoi(q.Get("limit")); err != nil || n > page {
		q.Set("limit", strconv.Itoa(page))
		r.URL.RawQuery = q.Encode()
	}
}

// told is an answer that says when the first of it is sent before it is whole, as that of a stream.
type told struct {
	http.ResponseWriter
	began chan<- struct{}
}

func (w *told) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *told) FlushError() error {
	if w.began != nil {
		w.began <- struct{}{}
		w.began = nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Freeze lets no call be answered until what it gives is called.
func (s *Site) Freeze() (thaw func()) {
	wait := make(chan struct{})
	set := func(to chan struct{}) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.frozen = to
	}
	set(wait)
	return func() {
		set(nil)
		close(wait)
	}
}

// Refuse answers every call with an error.
func (s *Site) Refuse(e *api.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = e
}

// As makes somebody the caller.
func (s *Site) As(who auth.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caller = who
}

// Asked is what was asked, oldest first: method and path of each call, then its body.
func (s *Site) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
