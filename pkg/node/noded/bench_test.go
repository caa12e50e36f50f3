package noded

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

// BenchmarkMember is the whole life of one-rank members of /bin/true, eight at a time,
// with real shims. It reports what one costs the daemon by itself (the daemon is a process of
// its own), and the latency of one alone from the desire to the report that it runs.
func BenchmarkMember(b *testing.B) {
	c := newController(b)
	c.autoEnd = true
	c.settings.Heartbeat = time.Second
	o := c.options(b.TempDir())
	cmd := c.spawn(o)
	c.until("a hello", func() bool { return len(c.hellos) > 0 })
	defer func() {
		c.empty(o.StateDir)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	before := cpu(b, cmd.Process.Pid)
	b.ResetTimer()
	spec := &api.Spec{Name: "b", Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: b.TempDir(), Script: []byte("#!/bin/true\n"),
		Env: os.Environ(), Output: "/dev/null"}
	c.update(func() { c.specs["b"] = spec })
	for i := range b.N {
		k := api.MemberKey{Job: int64(i + 1), Epoch: 1}
		c.until("room", func() bool { return i-len(c.gone) < 8 })
		c.update(func() {
			c.want[k] = &api.Assignment{MemberKey: k, Body: &api.AssignmentBody{SpecHash: "b", Name: "b", User: "u", UID: uint32(os.Getuid()),
				Nodes: []api.Place{{Name: "n1", Address: "127.0.0.1"}}, Ranks: []api.RankPlace{{}}}}
		})
	}
	c.until("all to be gone", func() bool { return len(c.gone) == b.N })
	b.StopTimer()
	b.ReportMetric(float64((cpu(b, cmd.Process.Pid)-before).Microseconds())/float64(b.N), "gnoded-cpu-us/op")
	b.ReportMetric(float64(c.frames)/float64(b.N), "frames/op")
}

// BenchmarkLatency is one member alone: desired, ready, gate, running.
func BenchmarkLatency(b *testing.B) {
	c := newController(b)
	c.autoEnd = true
	c.settings.Heartbeat = time.Second
	o := c.options(b.TempDir())
	c.run(o)
	c.until("a hello", func() bool { return len(c.hellos) > 0 })
	var running time.Duration
	job := int64(0)
	for b.Loop() {
		job++
		began := time.Now()
		k := c.desire(job, 1, 1, "#!/bin/true\n")
		c.until("it to run", func() bool { return c.latest[k].Phase == api.PhaseRunning || c.latest[k].Phase == api.PhaseStopped })
		running += time.Since(began)
		c.untilGone(k)
	}
	b.ReportMetric(float64(running.Microseconds())/float64(job), "desired-to-running-us")
}

// cpu is what a process has used, its children not.
func cpu(b *testing.B, pid int) time.Duration {
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		// The main thread's alone; the others' are listed by task.
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		var sum time.Duration
		for _, t := range tasks {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name())); err == nil {
				ns, _ := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
				sum += time.Duration(ns)
			}
		}
		return sum
	}
	b.Skip("no schedstat here")
	return 0
}

// BenchmarkBoard is a burst of 100 members' changes and the report that carries them.
func BenchmarkBoard(b *testing.B) {
	board := NewBoard(func() {})
	for b.Loop() {
		for i := range int64(100) {
			board.Put(api.MemberActual{MemberKey: api.MemberKey{Job: i + 1, Epoch: 1}, Phase: api.PhaseRunning})
		}
		_, _ = json.Marshal(board.Report())
	}
}
