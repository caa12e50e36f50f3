package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
	"gangd/pkg/node/shim"
)

// calls is what the daemons do with the kernel on a path: syncs of files, programs that they and what they start
// execute but for spare shims, and connections that they take.
type calls struct{ syncs, programs, connections int }

const uncounted = -1

// tracer is strace on all daemons of a cluster and what they start, from now to the end of the test: one that lets go while
// a program is being started may hang, and the program with it.
type tracer struct {
	c    *cluster
	path string
}

func (c *cluster) trace() *tracer {
	c.t.Helper()
	tally.Need(c.t, "strace")
	x := &tracer{c: c, path: filepath.Join(c.tmp, "strace")}
	args := []string{"-f", "-qq", "-ttt", "-s", "64", "-o", x.path, "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,sync,execve,execveat,accept4"}
	var pids []int
	c.until("the node has its spare shims", func() bool { // one that it starts while strace comes would not be counted
		pids = c.daemons()
		return len(pids) >= daemonsAtRest
	})
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	cmd := exec.Command("strace", args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	c.t.Cleanup(func() { // the kernel lets go of them all
		_ = cmd.Process.Kill()
		<-done
	})
	c.until("strace holds the daemons", func() bool {
		select {
		case <-done:
			tally.Skip(c.t, "strace can't trace here: %s", errs.String())
		default:
		}
		for _, pid := range pids {
			if running(pid) && !traced(pid) {
				return false
			}
		}
		return true
	})
	for _, pid := range c.daemons() {
		if running(pid) && !traced(pid) {
			c.t.Fatalf("process %d was started while strace came, and is not counted", pid)
		}
	}
	return x
}

// daemonsAtRest are gangd, gnoded, the shim of one member, and the two that wait for the next.
const daemonsAtRest = 5

// count is what was called while something is done.
func (x *tracer) count(do func()) (n calls) {
	x.c.t.Helper()
	from := time.Now()
	do()
	to := time.Now()
	var lines []string
	x.c.until("strace has written all of it", func() bool {
		x.c.must("gctl", "ping") // the connection for which comes after it
		lines = nil
		b, err := os.ReadFile(x.path)
		if err != nil {
			x.c.t.Fatal(err)
		}
		later := false
		for line := range strings.Lines(string(b)) {
			_, rest, _ := strings.Cut(line, " ")
			stamp, call, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
			at, err := strconv.ParseFloat(stamp, 64)
			switch when := time.UnixMicro(int64(at * 1e6)); {
			case err != nil || when.Before(from):
			case when.After(to):
				later = later || strings.HasPrefix(call, "accept4(")
			default:
				lines = append(lines, call)
			}
		}
		return later
	})
	for _, call := range lines {
		switch {
		case strings.Contains(call, "resumed>"), strings.Contains(call, " = -1 "):
		case synced.MatchString(call):
			n.syncs++
		case strings.HasPrefix(call, "execve") && !strings.Contains(call, `"gshim", "spare"`):
			n.programs++
		case strings.HasPrefix(call, "accept4("):
			n.connections++
		}
	}
	return n
}

var synced = regexp.MustCompile(`^(fsync|fdatasync|sync_file_range|syncfs|sync)\(`)

// daemons are the processes of the cluster that are its own: those whose program is of its bin, and whose arguments name its
// directory.
func (c *cluster) daemons() (pids []int) {
	all, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, exe := range all {
		path, err := os.Readlink(exe)
		if err != nil || filepath.Dir(path) != c.bin {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(exe))); err == nil && strings.Contains(string(line), c.dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// membersKept waits until the nodes keep so many members, which the last has gone from when all of its end is done.
func (c *cluster) membersKept(members int) {
	c.t.Helper()
	c.until(fmt.Sprintf("the nodes keep %d members", members), func() bool {
		kept, err := filepath.Glob(filepath.Join(c.dir, "state", "*", shim.MembersDir, "*"))
		return err == nil && len(kept) == members
	})
}

func traced(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err != nil || !strings.Contains(string(b), "TracerPid:\t0\n")
}

// A sync, a process or a connection more on a path that people wait for fails here until the number is changed, which has to be
// worth it. The least of several tries counts: a checkpoint of the database, or a beat, may come in between.
func TestCallsOfThePathsThatPeopleWaitFor(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--gpus=0")
	fifo := filepath.Join(c.tmp, "fifo") // that nobody ever writes to: a shell waits there without another process
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	script := c.script("true.sh", "#!/bin/sh\nexit 0\n")
	hangs := c.script("hang.sh", "#!/bin/sh\nread forever <"+fifo+"\n")
	again := c.script("again.sh", "#!/bin/sh\n[ $GANG_RESTART_COUNT -gt 0 ] || read forever <"+fifo+"\n")
	ended := func(id int64) { c.wait(id, api.JobCompleted) }
	ended(c.submit(script)) // what the first of all needs besides
	alloc := c.submit("--wrap", "sleep 600")
	c.wait(alloc, api.JobRunning)
	c.membersKept(1)
	x := c.trace()
	in := "--jobid=" + strconv.FormatInt(alloc, 10)
	for _, path := range []struct {
		name string
		do   func()
		want calls
	}{
		{"a query", func() { c.must("gqueue") }, calls{0, 0, 1}},
		{"a submission", func() { c.submit("--hold", script) }, calls{1, 0, 1}},
		{"a job, from submission to end", func() { ended(c.submit(script)) }, calls{6, 1, uncounted}},
		{"a step of one task", func() { c.must("grun", in, "--overlap", "true") }, calls{4, 2, uncounted}},
		{"a job that is requeued once, from submission to end", func() {
			id := c.submit(again)
			c.wait(id, api.JobRunning)
			c.must("gctl", "requeue", strconv.FormatInt(id, 10))
			ended(id)
		}, calls{12, 2, uncounted}},
		{"a job that is cancelled, from submission to end", func() {
			id := c.submit(hangs)
			c.wait(id, api.JobRunning)
			c.must("gcancel", "--now", strconv.FormatInt(id, 10))
			c.wait(id, api.JobCancelled)
		}, calls{7, 1, uncounted}},
	} {
		t.Run(path.name, func(t *testing.T) {
			least := calls{1 << 30, 1 << 30, 1 << 30}
			for range 5 {
				n := x.count(func() { path.do(); c.membersKept(1) })
				least = calls{min(least.syncs, n.syncs), min(least.programs, n.programs), min(least.connections, n.connections)}
			}
			if w := path.want; least.syncs > w.syncs || least.programs > w.programs || w.connections != uncounted && least.connections > w.connections {
				t.Errorf("%+v, wanted %+v", least, path.want)
			}
		})
	}
}
