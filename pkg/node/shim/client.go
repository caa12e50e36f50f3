package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/checksum"
)

// Conn is the node daemon's end of a connection to a shim. Send and Close may be called
// from any goroutine.
type Conn struct {
	Dir string
	PID int // of the shim; 0 after Attach, until the first State says it

	file    *os.File
	child   int // pid to wait for; 0: not ours, or the pool waits for it
	answers chan Answer
	closed  chan struct{}
	once    sync.Once

	send     sync.Mutex
	detached bool // the file serves another member

	// Of a process from a [Pool]; heard is its reader's.
	patience *time.Timer
	heard    bool
}

// launch starts the program with our end of its first connection.
func launch(path string, args ...string) (*os.File, int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("start shim: %w", err)
	}
	pid, err := spawn(path, args, pair[1])
	_ = unix.Close(pair[1])
	if err != nil {
		_ = unix.Close(pair[0])
		return nil, 0, fmt.Errorf("start shim %s: %w", path, err)
	}
	return newFile(pair[0]), pid, nil
}

func newFile(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // so that Close ends a read
	return os.NewFile(uintptr(fd), "shim")
}

// makeDir writes what the shim reads. In switch mode the user must reach and read the
// script, and nothing else; names in the directory stay root's.
func makeDir(spec *Spec, script []byte) error {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("spec of job %d: %w", spec.Job, err)
	}
	dirMode := os.FileMode(0o700)
	if spec.SwitchUser {
		dirMode = 0o711
	}
	if err := os.Mkdir(spec.Dir, dirMode); err != nil {
		return err
	}
	if err := os.Chmod(spec.Dir, dirMode); err != nil { // whatever the umask
		return err
	}
	if err := writeFile(filepath.Join(spec.Dir, SpecFile), []byte(checksum.Add(b, SpecFile)), 0o600); err != nil {
		return err
	}
	path := filepath.Join(spec.Dir, ScriptFile)
	if err := writeFile(path, script, 0o500); err != nil {
		return err
	}
	if spec.SwitchUser {
		return os.Chown(path, int(spec.UID), int(spec.GID))
	}
	return nil
}

// shimEnv keeps the shim's runtime small: one processor is enough for one goroutine and
// spares the threads that Go starts for others; GOGC=25 collects at 1 MB instead of 4.
var shimEnv = []string{"GOMAXPROCS=1", "GOGC=25", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

func spawn(path string, args []string, sock int) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	defer quietMonitor()()
	return syscall.ForkExec(path, append([]string{"gshim"}, args...), &syscall.ProcAttr{Env: shimEnv,
		Files: []uintptr{null.Fd(), null.Fd(), 2, uintptr(sock)}, Sys: &syscall.SysProcAttr{Setsid: true}})
}

// monitorSlack is how late timers of a shim's threads may be, but for the one that serves members. The Go
// runtime's monitor looks each 20 microseconds while anything runs, for goroutines that wait for a processor;
// a shim has one goroutine, and those looks were a tenth of its CPU time.
const monitorSlack = 10 * time.Millisecond

// quietMonitor has what this thread starts be born with such timers.
func quietMonitor() (restore func()) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(monitorSlack), 0, 0, 0)
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // as the thread was born
		runtime.UnlockOSThread()
	}
}

// Attach connects to the shim that serves dir. An error means that none does: then
// [ReadState] has its last word.
func Attach(dir string) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("attach to the shim in %s: %w", dir, err)
	}
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		// Through the descriptor, because a socket's path may not be longer than 107 bytes.
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(d) + "/" + SocketFile})
		_ = unix.Close(d)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("attach to the shim in %s: %w", dir, err)
	}
	return newConn(dir, newFile(fd), 0), nil
}

func newConn(dir string, file *os.File, pid int) *Conn {
	c := &Conn{Dir: dir, PID: pid, file: file, child: pid,
		answers: make(chan Answer, 16), closed: make(chan struct{})}
	go c.read()
	return c
}

// read owns the answers. At the end of the stream it waits for a shim that is our child:
// it has exited, or does so in this instant.
func (c *Conn) read() {
	defer close(c.answers)
	dec := json.NewDecoder(c.file)
	for {
		var a Answer
		if err := dec.Decode(&a); err != nil {
			break
		}
		c.deliver(a)
	}
	if c.isClosed() {
		return
	}
	if c.child > 0 {
		_, _ = waitPID(c.child)
	}
	_ = c.file.Close()
}

func (c *Conn) deliver(a Answer) {
	select {
	case c.answers <- a:
	case <-c.closed:
	}
}

// Released reports whether the shim has let go of the member: it serves another one, or waits for it.
func (c *Conn) Released() bool {
	c.send.Lock()
	defer c.send.Unlock()
	return c.detached
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// detach ends what this connection has to do with the process: from now on the file is
// used for another member, or is closed.
func (c *Conn) detach() {
	c.send.Lock()
	defer c.send.Unlock()
	c.detached = true
}

// adopt goes on with another process, false after Close.
func (c *Conn) adopt(file *os.File, pid int) bool {
	c.send.Lock()
	defer c.send.Unlock()
	if c.isClosed() {
		_ = file.Close()
		return false
	}
	c.file, c.child, c.detached = file, pid, false
	return true
}

func waitPID(pid int) (syscall.WaitStatus, error) {
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, nil); !errors.Is(err, syscall.EINTR) {
			return ws, err
		}
	}
}

// Answers gives what the shim says, the whole state first. It is closed when the shim has
// let go of the member: it exited (and was reaped, if it was started here), or waits for
// another one; also when the connection broke, and after Close.
func (c *Conn) Answers() <-chan Answer { return c.answers }

// Send gives commands to the shim, all in one write: it is woken once.
func (c *Conn) Send(commands ...Command) error {
	var lines []byte
	for i := range commands {
		b, err := json.Marshal(&commands[i])
		if err != nil {
			return fmt.Errorf("command to the shim in %s: %w", c.Dir, err)
		}
		lines = append(append(lines, b...), '\n')
	}
	c.send.Lock()
	defer c.send.Unlock()
	if c.detached {
		return fmt.Errorf("command to the shim in %s: its member is over", c.Dir)
	}
	if _, err := c.file.Write(lines); err != nil {
		return fmt.Errorf("command to the shim in %s: %w", c.Dir, err)
	}
	return nil
}

// Close drops the connection; the shim goes on. A shim that was started here is not waited
// for after that: Close is for a caller that ends itself.
func (c *Conn) Close() error {
	err := error(nil)
	c.once.Do(func() {
		c.send.Lock()
		defer c.send.Unlock()
		close(c.closed)
		if !c.detached {
			err = c.file.Close()
		}
	})
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
