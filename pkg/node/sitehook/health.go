package sitehook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"unicode"

	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/trusted"
)

const (
	// tempFail is the status of a program that can't tell.
	tempFail = 75
	// maxReason keeps a reason fit for a table.
	maxReason = 200
	// maxOutput of a program is read: the reason is in its first line.
	maxOutput = 4096
)

// Health is what a health program said. Known is false where it could not tell.
type Health struct {
	Sick  string // why the node is not fit; empty: it is
	Known bool
}

// Check runs a health program once: the admin's own word on whether the machine is fit for
// work (a file system that is full, a link that is down, an old driver). It gets the node's
// name as its one argument and as GANG_NODE. Its exit status decides:
//
//	0   fit
//	75  it can't tell now (EX_TEMPFAIL): what was last said stays
//	    any other: not fit, for the reason in the first line of its output
//
// A program that is not done in time, can't be started, or was ended by a signal has found a
// machine that is not fit: one that hangs in a dead file system is the usual case. When ctx
// ends nothing is known.
func (p Program) Check(ctx context.Context, node string) Health {
	if err := trusted.File(p.Path); err != nil {
		return Health{Sick: err.Error(), Known: true}
	}
	late, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := Command(late, p.Path, []string{"GANG_NODE=" + node}, node)
	var out head
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Health{}
	case late.Err() != nil:
		return Health{Sick: fmt.Sprintf("%s was not done within %v", p.Path, when.Words(p.Timeout)), Known: true}
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it ended with 0, something of it holds the pipe
		return Health{Known: true}
	case errors.As(err, &exit) && exit.ExitCode() == tempFail:
		return Health{}
	}
	if line := firstLine(out.String()); line != "" && exit != nil {
		return Health{Sick: line, Known: true}
	}
	return Health{Sick: fmt.Sprintf("%s: %v", p.Path, err), Known: true}
}

// firstLine is the first line that says something, fit for anybody's terminal.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = plainLine(line); line != "" {
			return line
		}
	}
	return ""
}

// plainLines are all that do.
func plainLines(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if line = plainLine(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// Plain is a text as one line, fit for anybody's terminal and for a table.
func Plain(text string) string { return plainLine(text) }

func plainLine(line string) string {
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, line))
	if r := []rune(line); len(r) > maxReason {
		line = string(r[:maxReason-1]) + "…"
	}
	return line
}

// head keeps the beginning of what is written.
type head struct{ bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, maxOutput-h.Len()))])
	return len(p), nil
}
