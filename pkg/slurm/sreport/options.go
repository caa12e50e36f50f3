package sreport

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/slurm"
)

// clock is the wall clock, a variable so that tests stand still.
var clock = time.Now

const oneCluster = "there is one cluster, and what is shown is always of it"

var command = &cmdline.Command[ask]{Name: "sreport", Tell: tell, Getenv: os.Getenv,
	More: func() []cmdline.Lists { return []cmdline.Lists{Reports()} },
	Options: []cmdline.Option[ask]{
		{Long: "all_clusters", Short: 'a', List: cmdline.Exact, Help: oneCluster, Set: cmdline.Accepted[ask]},
		{Long: "cluster", Env: []string{"SREPORT_CLUSTER"}, Short: 'M', Kind: cmdline.Required, List: cmdline.Partial,
			Help: "gangd is the one cluster; another name is refused",
			Set:  cmdline.OneCluster[ask]("sreport")},
		{Long: "federation", Env: []string{"SREPORT_FEDERATION"}, List: cmdline.Exact, Help: oneCluster, Set: cmdline.Accepted[ask]},
		{Long: "help", Short: 'h', Names: "help usage", Kind: cmdline.Optional, List: cmdline.Partial, Help: "in gangd's words"},
		{Long: "immediate", Short: 'i', List: cmdline.Exact, Help: "nothing is changed", Set: cmdline.Accepted[ask]},
		{Long: "local", Env: []string{"SREPORT_LOCAL"}, List: cmdline.Exact, Help: oneCluster, Set: cmdline.Accepted[ask]},
		{Long: "noheader", Short: 'n', List: cmdline.Exact, Help: "no header", Set: cmdline.Flag(func(a *ask) *bool { return &a.noHeader })},
		{Long: "parsable", Short: 'p', List: cmdline.Exact, Help: "a | behind each column",
			Set: func(a *ask, _ string) error { a.style = accttable.Parsable; return nil }},
		{Long: "parsable2", Short: 'P', List: cmdline.Exact, Help: "a | between columns",
			Set: func(a *ask, _ string) error { a.style = accttable.Parsable2; return nil }},
		{Long: "quiet", Short: 'Q', List: cmdline.Exact, Help: "nothing is said beside reports and errors anyway", Set: cmdline.Accepted[ask]},
		{Long: "sort", Short: 's', Kind: cmdline.Required, List: cmdline.Exact, Help: "users by Time or by Name", Set: setSort},
		{Short: 't', As: "time", Kind: cmdline.Required, List: cmdline.Exact, Help: "unit of times: Seconds, Minutes, Hours, Percent, SecPer, " +
			"MinPer, HourPer", Set: setUnit},
		{Long: "tres", Env: []string{"SREPORT_TRES"}, Short: 'T', Kind: cmdline.Required, List: cmdline.Partial,
			Help: "cpu, gres/gpu, billing, energy or ALL: the ledger " +
				"keeps no other", Set: setTres},
		{Long: "verbose", Short: 'v', List: cmdline.Exact, Help: "nothing more is known", Set: cmdline.Accepted[ask]},
		slurm.VersionRow[ask](),
	}}

// Reports is how each report is kept.
func Reports() cmdline.Lists {
	l := cmdline.Lists{Name: "sreport REPORT"}
	for i := range reports {
		l.Options = append(l.Options, cmdline.Kept{Name: reports[i].group + " " + reports[i].name, List: reports[i].list, Text: reports[i].note})
	}
	return l
}

func tell(l cmdline.Lists, s cmdline.Streams) {
	fmt.Fprint(s.Out, "sreport [OPTION...] cluster|job|user REPORT [CONDITION...]\n  what was used, by the name of Slurm's sreport\n\n")
	cmdline.WriteWords(s.Out, 16, "", l, Reports())
	fmt.Fprint(s.Out, "Conditions: start=TIME end=TIME format=COLUMN,... accounts=A,... users=U,... topcount=N group grouping=N,... "+
		"flatview printjobcount\n"+
		"sreport --help=slurm lists what is kept exactly, partly, and refused\n")
}

// unit is how times are shown.
type unit struct {
	name, title string
	letters     int     // that are enough
	seconds     float64 // 0: percent alone
	percent     bool
}

var units = []unit{
	{"SecPer", "Seconds/Percentage of Total", 6, 1, true}, {"MinPer", "Minutes/Percentage of Total", 6, 60, true},
	{"HourPer", "Hours/Percentage of Total", 6, 3600, true},
	{"Seconds", "Seconds", 1, 1, false}, {"Minutes", "Minutes", 1, 60, false}, {"Hours", "Hours", 1, 3600, false},
	{"Percent", "Percentage of Total", 1, 0, true},
}

func setUnit(a *ask, v string) error {
	for _, u := range units {
		if cmdline.Short(v, u.name, u.letters) {
			a.unit = u
			return nil
		}
	}
	return cmdline.Bare("unknown time format " + v)
}

func setSort(a *ask, v string) error {
	switch {
	case cmdline.Short(v, "Name", 1):
		a.byName = true
	case cmdline.Short(v, "Time", 1):
		a.byName = false
	default:
		return cmdline.Bare("unknown timesort format " + v)
	}
	return nil
}

// tres is a resource that the ledger keeps.
type tres struct {
	name string
	used func(l *api.LedgerFigures) float64 // seconds; of energy joules
	has  func(n *api.Node) int              // nil: there is no so much of it
	size func(cpus, cards int64) int64      // of a job that has so many; nil: none
}

var allTres = []tres{
	{"cpu", func(l *api.LedgerFigures) float64 { return float64(l.CPUMS) / 1000 }, func(n *api.Node) int { return n.CPUs },
		func(cpus, _ int64) int64 { return cpus }},
	{"energy", func(l *api.LedgerFigures) float64 { return float64(l.Joules) }, nil, nil},
	{"billing", func(l *api.LedgerFigures) float64 { return float64(l.CPUMS) / 1000 }, func(n *api.Node) int { return n.CPUs },
		func(cpus, _ int64) int64 { return cpus }},
	{"gres/gpu", func(l *api.LedgerFigures) float64 { return float64(l.CardMS) / 1000 }, func(n *api.Node) int { return len(n.Cards) },
		func(_, cards int64) int64 { return cards }},
}

func setTres(a *ask, v string) error {
	for _, w := range cmdline.Split(v) {
		if strings.EqualFold(w, "all") {
			a.tres, a.named = allTres, true
			return nil
		}
		i := slices.IndexFunc(allTres, func(t tres) bool { return strings.EqualFold(t.name, w) })
		if i < 0 {
			return fmt.Errorf("nothing is kept of %q: want cpu, gres/gpu, billing, energy or ALL", w)
		}
		if !a.named {
			a.tres = nil
		}
		a.tres, a.named = append(a.tres, allTres[i]), true
	}
	if !a.named {
		return cmdline.Fatal("No valid TRES given")
	}
	return nil
}

// ask is a call of sreport.
type ask struct {
	cmdline.Streams
	noHeader bool
	style    accttable.Style
	unit     unit
	tres     []tres
	named    bool // with --tres: a line for each, by name
	byName   bool

	start, end                  time.Time
	format                      string
	users, accounts, partitions []string
	top                         int
	group, flat, count, single  bool
	sizes                       []int64 // lower bounds of the groups of jobs
	found                       []int64 // groups that are shown
}

// errUnknown is of a word that is no condition.
var errUnknown = errors.New("unknown condition")

// take reads one word behind the report.
func (a *ask) take(r *report, word string) error {
	key, v, given := strings.Cut(word, "=")
	list := cmdline.Split(strings.Trim(v, `'"`))
	var err error
	switch {
	case !given && cmdline.Short(key, "all_clusters", 1), !given && cmdline.Short(key, "Tree", 4), !given &&
		cmdline.Short(key, "withdeleted", 5), !given && r.jobs && cmdline.Short(key, "AcctAsParent", 2):
		// One cluster, whose accounts have no tree, and of which nothing is deleted.
	case !given && r.jobs && cmdline.Short(key, "FlatView", 2):
		a.flat = true
	case !given && r.jobs && cmdline.Short(key, "PrintJobCount", 2):
		a.count = true
	case !given && r.top && cmdline.Short(key, "group", 1):
		a.group = true
	case !given:
		return errUnknown
	case cmdline.Short(key, "Clusters", 1):
		if !slices.Equal(list, []string{cmdline.Cluster}) {
			return fmt.Errorf("there is one cluster, %s", cmdline.Cluster)
		}
	case cmdline.Short(key, "End", 1):
		a.end, err = when.Parse(v, clock(), when.Past)
	case cmdline.Short(key, "Start", 1):
		a.start, err = when.Parse(v, clock(), when.Past)
	case r.jobs && cmdline.Short(key, "grouping", 2):
		return a.setSizes(list)
	case cmdline.Short(key, "Format", 1):
		a.format = v
	case cmdline.Short(key, "Accounts", 2), cmdline.Short(key, "Acct", 4):
		a.accounts = append(a.accounts, list...)
	case cmdline.Short(key, "Users", 1) && !r.whole:
		a.users = append(a.users, list...)
	case r.jobs && cmdline.Short(key, "Partitions", 2):
		a.partitions = append(a.partitions, list...)
	case r.jobs && (cmdline.Short(key, "Associations", 2) || cmdline.Short(key, "Gid", 2) || cmdline.Short(key, "Jobs", 1) ||
		cmdline.Short(key, "Nodes", 1) || cmdline.Short(key, "Wckeys", 2)):
		return fmt.Errorf("%s= is refused: sizes are counted of users, accounts and partitions; sacct selects jobs by more", key)
	case r.top && cmdline.Short(key, "TopCount", 1):
		if a.top, err = strconv.Atoi(v); err != nil || a.top < 1 {
			return fmt.Errorf("Invalid value for TopCount (%s)", v) //nolint:staticcheck // Slurm's words
		}
	default:
		return errUnknown
	}
	if err != nil {
		return cmdline.Bare(err.Error())
	}
	return nil
}

func (a *ask) setSizes(list []string) error {
	if len(list) == 1 && cmdline.Short(list[0], "individual", 1) {
		a.single = true
		return nil
	}
	for _, w := range list {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil || n < 1 || len(a.sizes) > 0 && n <= a.sizes[len(a.sizes)-1] {
			return fmt.Errorf("can't group by %q: want sizes that grow, as in grouping=50,250", w)
		}
		a.sizes = append(a.sizes, n)
	}
	return nil
}

// window brings the time that was asked for to whole days of UTC, of which the last ends now if it is today.
func (a *ask) window() error {
	now := clock().UTC()
	today := now.Truncate(day)
	from, to := a.start, a.end
	switch {
	case from.IsZero():
		from = today.Add(-day)
	case !from.Before(today):
		from = today
	default:
		from = from.UTC().Round(day)
	}
	switch {
	case to.IsZero():
		to = today
	case to.After(today):
		to = now
	default:
		to = to.UTC().Round(day)
	}
	if a.start.After(now) {
		return fmt.Errorf("the start, %s, is yet to come", when.Stamp(a.start, ""))
	}
	if !to.After(from) {
		to = from.Add(day)
	}
	if to.After(now) {
		to = now
	}
	a.start, a.end = from, to
	return nil
}

const day = 24 * time.Hour

// days are the first and the last of the window, as the ledger has them.
func (a *ask) days() (from, to string) {
	return api.LedgerDay(a.start), api.LedgerDay(a.end.Add(-time.Second))
}
