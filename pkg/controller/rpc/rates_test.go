package rpc

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// TestRates plays requests on a clock of its own: {at, from, how many} and how many of them
// are taken, and when the next one is.
func TestRates(t *testing.T) {
	type calls struct {
		at   time.Duration
		uid  uint32
		made int
		took int
		wait time.Duration // of the first refused
	}
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		perSecond, burst int
		calls            []calls
	}{
		"a burst, and then the pace": {10, 5, []calls{
			{0, 1, 7, 5, 100 * ms}, {40 * ms, 1, 1, 0, 60 * ms}, {100 * ms, 1, 2, 1, 100 * ms}, {350 * ms, 1, 3, 2, 50 * ms}}},
		"who was quiet has his burst again, and not more": {10, 5, []calls{
			{0, 1, 5, 5, 0}, {time.Hour, 1, 9, 5, 100 * ms}}},
		"refusals cost nothing": {10, 1, []calls{
			{0, 1, 1000, 1, 100 * ms}, {100 * ms, 1, 1, 1, 0}}},
		"the pace can be kept for ever": {10, 1, []calls{
			{0, 1, 1, 1, 0}, {100 * ms, 1, 1, 1, 0}, {200 * ms, 1, 1, 1, 0}, {299 * ms, 1, 1, 0, 1 * ms}, {300 * ms, 1, 1, 1, 0}}},
		"users do not meet": {10, 2, []calls{
			{0, 1, 9, 2, 100 * ms}, {0, 2, 2, 2, 0}, {50 * ms, 3, 2, 2, 0}, {50 * ms, 1, 1, 0, 50 * ms}}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Unix(1e9, 0)
			now := began
			r := NewRates(tt.perSecond, tt.burst)
			r.now = func() time.Time { return now }
			for _, c := range tt.calls {
				now = began.Add(c.at)
				took, wait := 0, time.Duration(0)
				for range c.made {
					if w := r.take(c.uid); w == 0 {
						took++
					} else if wait == 0 {
						wait = w
					}
				}
				if took != c.took || wait != c.wait {
					t.Errorf("%v: user %d: %d of %d taken, the next in %v; want %d, %v", c.at, c.uid, took, c.made, wait, c.took, c.wait)
				}
			}
		})
	}
}

// TestRatesForget: who has not called for long is not kept, whoever still is ahead stays.
func TestRatesForget(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := NewRates(10, 20)
	r.now = func() time.Time { return now }
	for range 20 {
		r.take(0) // busy for two seconds
	}
	for uid := range uint32(usersKept) {
		now = now.Add(time.Millisecond)
		r.take(uid + 1)
	}
	if n := len(r.over); n > 102 || r.take(0) != 0 || r.take(usersKept) != 0 {
		t.Errorf("%d users are kept", n)
	}
}

// TestTooOftenIsRefused: the answer names the limits and says in header and body when to come
// again; admins and nodes are not counted.
func TestTooOftenIsRefused(t *testing.T) {
	now := time.Unix(1e9, 0)
	rates := NewRates(200, 3)
	rates.now = func() time.Time { return now }
	s := &Server{Rates: rates, Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	h := s.Handler()
	ask := func(id auth.Identity) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(auth.With(t.Context(), id), "GET", "/metrics", nil))
		return w
	}
	ada := auth.Identity{Kind: auth.KindRelay, UID: 1000, User: "ada", Node: "login1"}
	for range 3 {
		if w := ask(ada); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
	}
	w := ask(ada)
	var e api.Error
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	const want = "ada has made 3 requests more than 200 a second: the next is taken in 5 ms"
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || e.Code != api.CodeTooMany || e.RetryAfter != 1 || e.Message != want {
		t.Errorf("%d, Retry-After %q: %+v", w.Code, w.Header().Get("Retry-After"), e)
	}
	for _, id := range []auth.Identity{{Kind: auth.KindUser, UID: 1000, User: "ada", Admin: true}, {Kind: auth.KindNode, Node: "n1"}} {
		for range 10 {
			if w := ask(id); w.Code == http.StatusTooManyRequests {
				t.Errorf("%+v: %s", id, w.Body)
			}
		}
	}
}
