package engine

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/notify"
	"gangd/pkg/lab/disk"
)

// What a job used is written behind the output of its last attempt, as its user. A node that is away is tried again;
// what the file says no to is final.
func TestReport(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.Sender = &notify.Sender{Log: o.Log} })
	type call struct {
		node string
		a    api.LogAppend
	}
	calls := make(chan call, 16)
	answers := make(chan error, 16)
	r.appendLog = func(node string, a api.LogAppend) error {
		calls <- call{node, a}
		return <-answers
	}
	r.node("n1", 4)
	s := spec(1)
	s.Report, s.Output = true, "out-%j-%r"
	one := 1
	s.MaxRetries = &one
	next := func() call {
		t.Helper()
		select {
		case c := <-calls:
			return c
		case <-time.After(time.Minute):
			t.Fatal("nothing was written")
			return call{}
		}
	}
	left := func(want int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			all, err := r.outbox.Letters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d letters are left, want %d", len(all), want)
			}
		}
	}

	id := r.submit("a", s)
	r.attemptOf(t, id, 1, 3, nothing, nothing)
	r.attemptOf(t, id, 2, 0, nothing, nothing)
	c := next()
	if c.node != "n1" || c.a.Path != "/tmp/out-1-1" || c.a.User != "ada" || c.a.UID != 1000 || c.a.GID != 1000 ||
		!strings.HasPrefix(c.a.Text, "--- what job 1 used, by gangd (gacct -e 1) ---\nJob 1 job, attempt 2: completed, ") {
		t.Errorf("%+v", c)
	}
	answers <- api.Errorf(api.CodeUnavailable, "node n1 is not connected")
	if again := next(); again != c {
		t.Errorf("then %+v", again)
	}
	left(1)
	answers <- nil
	left(0)

	for i, code := range []api.Code{api.CodeNotFound, api.CodePermission, api.CodeConflict} {
		id := r.submit(string(code), s)
		r.attemptOf(t, id, 1, 0, nothing, nothing)
		next()
		answers <- api.Errorf(code, "no %d", i)
		left(0)
	}
}
