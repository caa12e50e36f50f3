package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meter is one system on the bench.
type meter struct {
	ctx  context.Context
	sys  system
	dir  string // for scripts and witness files
	bin  string
	runs int
	jobs int
	seq  int
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
	{"queue", queueTable},
}

// command runs a program of the system and gives its output.
func (m *meter) command(args []string) (string, error) {
	cmd := exec.CommandContext(m.ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), m.sys.env()...)
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

// submitProcess times the whole client process, from exec to exit.
func submitProcess(m *meter) ([]figure, error) {
	path, err := m.script("exit 0")
	if err != nil {
		return nil, err
	}
	var took []float64
	for range m.runs + 1 {
		t := time.Now()
		if _, err := m.command(m.sys.submit(job{script: path, ranks: 1})); err != nil {
			return nil, err
		}
		took = append(took, ms(time.Since(t)))
		if err := m.idle(); err != nil {
			return nil, err
		}
	}
	return []figure{{"submit, whole process", median(took[1:]), "ms", false}}, nil
}

// submitClients times 8 clients that submit one job after the other, a process each; the
// jobs are array elements' worth of nothing, so that the queue and not the nodes is met.
func submitClients(m *meter) ([]figure, error) {
	path, err := m.script("exit 0")
	if err != nil {
		return nil, err
	}
	const clients, each = 8, 40
	var wg sync.WaitGroup
	errs := make(chan error, clients)
	t := time.Now()
	for range clients {
		wg.Go(func() {
			for range each {
				if _, err := m.command(m.sys.submit(job{script: path, ranks: 1})); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(t)
	select {
	case err := <-errs:
		return nil, err
	default:
	}
	return []figure{{"submit, 8 clients, a process each", clients * each / took.Seconds(), "/s", true}}, m.idle()
}

// startLatency times from the start of the submitting process to the first instruction
// of the last of 3 ranks on 3 nodes, and the skew between them.
func startLatency(m *meter) ([]figure, error) {
	var last, skew []float64
	for i := range m.runs {
		prefix := filepath.Join(m.dir, fmt.Sprintf("start%d.", i))
		path, err := m.script(`date +%s%N > ` + prefix + `${SLURM_PROCID}.new && mv ` + prefix + `${SLURM_PROCID}.new ` + prefix + `${SLURM_PROCID}`)
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
		{"submit to last of 3 ranks, p50", median(last), "ms", false},
		{"submit to last of 3 ranks, p99", percentile(last, 0.99), "ms", false},
		{"skew of 3 ranks, p50", median(skew), "ms", false},
		{"skew of 3 ranks, p99", percentile(skew, 0.99), "ms", false},
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
	return []figure{{"end of a gang to start of the next, p50", median(gaps), "ms", false}}, nil
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
		{"jobs of /bin/true, end to end", float64(m.jobs) / took.Seconds(), "/s", true},
		{"the same, CPU a job (whole machine)", ms(used) / float64(m.jobs), "ms", false},
	}, nil
}

// queueTable times the queue command over a thousand waiting jobs.
func queueTable(m *meter) ([]figure, error) {
	path, err := m.script("sleep 600")
	if err != nil {
		return nil, err
	}
	args := slices.Insert(m.sys.submit(job{script: path, ranks: 1, array: 1000}), 1, "--hold")
	id, err := m.command(args)
	if err != nil {
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
	cancel := "scancel"
	if m.sys.name() == "gangd" {
		cancel = filepath.Join(m.bin, "gcancel")
	}
	if _, err := m.command([]string{cancel, id}); err != nil {
		return nil, err
	}
	return []figure{{"queue table of 1,000 waiting jobs", median(took), "ms", false}}, m.idle()
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
