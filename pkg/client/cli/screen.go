package cli

import (
	"io"

	"golang.org/x/sys/unix"

	"gangd/pkg/client/output"
)

// screen is where a command's data goes: a terminal with a width, or anything else.
type screen struct {
	w        io.Writer
	terminal bool
	colour   bool
	width    int // columns of the terminal
	height   int // lines of it
}

// screenOf finds out what w is.
func screenOf(w io.Writer) *screen {
	s := &screen{w: w, colour: output.When.On(false)}
	f, ok := output.File(w)
	if !ok {
		return s
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return s
	}
	s.terminal = true
	s.colour = output.When.On(true)
	s.width, s.height = int(size.Col), int(size.Row)
	if s.width == 0 {
		s.width, s.height = 80, 24 // a serial line or a pseudo terminal that nobody has sized
	}
	return s
}

// style is an ANSI colour; the empty one leaves the text as it is.
type style string

// Few and calm: a glance finds what failed, what waits and what is fine.
const (
	plain  style = ""
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	red    style = "\x1b[31m"
	faint  style = "\x1b[2m"
	bold   style = "\x1b[1m"

	styleEnd = "\x1b[0m"
)

// paint gives text in a style where the screen has colours.
func (s *screen) paint(st style, text string) string {
	if !s.colour || st == plain || text == "" {
		return text
	}
	return string(st) + text + styleEnd
}
