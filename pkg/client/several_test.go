package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
)

// serveTwo serves the controllers of one directory, and counts how often each was called.
func serveTwo(t *testing.T, handlers ...http.HandlerFunc) (c *Client, asked []*atomic.Int64) {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, h := range handlers {
		l, err := net.Listen("unix", filepath.Join(dir, "run", []string{"gangd.sock", "gangd2.sock"}[i]))
		if err != nil {
			t.Fatal(err)
		}
		n := new(atomic.Int64)
		asked = append(asked, n)
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the call is not seen
			h(w, r)
		})}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
	}
	c = NewAt(filepath.Join(dir, "run", "gangd.sock"))
	c.dir = dir
	return c, asked
}

func leads(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }
func still(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func refuses(code api.Code) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code.HTTPStatus())
		_ = json.NewEncoder(w).Encode(api.Error{Code: code, Message: "database away"})
	}
}

// inTurn does with the calls one after the other what is named, and with those that follow the last.
func inTurn(does ...http.HandlerFunc) http.HandlerFunc {
	n := atomic.Int64{}
	return func(w http.ResponseWriter, r *http.Request) { does[min(int(n.Add(1)), len(does))-1](w, r) }
}

// Of two controllers in one directory one leads, now or soon. The other stands still, has ended, or does not know who
// leads: what may be asked twice gets to the one that leads long before the first is given up for its silence.
func TestTwoControllersOfOneHost(t *testing.T) {
	dies := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	type pair []http.HandlerFunc
	for name, make := range map[string]func() pair{
		"the first stands still":             func() pair { return pair{still, leads} },
		"the first is cut from the database": func() pair { return pair{refuses(api.CodeNotLeader), leads} },
		"the first ends amid the call":       func() pair { return pair{dies, leads} },
		"nobody leads for a while":           func() pair { return pair{inTurn(refuses(api.CodeNotLeader), leads), refuses(api.CodeNotLeader)} },
		"the first stands still, the second is about to lead": func() pair {
			return pair{still, inTurn(refuses(api.CodeNotLeader), refuses(api.CodeUnavailable), dies, leads)}
		},
	} {
		for call, do := range map[string]func(context.Context, *Client) error{
			"submit": func(ctx context.Context, c *Client) error {
				_, err := c.Submit(ctx, new(api.SubmitRequest))
				return err
			},
			"list": func(ctx context.Context, c *Client) error { _, err := c.Jobs(ctx, new(api.JobQuery)); return err },
			"ping": func(ctx context.Context, c *Client) error { _, err := c.Ping(ctx); return err },
		} {
			t.Run(name+", "+call, func(t *testing.T) {
				t.Parallel()
				c, _ := serveTwo(t, make()...)
				if err := do(WithTimeout(t.Context(), 5*answering), c); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What changes something and has no key is not made twice, nor is a wait of which nothing comes yet. Who answered is
// called first the next time.
func TestOnlyOneIsAsked(t *testing.T) {
	c, asked := serveTwo(t, still, leads)
	_, err := c.Cancel(WithTimeout(t.Context(), 2*askNext), new(api.CancelRequest))
	if !Silent(err) || asked[1].Load() != 0 {
		t.Errorf("a cancel: %v, and the other was asked %d times", err, asked[1].Load())
	}
	c, asked = serveTwo(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * askNext)
		leads(w, r)
	}, leads)
	if _, err := c.Wait(t.Context(), api.JobRef{ID: 1, Index: -1}); err != nil || asked[1].Load() != 0 {
		t.Errorf("a wait: %v, and the other was asked %d times", err, asked[1].Load())
	}
	c, asked = serveTwo(t, still, leads)
	for range 2 {
		if _, err := c.Ping(WithTimeout(t.Context(), 5*answering)); err != nil {
			t.Error(err)
		}
	}
	if asked[0].Load() != 1 || asked[1].Load() != 2 || filepath.Base(c.Socket()) != "gangd2.sock" {
		t.Errorf("asked %d and %d times, answered at %s", asked[0].Load(), asked[1].Load(), c.Socket())
	}
}

// breaksOff gives part of an answer and ends.
func breaksOff(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// A controller ends while it gives a long answer, and then the next does not know yet who leads: the answer that the caller gets is
// whole, and nothing is in it twice.
func TestAnswersThatBreakOff(t *testing.T) {
	const (
		head  = `{"schema_version":1,"jobs":[{"job_id":1},{"job_id":4}`
		whole = `{"schema_version":1,"jobs":[{"job_id":1},{"job_id":4},{"job_id":5},{"job_id":12}]}`
		lines = "job_id\n1\n4\n5\n12\n"
		days  = `{"job":{"job_id":1}}` + "\n" + `{"job":{"job_id":4}}` + "\n"
		later = `{"job":{"job_id":5}}` + "\n" + `{"job":{"job_id":12}}` + "\n"
	)
	for name, a := range map[string]struct {
		parts []string
		whole string
		do    func(c *Client, got func(int64)) error
	}{
		"jobs as they come": {[]string{head, "", `{"schema_ver`}, whole, func(c *Client, got func(int64)) error {
			return c.EachJob(t.Context(), new(api.JobQuery), func(job json.RawMessage) error { got(jobID(job)); return nil })
		}},
		"jobs": {[]string{head, "", `{"schema_ver`}, whole, func(c *Client, got func(int64)) error {
			r, err := c.Jobs(t.Context(), new(api.JobQuery))
			for i := range r.Jobs {
				got(r.Jobs[i].JobID)
			}
			return err
		}},
		"lines": {[]string{"job_id\n1\n4", "", "job"}, lines, func(c *Client, got func(int64)) error {
			r, err := c.Jobs(t.Context(), &api.JobQuery{Lines: true})
			if err == nil {
				for i := range r.Jobs {
					got(r.Jobs[i].JobID)
				}
			}
			return err
		}},
		"history": {[]string{days, days + `{"job":`}, days + later, func(c *Client, got func(int64)) error {
			return c.History(t.Context(), new(api.HistoryQuery), func(d *api.JobDetail) error { got(d.Job.JobID); return nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var does []http.HandlerFunc
			for _, part := range a.parts {
				does = append(does, breaksOff(part), refuses(api.CodeNotLeader))
			}
			does = append(does, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, a.whole) })
			c, _ := serveTwo(t, inTurn(does...), refuses(api.CodeNotLeader))
			var got []int64
			if err := a.do(c, func(id int64) { got = append(got, id) }); err != nil || !slices.Equal(got, []int64{1, 4, 5, 12}) {
				t.Errorf("jobs %v, %v", got, err)
			}
		})
	}
	c, asked := serveTwo(t, breaksOff(`{"matched":`), leads)
	if _, err := c.Cancel(t.Context(), new(api.CancelRequest)); !restarting(err) || asked[0].Load()+asked[1].Load() != 1 {
		t.Errorf("what changes something and broke off: %v, and %d calls", err, asked[0].Load()+asked[1].Load())
	}
	enough := errors.New("enough")
	c, asked = serveTwo(t, breaksOff(head), leads)
	if err := c.EachJob(t.Context(), new(api.JobQuery), func(json.RawMessage) error { return enough }); !errors.Is(err, enough) || asked[0].Load() != 1 {
		t.Errorf("who has seen enough: %v, and %d calls", err, asked[0].Load())
	}
}
