// Package accttable prints the tables of Slurm's accounting commands (sacct, sstat, sacctmgr,
// sshare): which columns a --format asks for, how wide they are, what is cut. Those of squeue
// and sinfo keep other rules, pkg/core/table/column.
//
// Rules, as the commands of 22.05 have them:
//   - A column is right-justified; with a negative width left. --format=name%20 and %-20 say
//     another one. A name may be cut short: the first column that begins so is meant, in any
//     case of letters. A list ends at an empty name.
//   - Text that does not fit is cut and ends in "+"; a time is cut without a mark; numbers and
//     spans of time are never cut.
//   - Every column ends in a blank, the last one too. With --parsable a delimiter follows each
//     column, with --parsable2 stands between them.
//
// The package is pure: strings in, lines out.
//
// Begin with Parse and Table. It must not know jobs or where records come from.
package accttable

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"gangd/pkg/core/table/column"
)

// Fit says what becomes of a value that is wider than its column.
type Fit int

// The ways to fit.
const (
	Cut   Fit = iota // cut, the last place a "+"
	Chop             // cut
	Whole            // printed whole, and the rest of the line moves
)

// Column is one column of a table.
type Column struct {
	Name  string // in the header
	Width int    // negative: left-justified
	Fit   Fit
	Key   string // by which --format names it; empty: Name
}

func (c *Column) key() string {
	if c.Key != "" {
		return c.Key
	}
	return c.Name
}

// UnknownError names a column that the command does not have.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return "unknown column " + strconv.Quote(e.Name) }

// Choice is a column of the table that was asked for.
type Choice struct {
	Column
	Index int // in the table of all columns
}

// maxWidth bounds a column: a typo must not become a gigabyte of blanks.
const maxWidth = 4096

// Parse reads a --format against the table of all columns.
func Parse(list string, all []Column) ([]Choice, error) {
	var out []Choice
	for _, part := range strings.Split(list, ",") {
		part = strings.TrimLeft(part, " ")
		if part == "" {
			break
		}
		name, width, given := strings.Cut(part, "%")
		i := find(name, all)
		if i < 0 {
			return nil, &UnknownError{name}
		}
		c := Choice{all[i], i}
		if given {
			c.Width = parseWidth(width)
		}
		out = append(out, c)
	}
	return out, nil
}

func find(name string, all []Column) int {
	if name == "" {
		return -1
	}
	for i := range all {
		if key := all[i].key(); len(name) <= len(key) && strings.EqualFold(key[:len(name)], name) {
			return i
		}
	}
	return -1
}

// parseWidth reads a number at the head, as the C library's atoi: what is none is 0.
func parseWidth(s string) int {
	digits := strings.TrimPrefix(s, "-")
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	v, err := strconv.Atoi(digits[:n])
	if err != nil && n > 0 || v > maxWidth {
		v = maxWidth
	}
	if digits != s {
		return -v
	}
	return v
}

// All chooses every column of a table.
func All(all []Column) []Choice {
	out := make([]Choice, len(all))
	for i := range all {
		out[i] = Choice{all[i], i}
	}
	return out
}

// Style is how a table is written.
type Style int

// The styles.
const (
	Padded    Style = iota
	Parsable        // -p: a delimiter behind each column
	Parsable2       // -P: a delimiter between columns
)

// Table writes lines.
type Table struct {
	Columns   []Choice
	Style     Style
	Delimiter string // empty: |
}

func (t *Table) delimiter() string {
	if t.Delimiter == "" {
		return "|"
	}
	return t.Delimiter
}

// Header is the names of the columns, and padded a line of dashes below.
func (t *Table) Header() string {
	names := make([]string, len(t.Columns))
	var dashes strings.Builder
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
		if n := abs(t.Columns[i].Width); n < len(names[i]) && t.Style == Padded {
			names[i] = names[i][:n] // a name is cut without a mark
		}
		dashes.WriteString(strings.Repeat("-", abs(t.Columns[i].Width)) + " ")
	}
	if t.Style != Padded {
		return t.Row(names)
	}
	return t.Row(names) + dashes.String() + "\n"
}

// Row is one line: a value for each column.
func (t *Table) Row(values []string) string {
	var b strings.Builder
	for i, v := range values {
		v = column.Printable(v)
		switch t.Style {
		case Padded:
			b.WriteString(pad(v, &t.Columns[i].Column))
			b.WriteByte(' ')
		case Parsable:
			b.WriteString(v + t.delimiter())
		case Parsable2:
			if i > 0 {
				b.WriteString(t.delimiter())
			}
			b.WriteString(v)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func pad(v string, c *Column) string {
	width := abs(c.Width)
	n := utf8.RuneCountInString(v)
	if n > width && c.Fit != Whole {
		v, n = head(v, width), width
		if c.Fit == Cut && width > 0 {
			v = head(v, width-1) + "+"
		}
	}
	blanks := strings.Repeat(" ", max(0, width-n))
	if c.Width < 0 {
		return v + blanks
	}
	return blanks + v
}

// head is the first n characters.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// Names lists the columns four a line, as --helpformat does.
func Names(all []Column) string {
	const width = 19 // sacct's and sstat's; sshare's is 17, which no script minds
	var b strings.Builder
	for i := range all {
		switch {
		case i > 0 && i%4 == 0:
			b.WriteByte('\n')
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(all[i].Name + strings.Repeat(" ", max(0, width-len(all[i].Name))))
	}
	return b.String() + "\n"
}
