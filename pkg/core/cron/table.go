package cron

import (
	"fmt"
	"slices"
	"strings"
)

// What a table may hold.
const (
	MaxBytes = 64 << 10
	MaxLines = 100 // that are due at some time
)

// Zone is the variable that says the time zone of the lines behind it.
const Zone = "CRON_TZ"

// Entry is a line that is due at some time, with what stands before it for it.
type Entry struct {
	First, Last int // lines of the table, from 1: its options and itself
	Expr        string
	Zone        string // empty: the controller's
	Command     string
	Env         []string // NAME=value, set in the table before it
	// Options are its directives as scripts have them, in the lines in which the table has them.
	Options string
}

// Mistake is a line that can't be read.
type Mistake struct {
	First, Last int // of what it makes useless
	Line        int // that is to be looked at
	Text        string
}

// magics are the words before options: of sbatch, and of gsubmit, and what a script has for them.
var magics = map[string]string{"#SCRON": "#SBATCH", "#GANG": "#GANG"}

// Table reads a cron table: its lines, and the mistakes in it.
func Table(text string) (entries []Entry, mistakes []Mistake) {
	var env []string
	zone, first := "", 0
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	options := make([]string, len(lines))
	for i, raw := range lines {
		n, line := i+1, strings.TrimRight(strings.TrimLeft(raw, " \t"), "\r")
		bad := func(from int, format string, args ...any) {
			mistakes = append(mistakes, Mistake{from, n, n, fmt.Sprintf(format, args...)})
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if line[0] == '#' {
			if d := directive(line); d != "" {
				if first == 0 {
					first = n
				}
				options[i] = d
			} else if word := mistaken(line); word != "" {
				bad(n, "%s is no word for options here: write #GANG, or #SCRON for those of sbatch", word)
			}
			continue
		}
		if name, value, ok := variable(line); ok {
			if name == Zone {
				zone = value
				continue
			}
			env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
			env = append(env, name+"="+value)
			continue
		}
		expr, command := split(line)
		e := Entry{First: n, Last: n, Expr: expr, Zone: zone, Command: command, Env: env}
		if first > 0 {
			e.First, e.Options = first, strings.Join(options[:i], "\n")
		}
		if _, err := Parse(expr); err != nil {
			if n := times(line); line[0] != '@' && n < len(fields) {
				err = fmt.Errorf("a line has %d times (%s), or a shortcut as @daily, and then its command; of these times %.80q has %d", len(fields),
					fieldNames(), line, n)
			}
			bad(e.First, "%s", err)
		} else if command == "" {
			bad(e.First, "there is no command behind the time")
		} else {
			entries = append(entries, e)
		}
		first = 0
		clear(options)
	}
	switch {
	case len(text) > MaxBytes:
		mistakes = append(mistakes, Mistake{1, len(lines), len(lines), fmt.Sprintf("the table has %d bytes, and may have %d", len(text),
			MaxBytes)})
	case len(entries) > MaxLines:
		mistakes = append(mistakes, Mistake{entries[MaxLines].First, len(lines), entries[MaxLines].Last,
			fmt.Sprintf("the table has %d lines with a time, and may have %d", len(entries), MaxLines)})
	case first > 0:
		mistakes = append(mistakes, Mistake{first, len(lines), first, "options with no line behind them that they are for"})
	}
	return entries, mistakes
}

// directive is an options line as a script has it; empty: the line is a comment.
func directive(line string) string {
	for magic, to := range magics {
		rest, ok := strings.CutPrefix(line, magic)
		if ok && (rest == "" || strings.ContainsRune(" \t-", rune(rest[0]))) {
			return to + rest
		}
	}
	return ""
}

// mistaken is the word of a comment that looks like options, as #SBATCH --time=5 does: left out in silence they would be missed.
func mistaken(line string) string {
	word, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	if len(word) < 4 || strings.Trim(word[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || !strings.HasPrefix(strings.TrimLeft(rest, " "), "-") {
		return ""
	}
	return word
}

// Script is what runs when an entry is due.
func (e *Entry) Script() string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for line := range strings.SplitSeq(e.Options, "\n") {
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String() + "# due: " + e.Expr + "\n" + e.Command + "\n"
}

// variable reads NAME=value; quotes around the value go.
func variable(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) || name[0] >= '0' && name[0] <= '9' {
		return "", "", false
	}
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return name, value, true
}

// split parts the time of a line from its command.
func split(line string) (expr, command string) {
	n := len(fields)
	if line[0] == '@' {
		n = 1
	}
	rest := line
	for range n {
		rest = strings.TrimLeft(rest, " \t")
		if i := strings.IndexAny(rest, " \t"); i >= 0 {
			rest = rest[i:]
		} else {
			rest = ""
		}
	}
	return strings.Join(strings.Fields(line[:len(line)-len(rest)]), " "), strings.TrimSpace(rest)
}

// times is how many times a line has before its command, well-formed ones or not. A word among times is meant as one.
func times(line string) int {
	words := strings.Fields(line)
	n := min(len(words), len(fields))
	for n > 0 {
		word := words[n-1]
		if strings.Contains("*0123456789", word[:1]) || slices.ContainsFunc(fields, func(f field) bool { return f.named(word) >= 0 }) {
			return n
		}
		n--
	}
	return n
}

// Mark puts a word before lines of a table.
func Mark(text, mark string, first, last int) string {
	lines := strings.SplitAfter(text, "\n")
	for i := first - 1; i < min(last, len(lines)); i++ {
		if lines[i] != "" {
			lines[i] = mark + lines[i]
		}
	}
	return strings.Join(lines, "")
}
