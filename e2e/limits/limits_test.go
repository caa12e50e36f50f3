package limits

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// Environment of the tests in a virtual machine.
const (
	wantEnv = "GANG_LIMITS_WANT" // how limits must hold: [api.LimitEnforced] or [api.LimitSampled]
	binEnv  = "GANG_LIMITS_BIN"  // the programs
)

// TestLimits: jobs that take what they may not have end, with both figures said, and the one
// beside them does not notice.
func TestLimits(t *testing.T) {
	for name, base := range bases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold(t, base)
		})
	}
}

// bases are the ways of holding jobs that this machine allows, as values of the node's key cgroup.
func bases(t *testing.T) map[string]string {
	out := map[string]string{"found": ""}
	if os.Getenv(wantEnv) != "" {
		return out
	}
	out["without cgroups"] = noCgroups
	if c := proc.DetectAll()[proc.Cgroup1]; c.Dir != "" {
		out["v1"] = c.Dir
	}
	return out
}

const (
	// hog takes 600 MB and keeps them: nobody reads what it writes.
	hog = "#!/bin/sh\ncd $1\nmkfifo pipe$$\nsleep 1000 <pipe$$ &\nexec dd bs=600M count=1 if=/dev/zero of=pipe$$\n"
	// bomb starts 400 processes, or as many as it is given, and waits.
	bomb = "#!/bin/sh\ni=0\nwhile [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done\nwait\n"
	// fits stays within what it asked for, for longer than it takes to look twice.
	fits = "#!/bin/sh\ndd bs=60M count=1 if=/dev/zero of=/dev/null\n(dd bs=60M count=1 if=/dev/zero | sleep 3) 2>/dev/null\nexit 4\n"
	// beside is there all the time.
	beside = "#!/bin/sh\nwhile [ ! -e $1/done ]; do sleep 0.1; done\nexit 6\n"
)

// processes is what a job may have; 400 are more.
const processes = 100

// noCgroups is the value without any.
const noCgroups = proc.NoCgroups

// bring starts a cluster of one node.
func bring(t *testing.T, base string, options ...string) *trial.Client {
	t.Helper()
	bin := os.Getenv(binEnv)
	if bin == "" {
		bin = trial.Programs(t)
	}
	dir, err := os.MkdirTemp("", "gl")
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	c := &trial.Client{T: t, Bin: bin, Dir: dir, Tmp: tmp, Patience: trial.Patience}
	if os.Getenv(wantEnv) != "" {
		// The processors of a virtual machine are emulated, on a machine that does other things too: a command
		// takes half a second, and looking all the time is what it would be busy with.
		c.Patience, c.Pause = 10*trial.Patience, time.Second
	}
	t.Cleanup(func() {
		trial.Logs(t, dir+"/log/*.log")
		if out, errs, code := c.Run("gangd", "dev", "--stop", "--dir="+dir); code != 0 {
			t.Errorf("gangd dev --stop: exit %d\n%s%s", code, out, errs)
		}
		os.RemoveAll(dir)
	})
	args := append([]string{"dev", "--detach", "--isolate=false", "--dir=" + dir, "--nodes=1", "--set=memory=64G"}, options...)
	if base != "" {
		args = append(args, "--set=cgroup="+base)
	}
	c.Must("gangd", args...)
	return c
}

func hold(t *testing.T, base string) {
	c := bring(t, base, "--cpus=16", "--set=job_processes="+strconv.Itoa(processes))
	tmp, dir := c.Tmp, c.Dir
	for name, text := range map[string]string{"hog": hog, "bomb": bomb, "fits": fits, "beside": beside} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	node := c.Nodes()[0]
	t.Logf("%s: %+v", node.Containment, node.Limits)
	want := os.Getenv(wantEnv)
	switch {
	case base == noCgroups:
		want = api.LimitSampled
	case want == "":
		want = node.Limits.Memory
	}
	if l := node.Limits; l.Memory != want || l.Processes != want || want != api.LimitEnforced && l.Reason == "" {
		t.Errorf("limits %+v, want memory and processes %s", l, want)
	}
	if list := c.Must("ginfo"); strings.Contains(list, "memory and processes are sampled, not enforced: ") != (want == api.LimitSampled) {
		t.Errorf("ginfo says\n%s", list)
	}

	neighbour := c.Submit("--mem=50M", filepath.Join(tmp, "beside"), tmp)
	c.Wait(neighbour, api.JobRunning)
	greedy := c.Submit("--mem=100M", filepath.Join(tmp, "hog"), tmp)
	forks := c.Submit("--mem=100M", filepath.Join(tmp, "bomb"))
	honest := c.Submit("--mem=150M", filepath.Join(tmp, "fits"))

	ended(t, c, greedy, api.JobOutOfMemory, api.CauseOOM, "used ", " of 100M ")
	if want == api.LimitEnforced {
		ended(t, c, forks, api.JobFailed, api.CauseCrash, "forks were refused", "a job 100 processes")
	} else {
		ended(t, c, forks, api.JobOutOfMemory, api.CauseOOM, "processes of 100 allowed")
	}
	if j := c.Wait(honest, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 4 || j.Cause != api.CauseCrash {
		t.Errorf("who kept to the limit ended with %v, %s: %s", j.ExitCode, j.Cause, j.Verdict)
	}
	if err := os.WriteFile(filepath.Join(tmp, "done"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := c.Wait(neighbour, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 6 || j.Epoch != 1 {
		t.Errorf("the job beside them ended with %v in epoch %d: %s", j.ExitCode, j.Epoch, j.Verdict)
	}
	c.Until(c.Patience, "no group of a job is left", func() bool { return len(groups(t, dir)) == 0 })
}

// ended waits for a job and compares how it ended; its verdict must have all of texts.
func ended(t *testing.T, c *trial.Client, id int64, state api.JobState, cause api.Cause, texts ...string) {
	t.Helper()
	j := c.Wait(id, state)
	t.Log(j.Verdict)
	for _, text := range texts {
		if !strings.Contains(j.Verdict, text) {
			t.Errorf("job %d: %q does not say %q", id, j.Verdict, text)
		}
	}
	if j.Cause != cause {
		t.Errorf("job %d ended by %s, want %s: %s", id, j.Cause, cause, j.Verdict)
	}
}

// groups are those of a cluster's members, in every hierarchy.
func groups(t *testing.T, dir string) (left []string) {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(dir, "state", "n1", "id"))
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.TrimSpace(string(id)) + "-"
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			left = append(left, path)
		}
		return nil // a group that went meanwhile
	})
	return left
}
