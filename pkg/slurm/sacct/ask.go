package sacct

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// ask is what a call of sacct wants to see.
type ask struct {
	cmdline.Streams

	jobs       []jobRef
	wholeHet   string   // --whole-hetjob; empty: as the ids say
	users      []string // names
	everybody  bool
	groups     []uint32
	accounts   []string
	names      []string
	partitions []string
	nodes      []string
	features   []string
	states     []string
	cpus       span
	nodeCount  span
	limit      span // minutes
	nothing    bool // an option selects what no job of gangd has

	from, to         time.Time
	fromSet, toSet   bool
	allocations      bool
	duplicates       bool
	verbose          bool
	batchScript      bool
	document         slurm.Document
	noHeader         bool
	columns          []string // of -o
	format           string   // of -b and -l: stands behind
	style            accttable.Style
	delimiter        string
	units            byte
	plain, truncated bool
}

// span is a range of numbers; max 0: min alone.
type span struct{ min, max int64 }

func (s span) holds(n int64) bool {
	if s.min == 0 && s.max == 0 {
		return true
	}
	return n >= s.min && n <= max(s.min, s.max)
}

// jobRef is one of --jobs.
type jobRef struct {
	api.JobRef
	step string // empty: the job and its steps
	// component of a heterogeneous job; -1: all.
	component int
}

func fatalf(format string, args ...any) error { return cmdline.Fatal(fmt.Sprintf(format, args...)) }

// parseJobs reads 12,12_3,12.0,12_3.batch; 0 and an empty text are no choice at all.
func parseJobs(s string) ([]jobRef, error) {
	var out []jobRef
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		job, step, dotted := strings.Cut(part, ".")
		job, component := slurm.CutComponent(job)
		id, index, element := strings.Cut(job, "_")
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return nil, fatalf("Bad job/step specified: %s", part)
		}
		r := jobRef{JobRef: api.JobRef{ID: n, Index: -1}, component: component}
		if element {
			if r.Index, err = strconv.Atoi(index); err != nil || r.Index < 0 {
				return nil, fatalf("Bad job array element specified: %s", id)
			}
		}
		if dotted {
			if r.step, err = parseStep(step, id); err != nil {
				return nil, err
			}
		}
		if n > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}

func parseStep(s, id string) (string, error) {
	s, _, _ = strings.Cut(s, ".")
	switch strings.ToLower(s) {
	case "batch", "extern", "interactive":
		return strings.ToLower(s), nil
	}
	if _, err := strconv.ParseUint(s, 10, 31); err != nil {
		return "", fatalf("Bad step specified: %s", id)
	}
	return s, nil
}

func parseStates(s string) ([]string, error) {
	var out []string
	for _, part := range cmdline.Split(s) {
		switch st := jobs.StateOf(part); {
		case st == nil:
			return nil, fatalf("unrecognized job state value '%s'", part)
		case !st.Kept:
			return nil, fatalf("job state %s is not supported / accounted", part)
		default:
			out = append(out, st.Name)
		}
	}
	return out, nil
}

// userNames are the names of a user who is named or numbered, a variable for tests.
var userNames = jobs.User

func parseUsers(s string) ([]string, error) {
	var out []string
	for _, part := range cmdline.Split(s) {
		names, ok := userNames(part)
		if !ok {
			return nil, fmt.Errorf("Invalid user id: %s", part) //nolint:staticcheck // Slurm's words
		}
		out = append(out, names...)
	}
	return out, nil
}

func parseGroups(s string) ([]uint32, error) {
	var out []uint32
	for _, part := range cmdline.Split(s) {
		if gid, err := people.Here.Group(context.Background(), part); err == nil {
			out = append(out, gid)
			continue
		}
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("Invalid group id: %s", part) //nolint:staticcheck // Slurm's words
		}
		out = append(out, uint32(n))
	}
	return out, nil
}

// parseSpan reads 4 or 2-8 of something.
func parseSpan(s, what string) (span, error) {
	lo, hi, isRange := strings.Cut(s, "-")
	a, err := strconv.ParseInt(lo, 10, 64)
	out := span{min: a}
	if err == nil && isRange {
		out.max, err = strconv.ParseInt(hi, 10, 64)
	}
	if err != nil || a < 0 || isRange && out.max < a {
		return out, fmt.Errorf("Invalid numeric value \"%s\" for requested %s range.", s, what) //nolint:staticcheck // Slurm's words
	}
	return out, nil
}

func parseNodes(s string) ([]string, error) {
	out, err := hostlist.Expand(s)
	if err != nil {
		return nil, fmt.Errorf("Invalid node list: %s", s) //nolint:staticcheck // Slurm's words
	}
	return out, nil
}

// parseMinutes reads a time limit as minutes, up.
func parseMinutes(s string) (int64, error) {
	d, err := script.ParseTime(s)
	if err != nil {
		return 0, fmt.Errorf("Invalid time limit specification: %s", s) //nolint:staticcheck // Slurm's words
	}
	return int64((d + time.Minute - 1) / time.Minute), nil
}

// window is which time a call looks at, by Slurm's rules: without --state from midnight until
// now; with it the one moment that is given or now; with --jobs all of the past.
func (a *ask) window(now time.Time) error {
	if !a.fromSet {
		switch {
		case len(a.jobs) > 0:
			a.from = time.Time{}
		case len(a.states) > 0:
			a.from = now
		default:
			a.from = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
		}
	}
	if !a.toSet {
		a.to = now
		if len(a.states) > 0 && a.fromSet {
			a.to = a.from
		}
	}
	if a.from.After(a.to) {
		// nolint:staticcheck // Slurm's words
		return fmt.Errorf("Start time (%s) requested is after end time (%s).", slurm.Stamp(a.from, ""), slurm.Stamp(a.to, ""))
	}
	return nil
}
