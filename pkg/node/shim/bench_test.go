package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

// BenchmarkMember is the whole life of a member of one /bin/true rank: start, ready, go,
// stopped, bye. cpu-ms/op is what shim and rank used, from rusage of the reaped shim; the
// part up to ready is measured in BenchmarkReady.
func BenchmarkMember(b *testing.B) { benchMember(b, true) }

// BenchmarkReady stops at ready.
func BenchmarkReady(b *testing.B) { benchMember(b, false) }

func benchMember(b *testing.B, run bool) {
	var ready, started, stopped time.Duration
	before := childCPU()
	for b.Loop() {
		b.StopTimer()
		s := testSpec(b, 1)
		b.StartTimer()
		t := time.Now()
		c, err := start(program, s, []byte("#!/bin/true\n"))
		if err != nil {
			b.Fatal(err)
		}
		until(b, c, api.PhaseReady)
		ready += time.Since(t)
		if run {
			t = time.Now()
			_ = c.Send(Command{Go: &Go{MasterPort: 1}})
			until(b, c, api.PhaseRunning, api.PhaseStopped)
			started += time.Since(t)
			until(b, c, api.PhaseStopped)
			stopped += time.Since(t)
		}
		_ = c.Send(Command{Bye: true})
		for range c.Answers() {
		}
		_ = os.RemoveAll(filepath.Dir(s.Dir))
	}
	n := float64(b.N)
	b.ReportMetric(float64((childCPU()-before).Microseconds())/1000/n, "cpu-ms/op")
	b.ReportMetric(float64(ready.Microseconds())/1000/n, "ready-ms")
	b.ReportMetric(float64(started.Microseconds())/1000/n, "go-to-running-ms")
	b.ReportMetric(float64(stopped.Microseconds())/1000/n, "go-to-stopped-ms")
}

func childCPU() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// BenchmarkReused is the life of a member in a process that has held others.
// shim-cpu-us/op is the shim's own, without the rank.
func BenchmarkReused(b *testing.B) {
	p := testPool(b)
	pid, _ := whole(b, p, testSpec(b, 1), "#!/bin/true\n")
	before, used := schedCPU(b, pid), time.Duration(0)
	var ready, stopped time.Duration
	for b.Loop() {
		b.StopTimer()
		s := testSpec(b, 1)
		b.StartTimer()
		t := time.Now()
		c, err := p.Start(s, []byte("#!/bin/true\n"))
		if err != nil {
			b.Fatal(err)
		}
		until(b, c, api.PhaseReady)
		ready += time.Since(t)
		t = time.Now()
		_ = c.Send(Command{Go: &Go{MasterPort: 1}})
		st := until(b, c, api.PhaseStopped)
		stopped += time.Since(t)
		bye(c)
		b.StopTimer()
		now := schedCPU(b, st.ShimPID) // 0 when this was its last
		if st.ShimPID == pid && now > before {
			used += now - before
		}
		before, pid = now, st.ShimPID
		b.StartTimer()
	}
	n := float64(b.N)
	b.ReportMetric(float64(used.Microseconds())/n, "shim-cpu-us/op")
	b.ReportMetric(float64(ready.Microseconds())/1000/n, "ready-ms")
	b.ReportMetric(float64(stopped.Microseconds())/1000/n, "go-to-stopped-ms")
}

// schedCPU is what the threads of a process have used, to the nanosecond.
func schedCPU(b *testing.B, pid int) time.Duration {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, path := range tasks {
		text, _ := os.ReadFile(path)
		var ns int64
		_, _ = fmt.Sscan(string(text), &ns)
		sum += time.Duration(ns)
	}
	return sum
}
