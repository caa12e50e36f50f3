package dev

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/node/proc"
)

// record is which process a daemon is.
type record struct {
	pid   int
	start uint64 // clock ticks since boot
	boot  string
}

func (l layout) record(name string) (r record, ok bool) {
	b, err := os.ReadFile(l.id(name))
	if err != nil {
		return record{}, false
	}
	_, err = fmt.Sscan(string(b), &r.pid, &r.start, &r.boot)
	return r, err == nil && r.pid > 1
}

// write keeps the record; a reader never sees half of one. The pid has a file to itself,
// for kill $(cat n1.pid).
func (l layout) write(name string, r record) error {
	if err := replace(l.id(name), fmt.Sprintf("%d %d %s\n", r.pid, r.start, r.boot)); err != nil {
		return err
	}
	return replace(l.pid(name), fmt.Sprintf("%d\n", r.pid))
}

func replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// forget removes what write wrote.
func (l layout) forget(name string) error {
	return errors.Join(os.Remove(l.pid(name)), os.Remove(l.id(name)))
}

// alive reports whether exactly the recorded process still runs.
func (r record) alive() bool {
	s, ok := proc.ReadStat(r.pid)
	return ok && !s.Dead() && s.Start == r.start && proc.BootID() == r.boot
}

// end sends TERM, and KILL when that was not enough within patience.
func (r record) end(patience time.Duration) error {
	return r.signal(patience, unix.SIGTERM, unix.SIGKILL)
}

// signal sends one signal after the other until the process has ended, with patience between.
func (r record) signal(patience time.Duration, signals ...unix.Signal) error {
	fd, err := unix.PidfdOpen(r.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pid %d: %w", r.pid, err)
	}
	defer unix.Close(fd)
	if !r.alive() { // checked after the open: fd is the recorded process or nobody's
		return nil
	}
	for _, sig := range signals {
		if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pid %d: %w", r.pid, err)
		}
		if waitPidfd(fd, patience) {
			return nil
		}
	}
	return fmt.Errorf("pid %d outlives KILL", r.pid)
}

// waitPidfd waits until the process has ended; false after patience.
func waitPidfd(fd int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// daemon is one that this process started.
type daemon struct {
	name string
	record
	from int64         // size of its log before it said anything
	done chan struct{} // closed when it has ended and err is set
	err  error
}

// spawn starts a daemon in a session of its own, so that neither Ctrl-C nor a closed
// terminal reaches it. Its end is awaited by a goroutine that lives as long as it does.
func (l layout) spawn(bin, name string) (*daemon, error) {
	log, err := os.OpenFile(l.log(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(bin, program(name)), "--config="+l.config(name))
	cmd.Dir = l.dir
	cmd.Env = append(l.watched(name), "GANG_DIR="+l.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begin := cmd.Start
	if l.isolated(name) {
		begin = func() error {
			return apart(func() error {
				if err := l.enter(name); err != nil {
					return err
				}
				return cmd.Start()
			})
		}
	}
	if err := begin(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// A child that was not waited for keeps its pid, so this reads the right one.
	stat, _ := proc.ReadStat(cmd.Process.Pid)
	d := &daemon{name: name, record: record{cmd.Process.Pid, stat.Start, proc.BootID()}, from: info.Size(), done: make(chan struct{})}
	err = l.write(name, d.record)
	go func() {
		d.err = cmd.Wait()
		close(d.done)
	}()
	return d, err
}

// watched is the environment of a daemon: with the socket on which it gives signs of life where
// a gangd dev watches, and never with that of who watches gangd dev.
func (l layout) watched(name string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "NOTIFY_SOCKET=") || strings.HasPrefix(kv, "WATCHDOG_")
	})
	if _, err := os.Stat(l.notify(name)); err != nil {
		return env
	}
	return append(env, "NOTIFY_SOCKET="+l.notify(name), fmt.Sprintf("WATCHDOG_USEC=%d", l.silence().Microseconds()))
}

func program(name string) string {
	if isController(name) {
		return "gangd"
	}
	return "gnoded"
}

// ended is the error of a daemon that did not stay, with what it said last.
func (l layout) ended(d *daemon) error {
	how := "exit status 0"
	if d.err != nil {
		how = d.err.Error()
	}
	return fmt.Errorf("%s ended before it was up (%s)%s", d.name, how, l.tail(d))
}

// tailLines is how much of a log an error quotes: the cause is in the last lines.
const tailLines = 10

func (l layout) tail(d *daemon) string {
	b, err := os.ReadFile(l.log(d.name))
	if err != nil || int64(len(b)) <= d.from {
		return "; it said nothing in " + l.log(d.name)
	}
	lines := strings.Split(strings.TrimSpace(string(b[d.from:])), "\n")
	return "; the end of " + l.log(d.name) + ":\n  " + strings.Join(lines[max(0, len(lines)-tailLines):], "\n  ")
}
