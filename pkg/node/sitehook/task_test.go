package sitehook

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("SITEHOOK_TASK") != "" {
		os.Unsetenv("SITEHOOK_TASK")
		os.Exit(TaskMain(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// task runs a program with hooks around it as a shim does, and gives all that was written and its status.
func task(t *testing.T, hooks *Task, body string) (string, int) {
	t.Helper()
	if hooks.Timeout == 0 {
		hooks.Timeout = time.Minute
	}
	var out strings.Builder
	run := func(path string, argv []string) int {
		if path == self {
			path = os.Args[0]
		}
		cmd := &exec.Cmd{Path: path, Args: argv, Stdout: &out, Stderr: &out, Env: []string{"PATH=/usr/bin:/bin", "SITEHOOK_TASK=1", "A=old", "B=old"}}
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	code := run(hooks.Before("/bin/sh", []string{"sh", "-c", body}))
	if path, argv := hooks.After(); argv != nil {
		run(path, argv)
	}
	return out.String(), code
}

// TestTaskWords: what a prolog writes changes the task's environment and output, each program's before the
// next one; other lines say nothing.
func TestTaskWords(t *testing.T) {
	site := hookProgram(t, `echo export A=new value = 1
echo "  export  B = spaced"
echo export novalue
echo export =x
echo unset PATHX
echo print "  for the user"
echo printed by nobody
echo "exported C=1"
echo "unset D"`)
	user := hookProgram(t, `echo "print second sees A=$A, $GANG_HOOK $SLURM_SCRIPT_CONTEXT"; echo export E=5; echo to stderr >&2; echo -n export LAST=1`)
	got, code := task(t, &Task{Prolog: []string{site}, UserProlog: user}, `echo "A=$A|B=$B|C=$C|E=$E|LAST=$LAST|$GANG_HOOK"; exit 7`)
	if want := "for the user\nto stderr\nsecond sees A=new value = 1, task_prolog prolog_task\nA=new value = 1|B= spaced|C=|E=5|LAST=1|\n"; got != want || code != 7 {
		t.Errorf("%d %q, want %q", code, got, want)
	}
	gone := hookProgram(t, "echo unset A; echo unset NONE")
	if got, _ := task(t, &Task{Prolog: []string{gone}}, `echo "${A-gone} $B"`); got != "gone old\n" {
		t.Errorf("unset: %q", got)
	}
}

// TestTaskFails: a prolog that fails or is late is the task's end, and nothing of the task runs; epilogs run
// all, the user's first, and have a time of their own.
func TestTaskFails(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	for _, c := range []struct {
		hooks Task
		want  string
		code  int
	}{
		{Task{Prolog: []string{hookProgram(t, "echo export A=1; exit 9")}}, "task prolog: X: exit status 9\n", 9},
		{Task{Prolog: []string{hookProgram(t, "sleep 1000")}, Timeout: 100 * time.Millisecond}, "task prolog: X: not done within 100 ms\n", 1},
		{Task{Prolog: []string{hookProgram(t, "kill -9 $$")}}, "task prolog: X: signal: killed\n", 1},
		{Task{Prolog: []string{"/no/such"}}, "task prolog: X: no such file or directory\n", 1},
	} {
		got, code := task(t, &c.hooks, "touch "+mark)
		if want := strings.Replace(c.want, "X", c.hooks.Prolog[0], 1); got != want || code != c.code {
			t.Errorf("%d %q, want %d %q", code, got, c.code, want)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the task ran")
	}
	user, site := hookProgram(t, "echo user; exit 3"), hookProgram(t, "echo site $GANG_HOOK $SLURM_SCRIPT_CONTEXT $A")
	got, code := task(t, &Task{Epilog: []string{site}, UserEpilog: user}, "echo task; exit 5")
	if want := "task\nuser\ntask epilog: " + user + ": exit status 3\nsite task_epilog epilog_task old\n"; got != want || code != 5 {
		t.Errorf("%d %q, want %q", code, got, want)
	}
	if got, code := task(t, &Task{Prolog: []string{hookProgram(t, "")}}, "exit 0"); got != "" || code != 0 {
		t.Errorf("%d %q", code, got)
	}
}
