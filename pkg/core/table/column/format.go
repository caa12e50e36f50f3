package column

import (
	"slices"
	"strconv"
	"strings"
)

// MaxWidth bounds a column: a typo must not become a gigabyte of blanks. One that is asked for
// wider is so wide.
const MaxWidth = 4096

// nameWidth is the width of a column of -O that does not say.
const nameWidth = 20

// Set is all fields of a kind of record.
type Set[R any] struct {
	Fields []Field[R]
}

// Letter finds a field of -o.
func (s *Set[R]) Letter(c byte) *Field[R] {
	if c == 0 {
		return nil
	}
	for i := range s.Fields {
		if s.Fields[i].Letter == c {
			return &s.Fields[i]
		}
	}
	return nil
}

// Name finds a field of -O, of any case.
func (s *Set[R]) Name(name string) *Field[R] {
	name = strings.ToLower(name)
	for i := range s.Fields {
		if slices.Contains(s.Fields[i].Names, name) {
			return &s.Fields[i]
		}
	}
	return nil
}

// Told is the names of all fields, a line each: what --helpformat prints.
func (s *Set[R]) Told() string {
	var names []string
	for i := range s.Fields {
		if f := &s.Fields[i]; len(f.Names) > 0 {
			names = append(names, f.Names[0])
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

// Letters reads a format of -o: "%[[.]size]type[suffix]" again and again. What is not a
// field stands in the line as it was written; each is told to bad, which may be nil.
func (s *Set[R]) Letters(format string, bad func(what string)) Line[R] {
	var l Line[R]
	if format == "%all" {
		return s.every()
	}
	for format != "" {
		at := strings.IndexByte(format, '%')
		switch {
		case at < 0:
			l.text(format)
			return l
		case at > 0:
			l.text(format[:at])
			format = format[at:]
		}
		n := s.letter(&l, format, bad)
		format = format[n:]
	}
	return l
}

// text adds literal text at the end of the line as it is so far.
func (l *Line[R]) text(t string) {
	if n := len(l.Columns); n > 0 {
		l.Columns[n-1].Suffix += t
	} else {
		l.Prefix += t
	}
}

// letter reads "%.18i" at the head of format and gives its length.
func (s *Set[R]) letter(l *Line[R], format string, bad func(string)) int {
	i := 1
	right := i < len(format) && format[i] == '.'
	if right {
		i++
	}
	from := i
	for i < len(format) && format[i] >= '0' && format[i] <= '9' {
		i++
	}
	width, _ := strconv.Atoi(format[from:i])
	switch {
	case i == 1 && (i == len(format) || format[i] == '%'): // several are one, and at the end it says nothing
		return i
	case i == len(format):
		l.wrong(format, "", bad)
		return i
	}
	f := s.Letter(format[i])
	if f == nil {
		l.wrong(format[:i+1], format[i:i+1], bad)
		return i + 1
	}
	l.Columns = append(l.Columns, Column[R]{Field: f, Width: width, Right: right})
	return i + 1
}

func (l *Line[R]) wrong(literal, what string, bad func(string)) {
	l.text(literal)
	if bad != nil {
		bad(what)
	}
}

// every is %all: the fields with letters, lower case before upper case, a bar between them.
func (s *Set[R]) every() Line[R] {
	var l Line[R]
	for _, from := range []byte{'a', 'A'} {
		for c := from; c < from+26; c++ {
			if f := s.Letter(c); f != nil {
				l.Columns = append(l.Columns, Column[R]{Field: f, Suffix: "|"})
			}
		}
	}
	l.Columns[len(l.Columns)-1].Suffix = ""
	return l
}

// Names reads a format of -O: "type[:[.][size][suffix]],...". A name that is not known is
// told to bad; its column is empty, so that what is behind it stays in its place.
func (s *Set[R]) Names(format string, bad func(what string)) Line[R] {
	var l Line[R]
	for _, part := range strings.Split(format, ",") {
		if part == "" {
			continue
		}
		name, spec, given := strings.Cut(part, ":")
		f := s.Name(name)
		c := Column[R]{Field: f, Width: nameWidth}
		if given {
			spec, c.Right = strings.CutPrefix(spec, ".")
			digits := len(spec) - len(strings.TrimLeft(spec, "0123456789"))
			width, _ := strconv.Atoi(spec[:digits])
			c.Width, c.Suffix = width, spec[digits:]
		}
		if f == nil {
			c.Field, c.Width = &Field[R]{Names: []string{""}, Text: func(R) string { return "" }}, 0
			if bad != nil {
				bad(name)
			}
		}
		l.Columns = append(l.Columns, c)
	}
	return l
}
