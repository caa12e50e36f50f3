package jobhttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/jobapi"
)

// recorder is a backend that remembers what it was asked and answers as it is told.
type recorder struct {
	calls  []api.Call
	body   [sha256.Size]byte
	length int64
	give   []byte // of a get
	err    error  // after give
}

func (n *recorder) Call(_ context.Context, c *api.Call, body io.Reader, w io.Writer) (*api.CallResult, error) {
	n.calls = append(n.calls, *c)
	if body != nil {
		h := sha256.New()
		var err error
		if n.length, err = io.Copy(h, body); err != nil {
			return nil, err
		}
		h.Sum(n.body[:0])
	}
	if w != nil && len(n.give) > 0 {
		if _, err := w.Write(n.give); err != nil {
			return nil, err
		}
	}
	if n.err != nil {
		return nil, n.err
	}
	return &api.CallResult{Epoch: c.Epoch, Bytes: n.length, Complete: true, Size: 4}, nil
}

func (n *recorder) Info(c jobapi.Caller) Info {
	return Info{SchemaVersion: api.SchemaVersion, JobID: c.Job, Epoch: c.Epoch, Rank: c.Rank, Node: "n1", Size: 4}
}

var caller = jobapi.Caller{MemberKey: api.MemberKey{Job: 12, Epoch: 3}, Rank: 2, UID: 1000}

// serve is GANG_SOCKET in front of a backend; the client is one in the job.
func serve(t *testing.T, n *recorder) (*Client, *http.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "g2")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: Handler(n, func(context.Context) jobapi.Caller { return caller })}
	done := make(chan struct{})
	go func() { _ = srv.Serve(l); close(done) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	t.Setenv("GANG_SOCKET", path)
	c, err := NewClient()
	if err != nil {
		t.Fatal(err)
	}
	return c, c.http
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

func TestPut(t *testing.T) {
	n := &recorder{}
	c, _ := serve(t, n)
	for _, size := range []int{0, 1, 1 << 20, api.MaxCheckpointBytes} {
		data := noise(size)
		res, err := c.Put(t.Context(), "key", data)
		if err != nil || res.Bytes != int64(size) || res.Epoch != 3 || !res.Complete {
			t.Fatalf("%d bytes: %+v, %v", size, res, err)
		}
		if n.body != sha256.Sum256(data) {
			t.Errorf("%d bytes came as others", size)
		}
	}
	last := n.calls[len(n.calls)-1]
	if last.MemberKey != caller.MemberKey || last.Rank != 2 || last.Put == nil || last.Put.Key != "key" || last.Get != nil || last.Barrier != nil {
		t.Errorf("asked for %+v", last)
	}
}

const tooLarge = `{"code":"too_large","message":"the checkpoint is larger than the 16 MiB that one rank may store","hint":"write large state to files in $GANG_CHECKPOINT_DIR"}` + "\n"

// One byte too many is refused: before anything is read where the length is said, else when
// the byte comes.
func TestPutTooLarge(t *testing.T) {
	n := &recorder{}
	_, h := serve(t, n)
	h.Transport.(*http.Transport).ExpectContinueTimeout = 10 * time.Second
	for _, length := range []int64{api.MaxCheckpointBytes + 1, -1} {
		n.calls = nil
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://gangd/v1/checkpoint", io.LimitReader(zeros{}, api.MaxCheckpointBytes+1))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		// A client that asks first sends nothing that would not be taken.
		req.Header.Set("Expect", "100-continue")
		resp, err := h.Do(req)
		if err != nil {
			t.Fatalf("length %d: %v", length, err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 413 || string(b) != tooLarge {
			t.Errorf("length %d: %d %s", length, resp.StatusCode, b)
		}
		if asked := len(n.calls); length > 0 && asked != 0 || length < 0 && asked != 1 {
			t.Errorf("length %d: the node was asked %d times", length, asked)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestGet(t *testing.T) {
	n := &recorder{give: noise(1 << 20)}
	c, _ := serve(t, n)
	got, err := c.Get(t.Context(), -1)
	if err != nil || !bytes.Equal(got, n.give) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if _, err := c.Get(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if own, other := n.calls[0].Get, n.calls[1].Get; own.Rank != 2 || other.Rank != 0 {
		t.Errorf("ranks %d and %d, want 2 and 0", own.Rank, other.Rank)
	}
	// What breaks off in the middle is never taken for the whole.
	n.err = api.Errorf(api.CodeInternal, "the disk")
	if got, err := c.Get(t.Context(), -1); err == nil || api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	n.give = nil
	if _, err := c.Get(t.Context(), -1); err == nil || err.Error() != "the disk" {
		t.Errorf("err %v", err)
	}
}

// Every refusal comes with the status of its code, as the API's error.
func TestRefusals(t *testing.T) {
	n := &recorder{}
	c, h := serve(t, n)
	stale := &api.Error{Code: api.CodeStaleEpoch, Message: "epoch 2 of job 12 is over", Hint: "the current one is 3; what an earlier one saves must not replace it"}
	for _, e := range []*api.Error{stale, api.Errorf(api.CodeNotFound, "none"), api.Errorf(api.CodeUnavailable, "starting"), api.Errorf(api.CodeDiskFull, "full"), api.Errorf(api.CodePermission, "no")} {
		n.err = e
		_, err := c.Put(t.Context(), "", []byte("x"))
		var got *api.Error
		if !errors.As(err, &got) || *got != *e {
			t.Errorf("%s: got %v", e.Code, err)
		}
	}
	n.err = stale
	const staleText = `{"code":"stale_epoch","message":"epoch 2 of job 12 is over","hint":"the current one is 3; what an earlier one saves must not replace it"}` + "\n"
	for _, r := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"PUT", "/v1/checkpoint", 409, staleText},
		{"POST", "/v1/checkpoint", 409, staleText},
		{"GET", "/v1/checkpoint", 409, staleText},
		{"POST", "/v1/barrier?name=x", 409, staleText},
		{"GET", "/v1/ready", 409, staleText},
		{"GET", "/v1/checkpoint?rank=-1", 400, `{"code":"invalid","message":"rank \"-1\" is not a number from 0"}` + "\n"},
		{"GET", "/v1/checkpoint?rank=x", 400, `{"code":"invalid","message":"rank \"x\" is not a number from 0"}` + "\n"},
		{"POST", "/v1/barrier", 400, `{"code":"invalid","message":"a barrier needs a name of 1 to 128 bytes"}` + "\n"},
		{"POST", "/v1/barrier?name=" + strings.Repeat("x", 129), 400, `{"code":"invalid","message":"a barrier needs a name of 1 to 128 bytes"}` + "\n"},
		{"GET", "/v1/ready?role=A+B", 400, `{"code":"invalid","message":"\"A B\" is not the name of a role"}` + "\n"},
		{"GET", "/v2/job", 404, `{"code":"not_found","message":"no call GET /v2/job here"}` + "\n"},
		{"GET", "/v1/job", 200, `{"schema_version":1,"job_id":12,"name":"","user":"","node":"n1","epoch":3,"restart_count":0,"rank":2,"size":4}` + "\n"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, "http://gangd"+r.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != r.status || string(b) != r.body || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %.40s: %d %s %s", r.method, r.path, resp.StatusCode, resp.Header.Get("Content-Type"), b)
		}
	}
	n.err = errors.New("something else")
	if _, err := c.Put(t.Context(), "", nil); api.CodeOf(err) != api.CodeInternal || err.Error() != "something else" {
		t.Errorf("err %v", err)
	}
}

func TestBarrierReadyAndJob(t *testing.T) {
	n := &recorder{}
	c, _ := serve(t, n)
	if res, err := c.Barrier(t.Context(), "k", "a b/ü"); err != nil || res.Size != 4 {
		t.Fatalf("%+v, %v", res, err)
	}
	if b := n.calls[0].Barrier; b == nil || b.Name != "a b/ü" || b.Key != "k" {
		t.Errorf("barrier %+v", b)
	}
	for i, role := range []string{"", "data-loader"} {
		if _, err := c.Ready(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		if r := n.calls[1+i].Ready; r == nil || r.Role != role {
			t.Errorf("ready %+v", r)
		}
	}
	if info, err := c.Job(t.Context()); err != nil || info.JobID != 12 || info.Rank != 2 || info.Epoch != 3 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Without a socket, or with nobody behind it, the error says which of the two.
func TestNobodyThere(t *testing.T) {
	t.Setenv("GANG_SOCKET", "")
	if _, err := NewClient(); err == nil || err.Error() != "GANG_SOCKET is not set: this runs inside a job only; start it from the script that gsubmit is given, or with srun" {
		t.Errorf("err %v", err)
	}
	t.Setenv("GANG_SOCKET", filepath.Join(t.TempDir(), "none"))
	c, err := NewClient()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Job(t.Context()); api.CodeOf(err) != api.CodeUnavailable || !strings.HasSuffix(err.Error(), "no such file or directory") {
		t.Errorf("err %v", err)
	}
	why := errors.New("time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := c.Job(ctx); !errors.Is(err, why) {
		t.Errorf("err %v", err)
	}
}

// A process of another user is told so, and does not try again.
func TestForeignUser(t *testing.T) {
	for name, err := range map[string]error{
		"not let in": &url.Error{Op: "Put", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}},
		"answered":   answered(t, jobapi.Foreign),
	} {
		got := broken(t.Context(), err)
		if e, ok := err.(*api.Error); ok { // as the answer says it
			got = e
		}
		if api.CodeOf(got) != api.CodePermission || got.Error() != "GANG_SOCKET is for processes of the job's own user, and for root's; start it as the user who submitted the job, without sudo or su" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// answered is what the client makes of a fixed answer.
func answered(t *testing.T, answer []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "g0")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write(answer)
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	t.Setenv("GANG_SOCKET", path)
	c, err := NewClient()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Job(t.Context())
	return err
}
