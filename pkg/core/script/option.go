package script

import (
	"strconv"
	"strings"

	"gangd/pkg/core/cmdline"
)

// The words of the table.
const (
	Own     = cmdline.Own
	Exact   = cmdline.Exact
	Partial = cmdline.Partial
	Refused = cmdline.Refused

	NoValue  = cmdline.None
	Value    = cmdline.Required
	MayValue = cmdline.Optional
)

// Option is one row of the table.
type Option = cmdline.Option[Ask]

// envName is the option's own variable.
func envName(o *Option) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(o.Long, "-", "_"))
}

// Source says where a setting was written. A higher one wins.
type Source int

// The sources, weakest first.
const (
	FromSBATCH    Source = iota // a #SBATCH line
	FromGANG                    // a #GANG line
	FromSbatchEnv               // SBATCH_*
	FromEnv                     // GSUBMIT_*
	FromFlag                    // the command line
)

// Pos is a place that a message can point at. The zero Pos is the command line.
type Pos struct {
	File      string
	Line, Col int    // from 1, in bytes as compilers count
	Env       string // the variable, for the environment
}

func (p Pos) String() string {
	switch {
	case p.Env != "":
		return p.Env
	case p.Col > 0:
		return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col)
	case p.Line > 0:
		return p.File + ":" + strconv.Itoa(p.Line)
	}
	return p.File
}

// Setting is one option as it was written somewhere.
type Setting struct {
	cmdline.Setting[Ask]
	Source Source
	Pos    Pos
	// Unset: its value is empty, and by sbatch's rules it is as if it had not been given, here and in weaker sources.
	Unset bool
	// Component is which component of a heterogeneous job it was written for; of one that is not, 0.
	Component int
}

// String shows the setting as a person would write it.
func (s *Setting) String() string {
	if !s.Given {
		return "--" + s.Name
	}
	return "--" + s.Name + "=" + oneLine(s.Value)
}

// where is the setting and, unless it is a flag, its place in parentheses.
func (s *Setting) where() string {
	if p := s.Pos.String(); p != "" {
		return s.String() + " (" + p + ")"
	}
	return s.String()
}

// Warning is something that a person should know and that stops nothing.
type Warning struct {
	Pos  Pos
	Text string
}

func (w Warning) String() string { return prefix(w.Pos, w.Text) }

// Error refuses: what is wrong, and the next step.
type Error struct {
	Pos   Pos
	Msg   string
	Hint  string
	Usage bool // wrong use of the command line, not of a script: exit 2

	// Getopt is the C library's words for it, where the line can't be read as options.
	Getopt string
	// Clash is the rule that words for cards break together; Nodes are the figures of a [ClashNodes].
	Clash Clash
	Nodes ClashText
	// Bad is the setting whose own value is wrong, nil for other mistakes.
	Bad *Setting
	// Stray is the word of a directive that is no option.
	Stray string
}

func (e *Error) Error() string {
	s := prefix(e.Pos, e.Msg)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

func prefix(p Pos, text string) string {
	if at := p.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// valueError is what a setter returns: the reason and the next step, without the place.
type valueError struct{ msg, hint string }

func (e *valueError) Error() string {
	if e.hint == "" {
		return e.msg
	}
	return e.msg + "; " + e.hint
}

func bad(msg, hint string) error { return &valueError{msg: msg, hint: hint} }

// refuse makes the Error of a setting.
func (s *Setting) refuse(msg, hint string) *Error {
	return &Error{Pos: s.Pos, Msg: msg, Hint: hint, Usage: s.Source == FromFlag}
}
