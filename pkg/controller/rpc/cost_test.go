package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
	"gangd/pkg/lab/nasty"
	"gangd/pkg/wire/auth"
)

// busy is a controller with a node on which a gang runs, and with a crowd of jobs that wait. spent is what its engine has
// used of a processor until now: its goroutine has a thread of its own, so that nobody else's work, and no waiting, is
// counted.
func busy(t *testing.T) (h http.Handler, e *engine.Engine, spent func() time.Duration) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	m := metrics.New("cost")
	set := api.DefaultSettings()
	set.UserJobs, set.MaxJobs = 0, 0
	e, err := engine.New(t.Context(), engine.Options{Store: disk.Open(t), Clock: engine.SystemClock(), Log: quiet, Record: m, Version: "cost",
		Conf: engine.Conf{Settings: set, Policy: order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1, MaxStarts: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	e.SetHub(noNodes{})
	ctx, cancel := context.WithCancel(context.Background())
	ran, thread := make(chan error, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		ran <- e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	clock := int32(^<-thread<<3 | 6) // of a thread's CPU time, as clock_getres(2) makes it of its number
	hello := &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", Address: "127.0.0.1", CPUs: 4, MemoryBytes: 1 << 34}
	if _, err := e.NodeHello(ctx, hello); err != nil {
		t.Fatal(err)
	}
	ada := engine.Caller{UID: 1000, GID: 1000, User: "ada"}
	for k := range nasty.Jobs / api.MaxArraySize {
		r := &api.SubmitRequest{Key: strconv.Itoa(k), Spec: nasty.Spec(), Array: &api.Array{}}
		for i := range api.MaxArraySize {
			r.Array.Indices = append(r.Array.Indices, i)
		}
		if _, err := e.Submit(ctx, r, ada); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Engine: e, Sessions: noNodes{}, Log: quiet, Version: "cost", Started: time.Now(), Metrics: m.Handler()}
	return s.Handler(), e, func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(clock, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
}

// processor is what this process has used of all processors.
func processor() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What one call may cost where 30,000 jobs wait: the engine, and all that works for the call. Both are CPU time, which a
// busy machine does not stretch. They are some ten times what is used, and a product of the jobs and
// the entries of a list takes a hundred times as much.
const (
	engineMay = 50 * time.Millisecond
	callMay   = 150 * time.Millisecond
	byteMay   = 300 * time.Nanosecond // to read a request
	jobMay    = 200 * time.Microsecond
	movedMay  = time.Microsecond // of each that waits, where a partition is another
)

var everyCost = flag.Bool("rpc.costs", false, "ask with every field that is there, and not with one of four")

// TestNoFieldCostsTheJobsTimesItsEntries: every list and every text of every request, at its largest and
// in several nasty ways, is taken or refused at a price that does not grow with the jobs that wait. A field that is new
// is in it by itself, for the types are walked.
func TestNoFieldCostsTheJobsTimesItsEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	h, e, spent := busy(t)
	slow := 1
	if raceDetector {
		slow = 20
	}
	// One of four, and another of them each time: all of them take a minute (make properties).
	tried, first := 0, rand.IntN(4)
	for _, c := range nasty.Calls() {
		nasty.Each(c.Body, func(field string, body any) {
			text, err := json.Marshal(body)
			if err != nil || len(text) > maxBody {
				return // it can't be said, or not be sent
			}
			if tried++; !*everyCost && (tried+first)%4 != 0 {
				return
			}
			// What is dear is asked again: a collection of garbage that others left may have come between.
			for again := 2; ; again-- {
				id := auth.Identity{Kind: auth.KindUser, UID: 1001, GID: 1001, User: "eve", Admin: onlyAdmins(c.Path)}
				w := httptest.NewRecorder()
				r := httptest.NewRequest("POST", c.Path, bytes.NewReader(text)).WithContext(auth.With(t.Context(), id))
				settled(t, e)
				engineBegan, callBegan := spent(), processor()
				h.ServeHTTP(w, r)
				callTook := processor() - callBegan
				settled(t, e) // what the call left to be planned is its price too
				engineTook := spent() - engineBegan
				// Of jobs that were made, changed or listed each has its price.
				jobs := changed(w.Body.Bytes()) + bytes.Count(w.Body.Bytes(), []byte(`"array_job_id":`)) + bytes.Count(w.Body.Bytes(), []byte("\tx\t"))
				var moved time.Duration // of all that wait it may be another where they may be started
				if strings.HasPrefix(c.Path, "/v1/partitions") {
					moved = nasty.Jobs * movedMay
				}
				engineMost := time.Duration(slow) * (engineMay + moved + time.Duration(jobs)*jobMay)
				callMost := time.Duration(slow) * (callMay + moved + time.Duration(len(text))*byteMay + time.Duration(jobs)*jobMay)
				dear := engineTook > engineMost || callTook > callMost
				if dear && again > 0 {
					continue
				}
				if dear {
					t.Errorf("%s %s (%d bytes): %s of the engine's time, at most %s, and %s of processors, at most %s: %d %.200s",
						c.Path, field, len(text), engineTook, engineMost, callTook, callMost, w.Code, w.Body)
				}
				if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
					t.Errorf("%s %s: %d %.200s", c.Path, field, w.Code, w.Body)
				}
				break
			}
		})
	}
	t.Logf("%d requests", tried)
	if found, err := e.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("they leave %v, %v", found, err)
	}
}

// settled waits until the engine has done what it was told: it answers in order, and plans before it takes more.
func settled(t *testing.T, e *engine.Engine) {
	t.Helper()
	for range 2 {
		if _, err := e.Do(t.Context(), gang.Cancel{Job: 1 << 50}); api.CodeOf(err) != api.CodeNotFound {
			t.Fatal(err)
		}
	}
}

// onlyAdmins: others are refused before anything is looked at.
func onlyAdmins(call string) bool {
	return strings.HasPrefix(call, "/v1/nodes/") || strings.HasPrefix(call, "/v1/partitions") || strings.HasPrefix(call, "/v1/reservations")
}

// changed is how many jobs an answer says were made or changed.
func changed(answer []byte) int {
	var r struct {
		Count   int               `json:"count"`
		Results []json.RawMessage `json:"results"`
	}
	_ = json.Unmarshal(answer, &r)
	return r.Count + len(r.Results)
}
