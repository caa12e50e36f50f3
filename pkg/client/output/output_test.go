package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"gangd/pkg/core/cmdline"
)

type fullDisk struct{ after int }

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

// TestOutputErrors: what could not be written is an exit status and one line, whatever the command makes of it.
func TestOutputErrors(t *testing.T) {
	prints := func(lines, status int, says string) func([]string, cmdline.Streams) int {
		return func(_ []string, s cmdline.Streams) int {
			for range lines {
				fmt.Fprintln(s.Out, "line")
			}
			io.WriteString(s.Err, says)
			return status
		}
	}
	tells := func(status int, format string) func([]string, cmdline.Streams) int {
		return func(_ []string, s cmdline.Streams) int {
			_, err := fmt.Fprintln(s.Out, "line")
			s.Errorf("x", format, fmt.Errorf("the table: %w", err))
			return status
		}
	}
	const word = "x: standard output: no space left on device\n"
	for _, c := range []struct {
		name   string
		run    func([]string, cmdline.Streams) int
		room   int
		status int
		errs   string
	}{
		{"all is written", prints(2, 0, ""), 2, 0, ""},
		{"nothing is written", prints(0, 0, ""), 0, 0, ""},
		{"the last line is not", prints(2, 0, ""), 1, 1, word},
		{"a failure keeps its status", prints(1, 3, "x: no job 7\n"), 0, 3, "x: no job 7\n" + word},
		{"what was said is not said again", tells(1, "%v"), 0, 1, "x: error: the table: no space left on device\n"},
		{"words that are the same say nothing of it", prints(1, 1, "x: /scratch: no space left on device\n"), 0, 1, "x: /scratch: no space left on device\n" + word},
	} {
		var errs bytes.Buffer
		status := Run("x", c.run, nil, cmdline.Streams{Out: &fullDisk{after: c.room}, Err: &errs})
		if status != c.status || errs.String() != c.errs {
			t.Errorf("%s: status %d, %q, want %d, %q", c.name, status, errs.String(), c.status, c.errs)
		}
	}
	_ = Run("x", func(_ []string, s cmdline.Streams) int {
		out, ok1 := File(s.Out)
		errs, ok2 := File(s.Err)
		if !ok1 || !ok2 || out != os.Stdout || errs != os.Stderr {
			t.Error("a terminal is not found behind what counts its errors")
		}
		return 0
	}, nil, cmdline.Streams{Out: os.Stdout, Err: os.Stderr})
	if f, ok := File(os.Stdout); !ok || f != os.Stdout {
		t.Error("a file is not itself")
	}
}
