package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

const (
	busyRate    = 5000 // submissions a second that arrive meanwhile
	busyClients = 16   // that bring them
)

// longArray is an array of elements of /bin/true to the last one's end.
func longArray(m *meter) ([]figure, error) {
	path, err := m.script("exec /bin/true")
	if err != nil {
		return nil, err
	}
	n := m.elements
	if _, ok := m.sys.(*gangdSystem); !ok {
		n = min(n, 1000) // Slurm's MaxArraySize; its time is taken as that of several, one after the other
	}
	t := time.Now()
	for range m.elements / n {
		if _, err := m.command(m.sys.submit(job{script: path, ranks: 1, array: n})); err != nil {
			return nil, err
		}
		if err := m.idle(); err != nil {
			return nil, err
		}
	}
	return []figure{{name: fmt.Sprintf("array of %s, to its last end", thousands(m.elements)), value: time.Since(t).Seconds(), unit: "s",
		need: need{forks: aTrue.forks * float64(m.elements) / 1000}}}, nil
}

// busy times one submission after the other over the socket, and gqueue, in quiet, while 5,000 submissions a second
// are sent, while half as many arrive as the machine took then (what is sent to a full machine waits in any case), and while very many
// jobs wait. Slurm has no such interface without its C library, and refuses so many jobs.
func busy(m *meter) ([]figure, error) {
	g, ok := m.sys.(*gangdSystem)
	if !ok {
		return nil, nil
	}
	b := &busyMeter{meter: m, c: client.NewAt(filepath.Join(g.dir, "run", "gangd.sock")), queue: filepath.Join(g.bin, "gqueue"),
		spec: api.Spec{Name: "busy", Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: m.dir, Script: []byte("#!/bin/sh\nexit 0\n"),
			Env: os.Environ()}}
	if err := b.occupy(); err != nil {
		return nil, err
	}
	var out []figure
	quiet, err := b.times("in quiet")
	if err != nil {
		return nil, err
	}
	out = append(out, quiet...)
	idle, sent := quiet[0].value, busyRate
	for _, when := range []string{"while 5,000/s are sent", "while half of what it took is sent"} {
		stop, rate := b.load(sent)
		crowded, err := b.times(when)
		stop()
		if err != nil {
			return nil, err
		}
		out = append(append(out, crowded...), figure{name: "submissions that arrived then", value: rate(), unit: "/s", higher: true},
			figure{name: "p99 then, in p50s of quiet", value: crowded[1].value / idle, unit: "x"})
		sent = int(rate() / 2)
	}
	if err := b.fill(b.waiting); err != nil {
		return nil, err
	}
	full, err := b.times("while " + thousands(b.waiting) + " wait")
	if err != nil {
		return nil, err
	}
	out = append(append(out, full...), figure{name: "p99 while " + thousands(b.waiting) + " wait, in p50s of quiet",
		value: full[1].value / idle, unit: "x"})
	return out, m.cancelAll()
}

// thousands writes 100000 as 100,000.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// busyMeter submits over the socket.
type busyMeter struct {
	*meter
	c     *client.Client
	queue string
	spec  api.Spec
	last  atomic.Int64
}

func (b *busyMeter) submit(ctx context.Context) error {
	_, err := b.c.Submit(ctx, &api.SubmitRequest{Key: fmt.Sprintf("busy-%d-%d", os.Getpid(), b.last.Add(1)), Spec: b.spec})
	return err
}

// occupy gives all nodes to a job that sleeps: what is submitted then waits for its turn.
func (b *busyMeter) occupy() error {
	path, err := b.script("exec sleep 3600")
	if err != nil {
		return err
	}
	_, err = b.command(slices.Insert(b.sys.submit(job{script: path, ranks: 4}), 1, "--exclusive"))
	return err
}

// times are figures of submissions and of the queue's first lines as things are.
func (b *busyMeter) times(when string) ([]figure, error) {
	var submits, lists []float64
	for range 25 * b.runs {
		t := time.Now()
		if err := b.submit(b.ctx); err != nil {
			return nil, err
		}
		submits = append(submits, ms(time.Since(t)))
	}
	for range max(5, b.runs/4) {
		t := time.Now()
		if _, err := b.command([]string{b.queue, "-h", "-t", "RUNNING"}); err != nil {
			return nil, err
		}
		lists = append(lists, ms(time.Since(t)))
	}
	least := need{syncs: 1, trips: 1}
	return []figure{
		{name: "submission over the socket " + when + ", p50", value: median(submits), unit: "ms", need: least},
		{name: "submission over the socket " + when + ", p99", value: percentile(submits, 0.99), unit: "ms", need: least},
		{name: "gqueue " + when, value: median(lists), unit: "ms", need: aClient},
	}, nil
}

// load has others submit so many a second, as far as they are answered in time.
func (b *busyMeter) load(each int) (stop func(), rate func() float64) {
	ctx, cancel := context.WithCancel(b.ctx)
	var all sync.WaitGroup
	var sent atomic.Int64
	began := time.Now()
	var took time.Duration
	for range busyClients {
		all.Go(func() {
			tick := time.NewTicker(time.Second * busyClients / time.Duration(max(1, each)))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if b.submit(ctx) == nil {
					sent.Add(1)
				}
			}
		})
	}
	return func() {
			cancel()
			all.Wait()
			took = time.Since(began)
		}, func() float64 {
			return float64(sent.Load()) / took.Seconds()
		}
}

// fill has so many jobs wait, a record each, when the submissions that are timed next have come too: a user may have
// 100,000 jobs (user_jobs), with the one that occupies the nodes.
func (b *busyMeter) fill(n int) error {
	_, err := eightClients(max(0, n-1-25*b.runs-int(b.last.Load()))/8, func() error { return b.submit(b.ctx) })
	return err
}

// failOver times how long nobody takes submissions when the controller that leads is killed: two controllers on a
// database of their own, started for this. Slurm's second controller waits for SlurmctldTimeout, 120 s, and is not measured.
func failOver(m *meter) ([]figure, error) {
	g, ok := m.sys.(*gangdSystem)
	if !ok || g.title != "gangd" {
		return nil, nil
	}
	pair := &gangdSystem{title: "pair", bin: g.bin, dir: g.dir + "2", args: []string{"--postgres", "--controllers=2"}, installed: true}
	if err := pair.start(m.ctx); err != nil {
		fmt.Println("fail-over is not measured:", err)
		return nil, nil
	}
	defer pair.stop()
	p := &meter{ctx: m.ctx, sys: pair, dir: m.dir, runs: m.runs, jobs: m.jobs}
	path, err := p.script("exit 0")
	if err != nil {
		return nil, err
	}
	held := slices.Insert(pair.submit(job{script: path, ranks: 1}), 1, "--hold")
	var away []float64
	for range 5 {
		if _, err := p.command(held); err != nil {
			return nil, err
		}
		name, err := pair.killLeader(m.ctx)
		if err != nil {
			return nil, err
		}
		t := time.Now()
		if _, err := p.command(held); err != nil { // it tries until one leads
			return nil, err
		}
		away = append(away, ms(time.Since(t)))
		if _, err := p.command([]string{filepath.Join(pair.bin, "gangd"), "dev", "--restart=" + name, "--dir=" + pair.dir}); err != nil {
			return nil, err
		}
	}
	return []figure{{name: "leader killed, to the next submission taken, p50", value: median(away), unit: "ms"}}, nil
}
