package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gangd/pkg/api"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gsubmit": main})
}

// TestScripts runs testdata/script against a controller that only takes notes.
//
//	asked .spec.size 4     the field of the newest submission, as JSON
//	queued N               so many submissions came
//	ends STATE CODE SIGNAL how jobs end from now on
//	lose N                 the next N waits break off, as in a restart of the controller
//	hang                   waits are held open from now on
//	attended               until a gsubmit waits
//	refuse CODE TEXT       how submissions are answered from now on
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			f, err := startFake()
			if err != nil {
				return err
			}
			env.Defer(f.stop)
			env.Setenv("GANG_DIR", f.dir)
			env.Values["fake"] = f
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"asked": func(ts *testscript.TestScript, neg bool, args []string) {
				got, err := fakeOf(ts).field(args[0])
				ts.Check(err)
				if want := strings.Join(args[1:], " "); (got == want) == neg {
					ts.Fatalf("%s is %s, want %s", args[0], got, want)
				}
			},
			"queued": func(ts *testscript.TestScript, _ bool, args []string) {
				if n := fakeOf(ts).count(); strconv.Itoa(n) != args[0] {
					ts.Fatalf("%d submissions came, want %s", n, args[0])
				}
			},
			"ends": func(ts *testscript.TestScript, _ bool, args []string) {
				code, err := strconv.Atoi(args[1])
				ts.Check(err)
				sig, err := strconv.Atoi(args[2])
				ts.Check(err)
				f := fakeOf(ts)
				f.mu.Lock()
				defer f.mu.Unlock()
				f.end = api.Job{State: api.JobState(args[0]), ExitCode: &code, Signal: sig, Verdict: "rank 0 was asked to"}
			},
			"lose": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[0])
				ts.Check(err)
				f := fakeOf(ts)
				f.mu.Lock()
				defer f.mu.Unlock()
				f.lose = n
			},
			"hang": func(ts *testscript.TestScript, _ bool, _ []string) {
				f := fakeOf(ts)
				f.mu.Lock()
				defer f.mu.Unlock()
				f.hang = true
			},
			"attended": func(ts *testscript.TestScript, _ bool, _ []string) { <-fakeOf(ts).attended },
			"refuse": func(ts *testscript.TestScript, _ bool, args []string) {
				f := fakeOf(ts)
				f.mu.Lock()
				defer f.mu.Unlock()
				f.refusal = api.Errorf(api.Code(args[0]), "%s", args[1])
			},
		},
	})
}

func fakeOf(ts *testscript.TestScript) *fake { return ts.Value("fake").(*fake) }

// fake is a controller that takes notes of submissions.
type fake struct {
	dir string
	srv *http.Server

	mu      sync.Mutex
	asked   []json.RawMessage
	end     api.Job
	refusal *api.Error
	lose    int
	hang    bool

	attended chan struct{} // one for each wait that hangs
}

// startFake listens in a directory with a short name: socket paths are limited to 107
// bytes, and a test's own directory is longer than that.
func startFake() (*fake, error) {
	dir, err := os.MkdirTemp("", "gs")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(dir, "run", "gangd.sock"))
	if err != nil {
		return nil, err
	}
	zero := 0
	f := &fake{dir: dir, attended: make(chan struct{}, 16), end: api.Job{State: api.JobCompleted, ExitCode: &zero}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs", f.submit)
	mux.HandleFunc("GET /v1/jobs/{ref}/wait", f.wait)
	mux.HandleFunc("GET /v1/log", func(w http.ResponseWriter, r *http.Request) {
		text := fmt.Sprintf("output of %s rank %s\n", r.FormValue("job"), r.FormValue("rank"))
		if r.FormValue("positions") != "" {
			text = fmt.Sprintf("1 0 %d\n%s", len(text), text)
		}
		_, _ = io.WriteString(w, text)
	})
	f.srv = &http.Server{Handler: mux}
	go f.srv.Serve(l)
	return f, nil
}

func (f *fake) stop() {
	f.srv.Close()
	os.RemoveAll(f.dir)
}

func (f *fake) submit(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal != nil {
		w.WriteHeader(f.refusal.Code.HTTPStatus())
		json.NewEncoder(w).Encode(f.refusal)
		return
	}
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.asked = append(f.asked, raw)
	json.NewEncoder(w).Encode(api.SubmitReply{SchemaVersion: 1, JobID: 12, Count: 1, Why: "starts at once on n1"})
}

func (f *fake) wait(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if f.hang {
		f.mu.Unlock()
		f.attended <- struct{}{}
		<-r.Context().Done()
		return
	}
	defer f.mu.Unlock()
	if f.lose > 0 {
		f.lose--
		panic(http.ErrAbortHandler)
	}
	json.NewEncoder(w).Encode(api.JobDetail{SchemaVersion: 1, Job: f.end})
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// field gives a field of the newest submission as JSON: .spec.notice.lead_ns. Bytes come
// as text.
func (f *fake) field(path string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return "", fmt.Errorf("nothing was submitted")
	}
	if path == ".spec.script" {
		var r api.SubmitRequest
		err := json.Unmarshal(f.asked[len(f.asked)-1], &r)
		return strconv.Quote(string(r.Spec.Script)), err
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(string(f.asked[len(f.asked)-1])))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return "", err
	}
	for _, name := range strings.Split(path[1:], ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	b, err := json.Marshal(v)
	return string(b), err
}
