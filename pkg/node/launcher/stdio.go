package launcher

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/wire/stepwire"
)

// stdio are the files of one task. Ours are kept, theirs are closed after the fork.
type stdio struct {
	in, out, err    *os.File // the task's
	inw, outr, errr *os.File // ours; nil: none
	// Where lines have numbers before them, what comes from outr and errr goes to these files.
	outTo, errTo *os.File // nil: to the client
	terminal     bool
}

func (s *stdio) close() {
	for _, f := range []*os.File{s.in, s.out, s.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// abandon closes our ends too.
func (s *stdio) abandon() {
	for _, f := range []*os.File{s.inw, s.outr, s.errr, s.outTo, s.errTo} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (l *launcher) open(t *task) (*stdio, error) {
	s := &stdio{}
	var err error
	if w := l.body.PTY; w != nil && t.number == 0 {
		err = s.openTerminal(w)
	} else {
		err = l.openAll(t, s)
	}
	if err != nil {
		s.close()
		s.abandon()
		return nil, err
	}
	return s, nil
}

func (l *launcher) openAll(t *task, s *stdio) (err error) {
	b := l.body
	switch {
	case b.Stdin != "":
		s.in, err = os.Open(l.pattern(b.Stdin, t))
	case b.InputTo == stepwire.AllTasks || b.InputTo == int64(t.number):
		s.in, s.inw, err = os.Pipe()
	default:
		s.in, err = os.Open(os.DevNull)
	}
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if s.out, s.outr, s.outTo, err = l.openOutput(b.Stdout, t); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	switch {
	case b.Stderr == "=" && b.Stdout != "":
		s.err, err = dup(s.out)
	case b.Stderr == "=":
		s.errr, s.err, err = os.Pipe()
	default:
		s.err, s.errr, s.errTo, err = l.openOutput(b.Stderr, t)
	}
	if err != nil {
		return fmt.Errorf("standard error: %w", err)
	}
	return nil
}

func dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// openOutput gives what a task writes to, and where its lines have to be seen on their way, the
// end that they are read from and the file that they go to then (nil: the client).
func (l *launcher) openOutput(pattern string, t *task) (theirs, ours, to *os.File, err error) {
	if pattern != "" {
		if theirs, err = l.openFile(pattern, t); err != nil || !l.body.Label {
			return theirs, nil, nil, err
		}
		to = theirs
	}
	if ours, theirs, err = os.Pipe(); err != nil && to != nil {
		_ = to.Close()
	}
	return theirs, ours, to, err
}

func (l *launcher) openFile(pattern string, t *task) (*os.File, error) {
	path := l.pattern(pattern, t)
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if l.body.Truncate {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if os.IsNotExist(err) {
		if os.MkdirAll(filepath.Dir(path), 0o777) == nil {
			f, err = os.OpenFile(path, flags, 0o666)
		}
	}
	return f, err
}

// pattern fills in what differs between tasks and nodes: %t %s %n %N, with a width, and %%.
func (l *launcher) pattern(p string, t *task) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '%' {
			b.WriteByte(p[i])
			continue
		}
		j := i + 1
		for j < len(p) && p[j] >= '0' && p[j] <= '9' {
			j++
		}
		if j == len(p) {
			b.WriteString(p[i:])
			break
		}
		width, _ := strconv.Atoi(cmp.Or(p[i+1:j], "0"))
		switch p[j] {
		case '%':
			b.WriteByte('%')
		case 't':
			fmt.Fprintf(&b, "%0*d", min(width, 10), t.number)
		case 's':
			fmt.Fprintf(&b, "%0*d", min(width, 10), l.body.Reply.StepID)
		case 'n':
			fmt.Fprintf(&b, "%0*d", min(width, 10), l.body.Part)
		case 'N':
			name, _, _ := strings.Cut(l.body.Reply.Nodes[l.body.Part].Name, ".")
			b.WriteString(name)
		default:
			b.WriteString(p[i : j+1])
		}
		i = j
	}
	return b.String()
}

func (s *stdio) openTerminal(w *stepwire.Window) (err error) {
	s.terminal = true
	if s.outr, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	fd := int(s.outr.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		s.in, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		setSize(s.outr, *w)
		s.out, err = dup(s.in)
	}
	if err == nil {
		s.err, err = dup(s.in)
	}
	if err == nil {
		s.inw, err = dup(s.outr)
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

func setSize(f *os.File, w stepwire.Window) {
	_ = unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
}

func (l *launcher) resize(w stepwire.Window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tasks {
		if t.pty != nil && !t.gone {
			setSize(t.pty, w)
		}
	}
}

// wire connects the files of a task that runs; l.mu is held.
func (l *launcher) wire(t *task, s *stdio) {
	if s.inw != nil {
		t.in = newFeeder(s.inw)
	}
	if s.terminal {
		t.pty = s.outr
	}
	if s.outr != nil {
		l.outputs.Go(func() { l.copy(stepwire.Output, t, s.outr, s.outTo, s.terminal) })
	}
	if s.errr != nil {
		l.outputs.Go(func() { l.copy(stepwire.Errors, t, s.errr, s.errTo, false) })
	}
}

// give hands on a piece of what a task writes: to the client, or with its number before each line to
// a file.
func (l *launcher) give(kind byte, t *task, to *os.File, data []byte) error {
	if to == nil {
		return l.conn.Send(kind, uint32(t.number), data)
	}
	_, err := to.Write(stepwire.Label(uint32(t.number), l.body.Reply.Tasks, data))
	return err
}

// heldFor is how long a line without an end waits for it before it is shown: progress bars
// have none.
const heldFor = 200 * time.Millisecond

// copy gives on what a task writes. Pieces end at the ends of lines where that can be, so that
// lines of different tasks are not mixed.
func (l *launcher) copy(kind byte, t *task, r, to *os.File, raw bool) {
	defer r.Close()
	if to != nil {
		defer to.Close()
	}
	raw = raw || l.body.Unbuffered
	buf := make([]byte, stepwire.MaxData)
	held := 0
	for {
		if held > 0 && !raw && !l.body.Label {
			_ = r.SetReadDeadline(time.Now().Add(heldFor))
		}
		n, err := r.Read(buf[held:])
		held += n
		timeout := os.IsTimeout(err)
		if timeout {
			err = nil
			_ = r.SetReadDeadline(time.Time{})
		} else if held > n {
			_ = r.SetReadDeadline(time.Time{})
		}
		send := held
		if !raw && !timeout && err == nil && held < len(buf) {
			send = bytes.LastIndexByte(buf[:held], '\n') + 1
		} else if held == len(buf) {
			if i := bytes.LastIndexByte(buf, '\n'); i >= 0 && !raw {
				send = i + 1
			}
		}
		if send > 0 {
			if l.give(kind, t, to, buf[:send]) != nil {
				// The client is gone: the tasks are being stopped, and must not hang in a write. Nor where the disk is full.
				_, _ = io.Copy(io.Discard, r)
				return
			}
			held = copy(buf, buf[send:held])
		}
		if err != nil {
			return // EOF, or EIO of a terminal whose last process has gone
		}
	}
}

// input hands what the client sends to the tasks it is for; it is credited when all of them
// have taken it.
func (l *launcher) input(f stepwire.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := f.Type == stepwire.EndIn
	var all []*feeder
	for _, t := range l.tasks {
		if t.in != nil && !t.gone && (f.Task == stepwire.AllTasks || f.Task == uint32(t.number)) {
			all = append(all, t.in)
		}
	}
	if end {
		for _, in := range all {
			in.put(nil, nil)
		}
		return
	}
	credit := &credit{l: l, left: len(all) + 1}
	data := bytes.Clone(f.Data)
	for _, in := range all {
		in.put(data, credit.done)
	}
	credit.done()
}

// credit counts the tasks that have not taken a frame yet.
type credit struct {
	l    *launcher
	mu   sync.Mutex
	left int
}

func (c *credit) done() {
	c.mu.Lock()
	c.left--
	last := c.left == 0
	c.mu.Unlock()
	if last {
		go func() { _ = c.l.conn.Send(stepwire.Credit, 0, nil) }()
	}
}

// feeder writes to one task, in order, in a goroutine that ends with the input or the task.
// It holds no more than the window of the client.
type feeder struct {
	f  *os.File
	ch chan inputPiece

	mu   sync.Mutex
	over bool
}

type inputPiece struct {
	data []byte // nil: the end
	done func()
}

func newFeeder(f *os.File) *feeder {
	in := &feeder{f: f, ch: make(chan inputPiece, stepwire.InputWindow+1)}
	go in.run()
	return in
}

func (in *feeder) put(data []byte, done func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.over {
		select {
		case in.ch <- inputPiece{data, done}:
			if data == nil {
				in.over = true
				close(in.ch)
			}
			return
		default: // a client that ignores its window loses what is beyond it
		}
	}
	if done != nil {
		done()
	}
}

// close ends it with its task.
func (in *feeder) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.over {
		in.over = true
		close(in.ch)
	}
	_ = in.f.Close() // wakes a write that nobody reads
}

func (in *feeder) run() {
	broken := false
	for x := range in.ch {
		if x.data == nil {
			break
		}
		if !broken {
			_, err := in.f.Write(x.data)
			broken = err != nil
		}
		x.done()
	}
	_ = in.f.Close()
	for x := range in.ch { // after the end
		if x.done != nil {
			x.done()
		}
	}
}
