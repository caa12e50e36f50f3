package rpc

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
	"gangd/pkg/wire/auth"
)

// noNodes are sessions in which nobody answers.
type noNodes struct{}

func (noNodes) Stacks(context.Context, string, api.MemberKey) (*api.MemberStacks, error) {
	return &api.MemberStacks{}, nil
}
func (noNodes) AppendLog(context.Context, string, api.LogAppend) error { return nil }
func (noNodes) ResumeCard(context.Context, string, string) error       { return nil }
func (noNodes) Wake([]string)                                          {}
func (noNodes) Signal(context.Context, string, api.SignalOrder) (int, error) {
	return 0, api.Errorf(api.CodeUnavailable, "no session")
}
func (noNodes) ReadLog(context.Context, string, api.LogRead, io.Writer) error {
	return api.Errorf(api.CodeUnavailable, "no session")
}
func (noNodes) Serve(w http.ResponseWriter, _ *http.Request, _ string) {
	w.WriteHeader(http.StatusServiceUnavailable)
}
func (n noNodes) Witness(w http.ResponseWriter, r *http.Request, node string) { n.Serve(w, r, node) }

// small is a controller in memory with a node of two cards, a gang that runs on it and one
// that waits.
func small(t testing.TB) (h http.Handler, e *engine.Engine, end func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	m := metrics.New("fuzz")
	e, err := engine.New(t.Context(), engine.Options{Store: disk.Open(t), Clock: engine.SystemClock(), Log: quiet,
		Record: m, Version: "fuzz", Conf: engine.Conf{Settings: api.DefaultSettings(),
			Policy: order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1, MaxStarts: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	e.SetHub(noNodes{})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	end = func() {
		cancel()
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
	}
	hello := &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", Address: "127.0.0.1", CPUs: 4, MemoryBytes: 1 << 34,
		Cards: []api.CardInfo{{Index: 0, UUID: "c0", VRAMBytes: 80 << 30}, {Index: 1, UUID: "c1", VRAMBytes: 80 << 30}}}
	if _, err := e.NodeHello(ctx, hello); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"runs", "waits"} {
		spec := api.Spec{Name: key, Size: 3, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Output: "/dev/null", Script: []byte("#!/bin/sh\n")}
		if _, err := e.Submit(ctx, &api.SubmitRequest{Key: key, Spec: spec}, engine.Caller{UID: 1000, GID: 1000, User: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Engine: e, Sessions: noNodes{}, Log: quiet, Version: "fuzz", Started: time.Now(), Metrics: m.Handler()}
	return s.Handler(), e, end
}

// calls that answer only when something happens, or that would end the fuzzing.
func waits(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/wait") || r.URL.Query().Get("follow") != "" || r.URL.Path == "/v1/live" || (r.URL.Path == "/v1/log" || r.URL.Path == "/v1/logs") && r.URL.Query().Get("job") != ""
}

// Whatever is sent to the controller's calls by someone who may make them all is accepted, or
// refused with a code and a sentence; the state stays sound.
func FuzzCalls(f *testing.F) {
	const spec = `"spec":{"name":"x","size":2,"launch":"ranks","cpus_per_rank":1,"work_dir":"/tmp","output":"/dev/null","script":"IyEvYmluL3NoCg=="}`
	for _, s := range []struct{ call, target, body string }{
		{"POST", "/v1/jobs", `{"key":"k",` + spec + `}`},
		{"POST", "/v1/jobs", `{"key":"runs",` + spec + `}`},
		{"POST", "/v1/jobs", `{"key":"k",` + spec + `,"array":{"indices":[1,2,3],"limit":2},"test_only":true}`},
		{"POST", "/v1/jobs", `{"key":"k","spec":{"name":"","size":65537,"gpus_per_rank":-1,"vram_bytes":9223372036854775807}}`},
		{"POST", "/v1/jobs", `{"key":"k","spec":{"size":1,"launch":"ranks","notice":{"signal":"USR1","lead_ns":-1},"time_limit_ns":1}}`},
		{"POST", "/v1/query", `{"all":true}`},
		{"POST", "/v1/query", `{"refs":["1_[1-3]"],"states":["RUNNING"],"lines":true}`},
		{"POST", "/v1/cancel", `{"refs":["1"],"now":true}`},
		{"POST", "/v1/cancel", `{"refs":["1"],"signal":"USR1","scope":"shell"}`},
		{"POST", "/v1/cancel", `{}`},
		{"POST", "/v1/hold", `{"refs":["2"]}`},
		{"POST", "/v1/release", `{"users":["ada"]}`},
		{"POST", "/v1/requeue", `{"names":["runs"]}`},
		{"POST", "/v1/requeue", `{"names":["runs"],"hold":true}`},
		{"POST", "/v1/update", `{"refs":["1"],"comment":"x","message":"y"}`},
		{"POST", "/v1/history", `{"users":["ada"],"since":"2026-01-01T00:00:00Z"}`},
		{"POST", "/v1/history", `{"refs":["1","9_3","@"]}`},
		{"GET", "/v1/jobs/1/script", ""},
		{"GET", "/v1/jobs/1", ""},
		{"GET", "/v1/jobs/2/why", ""},
		{"GET", "/v1/jobs/1_2", ""},
		{"GET", "/v1/events?job=1&since=-1", ""},
		{"GET", "/v1/log?rank=-2", ""},
		{"GET", "/v1/nodes", ""},
		{"POST", "/v1/nodes/n1/drain", `{"reason":"fan"}`},
		{"POST", "/v1/nodes/n1/fence", `{}`},
		{"POST", "/v1/nodes/n2/resume", `{}`},
		{"POST", "/v1/backup", `{"path":"relative"}`},
		{"POST", "/v1/revoke", `{"node":"n1"}`},
		{"GET", "/v1/verify", ""},
		{"GET", "/metrics", ""},
		{"PUT", "/v1/jobs", "["},
	} {
		f.Add(s.call, s.target, []byte(s.body))
	}
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		u, err := url.Parse(target)
		if err != nil || !strings.HasPrefix(target, "/") || len(method) > 10 || strings.ContainsAny(method, " \r\n\x00") {
			return // no server gets this far with it
		}
		h, e, end := small(t)
		defer end()
		id := auth.Identity{Kind: auth.KindUser, UID: 1000, GID: 1000, User: "ada", Admin: true, Host: true}
		r := (&http.Request{Method: method, URL: u, Host: "gangd", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}).
			WithContext(auth.With(t.Context(), id))
		if waits(r) {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusOK, w.Code/100 == 3: // the mux cleans paths
		case w.Code == http.StatusInternalServerError:
			t.Fatalf("%s %s %q: %s", method, target, body, w.Body)
		case r.URL.Path == api.SessionPath, r.URL.Path == api.WitnessPath, w.Code == http.StatusMethodNotAllowed:
		default:
			var e api.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == "" || e.Message == "" || e.Code.HTTPStatus() != w.Code {
				t.Fatalf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
			}
		}
		if found, err := e.Verify(t.Context()); err != nil || len(found) > 0 {
			t.Fatalf("%s %s %q leaves %v, %v", method, target, body, found, err)
		}
	})
}
