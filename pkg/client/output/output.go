// Package output is the standard output of a command: what can't be written there is an exit status and a word
// on stderr, whatever the command makes of it.
//
// Begin with [Run] and [New]. It must not know what is printed.
package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"gangd/pkg/core/cmdline"
)

// Writer is the standard output of a command. It remembers the first write that failed, so
// that a command need not look at each of its own: a full disk behind a redirection is an
// exit status and a word, see [Writer.Finish].
type Writer struct {
	w   io.Writer
	mu  sync.Mutex // tasks of a step and a status line write beside each other
	err error
}

// New is an output to w.
func New(w io.Writer) *Writer { return &Writer{w: w} }

func (o *Writer) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		err = o.fail(err)
	}
	return n, err
}

// fail keeps the first error, which is that of every write that fails: who tells of one of them has told of it.
func (o *Writer) fail(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	return o.err
}

// Failed is the first error of a write; nil: there was none.
func (o *Writer) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Finish gives the exit status of a command that would end with this one and has told of these errors
// on stderr: what it could not write is said once, and is no success.
func (o *Writer) Finish(name string, status int, told []error, stderr io.Writer) int {
	err := o.Failed()
	if err == nil {
		return status
	}
	if !slices.ContainsFunc(told, func(said error) bool { return errors.Is(said, err) }) {
		fmt.Fprintf(stderr, "%s: standard output: %v\n", name, err)
	}
	return max(status, 1)
}

// File is the open file that a writer writes to, if it is one.
func File(w io.Writer) (*os.File, bool) {
	switch through := w.(type) {
	case *Writer:
		w = through.w
	case *teller:
		w = through.w
	}
	f, ok := w.(*os.File)
	return f, ok
}

// Run runs a command with its standard streams, and gives its exit status.
func Run(name string, run func([]string, cmdline.Streams) int, args []string, s cmdline.Streams) int {
	out, errs := New(s.Out), &teller{w: s.Err}
	status := run(args, cmdline.Streams{In: s.In, Out: out, Err: errs})
	return out.Finish(name, status, errs.told, s.Err)
}

// teller is the stderr of a command, which hears from [cmdline.Streams.Errorf] what errors are told of there.
type teller struct {
	w    io.Writer
	mu   sync.Mutex
	told []error
}

func (t *teller) Write(b []byte) (int, error) { return t.w.Write(b) }

// Tells takes in that an error is told of.
func (t *teller) Tells(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = append(t.told, err)
}
