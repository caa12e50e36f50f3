package beside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/slurmlab"
	"gangd/e2e/trial"
)

const (
	nodes, cards, cpus, memory = 4, 2, 8, 4000
	features                   = "fast,big"
	// firstJob is the id of the first job of both, of more digits than what else is
	// printed, so that an id can be told from a count.
	firstJob = 1001
	// limit is for one case; the slowest wait for a time limit, which Slurm keeps to the minute.
	limit = 200 * time.Second
)

// system is one of the two, running.
type system struct {
	name string
	env  []string
	path string // in front of PATH; empty: none
	dir  string // of the cases
	next int    // id of the next job
}

// boundCPUs has the one node of two systems that bind tasks to CPUs.
const boundCPUs = 2

// startSlurm brings up the real one.
func startSlurm(t *testing.T, dir string, bound bool) *system {
	t.Helper()
	o := slurmlab.Options{Dir: filepath.Join(dir, "s"), Nodes: nodes, CPUs: cpus, Memory: memory, GPUs: cards, FirstJob: firstJob,
		Scheduler: "bf_interval=1", // by which alone Slurm starts heterogeneous jobs

		NodeWords: "Feature=" + features, Accounting: slurmlab.MissingAccounting() == ""}
	if bound {
		o = slurmlab.Options{Dir: o.Dir, Nodes: 1, CPUs: boundCPUs, Memory: memory, FirstJob: firstJob, Bound: true}
	}
	s, err := slurmlab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return &system{name: "slurm", env: s.Env(), dir: filepath.Join(dir, "ws"), next: firstJob}
}

// startGangd brings up gangd with equal nodes, and Slurm's names of its commands.
func startGangd(t *testing.T, dir string, bound bool) *system {
	t.Helper()
	bin := trial.Bin(t)
	gangd := filepath.Join(bin, "gangd")
	root, links := filepath.Join(dir, "g"), filepath.Join(dir, "links")
	args := []string{"dev", "--detach", "--isolate=false", "--dir=" + root, fmt.Sprintf("--nodes=%d", nodes), fmt.Sprintf("--gpus=%dx80G", cards),
		fmt.Sprintf("--cpus=%d", cpus), fmt.Sprintf("--set=memory=%dM", memory), "--set=features=" + features,
		"--set=grace=30s"} // Slurm's KillWait
	if bound {
		args = []string{"dev", "--detach", "--isolate=false", "--dir=" + root, "--nodes=1", fmt.Sprintf("--cpus=%d", boundCPUs), fmt.Sprintf("--set=memory=%dM", memory),
			"--set=cpu_bind=cores", "--set=cpu_list=0-" + strconv.Itoa(boundCPUs-1), "--set=grace=30s"}
	}
	if out, err := exec.Command(gangd, args...).CombinedOutput(); err != nil {
		t.Fatalf("gangd dev: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command(gangd, "dev", "--stop", "--dir="+root).Run() })
	if out, err := exec.Command(gangd, "slurm-links", links).CombinedOutput(); err != nil {
		t.Fatalf("gangd slurm-links: %v\n%s", err, out)
	}
	if err := coverRest(links); err != nil {
		t.Fatal(err)
	}
	s := &system{name: "gangd", env: []string{"GANG_DIR=" + root, "GANG_SLURM_VERSION=22.05"}, path: links, dir: filepath.Join(dir, "wg"), next: firstJob}
	s.burn(t, bin)
	return s
}

// coverRest puts a program that fails before every command of Slurm's that gangd has no name
// for: otherwise the real one would be found behind it, and Slurm be compared with itself.
func coverRest(links string) error {
	for _, name := range []string{"sbatch", "squeue", "scancel", "srun", "salloc", "sattach", "sbcast", "sinfo", "scontrol", "sacct",
		"sacctmgr", "sshare", "sprio", "sstat", "sdiag", "sreport", "strigger"} {
		path := filepath.Join(links, name)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho \""+name+": gangd has no such command\" >&2\nexit 127\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// burn uses up ids until the next one is firstJob: elements of an array have one each.
func (s *system) burn(t *testing.T, bin string) {
	t.Helper()
	for _, args := range [][]string{
		{"gsubmit", "--hold", "-o", "/dev/null", fmt.Sprintf("--array=1-%d", firstJob-1), "--wrap", "true"},
		{"gcancel", "1"},
	} {
		cmd := s.command(t.Context(), t.TempDir(), filepath.Join(bin, args[0]), args[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
}

// run runs a case.
func (s *system) run(ctx context.Context, k *kase, n int) *seen {
	out := &seen{dir: filepath.Join(s.dir, strconv.Itoa(n)), first: s.next}
	if err := os.MkdirAll(out.dir, 0o755); err != nil {
		out.stderr = err.Error()
		return out
	}
	file := filepath.Join(out.dir, "..", "case.sh")
	if err := os.WriteFile(file, []byte(prelude+"\n"+k.script), 0o644); err != nil {
		out.stderr = err.Error()
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := s.command(ctx, out.dir, "bash", file)
	var so, se bytes.Buffer
	cmd.Stdout, cmd.Stderr = &so, &se
	err := cmd.Run()
	out.stdout, out.stderr, out.exit = so.String(), se.String(), cmd.ProcessState.ExitCode()
	out.late = ctx.Err() != nil
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		out.stderr += err.Error()
	}
	out.last = s.clear(out.dir)
	s.next = max(s.next, out.last+1)
	return out
}

// command is a program in a case's own small environment, in a process group that ends
// with the context.
func (s *system) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	path := os.Getenv("PATH")
	if s.path != "" {
		path = s.path + ":" + path
	}
	env := append([]string{"PATH=" + path, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "LC_ALL=C.UTF-8", "TZ=UTC"}, s.env...)
	cmd := exec.CommandContext(ctx, "env", append(append([]string{"-i"}, env...), append([]string{name}, args...)...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// clear ends what the case left, and gives the highest id it used.
func (s *system) clear(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	highest := 0
	out, _ := s.command(ctx, dir, "squeue", "-h", "-a", "-t", "all", "-o", "%A").Output()
	for _, f := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(f); err == nil {
			highest = max(highest, n)
		}
	}
	_ = s.command(ctx, dir, "scancel", "-u", "root").Run()
	s.until(ctx, dir, func(out []byte) bool { return len(bytes.TrimSpace(out)) == 0 }, "squeue", "-h")
	// A node that was slow to answer slurmctld once is shown as idle* until the next ping.
	s.until(ctx, dir, func(out []byte) bool { return !bytes.Contains(out, []byte("*")) }, "sinfo", "-h", "-o", "%t")
	return highest
}

// until waits for what a command prints.
func (s *system) until(ctx context.Context, dir string, done func(out []byte) bool, args ...string) {
	for ctx.Err() == nil {
		out, err := s.command(ctx, dir, args[0], args[1:]...).Output()
		if err != nil || done(out) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
