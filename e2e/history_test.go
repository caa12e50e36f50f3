package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"gangd/e2e/tally"
	"gangd/pkg/api"
	"gangd/pkg/client"
)

// history is what clients asked for and were told, by job.
type history struct {
	c     *client.Client
	began time.Time
	keys  []string

	mu   sync.Mutex
	ids  map[string]int64 // known from an answer
	ops  map[string][]porcupine.Operation
	lost int // answers that never came
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

func (h *history) calls() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ops := range h.ops {
		n += len(ops)
	}
	return n
}

func (h *history) record(client int, key string, c call, at int64, a said) {
	end := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.unknown {
		end = math.MaxInt64
		h.lost++
	}
	if a.id != 0 {
		h.ids[key] = a.id
	}
	h.ops[key] = append(h.ops[key], porcupine.Operation{ClientId: client, Input: c, Output: a, Call: at, Return: end})
}

// answer is what a call came to. Only a refusal that says so has surely had no effect; a
// connection that broke, or a controller that was shutting down, leave it open.
func answer(err error) (said, bool) {
	var e *api.Error
	switch {
	case err == nil:
		return said{}, true
	case errors.As(err, &e) && e.Code != api.CodeUnavailable:
		return said{code: e.Code}, true
	}
	return said{unknown: true}, false
}

func (h *history) submit(client int, key string, held bool) {
	spec := api.Spec{Name: key, Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Output: "/dev/null",
		Script: []byte("#!/bin/sh\nexec sleep 1000\n"), Hold: held}
	at := h.now()
	r, err := h.c.Submit(context.Background(), &api.SubmitRequest{Key: key, Spec: spec})
	a, ok := answer(err)
	if ok && err == nil {
		a.id = r.JobID
	}
	h.record(client, key, "submit", at, a)
}

func (h *history) act(client int, key string, c call, id int64) {
	q := api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}}
	at := h.now()
	var r *api.CancelReply
	var err error
	if c == "cancel" {
		r, err = h.c.Cancel(context.Background(), &api.CancelRequest{JobQuery: q})
	} else {
		r, err = h.c.Act(context.Background(), string(c), &api.ActionRequest{JobQuery: q})
	}
	if err == nil && r.Results[0].Error != nil {
		err = r.Results[0].Error
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return // it reached nobody
	}
	a, _ := answer(err)
	h.record(client, key, c, at, a)
}

func shown(j *api.Job) said {
	return said{state: j.State, epoch: j.Epoch, held: j.Held != ""}
}

func (h *history) show(client int, key string, id int64) {
	at := h.now()
	d, err := h.c.Job(context.Background(), api.JobRef{ID: id, Index: -1})
	if a, ok := answer(err); ok && err != nil {
		h.record(client, key, "show", at, a)
	}
	if err != nil {
		return // who did not hear the answer has not looked
	}
	h.record(client, key, "show", at, shown(&d.Job))
}

// list looks at all jobs at once; to each of them that is a show. One that is told to exist
// and is not in the list is recorded as not found, which the model takes for no job.
func (h *history) list(client int) {
	h.mu.Lock()
	known := map[string]int64{}
	for k, id := range h.ids {
		known[k] = id
	}
	h.mu.Unlock()
	at := h.now()
	r, err := h.c.Jobs(context.Background(), &api.JobQuery{All: true})
	if err != nil {
		return
	}
	by := map[int64]*api.Job{}
	for i := range r.Jobs {
		by[r.Jobs[i].JobID] = &r.Jobs[i]
	}
	for k, id := range known {
		a := said{code: api.CodeNotFound}
		if j := by[id]; j != nil {
			a = shown(j)
		}
		h.record(client, k, "show", at, a)
	}
}

// step is one call of a client's on a job of its choice.
func (h *history) step(client int, r *rand.Rand) {
	key := h.keys[r.IntN(len(h.keys))]
	h.mu.Lock()
	id, n := h.ids[key], len(h.ops[key])
	h.mu.Unlock()
	switch p := r.IntN(20); {
	case id == 0 || p == 0:
		h.submit(client, key, false)
	case n > 40: // enough: each call more makes the check longer
		time.Sleep(time.Millisecond)
	case p == 1:
		h.list(client)
	case p == 2:
		h.act(client, key, "cancel", id)
	case p < 6:
		h.act(client, key, "requeue", id)
	case p < 9:
		h.act(client, key, "hold", id)
	case p < 12:
		h.act(client, key, "release", id)
	default:
		h.show(client, key, id)
	}
}

// Concurrent clients submit, hold, release, requeue, cancel, show and list jobs while gangd
// is killed again and again: what each of them was told fits one order of all calls on a job.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--cpus=64", "--set", "grace=1s")
	h := &history{c: client.NewAt(filepath.Join(c.dir, "run", "gangd.sock")), began: time.Now(), ids: map[string]int64{}, ops: map[string][]porcupine.Operation{}}
	kills := rounds(5)
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		kills = rounds(100)
	}
	for i := range 8 * kills {
		h.keys = append(h.keys, fmt.Sprintf("k%d", i))
	}
	var stop atomic.Bool
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), uint64(time.Now().UnixNano())))
			for !stop.Load() {
				h.step(n, r)
				time.Sleep(rand.N(10 * time.Millisecond))
			}
		})
	}
	for range kills {
		time.Sleep(rand.N(600 * time.Millisecond))
		c.kill("gangd")
		time.Sleep(rand.N(100 * time.Millisecond))
		c.restart("gangd")
		had := h.calls()
		c.until("clients are served again", func() bool { return h.calls() >= had+20 })
	}
	stop.Store(true)
	clients.Wait()
	var wrong []string
	for _, key := range h.keys {
		if got := linearizable(h.ops[key]); got != porcupine.Ok {
			wrong = append(wrong, fmt.Sprintf("the history of %s (job %d) is %s:\n%s", key, h.ids[key], got, h.tell(key)))
		}
	}
	calls := h.calls()
	tally.Did("kill -9 of gangd", kills)
	tally.Did("calls of 8 clients recorded", calls)
	tally.Checked(t, "histories of jobs that fit no order of calls", wrong...)
	t.Logf("%d calls on %d jobs, %d without an answer, over %d kills", calls, len(h.keys), h.lost, kills)
}

// tell prints a history, one call a line.
func (h *history) tell(key string) string {
	out := ""
	for _, op := range h.ops[key] {
		end := "never"
		if op.Return != math.MaxInt64 {
			end = time.Duration(op.Return).String()
		}
		out += fmt.Sprintf("%s to %s, client %d: %s\n", time.Duration(op.Call), end, op.ClientId, jobModel.DescribeOperation(op.Input, op.Output))
	}
	return out
}
