package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
)

// frozen is a controller that was stopped: the kernel takes its calls, nobody answers.
func frozen(t *testing.T) *Client {
	t.Helper()
	socket, _ := listen(t)
	return NewAt(socket)
}

// short is for who never answers; answering is for who does, in well under a millisecond.
const (
	short     = 50 * time.Millisecond
	answering = 2 * time.Second
)

// Every call to a frozen controller ends, with what was waited for and how to wait longer.
func TestFrozenController(t *testing.T) {
	c, ref := frozen(t), api.JobRef{ID: 1, Index: -1}
	big := &api.SubmitRequest{Key: "k", Spec: api.Spec{Script: make([]byte, 4<<20)}} // more than a socket holds
	for name, call := range map[string]func(ctx context.Context) error{
		"ping":   func(ctx context.Context) error { _, err := c.Ping(ctx); return err },
		"list":   func(ctx context.Context) error { _, err := c.Jobs(ctx, &api.JobQuery{Lines: true}); return err },
		"show":   func(ctx context.Context) error { _, err := c.Job(ctx, ref); return err },
		"submit": func(ctx context.Context) error { _, err := c.Submit(ctx, big); return err },
		"cancel": func(ctx context.Context) error { _, err := c.Cancel(ctx, &api.CancelRequest{}); return err },
		"wait":   func(ctx context.Context) error { _, err := c.Wait(ctx, ref); return err },
		"step":   func(ctx context.Context) error { _, err := c.BeginStep(ctx, ref, &api.StepRequest{}); return err },
		"log":    func(ctx context.Context) error { return c.Log(ctx, &api.LogQuery{Ref: ref}, io.Discard) },
		"history": func(ctx context.Context) error {
			return c.History(ctx, &api.HistoryQuery{}, func(*api.JobDetail) error { return nil })
		},
		"events": func(ctx context.Context) error {
			return c.FollowEvents(ctx, ref, 0, func(api.Event) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := call(WithTimeout(t.Context(), short))
			var u *UnreachableError
			want := "the controller at " + c.Socket() + " gave no answer within 50 ms: it hangs or is overloaded (gctl ping); --timeout=TIME or GANG_TIMEOUT=TIME waits longer"
			if !errors.As(err, &u) || !Silent(err) || err.Error() != want {
				t.Errorf("%v", err)
			}
		})
	}
}

// A call that lasts goes on for as long as the controller answers others, and no longer: also in
// the middle of a stream.
func TestLastingCallAsksBesideIt(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	stuck := make(chan struct{})
	left := make(chan struct{})
	defer close(left)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/ping" {
			if asked.Add(1) > 1 {
				<-left // it hangs from now on
			}
			_, _ = io.WriteString(w, "{}")
			return
		}
		_, _ = io.WriteString(w, ": after 7\n\n")
		_ = http.NewResponseController(w).Flush()
		close(stuck)
		<-left
	})
	err := c.FollowEvents(WithTimeout(t.Context(), answering), api.JobRef{}, -1, func(api.Event) error { return nil })
	<-stuck
	if asked.Load() != 2 || !Silent(err) {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

// What is done to very many jobs takes its time: for as long as the controller answers others it is waited for.
func TestWhatIsDoneToManyTakesItsTime(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/ping" {
			time.Sleep(answering * 3 / 2)
		}
		_, _ = io.WriteString(w, "{}")
	})
	for name, call := range map[string]func(ctx context.Context) error{
		"cancel": func(ctx context.Context) error { _, err := c.Cancel(ctx, new(api.CancelRequest)); return err },
		"hold":   func(ctx context.Context) error { _, err := c.Act(ctx, "hold", new(api.ActionRequest)); return err },
		"update": func(ctx context.Context) error { _, err := c.Update(ctx, new(api.UpdateRequest)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := call(WithTimeout(t.Context(), answering)); err != nil {
				t.Error(err)
			}
		})
	}
}

// An answer that comes slowly, but comes, is no silence.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 6 {
			time.Sleep(answering / 5) // slower in all than the time-out
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	})
	var out bytes.Buffer
	b, err := c.Script(WithTimeout(t.Context(), answering), api.JobRef{ID: 1, Index: -1})
	if out.Write(b); err != nil || out.String() != "xxxxxx" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// The end of the caller's context is never taken for silence, and never missed.
func TestContextEndsASilentCall(t *testing.T) {
	c := frozen(t)
	gone := errors.New("gone")
	for range 50 {
		ctx, stop := context.WithCancelCause(WithTimeout(t.Context(), 0))
		go stop(gone)
		if _, err := c.Wait(ctx, api.JobRef{ID: 1, Index: -1}); !errors.Is(err, gone) {
			t.Fatalf("%v", err)
		}
	}
}

// A stream whose controller can't be reached any more through the relay ends.
func TestRelayWithoutController(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	defer close(left)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/ping" {
			<-left
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":"unavailable","message":"away"}`)
	})
	if _, err := c.Wait(WithTimeout(t.Context(), answering), api.JobRef{ID: 1, Index: -1}); err == nil || !strings.Contains(err.Error(), "away") || !restarting(err) {
		t.Errorf("%v", err)
	}
}

// A connection that is not made in time is silence too.
func TestDialThatTakesTooLong(t *testing.T) {
	if _, err := frozen(t).Ping(WithTimeout(t.Context(), time.Nanosecond)); !Silent(err) {
		t.Errorf("%v", err)
	}
}

func TestTimeoutOfEnvironment(t *testing.T) {
	c := frozen(t)
	t.Setenv("GANG_TIMEOUT", "1ms")
	if _, err := c.Ping(t.Context()); !Silent(err) {
		t.Errorf("%v", err)
	}
	t.Setenv("GANG_TIMEOUT", "soon")
	if _, err := c.Ping(t.Context()); err == nil || err.Error() != `GANG_TIMEOUT="soon": want a time of at most 31 days, as in 30s or 2m, or off` {
		t.Errorf("%v", err)
	}
	var op *net.OpError
	t.Setenv("GANG_TIMEOUT", "off")
	if _, err := NewAt(c.Socket() + "x").Ping(t.Context()); !errors.As(err, &op) {
		t.Errorf("%v", err)
	}
}
