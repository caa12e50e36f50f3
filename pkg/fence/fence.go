// Package fence runs a site's fence hook: the program that makes sure that nothing runs on
// a node which is not heard of any more (it cuts its power, its network, its virtual
// machine). Its exit status 0 is the site's word that the node's ranks are gone; gangd then
// starts their gangs elsewhere.
//
// The hook gets the node's name as its one argument and as GANG_NODE, an environment of
// nothing else but PATH, and no input. It is ended, with all of its process group, when its
// time is over; then, and with any other status, nothing is believed.
package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	// wordBytes of the hook's output are kept for the log: its last ones, where the reason is.
	wordBytes = 512
	// pipeWait is how long a process that the hook left behind may keep its output open.
	pipeWait = time.Second
)

// Hook is a program of the site.
type Hook struct {
	Path    string
	Timeout time.Duration
}

// Run fences one node; nil is the site's word that nothing runs there.
func (h Hook) Run(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, fmt.Errorf("not done within %v", h.Timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Path, node)
	cmd.Env = []string{"PATH=" + path, "GANG_NODE=" + node}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeWait
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended with 0, something of it holds the pipe
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if word := strings.TrimSpace(out.String()); word != "" {
		return fmt.Errorf("%s %s: %w: %s", h.Path, node, err, word)
	}
	return fmt.Errorf("%s %s: %w", h.Path, node, err)
}

// tail keeps the end of what is written.
type tail struct{ bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - wordBytes; over > 0 {
		t.Next(over)
	}
	return n, err
}
