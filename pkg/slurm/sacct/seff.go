package sacct

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/table/column"
	"gangd/pkg/slurm"
)

// seff and reportseff say of a job how much of what it held it used: the one in lines of words, the other in a table.
// Their figures are those of gacct -e, as measured, and not what they make of sacct's columns.

var seffCommand = &cmdline.Command[seffAsk]{Name: "seff", Terse: true, Does: "what a job used of what it held, by the name and in the " +
	"lines of Slurm's seff", Options: []cmdline.Option[seffAsk]{
	{Long: "debug", Short: 'd', List: cmdline.Refused, Note: "there is no raw record behind it",
		Use: "use sacct -j JOB -P, or gctl show job --json JOB"},
	{Long: "help", Short: 'h', Kind: cmdline.Optional, List: cmdline.Partial, Help: "in gangd's words"},
	{Short: 'v', As: "version", Set: func(a *seffAsk, _ string) error {
		_ = slurm.PrintVersion("seff", a.Streams)
		return cmdline.ErrDone
	}},
	slurm.VersionRow[seffAsk](),
}}

// seffAsk is a call of seff.
type seffAsk struct{ cmdline.Streams }

// The exit status of a call that seff can't read, and of a job that there is not.
const (
	seffMisused = 1
	seffNoJob   = 2
)

// Seff is seff.
func Seff(args []string, s cmdline.Streams) int {
	rest, err := seffCommand.Parse(&seffAsk{s}, args, s)
	if err != nil {
		return cmdline.Exit(err)
	}
	if len(rest) != 1 {
		s.Errorf("seff", "want one job: seff JOBID, or seff ARRAY_INDEX")
		return seffMisused
	}
	refs, err := parseJobs(rest[0])
	if err == nil && len(refs) == 0 {
		err = fatalf("Bad job/step specified: %s", rest[0])
	}
	var all []*used
	if err == nil {
		all, err = lastAttempts(&api.HistoryQuery{Refs: []api.JobRef{refs[0].JobRef}})
	}
	switch {
	case api.CodeOf(err) == api.CodeNotFound || err == nil && len(all) == 0:
		fmt.Fprintln(s.Err, "Job not found.")
		return seffNoJob
	case err != nil:
		return cmdline.Exit(seffCommand.Print(err, s))
	}
	fmt.Fprint(s.Out, all[0].lines())
	return 0
}

// used is the newest record of a job beside what it used, nil: nothing is known.
type used struct {
	*record
	e *api.Efficiency
}

// lastAttempts are the newest records of jobs.
func lastAttempts(q *api.HistoryQuery) (out []*used, err error) {
	err = client.New().History(context.Background(), q, func(d *api.JobDetail) error {
		for _, r := range recordsOf(d, clock()) {
			if r.last && r.isJob() {
				u := &used{record: r}
				if r.attempt != nil {
					u.e = r.attempt.Efficiency
				}
				out = append(out, u)
			}
		}
		return nil
	})
	return out, err
}

// lines is what seff says. What is not known says so: a job that used nothing and one of which nothing is known are two.
func (u *used) lines() string {
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(column.Lines(fmt.Sprintf(format, args...)) + "\n") }
	state, cpus, nodes := u.plainState(), max(u.cpus(), 1), max(u.nodes(), 1)
	say("Job ID: %d", u.job.JobID)
	if u.job.ArrayIndex != nil {
		say("Array Job ID: %s", u.id())
	}
	say("Cluster: %s\nUser/Group: %s/%s", cmdline.Cluster, u.job.User, groupName(u.job.GID))
	if u.waits() || state == string(api.JobRunning) {
		say("State: %s", state)
	} else {
		code, _ := u.exitOf()
		say("State: %s (exit code %d)", state, code)
	}
	if cpus == 1 {
		say("Cores: 1")
	} else {
		say("Nodes: %d\nCores per node: %d", nodes, cpus/nodes)
	}
	if u.waits() {
		say("Efficiency not available for jobs in the PENDING state.")
		return b.String()
	}
	if u.attempt == nil {
		say("Efficiency not available: the job never ran.")
		return b.String()
	}
	whole := u.elapsed() * time.Duration(cpus)
	busy, percent := notKnown, notKnown
	if u.e != nil && u.e.CPUSeconds != nil {
		busy = clockOf(*u.e.CPUSeconds)
		percent = percentOf(u.e.CPUPercent, 2)
	}
	say("CPU Utilized: %s\nCPU Efficiency: %s of %s core-walltime\nJob Wall-clock time: %s", busy, percent, clockOf(whole.Seconds()),
		clockOf(u.elapsed().Seconds()))
	held, ok := u.memory()
	had, _ := u.allocated()
	asked := had.Memory
	text, percent := notKnown, notKnown
	if ok {
		text = kilobytes(held)
		if asked > 0 {
			percent = fmt.Sprintf("%.2f%%", 100*float64(held)/float64(asked))
		}
	}
	say("Memory Utilized: %s", text)
	if asked > 0 {
		say("Memory Efficiency: %s of %s (%s/node)", percent, kilobytes(asked), kilobytes(asked/nodes))
	} else {
		say("Memory Efficiency: %s: no memory was asked for", notKnown)
	}
	if u.e != nil && u.e.GPUPercent != nil {
		say("GPU Efficiency: %s of %s card-walltime", percentOf(u.e.GPUPercent, 2), clockOf(u.elapsed().Seconds()*float64(u.cards())))
	}
	if state == string(api.JobRunning) {
		say("WARNING: the job still runs: its figures are as of the last minute.")
	}
	return b.String()
}

// notKnown stands where seff has a figure.
const notKnown = "unknown"

func percentOf(p *float64, digits int) string {
	if p == nil {
		return notKnown
	}
	return fmt.Sprintf("%.*f%%", digits, *p)
}

// memory is what the nodes held at most, together; ok is false when one of them does not know.
func (u *used) memory() (held int64, ok bool) {
	if u.attempt == nil {
		return 0, false
	}
	ok = len(u.attempt.Measures) > 0 && len(u.attempt.Measures) == len(u.attempt.Nodes)
	for i := range u.attempt.Measures {
		if p := u.attempt.Measures[i].MemoryPeak; p != nil {
			held += *p
		} else {
			ok = false
		}
	}
	return held, ok
}

func (u *used) cards() (n int) {
	for i := range u.attempt.Measures {
		n += len(u.attempt.Measures[i].Cards)
	}
	return n
}

// clockOf is 1-02:03:04, or 02:03:04.
func clockOf(seconds float64) string {
	return when.Span(time.Duration(seconds+0.5) * time.Second)
}

// kilobytes is a size in the largest unit of which there is one.
func kilobytes(bytes int64) string {
	v, units := float64(bytes)/1024, []string{"KB", "MB", "GB", "TB", "PB"}
	if bytes == 0 {
		return "0.00 MB"
	}
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return fmt.Sprintf("%.2f %s", v, units[i])
}
