package api

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// LinesType is what a query with Lines is answered with: one job a line, cut to what the
// usual table shows, fields separated by tabs, the first line their names (those of
// [Job] in JSON). Times are nanoseconds since 1970, 0 for none, lists are joined by commas;
// in names tab, line feed, return and backslash are written \t \n \r \\. A reader skips
// columns that it does not know. JSON of ten thousand jobs costs both sides ten times more.
const LinesType = "text/tab-separated-values"

// lineColumn is one field of a job, written and read.
type lineColumn struct {
	name string
	put  func(b []byte, j *Job) []byte
	get  func(j *Job, s string) error
}

var lineColumns = []lineColumn{
	lineInt("job_id", func(j *Job) *int64 { return &j.JobID }),
	lineInt("array_job_id", func(j *Job) *int64 { return &j.ArrayJobID }),
	{"array_index", func(b []byte, j *Job) []byte {
		if j.ArrayIndex == nil {
			return b
		}
		return strconv.AppendInt(b, int64(*j.ArrayIndex), 10)
	}, func(j *Job, s string) error {
		if s == "" {
			return nil
		}
		n, err := strconv.Atoi(s)
		j.ArrayIndex = &n
		return err
	}},
	lineInt("array_limit", func(j *Job) *int { return &j.ArrayLimit }),
	lineText("name", func(j *Job) *string { return &j.Name }),
	lineText("user", func(j *Job) *string { return &j.User }),
	lineText("account", func(j *Job) *string { return &j.Account }),
	lineText("partition", func(j *Job) *string { return &j.Partition }),
	lineText("state", func(j *Job) *JobState { return &j.State }),
	lineText("reason", func(j *Job) *string { return &j.Reason }),
	lineText("held", func(j *Job) *string { return &j.Held }),
	lineInt("priority", func(j *Job) *int64 { return &j.Priority }),
	lineInt("size", func(j *Job) *int { return &j.Size }),
	lineInt("cards", func(j *Job) *int { return &j.Cards }),
	lineInt("epoch", func(j *Job) *int { return &j.Epoch }),
	lineInt("min_nodes", func(j *Job) *int { return &j.MinNodes }),
	{"nodes", func(b []byte, j *Job) []byte { return append(b, strings.Join(j.Nodes, ",")...) }, func(j *Job, s string) error {
		if s != "" {
			j.Nodes = strings.Split(s, ",")
		}
		return nil
	}},
	lineInt("time_limit_seconds", func(j *Job) *int64 { return &j.TimeLimitSeconds }),
	lineTime("submit_time", func(j *Job) *time.Time { return &j.SubmitTime }),
	lineTime("start_time", func(j *Job) *time.Time { return &j.StartTime }),
	lineTime("end_time", func(j *Job) *time.Time { return &j.EndTime }),
	{"components", func(b []byte, j *Job) []byte { // JSON, which has no tab or line feed of its own
		if len(j.Components) == 0 {
			return b
		}
		text, _ := json.Marshal(j.Components) // numbers and names
		return append(b, text...)
	}, func(j *Job, s string) error {
		if s == "" {
			return nil
		}
		return json.Unmarshal([]byte(s), &j.Components)
	}},
}

func lineInt[T int | int64](name string, at func(*Job) *T) lineColumn {
	return lineColumn{name, func(b []byte, j *Job) []byte { return strconv.AppendInt(b, int64(*at(j)), 10) },
		func(j *Job, s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			*at(j) = T(n)
			return err
		}}
}

var (
	lineEscape   = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
	lineUnescape = strings.NewReplacer(`\\`, "\\", `\t`, "\t", `\n`, "\n", `\r`, "\r")
)

func lineText[T ~string](name string, at func(*Job) *T) lineColumn {
	return lineColumn{name, func(b []byte, j *Job) []byte {
		if s := string(*at(j)); strings.ContainsAny(s, "\\\t\n\r") {
			return append(b, lineEscape.Replace(s)...)
		}
		return append(b, *at(j)...)
	}, func(j *Job, s string) error {
		if strings.Contains(s, `\`) {
			s = lineUnescape.Replace(s)
		}
		*at(j) = T(s)
		return nil
	}}
}

func lineTime(name string, at func(*Job) *time.Time) lineColumn {
	return lineColumn{name, func(b []byte, j *Job) []byte {
		if at(j).IsZero() {
			return append(b, '0')
		}
		return strconv.AppendInt(b, at(j).UnixNano(), 10)
	}, func(j *Job, s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if n != 0 {
			*at(j) = time.Unix(0, n)
		}
		return err
	}}
}

// AppendLineHeader appends the first line.
func AppendLineHeader(b []byte) []byte {
	for i := range lineColumns {
		if i > 0 {
			b = append(b, '\t')
		}
		b = append(b, lineColumns[i].name...)
	}
	return append(b, '\n')
}

// AppendLine appends the line of a job.
func AppendLine(b []byte, j *Job) []byte {
	for i := range lineColumns {
		if i > 0 {
			b = append(b, '\t')
		}
		b = lineColumns[i].put(b, j)
	}
	return append(b, '\n')
}

// ReadLines reads what AppendLineHeader and AppendLine wrote. A text that does not end with
// a whole line is an error: it broke off.
func ReadLines(r io.Reader) ([]Job, error) {
	var b strings.Builder
	if l, ok := r.(interface{ Len() int }); ok { // all that is left: a reader that grows copies more than it reads
		b.Grow(l.Len())
	}
	if _, err := io.Copy(&b, r); err != nil {
		return nil, err
	}
	text := b.String()
	if !strings.HasSuffix(text, "\n") {
		return nil, io.ErrUnexpectedEOF
	}
	header, text, _ := strings.Cut(text, "\n")
	columns, err := lineReaders(header)
	if err != nil {
		return nil, err
	}
	// Counted first: a slice of jobs that grows is copied more than it is read.
	out := make([]Job, strings.Count(text, "\n"))
	for i := range out {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if err := readLine(&out[i], columns, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	return out, nil
}

// lineReaders gives the column at each position, nil for one that is not known.
func lineReaders(header string) ([]*lineColumn, error) {
	var out []*lineColumn
	known := false
	for name := range strings.SplitSeq(header, "\t") {
		var c *lineColumn
		for i := range lineColumns {
			if lineColumns[i].name == name {
				c, known = &lineColumns[i], true
			}
		}
		out = append(out, c)
	}
	if !known {
		return nil, fmt.Errorf("line 1: no column that is known: %.40q", header)
	}
	return out, nil
}

func readLine(j *Job, columns []*lineColumn, line string) error {
	for i, c := range columns {
		field, rest, more := strings.Cut(line, "\t")
		if more != (i < len(columns)-1) {
			return fmt.Errorf("want %d fields", len(columns))
		}
		if c != nil {
			if err := c.get(j, field); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		line = rest
	}
	j.StateCode = j.State.Code()
	return nil
}
