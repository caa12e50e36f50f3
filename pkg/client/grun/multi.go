package grun

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/wire/stepwire"
)

// readPrograms reads a file of --multi-prog: lines of tasks, program and arguments. "*" is
// every task that has none before; %t is the task, %o its place in the line's tasks.
func readPrograms(path string, args []string, tasks int) ([]stepwire.Program, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []stepwire.Program
	seen := map[int]bool{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for line := 1; sc.Scan(); line++ {
		text := sc.Text()
		for from := line; continued(text) && sc.Scan(); line++ { // a backslash at its end: the next line goes on with it
			if line-from > maxJoined {
				return nil, fmt.Errorf("%s:%d: more than %d lines that go on", path, from, maxJoined)
			}
			text = text[:len(text)-1] + sc.Text()
		}
		if t := strings.TrimSpace(text); t == "" || t[0] == '#' {
			continue
		}
		words, err := splitWords(text)
		if err != nil || len(words) < 2 {
			return nil, fmt.Errorf("%s:%d: want TASKS PROGRAM [ARG]...", path, line)
		}
		p := stepwire.Program{Argv: append(words[1:], args...), Expand: true}
		if words[0] != "*" {
			if p.Tasks, err = taskList(words[0]); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, line, err)
			}
			for _, t := range p.Tasks {
				if seen[t] {
					return nil, fmt.Errorf("%s:%d: task %d has a program already", path, line, t)
				}
				seen[t] = true
			}
		}
		out = append(out, p)
	}
	if tasks > 0 && !slices.ContainsFunc(out, func(p stepwire.Program) bool { return len(p.Tasks) == 0 }) {
		for t := range tasks {
			if !seen[t] {
				return nil, fmt.Errorf("%s: no program for task %d; a line with * is for all others", path, t)
			}
		}
	}
	// The others' line counts last, wherever it stands.
	slices.SortStableFunc(out, func(a, b stepwire.Program) int { return min(len(b.Tasks), 1) - min(len(a.Tasks), 1) })
	return out, sc.Err()
}

// maxJoined bounds the lines that are one.
const maxJoined = 10000

// continued: an odd number of backslashes ends the line.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// taskList reads 0,2-4.
func taskList(s string) (out []int, err error) {
	for _, part := range strings.Split(s, ",") {
		a, b, ranged := strings.Cut(part, "-")
		lo, err := strconv.Atoi(a)
		hi := lo
		if err == nil && ranged {
			hi, err = strconv.Atoi(b)
		}
		if err != nil || lo < 0 || hi < lo || hi-lo > 1<<20 {
			return nil, fmt.Errorf("tasks %q: want 0,2-4 or *", s)
		}
		for t := lo; t <= hi; t++ {
			out = append(out, t)
		}
	}
	return out, nil
}

// splitWords cuts at blanks outside of quotes. A backslash takes the meaning from what follows it, within double quotes from
// a quote and a backslash.
func splitWords(s string) (out []string, err error) {
	var b strings.Builder
	var quote rune
	open, escaped := false, false
	for i, c := range s {
		switch {
		case escaped:
			b.WriteRune(c)
			escaped = false
		case c == '\\' && (quote == 0 || quote == '"' && strings.IndexAny(s[i+1:], `"\`) == 0):
			open, escaped = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == ' ' || c == '\t':
			if open {
				out = append(out, b.String())
				b.Reset()
				open = false
			}
		default:
			b.WriteRune(c)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is never closed")
	}
	if open {
		out = append(out, b.String())
	}
	return out, nil
}
