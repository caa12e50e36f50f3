package trace

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/core/nearest"
)

// column is one named column of the CSV format.
type column struct {
	name string
	must bool
	set  func(*Job, string) error
}

// columns are those that are read; others are named in [Trace.Unread].
var columns = []column{
	{"job_id", true, func(j *Job, s string) error { j.ID = strings.Clone(s); return wanted(s) }},
	{"user", false, func(j *Job, s string) error { j.User = strings.Clone(s); return nil }},
	{"name", false, func(j *Job, s string) error { j.Name = strings.Clone(s); return nil }},
	{"vc", false, func(j *Job, s string) error { j.Account = strings.Clone(s); return nil }},
	{"submit_s", true, seconds(func(j *Job) *time.Duration { return &j.Submit })},
	{"duration_s", true, seconds(func(j *Job) *time.Duration { return &j.Duration })},
	{"gpus", true, whole(0, func(j *Job, v int64) { j.Cards = int(v) })},
	{"gang", false, whole(1, func(j *Job, v int64) { j.Ranks = int(v) })},
	{"vram_mib", false, whole(0, func(j *Job, v int64) { j.VRAM = v << 20 })},
	{"priority", false, whole(math.MinInt32, func(j *Job, v int64) { j.Priority = v })},
	{"time_limit_s", false, seconds(func(j *Job) *time.Duration { return &j.Limit })},
	{"cpu_milli", false, whole(0, func(j *Job, v int64) { j.CPUs = int(v) })},
	{"memory_mib", false, whole(0, func(j *Job, v int64) { j.Memory = v << 20 })},
	{"gpu_model", false, func(j *Job, s string) error { j.Models = strings.Clone(s); return nil }},
}

func wanted(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	return nil
}

// maxSeconds keeps times within what a time.Duration holds (292 years).
const maxSeconds = 9e9

func seconds(field func(*Job) *time.Duration) func(*Job, string) error {
	return func(j *Job, s string) error {
		if s == "" {
			*field(j) = 0
			return nil
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > maxSeconds {
			return fmt.Errorf("%q is no number of seconds from 0 to %.0f", cut(s), float64(maxSeconds))
		}
		// To the microsecond: binary fractions must not make 16977.38 and 16977.38 differ.
		*field(j) = time.Duration(math.Round(v*1e6)) * time.Microsecond
		return nil
	}
}

func whole(least int64, set func(*Job, int64)) func(*Job, string) error {
	return func(j *Job, s string) error {
		if s == "" {
			set(j, max(least, 0))
			return nil
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < least || v > math.MaxInt32 {
			return fmt.Errorf("%q is no whole number from %d to %d", cut(s), least, math.MaxInt32)
		}
		set(j, v)
		return nil
	}
}

func readCSV(t *Trace, r io.Reader) error {
	rows, err := openTable(t.File, r)
	if err != nil {
		return err
	}
	use, err := rows.match(columns)
	if err != nil {
		return err
	}
	for i, name := range rows.head {
		if use[i] == nil {
			t.Unread = append(t.Unread, name)
		}
	}
	seen := map[string]int{}
	for {
		row, line, err := rows.next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		j := Job{Ranks: 1}
		for i, s := range row {
			if use[i] == nil {
				continue
			}
			if err := use[i].set(&j, strings.TrimSpace(s)); err != nil {
				return &Error{t.File, line, use[i].name, err.Error()}
			}
		}
		if before := seen[j.ID]; before > 0 {
			return &Error{t.File, line, "job_id", fmt.Sprintf("%q stands on line %d already", j.ID, before)}
		}
		seen[j.ID] = line
		if err := deal(&j); err != nil {
			return &Error{t.File, line, "gang", err.Error()}
		}
		t.Jobs = append(t.Jobs, j)
	}
}

// deal shares the cards, CPUs and memory of a job among its equal members.
func deal(j *Job) error {
	gpus := j.Cards
	if gpus > 0 && gpus%j.Ranks != 0 {
		return fmt.Errorf("%d cards can't be shared equally by %d members", gpus, j.Ranks)
	}
	j.Cards = gpus / j.Ranks
	j.CPUs = (j.CPUs + j.Ranks - 1) / j.Ranks
	j.Memory /= int64(j.Ranks)
	return nil
}

// table is a CSV file with a head line.
type table struct {
	file string
	csv  *csv.Reader
	head []string
}

func openTable(file string, r io.Reader) (*table, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	t := &table{file: file, csv: c}
	head, _, err := t.next()
	if err == io.EOF {
		return nil, &Error{File: file, Text: "the file is empty"}
	} else if err != nil {
		return nil, err
	}
	t.head = slices.Clone(head)
	return t, nil
}

// next gives a row with the number of its line.
func (t *table) next() ([]string, int, error) {
	row, err := t.csv.Read()
	if err == io.EOF {
		return nil, 0, err
	}
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad) && errors.Is(bad.Err, csv.ErrFieldCount):
		return nil, 0, &Error{File: t.file, Line: bad.Line, Text: fmt.Sprintf("%d columns, the head line has %d", len(row), len(t.head))}
	case errors.As(err, &bad):
		return nil, 0, &Error{File: t.file, Line: bad.Line, Text: bad.Err.Error()}
	case err != nil:
		return nil, 0, fmt.Errorf("%s: %w", t.file, err)
	}
	line, _ := t.csv.FieldPos(0)
	return row, line, nil
}

// match finds the columns of the head line among those known.
func (t *table) match(known []column) ([]*column, error) {
	use := make([]*column, len(t.head))
	var names []string
	for i := range known {
		names = append(names, known[i].name)
		at := slices.IndexFunc(t.head, func(h string) bool { return strings.TrimSpace(strings.TrimPrefix(h, "\ufeff")) == known[i].name })
		if at >= 0 {
			use[at] = &known[i]
		} else if known[i].must {
			return nil, t.missing(known[i].name)
		}
	}
	for i, h := range t.head {
		if near := nearest.Of(h, names); use[i] == nil && near != "" && !slices.Contains(t.head, near) {
			return nil, &Error{t.file, 1, h, "unknown column; nearest is " + near}
		}
	}
	return use, nil
}

func (t *table) missing(name string) error {
	text := "the head line has no column " + name
	if near := nearest.Of(name, t.head); near != "" {
		text += fmt.Sprintf("; nearest is %q", near)
	}
	return &Error{File: t.file, Line: 1, Text: cmp.Or(text)}
}
