package noded

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

var hookKills = flag.Int("hooks.kills", 6, "times that TestHooksThroughKills kills the daemon")

// hookFiles are a prolog and an epilog that write into dir/log.
func hookFiles(t *testing.T, dir, prolog, epilog string) Hooks {
	t.Helper()
	put := func(name, body string) string {
		path := filepath.Join(dir, name)
		text := "#!/bin/bash\ncd " + dir + "\nlog() { echo \"$*\" >> log; }\n" + body + "\n"
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return Hooks{Prolog: put("prolog", prolog), Epilog: put("epilog", epilog), Timeout: patience}
}

func logOf(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "log"))
	return string(b)
}

// hides leaves a process that nobody waits for, and says its pid.
const hides = "#!/bin/bash\ncd %[1]s\nsetsid sleep 1000 >/dev/null 2>&1 </dev/null &\necho $! $$ > alive.$GANG_JOB_ID.$GANG_EPOCH\necho rank >> log\n"

// allGone is what an epilog finds of those processes.
const allGone = `lives() { grep -qs '^State:.[RSDT]' /proc/$1/status; }
for p in $(cat alive.$GANG_JOB_ID.$GANG_EPOCH 2>/dev/null); do lives $p && log ALIVE $p; done
`

// TestHooks: prolog, ranks, the last process gone, epilog, and only then the word that it is over. What
// hooks are told is fixed.
func TestHooks(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	o.Hooks = hookFiles(t, dir, `log prolog; env | cut -d= -f1 | sort | tr '\n' ' ' > env.prolog; setsid sleep 900 & echo $! > left; echo scratch of 3T; echo is there >&2`,
		allGone+`lives $(cat left) && log the prolog left something; sleep 0.1; log epilog $GANG_JOB_ID $GANG_EPOCH $SLURM_SCRIPT_CONTEXT; echo wiped`)
	c.run(o)
	k := c.desire(7, 2, 1, fmt.Sprintf(hides, dir))
	told := c.untilPhase(k, api.PhaseStopped)
	if told.Measure == nil || len(told.Measure.Hooks) != 2 {
		t.Fatalf("told of its hooks: %+v", told.Measure)
	}
	for i, want := range []api.HookRun{{Hook: "prolog", Output: "scratch of 3T\nis there"}, {Hook: "epilog", Output: "wiped"}} {
		got := told.Measure.Hooks[i]
		if want.Seconds = got.Seconds; got != want || i == 1 && got.Seconds < 0.1 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got, want := logOf(dir), "prolog\nrank\nepilog 7 2 epilog_slurmd\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b, _ := os.ReadFile(filepath.Join(dir, "env.prolog"))
	want := "CUDA_VISIBLE_DEVICES GANG_CARDS GANG_CPUS GANG_EPOCH GANG_GID GANG_HOME GANG_HOOK GANG_HOOK_MARK GANG_JOB_ID GANG_NODE GANG_NODELIST GANG_PARTITION GANG_UID GANG_USER " +
		"OLDPWD PATH PWD SHLVL SLURMD_NODENAME SLURM_JOBID SLURM_JOB_GID SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_JOB_PARTITION SLURM_JOB_UID SLURM_JOB_USER SLURM_NODELIST SLURM_RESTART_COUNT SLURM_SCRIPT_CONTEXT SLURM_UID _ "
	if string(b) != want {
		t.Errorf("the prolog sees %s\nwant %s", b, want)
	}
	if left, _ := os.ReadDir(filepath.Join(o.StateDir, hooksDir)); len(left) != 0 {
		t.Errorf("records left: %v", left)
	}
}

// TestEndIsToldBeforeTheEpilog: how its ranks ended is told at once, also by a daemon that finds it, and that it is over, so
// that what it had can be given on, when the epilog is over. No prolog of its job begins meanwhile.
func TestEndIsToldBeforeTheEpilog(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	o.Hooks = hookFiles(t, dir, "log prolog $GANG_EPOCH", `log epilog $GANG_EPOCH; until [ -e done.$GANG_EPOCH ]; do sleep 0.01; done; log over $GANG_EPOCH`)
	daemon := c.spawn(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\nexit 3\n")
	told := func() bool {
		a := c.latest[k]
		return a.Phase == api.PhaseRunning && a.Epilog == api.PhaseStopped && len(a.Ranks) == 1 && a.Ranks[0].Exited && a.Ranks[0].ExitCode == 3 && a.Measure != nil
	}
	for n := range 3 {
		c.until("its end to be told", told)
		for end := time.Now().Add(patience); strings.Count(logOf(dir), "epilog 1\n") <= n && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		if n < 2 {
			kill(t, daemon)
			c.update(func() { delete(c.latest, k) })
			daemon = c.spawn(o)
		}
	}
	next := c.desire(1, 2, 1, "#!/bin/sh\n")
	if err := os.WriteFile(filepath.Join(dir, "done.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := c.untilPhase(k, api.PhaseStopped); a.Epilog != "" || len(a.Ranks) != 1 {
		t.Errorf("%+v", a)
	}
	if err := os.WriteFile(filepath.Join(dir, "done.2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(next, api.PhaseStopped)
	if got, want := logOf(dir), "prolog 1\nepilog 1\nepilog 1\nepilog 1\nover 1\nprolog 2\nepilog 2\nover 2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	finish(t, c, o, daemon)
}

// TestPrologFails: nothing of the member ran, the refusal is the node's and says why, and the epilog undoes
// what the prolog had done. One that hangs is ended with all that it started.
func TestPrologFails(t *testing.T) {
	for name, x := range map[string]struct {
		prolog, want string
		timeout      time.Duration
	}{
		"fails": {"log prolog; echo looking; echo 'no IB link' >&2; exit 3", "exit status 3: no IB link", patience},
		"hangs": {"log prolog; echo waiting for a file server; sleep 1000 & echo $! > child; wait", "not done within 300 ms: waiting for a file server", 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			dir := t.TempDir()
			o := c.options(t.TempDir())
			o.Hooks = hookFiles(t, dir, x.prolog, "log epilog")
			o.Hooks.Timeout = x.timeout
			c.run(o)
			k := c.desire(1, 1, 1, fmt.Sprintf(hides, dir))
			r := c.untilPhase(k, api.PhaseRefused).Refusal
			if want := "prolog: " + o.Hooks.Prolog + ": " + x.want; r.Blame != api.BlameNode || r.Text != want {
				t.Errorf("%+v, want %s", r, want)
			}
			if got := logOf(dir); got != "prolog\nepilog\n" {
				t.Errorf("%q", got)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "child")); err == nil {
				pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				if s, there := proc.ReadStat(pid); there && !s.Dead() {
					t.Errorf("its child lives: %+v", s)
				}
			}
		})
	}
}

// TestEpilogFails: the node says that it is not fit, tries again, and is fit when that succeeds.
func TestEpilogFails(t *testing.T) {
	old := epilogAgain
	epilogAgain = 50 * time.Millisecond
	t.Cleanup(func() { epilogAgain = old })
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	o.Hooks = hookFiles(t, dir, "", "[ -e mended ] || { echo scratch is not empty; exit 1; }")
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\n")
	if a := c.untilPhase(k, api.PhaseStopped); a.Ranks[0].ExitCode != 0 {
		t.Errorf("%+v", a)
	}
	sick := func() string {
		if c.health == nil {
			return ""
		}
		return c.health.Sick
	}
	want := "epilog of job 1: " + o.Hooks.Epilog + ": exit status 1: scratch is not empty"
	c.until("the node to be out of service", func() bool { return sick() == want })
	if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.until("the node to be fit", func() bool { return c.health != nil && c.health.Sick == "" })
}

// TestHooksThroughKills: kill -9 of the daemon at any moment of a job's life. Each hook ran at least once
// an epoch, and the epilog never while a process of the ranks was there. Whole: -hooks.kills=200.
func TestHooksThroughKills(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	o.Hooks = hookFiles(t, dir, "log prolog $GANG_JOB_ID; sleep 0.03; echo up", allGone+"sleep 0.03; log epilog $GANG_JOB_ID")
	daemon := c.spawn(o)
	for n := range *hookKills {
		job := int64(n + 1)
		k := c.desire(job, 1, 1, fmt.Sprintf(hides, dir)+"sleep 0.0$((RANDOM % 10))\n")
		time.Sleep(time.Duration(rand.IntN(250)) * time.Millisecond) // any moment will do
		kill(t, daemon)
		daemon = c.spawn(o)
		c.until(fmt.Sprintf("job %d to be over", job), func() bool {
			p := c.latest[k].Phase
			return p == api.PhaseStopped || p == api.PhaseLost
		})
		log := logOf(dir)
		first, last := strings.Index(log, fmt.Sprintf("prolog %d\n", job)), strings.LastIndex(log, fmt.Sprintf("epilog %d\n", job))
		if first < 0 || last < first {
			t.Errorf("job %d is over, and its hooks: %q", job, log[max(0, len(log)-300):])
		}
		if a := c.latest[k]; a.Measure != nil && (len(a.Measure.Hooks) == 0 || a.Measure.Hooks[0].Output != "up") {
			t.Errorf("job %d: what the prolog wrote is lost: %+v", job, a.Measure.Hooks)
		}
		c.forget(k)
	}
	if log := logOf(dir); strings.Contains(log, "ALIVE") {
		t.Errorf("an epilog found processes of its job: %s", log)
	}
	finish(t, c, o, daemon)
	if left, _ := os.ReadDir(filepath.Join(o.StateDir, hooksDir)); len(left) != 0 {
		t.Errorf("records left: %v", left)
	}
}

// TestHookDirectory: programs run by their names, and none after one that fails.
func TestHookDirectory(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	h := hookFiles(t, dir, "log first; exit 3", "log second")
	hooks := filepath.Join(dir, "prolog.d")
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{h.Prolog: "20-fails", h.Epilog: "30-after"} {
		if err := os.Rename(from, filepath.Join(hooks, to)); err != nil {
			t.Fatal(err)
		}
	}
	o.Hooks = Hooks{Prolog: hooks, Timeout: patience}
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\n")
	if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Text != "prolog: "+hooks+"/20-fails: exit status 3" {
		t.Errorf("%+v", r)
	}
	if got := logOf(dir); got != "first\n" {
		t.Errorf("%q", got)
	}
}

// TestOwedEpilog: of a member that is gone with its daemon only the record is left; its epilog runs before
// anything new is prepared.
func TestOwedEpilog(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	// The prolog that is left is ended before its epilog begins, wherever it has gone.
	o.Hooks = hookFiles(t, dir, "echo $$ > pid.$GANG_JOB_ID; log prolog $GANG_JOB_ID; [ $GANG_JOB_ID = 2 ] || exec setsid -w sleep 1000",
		"sleep 0.2; grep -qs '^State:.[RSDT]' /proc/$(cat pid.1)/status && [ $GANG_JOB_ID = 1 ] && log ALIVE; log epilog $GANG_JOB_ID")
	first := c.spawn(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\n")
	for end := time.Now().Add(patience); logOf(dir) == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	kill(t, first)
	c.forget(k) // cancelled meanwhile
	next := c.desire(2, 1, 1, "#!/bin/sh\n")
	second := c.spawn(o)
	defer finish(t, c, o, second)
	c.untilPhase(next, api.PhaseStopped)
	if got, want := logOf(dir), "prolog 1\nepilog 1\nprolog 2\nepilog 2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHooksAtStart: what could not be run later is refused by name.
func TestHooksAtStart(t *testing.T) {
	dir := t.TempDir()
	h := hookFiles(t, dir, "", "")
	if err := os.Chmod(h.Epilog, 0o757); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		h    Hooks
		want string
	}{
		{Hooks{Prolog: h.Prolog}, ""},
		{Hooks{TaskProlog: dir + "/none"}, "task_prolog: stat " + dir + "/none: no such file or directory"},
		{Hooks{TaskEpilog: h.Epilog}, "task_epilog: " + h.Epilog + " may be changed by everybody (mode 0757): chmod o-w " + h.Epilog},
		{Hooks{TaskEpilog: "/etc/passwd"}, "task_epilog: /etc/passwd can't be executed: chmod +x /etc/passwd"},
		{Hooks{Prolog: dir}, "prolog: " + h.Epilog + " may be changed by everybody (mode 0757): chmod o-w " + h.Epilog},
		{Hooks{Prolog: "/dev/null"}, "prolog: /dev/null is not a file"},
		{Hooks{Prolog: dir + "/none"}, "prolog: stat " + dir + "/none: no such file or directory"},
		{Hooks{Epilog: h.Epilog}, "epilog: " + h.Epilog + " may be changed by everybody (mode 0757): chmod o-w " + h.Epilog},
	} {
		got := ""
		if err := x.h.check(); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// TestTaskHooks: each rank has them around it, with its environment, as its process; a rank is over with its
// epilog; a prolog that fails is the rank's end, with its status.
func TestTaskHooks(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	o := c.options(t.TempDir())
	h := hookFiles(t, dir, `log prolog $SLURM_PROCID $$; echo export MASTER=rank$SLURM_PROCID; echo print hello; [ ! -e bad ]`, `sleep 0.2; log epilog $SLURM_PROCID $MASTER; echo bye`)
	o.Hooks = Hooks{TaskProlog: h.Prolog, TaskEpilog: h.Epilog, Timeout: patience}
	c.run(o)
	work := t.TempDir()
	in := func(_ *api.Assignment, s *api.Spec) { s.WorkDir = work }
	k := c.desire(1, 1, 1, "#!/bin/bash\necho $MASTER >> "+dir+"/log\nexit 4\n", in)
	a := c.untilPhase(k, api.PhaseStopped)
	if r := a.Ranks[0]; r.ExitCode != 4 || !r.Own {
		t.Errorf("%+v", r)
	}
	if got := logOf(dir); !strings.HasPrefix(got, "prolog 0 ") || !strings.HasSuffix(got, "\nrank0\nepilog 0\n") {
		t.Errorf("%q", got)
	}
	if b, _ := os.ReadFile(filepath.Join(work, "gang-1.out")); string(b) != "hello\nbye\n" {
		t.Errorf("output %q", b)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	k = c.desire(2, 1, 1, "#!/bin/bash\necho ran\n", in)
	if r := c.untilPhase(k, api.PhaseStopped).Ranks[0]; r.ExitCode != 1 {
		t.Errorf("after a prolog that failed: %+v", r)
	}
	if b, _ := os.ReadFile(filepath.Join(work, "gang-2.out")); string(b) != "hello\ntask prolog: "+h.Prolog+": exit status 1\nbye\n" {
		t.Errorf("output %q", b)
	}
	// An order that comes while an epilog runs ends it with the rest.
	if err := os.WriteFile(h.Epilog, []byte("#!/bin/sh\necho > "+dir+"/in.epilog\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "bad")); err != nil {
		t.Fatal(err)
	}
	k = c.desire(3, 1, 1, "#!/bin/bash\nexit 0\n", in)
	waitFile(t, filepath.Join(dir, "in.epilog"))
	if a, _ := c.last(k); a.Phase != api.PhaseRunning || a.Ranks[0].Exited {
		t.Errorf("in its epilog: %+v", a)
	}
	c.stop(k, patience)
	if r := c.untilPhase(k, api.PhaseStopped).Ranks[0]; r.ExitCode != 0 || !r.Own {
		t.Errorf("%+v", r)
	}
}
