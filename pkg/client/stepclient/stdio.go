package stepclient

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/wire/stepwire"
)

// write gives a piece of output to whoever is to have it. It blocks as long as they do, and
// with it the node that the piece came from.
func (s *step) write(f stepwire.Frame, to *Output) {
	w, only := to.Stdout, to.OnlyTask
	if f.Type == stepwire.Errors {
		w, only = to.Stderr, to.OnlyErr
	}
	s.active.Store(time.Now().UnixNano())
	s.toViewers(f.Type, f.Task, f.Data)
	if only >= 0 && int(f.Task) != only {
		return
	}
	data := f.Data
	if s.o.Label {
		data = stepwire.Label(f.Task, s.reply.Tasks, data)
	}
	s.out.Lock()
	_, err := w.Write(data)
	s.out.Unlock()
	if err != nil && !s.isKilled() {
		s.Kill(false) // nobody reads any more: `grun ... | head`
	}
}

// feed reads standard input and sends it to the tasks, in a goroutine that is left behind in
// its read when the step ends.
func (s *step) feed(ctx context.Context) {
	if s.o.Body.InputTo < 0 || s.o.Body.Stdin != "" {
		return
	}
	if s.o.Stdin == nil {
		s.send(ctx, stepwire.EndIn, nil)
		return
	}
	go func() {
		buf := make([]byte, stepwire.MaxData/2)
		for {
			n, err := s.o.Stdin.Read(buf)
			s.active.Store(time.Now().UnixNano())
			if n > 0 && !s.send(ctx, stepwire.Input, buf[:n]) {
				return
			}
			if err != nil {
				s.send(ctx, stepwire.EndIn, nil)
				return
			}
		}
	}()
}

// send gives a frame to the launchers whose tasks are to have it, as far as they have taken
// what came before.
func (s *step) send(ctx context.Context, kind byte, data []byte) bool {
	task := uint32(s.o.Body.InputTo)
	for p := range s.launchers(task) {
		if kind == stepwire.Input {
			for waiting := true; waiting; {
				select {
				case p.window <- struct{}{}:
					waiting = false
				case <-ctx.Done():
					return false
				case <-time.After(time.Second):
					s.mu.Lock()
					waiting = !p.done
					s.mu.Unlock()
				}
			}
		}
		_ = p.conn.Send(kind, task, data)
	}
	return true
}

// Window is the size of the terminal that f is.
func Window(f *os.File) (stepwire.Window, bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return stepwire.Window{}, false
	}
	return stepwire.Window{Rows: w.Row, Cols: w.Col}, true
}

func (s *step) resize() {
	if w, ok := Window(s.o.Stdin); ok {
		b, _ := json.Marshal(w)
		s.toAll(stepwire.Size, b)
	}
}

// viewerPatience is how long an attached client may leave its output unread before it is
// dropped: the step's own output must not wait for it for ever.
const viewerPatience = 5 * time.Second

// show serves an attached client until it goes.
func (s *step) show(conn *stepwire.Conn, input bool) {
	s.mu.Lock()
	reply := *s.reply
	s.mu.Unlock()
	reply.Secret = ""
	if conn.SendJSON(stepwire.Start, 0, &stepwire.Body{Reply: reply, Stdout: s.o.Body.Stdout, Stderr: s.o.Body.Stderr}) != nil {
		return
	}
	s.mu.Lock()
	s.viewers = append(s.viewers, conn)
	s.mu.Unlock()
	for {
		f, err := conn.Next()
		if err != nil {
			break
		}
		switch {
		case f.Type == stepwire.Signal:
			s.toAll(stepwire.Signal, f.Data)
		case f.Type == stepwire.Input && input:
			s.relay(f)
		}
	}
	s.dropViewer(conn)
}

// relay passes on what an attached client writes.
func (s *step) relay(f stepwire.Frame) {
	for p := range s.launchers(f.Task) {
		select {
		case p.window <- struct{}{}:
			_ = p.conn.Send(stepwire.Input, f.Task, f.Data)
		case <-time.After(viewerPatience): // the task does not read
		}
	}
}

func (s *step) dropViewer(conn *stepwire.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Not in place: somebody may be telling them something.
	s.viewers = slices.DeleteFunc(slices.Clone(s.viewers), func(v *stepwire.Conn) bool { return v == conn })
}

func (s *step) toViewers(kind byte, task uint32, data []byte) {
	s.mu.Lock()
	viewers := s.viewers
	s.mu.Unlock()
	for _, v := range viewers {
		_ = v.SetWriteDeadline(time.Now().Add(viewerPatience))
		if v.Send(kind, task, data) != nil {
			s.dropViewer(v)
		}
	}
}
