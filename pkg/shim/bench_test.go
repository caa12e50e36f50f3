package shim

import (
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
	rss := int64(0)
	for b.Loop() {
		b.StopTimer()
		s := testSpec(b, 1)
		b.StartTimer()
		t := time.Now()
		c, err := Start(program, s, []byte("#!/bin/true\n"))
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
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru)
	rss = max(rss, ru.Maxrss)
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
