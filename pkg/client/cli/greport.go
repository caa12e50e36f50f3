package cli

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/plot"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/used"
)

// greport is one call of the command.
type greport struct {
	query  api.LedgerQuery
	from   string
	to     string
	format string
	write  func(io.Writer, *plot.Page) error // a page
}

// report is a kind of report: by what unless somebody says, and what it shows.
type report struct {
	by      string
	columns []reportColumn
}

// reportColumn is a column: its head, its title and unit on a page, its text in a table, and its number, false: not known.
type reportColumn struct {
	head  string
	title string // on a page
	unit  string // of its plot
	value func(r *reportRow) (v float64, known bool)
	text  func(v float64) string
}

// reportRow is a line: its key, its sums, and the attempts by cause.
type reportRow struct {
	api.LedgerRow
	causes map[api.Cause]int64
}

const msPerHour = 3600_000

func hours(of func(l *api.LedgerFigures) int64) func(*reportRow) (float64, bool) {
	return func(r *reportRow) (float64, bool) { return float64(of(&r.LedgerFigures)) / msPerHour, true }
}

// part is in percent; of nothing it is not known.
func part(of, whole func(l *api.LedgerFigures) int64) func(*reportRow) (float64, bool) {
	return func(r *reportRow) (float64, bool) {
		w := whole(&r.LedgerFigures)
		if w <= 0 {
			return 0, false
		}
		return 100 * float64(of(&r.LedgerFigures)) / float64(w), true
	}
}

func endedBy(causes ...api.Cause) func(*reportRow) (float64, bool) {
	return func(r *reportRow) (float64, bool) {
		n := int64(0)
		for _, c := range causes {
			n += r.causes[c]
		}
		return float64(n), true
	}
}

func oneDigit(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
func noDigit(v float64) string  { return strconv.FormatFloat(v, 'f', 0, 64) }
func asTime(v float64) string   { return jobfield.Elapsed(time.Duration(v * float64(time.Second))) }

func cardMS(l *api.LedgerFigures) int64 { return l.CardMS }
func cpuMS(l *api.LedgerFigures) int64  { return l.CPUMS }

// Causes that speak against the machine, and against the program.
var (
	hardware = []api.Cause{api.CauseNodeLost, api.CauseLaunch, api.CauseGPUHang}
	software = []api.Cause{api.CauseCrash, api.CauseOOM, api.CauseStalled, api.CauseIdle}
)

var reports = map[string]report{
	"usage": {"user", []reportColumn{
		{"GPU-HOURS", "Card hours", "hours", hours(cardMS), oneDigit}, {"CPU-HOURS", "CPU hours", "hours", hours(cpuMS), oneDigit},
		{"GPU%", "Cards busy, %", "%", part(func(l *api.LedgerFigures) int64 { return l.BusyCardMS },
			func(l *api.LedgerFigures) int64 { return l.SeenCardMS }), noDigit},
		{"CPU%", "CPUs busy, %", "%", part(func(l *api.LedgerFigures) int64 { return l.UsedCPUMS },
			func(l *api.LedgerFigures) int64 { return l.SeenCPUMS }), noDigit},
		{"KWH", "Energy of cards, kWh", "kWh", func(r *reportRow) (float64, bool) { return float64(r.Joules) / 3.6e6, r.Joules > 0 }, oneDigit},
		{"ATTEMPTS", "Attempts", "attempts", func(r *reportRow) (float64, bool) { return float64(r.Attempts), true }, noDigit}}},
	"waste": {"cause", []reportColumn{
		{"GPU-HOURS", "Card hours", "hours", hours(cardMS), oneDigit}, {"LOST", "Lost card hours", "hours",
			hours(func(l *api.LedgerFigures) int64 { return l.LostCardMS }), oneDigit},
		{"LOST%", "Lost, %", "%", part(func(l *api.LedgerFigures) int64 { return l.LostCardMS }, cardMS), noDigit},
		{"IDLE", "Idle card hours", "hours", hours(func(l *api.LedgerFigures) int64 { return l.IdleCardMS }), oneDigit},
		{"IDLE%", "Idle, %", "%", part(func(l *api.LedgerFigures) int64 { return l.IdleCardMS },
			func(l *api.LedgerFigures) int64 { return l.SeenCardMS }), noDigit},
		{"START", "Card hours before the first use", "hours", hours(func(l *api.LedgerFigures) int64 { return l.StartCardMS }), oneDigit},
		{"START%", "Before the first use, %", "%", part(func(l *api.LedgerFigures) int64 { return l.StartCardMS },
			func(l *api.LedgerFigures) int64 { return l.SeenCardMS }), oneDigit},
		{"CPU-HOURS", "CPU hours", "hours", hours(cpuMS), oneDigit}, {"LOST-CPU", "Lost CPU hours", "hours",
			hours(func(l *api.LedgerFigures) int64 { return l.LostCPUMS }), oneDigit}}},
	"wait": {"partition", []reportColumn{
		{"STARTS", "Starts", "starts", func(r *reportRow) (float64, bool) { return float64(r.Starts), true }, noDigit},
		{"MEAN-WAIT", "Mean wait", "seconds", func(r *reportRow) (float64, bool) {
			if r.Starts == 0 {
				return 0, false
			}
			return float64(r.WaitMS) / 1000 / float64(r.Starts), true
		}, asTime},
		{"ALL-WAIT", "All waits together", "seconds", func(r *reportRow) (float64, bool) { return float64(r.WaitMS) / 1000, true }, asTime}}},
	"health": {"partition", []reportColumn{
		{"ATTEMPTS", "Attempts", "attempts", func(r *reportRow) (float64, bool) { return float64(r.Attempts), true }, noDigit},
		{"COMPLETED", "Completed", "attempts", endedBy(api.CauseCompleted), noDigit}, {"PROGRAM", "Ended by the program", "attempts",
			endedBy(software...), noDigit}, {"HARDWARE", "Ended by the hardware", "attempts", endedBy(hardware...), noDigit},
		{"HARDWARE%", "By the hardware, %", "%", func(r *reportRow) (float64, bool) {
			n, _ := endedBy(hardware...)(r)
			return 100 * n / float64(max(r.Attempts, 1)), r.Attempts > 0
		}, oneDigit}}},
}

var reportFormats = []string{"table", "csv", "json", "html"}

// NewGreport is the command greport, with what writes a page.
func NewGreport(write func(io.Writer, *plot.Page) error) *cobra.Command {
	g := &greport{write: write}
	cmd := &cobra.Command{
		Use:   "greport [OPTIONS] usage|waste|wait|health",
		Short: "report what was used, lost and waited for, from the ledger",
		Example: `  greport usage --by=account --from=2026-11-01   card and CPU hours of each account
  greport waste                                  of the last 30 days, by cause
  greport usage --by=day,user --format=html >r.html`,
		Long: `The ledger is kept for ever, whatever the history forgets. Days are those of UTC; without
--from a report is of the last 30 days.`,
		Args: func(_ *cobra.Command, args []string) error {
			kinds := slices.Sorted(maps.Keys(reports))
			switch {
			case len(args) != 1:
				return Usagef("want one of %s", strings.Join(kinds, ", "))
			case reports[args[0]].by == "":
				return unknownName("report", args[0], kinds)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&g.query.By, "by", nil, "a line for each of `WORDS`: "+strings.Join(api.LedgerBy, ", "))
	f.StringVar(&g.from, "from", "30d", "first `DAY`, 2026-11-01 or so many days back: 7d")
	f.StringVar(&g.to, "to", "0d", "last `DAY`")
	f.StringSliceVarP(&g.query.Users, "user", "u", nil, "only of these `USERS`")
	f.StringSliceVarP(&g.query.Accounts, "account", "A", nil, "only of these `ACCOUNTS`")
	f.StringSliceVarP(&g.query.Partitions, "partition", "p", nil, "only in these `PARTITIONS`")
	f.StringVar(&g.format, "format", "table", "as `FORMAT`: "+strings.Join(reportFormats, ", "))
	cmd.ValidArgs = []string{"usage", "waste", "wait", "health"}
	completeFlags(cmd)
	program.Timeout(cmd)
	return cmd
}

// dayOf reads a day, or so many days before today.
func dayOf(text string) (string, error) {
	if n, err := strconv.Atoi(strings.TrimSuffix(text, "d")); err == nil && strings.HasSuffix(text, "d") && n >= 0 {
		return api.LedgerDay(now().AddDate(0, 0, -n)), nil
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", Usagef("%q is no day: want 2026-11-23, or 7d for seven days ago", text)
	}
	return text, nil
}

func (g *greport) run(cmd *cobra.Command, kind string) (err error) {
	rep := reports[kind]
	if len(g.query.By) == 0 {
		g.query.By = []string{rep.by}
	}
	if !slices.Contains(reportFormats, g.format) {
		return Usagef("no format %q: want %s", g.format, strings.Join(reportFormats, ", "))
	}
	if g.query.From, err = dayOf(g.from); err != nil {
		return err
	}
	if g.query.To, err = dayOf(g.to); err != nil {
		return err
	}
	q := g.query
	if kind == "health" && !slices.Contains(q.By, "cause") {
		q.By = append(slices.Clone(q.By), "cause")
	}
	reply, err := client.New().Ledger(cmd.Context(), &q)
	if err != nil {
		return err
	}
	rows := g.rows(reply.Rows)
	out := cmd.OutOrStdout()
	switch g.format {
	case "json":
		return WriteJSON(out, reply)
	case "csv":
		return g.csv(out, rep, rows)
	case "html":
		return g.write(out, g.page(kind, rep, rows, reply))
	}
	return g.table(rep, rows).write(screenOf(out))
}

// table has a row for each key. On a narrow terminal the last figures go first; the first stays, and so do keys, on several lines.
func (g *greport) table(rep report, rows []*reportRow) *table {
	t := &table{}
	for _, h := range g.heads() {
		t.cols = append(t.cols, tableColumn{head: h, wrap: true})
	}
	for i, c := range rep.columns {
		t.cols = append(t.cols, tableColumn{head: c.head, right: true, keep: true, spare: i})
	}
	for _, r := range rows {
		t.rows = append(t.rows, append(g.keys(r), texts(rep, r)...))
	}
	return t
}

// rows are those of the reply without causes that only a report needs, the key in order.
func (g *greport) rows(all []api.LedgerRow) (out []*reportRow) {
	at := map[api.LedgerKey]*reportRow{}
	for i := range all {
		k := all[i].By(g.query.By)
		r := at[k]
		if r == nil {
			r = &reportRow{LedgerRow: api.LedgerRow{LedgerKey: k}, causes: map[api.Cause]int64{}}
			at[k] = r
			out = append(out, r)
		}
		r.Add(all[i].LedgerFigures)
		r.causes[all[i].Cause] += all[i].Attempts
	}
	slices.SortFunc(out, func(a, b *reportRow) int { return a.Compare(b.LedgerKey) })
	return out
}

func (g *greport) heads() (out []string) {
	for _, w := range g.query.By {
		out = append(out, strings.ToUpper(w))
	}
	return out
}

func (g *greport) keys(r *reportRow) (out []string) {
	for _, w := range g.query.By {
		text := map[string]string{"day": r.Day, "month": r.Day, "user": r.User, "account": r.Account, "partition": r.Partition,
			"card_type": r.CardType, "cause": string(r.Cause)}[w]
		switch {
		case text == "" && w == "cause":
			text = "running"
		case text == "":
			text = "-"
		}
		out = append(out, text)
	}
	return out
}

func texts(rep report, r *reportRow) (out []string) {
	for _, c := range rep.columns {
		if v, known := c.value(r); known {
			out = append(out, c.text(v))
		} else {
			out = append(out, used.Unknown)
		}
	}
	return out
}

// csv has numbers whole, and nothing where one is not known.
func (g *greport) csv(w io.Writer, rep report, rows []*reportRow) error {
	out := csv.NewWriter(w)
	head := g.heads()
	for _, c := range rep.columns {
		head = append(head, c.head)
	}
	_ = out.Write(head) // told by Flush
	for _, r := range rows {
		line := g.keys(r)
		for _, c := range rep.columns {
			text := ""
			if v, known := c.value(r); known {
				text = strconv.FormatFloat(v, 'f', -1, 64)
			}
			line = append(line, text)
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// titles are what the kinds are called where there is room for a title.
var titles = map[string]string{"usage": "Usage", "waste": "Waste", "wait": "Waiting", "health": "Health"}

// page has the sums, a table whose first figures are drawn as bars, and where the report is by days a plot of each
// column: a line for each of the rest of the key.
func (g *greport) page(kind string, rep report, rows []*reportRow, reply *api.LedgerReply) *plot.Page {
	words := make([]string, len(g.query.By))
	for i, w := range g.query.By {
		words[i] = strings.ReplaceAll(w, "_", " ")
	}
	p := &plot.Page{Title: titles[kind] + " by " + strings.Join(words, " and "), Period: period(reply.From, reply.To) + g.only()}
	sum := &reportRow{causes: map[api.Cause]int64{}}
	most := 0.0
	for _, r := range rows {
		sum.Add(r.LedgerFigures)
		for c, n := range r.causes {
			sum.causes[c] += n
		}
		if v, known := rep.columns[0].value(r); known {
			most = max(most, v)
		}
	}
	t := plot.Table{}
	for _, w := range words {
		t.Words = append(t.Words, strings.ToUpper(w[:1])+w[1:])
	}
	for _, c := range rep.columns {
		t.Heads = append(t.Heads, c.title)
	}
	line := func(r *reportRow, words []string) plot.Row {
		row := plot.Row{Words: words}
		for i, text := range texts(rep, r) {
			c := plot.Cell{Text: text}
			if v, known := rep.columns[i].value(r); i == 0 && known && most > 0 && r != sum {
				c.Share = v / most
			}
			row.Cells = append(row.Cells, c)
		}
		return row
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, line(r, g.keys(r)))
	}
	if len(rows) > 1 {
		total := line(sum, append([]string{"All"}, make([]string, len(words)-1)...))
		t.Total = &total
	}
	p.Tables = []plot.Table{t}
	for i, text := range texts(rep, sum) {
		if i < 4 {
			p.Tiles = append(p.Tiles, plot.Tile{Name: rep.columns[i].title, Value: text, Says: "of all together"})
		}
	}
	p.Figures = g.plots(rep, rows)
	p.Remarks = []string{"from the ledger, which is kept for ever; days are those of UTC", "? stands where nothing was measured"}
	return p
}

// period says of which days a report is.
func period(from, to string) string {
	text := from + " to " + to
	first, err1 := time.Parse(time.DateOnly, from)
	last, err2 := time.Parse(time.DateOnly, to)
	if err1 != nil || err2 != nil || last.Before(first) {
		return text
	}
	return fmt.Sprintf("%s, %s", text, count(int(last.Sub(first)/(24*time.Hour))+1, "day", "days"))
}

// only says of whom a report is, where it is not of all.
func (g *greport) only() (text string) {
	for _, l := range []struct {
		of   string
		list []string
	}{{"users", g.query.Users}, {"accounts", g.query.Accounts}, {"partitions", g.query.Partitions}} {
		if len(l.list) > 0 {
			text += "; only " + l.of + " " + strings.Join(l.list, ", ")
		}
	}
	return text
}

// plots are those of a report by days, where there is more than one day.
func (g *greport) plots(rep report, rows []*reportRow) (out []plot.Figure) {
	days := map[string]bool{}
	for _, r := range rows {
		days[r.Day] = true
	}
	if !slices.Contains(g.query.By, "day") || len(days) < 2 {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(g.query.By), func(w string) bool { return w == "day" })
	for _, c := range rep.columns {
		f := plot.Figure{Title: c.title, X: "Day", Y: c.unit, Unit: plot.Day}
		at := map[string]int{}
		for _, r := range rows {
			name := cmp.Or(strings.Join((&greport{query: api.LedgerQuery{By: rest}}).keys(r), " "), "all")
			day, err := time.Parse(time.DateOnly, r.Day)
			v, known := c.value(r)
			if err != nil || !known {
				continue
			}
			i, ok := at[name]
			if !ok {
				i = len(f.Lines)
				at[name] = i
				f.Lines = append(f.Lines, plot.Line{Name: name})
			}
			f.Lines[i].X = append(f.Lines[i].X, float64(day.Unix()))
			f.Lines[i].Y = append(f.Lines[i].Y, plot.Rounded(v))
		}
		out = append(out, f)
	}
	return out
}
