package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/store"
)

func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func mustPut(t *testing.T, s store.Store, job int64, epoch, rank int, key string, data []byte) store.CheckpointSet {
	t.Helper()
	set, n, err := s.PutCheckpoint(context.Background(), api.MemberKey{Job: job, Epoch: epoch}, rank, key, bytes.NewReader(data))
	if err != nil || n != int64(len(data)) {
		t.Fatalf("put of %d bytes: %d, %v", len(data), n, err)
	}
	return set
}

// stored is the checkpoint that a rank would be handed, nil for none.
func stored(t *testing.T, s store.Store, job int64, epoch, rank int) []byte {
	t.Helper()
	r, size, err := s.Checkpoint(context.Background(), api.MemberKey{Job: job, Epoch: epoch}, rank)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil || int64(len(b)) != size {
		t.Fatalf("read %d of %d bytes: %v", len(b), size, err)
	}
	return append([]byte{}, b...)
}

func testCheckpoints(t *testing.T, p Place) {
	s := mustOpen(t, p)
	before := s.Lineage()
	sizes := []int{0, 1, store.CheckpointPiece, store.CheckpointPiece + 1, 1 << 20, api.MaxCheckpointBytes}
	for i, n := range sizes {
		want := store.CheckpointSet{Ranks: 1, Bytes: int64(n)}
		if set := mustPut(t, s, int64(i+1), 1, 0, "", noise(byte(i), n)); set != want {
			t.Errorf("set %+v, want %+v", set, want)
		}
	}
	if s.Lineage() != before {
		t.Error("a checkpoint counted as a commit")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	for i, n := range sizes {
		if got := stored(t, s, int64(i+1), 1, 0); got == nil || !bytes.Equal(got, noise(byte(i), n)) {
			t.Errorf("%d bytes did not come back: %d", n, len(got))
		}
	}
	mustPut(t, s, 3, 4, 1, "", []byte("later"))
	if err := s.PruneCheckpoints(context.Background(), 3, []int{4}); err != nil {
		t.Fatal(err)
	}
	if stored(t, s, 3, 1, 0) != nil || string(stored(t, s, 3, 4, 1)) != "later" || stored(t, s, 4, 1, 0) == nil {
		t.Error("the wrong checkpoints were pruned")
	}
	if err := s.PruneCheckpoints(context.Background(), 3, nil); err != nil {
		t.Fatal(err)
	}
	jobs, err := s.CheckpointJobs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "jobs with checkpoints", jobs, []int64{1, 2, 4, 5, 6})
	mustVerify(t, s)
}

func testCheckpointsInStep(t *testing.T, p Place) {
	s := mustOpen(t, p)
	put := func(rank, step int) store.CheckpointSet {
		return mustPut(t, s, 9, 2, rank, "", fmt.Appendf(nil, "r%d step %d", rank, step))
	}
	put(0, 1)
	if set := put(1, 1); set.Ranks != 2 || set.Bytes != int64(len("r0 step 1")+len("r1 step 1")) {
		t.Errorf("set %+v", set)
	}
	put(0, 2) // rank 1 is stopped before its second
	if a, b := string(stored(t, s, 9, 2, 0)), string(stored(t, s, 9, 2, 1)); a != "r0 step 1" || b != "r1 step 1" {
		t.Errorf("one step apart: %q and %q", a, b)
	}
	put(1, 2)
	if a, b := string(stored(t, s, 9, 2, 0)), string(stored(t, s, 9, 2, 1)); a != "r0 step 2" || b != "r1 step 2" {
		t.Errorf("in step again: %q and %q", a, b)
	}
	put(0, 3)
	put(0, 4) // not in step: each at its own pace
	if a, b := string(stored(t, s, 9, 2, 0)), string(stored(t, s, 9, 2, 1)); a != "r0 step 4" || b != "r1 step 2" {
		t.Errorf("at their own pace: %q and %q", a, b)
	}
	mustPut(t, s, 9, 3, 0, "k1", []byte("once"))
	mustPut(t, s, 9, 3, 0, "k1", []byte("once"))
	mustPut(t, s, 9, 3, 1, "k'2", []byte("other"))
	if got := string(stored(t, s, 9, 3, 0)); got != "once" {
		t.Errorf("a repeated put counted twice: %q", got)
	}
}

// failing gives some bytes and then an error.
type failing struct{ left int }

func (f *failing) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errors.New("line cut")
	}
	n := min(f.left, len(p))
	f.left -= n
	return n, nil
}

func testCheckpointBroken(t *testing.T, p Place) {
	s := mustOpen(t, p)
	k := api.MemberKey{Job: 1, Epoch: 1}
	mustPut(t, s, 1, 1, 0, "", []byte("good"))
	if _, _, err := s.PutCheckpoint(context.Background(), k, 0, "", &failing{left: 2*store.CheckpointPiece + 5}); err == nil || !strings.Contains(err.Error(), "line cut") {
		t.Errorf("err %v", err)
	}
	_, _, err := s.PutCheckpoint(context.Background(), k, 0, "", bytes.NewReader(make([]byte, api.MaxCheckpointBytes+1)))
	if api.CodeOf(err) != api.CodeTooLarge || err.Error() != api.TooLarge().Error() {
		t.Errorf("err %v", err)
	}
	if got := string(stored(t, s, 1, 1, 0)); got != "good" {
		t.Errorf("stored %q", got)
	}
}
