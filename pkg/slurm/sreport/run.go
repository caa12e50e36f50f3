package sreport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/table/accttable"
	amount "gangd/pkg/core/table/tres"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// report is one that sreport makes.
type report struct {
	group, name string
	letters     int // of the name that are enough
	title       string
	secs        bool // the title says how long the window is
	columns     []accttable.Column
	format      string // without format=
	tresFormat  string // with --tres
	rows        func(a *ask) ([]line, error)
	whole       bool // of the cluster: no users
	top, jobs   bool
	list        cmdline.List
	note        string
}

// line is a row: its text by the name of a column, and its times with what they are a part of.
type line struct {
	text  map[string]string
	times map[string]share
}

// share is a time in seconds, and the whole of which it is a part.
type share struct{ v, of float64 }

func col(name string, width int, key string) accttable.Column {
	return accttable.Column{Name: name, Width: width, Key: key}
}

var (
	clusterCol = col("Cluster", 9, "")
	accountCol = col("Account", 15, "Accounts")
	loginCol   = col("Login", 9, "")
	properCol  = col("Proper Name", 15, "Proper")
	nameCol    = col("TRES Name", 14, "TresName")
	usedCol    = col("Used", 0, "")
	energyCol  = col("Energy", 0, "")
)

const unkept = "Down, PLND Down and Planned are empty: nobody keeps them; Idle is what no job had"

var reports []report

func init() { // not in the declaration: the options refer to it
	reports = []report{
		{group: "cluster", name: "AccountUtilizationByUser", letters: 1, title: "Cluster/Account/User Utilization", secs: true,
			columns: []accttable.Column{accountCol, clusterCol, energyCol, loginCol, properCol, nameCol, usedCol},
			format:  "cluster,ac,login,proper,used,energy", tresFormat: "cluster,ac,login,proper,tresname,used",
			rows: accountsByUser, list: cmdline.Exact},
		{group: "cluster", name: "UserUtilizationByAccount", letters: 18, title: "Cluster/User/Account Utilization", secs: true,
			columns: []accttable.Column{accountCol, clusterCol, energyCol, loginCol, properCol, nameCol, usedCol},
			format:  "cluster,login,proper,ac,used,energy", tresFormat: "cluster,login,proper,ac,tresname,used",
			rows: func(a *ask) ([]line, error) { return usersOf(a, false) }, list: cmdline.Exact},
		{group: "cluster", name: "Utilization", letters: 2, title: "Cluster Utilization", whole: true,
			columns: []accttable.Column{col("Allocated", 0, ""), clusterCol, col("Down", 0, ""), col("Idle", 0, ""),
				col("Over Comm", 0, "Overcommitted"), col("PLND Down", 0, "PlannedDown"),
				col("Planned", 0, "reserved"), col("Reported", 0, ""), col("TRES Count", 10, "TresCount"), nameCol, energyCol},
			format: "cl,al,d,planned,i,res,rep", tresFormat: "cl,tresname,al,d,planned,i,res,rep", rows: utilization, list: cmdline.Partial,
			note: unkept},
		{group: "job", name: "SizesByAccount", letters: 1, title: "Job Sizes", secs: true, jobs: true,
			columns: []accttable.Column{col("Account", 9, ""), clusterCol}, format: "cl,a", tresFormat: "cl,a",
			rows: sizes, list: cmdline.Partial, note: "of the jobs that the history has; accounts have no tree: root is all of them, flatview each"},
		{group: "user", name: "TopUsage", letters: 1, secs: true, top: true, columns: []accttable.Column{accountCol, clusterCol, energyCol,
			loginCol, properCol, nameCol, usedCol},
			format: "cl,l,p,a,u,energy", tresFormat: "cl,l,p,a,tresname,used", rows: func(a *ask) ([]line, error) { return usersOf(a, true) },
			list: cmdline.Exact},
	}
}

// Run is sreport.
func Run(args []string, s cmdline.Streams) int {
	a := &ask{Streams: s, unit: units[4], tres: allTres[:1], top: 10}
	words, err := command.Parse(a, args, s)
	if err == nil {
		err = command.Print(a.run(words), s)
	}
	return cmdline.Exit(err)
}

func (a *ask) run(words []string) error {
	r, err := find(words)
	if err != nil {
		return err
	}
	var status error
	for _, w := range words[2:] {
		err := a.take(r, w)
		if errors.Is(err, errUnknown) { // said, and the report made all the same, as Slurm does
			status = command.Print(cmdline.Bare(fmt.Sprintf(" Unknown condition: %s\nUse keyword set to modify value", w)), a.Streams)
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := a.window(); err != nil {
		return err
	}
	format := r.format
	if a.named {
		format = r.tresFormat
	}
	chosen, err := accttable.Parse(cmp.Or(a.format, format), r.columns)
	var unknown *accttable.UnknownError
	if errors.As(err, &unknown) {
		return cmdline.Bare(fmt.Sprintf(" Unknown field '%s'", unknown.Name))
	}
	if r.jobs && len(a.tres) > 1 {
		return cmdline.Bare(" Job report only supports a single --tres type.\n Generate a separate report for each TRES type.")
	}
	rows, err := r.rows(a)
	if err != nil {
		return errors.New(slurm.Words(err)) //nolint:staticcheck // Slurm's words
	}
	if r.jobs {
		chosen = append(chosen, a.sizeColumns()...)
	}
	a.write(r, chosen, rows)
	return status
}

// find is the report that was asked for; its first two words say which.
func find(words []string) (*report, error) {
	if len(words) == 0 {
		return nil, errors.New("there is no prompt: name a report, as in sreport cluster Utilization; sreport --help lists them")
	}
	groups := []struct {
		name    string
		letters int
		valid   string
	}{{"cluster", 2, `"AccountUtilizationByUser", "UserUtilizationByAccount", and "Utilization"`}, {"job", 1, `"SizesByAccount"`},
		{"user", 1, `"Top"`}}
	for _, g := range groups {
		if !cmdline.Short(words[0], g.name, g.letters) {
			continue
		}
		if len(words) < 2 {
			return nil, cmdline.Bare("too few arguments for keyword:" + words[0])
		}
		for i := range reports {
			if r := &reports[i]; r.group == g.name && (cmdline.Short(words[1], r.name, r.letters) || r.letters == 18 &&
				strings.EqualFold(words[1], "UA")) {
				return r, nil
			}
		}
		if err := refused(g.name, words[1]); err != nil {
			return nil, err
		}
		return nil, cmdline.Bare(fmt.Sprintf("Not valid report %s\nValid %s reports are, %s", words[1], g.name, g.valid))
	}
	if err := refused("", words[0]); err != nil {
		return nil, err
	}
	return nil, cmdline.Bare("invalid keyword: " + words[0])
}

// elsewhere are words of Slurm's, of a group or in its place, that name no report here.
var elsewhere = []struct {
	group, name string
	letters     int
	why         string
}{
	{"cluster", "AccountUtilizationByQOS", 21, "there is no quality of service"},
	{"cluster", "UserUtilizationByWckey", 18, noKeys}, {"cluster", "UW", 2, noKeys}, {"cluster", "WCKeyUtilizationByUser", 1, noKeys},
	{"job", "SizesByAccountAndWckey", 15, noKeys}, {"job", "SizesByWckey", 8, noKeys},
	{"", "reservation", 1, "what was used below a reservation is not counted; gctl show reservation lists them"},
	{"", "resv", 4, "what was used below a reservation is not counted; gctl show reservation lists them"},
	{"", "exit", 1, noPrompt}, {"", "quit", 4, noPrompt}, {"", "quiet", 4, noPrompt + "; --quiet is the option"},
	{"", "local", 3, noPrompt + "; --local is the option"}, {"", "nonparsable", 2, noPrompt + "; tables are so without -p and -P"},
	{"", "parsable2", 9, noPrompt + "; --parsable2 is the option"}, {"", "parsable", 1, noPrompt + "; --parsable is the option"},
	{"", "sort", 1, noPrompt + "; --sort is the option"}, {"", "time", 1, noPrompt + "; -t is the option"},
	{"", "verbose", 4, noPrompt + "; --verbose is the option"}, {"", "help", 2, noPrompt + "; --help is the option"},
	{"", "version", 4, noPrompt + "; --version is the option"},
}

func refused(group, word string) error {
	for _, w := range elsewhere {
		if w.group == group && cmdline.Short(word, w.name, w.letters) {
			return fmt.Errorf("%s is refused: %s", w.name, w.why)
		}
	}
	return nil
}

const noKeys = "gangd has no workload keys: no job has one"

const noPrompt = "there is no prompt"

const rule = "--------------------------------------------------------------------------------\n"

func (a *ask) write(r *report, chosen []accttable.Choice, rows []line) {
	for i := range chosen {
		if c := &chosen[i]; c.Width == 0 {
			c.Width = a.widthOf(c.Name, rows)
		}
	}
	t := &accttable.Table{Columns: chosen, Style: a.style}
	if !a.noHeader {
		secs := ""
		if r.secs {
			secs = fmt.Sprintf(" (%d secs)", int(a.end.Sub(a.start)/time.Second))
		}
		title := r.title
		if r.top {
			title = fmt.Sprintf("Top %d Users", a.top)
		}
		fmt.Fprintf(a.Out, "%s%s %s - %s%s\n%s\n%s", rule, title, when.Stamp(a.start.Local(), ""),
			when.Stamp(a.end.Add(-time.Second).Local(), ""), secs, a.unitLine(r), rule)
		fmt.Fprint(a.Out, t.Header())
	}
	for _, l := range rows {
		values := make([]string, len(chosen))
		for i := range chosen {
			name := chosen[i].Name
			values[i] = l.text[name]
			if s, timed := l.times[name]; timed {
				values[i] = a.timeText(s)
			}
		}
		fmt.Fprint(a.Out, t.Row(values))
	}
}

func (a *ask) unitLine(r *report) string {
	resource := "CPU "
	switch {
	case r.jobs && a.named && !a.count:
		return "TRES type is " + a.tres[0].name + "\nTime reported in " + a.unit.title
	case r.jobs && a.count:
		return "Units are in number of jobs ran"
	case r.jobs:
		return "Time reported in " + a.unit.title
	case a.unit.seconds == 0:
		resource = ""
	case a.named:
		resource = "TRES "
	}
	return "Usage reported in " + resource + a.unit.title
}

// widthOf is that of a column of times: eight places, more when the largest needs them, and nine for a percentage beside it.
func (a *ask) widthOf(name string, rows []line) int {
	width, most := 8, 0.0
	for _, l := range rows {
		most = max(most, l.times[name].v)
	}
	for order := 1e8; order < 1e25 && most >= order; order *= 10 {
		width++
	}
	if a.unit.percent && a.unit.seconds > 0 {
		width += 9
	}
	return width
}

func (a *ask) timeText(s share) string {
	percent := fmt.Sprintf("%.2f%%", 100*s.v/max(s.of, 1))
	switch {
	case a.unit.seconds == 0:
		return percent
	case a.unit.percent:
		return fmt.Sprintf("%.0f(%s)", s.v/a.unit.seconds, percent)
	}
	return fmt.Sprintf("%.0f", s.v/a.unit.seconds)
}

// ledger asks for the window.
func (a *ask) ledger(by ...string) ([]api.LedgerRow, error) {
	q := &api.LedgerQuery{By: by, Users: a.users, Accounts: a.accounts}
	q.From, q.To = a.days()
	reply, err := client.New().Ledger(context.Background(), q)
	if err != nil {
		return nil, err
	}
	return reply.Rows, nil
}

// sumOf adds up.
func sumOf(rows []api.LedgerRow) (l api.LedgerFigures) {
	for i := range rows {
		l.Add(rows[i].LedgerFigures)
	}
	return l
}

// whose is who used something.
type whose struct{ account, user string }

// lines are those of one user or account, one for each resource.
func (a *ask) lines(w whose, used, all *api.LedgerFigures) (out []line) {
	for _, t := range a.tres {
		l := line{text: map[string]string{"Cluster": cmdline.Cluster, "Account": w.account, "Login": w.user, "TRES Name": t.name},
			times: map[string]share{
				"Used": {t.used(used), t.used(all)}, "Energy": {float64(used.Joules), float64(all.Joules)}}}
		if w.user != "" {
			l.text["Proper Name"] = properName(w.user)
		}
		out = append(out, l)
	}
	return out
}

// properName is the name of a person, a variable for tests.
var properName = func(login string) string {
	u, err := people.Here.ByName(context.Background(), login)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(u.Gecos, ",")
	return name
}

// accountsByUser has all, then each account with its users behind it.
func accountsByUser(a *ask) ([]line, error) {
	rows, err := a.ledger("account", "user")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	// The controller's order is by user first.
	slices.SortStableFunc(rows, func(x, y api.LedgerRow) int { return cmp.Compare(x.Account, y.Account) })
	all := sumOf(rows)
	out := a.lines(whose{account: "root"}, &all, &all)
	for i := 0; i < len(rows); {
		k := i
		for k < len(rows) && rows[k].Account == rows[i].Account {
			k++
		}
		of := sumOf(rows[i:k])
		out = append(out, a.lines(whose{account: rows[i].Account}, &of, &all)...)
		for ; i < k; i++ {
			out = append(out, a.lines(whose{rows[i].Account, rows[i].User}, &rows[i].LedgerFigures, &all)...)
		}
	}
	return out, nil
}

// usersOf are users with their accounts, by what they used; cut to the first of them for the report of those.
func usersOf(a *ask, top bool) ([]line, error) {
	rows, err := a.ledger("account", "user")
	if err != nil {
		return nil, err
	}
	all := sumOf(rows)
	if a.group {
		rows = grouped(rows)
	}
	slices.SortStableFunc(rows, func(x, y api.LedgerRow) int {
		if a.byName {
			return cmp.Compare(x.User, y.User)
		}
		return cmp.Or(cmp.Compare(a.tres[0].used(&y.LedgerFigures), a.tres[0].used(&x.LedgerFigures)), cmp.Compare(x.User, y.User))
	})
	if top && len(rows) > a.top {
		rows = rows[:a.top]
	}
	var out []line
	for i := range rows {
		out = append(out, a.lines(whose{rows[i].Account, rows[i].User}, &rows[i].LedgerFigures, &all)...)
	}
	return out, nil
}

// grouped makes one row of those of a user.
func grouped(rows []api.LedgerRow) (out []api.LedgerRow) {
	at := map[string]int{}
	for _, r := range rows {
		i, there := at[r.User]
		if !there {
			at[r.User] = len(out)
			out = append(out, r)
			continue
		}
		out[i].Add(r.LedgerFigures)
		out[i].Account += ", " + r.Account
	}
	return out
}

// utilization is that of the nodes that there are now, since the ledger began.
func utilization(a *ask) ([]line, error) {
	ctx, c := context.Background(), client.New()
	rows, err := a.ledger()
	if err != nil {
		return nil, err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	since := a.start
	if first, err := c.Ledger(ctx, &api.LedgerQuery{}); err != nil {
		return nil, err
	} else if t, err := time.Parse(time.DateOnly, first.From); err == nil && t.After(since) {
		since = t
	}
	span := max(a.end.Sub(since).Seconds(), 0)
	used := sumOf(rows)
	var out []line
	for _, t := range a.tres {
		count := 0
		if t.has != nil {
			for i := range nodes.Nodes {
				count += t.has(&nodes.Nodes[i])
			}
		}
		had := t.used(&used)
		whole := max(float64(count)*span, had)
		out = append(out, line{text: map[string]string{"Cluster": cmdline.Cluster, "TRES Name": t.name, "TRES Count": fmt.Sprint(count)},
			times: map[string]share{
				"Allocated": {had, whole}, "Idle": {whole - had, whole}, "Reported": {whole, whole}, "Energy": {float64(used.Joules),
					float64(used.Joules)}}})
	}
	return out, nil
}

// sized is what the jobs of an account used, by size.
type sized struct {
	seconds map[int64]float64
	jobs    map[int64]int
}

const percentOfCluster = "% of cluster"

// sizes is by the sizes of jobs. The size of one is what it had of the resource.
func sizes(a *ask) ([]line, error) {
	if len(a.sizes) == 0 {
		a.sizes = []int64{50, 250, 500, 1000}
	}
	of := a.tres[0].size
	if of == nil {
		return nil, fmt.Errorf("jobs have no size in %s: want cpu, gres/gpu or billing", a.tres[0].name)
	}
	accounts := map[string]*sized{}
	err := client.New().History(context.Background(), &api.HistoryQuery{Since: a.start, Until: a.end, Users: a.users},
		func(d *api.JobDetail) error {
			if len(a.accounts) > 0 && !slices.Contains(a.accounts, d.Job.Account) || !d.Job.InPartition(a.partitions) {
				return nil
			}
			account := "root"
			if a.flat || len(a.accounts) > 0 {
				account = d.Job.Account
			}
			counted := false
			for i := range d.Attempts {
				t := &d.Attempts[i]
				had := amount.Of(&d.Job, int64(len(t.Nodes)))
				n := of(had.CPUs, had.GPUs)
				span := a.within(t.StartTime, t.EndTime)
				if n == 0 || span <= 0 {
					continue
				}
				s := accounts[account]
				if s == nil {
					s = &sized{map[int64]float64{}, map[int64]int{}}
					accounts[account] = s
				}
				s.seconds[a.sizeOf(n)] += float64(n) * span
				if !counted {
					s.jobs[a.sizeOf(n)]++
					counted = true
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return a.sizeLines(accounts), nil
}

// within is how many seconds of a run are in the window.
func (a *ask) within(from, to time.Time) float64 {
	if from.IsZero() {
		return 0
	}
	if to.IsZero() || to.After(a.end) {
		to = a.end
	}
	if from.Before(a.start) {
		from = a.start
	}
	return to.Sub(from).Seconds()
}

// sizeOf is the group to which a size belongs, by its lower bound; with grouping=individual each is its own.
func (a *ask) sizeOf(n int64) (group int64) {
	if a.single {
		return n
	}
	for _, low := range a.sizes {
		if n >= low {
			group = low
		}
	}
	return group
}

func (a *ask) sizeLines(accounts map[string]*sized) (out []line) {
	part := func(s *sized, group int64) float64 {
		if a.count {
			return float64(s.jobs[group])
		}
		return s.seconds[group]
	}
	sum := func(s *sized) (v float64) {
		for g := range s.seconds {
			v += part(s, g)
		}
		return v
	}
	all := 0.0
	for _, s := range accounts {
		all += sum(s)
	}
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		s := accounts[name]
		own := sum(s)
		l := line{text: map[string]string{"Cluster": cmdline.Cluster, "Account": name, percentOfCluster: fmt.Sprintf("%.2f%%",
			100*own/max(all, 1))}, times: map[string]share{}}
		for _, g := range a.groups(accounts) {
			if a.count {
				l.text[a.groupName(g)] = fmt.Sprint(s.jobs[g])
			} else {
				l.times[a.groupName(g)] = share{part(s, g), own}
			}
		}
		out = append(out, l)
	}
	a.found = a.groups(accounts)
	return out
}

// groups are the columns: those that were asked for, or each size that there is.
func (a *ask) groups(accounts map[string]*sized) (out []int64) {
	if !a.single {
		return append([]int64{0}, a.sizes...)
	}
	for _, s := range accounts {
		for g := range s.seconds {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (a *ask) groupName(low int64) string {
	noun := "CPUs"
	if a.tres[0].name != "cpu" {
		noun = "TRES"
	}
	if a.single {
		return fmt.Sprintf("%d %s", low, noun)
	}
	for _, next := range a.sizes {
		if next > low {
			return fmt.Sprintf("%d-%d %s", low, next-1, noun)
		}
	}
	return fmt.Sprintf(">= %d %s", low, noun)
}

// sizeColumns are those of the groups, and of the part of the whole.
func (a *ask) sizeColumns() (out []accttable.Choice) {
	width := 13
	if a.unit.percent && a.unit.seconds > 0 {
		width = 20
	}
	for _, g := range a.found {
		out = append(out, accttable.Choice{Column: col(a.groupName(g), width, "")})
	}
	return append(out, accttable.Choice{Column: col(percentOfCluster, 12, "")})
}
