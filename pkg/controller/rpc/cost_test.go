package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
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
	"gangd/pkg/core/sched"
	"gangd/pkg/lab/disk"
	"gangd/pkg/wire/auth"
)

// crowd is how many jobs wait while the fields of requests are tried.
const crowd = 30_000

// busy is a controller with a node on which a gang runs, and with a crowd of jobs that wait. spent is what its engine has
// used of a processor until now: its goroutine has a thread of its own, so that nobody else's work, and no waiting, is
// counted.
func busy(t *testing.T) (h http.Handler, e *engine.Engine, spent func() time.Duration) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	m := metrics.New("cost")
	set := api.DefaultSettings()
	set.UserJobs, set.MaxJobs = 0, 0
	e, err := engine.New(t.Context(), engine.Options{Store: disk.Open(t), Clock: engine.SystemClock(), Log: quiet, Settings: set, Record: m, Version: "cost",
		Policy: sched.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1, MaxStarts: 100}})
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
	for k := range crowd / api.MaxArraySize {
		r := &api.SubmitRequest{Key: strconv.Itoa(k), Spec: plainSpec(), Array: &api.Array{}}
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

func plainSpec() api.Spec {
	return api.Spec{Name: "x", Size: 4, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Output: "/dev/null", Script: []byte("#!/bin/sh\n")}
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
	byteMay   = 150 * time.Nanosecond // to read a request
	jobMay    = 200 * time.Microsecond
)

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
	tried := 0
	for _, c := range []struct {
		call string
		body func() any
	}{
		{"/v1/jobs", func() any { return &api.SubmitRequest{Spec: plainSpec()} }},
		{"/v1/query", func() any { return &api.JobQuery{Lines: true} }},
		{"/v1/history", func() any { return &api.HistoryQuery{Since: time.Now().Add(time.Hour)} }},
		{"/v1/cancel", func() any { return &api.CancelRequest{} }},
		{"/v1/hold", func() any { return &api.ActionRequest{} }},
		{"/v1/release", func() any { return &api.ActionRequest{} }},
		{"/v1/requeue", func() any { return &api.ActionRequest{} }},
		{"/v1/update", func() any {
			return &api.UpdateRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: 3, Index: -1}}}, Nice: new(int64)}
		}},
		{"/v1/rerun", func() any { return &api.RerunRequest{Ref: api.JobRef{ID: 1, Index: 1}} }},
		{"/v1/jobs/1/steps", func() any { return &api.StepRequest{Key: "s"} }},
		{"/v1/nodes/n1/features", func() any { return &api.NodeAction{} }},
		{"/v1/nodes/n1/drain", func() any { return &api.NodeAction{Reason: "fan"} }},
		{"/v1/partitions", func() any { return &api.PartitionRequest{Name: "p"} }},
		{"/v1/partitions/main/update", func() any { return &api.PartitionRequest{} }},
		{"/v1/reservations", func() any {
			day := 24 * time.Hour
			start := time.Now().Add(day)
			return &api.ReservationRequest{Name: "r", Start: &start, Duration: &day, Nodes: &[]string{"n1"}, Users: &[]string{"root"}}
		}},
		{"/v1/crontab", func() any { return &api.CrontabRequest{} }},
	} {
		eachNasty(c.body, func(field string, body any) {
			text, err := json.Marshal(body)
			if err != nil || len(text) > maxBody {
				return // it can't be said, or not be sent
			}
			tried++
			// What is dear is asked again: a collection of garbage that others left may have come between.
			for again := 2; ; again-- {
				id := auth.Identity{Kind: auth.KindUser, UID: 1001, GID: 1001, User: "eve", Admin: onlyAdmins(c.call)}
				w := httptest.NewRecorder()
				r := httptest.NewRequest("POST", c.call, bytes.NewReader(text)).WithContext(auth.With(t.Context(), id))
				settled(t, e)
				engineBegan, callBegan := spent(), processor()
				h.ServeHTTP(w, r)
				callTook := processor() - callBegan
				settled(t, e) // what the call left to be planned is its price too
				engineTook := spent() - engineBegan
				// Of jobs that were made, changed or listed each has its price.
				jobs := changed(w.Body.Bytes()) + bytes.Count(w.Body.Bytes(), []byte(`"array_job_id":`)) + bytes.Count(w.Body.Bytes(), []byte("\tx\t"))
				engineMost := time.Duration(slow) * (engineMay + time.Duration(jobs)*jobMay)
				callMost := time.Duration(slow) * (callMay + time.Duration(len(text))*byteMay + time.Duration(jobs)*jobMay)
				dear := engineTook > engineMost || callTook > callMost
				if dear && again > 0 {
					continue
				}
				if dear {
					t.Errorf("%s %s (%d bytes): %s of the engine's time, at most %s, and %s of processors, at most %s: %d %.200s",
						c.call, field, len(text), engineTook, engineMost, callTook, callMost, w.Code, w.Body)
				}
				if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
					t.Errorf("%s %s: %d %.200s", c.call, field, w.Code, w.Body)
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

// eachNasty calls fn with a body for each list and text in it, filled as far as its bound allows, in each way.
func eachNasty(make func() any, fn func(field string, body any)) {
	for at := 0; ; at++ {
		ways := 1
		for way := 0; way < ways; way++ {
			body := make()
			w := nasty{at: at, way: way}
			w.visit(reflect.ValueOf(body).Elem(), "", "")
			if w.at >= 0 {
				return // there are no more fields
			}
			ways = w.ways
			fn(fmt.Sprintf("%s way %d", w.field, way), body)
		}
	}
}

// nasty fills the field that is at visited ones away.
type nasty struct {
	at, way, ways int
	field         string
}

// part is a number of a bound tag, or what holds without one.
func part(tag, name string, otherwise int) int {
	for p := range strings.FieldsSeq(tag) {
		if text, ok := strings.CutPrefix(p, name+"="); ok {
			n, _ := strconv.Atoi(text)
			return n
		}
	}
	return otherwise
}

func (n *nasty) visit(v reflect.Value, path, tag string) {
	if n.at < 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeFor[time.Time]() {
			return
		}
		was, filled := v.Interface(), n.at
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if n.visit(v.Elem(), path, tag); n.at >= 0 && filled >= 0 {
			v.Set(reflect.ValueOf(was)) // nothing in it was meant
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[api.JobRef]() {
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				n.visit(v.Field(i), path+"."+f.Name, f.Tag.Get("bound"))
			}
		}
	case reflect.String:
		texts := []string{"a|", "main,", "((((", "[a*1&", "@", "\u202e"}
		if strings.Contains(path, "Spec.") && !strings.HasSuffix(path, "Constraint") && !strings.HasSuffix(path, "Prefer") {
			texts = texts[:2] // there are many
		}
		if n.mine(path, len(texts)) {
			most := part(tag, "len", 4096)
			if strings.Contains(tag, "any") {
				most = 1 << 20
			}
			v.SetString(strings.Repeat(texts[n.way], most)[:most/len(texts[n.way])*len(texts[n.way])])
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if n.mine(path, 4) {
			most := part(tag, "n", 65536)
			v.Set(reflect.MakeSlice(v.Type(), most, most))
			for i := range most {
				fill(v.Index(i), strings.ToLower(path[strings.LastIndexByte(path, '.')+1:]), i, n.way)
			}
			return
		}
		// What stands in its elements is visited in one.
		if v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem() != reflect.TypeFor[api.JobRef]() && v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), "", 0, 1)
			if n.visit(v.Index(0), path+"[0]", ""); n.at >= 0 {
				v.SetZero()
			}
		}
	}
}

// mine counts a field, and says whether it is the one that is meant.
func (n *nasty) mine(path string, ways int) bool {
	n.at--
	if n.at == -1 {
		n.field, n.ways = path, ways
		return true
	}
	return false
}

// known are names that mean something, by the field that they stand in.
var known = map[string]string{"users": "ada", "names": "x", "nodes": "n1", "nodelist": "n1", "exclude": "n1", "partitions": "main", "states": "PENDING",
	"flags": "MAINT", "features": "big", "requeuecauses": "crash", "env": "A=b", "types": "END", "hosts": "127.0.0.1:1"}

// fill makes the i-th element of a list: way 0 each another that means nothing, 1 the same again that means something,
// 2 each another, long, 3 what means something beyond what there is.
func fill(v reflect.Value, field string, i, way int) {
	if v.Type() == reflect.TypeFor[api.JobRef]() {
		refs := []api.JobRef{{ID: int64(1 + i), Index: -1}, {ID: 1, Index: i}, {Index: -1, Last: 1 + i}, {ID: 1 << 40, Index: i}}
		v.Set(reflect.ValueOf(refs[way]))
		return
	}
	switch v.Kind() {
	case reflect.String:
		text := fmt.Sprintf("u%07d", i)
		switch {
		case field == "kind":
			text = string(api.DependencyKinds[i%len(api.DependencyKinds)])
		case way == 1 && known[field] != "":
			text = known[field]
		case way == 2:
			text += strings.Repeat("x", 60)
		case way == 3 && field == "env":
			text += "=" + text
		}
		v.SetString(text)
	case reflect.Int, reflect.Int64, reflect.Int32:
		if v.Type() != reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(1 + i%crowd))
		} else if way == 2 {
			v.SetInt(int64(time.Minute))
		}
	case reflect.Bool:
		v.SetBool(way == 1)
	case reflect.Struct:
		for k := range v.NumField() {
			if f := v.Type().Field(k); f.IsExported() && v.Field(k).Kind() != reflect.Pointer && f.Type != reflect.TypeFor[time.Time]() {
				fill(v.Field(k), strings.ToLower(f.Name), i, way)
			}
		}
	}
}
