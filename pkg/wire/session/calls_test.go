package session

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"gangd/pkg/api"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// connected is a rig with one node whose session is open.
func connected(t *testing.T, call func(ctx context.Context, c *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error)) (*rig, *Client) {
	r := newRig(t, "")
	r.handler.call = call
	a := newFakeAgent("n1", "s1")
	c := r.dial(a)
	waitFor(t, "a session", func() bool { return c.now.Load() != nil }) // the first set comes just before
	return r, c
}

func TestCallCarriesBytesBothWays(t *testing.T) {
	var kept []byte
	_, c := connected(t, func(_ context.Context, call *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error) {
		if call.Put != nil {
			b, err := io.ReadAll(in)
			kept = b
			return &api.CallResult{Epoch: call.Epoch, Bytes: int64(len(b))}, err
		}
		_, err := out.Write(kept)
		return &api.CallResult{Bytes: int64(len(kept))}, err
	})
	for _, size := range []int{0, 1, pieceBytes, 3*api.StreamWindow + 17} {
		data := noise(size)
		res, err := c.Call(t.Context(), &api.Call{MemberKey: key(7, 2), Rank: 3, Put: &api.CheckpointPut{}}, bytes.NewReader(data), nil)
		if err != nil || res.Bytes != int64(size) || res.Epoch != 2 {
			t.Fatalf("put of %d: %+v, %v", size, res, err)
		}
		var back bytes.Buffer
		if res, err = c.Call(t.Context(), &api.Call{Get: &api.CheckpointGet{}}, nil, &back); err != nil || res.Bytes != int64(size) {
			t.Fatalf("get of %d: %+v, %v", size, res, err)
		}
		if !bytes.Equal(back.Bytes(), data) {
			t.Fatalf("%d bytes came back as %d others", size, back.Len())
		}
	}
}

// A handler that refuses early stops the sender, and its own words are what the caller hears.
func TestCallRefusedEarly(t *testing.T) {
	_, c := connected(t, func(context.Context, *api.Call, io.Reader, io.Writer) (*api.CallResult, error) {
		return nil, api.Errorf(api.CodeStaleEpoch, "epoch 1 is over")
	})
	_, err := c.Call(t.Context(), &api.Call{Put: &api.CheckpointPut{}}, bytes.NewReader(noise(8*api.StreamWindow)), nil)
	if err == nil || err.Error() != "epoch 1 is over" || api.CodeOf(err) != api.CodeStaleEpoch {
		t.Fatalf("err %v", err)
	}
}

// A handler that does not read holds its sender back at the window.
func TestCallWindow(t *testing.T) {
	release := make(chan struct{})
	_, c := connected(t, func(_ context.Context, _ *api.Call, in io.Reader, _ io.Writer) (*api.CallResult, error) {
		<-release
		n, err := io.Copy(io.Discard, in)
		return &api.CallResult{Bytes: n}, err
	})
	src := &countingReader{left: 4 * api.StreamWindow}
	done := make(chan *api.CallResult, 1)
	go func() {
		res, _ := c.Call(context.Background(), &api.Call{Put: &api.CheckpointPut{}}, src, nil)
		done <- res
	}()
	time.Sleep(5 * beatEvery) // the session lives on meanwhile
	if got := 4*api.StreamWindow - src.remaining(); got > api.StreamWindow+2*pieceBytes {
		t.Errorf("%d bytes were read ahead of a window of %d", got, api.StreamWindow)
	}
	close(release)
	if res := get(t, "result", done); res == nil || res.Bytes != 4*api.StreamWindow {
		t.Fatalf("result %+v", res)
	}
}

func TestCallEndsWithItsCallerAndItsSession(t *testing.T) {
	seen := make(chan error, 2)
	_, c := connected(t, func(ctx context.Context, _ *api.Call, _ io.Reader, _ io.Writer) (*api.CallResult, error) {
		seen <- nil
		<-ctx.Done()
		seen <- ctx.Err()
		return nil, context.Cause(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := c.Call(ctx, &api.Call{Barrier: &api.Barrier{Name: "x"}}, nil, nil); done <- err }()
	get(t, "call", seen)
	cancel()
	if err := get(t, "end of the call", done); err != context.Canceled {
		t.Errorf("err %v", err)
	}
	get(t, "cancel at the controller", seen)

	go func() {
		_, err := c.Call(context.Background(), &api.Call{Barrier: &api.Barrier{Name: "x"}}, nil, nil)
		done <- err
	}()
	get(t, "call", seen)
	c.now.Load().link.end(errTest)
	if err := get(t, "end of the call", done); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("err %v", err)
	}
	get(t, "end at the controller", seen)
}

func TestCallWithoutASession(t *testing.T) {
	c := NewClient(Options{Agent: newFakeAgent("n1", "s"), Log: quiet()})
	_, err := c.Call(t.Context(), &api.Call{}, nil, nil)
	if err == nil || err.Error() != "the node has no connection to the controller; try again in a second" {
		t.Errorf("err %v", err)
	}
}

func TestNotesArrive(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "s1")
	a.notes = []api.MemberNote{{MemberKey: key(1, 1), Ranks: []api.RankNote{{Rank: 0, Status: "step 3"}}}}
	r.dial(a).Wake()
	if n := get(t, "notes", r.handler.notes); n[0].Ranks[0].Status != "step 3" {
		t.Errorf("notes %+v", n)
	}
}

// countingReader gives zeros and says how many are left.
type countingReader struct {
	mu   sync.Mutex
	left int
}

func (r *countingReader) remaining() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

func (r *countingReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.left)
	r.left -= n
	return n, nil
}

// A body that can't be read to its end is no call that went well: its caller hears why, and the controller that it is over.
func TestCallOfABodyThatBreaksOff(t *testing.T) {
	seen := make(chan error, 1)
	_, c := connected(t, func(_ context.Context, _ *api.Call, in io.Reader, _ io.Writer) (*api.CallResult, error) {
		_, err := io.ReadAll(in)
		seen <- err
		return nil, err
	})
	body := io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(errTest))
	if _, err := c.Call(t.Context(), &api.Call{Put: &api.CheckpointPut{}}, body, nil); err != errTest {
		t.Errorf("the caller hears %v", err)
	}
	if err := get(t, "end at the controller", seen); err == nil {
		t.Error("the controller takes a half for the whole")
	}
}
