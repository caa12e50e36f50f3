package hosts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// order is a line to a host's first process; each has one answer, and ends of what was
// started come by themselves.
type order struct {
	Setup *setup `json:",omitempty"`
	Start *start `json:",omitempty"`
	Kill  *kill  `json:",omitempty"`
}

// setup makes the namespaces look like a host.
type setup struct {
	Name   string
	Hosts  string            // file to show as /etc/hosts
	BootID string            // file to show as the kernel's boot id
	Tmpfs  map[string]string // directory -> mount options
	Binds  map[string]string // directory -> what is seen there
}

// start starts a program; it becomes a child of the host's first process.
type start struct {
	Args []string
	Env  []string
	Log  string    // standard output and error, appended
	Soft uint64    // limit of open files, 0: as it is
	As   [2]uint32 // user and group by number, without the name service; 0: root
}

type kill struct {
	PID    int // in the host
	Signal syscall.Signal
}

type answer struct {
	PID   int    `json:",omitempty"` // started
	Error string `json:",omitempty"`
	Ended int    `json:",omitempty"` // pid of a child that ended; not an answer
	Code  int    `json:",omitempty"` // its exit code, 128 + signal when killed
}

// hostMain is the first process of a host: it starts and reaps, and when its standard input
// ends it ends, and the kernel ends every process of the host with it.
func hostMain() {
	var mu sync.Mutex // an end is told after the start
	out := json.NewEncoder(os.Stdout)
	go reap(&mu, out)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var o order
		a := answer{}
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			a.Error = err.Error()
		}
		mu.Lock()
		var err error
		switch {
		case o.Setup != nil:
			err = o.Setup.do()
		case o.Start != nil:
			a.PID, err = o.Start.do()
		case o.Kill != nil:
			err = syscall.Kill(o.Kill.PID, o.Kill.Signal)
		}
		if err != nil {
			a.Error = err.Error()
		}
		_ = out.Encode(a)
		mu.Unlock()
	}
	os.Exit(0)
}

// reap waits for children, its own and those whose parent has ended.
func reap(mu *sync.Mutex, out *json.Encoder) {
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	for range child {
		for {
			mu.Lock()
			var st syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &st, syscall.WNOHANG, nil)
			if err == nil && pid > 0 {
				code := st.ExitStatus()
				if st.Signaled() {
					code = 128 + int(st.Signal())
				}
				_ = out.Encode(answer{Ended: pid, Code: code})
			}
			mu.Unlock()
			if err != nil || pid <= 0 {
				break
			}
		}
	}
}

func (s *setup) do() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	for over, dir := range s.Binds {
		if err := unix.Mount(dir, over, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", over, err)
		}
	}
	for over, file := range map[string]string{"/etc/hosts": s.Hosts, "/proc/sys/kernel/random/boot_id": s.BootID} {
		if err := unix.Mount(file, over, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", over, err)
		}
	}
	for dir, opts := range s.Tmpfs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, opts); err != nil {
			return fmt.Errorf("tmpfs on %s: %w", dir, err)
		}
	}
	return nil
}

func (s *start) do() (int, error) {
	log, err := os.OpenFile(s.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	args := s.Args
	if s.Soft > 0 {
		args = append([]string{"/bin/sh", "-c", fmt.Sprintf("ulimit -n %d && exec \"$@\"", s.Soft), "sh"}, args...)
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if s.As[0] != 0 {
		sys.Credential = &syscall.Credential{Uid: s.As[0], Gid: s.As[1]}
	}
	return syscall.ForkExec(args[0], args, &syscall.ProcAttr{Dir: "/", Env: s.Env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()}, Sys: sys})
}

// bootFile is a boot id of a host's own.
func bootFile(dir, name string, n int) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("%s.boot%d", name, n))
	text := fmt.Sprintf("%08x-%04x-4000-8000-%012x\n", os.Getpid(), crc32.ChecksumIEEE([]byte(name))&0xffff, n)
	return path, os.WriteFile(path, []byte(text), 0o444)
}
