// Package sitehook runs programs of the site: the fence hook, the idle hook and the rule for submissions on the
// controller's host, the health program, prolog and epilog on a node. It knows nothing of jobs and nodes but
// the words that it passes on; what follows from an answer is decided by who asked. Begin
// with Program.
//
// A program gets its arguments, an environment of nothing else but PATH and what it is
// told, no input but a rule's question, and / as its directory. It is ended, with all of its process group, when
// its time is over. What it wrote last is part of the error, because that is where its
// reason is; a program that ended with 0 has succeeded, also when something that it left
// behind still holds its output. A program that others than root and the daemon's user can change
// is not run.
package sitehook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/trusted"
)

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	// wordBytes of the program's output are kept for the log: its last ones, where the reason is.
	wordBytes = 512
	// hookBytes are kept of what a hook around a job wrote.
	hookBytes = 2048
	// pipeWait is how long a process that the program left behind may keep its output open.
	pipeWait = time.Second
)

// Program is a program of the site.
type Program struct {
	Path    string
	Timeout time.Duration
	// Start starts it in a place of its own, and gives what ends all that it has left there; nil: it is
	// started as any command, and its process group is ended with it when its time is over.
	Start func(*exec.Cmd) (end func(), err error) `json:"-"`
}

// Run runs it with arguments and NAME=value pairs; nil is its exit status 0.
func (p Program) Run(ctx context.Context, env []string, args ...string) error {
	word, err := p.run(ctx, env, args, wordBytes)
	if err == nil || word == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, word)
}

// RunHook is Run for what is told to users. It gives the end of what was written, fit for anybody's
// terminal, also of a program that succeeded; an error has its last line alone.
func (p Program) RunHook(ctx context.Context, env []string) (output string, err error) {
	word, err := p.run(ctx, env, nil, hookBytes)
	output = plainLines(word)
	return output, withLastLine(err, output)
}

// withLastLine is an error with the last line of what was written, where its reason is.
func withLastLine(err error, output string) error {
	if err == nil || output == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, output[strings.LastIndexByte(output, '\n')+1:])
}

// run gives the end of what it wrote, so many bytes at most, and why it failed.
func (p Program) run(ctx context.Context, env, args []string, keep int) (word string, err error) {
	if err := trusted.File(p.Path); err != nil {
		return "", fmt.Errorf("%s is not run: %w", p.Path, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, fmt.Errorf("not done within %v", when.Words(p.Timeout)))
	defer cancel()
	cmd := Command(ctx, p.Path, env, args...)
	out := tail{keep: keep}
	cmd.Stdout, cmd.Stderr = &out, &out
	end := func() {}
	if p.Start != nil {
		end, err = p.Start(cmd)
	} else {
		err = cmd.Start()
	}
	if err == nil {
		err = cmd.Wait()
		end()
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended with 0, something of it holds the pipe
	}
	word = strings.TrimSpace(out.end.String())
	if err == nil {
		return word, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	line := strings.Join(append([]string{p.Path}, args...), " ")
	return word, fmt.Errorf("%s: %w", line, err)
}

// answerWait is how long a process that the program left behind may keep its answer open, and how long one
// that is ended may take to be gone.
const answerWait = 100 * time.Millisecond

// Ask runs it with a question on its standard input and gives what it wrote to its standard output: its answer
// when it ended with 0 in time and wrote at most so many bytes. What it wrote to its standard error is the reason of an error.
func (p Program) Ask(ctx context.Context, question []byte, most int) (answer []byte, err error) {
	if err := trusted.File(p.Path); err != nil {
		return nil, fmt.Errorf("%s is not run: %w", p.Path, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, fmt.Errorf("no answer within %v", when.Words(p.Timeout)))
	defer cancel()
	tooMuch := fmt.Errorf("it wrote more than %d bytes", most)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cmd := Command(ctx, p.Path, nil)
	cmd.WaitDelay = answerWait
	out, words := &answerOf{most: most, over: func() { end(tooMuch) }}, &tail{keep: wordBytes}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(question), out, words
	err = cmd.Run()
	switch cause := context.Cause(ctx); {
	case cause != nil:
		err = cause
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it ended with 0, something of it holds the pipe
	}
	if err == nil {
		return out.text.Bytes(), nil
	}
	return nil, fmt.Errorf("%s: %w", p.Path, withLastLine(err, plainLines(words.end.String())))
}

// answerOf keeps what is written, up to a bound, and ends who writes more. As tail it embeds no buffer.
type answerOf struct {
	text bytes.Buffer
	most int
	over func()
}

// Write implements io.Writer.
func (a *answerOf) Write(b []byte) (int, error) {
	if a.text.Len()+len(b) > a.most {
		a.over()
		return 0, io.ErrShortWrite
	}
	return a.text.Write(b)
}

// Command prepares a program of the site: an environment that is fixed but for env
// (NAME=value), and a process group of its own that ctx ends whole.
func Command(ctx context.Context, program string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append([]string{"PATH=" + path}, env...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeWait
	return cmd
}

// Fence runs the program that makes sure that nothing runs on a node which is not heard of
// any more (it cuts its power, its network, its virtual machine). It gets the node's name as
// its one argument and as GANG_NODE. Nil is the site's word that the node's ranks are gone:
// when its time is over, and with any other status, nothing is believed.
func (p Program) Fence(ctx context.Context, node string) error {
	return p.Run(ctx, []string{"GANG_NODE=" + node}, node)
}

// tail keeps the end of what is written. It embeds no buffer: os/exec would fill that by its ReadFrom, past Write.
type tail struct {
	end  bytes.Buffer
	keep int
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.end.Write(p)
	if over := t.end.Len() - t.keep; over > 0 {
		t.end.Next(over)
	}
	return n, err
}
