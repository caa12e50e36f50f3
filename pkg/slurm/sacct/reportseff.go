package sacct

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/measure"
	"gangd/pkg/core/table/column"
	"gangd/pkg/slurm"
)

var reportseffCommand = &cmdline.Command[seffTable]{Name: "reportseff", Terse: true, Failed: 2,
	Does: "what jobs used of what they held, a line each, by the name and in the columns of reportseff", Options: []cmdline.Option[seffTable]{
		{Long: "array-min-size", Kind: cmdline.Required, List: cmdline.Exact, Help: "of arrays those alone of which so many elements are shown",
			Set: func(a *seffTable, v string) (err error) {
				a.elements, err = strconv.Atoi(v)
				return err
			}},
		{Long: "cluster", Short: 'M', Kind: cmdline.Required, List: cmdline.Partial, Help: "gangd is the one cluster; another name is refused",
			Set: cmdline.OneCluster[seffTable]("reportseff")},
		{Long: "color", List: cmdline.Partial, Help: "read, without effect: there are no colours", Set: cmdline.Accepted[seffTable]},
		{Long: "no-color", List: cmdline.Exact, Help: "as always", Set: cmdline.Accepted[seffTable]},
		{Long: "debug", List: cmdline.Refused, Help: "there is no raw record behind it; use sacct -j JOB -P"},
		{Long: "delimiter", Short: 'd', Kind: cmdline.Required, List: cmdline.Exact, Help: "with --parsable, what stands between columns",
			Set: cmdline.Word(func(a *seffTable) *string { return &a.delimiter })},
		{Long: "extra-args", Kind: cmdline.Required, List: cmdline.Refused, Help: "sacct is not called; it takes its options itself"},
		{Long: "format", Kind: cmdline.Required, List: cmdline.Exact, Help: "these columns, NAME[%[<^>][WIDTH[e]]], behind a + beside the " +
			"usual ones: those of sacct, CPUEff, MemEff, TimeEff, GPUEff, GPUMem, GPU for both, Energy",
			Set: cmdline.Word(func(a *seffTable) *string { return &a.format })},
		{Long: "help", Kind: cmdline.Optional, List: cmdline.Partial, Help: "in gangd's words"},
		{Long: "node", Short: 'n', List: cmdline.Exact, Help: "a line for each node below that of the job",
			Set: cmdline.Flag(func(a *seffTable) *bool { return &a.nodes })},
		{Long: "node-and-gpu", Short: 'g', List: cmdline.Exact, Help: "and one for each card of a node",
			Set: cmdline.Flag(func(a *seffTable) *bool { return &a.cards })},
		{Long: "not-state", Short: 'S', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in none of these states",
			Set: func(a *seffTable, v string) (err error) { a.without, err = parseStates(v); return err }},
		{Long: "parsable", Short: 'p', List: cmdline.Exact, Help: "a | between columns, nothing filled up",
			Set: cmdline.Flag(func(a *seffTable) *bool { return &a.parsable })},
		{Long: "partition", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in this partition",
			Set: cmdline.Words(func(a *seffTable) *[]string { return &a.partitions })},
		{Long: "since", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs after this time, as sacct reads it, or so long ago: d=2,h=1",
			Set: func(a *seffTable, v string) (err error) { a.since, err = seffTime(v); return err }},
		{Long: "slurm-format", Kind: cmdline.Required, List: cmdline.Partial, Help: "read, without effect: of the name of a file the last " +
			"number is the job", Set: cmdline.Accepted[seffTable]},
		{Long: "sorting", Kind: cmdline.Required, List: cmdline.Partial, Help: "jobid; mtime and filename are refused",
			Set: func(_ *seffTable, v string) error {
				if v != "jobid" {
					return fmt.Errorf("no sorting %q: want jobid", v)
				}
				return nil
			}},
		{Long: "state", Short: 's', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in these states",
			Set: func(a *seffTable, v string) (err error) { a.states, err = parseStates(v); return err }},
		{Long: "until", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs before this time",
			Set: func(a *seffTable, v string) (err error) { a.until, err = seffTime(v); return err }},
		{Long: "user", Short: 'u', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of this user, those of the last week unless " +
			"--since says otherwise", Set: func(a *seffTable, v string) (err error) { a.users, err = parseUsers(v); return err }},
		slurm.VersionRow[seffTable](),
	}}

// seffTable is a call of reportseff.
type seffTable struct {
	cmdline.Streams
	users, partitions []string
	states, without   []string
	since, until      time.Time
	elements          int
	format, delimiter string
	nodes, cards      bool
	parsable          bool
	files             map[api.JobRef]string // names by which jobs were called
}

// seffUsual are the columns without --format.
const seffUsual = "JobID%>,State,Elapsed%>,TimeEff,CPUEff,MemEff"

// Reportseff is reportseff.
func Reportseff(args []string, s cmdline.Streams) int {
	a := &seffTable{Streams: s, delimiter: "|"}
	rest, err := reportseffCommand.Parse(a, args, s)
	if err == nil {
		err = reportseffCommand.Print(a.show(rest), s)
	}
	return cmdline.Exit(err)
}

func (a *seffTable) show(words []string) error {
	columns, err := seffColumns(a.format, a.cards)
	if err != nil {
		return err
	}
	q := &api.HistoryQuery{Since: a.since, Until: a.until, Users: a.users}
	switch {
	case len(a.users) > 0 && a.since.IsZero():
		q.Since = clock().AddDate(0, 0, -7)
	case len(a.users) > 0 || len(words) == 0 && !a.since.IsZero():
	case len(words) == 0:
		return fmt.Errorf("no jobs: name some, or say --user or --since")
	default:
		if q.Refs, err = a.named(words); err != nil {
			return err
		}
	}
	all, err := lastAttempts(q)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, u := range a.choose(all) {
		rows = append(rows, a.rows(u, columns)...)
	}
	return a.write(columns, rows)
}

// ofAFile is the job in the name of a file of output.
var ofAFile = regexp.MustCompile(`(?:^|[^0-9])(\d+(?:_\d+)?)(?:\.[A-Za-z]\w*)?$`)

// named are the jobs of the command line, by number or by the name of a file of their output.
func (a *seffTable) named(words []string) (refs []api.JobRef, err error) {
	a.files = map[api.JobRef]string{}
	for _, w := range words {
		m := ofAFile.FindStringSubmatch(filepath.Base(w))
		if m == nil {
			return nil, fmt.Errorf("no job in %q: want 12, 12_3, or a file like slurm-12.out", w)
		}
		found, err := parseJobs(m[1])
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			refs = append(refs, f.JobRef)
			if m[1] != w {
				a.files[f.JobRef] = w
			}
		}
	}
	return refs, nil
}

// choose are those that are shown.
func (a *seffTable) choose(all []*used) []*used {
	size := map[int64]int{}
	for _, u := range all {
		size[u.job.ArrayJobID]++
	}
	return slices.DeleteFunc(all, func(u *used) bool {
		state := u.plainState()
		return len(a.states) > 0 && !slices.Contains(a.states, state) || slices.Contains(a.without, state) ||
			!u.job.InPartition(a.partitions) ||
			u.job.ArrayJobID != 0 && size[u.job.ArrayJobID] < a.elements
	})
}

// seffColumn is a column of reportseff.
type seffColumn struct {
	name  string
	at    int  // in the table of sacct's, -1: not one of them
	align byte // < ^ >
	width int  // 0: as wide as what is in it
	end   bool // what does not fit is cut at its head
}

var seffToken = regexp.MustCompile(`^([^%:]+)(?:[%:]([<^>])?(?:(\d+)([e$])?)?)?$`)

// seffNames are the columns that sacct has not.
var seffNames = []string{"CPUEff", "MemEff", "TimeEff", "GPUEff", "GPUMem", "Energy"} // in the order of figures

func seffColumns(format string, cards bool) (out []seffColumn, err error) {
	more, added := strings.CutPrefix(format, "+")
	switch {
	case added:
		format = seffUsual + "," + more
	case format == "":
		format = seffUsual
	}
	if cards && !strings.Contains(strings.ToLower(format), "gpu") {
		format += ",GPU"
	}
	for _, token := range cmdline.Split(format) {
		m := seffToken.FindStringSubmatch(token)
		if m == nil || m[1] != token && m[2] == "" && m[3] == "" {
			return nil, fmt.Errorf("can't read the column %q: want NAME[%%[<^>][WIDTH[e]]]", token)
		}
		c := seffColumn{align: '^', end: m[4] != ""}
		if m[2] != "" {
			c.align = m[2][0]
		}
		c.width, _ = strconv.Atoi(m[3]) // digits, or nothing
		names := []string{m[1]}
		if strings.EqualFold(m[1], "GPU") {
			names = []string{"GPUEff", "GPUMem"}
		}
		for _, n := range names {
			if c.name, c.at = seffName(n); c.name == "" {
				return nil, fmt.Errorf("%q is no column: sacct --helpformat lists those of sacct, and there are %s", m[1],
					strings.Join(seffNames, ", "))
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func seffName(name string) (string, int) {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			return fields[i].Name, i
		}
	}
	for _, n := range seffNames {
		if strings.EqualFold(n, name) {
			return n, -1
		}
	}
	return "", -1
}

// seffNone stands where reportseff knows no figure; a figure that is 0 is 0.0.
const seffNone = "---"

// figures are the columns that sacct has not, as text.
func figures(e *api.Efficiency) map[string]string {
	if e == nil {
		e = &api.Efficiency{}
	}
	out := map[string]string{}
	for i, p := range []*float64{e.CPUPercent, e.MemoryPercent, e.TimePercent, e.GPUPercent, e.VRAMPercent, e.Joules} {
		digits := 1
		if seffNames[i] == "Energy" {
			digits = 0
		}
		out[seffNames[i]] = seffNone
		if p != nil {
			out[seffNames[i]] = strconv.FormatFloat(*p, 'f', digits, 64)
		}
	}
	return out
}

// rows are the lines of a job, of each of its nodes and of each of their cards.
func (a *seffTable) rows(u *used, columns []seffColumn) (out [][]string) {
	line := func(name string, own map[string]string, of func(c *seffColumn) string) {
		values := make([]string, len(columns))
		for i := range columns {
			switch c := &columns[i]; {
			case c.name == "JobID":
				values[i] = name
			case c.at >= 0:
				values[i] = of(c)
			default:
				values[i] = own[c.name]
			}
		}
		out = append(out, values)
	}
	none := func(*seffColumn) string { return "" } // a part of a job has its figures alone
	own := figures(u.e)
	if u.attempt != nil && u.job.TimeLimitSeconds > 0 { // known of a run that was not measured, too
		own["TimeEff"] = strconv.FormatFloat(100*u.elapsed().Seconds()/float64(u.job.TimeLimitSeconds), 'f', 1, 64)
	}
	ref := api.JobRef{ID: u.job.JobID, Index: -1}
	if u.job.ArrayIndex != nil && a.files[ref] == "" {
		ref = api.JobRef{ID: u.job.ArrayJobID, Index: *u.job.ArrayIndex}
	}
	line(cmp.Or(a.files[ref], u.id()), own, func(c *seffColumn) string {
		if c.name == "State" {
			return u.plainState() // without who cancelled it
		}
		return cmp.Or(fields[c.at].text(u.record), seffNone)
	})
	if u.attempt == nil || !a.nodes && !a.cards {
		return out
	}
	for i := range u.attempt.Measures {
		m := u.attempt.Measures[i]
		of := func(cards []api.CardMeasure) map[string]string {
			part := m
			part.Cards = cards
			f := figures(measure.Of(u.job, &api.Attempt{Nodes: []string{m.Node}, Measures: []api.Measure{part}}))
			f["TimeEff"] = ""
			return f
		}
		line("  "+m.Node, of(m.Cards), none)
		for k := range m.Cards {
			if a.cards {
				f := of(m.Cards[k : k+1])
				f["CPUEff"], f["MemEff"] = "", ""
				line(fmt.Sprintf("    %d", m.Cards[k].Index), f, none)
			}
		}
	}
	return out
}

// write writes the table; one column alone has neither a head nor blanks.
func (a *seffTable) write(columns []seffColumn, rows [][]string) error {
	plain := a.parsable || len(columns) == 1
	between := " "
	if a.parsable {
		between = a.delimiter
	}
	if len(columns) > 1 {
		head := make([]string, len(columns))
		for i := range columns {
			head[i] = columns[i].name
		}
		rows = slices.Insert(rows, 0, head)
	}
	for i := range columns {
		c := &columns[i]
		if a.nodes || a.cards {
			if c.name == "JobID" {
				c.align = '<'
			}
		}
		if c.width > 0 {
			continue
		}
		for _, r := range rows {
			c.width = max(c.width, utf8.RuneCountInString(r[i])+2)
		}
	}
	var b strings.Builder
	for _, r := range rows {
		cells := make([]string, len(r))
		for i := range r {
			cells[i] = column.Printable(r[i])
			if !plain {
				cells[i] = columns[i].fill(cells[i])
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, between), " ") + "\n")
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}

// fill brings a text to the width of its column.
func (c *seffColumn) fill(text string) string {
	r := []rune(text)
	if n := len(r) - c.width; n > 0 {
		if c.end {
			return string(r[n:])
		}
		return string(r[:c.width])
	}
	room := c.width - len(r)
	left := map[byte]int{'<': 0, '>': room, '^': room / 2}[c.align]
	return strings.Repeat(" ", left) + text + strings.Repeat(" ", room-left)
}

// seffAgo is a part of so long ago: d=2, hours=1.
var seffAgo = map[string]time.Duration{"weeks": 7 * 24 * time.Hour, "days": 24 * time.Hour, "hours": time.Hour, "minutes": time.Minute}

// seffTime reads a time as sacct does, or so long ago.
func seffTime(text string) (time.Time, error) {
	if !strings.Contains(text, "=") {
		return parseTime(text)
	}
	at := clock()
	for _, part := range cmdline.Split(text) {
		unit, count, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(count)
		var span time.Duration
		for name, d := range seffAgo {
			if unit != "" && strings.HasPrefix(name, strings.ToLower(unit)) {
				span = d
			}
		}
		if err != nil || n < 0 || span == 0 {
			return at, fmt.Errorf("%q is no time ago: want weeks, days, hours or minutes, as in d=2,h=1", part)
		}
		at = at.Add(-time.Duration(n) * span)
	}
	return at, nil
}
