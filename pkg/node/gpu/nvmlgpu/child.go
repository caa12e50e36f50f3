package nvmlgpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"gangd/pkg/core/cmdline/when"
)

// child is one probe process. It owns two goroutines: one reads its answers, one waits
// for its end.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan answer // closed when its output has ended
	gone    chan struct{}
	err     error // why it ended; read after gone
	stderr  tail

	pending string // the question that is not answered yet; the asker's
	asked   time.Time
}

// maxAnswer bounds one line: 256 cards with a hundred processes each are 2 MiB.
const maxAnswer = 8 << 20

func startChild(command []string) (*child, error) {
	c := &child{cmd: exec.Command(command[0], command[1:]...), answers: make(chan answer), gone: make(chan struct{})}
	// A group of its own: the terminal's ^C is for the daemon, which then ends the child.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stderr = &c.stderr
	// What a child that died leaves behind must not keep Wait.
	c.cmd.WaitDelay = time.Second
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.in = in
	go c.run(out)
	return c, nil
}

// run reads until the output ends, then reaps. Everything the child said is read before
// Wait closes the pipe.
func (c *child) run(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxAnswer)
	var bad error
	for lines.Scan() {
		var a answer
		if bad = json.Unmarshal(lines.Bytes(), &a); bad != nil {
			break
		}
		c.answers <- a
	}
	if bad = errors.Join(bad, lines.Err()); bad != nil {
		c.kill()
	}
	err := c.cmd.Wait()
	switch {
	case bad != nil:
		c.err = fmt.Errorf("gpu probe said something else: %w", bad)
	case err != nil:
		c.err = fmt.Errorf("gpu probe died: %w%s", err, c.stderr.text())
	default:
		c.err = errors.New("gpu probe ended")
	}
	close(c.answers)
	close(c.gone)
}

// ask sends a question and waits for the line that answers it. A caller that gives up
// before the limit leaves the child at work, because a driver that wakes up may need many
// callers' patience: the next call waits for the same answer.
func (c *child) ask(ctx context.Context, question string, limit time.Duration) (answer, error) {
	for {
		if c.pending == "" {
			c.pending, c.asked = question, time.Now()
			// A child that ended in its first breath may have left the reason: its answer
			// counts, not the broken pipe.
			_, _ = io.WriteString(c.in, question+"\n")
		}
		late := time.NewTimer(time.Until(c.asked.Add(limit)))
		defer late.Stop()
		select {
		case a, ok := <-c.answers:
			if !ok {
				return a, c.err
			}
			was := c.pending
			c.pending = ""
			// A child without NVML says so once, whatever it is asked.
			if was == question || a.None != "" || a.Error != "" {
				return a, nil
			}
		case <-late.C:
			return answer{}, fmt.Errorf("gpu probe has not answered within %v", when.Words(limit))
		case <-ctx.Done():
			return answer{}, gaveUp{ctx.Err()}
		}
	}
}

// gaveUp is the caller's own reason; the child is not to blame.
type gaveUp struct{ error }

func (g gaveUp) Unwrap() error { return g.error }

func (c *child) kill() { _ = c.cmd.Process.Kill() }

// end kills the child and drops what it may still say. It does not wait: a process that is
// stuck in the driver can't be killed.
func (c *child) end() {
	c.in.Close()
	c.kill()
	go func() {
		for range c.answers { //nolint:revive // until run has ended
		}
	}()
}

// dying is how long a killed process may take to end before it counts as stuck; one that
// holds a driver's memory needs some tens of milliseconds.
const dying = time.Second

// ended reports whether the process has been reaped.
func (c *child) ended(ctx context.Context) bool {
	select {
	case <-c.gone:
		return true
	case <-ctx.Done():
	case <-time.After(dying):
	}
	return false
}

// tail keeps the last of what the child wrote on standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 512

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - tailBytes; n > 0 {
		t.buf = t.buf[n:]
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := strings.TrimSpace(string(t.buf)); s != "" {
		return ": " + s
	}
	return ""
}
