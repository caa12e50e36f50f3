package noded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/registry"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

// TestRanksStartAsALogin: whatever a daemon was started with, a rank, and what it starts, has the niceness, the weight when memory runs
// out, the CPUs, the I/O class and the limits that a login of its user has.
func TestRanksStartAsALogin(t *testing.T) {
	needRoot(t)
	// Without CAP_SYS_RESOURCE root can't raise a hard limit again, and none is lowered.
	limits := "--nofile=700: --stack=65536: --fsize=9999999: --memlock=4096: --nproc=5000:"
	raises := mayRaise(t)
	if raises {
		limits = "--nofile=700:900 --stack=65536:131072 --fsize=9999999:9999999 --core=0:0 --memlock=4096:4096 --nproc=5000:5000"
	}
	by := []string{"/bin/sh", "-c", `echo 300 >/proc/self/oom_score_adj; exec nice -n 7 ionice -c 3 taskset -c 0 prlimit ` + limits + ` "$0"`}
	tool.Need(t, "nice", "ionice", "taskset", "prlimit")
	c := newController(t)
	work := registry.Open(t, t.TempDir())
	if err := os.Chown(work, somebody, somebody); err != nil {
		t.Fatal(err)
	}
	o := c.options(registry.Open(t, t.TempDir()))
	o.SingleUser, o.JobLimits = false, []proc.Rlimit{{Name: "memlock", Soft: proc.NoRlimit, Hard: proc.NoRlimit}}
	cmd := c.spawnBy(o, by...)
	defer func() {
		c.empty(o.StateDir)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	const script = `#!/bin/sh
cut -d' ' -f19 /proc/self/stat
cat /proc/self/oom_score_adj
ionice
nproc
cat /proc/self/limits
`
	k := c.desire(1, 1, 1, script, func(a *api.Assignment, s *api.Spec) {
		a.Body.User, a.Body.UID, a.Body.GID, s.WorkDir, s.Output = "nobody", somebody, somebody, work, "out"
	})
	c.untilPhase(k, api.PhaseStopped)
	b, err := os.ReadFile(filepath.Join(work, "out"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := proc.Affinity(1)
	if err != nil {
		t.Fatal(err)
	}
	head, table, _ := strings.Cut(string(b), "Limit ")
	if want := fmt.Sprintf("0\n0\nnone: prio 0\n%d\n", len(all)); head != want {
		t.Errorf("it starts with %q, want %q", head, want)
	}
	login, _ := proc.NewLoginLimits(groupNumber).Of("nobody", somebody, []uint32{somebody})
	own, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range proc.With(login, o.JobLimits) {
		if have, ok := proc.ReadLimit(string(own), want.Name); ok && !raises {
			want.Hard = min(want.Hard, have.Hard)
			want.Soft = min(want.Soft, want.Hard)
		}
		if got, ok := proc.ReadLimit(table, want.Name); !ok || got != want {
			t.Errorf("limit %+v, want %+v", got, want)
		}
	}
}

// mayRaise: this process has CAP_SYS_RESOURCE.
func mayRaise(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, caps, _ := strings.Cut(string(b), "CapEff:\t")
	caps, _, _ = strings.Cut(caps, "\n")
	n, err := strconv.ParseUint(caps, 16, 64)
	return err == nil && n&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// TestModesOfADaemon: whatever the umask, users reach their scripts; where a directory that somebody has made keeps them out the daemon
// does not start, and one that is closed later takes the node out of service by name, until it is open.
func TestModesOfADaemon(t *testing.T) {
	needRoot(t)
	for _, mask := range []string{"022", "027", "077", "0777"} {
		c := newController(t)
		base := registry.Open(t, t.TempDir())
		work := filepath.Join(base, "work")
		if err := errors.Join(os.Mkdir(work, 0o755), os.Chown(work, somebody, somebody)); err != nil {
			t.Fatal(err)
		}
		o := c.options(filepath.Join(base, "above", "state"))
		o.SingleUser = false
		cmd := c.spawnBy(o, "/bin/sh", "-c", `umask `+mask+`; exec "$0"`)
		as := func(a *api.Assignment, s *api.Spec) {
			a.Body.User, a.Body.UID, a.Body.GID, s.WorkDir, s.Output = "nobody", somebody, somebody, work, "out"
		}
		k := c.desire(1, 1, 1, "#!/bin/sh\nid -u\n", as)
		if a := c.untilPhase(k, api.PhaseStopped); len(a.Ranks) != 1 || a.Ranks[0].ExitCode != 0 {
			t.Errorf("umask %s: %+v", mask, a)
		}
		if mask == "077" {
			if err := os.Chmod(o.StateDir, 0o700); err != nil {
				t.Fatal(err)
			}
			k := c.desire(2, 1, 1, "#!/bin/sh\n", as)
			want := "state_dir: users can't pass " + o.StateDir + " (mode 0700): chmod o+x " + o.StateDir
			if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Blame != api.BlameUnfit || r.Text != want {
				t.Errorf("%+v, want %s", r, want)
			}
			c.forget(k)
			if err := os.Chmod(o.StateDir, 0o711); err != nil {
				t.Fatal(err)
			}
			k = c.desire(3, 1, 1, "#!/bin/sh\n", as)
			c.untilPhase(k, api.PhaseStopped)
		}
		c.empty(o.StateDir)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for _, closed := range []string{"above/state", "above"} {
		c := newController(t)
		base := registry.Open(t, t.TempDir())
		o := c.options(filepath.Join(base, "above", "state"))
		o.SingleUser = false
		at := filepath.Join(base, closed)
		if err := errors.Join(os.MkdirAll(o.StateDir, 0o755), os.Chmod(at, 0o700)); err != nil {
			t.Fatal(err)
		}
		want := "state_dir: users can't pass " + at + " (mode 0700): chmod o+x " + at
		ctx, stop := context.WithTimeout(context.Background(), patience)
		err := Run(ctx, o)
		stop()
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTrial: a node on which no member can be held says so as its health, not as a refusal that counts, and is back by itself.
func TestTrial(t *testing.T) {
	needRoot(t)
	state := sharedMount(t)
	if err := os.Mkdir(filepath.Join(state, membersDir), 0o711); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(Options{Log: slog.New(slog.DiscardHandler)}, &stateDir{path: state, id: "0"})
	fault := nodeFault("no cgroup")
	if got := d.judged(fault); got != fault || d.fitness.failedTrial() {
		t.Errorf("a node that can hold members: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(state, "fill"), make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	users := refuse(api.BlameFiles, "no such directory")
	if got := d.judged(users); got != users || d.fitness.failedTrial() {
		t.Errorf("a refusal for the user's files: %+v", got)
	}
	if got := d.judged(fault); got.Blame != api.BlameUnfit || got.Text != fault.Text {
		t.Errorf("on a full disk: %+v", got)
	}
	if sick := d.board.healthNow().Sick; !strings.HasPrefix(sick, "no job can be held here: ") || !strings.HasSuffix(sick, "no space left on device") {
		t.Errorf("its health: %q", sick)
	}
	if err := os.Remove(filepath.Join(state, "fill")); err != nil {
		t.Fatal(err)
	}
	if d.tryAgain(); d.board.healthNow().Sick != "" {
		t.Errorf("its health on a disk with room: %q", d.board.healthNow().Sick)
	}
	if left, _ := filepath.Glob(filepath.Join(state, membersDir, ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
