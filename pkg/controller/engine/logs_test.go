package engine

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// fakeFiles is a node's disk: a followed read goes on until its context ends.
type fakeFiles struct {
	mu   sync.Mutex
	text string
}

func (f *fakeFiles) set(s string) {
	f.mu.Lock()
	f.text = s
	f.mu.Unlock()
}

func (f *fakeFiles) ReadLog(ctx context.Context, _ string, q api.LogRead, w io.Writer) error {
	at := q.Offset
	if at < 0 {
		f.mu.Lock()
		at = max(0, int64(len(f.text))+at)
		f.mu.Unlock()
		w.(*copyCounter).Began(at)
	}
	for {
		f.mu.Lock()
		text := f.text
		f.mu.Unlock()
		if int64(len(text)) > at {
			n, err := io.WriteString(w, text[at:])
			if at += int64(n); err != nil {
				return err
			}
		}
		if !q.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Millisecond):
		}
	}
}

func nothing() {}

// attemptOf plays one attempt of a job of one rank on n1 from its preparation, in which a
// node opens the output, to its exit.
func (r *rig) attemptOf(t *testing.T, id int64, epoch, code int, prepare, during func()) {
	t.Helper()
	r.attemptAt(t, id, epoch, code, 0, prepare, during)
}

// attemptAt is of a job whose output has start bytes already.
func (r *rig) attemptAt(t *testing.T, id int64, epoch, code int, start int64, prepare, during func()) {
	t.Helper()
	k := api.MemberKey{Job: id, Epoch: epoch}
	say := func(a api.MemberActual) {
		a.MemberKey = k
		if _, err := r.Do(t.Context(), gang.NodeReport{Node: "n1", Actual: api.Actual{Members: []api.MemberActual{a}}}); err != nil {
			t.Fatal(err)
		}
	}
	for r.state(id) != api.JobReserved {
		time.Sleep(time.Millisecond) // its back-off
	}
	prepare()
	say(api.MemberActual{Phase: api.PhaseReady, Port: 20000})
	during()
	ended := []api.RankActual{{PID: epoch, Exited: true, ExitCode: code, OutStart: start}}
	say(api.MemberActual{Phase: api.PhaseRunning, Ranks: ended})
	say(api.MemberActual{Phase: api.PhaseStopped, Ranks: ended})
}

// cutFiles is a node whose daemon is restarted in the middle of the first read.
type cutFiles struct {
	fakeFiles
	reads int
	cut   func()
}

func (c *cutFiles) ReadLog(ctx context.Context, node string, q api.LogRead, w io.Writer) error {
	if c.reads++; c.reads > 1 {
		return c.fakeFiles.ReadLog(ctx, node, q, w)
	}
	q.Follow = false
	if err := c.fakeFiles.ReadLog(ctx, node, q, w); err != nil {
		return err
	}
	c.cut()
	return api.Errorf(api.CodeUnavailable, "node n1: session ended")
}

func TestFollowAcrossARestartOfTheNodesDaemon(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id := r.submit("k", spec(1))
	cut := make(chan struct{})
	files := &cutFiles{cut: func() { close(cut) }}
	var out bytes.Buffer
	followed := make(chan error, 1)
	r.attemptOf(t, id, 1, 0, nothing, func() {
		files.set("one\n")
		go func() {
			followed <- r.Log(t.Context(), r.view.job(id), &api.LogQuery{Follow: true, Rank: -1}, files, &out)
		}()
		<-cut
		files.set("one\ntwo\n")
		running := []api.MemberActual{{MemberKey: api.MemberKey{Job: id, Epoch: 1}, Phase: api.PhaseRunning}}
		h := &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", CPUs: 4, MemoryBytes: 1 << 34, Members: running}
		if _, err := r.NodeHello(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	if out.String() != "one\ntwo\n" {
		t.Errorf("followed %q", out.String())
	}
}

// Who follows a log of an attempt whose node went away, and which ended before the node came back, reads the rest when it is back.
func TestFollowUntilAnEndThatWasNotSeen(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id := r.submit("k", spec(1))
	cut := make(chan struct{})
	files := &cutFiles{cut: func() { close(cut) }}
	var out bytes.Buffer
	followed := make(chan error, 1)
	r.attemptOf(t, id, 1, 0, nothing, func() {
		files.set("one\n")
		go func() {
			followed <- r.Log(t.Context(), r.view.job(id), &api.LogQuery{Follow: true, Rank: -1}, files, &out)
		}()
		<-cut
		files.set("one\ntwo\n")
	})
	if err := <-followed; err != nil || out.String() != "one\ntwo\n" {
		t.Errorf("followed %q, %v", out.String(), err)
	}
}

// The last lines of a log that is followed are its end, and what comes after it.
func TestFollowTheTail(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id := r.submit("k", spec(1))
	var files fakeFiles
	var out bytes.Buffer
	r.attemptOf(t, id, 1, 0, nothing, func() { files.set("one\ntwo\n") })
	if err := r.Log(t.Context(), r.view.job(id), &api.LogQuery{Follow: true, Rank: -1, Tail: 4}, &files, &out); err != nil || out.String() != "two\n" {
		t.Errorf("followed %q, %v", out.String(), err)
	}
}

// An attempt goes on in the file of the one before on the same node, and on another where disks are shared.
func TestGoesOn(t *testing.T) {
	before := place{node: "n1", path: "o", start: 4}
	for _, c := range []struct {
		p    place
		mode string
		want bool
	}{
		{place{node: "n1", path: "o", start: 9}, "append", true},
		{place{node: "n1", path: "o"}, "append", true},
		{place{node: "n1", path: "o", start: 9}, "truncate", false},
		{place{node: "n1", path: "p", start: 9}, "append", false},
		{place{node: "n2", path: "o", start: 4}, "append", true},
		{place{node: "n2", path: "o", start: 3}, "append", false},
		{place{node: "n2", path: "o", start: 9, apart: true}, "append", false},
	} {
		if got := c.p.goesOn(before, c.mode); got != c.want {
			t.Errorf("%+v, %s: %t", c.p, c.mode, got)
		}
	}
	if (place{node: "n2", path: "o"}).goesOn(place{node: "n1", path: "o"}, "append") {
		t.Error("two empty files of one name on two nodes pass for one")
	}
}

func TestFollowAcrossARestart(t *testing.T) {
	for mode, want := range map[string]string{"append": "one\ntwo\n", "truncate": "one\ntwo\n", "append, and the first read sees the second": "one\ntwo\n"} {
		t.Run(mode, func(t *testing.T) {
			mode, early := strings.CutSuffix(mode, ", and the first read sees the second")
			r := newRig(t, disk.Open(t))
			r.node("n1", 4)
			s := spec(1)
			retries := 1
			s.OpenMode, s.MaxRetries = mode, &retries
			id := r.submit("k", s)
			var files fakeFiles
			var out bytes.Buffer
			followed := make(chan error, 1)
			go func() {
				followed <- r.Log(t.Context(), r.view.job(id), &api.LogQuery{Follow: true, Rank: -1}, &files, &out)
			}()
			first := "one\n"
			if early {
				first = "one\ntwo\n"
			}
			r.attemptOf(t, id, 1, 3, func() { files.set(first) }, nothing)
			second, start := "one\ntwo\n", int64(len("one\n"))
			if mode == "truncate" {
				second, start = "two\n", 0
			}
			r.attemptAt(t, id, 2, 0, start, func() { files.set(second) }, nothing)
			if err := <-followed; err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("followed %q, want %q", out.String(), want)
			}
		})
	}
}

// positions collects what was copied, and where each byte is from.
type positions struct {
	bytes.Buffer
	at  api.LogPosition
	all []api.LogPosition // of each byte
}

func (p *positions) At(at api.LogPosition) { p.at = at }

func (p *positions) Write(b []byte) (int, error) {
	for range b {
		p.all = append(p.all, p.at)
		p.at.Offset++
	}
	return p.Buffer.Write(b)
}

// A log of three attempts in one file, of which the second found nothing to append to: an epoch that
// never started is no attempt, each attempt has its own part, and a follow that broke off at any byte
// goes on there without loss or repeat.
func TestAttemptsAndPositions(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	s := spec(1)
	retries := 2
	s.MaxRetries = &retries
	id := r.submit("k", s)
	var files fakeFiles
	files.set("one\ntwo\n")
	r.attemptAt(t, id, 1, 3, 0, nothing, nothing)
	for r.state(id) != api.JobReserved { // its second epoch
		time.Sleep(time.Millisecond)
	}
	refused := api.MemberActual{MemberKey: api.MemberKey{Job: id, Epoch: 2}, Phase: api.PhaseRefused, Refusal: &api.Refusal{Text: "no"}}
	if _, err := r.Do(t.Context(), gang.NodeReport{Node: "n1", Actual: api.Actual{Members: []api.MemberActual{refused},
		Gone: []api.MemberKey{{Job: id, Epoch: 2}}}}); err != nil {
		t.Fatal(err)
	}
	r.attemptAt(t, id, 3, 3, 4, nothing, nothing)
	r.attemptAt(t, id, 4, 0, 8, func() { files.set("one\ntwo\nthree\n") }, nothing)
	ask := func(q api.LogQuery, w io.Writer) string {
		q.Rank = -1
		if err := r.Log(t.Context(), r.view.job(id), &q, &files, w); err != nil {
			return err.Error()
		}
		return ""
	}
	for attempt, want := range map[int]string{0: "one\ntwo\nthree\n", 1: "one\n", 2: "two\n", 3: "three\n"} {
		var out bytes.Buffer
		if err := ask(api.LogQuery{Attempt: attempt}, &out); err != "" || out.String() != want {
			t.Errorf("attempt %d is %q, want %q, %s", attempt, out.String(), want, err)
		}
	}
	if got := ask(api.LogQuery{Attempt: 4}, io.Discard); got != "job 1 has no attempt 4: it has started 3 times; gctl show job 1 lists them" {
		t.Errorf("attempt 4: %s", got)
	}
	var whole positions
	if err := ask(api.LogQuery{Follow: true, From: api.LogPosition{Epoch: 1}}, &whole); err != "" {
		t.Fatal(err)
	}
	for i, at := range whole.all {
		var rest bytes.Buffer
		if err := ask(api.LogQuery{Follow: true, From: at}, &rest); err != "" || rest.String() != whole.String()[i:] {
			t.Errorf("from byte %d (%+v): %q, want %q, %s", i, at, rest.String(), whole.String()[i:], err)
		}
	}
}

// TestRanksWithFilesOfTheirOwn: several ranks that write to one file are read once.
func TestRanksWithFilesOfTheirOwn(t *testing.T) {
	r := newRig(t, disk.Open(t))
	for output, want := range map[string][]int{"": {0, 1, 2}, "o-%j.%t": {0, 1, 2}, "o-%j": {0}, "o-%N": {0, 1, 2}} {
		s := spec(3)
		s.Output = output
		id := r.submit("key"+output, s)
		if got := r.LogRanks(r.view.job(id), false); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", output, got, want)
		}
	}
	s := spec(3)
	s.Launch = api.LaunchBatch
	if got := r.LogRanks(r.view.job(r.submit("batch", s)), false); !slices.Equal(got, []int{0}) {
		t.Errorf("batch: %v", got)
	}
}
