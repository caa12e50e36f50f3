package hosts

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gangd/e2e/tally"
)

// host is one host of a lab, seen from outside.
type host struct {
	name string
	ip   string
	proc *exec.Cmd
	in   io.WriteCloser

	orders  sync.Mutex // one at a time
	answers chan answer
	dead    chan struct{} // closed when the host has ended

	mu    sync.Mutex
	ended map[int]chan int // exit codes of what was started, by pid in the host
}

// boot starts a host's first process in namespaces of its own.
func boot(t *testing.T, name, ip string, s *setup) *host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"=host")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWPID}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tally.Skip(t, "no namespaces for hosts on this machine: %v", err)
	}
	h := &host{name: name, ip: ip, proc: cmd, in: in, answers: make(chan answer), dead: make(chan struct{}), ended: map[int]chan int{}}
	go h.listen(out)
	if s != nil {
		if _, err := h.ask(order{Setup: s}); err != nil {
			h.crash()
			tally.Skip(t, "no namespaces for hosts on this machine: %v", err)
		}
	}
	return h
}

func (h *host) listen(out io.Reader) {
	d := json.NewDecoder(bufio.NewReader(out))
	for {
		var a answer
		if d.Decode(&a) != nil {
			break
		}
		// A start is told before its end: here both are seen in that order.
		h.mu.Lock()
		if a.PID != 0 {
			h.ended[a.PID] = make(chan int, 1)
		}
		if c := h.ended[a.Ended]; c != nil {
			c <- a.Code
		}
		h.mu.Unlock()
		if a.Ended == 0 {
			h.answers <- a
		}
	}
	_ = h.proc.Wait()
	close(h.dead)
}

var errDead = errors.New("the host is down")

func (h *host) ask(o order) (answer, error) {
	h.orders.Lock()
	defer h.orders.Unlock()
	b, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	if _, err := h.in.Write(append(b, '\n')); err != nil {
		return answer{}, errDead
	}
	select {
	case a := <-h.answers:
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-h.dead:
		return answer{}, errDead
	}
}

// crash ends the host and every process on it, as a power cut does.
func (h *host) crash() {
	_ = h.proc.Process.Kill()
	_ = h.in.Close()
	<-h.dead
}

// daemon is a process that the host's first process has started.
type daemon struct {
	h    *host
	pid  int // in the host
	gone chan struct{}
	code int // after gone
}

func (h *host) start(s *start) (*daemon, error) {
	a, err := h.ask(order{Start: s})
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", h.name, s.Args, err)
	}
	h.mu.Lock()
	c := h.ended[a.PID]
	h.mu.Unlock()
	d := &daemon{h: h, pid: a.PID, gone: make(chan struct{})}
	go func() {
		select {
		case d.code = <-c:
		case <-h.dead:
			d.code = 128 + int(syscall.SIGKILL)
		}
		h.mu.Lock()
		if h.ended[d.pid] == c {
			delete(h.ended, d.pid)
		}
		h.mu.Unlock()
		close(d.gone)
	}()
	return d, nil
}

func (d *daemon) signal(s syscall.Signal) error {
	_, err := d.h.ask(order{Kill: &kill{PID: d.pid, Signal: s}})
	return err
}

// kill signals the daemon and waits for its end.
func (d *daemon) kill(s syscall.Signal) int {
	if d.signal(s) != nil {
		return -1
	}
	<-d.gone
	return d.code
}

func (d *daemon) running() bool {
	select {
	case <-d.gone:
		return false
	default:
		return true
	}
}

// process is one process of a host.
type process struct {
	pid   int // on this machine
	inner int // in the host
	name  string
}

// processes lists what runs on a host, its first process left out: /proc says of each
// process in which PID namespace it is.
func (h *host) processes() []process {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.proc.Process.Pid))
	if err != nil {
		return nil
	}
	var out []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if ns, err := os.Readlink(dir + "/ns/pid"); err != nil || ns != own || pid == h.proc.Process.Pid {
			continue
		}
		p := process{pid: pid}
		b, _ := os.ReadFile(dir + "/status")
		zombie := false
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch {
			case len(f) < 2:
			case f[0] == "Name:":
				p.name = f[1]
			case f[0] == "State:":
				zombie = f[1] == "Z" || f[1] == "X"
			case f[0] == "NSpid:":
				p.inner, _ = strconv.Atoi(f[len(f)-1])
			}
		}
		if p.inner != 0 && !zombie {
			out = append(out, p)
		}
	}
	return out
}

// outer is the pid on this machine of a daemon.
func (d *daemon) outer() int {
	for _, p := range d.h.processes() {
		if p.inner == d.pid {
			return p.pid
		}
	}
	return 0
}

// tracer is the pid of who traces a process, 0 for nobody.
func tracer(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "TracerPid:" {
			return atoi(f[1])
		}
	}
	return 0
}

// path is where a file of the host's own mounts is seen from outside.
func (h *host) path(name string) string {
	return fmt.Sprintf("/proc/%d/root%s", h.proc.Process.Pid, name)
}

// inside runs a command of this machine in the host's network.
func (h *host) inside(args ...string) error {
	args = append([]string{"nsenter", "-t", strconv.Itoa(h.proc.Process.Pid), "-n", "--"}, args...)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args[5:], " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
