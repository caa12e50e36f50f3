package sacct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/cmdline/when"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/cmdline"
	"gangd/pkg/slurm/document"
	"gangd/pkg/table/accttable"
	"gangd/pkg/table/tres"
)

// clock is the wall clock, a variable so that tests stand still.
var clock = time.Now

// Run is sacct.
func Run(args []string, s slurm.Streams) int {
	if lists.Asked(args) {
		Lists().Write(s.Out)
		Columns().Write(s.Out)
		return 0
	}
	return exit(run(args, s), "sacct", s)
}

// done ends a call that has said all.
type done struct{ status int }

func (done) Error() string { return "" }

// exit prints an error as Slurm's commands do.
func exit(err error, name string, s slurm.Streams) int {
	var end done
	var fat *fatal
	var raw *bare
	var usage *getopt.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &end):
		return end.status
	case errors.As(err, &fat):
		fmt.Fprintf(s.Err, "%s: fatal: %s\n", name, fat.text)
	case errors.As(err, &raw):
		fmt.Fprintln(s.Err, raw.text)
	case errors.As(err, &usage):
		fmt.Fprintf(s.Err, "%s: %s\n", name, usage.Text)
	default:
		s.Errorf(name, "%v", err)
	}
	return 1
}

func run(args []string, s slurm.Streams) error {
	a := &ask{}
	if err := a.read(args, s); err != nil {
		return err
	}
	now := clock()
	if err := a.window(now); err != nil {
		return err
	}
	if a.verbose {
		fmt.Fprintf(s.Err, "sacct: Jobs Eligible in the time window from %s to %s\n", longTime(a.from), longTime(a.to))
	}
	t, err := a.table()
	if err != nil {
		return err
	}
	details, err := a.fetch()
	if err != nil {
		return err
	}
	switch {
	case a.batchScript:
		return a.writeScripts(details, s)
	case a.json, a.yaml:
		return document.Write(s.Out, documentOf(a.choose(details, now)), !a.json)
	}
	return write(t, a.choose(details, now), a.noHeader, s)
}

func longTime(t time.Time) string {
	if t.IsZero() {
		return "Epoch 0"
	}
	return t.Local().Format("Mon Jan 02 15:04:05 2006")
}

func (a *ask) table() (*accttable.Table, error) {
	chosen, err := chooseColumns(a.format, formatDefault, fieldColumns())
	if err != nil {
		return nil, err
	}
	return &accttable.Table{Columns: chosen, Style: accttable.Style(a.style), Delimiter: a.delimiter}, nil
}

func chooseColumns(format, otherwise string, all []accttable.Column) ([]accttable.Choice, error) {
	switch {
	case strings.EqualFold(format, "all"):
		return accttable.All(all), nil
	case format == "":
		format = otherwise
	}
	chosen, err := accttable.Parse(format, all)
	var unknown *accttable.UnknownError
	if errors.As(err, &unknown) {
		if now := removed[strings.ToLower(unknown.Name)]; now != "" {
			return nil, fatalf("%s has been removed, please use %s", strings.Replace(now, "TRES", "GRES", 1), now)
		}
		return nil, fmt.Errorf("Invalid field requested: \"%s\"", unknown.Name) //nolint:staticcheck // Slurm's words
	}
	return chosen, err
}

// fetch asks the controller for what may be shown.
func (a *ask) fetch() ([]*api.JobDetail, error) {
	q := &api.HistoryQuery{Since: a.from, Until: a.to, Users: a.users}
	if !a.fromSet {
		q.Since = time.Time{}
		if len(a.jobs) == 0 {
			q.Since = a.from
		}
	}
	for _, j := range a.jobs {
		q.Refs = append(q.Refs, j.JobRef)
	}
	var out []*api.JobDetail
	err := client.New().History(context.Background(), q, func(d *api.JobDetail) error {
		out = append(out, d)
		return nil
	})
	return out, err
}

func write(t *accttable.Table, records []*record, noHeader bool, s slurm.Streams) error {
	var b strings.Builder
	if !noHeader {
		b.WriteString(t.Header())
	}
	values := make([]string, len(t.Columns))
	for _, r := range records {
		for i := range t.Columns {
			values[i] = fields[t.Columns[i].Index].text(r)
		}
		b.WriteString(t.Row(values))
	}
	_, err := fmt.Fprint(s.Out, b.String())
	return err
}

// writeScripts is --batch-script.
func (a *ask) writeScripts(details []*api.JobDetail, s slurm.Streams) error {
	if len(a.jobs) == 0 {
		return errors.New("You must request specific jobs with '-j' when requesting a job script") //nolint:staticcheck // Slurm's words
	}
	for _, r := range a.choose(details, clock()) {
		if !r.isJob() {
			continue
		}
		text, err := client.New().Script(context.Background(), api.JobRef{ID: r.job.JobID, Index: -1})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "Batch Script for %s\n%s\n%s\n", r.id(), strings.Repeat("-", 80), text)
	}
	return nil
}

// read takes the command line.
func (a *ask) read(args []string, s slurm.Streams) error {
	if v := os.Getenv("SACCT_FORMAT"); v != "" {
		a.format = v
	}
	if err := read("sacct", sacctOptions, args, s, a.set); err != nil {
		return err
	}
	if len(a.users) == 0 && !a.everybody && len(a.jobs) == 0 && os.Getuid() != 0 {
		u, err := user.LookupId(strconv.Itoa(os.Getuid()))
		if err != nil {
			return err
		}
		a.users = []string{u.Username}
	}
	return nil
}

// set takes one option.
func (a *ask) set(name, v string, s slurm.Streams) (err error) {
	switch name {
	case "accounts":
		a.accounts = cmdline.Split(v)
	case "allocations":
		a.allocations = true
	case "allusers":
		a.everybody = true
	case "allclusters", "federation", "local", "use-local-uid", "whole-hetjob": // there is one of each
	case "associations", "wckeys":
		a.nothing = true
	case "clusters":
		a.nothing = v != slurm.Cluster && v != "all" && v != "-1"
	case "batch-script":
		a.batchScript = true
	case "brief":
		a.format = formatBrief
	case "long":
		a.format = formatLong
	case "format":
		a.format = v
	case "completion":
		return &bare{"Slurm job completion is disabled"}
	case "constraints":
		a.features = cmdline.Split(v)
	case "delimiter":
		a.delimiter = v
	case "duplicates":
		a.duplicates = true
	case "starttime":
		a.from, err = parseTime(v)
		a.fromSet = v != ""
	case "endtime":
		a.to, err = parseTime(v)
		a.toSet = v != ""
	case "gid":
		a.groups, err = parseGroups(v)
	case "uid":
		if v == "-1" {
			a.everybody = true
			return nil
		}
		a.users, err = parseUsers(v)
	case "help":
		writeOptions(s, "sacct", "the history of jobs, by the name and in the columns of Slurm's sacct", Lists())
		return done{0}
	case "helpformat":
		fmt.Fprint(s.Out, accttable.Names(fieldColumns()))
		return done{0}
	case "jobs":
		a.jobs, err = parseJobs(v)
	case "json":
		a.json, a.duplicates = true, true // 22.05 shows every attempt there
	case "yaml":
		a.yaml, a.duplicates = true, true
	case "name":
		a.names = cmdline.Split(v)
	case "ncpus":
		a.cpus, err = parseSpan(v, "cpu")
	case "nnodes":
		a.nodeCount, err = parseSpan(v, "node")
	case "nodelist":
		a.nodes, err = parseNodes(v)
	case "noconvert":
		a.plain = true
	case "noheader":
		a.noHeader = true
	case "parsable":
		a.style = int(accttable.Parsable)
	case "parsable2":
		a.style = int(accttable.Parsable2)
	case "partition":
		a.partitions = cmdline.Split(v)
	case "state":
		a.states, err = parseStates(v)
	case "timelimit-min":
		a.limit.min, err = parseMinutes(v)
	case "timelimit-max":
		a.limit.max, err = parseMinutes(v)
	case "truncate":
		a.truncated = true
	case "units":
		if len(v) != 1 || !strings.Contains(tres.Units, v) {
			s.Errorf("sacct", "Invalid unit type '%s'. Possible options are '%s'", v, tres.Units)
			return fatalf("Invalid unit type")
		}
		a.units = v[0]
	case "usage":
		fmt.Fprint(s.Out, "Usage: sacct [options]\n\tUse --help for help\n")
		return done{0}
	case "verbose":
		a.verbose = true
	case "version":
		fmt.Fprintln(s.Out, slurm.Version())
		return done{0}
	}
	return err
}

func parseTime(v string) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	t, err := when.Parse(v, clock(), when.Past)
	if err != nil {
		return t, &bare{err.Error()}
	}
	return t, nil
}

// writeOptions is --help.
func writeOptions(s slurm.Streams, name, does string, l lists.Command) {
	fmt.Fprintf(s.Out, "%s [OPTION...]\n  %s\n\n", name, does)
	for _, o := range l.Options {
		short := "    "
		if o.Short != 0 {
			short = "-" + string(rune(o.Short)) + ", "
		}
		fmt.Fprintf(s.Out, "  %s--%-16s %s\n", short, o.Name, o.Text)
	}
	fmt.Fprintf(s.Out, "\n%s --help=slurm lists what is kept exactly, partly, and refused\n", name)
}
