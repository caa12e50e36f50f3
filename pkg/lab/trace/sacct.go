package trace

import (
	"bufio"
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

// sacctColumns are those of `sacct -P` that are read, whatever their order.
var sacctColumns = []string{"JobID", "JobIDRaw", "JobName", "User", "Account", "Submit", "Start", "End", "Elapsed", "ElapsedRaw",
	"Timelimit",
	"TimelimitRaw", "ReqTRES", "AllocTRES", "NNodes", "ReqNodes", "NCPUS", "ReqCPUS", "Priority", "State"}

// sacctNeeds are the columns without which a job can't be replayed; one of each group.
var sacctNeeds = [][]string{{"JobID", "JobIDRaw"}, {"Submit"}, {"ElapsedRaw", "Elapsed", "End"},
	{"ReqTRES", "AllocTRES", "ReqCPUS", "NCPUS"}}

// sacctLine is one line by the names of the head line.
type sacctLine struct {
	file string
	n    int
	at   map[string]int
	v    []string
}

// readSacct reads `sacct -P -X -a -o JobID,User,Account,Submit,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,NNodes,State`.
func readSacct(t *Trace, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var at map[string]int
	var width int
	first := time.Time{}
	seen := map[string]int{}
	var submits []time.Time
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimRight(lines.Text(), "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		v := strings.Split(text, "|")
		if at == nil {
			var err error
			if at, err = sacctHead(t, n, v); err != nil {
				return err
			}
			width = len(v)
			continue
		}
		if len(v) != width {
			return &Error{File: t.File, Line: n, Text: fmt.Sprintf("%d columns, the head line has %d", len(v), width)}
		}
		l := &sacctLine{t.File, n, at, v}
		j, submit, skip, err := l.job()
		if err != nil {
			return err
		}
		if skip != "" {
			t.skip(skip)
			continue
		}
		if before := seen[j.ID]; before > 0 {
			// Slurm prints a line for each run of a requeued job; the last one is its end.
			t.skip("an earlier run of a requeued job")
			t.Jobs[before-1], submits[before-1] = *j, submit
			continue
		}
		if first.IsZero() || submit.Before(first) {
			first = submit
		}
		t.Jobs, submits = append(t.Jobs, *j), append(submits, submit)
		seen[j.ID] = len(t.Jobs)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	for i := range t.Jobs {
		t.Jobs[i].Submit = submits[i].Sub(first)
	}
	t.Start = first
	return nil
}

func sacctHead(t *Trace, n int, head []string) (map[string]int, error) {
	at := map[string]int{}
	for i, h := range head {
		h = strings.TrimSpace(h)
		if slices.Contains(sacctColumns, h) {
			at[h] = i
		} else if h != "" {
			t.Unread = append(t.Unread, h)
		}
	}
	for _, group := range sacctNeeds {
		if slices.ContainsFunc(group, func(name string) bool { _, ok := at[name]; return ok }) {
			continue
		}
		text := "the head line has no column " + strings.Join(group, " or ")
		if near := nearest.Of(group[0], t.Unread); near != "" {
			text += fmt.Sprintf("; nearest is %q", near)
		}
		return nil, &Error{File: t.File, Line: n, Text: text}
	}
	return at, nil
}

func (l *sacctLine) get(names ...string) (string, string) {
	for _, name := range names {
		if i, ok := l.at[name]; ok && strings.TrimSpace(l.v[i]) != "" {
			return strings.TrimSpace(l.v[i]), name
		}
	}
	return "", names[0]
}

func (l *sacctLine) wrong(column, format string, args ...any) error {
	return &Error{l.file, l.n, column, fmt.Sprintf(format, args...)}
}

// job reads a line; skip says why a well-formed one is not replayed.
func (l *sacctLine) job() (j *Job, submit time.Time, skip string, err error) {
	id, column := l.get("JobID", "JobIDRaw")
	switch {
	case id == "":
		return nil, submit, "", l.wrong(column, "is empty")
	case strings.Contains(id, "."):
		return nil, submit, "a step of a job", nil
	}
	if start, _ := l.get("Start"); start == "None" || start == "Unknown" {
		return nil, submit, "never started", nil
	}
	if state, _ := l.get("State"); state == "RUNNING" || state == "PENDING" || state == "SUSPENDED" {
		return nil, submit, "has not ended", nil
	}
	j = &Job{ID: id, Ranks: 1}
	j.Name, _ = l.get("JobName")
	j.User, _ = l.get("User")
	j.Account, _ = l.get("Account")
	s, column := l.get("Submit")
	if submit, err = sacctTime(s); err != nil {
		return nil, submit, "", l.wrong(column, "%s", err)
	}
	if j.Duration, err = l.elapsed(); err != nil {
		return nil, submit, "", err
	}
	if j.Duration == 0 {
		return nil, submit, "ran for 0 seconds", nil
	}
	if err = l.limit(j); err == nil {
		err = l.ask(j)
	}
	return j, submit, "", err
}

func sacctTime(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if sec, err := strconv.ParseInt(s, 10, 64); err == nil && sec > 0 {
		return time.Unix(sec, 0).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time such as 2026-03-01T12:00:00", cut(s))
}

func (l *sacctLine) elapsed() (time.Duration, error) {
	s, column := l.get("ElapsedRaw", "Elapsed")
	if s != "" {
		d, err := slurmTime(s, time.Second)
		if err != nil {
			return 0, l.wrong(column, "%s", err)
		}
		return d, nil
	}
	from, column := l.get("Start")
	start, err := sacctTime(from)
	if err != nil {
		return 0, l.wrong(column, "%s", err)
	}
	to, column := l.get("End")
	end, err := sacctTime(to)
	if err != nil {
		return 0, l.wrong(column, "%s", err)
	}
	if end.Before(start) {
		return 0, l.wrong(column, "%s is before the start, %s", to, from)
	}
	return end.Sub(start), nil
}

func (l *sacctLine) limit(j *Job) error {
	s, column := l.get("TimelimitRaw", "Timelimit")
	switch s {
	case "", "UNLIMITED", "Partition_Limit":
		return nil
	}
	unit := time.Minute
	d, err := slurmTime(s, unit)
	if err != nil {
		return l.wrong(column, "%s", err)
	}
	j.Limit = d
	return nil
}

// slurmTime reads D-HH:MM:SS, HH:MM:SS, MM:SS, or a number of units.
func slurmTime(s string, unit time.Duration) (time.Duration, error) {
	wrong := fmt.Errorf("%q is no time such as 1-02:03:04", cut(s))
	days, rest, dashed := strings.Cut(s, "-")
	if !dashed {
		days, rest = "0", s
	}
	d, err := strconv.ParseInt(days, 10, 32)
	if err != nil || d < 0 {
		return 0, wrong
	}
	parts := strings.Split(rest, ":")
	if len(parts) == 1 && !dashed {
		n, err := strconv.ParseInt(rest, 10, 64)
		if err != nil || n < 0 || n > maxSeconds/int64(unit/time.Second) {
			return 0, wrong
		}
		return time.Duration(n) * unit, nil
	}
	if len(parts) > 3 {
		return 0, wrong
	}
	if dashed {
		// D-HH and D-HH:MM count from the hours.
		parts = append(parts, []string{"0", "0"}[:3-len(parts)]...)
	}
	total := 0.0
	for _, p := range parts {
		n, err := strconv.ParseFloat(p, 64)
		if err != nil || n < 0 || math.IsNaN(n) || n > 1e6 {
			return 0, wrong
		}
		total = total*60 + n
	}
	return time.Duration(d)*24*time.Hour + time.Duration(total*float64(time.Second)), nil
}

// ask reads what was asked for: ReqTRES "billing=8,cpu=8,gres/gpu=4,mem=64G,node=1".
func (l *sacctLine) ask(j *Job) error {
	s, column := l.get("ReqTRES", "AllocTRES")
	nodes, gpus, cpus, memory := 1, 0, 0, int64(0)
	for _, item := range strings.Split(s, ",") {
		key, value, ok := strings.Cut(item, "=")
		if !ok {
			continue
		}
		var err error
		switch {
		case key == "node":
			nodes, err = strconv.Atoi(value)
		case key == "cpu":
			cpus, err = strconv.Atoi(value)
		case key == "mem":
			memory, err = slurmBytes(value)
		case key == "gres/gpu":
			gpus, err = strconv.Atoi(value)
		case strings.HasPrefix(key, "gres/gpu:"):
			j.Models = strings.TrimPrefix(key, "gres/gpu:")
			if gpus == 0 {
				gpus, err = strconv.Atoi(value)
			}
		}
		if err != nil {
			return l.wrong(column, "%q: %q is no number", key, cut(value))
		}
	}
	for _, f := range []struct {
		to   *int
		from []string
	}{{&nodes, []string{"NNodes", "ReqNodes"}}, {&cpus, []string{"ReqCPUS", "NCPUS"}}} {
		text, column := l.get(f.from...)
		if text == "" || f.to == &cpus && cpus > 0 {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return l.wrong(column, "%q is no number", cut(text))
		}
		*f.to = n
	}
	nodes = max(1, nodes)
	if gpus%nodes != 0 {
		return l.wrong(column, "%d cards can't be shared equally by %d nodes", gpus, nodes)
	}
	j.Ranks, j.Cards, j.CPUs, j.Memory = nodes, gpus/nodes, (cpus+nodes-1)/nodes, memory/int64(nodes)
	return nil
}

// slurmBytes reads 64G, 512M, 1.5T, 2048 (MB).
func slurmBytes(s string) (int64, error) {
	unit := float64(1 << 20)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("KMGTP", s[n-1]); i >= 0 {
			unit, s = float64(int64(1)<<(10*(i+1))), s[:n-1]
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v*unit > math.MaxInt64/2 {
		return 0, errors.New("no size")
	}
	return int64(v * unit), nil
}
