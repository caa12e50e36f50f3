// Package statusline is the one line at the bottom of a terminal that says how something stands for which a
// person waits: a job in the queue, a run with an end. It is written to a terminal alone, in place of itself, and is gone
// before anything else is written: nothing of it is ever in a pipe, a file or a log.
//
// The line has no colours; a terminal that can't go back in a line (TERM=dumb) has none.
//
// Begin with [Open].
//
// It must not know how a job is submitted or run: an Asker gives it what to show.
package statusline

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client/output"
	"gangd/pkg/core/cmdline/when"
)

// drawn is how often what counts up is drawn at most.
const drawn = 100 * time.Millisecond

// Line is a status line. A nil one is none: its methods do nothing. It is safe for concurrent use.
type Line struct {
	mu     sync.Mutex
	tty    *os.File
	shown  bool
	worked time.Time // when Work drew last
	// midway: what was written last has not ended its line, which is not ours to go over.
	midway bool
}

// Open is a line on what w is, when that is a terminal; nil: it is none.
func Open(w io.Writer) *Line {
	f, ok := output.File(w)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	return &Line{tty: f}
}

// Set shows a text, cut to the terminal.
func (l *Line) Set(text string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.midway {
		return
	}
	width := 80
	if size, err := unix.IoctlGetWinsize(int(l.tty.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		width = int(size.Col)
	}
	fmt.Fprintf(l.tty, "\r%s\x1b[K", cut(text, width-1))
	l.shown = true
}

// Work shows how much of something is done, of how much: it may be called for each piece.
func (l *Line) Work(what string, done, all int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	now := time.Now()
	soon := now.Sub(l.worked) < drawn
	if !soon {
		l.worked = now
	}
	l.mu.Unlock()
	if !soon {
		l.Set(Part(what, done, all))
	}
}

// Part is a bar with the figures behind it.
func Part(what string, done, all int64) string {
	if all <= 0 {
		return fmt.Sprintf("%s %d", what, done)
	}
	return fmt.Sprintf("%s %s %d of %d", what, Bar(float64(done)/float64(all), 20), done, all)
}

// Clear takes it away until the next Set.
func (l *Line) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

func (l *Line) clear() {
	if l.shown {
		fmt.Fprint(l.tty, "\r\x1b[K")
		l.shown = false
	}
}

// Over is w, before each write to which the line is cleared.
func (l *Line) Over(w io.Writer) io.Writer {
	if l == nil {
		return w
	}
	return &over{l, w}
}

type over struct {
	l *Line
	w io.Writer
}

func (o *over) Write(p []byte) (int, error) {
	o.l.mu.Lock()
	defer o.l.mu.Unlock()
	o.l.clear()
	if len(p) > 0 {
		o.l.midway = p[len(p)-1] != '\n'
	}
	return o.w.Write(p)
}

func cut(s string, width int) string {
	if width < 4 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-3]) + "..."
}

// Job says how a job stands.
func Job(j *api.Job, now time.Time) string {
	text := fmt.Sprintf("job %d ", j.JobID)
	switch j.State {
	case api.JobPending:
		text += "waits (" + j.Reason + ")"
		if j.QueuePlace > 0 {
			text += fmt.Sprintf(", %d of %d in the queue", j.QueuePlace, j.QueueLength)
		}
		switch {
		case j.ExpectedStart.IsZero():
		case j.ExpectedSure:
			text += ", starts by " + clock(j.ExpectedStart, now) + " (time limits)"
		default:
			text += ", starts about " + clock(j.ExpectedStart, now) + " (a guess)"
		}
		return text
	case api.JobReserved:
		text += fmt.Sprintf("is being started on %s, ranks prepared %d/%d", api.Count(len(j.Nodes), "node"), j.Prepared, j.Size)
		if j.Status != "" {
			text += ": " + j.Status
		}
		return text
	case api.JobRunning:
		ran := max(now.Sub(j.StartTime), 0).Truncate(time.Second)
		if limit := time.Duration(j.TimeLimitSeconds) * time.Second; limit > 0 {
			text += fmt.Sprintf("runs %s %s of at most %s", Bar(float64(ran)/float64(limit), 20), when.Words(ran), when.Words(limit))
		} else {
			text += fmt.Sprintf("runs %s", when.Words(ran))
		}
		if j.Status != "" {
			text += ": " + j.Status
		}
		return text
	case api.JobCompleting:
		return text + "is being stopped"
	}
	return text + strings.ToLower(string(j.State))
}

// clock is a time of today, else with its day.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("Jan 2 15:04")
}

// Bar shows a part of 1.
func Bar(part float64, width int) string {
	n := int(max(0, min(part, 1)) * float64(width))
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}
