package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// swfFields are the 18 fields of a line of the Standard Workload Format; -1 is unknown.
var swfFields = []string{"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time",
	"used memory", "requested processors", "requested time", "requested memory", "status", "user", "group", "executable",
	"queue", "partition", "preceding job", "think time"}

const (
	swfJob = iota
	swfSubmit
	_
	swfRun
	swfAllocated
	_
	_
	swfProcessors
	swfTime
	swfMemory
	_
	swfUser
	swfGroup
)

// readSWF reads the Standard Workload Format. Its processors become [Job.Units].
func readSWF(t *Trace, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	seen := map[int64]int{}
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if text[0] == ';' {
			t.swfComment(text)
			continue
		}
		v, err := swfLine(t.File, n, text)
		if err != nil {
			return err
		}
		id := int64(v[swfJob])
		if before := seen[id]; before > 0 {
			return &Error{t.File, n, swfFields[swfJob], fmt.Sprintf("%d stands on line %d already", id, before)}
		}
		seen[id] = n
		units := v[swfProcessors]
		if units <= 0 {
			units = v[swfAllocated]
		}
		switch {
		case units <= 0:
			t.skip("no processors asked for")
		case v[swfRun] <= 0:
			t.skip("never ran")
		default:
			t.Jobs = append(t.Jobs, swfJobOf(id, units, v))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	return nil
}

func swfLine(file string, n int, text string) ([]float64, error) {
	fields := strings.Fields(text)
	if len(fields) != len(swfFields) {
		return nil, &Error{File: file, Line: n, Text: fmt.Sprintf("%d fields, a line of SWF has %d", len(fields), len(swfFields))}
	}
	v := make([]float64, len(fields))
	for i, f := range fields {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(x) || x < -1 || x > maxSeconds {
			return nil, &Error{file, n, swfFields[i], fmt.Sprintf("%q is no number from -1 to %.0f", cut(f), float64(maxSeconds))}
		}
		v[i] = x
	}
	if v[swfSubmit] < 0 {
		return nil, &Error{file, n, swfFields[swfSubmit], "is not known"}
	}
	return v, nil
}

func swfJobOf(id int64, units float64, v []float64) Job {
	j := Job{ID: strconv.FormatInt(id, 10), Submit: seconds64(v[swfSubmit]), Duration: seconds64(v[swfRun]),
		Limit: seconds64(max(0, v[swfTime])), Units: int(units)}
	if v[swfUser] >= 0 {
		j.User = fmt.Sprintf("u%.0f", v[swfUser])
	}
	if v[swfGroup] >= 0 {
		j.Account = fmt.Sprintf("g%.0f", v[swfGroup])
	}
	if v[swfMemory] > 0 {
		j.Memory = int64(v[swfMemory]) << 10 // of each processor, until it is cut
	}
	return j
}

func seconds64(s float64) time.Duration {
	return time.Duration(math.Round(s*1e6)) * time.Microsecond
}

// swfComment finds the date of the start in the head of the file.
func (t *Trace) swfComment(text string) {
	key, value, ok := strings.Cut(strings.TrimLeft(text, "; "), ":")
	if !ok || strings.TrimSpace(key) != "UnixStartTime" {
		return
	}
	if s, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && s > 0 {
		t.Start = time.Unix(s, 0).UTC()
	}
}

// Cut makes ranks of the processors of SWF, for nodes of so many: a job has as few equal
// ranks as hold them, each a card a processor or a CPU.
func (t *Trace) Cut(perNode int, cards bool) {
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Units == 0 {
			continue
		}
		j.Ranks = (j.Units + perNode - 1) / perNode
		each := (j.Units + j.Ranks - 1) / j.Ranks
		j.Memory *= int64(each)
		if cards {
			j.Cards = each
		} else {
			j.CPUs = each
		}
		j.Units = 0
	}
}
