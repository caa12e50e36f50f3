package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// meter is one system on the bench.
type meter struct {
	ctx      context.Context
	sys      system
	dir      string // for scripts and witness files
	runs     int
	jobs     int
	elements int // of the long array
	waiting  int // jobs, in the busy case
	seq      int
}

var cases = []struct {
	name    string
	measure func(*meter) ([]figure, error)
}{
	{"submit", submitProcess},
	{"clients", submitClients},
	{"start", startLatency},
	{"next", nextStart},
	{"jobs", throughput},
	{"each", oneByOne},
	{"queue", queueTable},
	{"squeue", squeueByName},
	{"steps", steps},
	{"wide", wideStep},
	{"array", longArray},
	{"busy", busy},
	{"failover", failOver},
}

// command runs a program of the system and gives its output.
func (m *meter) command(args []string) (string, error) {
	cmd := exec.CommandContext(m.ctx, args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), "GANG_TIMEOUT=5m"), m.sys.env()...) // 100,000 jobs are cancelled at once
	cmd.Dir = m.dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, errs.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// script writes a script under a fresh name.
func (m *meter) script(body string) (string, error) {
	m.seq++
	path := filepath.Join(m.dir, fmt.Sprintf("s%d.sh", m.seq))
	return path, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755)
}

// idle waits until the queue is empty.
func (m *meter) idle() error {
	for m.ctx.Err() == nil {
		out, err := m.command(m.sys.queue())
		if err != nil {
			return err
		}
		if out == "" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return m.ctx.Err()
}

// submitProcess times the whole client process, from exec to exit: of a held job, which is
// submission and nothing else, and of one that starts at once on the same two cores.
func submitProcess(m *meter) ([]figure, error) {
	path, err := m.script("exit 0")
	if err != nil {
		return nil, err
	}
	var held, run []float64
	for range m.runs + 1 {
		d, err := m.timed(slices.Insert(m.sys.submit(job{script: path, ranks: 1}), 1, "--hold"))
		if err != nil {
			return nil, err
		}
		held = append(held, ms(d))
	}
	if err := m.cancelAll(); err != nil {
		return nil, err
	}
	for range m.runs + 1 {
		d, err := m.timed(m.sys.submit(job{script: path, ranks: 1}))
		if err != nil {
			return nil, err
		}
		run = append(run, ms(d))
		if err := m.idle(); err != nil {
			return nil, err
		}
	}
	return []figure{
		{name: "submit, whole process, held job", value: median(held[1:]), unit: "ms", need: aSubmission},
		{name: "submit, whole process, job starts at once", value: median(run[1:]), unit: "ms", need: aSubmission},
	}, nil
}

func (m *meter) timed(args []string) (time.Duration, error) {
	t := time.Now()
	_, err := m.command(args)
	return time.Since(t), err
}

// cancelAll ends what waits.
func (m *meter) cancelAll() error {
	cancel := "scancel"
	if g, ok := m.sys.(*gangdSystem); ok {
		cancel = filepath.Join(g.bin, "gcancel")
	}
	if _, err := m.command([]string{cancel, "--user=" + currentUser()}); err != nil {
		return err
	}
	return m.idle()
}

func currentUser() string {
	u, err := user.Current()
	if err != nil {
		return "root"
	}
	return u.Username
}

// submitClients times 8 clients that submit one held job after the other: a process each
// time, and (gangd only: Slurm has no such interface without its C library) over its
// socket as a program would.
func submitClients(m *meter) ([]figure, error) {
	path, err := m.script("exit 0")
	if err != nil {
		return nil, err
	}
	args := slices.Insert(m.sys.submit(job{script: path, ranks: 1}), 1, "--hold")
	rate, err := eightClients(40, func() error { _, err := m.command(args); return err })
	if err != nil {
		return nil, err
	}
	out := []figure{{name: "submit, 8 clients, a process each", value: rate, unit: "/s", higher: true, need: need{programs: each}}}
	if g, ok := m.sys.(*gangdSystem); ok {
		c := client.NewAt(filepath.Join(g.dir, "run", "gangd.sock"))
		spec := api.Spec{Name: "bench", Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: m.dir, Hold: true,
			Script: []byte("#!/bin/sh\nexit 0\n"), Env: os.Environ()}
		var n atomic.Int64
		rate, err := eightClients(200, func() error {
			_, err := c.Submit(m.ctx, &api.SubmitRequest{Key: fmt.Sprintf("bench-%d", n.Add(1)), Spec: spec})
			return err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, figure{name: "submit, 8 clients, over the socket", value: rate, unit: "/s", higher: true})
	}
	return out, m.cancelAll()
}

// eightClients runs f over and over in 8 goroutines and gives the calls a second.
func eightClients(each int, f func() error) (float64, error) {
	const clients = 8
	var g errgroup.Group
	t := time.Now()
	for range clients {
		g.Go(func() error {
			for range each {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return clients * float64(each) / time.Since(t).Seconds(), err
}

// startLatency times from the start of the submitting process to the first instruction
// of the last of 3 ranks on 3 nodes, and the skew between them.
func startLatency(m *meter) ([]figure, error) {
	var last, skew []float64
	for i := range m.runs {
		prefix := filepath.Join(m.dir, fmt.Sprintf("start%d.", i))
		path, err := m.script(`date +%s%N > ` + prefix + `${SLURM_PROCID}.new && mv ` + prefix + `${SLURM_PROCID}.new ` + prefix +
			`${SLURM_PROCID}`)
		if err != nil {
			return nil, err
		}
		t := time.Now()
		if _, err := m.command(m.sys.submit(job{script: path, ranks: 3})); err != nil {
			return nil, err
		}
		at, err := m.witnesses(prefix, 3)
		if err != nil {
			return nil, err
		}
		last = append(last, ms(slices.MaxFunc(at, time.Time.Compare).Sub(t)))
		skew = append(skew, ms(slices.MaxFunc(at, time.Time.Compare).Sub(slices.MinFunc(at, time.Time.Compare))))
		if err := m.idle(); err != nil {
			return nil, err
		}
	}
	return []figure{
		{name: "submit to last of 3 ranks, p50", value: median(last), unit: "ms", need: aStart},
		{name: "submit to last of 3 ranks, p99", value: percentile(last, 0.99), unit: "ms", need: aStart},
		{name: "skew of 3 ranks, p50", value: median(skew), unit: "ms"},
		{name: "skew of 3 ranks, p99", value: percentile(skew, 0.99), unit: "ms"},
	}, nil
}

// witnesses reads the instants that n ranks wrote.
func (m *meter) witnesses(prefix string, n int) ([]time.Time, error) {
	give := time.Now().Add(60 * time.Second)
	out := make([]time.Time, 0, n)
	for rank := 0; rank < n; {
		b, err := os.ReadFile(prefix + strconv.Itoa(rank))
		if err != nil {
			if time.Now().After(give) || m.ctx.Err() != nil {
				return nil, fmt.Errorf("rank %d wrote nothing within 60 s", rank)
			}
			time.Sleep(time.Millisecond)
			continue
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, time.Unix(0, ns))
		rank++
	}
	return out, nil
}

// nextStart fills the cluster with one gang of 32 CPUs at a time and times from the end
// of one to the start of the next, by what the ranks themselves write.
func nextStart(m *meter) ([]figure, error) {
	n := max(5, m.runs/4)
	for i := range n {
		prefix := filepath.Join(m.dir, fmt.Sprintf("next%d.", i))
		path, err := m.script(`date +%s%N > ` + prefix + `start; sleep 0.3; date +%s%N > ` + prefix + `end`)
		if err != nil {
			return nil, err
		}
		args := m.sys.submit(job{script: path, ranks: 1})
		args = slices.Insert(args, 1, "--nodelist=n1", "--exclusive")
		if _, err := m.command(args); err != nil {
			return nil, err
		}
	}
	if err := m.idle(); err != nil {
		return nil, err
	}
	var gaps []float64
	var ends, starts []time.Time
	for i := range n {
		prefix := filepath.Join(m.dir, fmt.Sprintf("next%d.", i))
		for _, kind := range []string{"start", "end"} {
			b, err := os.ReadFile(prefix + kind)
			if err != nil {
				return nil, err
			}
			ns, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			if err != nil {
				return nil, err
			}
			if kind == "start" {
				starts = append(starts, time.Unix(0, ns))
			} else {
				ends = append(ends, time.Unix(0, ns))
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	slices.SortFunc(ends, time.Time.Compare)
	for i := 1; i < n; i++ {
		gaps = append(gaps, ms(starts[i].Sub(ends[i-1])))
	}
	return []figure{{name: "end of a gang to start of the next, p50", value: median(gaps), unit: "ms", need: aStart}}, nil
}

// throughput runs many jobs of /bin/true, submitted as one array, to the last one's end.
func throughput(m *meter) ([]figure, error) {
	path, err := m.script("exec /bin/true")
	if err != nil {
		return nil, err
	}
	cpu, t := machineCPU(), time.Now()
	if _, err := m.command(m.sys.submit(job{script: path, ranks: 1, array: m.jobs})); err != nil {
		return nil, err
	}
	if err := m.idle(); err != nil {
		return nil, err
	}
	took, used := time.Since(t), machineCPU()-cpu
	return []figure{
		{name: "jobs of /bin/true, end to end", value: float64(m.jobs) / took.Seconds(), unit: "/s", higher: true, need: aTrue},
		{name: "the same, CPU a job (whole machine)", value: ms(used) / float64(m.jobs), unit: "ms"},
	}, nil
}

// oneByOne is throughput with a submission each: what a loop in a shell script sees.
func oneByOne(m *meter) ([]figure, error) {
	path, err := m.script("exec /bin/true")
	if err != nil {
		return nil, err
	}
	n, t := m.jobs/2, time.Now()
	var g errgroup.Group
	g.SetLimit(8)
	for range n {
		g.Go(func() error { _, err := m.command(m.sys.submit(job{script: path, ranks: 1})); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := m.idle(); err != nil {
		return nil, err
	}
	return []figure{{name: "jobs of /bin/true, a submission each, end to end", value: float64(n) / time.Since(t).Seconds(), unit: "/s",
		higher: true, need: need{forks: aTrue.forks, programs: each}}}, nil
}

// queueTable times the queue command over a thousand waiting jobs.
func queueTable(m *meter) ([]figure, error) {
	path, err := m.script("sleep 600")
	if err != nil {
		return nil, err
	}
	args := slices.Insert(m.sys.submit(job{script: path, ranks: 1, array: 1000}), 1, "--hold")
	if _, err := m.command(args); err != nil {
		return nil, err
	}
	var took []float64
	for range 10 {
		t := time.Now()
		if _, err := m.command(m.sys.queue()); err != nil {
			return nil, err
		}
		took = append(took, ms(time.Since(t)))
	}
	if err := m.cancelAll(); err != nil {
		return nil, err
	}
	return []figure{{name: "queue table of 1,000 waiting jobs", value: median(took), unit: "ms", need: aClient}}, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(v []float64) float64 { return percentile(v, 0.5) }

func percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return s[min(len(s)-1, int(p*float64(len(s))))]
}
