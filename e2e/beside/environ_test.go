package beside

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gangd/e2e/slurmlab"
	"gangd/pkg/lab/tool"
	"gangd/pkg/wire/people"
)

// shapes are requests whose environments are compared. Behind a | stands which of Slurm's variables differ, by a
// regular expression, and why: where the tasks are, mostly.
var shapes = strings.Split(strings.TrimSpace(`
-N1
-n1
-N2
-n3
-N2 -n2
-N2 --ntasks-per-node=3
-N2 --ntasks-per-node=1
--ntasks-per-node=4
-N1 -c8 --gres=gpu:2
-N2 -c4 --gres=gpu:2
-N1 --exclusive | ^SLURM_GPUS_ON_NODE$|^SLURM_STEP_GPUS$|^(CUDA|ROCR)_VISIBLE|^GPU_DEVICE|^ZE_ | a step has all the cards of its job; of a job that asked for none Slurm gives its steps none
-N2 --exclusive --gres=gpu:2
-N2 --exclusive -c2 | ^SLURM_GPUS_ON_NODE$|^SLURM_STEP_GPUS$|^(CUDA|ROCR)_VISIBLE|^GPU_DEVICE|^ZE_ | a step has all the cards of its job; of a job that asked for none Slurm gives its steps none
-n2 -N2 -c2 --exclusive | ^SLURM_GPUS_ON_NODE$|^SLURM_STEP_GPUS$|^(CUDA|ROCR)_VISIBLE|^GPU_DEVICE|^ZE_ | a step has all the cards of its job; of a job that asked for none Slurm gives its steps none
--exclusive -n4 | ^SLURM_GPUS_ON_NODE$|^SLURM_STEP_GPUS$|^(CUDA|ROCR)_VISIBLE|^GPU_DEVICE|^ZE_ | a step has all the cards of its job; of a job that asked for none Slurm gives its steps none
-n20
-n4 -c2
-c4
-N2 -c2 --ntasks-per-node=2
-n2 --mem=100M
-n2 --mem-per-cpu=100M
-N1 --gpus=2
-N2 --gpus-per-node=2
-n2 --gpus-per-task=1
-N1 --gpus=2 --cpus-per-gpu=2
-N1 --gpus=2 --mem-per-gpu=100M
-N1 -n12 -O
-N2 -n20 -O
-w n2,n3
-N1 --ntasks-per-socket=2
-N1 --ntasks-per-core=1
-N1 --mincpus=4
-N1 --gpus-per-node=2 --ntasks-per-node=2
-N1 -B 1:4:1 | ^SLURM_CPU_BIND | tasks are bound to CPUs where the node binds them; Slurm says so where it does not, too
-n1 -J foo -t 5
-n1 --distribution=cyclic
-n1 --cpu-freq=high
-n1 --gpu-freq=low | ^SLURMD_TRES_FREQ | clocks are the node's
-n1 --acctg-freq=10
-n1 --profile=none
-n2 -N1 --ntasks-per-node=2 --mem=200M
-N4 -c1
`), "\n")

// ours are the differences that all shapes may have.
var ours = []struct{ name, why string }{
	{`^GANG_|^MASTER_`, "gangd's own"},
	{`^(NOTIFY_SOCKET|WATCHDOG_USEC)$`, "a rank that says that it lives is heard"},
	{`^PYTHONUNBUFFERED$`, "a log can be followed"},
	{`^CUDA_DEVICE_ORDER$`, "the numbers of cards are those of the PCI bus, which CUDA goes by only when it is told"},
	{`^SLURM_(CONF|WORKING_CLUSTER)$`, "there is no slurm.conf and no other cluster"},
	{`^SLURM_JOB_(START|END)_TIME$`, "told as from 23.02 on"},
	{`^SLURM_JOB_QOS$`, "there is no quality of service"},
	{`_PACK_GROUP_0$`, "22.05 takes every job with a step for a heterogeneous one"},
	{`^SRUN_DEBUG$`, "how talkative srun was is nothing to its tasks"},
	{`^SLURMD_TRES_BIND$|^SLURM_NTASKS_PER_TRES$`, "Slurm's own, between its programs"},
	{`^(SHLVL|_|PWD|OLDPWD|PATH)$`, "the shell's, and where gangd's programs are"},
}

// same are variables whose value is another in each run, and how much of it is compared.
var anyValue = regexp.MustCompile(`^SLURM_(JOB_?ID|TASK_PID|STEP_LAUNCHER_PORT|SRUN_COMM_PORT|SUBMIT_DIR|SUBMIT_HOST)$`)

// who are told: a script, the first task of a step in it, and the command of salloc.
var who = []string{"script", "step", "salloc"}

// told is what each of who was told, by name.
type told map[string]map[string]string

const environJob = `#!/bin/bash
env -0 >script.env
srun -Q sh -c 'if [ "$SLURM_PROCID" = 0 ]; then env -0 >step.env; fi'
`

// environments runs the job and the allocation of a shape.
func (s *system) environments(ctx context.Context, shape string, n int) (told, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("env%d", n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "job.sh"), []byte(environJob), 0o755); err != nil {
		return nil, err
	}
	script := "sbatch -Q -W -o out " + shape + " job.sh && salloc -Q " + shape + " bash -c 'env -0 >salloc.env'"
	var errs bytes.Buffer
	cmd := s.command(ctx, dir, "bash", "-c", script)
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w: %s", s.name, shape, err, errs.String())
	}
	out := told{}
	for _, w := range who {
		text, err := os.ReadFile(filepath.Join(dir, w+".env"))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.name, shape, err)
		}
		out[w] = map[string]string{}
		for kv := range strings.SplitSeq(string(text), "\x00") {
			if name, value, ok := strings.Cut(kv, "="); ok && !allowed(name) {
				if anyValue.MatchString(name) {
					value = "*"
				}
				out[w][name] = value
			}
		}
	}
	return out, nil
}

func allowed(name string) bool {
	return slices.ContainsFunc(ours, func(o struct{ name, why string }) bool { return regexp.MustCompile(o.name).MatchString(name) })
}

// record of what Slurm tells, for where there is none.
const environRecord = "testdata/environments.txt"

// TestEnvironments holds what scripts, steps and salloc's commands are told against what Slurm tells for the same request: no
// variable more, none less, no other value but for those listed above. Where Slurm is
// not installed it is held against the record, which GANG_UPDATE=1 writes where it is.
func TestEnvironments(t *testing.T) {
	tool.Need(t, "env")
	dir, err := os.MkdirTemp("", "ge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	want := recorded(t)
	if os.Getenv("GANG_COMPARE") != "" || os.Getenv("GANG_UPDATE") != "" {
		if why := slurmlab.Missing(); why != "" {
			t.Skip(why)
		}
		live := allOf(t, startSlurm(t, filepath.Join(dir, "1"), false), 1)
		if os.Getenv("GANG_UPDATE") != "" {
			keepRecord(t, live)
		} else if diff := differ(want, live); diff != "" {
			t.Errorf("%s is not what this Slurm says: GANG_UPDATE=1 go test ./e2e/beside -run Environments\n%s", environRecord, diff)
		}
		want = live
	}
	if len(shapes) < 20 {
		t.Errorf("%d shapes, want at least 20", len(shapes))
	}
	if diff := differ(want, allOf(t, startGangd(t, dir, false), 1)); diff != "" {
		t.Errorf("Slurm | gangd\n%s", diff)
	}
}

// allOf is what is told for each shape, so many at a time.
func allOf(t *testing.T, s *system, at int) map[string]told {
	out := map[string]told{}
	var mu sync.Mutex
	var all sync.WaitGroup
	turn := make(chan struct{}, at)
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	for n, line := range shapes {
		if n%share != 0 && os.Getenv("GANG_COMPARE") == "" && os.Getenv("GANG_UPDATE") == "" {
			continue // what a script is told of what was asked for is held in pkg/core/script for all of them
		}
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			shape, _, _ := split(line)
			x, err := s.environments(ctx, shape, n)
			mu.Lock()
			defer mu.Unlock()
			if out[shape] = x; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return out
}

// split is a shape, and what of it may differ.
func split(line string) (shape string, may *regexp.Regexp, why string) {
	parts := strings.SplitN(line, " | ", 3)
	if len(parts) < 3 {
		return line, nil, ""
	}
	return parts[0], regexp.MustCompile(parts[1]), parts[2]
}

// where a job has its nodes is the scheduler's own choice.
var place = regexp.MustCompile(`^(SLURM_(JOB_|STEP_)?NODELIST|SLURMD_NODENAME|HOSTNAME|SLURM_TOPOLOGY_ADDR|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|ZE_AFFINITY_MASK|SLURM_(JOB|STEP)_GPUS)$`)

// whose are variables that name who runs the test.
var whose = map[string]string{"SLURM_JOB_UID": strconv.Itoa(os.Getuid()), "SLURM_JOB_GID": strconv.Itoa(os.Getgid()),
	"SLURM_JOB_USER": people.Me(context.Background())}

// differ lists what is told otherwise.
func differ(want, got map[string]told) string {
	var b strings.Builder
	for _, line := range shapes {
		shape, may, _ := split(line)
		if want[shape] == nil || got[shape] == nil {
			continue // which was said, or is no record yet
		}
		for _, w := range who {
			a, c := want[shape][w], got[shape][w]
			names := maps.Clone(a)
			maps.Copy(names, c)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				x, hasX := a[name]
				y, hasY := c[name]
				switch {
				case hasX == hasY && (x == y || place.MatchString(name)), may != nil && may.MatchString(name):
				case whose[name] != "" && y == whose[name]: // the record was made by root
				case name == "SLURM_JOB_ACCOUNT" && !hasY && x == "root": // no account is assumed for a user
				case name == "CUDA_VISIBLE_DEVICES" && !hasX && y == "": // cards that a job has not are hidden from it
				default:
					fmt.Fprintf(&b, "%s, %s: %s: %s | %s\n", shape, w, name, or(hasX, x), or(hasY, y))
				}
			}
		}
	}
	return b.String()
}

func or(has bool, v string) string {
	if !has {
		return "not set"
	}
	return fmt.Sprintf("%q", v)
}

func recorded(t *testing.T) map[string]told {
	text, err := os.ReadFile(environRecord)
	if err != nil && os.Getenv("GANG_UPDATE") == "" {
		t.Fatal(err)
	}
	out := map[string]told{}
	shape, at := "", ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "=== "):
			shape = line[4:]
			out[shape] = told{}
		case strings.HasPrefix(line, "--- "):
			at = line[4:]
			out[shape][at] = map[string]string{}
		case line != "":
			name, value, _ := strings.Cut(line, "=")
			out[shape][at][name] = value
		}
	}
	return out
}

func keepRecord(t *testing.T, all map[string]told) {
	var b strings.Builder
	for _, line := range shapes {
		shape, _, _ := split(line)
		fmt.Fprintf(&b, "=== %s\n", shape)
		for _, w := range who {
			fmt.Fprintf(&b, "--- %s\n", w)
			for _, name := range slices.Sorted(maps.Keys(all[shape][w])) {
				fmt.Fprintf(&b, "%s=%s\n", name, all[shape][w][name])
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(environRecord), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(environRecord, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
