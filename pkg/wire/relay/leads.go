package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
)

const (
	// lookAgain is how often other controllers are asked who leads while calls wait for an answer that long, and
	// until it is known.
	lookAgain = 500 * time.Millisecond
	// lookUp is how often a login host asks by itself which controllers there are.
	lookUp = time.Minute
	// lookPatience bounds one such question.
	lookPatience = 2 * time.Second
)

// errMoved cuts calls that another controller has than the one that leads.
var errMoved = errors.New("another controller leads by now")

// leads is where calls are passed on to: of several controllers the one that leads, as far as is known.
type leads struct {
	list   *List
	newest atomic.Uint64 // version of the site's list

	mu    sync.Mutex
	all   []string // host:port
	now   string
	term  uint64 // in which now leads; 0: not known
	one   bool   // there is one controller, by several addresses
	calls map[*passed]struct{}

	alone  bool      // nobody else on this host is told which controllers there are
	lookup time.Time // when the one that leads was asked for itself, last
}

// passed is a call under way.
type passed struct {
	at    string
	since time.Time
	cut   context.CancelCauseFunc
	asked atomic.Bool // it was sent
}

type passedKey struct{}

func newLeads(list *List) *leads {
	all := list.Addresses()
	return &leads{list: list, all: all, now: all[0], calls: map[*passed]struct{}{}}
}

// begin notes a call, until done. Its context ends when another controller leads.
func (l *leads) begin(ctx context.Context) (of context.Context, done func()) {
	p := &passed{since: time.Now()}
	ctx, p.cut = context.WithCancelCause(ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { p.asked.Store(true) }})
	l.mu.Lock()
	defer l.mu.Unlock()
	p.at = l.now
	l.calls[p] = struct{}{}
	return context.WithValue(ctx, passedKey{}, p), func() {
		p.cut(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, p)
	}
}

func callOf(ctx context.Context) *passed { return ctx.Value(passedKey{}).(*passed) }

// failed: nothing was passed on at an address; the next is tried with the next call. It reports whether
// there is another.
func (l *leads) failed(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) < 2 {
		return false
	}
	if l.now == address {
		l.now = l.all[(slices.Index(l.all, address)+1)%len(l.all)]
	}
	return true
}

// heard takes in who leads by a controller that does not.
func (l *leads) heard(address string, w *api.Word) {
	if w == nil || w.Leader == nil {
		l.failed(address)
		return
	}
	for _, a := range w.Leader.Addresses {
		if !strings.HasPrefix(a, "unix:") {
			l.leader(w.Term, a)
			return
		}
	}
}

// leader takes in who leads in a term. Where it is a newer one than was known, who led before has nothing to
// answer any more: it may stand still, and calls that it has are cut.
func (l *leads) leader(term uint64, at string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term < l.term {
		return
	}
	newer := l.term != 0 && term > l.term
	l.now, l.term = at, term
	if !slices.Contains(l.all, at) {
		l.all = append(slices.Clone(l.all), at)
	}
	for p := range l.calls {
		if newer && p.at != at {
			p.cut(errMoved)
		}
	}
}

// others are whom to ask who leads: nobody while that is known and no call waits.
func (l *leads) others(now time.Time) (ask []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Nobody may use this host until the only controller that it knows is gone: so it does not wait for a call.
	if l.alone && now.Sub(l.lookup) >= lookUp {
		l.lookup = now
		return slices.Clone(l.all)
	}
	if l.one || len(l.all) < 2 {
		return nil
	}
	if l.term == 0 {
		return slices.Clone(l.all)
	}
	for p := range l.calls {
		if now.Sub(p.since) >= lookAgain {
			return slices.DeleteFunc(slices.Clone(l.all), func(a string) bool { return a == l.now })
		}
	}
	return nil
}

// watch asks who leads, until ctx ends.
func (l *leads) watch(ctx context.Context, up http.RoundTripper) {
	t := time.NewTicker(lookAgain)
	defer t.Stop()
	for {
		var asking sync.WaitGroup
		for _, at := range l.others(time.Now()) {
			asking.Go(func() { l.ask(ctx, up, at) })
		}
		asking.Wait()
		if l.newest.Load() > l.list.version() {
			l.learn(ctx, up)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// ask asks one controller, for this host itself.
func (l *leads) ask(ctx context.Context, up http.RoundTripper, at string) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	res, err := get(ctx, up, at, "/v1/ping")
	if err != nil {
		return
	}
	defer res.Body.Close()
	body := json.NewDecoder(io.LimitReader(res.Body, maxRefusal))
	if res.StatusCode == http.StatusOK {
		l.listed(res.Header)
		p := new(api.PingReply)
		switch {
		case body.Decode(p) != nil:
		case p.Term == 0:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.one = true
		default:
			l.mu.Lock()
			l.one = false
			l.mu.Unlock()
			l.leader(p.Term, at)
		}
		return
	}
	if e := new(api.Error); body.Decode(e) == nil && e.Word != nil && e.Word.Leader != nil {
		l.heard(at, e.Word)
	}
}

func get(ctx context.Context, up http.RoundTripper, at, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at+path, nil)
	if err != nil {
		return nil, err
	}
	return up.RoundTrip(req)
}

// listed learns from an answer of the leader which version the site's list has.
func (l *leads) listed(h http.Header) {
	if v, err := strconv.ParseUint(h.Get(api.ControllersHeader), 10, 64); err == nil {
		l.newest.Store(v)
	}
}

// learn asks the leader for the site's list.
func (l *leads) learn(ctx context.Context, up http.RoundTripper) {
	l.mu.Lock()
	at := l.now
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	res, err := get(ctx, up, at, "/v1/controllers")
	if err != nil {
		return
	}
	defer res.Body.Close()
	r := new(api.ControllersReply)
	if res.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(res.Body, maxList)).Decode(r) != nil {
		return
	}
	l.list.take(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all = l.list.Addresses(); !slices.Contains(l.all, l.now) {
		l.all = append(l.all, l.now)
	}
}

// maxList bounds a list of controllers.
const maxList = 1 << 20

// maxRefusal bounds the body of an answer that says who leads.
const maxRefusal = 64 << 10

// look learns from an answer who leads; the caller gets it all the same, and calls again.
func (l *leads) look(r *http.Response) error {
	l.listed(r.Header)
	r.Header.Del(api.ControllersHeader)
	if r.StatusCode != api.CodeNotLeader.HTTPStatus() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxRefusal))
	if err != nil {
		return err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(b))
	e := new(api.Error)
	if json.Unmarshal(b, e) == nil {
		l.heard(r.Request.URL.Host, e.Word)
	}
	return nil
}
