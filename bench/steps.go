package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	stepTasks   = 64
	wideTasks   = 512
	streamTasks = 8
	streamBytes = 16 << 20 // of each task
)

// steps times srun inside an allocation of four nodes: from exec to the first line of every
// task, to its end, and what eight tasks that write as fast as they can bring through.
func steps(m *meter) ([]figure, error) {
	return m.inAllocation(func(srun, id string) ([]figure, error) {
		first, whole, err := m.stepTimes(srun, id, stepTasks, m.runs)
		if err != nil {
			return nil, err
		}
		_, took, err := m.step(srun, id, streamTasks, fmt.Sprintf("yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c %d", streamBytes), 0)
		if err != nil {
			return nil, err
		}
		return []figure{first, whole,
			{name: fmt.Sprintf("srun, output of %d tasks", streamTasks), value: streamTasks * streamBytes / took * 1000 / (1 << 20), unit: "MiB/s",
				higher: true},
		}, nil
	})
}

// wideStep is steps of as many tasks as a node of the largest has.
func wideStep(m *meter) ([]figure, error) {
	return m.inAllocation(func(srun, id string) ([]figure, error) {
		first, whole, err := m.stepTimes(srun, id, wideTasks, max(3, m.runs/10))
		return []figure{first, whole}, err
	})
}

// stepTimes are the figures of n steps of so many tasks.
func (m *meter) stepTimes(srun, id string, tasks, n int) (first, whole figure, err error) {
	var firsts, wholes []float64
	for range n {
		f, w, err := m.step(srun, id, tasks, "echo up", tasks)
		if err != nil {
			return figure{}, figure{}, err
		}
		firsts, wholes = append(firsts, f), append(wholes, w)
	}
	least := need{programs: 1, trips: 2, forks: float64(tasks) * each}
	name := fmt.Sprintf("srun, %d tasks on 4 nodes, to ", tasks)
	return figure{name: name + "the first line of all, p50", value: median(firsts), unit: "ms", need: least},
		figure{name: name + "its end, p50", value: median(wholes), unit: "ms", need: least}, nil
}

// inAllocation measures in an allocation of four nodes that runs.
func (m *meter) inAllocation(measure func(srun, id string) ([]figure, error)) ([]figure, error) {
	alloc, srun := []string{"sbatch", "--parsable", "-o", "/dev/null", "-N4", "-n4", "--wrap", "sleep 600"}, "srun"
	cancel := "scancel"
	if g, ok := m.sys.(*gangdSystem); ok {
		alloc[0], srun, cancel = filepath.Join(g.bin, "gsubmit"), filepath.Join(g.bin, "grun"), filepath.Join(g.bin, "gcancel")
	}
	id, err := m.command(alloc)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = m.command([]string{cancel, id}) }()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, _, err = m.step(srun, id, 1, "echo up", 0); err == nil { // the job runs
			break
		}
		if time.Now().After(until) {
			return nil, err
		}
	}
	return measure(srun, id)
}

// step runs one and reads lines of its output, then the rest; times in milliseconds.
func (m *meter) step(srun, job string, tasks int, script string, lines int) (first, whole float64, err error) {
	args := []string{"--jobid=" + job, fmt.Sprintf("-N%d", min(tasks, 4)), fmt.Sprintf("-n%d", tasks), "--overcommit", "--mpi=none", "sh",
		"-c", script}
	cmd := exec.CommandContext(m.ctx, srun, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), m.sys.env()...), m.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	r := bufio.NewReader(out)
	for range lines {
		if _, err := r.ReadString('\n'); err != nil {
			return 0, 0, fmt.Errorf("%s: its tasks' lines: %w", srun, err)
		}
	}
	first = ms(time.Since(begun))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, 0, err
	}
	err = cmd.Wait()
	return first, ms(time.Since(begun)), err
}
