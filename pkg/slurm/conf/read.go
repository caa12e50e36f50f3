package conf

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// maxIncludes bounds files that include each other.
const maxIncludes = 32

// Item is one KEY=VALUE as it was written; the value has lost its quotes.
type Item struct {
	Key, Value string
}

func (i Item) String() string { return i.Key + "=" + i.Value }

// is compares a key as Slurm does.
func (i Item) is(key string) bool { return strings.EqualFold(i.Key, key) }

// Line is one logical line: continued ones are one, numbered as the first.
type Line struct {
	File  string
	N     int
	Items []Item
}

func (l Line) at(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", l.File, l.N, fmt.Sprintf(format, args...))
}

// reader collects the lines of a file and of all that it includes.
type reader struct {
	open    func(string) (string, error)
	cluster string
	lines   []Line
	errs    []error
}

// Read reads a file and what it includes. All that is wrong is in one error.
func Read(open func(path string) (string, error), name string) ([]Line, error) {
	r := &reader{open: open}
	text, err := open(name)
	if err != nil {
		return nil, err
	}
	r.file(name, text, 0)
	return r.lines, errors.Join(r.errs...)
}

func (r *reader) file(name, text string, depth int) {
	first, joined := 0, ""
	rows := strings.Split(text, "\n")
	for n, raw := range rows {
		part := strings.TrimRight(uncomment(strings.TrimSuffix(raw, "\r")), " \t")
		if first == 0 {
			first = n + 1
		}
		if head, more := strings.CutSuffix(part, `\`); more && n+1 < len(rows) {
			joined += head
			continue
		}
		r.line(Line{File: name, N: first}, strings.TrimSpace(joined+part), depth)
		first, joined = 0, ""
	}
}

// uncomment cuts what follows a #, unless it is written as \#.
func uncomment(s string) string {
	for i := range len(s) {
		if s[i] == '#' && (i == 0 || s[i-1] != '\\') {
			return strings.ReplaceAll(s[:i], `\#`, "#")
		}
	}
	return strings.ReplaceAll(s, `\#`, "#")
}

func (r *reader) line(l Line, text string, depth int) {
	if text == "" {
		return
	}
	if word, rest, ok := strings.Cut(text, " "); ok && strings.EqualFold(word, "include") {
		r.include(l, strings.TrimSpace(rest), depth)
		return
	}
	items, err := split(text)
	if err != nil {
		r.errs = append(r.errs, l.at("%v", err))
		return
	}
	l.Items = items
	for _, i := range items {
		if i.is("ClusterName") {
			r.cluster = i.Value
		}
	}
	r.lines = append(r.lines, l)
}

// include reads another file, beside the one that names it; %c is the cluster's name.
func (r *reader) include(l Line, name string, depth int) {
	name = strings.ReplaceAll(name, "%c", r.cluster)
	if !path.IsAbs(name) {
		name = path.Join(path.Dir(l.File), name)
	}
	if depth == maxIncludes {
		r.errs = append(r.errs, l.at("include %s: more than %d files within each other; does one include itself?", name, maxIncludes))
		return
	}
	text, err := r.open(name)
	if err != nil {
		r.errs = append(r.errs, l.at("include: %v", err))
		return
	}
	r.file(name, text, depth+1)
}

// split cuts a line into KEY=VALUE pairs. Blanks around the = are allowed, and blanks in a
// value that is quoted.
func split(text string) ([]Item, error) {
	var out []Item
	for rest := text; rest != ""; rest = strings.TrimLeft(rest, " \t") {
		key, after, ok := strings.Cut(rest, "=")
		key = strings.TrimRight(key, " \t+-") // "+=" is written for lists
		if !ok || key == "" || strings.ContainsAny(key, " \t\"") {
			return nil, fmt.Errorf("want KEY=VALUE, not %q", rest)
		}
		value, tail, err := cutValue(strings.TrimLeft(after, " \t"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, Item{key, value})
		rest = tail
	}
	return out, nil
}

// cutValue takes a value off: to the closing quote, or to the next blank.
func cutValue(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			end := strings.IndexByte(s[i+1:], '"')
			if end < 0 {
				return "", "", errors.New("the quote is not closed")
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case ' ', '\t':
			return b.String(), s[i:], nil
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", nil
}
