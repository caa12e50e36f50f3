package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Job is one job of a trace: its ask, and what became of it.
type Job struct {
	ID       string
	User     string
	Name     string // that the user gave it; empty: not in the trace
	Account  string // of csv: the virtual cluster
	Submit   time.Duration
	Duration time.Duration // of work on the asked cards; no user knows it
	Limit    time.Duration // 0: none was given
	Ranks    int           // equal ones
	Cards    int           // of each rank
	CPUs     int           // of each rank; 0: no figure
	Memory   int64         // of each rank, bytes; 0: no figure
	VRAM     int64         // of each card, bytes; 0: whole cards
	Models   string        // allowed card models joined by |; empty: any
	Priority int64
	Units    int // processors of SWF, still to be cut into ranks; see [Trace.Cut]
}

// GPUs is how many cards the whole job asks for.
func (j *Job) GPUs() int { return j.Ranks * j.Cards }

// Trace is the jobs of one file in the order of their submission.
type Trace struct {
	File    string
	Format  string
	Start   time.Time // of the first submission; zero where the format has no dates
	Jobs    []Job
	Skipped map[string]int // well-formed lines that are no job to replay, by reason
	Unread  []string       // columns that nothing was made of
}

// Notes says what was left out of the trace, for people; nil when nothing was.
func (t *Trace) Notes() []string {
	var out []string
	for _, why := range slices.Sorted(maps.Keys(t.Skipped)) {
		out = append(out, fmt.Sprintf("%d left out: %s", t.Skipped[why], why))
	}
	if len(t.Unread) > 0 {
		out = append(out, "columns not used: "+strings.Join(t.Unread, ", "))
	}
	return out
}

func (t *Trace) skip(why string) {
	if t.Skipped == nil {
		t.Skipped = map[string]int{}
	}
	t.Skipped[why]++
}

// Formats are the names that [Read] knows.
var Formats = []string{"csv", "swf", "sacct", "gacct"}

// Error is what is wrong at one place of a file.
type Error struct {
	File   string
	Line   int
	Column string // name of the column or field; empty: the line as a whole
	Text   string
}

func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Column != "" {
		return fmt.Sprintf("%s: %s: %s", at, e.Column, e.Text)
	}
	return at + ": " + e.Text
}

// Read reads the trace at path, in the given format; "" sees it from the content.
func Read(path, format string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	return Parse(path, format, f)
}

// Parse is [Read] of what r gives; name is for messages.
func Parse(name, format string, r io.Reader) (*Trace, error) {
	text, err := plain(name, r)
	if err != nil {
		return nil, err
	}
	if format == "" {
		if format, err = detect(name, text); err != nil {
			return nil, err
		}
	}
	t := &Trace{File: name, Format: format}
	read, ok := map[string]func(*Trace, io.Reader) error{
		"csv": readCSV, "swf": readSWF, "sacct": readSacct, "gacct": readGacct,
	}[format]
	if !ok {
		return nil, fmt.Errorf("trace format %q: want one of %s", format, strings.Join(Formats, ", "))
	}
	if err := read(t, text); err != nil {
		return nil, err
	}
	if len(t.Jobs) == 0 {
		return nil, &Error{File: name, Text: strings.Join(append([]string{"no job to replay"}, t.Notes()...), "; ")}
	}
	t.order()
	return t, nil
}

// plain takes the compression off.
func plain(name string, r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	magic, err := b.Peek(2)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, &Error{File: name, Text: "not gzip: " + err.Error()}
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

// detect sees the format from the first line that says something.
func detect(name string, b *bufio.Reader) (string, error) {
	head, err := b.Peek(4096)
	if len(head) == 0 && err != nil && err != io.EOF {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	first := strings.TrimSpace(string(head))
	line, _, _ := strings.Cut(first, "\n")
	switch {
	case first == "":
		return "", &Error{File: name, Text: "the file is empty"}
	case first[0] == '{':
		return "gacct", nil
	case first[0] == ';' || len(strings.Fields(line)) >= 18:
		return "swf", nil
	case strings.Contains(line, "|"):
		return "sacct", nil
	case strings.Contains(line, ","):
		return "csv", nil
	}
	return "", &Error{File: name, Line: 1, Text: fmt.Sprintf("%q is the start of none of the formats %s", cut(line),
		strings.Join(Formats, ", "))}
}

// cut keeps a message to one line of a terminal.
func cut(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// order sorts by submission and lets time begin at the first one.
func (t *Trace) order() {
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return int(min(1, max(-1, a.Submit-b.Submit))) })
	from := t.Jobs[0].Submit
	if !t.Start.IsZero() {
		t.Start = t.Start.Add(from)
	}
	for i := range t.Jobs {
		t.Jobs[i].Submit -= from
	}
}

// GPUSeconds is the work of all jobs on cards.
func (t *Trace) GPUSeconds() float64 {
	sum := 0.0
	for i := range t.Jobs {
		sum += t.Jobs[i].Duration.Seconds() * float64(t.Jobs[i].GPUs())
	}
	return sum
}

// Span is from the first submission to the last.
func (t *Trace) Span() time.Duration { return t.Jobs[len(t.Jobs)-1].Submit }
