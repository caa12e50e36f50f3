package sitehook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"gangd/pkg/core/cmdline/when"
)

// Task is what is run around each task of a job, as its user and where the task runs: the site's programs,
// and one of the user's own before and after. The process that a task is started as runs the prologs and then
// becomes the task: whoever ends it in between ends both.
type Task struct {
	Prolog     []string      `json:"prolog,omitempty"` // [Programs] of the site
	Epilog     []string      `json:"epilog,omitempty"`
	UserProlog string        `json:"user_prolog,omitempty"`
	UserEpilog string        `json:"user_epilog,omitempty"`
	Timeout    time.Duration `json:"timeout_ns,omitempty"` // of each program
}

const (
	// TaskWord and EpilogWord are the first arguments of a program of ours that calls [TaskMain].
	TaskWord   = "task"
	EpilogWord = "task-epilog"
	// UserEpilogTimeout is what a user's program after a task may take, as in Slurm.
	UserEpilogTimeout = 5 * time.Second
	// maxWords of a prolog's output are read.
	maxWords = 1 << 20
	// TaskTimeout is that of a program around a task where the site names none.
	TaskTimeout = 60 * time.Second
	self        = "/proc/self/exe"
)

// Before is what is started in place of a task.
func (t *Task) Before(path string, argv []string) (string, []string) {
	if t == nil || len(t.Prolog) == 0 && t.UserProlog == "" {
		return path, argv
	}
	return self, append([]string{argv[0], TaskWord, t.text(), path}, argv...)
}

// After is what is started when a task has ended; nil: nothing.
func (t *Task) After() (path string, argv []string) {
	if t == nil || len(t.Epilog) == 0 && t.UserEpilog == "" {
		return "", nil
	}
	return self, []string{EpilogWord, EpilogWord, t.text()}
}

func (t *Task) text() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic("task hooks do not marshal: " + err.Error())
	}
	return string(b)
}

// TaskMain is the program that [Task.Before] and [Task.After] start: args are all but its name. It comes
// back only with the status of what failed, or of epilogs.
func TaskMain(args []string) int {
	var t Task
	if len(args) < 2 || json.Unmarshal([]byte(args[1]), &t) != nil || args[0] == TaskWord && len(args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: started for a task by gshim and gstep")
		return 2
	}
	if args[0] == EpilogWord {
		return t.epilog(os.Stderr)
	}
	env, err := t.prolog(os.Environ(), os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "task prolog: %v\n", err)
		if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		return 1
	}
	path, argv := args[2], args[3:]
	err = syscall.Exec(path, argv, env)
	if errors.Is(err, syscall.ENOEXEC) { // a script without a first line: the shell's, as execvp has it
		err = syscall.Exec("/bin/sh", append([]string{"/bin/sh", path}, argv[1:]...), env)
	}
	fmt.Fprintf(os.Stderr, "slurmstepd: error: execve(): %s: %v\n", path, err)
	if errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// prolog runs the programs before a task, the user's last, and gives the environment that they leave.
func (t *Task) prolog(env []string, stdout io.Writer) ([]string, error) {
	programs := slices.Clone(t.Prolog)
	if t.UserProlog != "" {
		programs = append(programs, t.UserProlog)
	}
	for _, p := range programs {
		out := words{}
		err := runTask(p, "task_prolog", "prolog_task", t.Timeout, env, &out)
		env = obey(env, out.String(), stdout) // what it says of its failure, too
		if err != nil {
			return nil, err
		}
	}
	return env, nil
}

// epilog runs the programs after a task, the user's first. All are run, whatever one says.
func (t *Task) epilog(stderr io.Writer) (status int) {
	run := func(p string, timeout time.Duration) {
		if err := runTask(p, "task_epilog", "epilog_task", timeout, os.Environ(), os.Stdout); err != nil {
			fmt.Fprintf(stderr, "task epilog: %v\n", err)
			status = 1
		}
	}
	if t.UserEpilog != "" {
		run(t.UserEpilog, UserEpilogTimeout)
	}
	for _, p := range t.Epilog {
		run(p, t.Timeout)
	}
	return status
}

func runTask(program, hook, label string, timeout time.Duration, env []string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, fmt.Errorf("not done within %v", when.Words(timeout)))
	defer cancel()
	cmd := Command(ctx, program, nil)
	cmd.Env = append(slices.Clone(env), "GANG_HOOK="+hook, "SLURM_SCRIPT_CONTEXT="+label)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "", stdout, os.Stderr
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it ended with 0, something of it holds the pipe
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if p := new(fs.PathError); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", program, err)
}

// obey does what the lines of a prolog's output say; others are nobody's.
func obey(env []string, out string, stdout io.Writer) []string {
	drop := func(name string) {
		env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(strings.TrimLeftFunc(line, unicode.IsSpace), " ")
		switch word {
		case "export":
			name, value, ok := strings.Cut(rest, "=")
			if name = strings.TrimSpace(name); ok && name != "" {
				drop(name)
				env = append(env, name+"="+value)
			}
		case "unset":
			if name := strings.TrimSpace(rest); name != "" {
				drop(name)
			}
		case "print":
			fmt.Fprintln(stdout, strings.TrimLeftFunc(rest, unicode.IsSpace))
		}
	}
	return env
}

// words keeps the beginning of a prolog's output, whole lines of it.
type words struct{ bytes.Buffer }

// Write implements io.Writer.
func (w *words) Write(p []byte) (int, error) {
	w.Buffer.Write(p[:min(len(p), max(0, maxWords-w.Len()))])
	return len(p), nil
}
