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
	"gangd/pkg/controller/store"
)

func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// ranksOf is the set of a gang's ranks.
func ranksOf(job int64, epoch int) store.SetKey {
	return store.SetKey{MemberKey: api.MemberKey{Job: job, Epoch: epoch}, Step: store.OfRanks}
}

func mustPut(t *testing.T, s store.Store, job int64, epoch, rank int, key string, data []byte) store.CheckpointSet {
	t.Helper()
	set, n, err := s.PutCheckpoint(context.Background(), ranksOf(job, epoch), rank, key, bytes.NewReader(data))
	if err != nil || n != int64(len(data)) {
		t.Fatalf("put of %d bytes: %d, %v", len(data), n, err)
	}
	return set
}

// stored is the checkpoint that a rank would be handed, nil for none.
func stored(t *testing.T, s store.Store, job int64, epoch, rank int) []byte {
	t.Helper()
	r, size, err := s.Checkpoint(context.Background(), ranksOf(job, epoch), rank)
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
	if err := s.PruneCheckpoints(context.Background(), 3, false, []store.SetKey{ranksOf(3, 4)}); err != nil {
		t.Fatal(err)
	}
	if stored(t, s, 3, 1, 0) != nil || string(stored(t, s, 3, 4, 1)) != "later" || stored(t, s, 4, 1, 0) == nil {
		t.Error("the wrong checkpoints were pruned")
	}
	if err := s.DropCheckpoints(context.Background(), 3); err != nil {
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
	// A repeat that is slow: what others put meanwhile is theirs.
	slow := &then{Reader: strings.NewReader("once"), do: func() { mustPut(t, s, 9, 3, 2, "", []byte("meanwhile")) }}
	if _, _, err := s.PutCheckpoint(context.Background(), ranksOf(9, 3), 0, "k1", slow); err != nil {
		t.Fatal(err)
	}
	if got := string(stored(t, s, 9, 3, 2)); got != "meanwhile" {
		t.Errorf("what came while another was repeated: %q", got)
	}
}

// then does something before its end is read.
type then struct {
	io.Reader
	do func()
}

func (r *then) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.do != nil {
		r.do()
		r.do = nil
	}
	return n, err
}

// Sets of ranks and of the tasks of steps are apart: counted, handed out and pruned each alone.
func testCheckpointsOfTasks(t *testing.T, p Place) {
	s := mustOpen(t, p)
	of := func(epoch, step int) store.SetKey {
		return store.SetKey{MemberKey: api.MemberKey{Job: 5, Epoch: epoch}, Step: step}
	}
	put := func(k store.SetKey, rank int) store.CheckpointSet {
		t.Helper()
		set, _, err := s.PutCheckpoint(context.Background(), k, rank, "", strings.NewReader(fmt.Sprint(k.Epoch, k.Step, rank)))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	want := func(k store.SetKey, rank int, text string) {
		t.Helper()
		r, _, err := s.Checkpoint(context.Background(), k, rank)
		got := "none"
		if err == nil {
			b, _ := io.ReadAll(r)
			got = string(b)
		} else if !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if got != text {
			t.Errorf("%+v rank %d: %q, want %q", k, rank, got, text)
		}
	}
	put(of(1, 1), 7) // counts in no other set
	for _, k := range []store.SetKey{of(1, store.OfRanks), of(1, 0), of(1, 3), of(2, 0)} {
		put(k, 0)
		if set := put(k, 1); set.Ranks != 2 {
			t.Errorf("%+v has %d", k, set.Ranks)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	want(of(1, 0), 1, "1 0 1")
	want(of(1, 3), 1, "1 3 1")
	if err := s.PruneCheckpoints(context.Background(), 5, true, []store.SetKey{of(1, 3), of(2, 0)}); err != nil {
		t.Fatal(err)
	}
	want(of(1, 0), 0, "none")
	want(of(1, 3), 0, "1 3 0")
	want(of(2, 0), 0, "2 0 0")
	want(of(1, store.OfRanks), 0, "1 -1 0")
	if err := s.PruneCheckpoints(context.Background(), 5, false, nil); err != nil {
		t.Fatal(err)
	}
	want(of(1, store.OfRanks), 0, "none")
	want(of(2, 0), 1, "2 0 1")
	if err := s.DropCheckpoints(context.Background(), 5); err != nil {
		t.Fatal(err)
	}
	want(of(2, 0), 1, "none")
	mustVerify(t, s)
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
	k := ranksOf(1, 1)
	mustPut(t, s, 1, 1, 0, "", []byte("good"))
	// Others that put meanwhile keep what is theirs.
	others := &then{Reader: strings.NewReader(""), do: func() { mustPut(t, s, 1, 1, 1, "", []byte("another's")) }}
	cut := io.MultiReader(&io.LimitedReader{R: &failing{left: store.CheckpointPiece}, N: store.CheckpointPiece}, others,
		&failing{left: store.CheckpointPiece + 5})
	if _, n, err := s.PutCheckpoint(context.Background(), k, 0, "", cut); err == nil || !strings.Contains(err.Error(), "line cut") || n != 0 {
		t.Errorf("%d, err %v", n, err)
	}
	if got := string(stored(t, s, 1, 1, 1)); got != "another's" {
		t.Errorf("another's is %q", got)
	}
	_, n, err := s.PutCheckpoint(context.Background(), k, 0, "", bytes.NewReader(make([]byte, api.MaxCheckpointBytes+1)))
	if api.CodeOf(err) != api.CodeTooLarge || err.Error() != api.TooLarge().Error() || n != 0 {
		t.Errorf("%d, err %v", n, err)
	}
	if got := string(stored(t, s, 1, 1, 0)); got != "good" {
		t.Errorf("stored %q", got)
	}
}
