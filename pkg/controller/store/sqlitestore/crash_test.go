package sqlitestore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

const crashDirEnv = "GANGD_STORE_CRASH_DIR"

// The child commits batches of 20 jobs, and for each its 2 ranks and 2 events. Batch n has
// the jobs 20(n-1)+1 to 20n; n is printed when it is acknowledged.
const crashJobs = 20

func crashBatch(n int) *gang.Changes {
	ch := &gang.Changes{}
	for i := range crashJobs {
		id := int64((n-1)*crashJobs + i + 1)
		j := storetest.NewJob(id, 2)
		j.Epoch = 1
		j.SpecHash = fmt.Sprint("spec-", n)
		ch.Jobs = append(ch.Jobs, j)
		for r := range j.Ranks {
			j.Ranks[r] = gang.Rank{State: api.RankRunning, PID: n}
			ch.Ranks = append(ch.Ranks, gang.RankRow{Job: id, Index: r, Rank: j.Ranks[r]})
			ch.Events = append(ch.Events, api.Event{Seq: 2*id + int64(r), JobID: id, Type: api.EventStarted})
		}
		ch.NextID, ch.NextSeq = id+1, 2*id+2
	}
	return storetest.WithSpecs(ch)
}

func commitUntilKilled(dir string) {
	ctx := context.Background()
	s, err := Open(ctx, dir, Options{NewJobFloor: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		n, err := s.Commit(ctx, crashBatch(int(s.Lineage())+1))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// TestKill9 kills a committing process 30 times: each acknowledged batch is there, whole,
// and at most the one that was on its way besides.
func TestKill9(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	for round := range rounds {
		acked := killedChild(t, dir)
		s := openDir(t, dir)
		checkWhole(t, s, acked)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// killedChild gives the last number that a child printed before it was killed.
func killedChild(t *testing.T, dir string) (acked int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	// Killed at a random moment after its first commit, while it goes on.
	for lines.Scan() {
		if acked == 0 {
			time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		}
		if acked, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL || acked == 0 {
		t.Fatalf("the child ended by itself: %v, after %d commits", cmd.ProcessState, acked)
	}
	return acked
}

func checkWhole(t *testing.T, s *Store, acked int) {
	t.Helper()
	ctx := context.Background()
	got := int(s.Lineage())
	if got != acked && got != acked+1 {
		t.Errorf("%d commits acknowledged, %d in the store", acked, got)
	}
	if found, err := s.Verify(ctx); err != nil || len(found) > 0 {
		t.Errorf("verify: %q, %v", found, err)
	}
	saved, err := s.Load(ctx, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Events(ctx, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(saved.Jobs) != got*crashJobs || len(events) != 2*len(saved.Jobs) || saved.NextID != int64(len(saved.Jobs)+1) {
		t.Errorf("after %d commits: %d jobs, %d events, next id %d", got, len(saved.Jobs), len(events), saved.NextID)
	}
	for _, j := range saved.Jobs {
		if j.Ranks[0].State != api.RankRunning || j.Ranks[1].State != api.RankRunning {
			t.Errorf("job %d lacks a rank", j.ID)
		}
	}
}
