package sdiag

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/document"
)

// clock is the wall clock, a variable so that tests stand still.
var clock = time.Now

type ask struct {
	document slurm.Document
}

const noCalls = "gangd counts no calls"

var command = &cmdline.Command[ask]{Name: "sdiag", Getenv: os.Getenv, Does: "what the controller did since it started",
	Options: []cmdline.Option[ask]{
		{Long: "all", Short: 'a', List: cmdline.Exact, Help: "which is what is shown without it", Set: cmdline.Accepted[ask]},
		cmdline.HelpRow[ask]('h'),
		slurm.JSONRow(func(a *ask) *slurm.Document { return &a.document }),
		{Long: "reset", Short: 'r', List: cmdline.Refused, Note: "what was counted belongs to everybody, and is of this start of the controller"},
		{Long: "sort-by-id", Short: 'i', List: cmdline.Exact, Help: noCalls, Set: cmdline.Accepted[ask]},
		cmdline.ClustersRow[ask]("sdiag", nil),
		{Long: "sort-by-time", Short: 't', List: cmdline.Exact, Help: noCalls, Set: cmdline.Accepted[ask]},
		{Long: "sort-by-time2", Short: 'T', List: cmdline.Exact, Help: noCalls, Set: cmdline.Accepted[ask]},
		cmdline.UsageRow[ask](),
		slurm.VersionRow[ask](),
		slurm.YAMLRow(func(a *ask) *slurm.Document { return &a.document }),
	}, Usage: "Usage: sdiag [-aitTV] [--json] [--yaml]\n"}

// seen is what the controller says.
type seen struct {
	api.Figures
	since            time.Time // of the figures
	now              time.Time
	pending, running int
}

// Run is sdiag.
func Run(args []string, s cmdline.Streams) int {
	a := &ask{}
	rest, err := command.Parse(a, args, s)
	if err == nil {
		err = command.NoMore(rest, s)
	}
	if err != nil {
		return cmdline.Exit(err)
	}
	return cmdline.Exit(command.Print(a.show(args, s), s))
}

func (a *ask) show(args []string, s cmdline.Streams) error {
	ctx, c := context.Background(), client.New()
	reply, err := c.Ping(ctx)
	if err != nil {
		return cmdline.Bare("slurm_get_statistics: " + slurm.Words(err))
	}
	jobs, err := c.Jobs(ctx, &api.JobQuery{NoRanks: true})
	if err != nil {
		return cmdline.Bare("slurm_get_statistics: " + slurm.Words(err))
	}
	v := &seen{since: reply.StartTime, now: clock()}
	if reply.Figures != nil { // a controller of before says none
		v.Figures = *reply.Figures
	}
	for i := range jobs.Jobs {
		switch j := &jobs.Jobs[i]; j.State {
		case api.JobPending:
			v.pending++
		case api.JobRunning, api.JobCompleting, api.JobReserved:
			v.running++
		}
	}
	if !a.document.Asked() {
		v.text(s.Out)
		return nil
	}
	style, err := a.document.Style(ctx, c, s)
	if err != nil {
		return err
	}
	style.Command = append([]string{"sdiag"}, args...)
	if style.Parser < document.V40 {
		return fmt.Errorf("Slurm %s has no --json of sdiag", style.Release) //nolint:staticcheck // a name begins it
	}
	return style.Write(s.Out, style.Around(document.Of("statistics", v.object(style.Parser)), time.Time{}))
}

func micros(d time.Duration) int64 { return d.Microseconds() }

// mean is that of the plans.
func (v *seen) mean() int64 { return micros(v.AllPlans) / max(v.Plans, 1) }

func (v *seen) perMinute() int64 { return v.Plans / max(1, int64(v.now.Sub(v.since)/time.Minute)) }

func moment(t time.Time) string {
	return fmt.Sprintf("%s (%d)", t.Local().Format("Mon Jan 02 15:04:05 2006"), t.Unix())
}

func (v *seen) text(w io.Writer) {
	const stars = "*******************************************************\n"
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p(stars+"sdiag output at %s\nData since      %s\n"+stars, moment(v.now), moment(v.since))
	p("Server thread count:  0\nAgent queue size:     0\nAgent count:          0\nAgent thread count:   0\nDBD Agent queue size: 0\n")
	p("Jobs submitted: %d\nJobs started:   %d\nJobs completed: %d\nJobs canceled:  %d\nJobs failed:    %d\n", v.Submitted, v.Started,
		v.Completed, v.Cancelled, v.Failed)
	p("Job states ts:  %s\nJobs pending:   %d\nJobs running:   %d", moment(v.now), v.pending, v.running)
	p("\nMain schedule statistics (microseconds):\n\tLast cycle:   %d\n\tMax cycle:    %d\n\tTotal cycles: %d", micros(v.LastPlan),
		micros(v.LongestPlan), v.Plans)
	if v.Plans > 0 {
		p("\tMean cycle:   %d\n\tMean depth cycle:  0", v.mean())
	}
	if v.now.Sub(v.since) >= time.Minute {
		p("\tCycles per minute: %d", v.perMinute())
	}
	p("\tLast queue length: %d", v.pending)
	p("\nBackfilling stats\n\tTotal backfilled jobs (since last slurm start): 0\n\tTotal backfilled jobs (since last stats cycle start): 0\n" +
		"\tTotal backfilled heterogeneous job components: 0")
	last := "N/A"
	if !v.LastPlanTime.IsZero() {
		last = moment(v.LastPlanTime)
	}
	p("\tTotal cycles: %d\n\tLast cycle when: %s\n\tLast cycle: %d\n\tMax cycle:  %d", v.Plans, last, micros(v.LastPlan),
		micros(v.LongestPlan))
	if v.Plans > 0 {
		p("\tMean cycle: %d", v.mean())
	}
	p("\tLast depth cycle: %d\n\tLast depth cycle (try sched): %d", v.pending, v.pending)
	if v.Plans > 0 {
		p("\tDepth Mean: 0\n\tDepth Mean (try depth): 0")
	}
	p("\tLast queue length: %d", v.pending)
	if v.Plans > 0 {
		p("\tQueue length mean: 0")
	}
	p("\tLast table size: 0")
	if v.Plans > 0 {
		p("\tMean table size: 0")
	}
	p("\nLatency for 1000 calls to gettimeofday(): 0 microseconds\n\nRemote Procedure Call statistics by message type\n\n" +
		"Remote Procedure Call statistics by user\n\nPending RPC statistics\n\tNo pending RPCs")
}

func (v *seen) object(p document.Parser) document.Object {
	none := func(names ...string) document.Object {
		o := document.Object{}
		for _, n := range names {
			o = append(o, document.Member{Key: n, Value: 0})
		}
		return o
	}
	// The queue's length is the depth to which one plan goes.
	return p.Members("parts_packed", 1, "req_time", document.At(v.now), "req_time_start", document.At(v.since), "server_thread_count", 0,
		"agent_queue_size", 0, "agent_count", 0, "agent_thread_count", 0, "dbd_agent_queue_size", 0, "gettimeofday_latency", 0,
		"schedule_cycle_max", micros(v.LongestPlan), "schedule_cycle_last", micros(v.LastPlan), document.Since(document.V41,
			"schedule_cycle_sum"), micros(v.AllPlans),
		"schedule_cycle_total", v.Plans, "schedule_cycle_mean", v.mean(), "schedule_cycle_mean_depth", 0, "schedule_cycle_per_minute",
		v.perMinute(),
		document.Since(document.V41, "schedule_cycle_depth"), 0, "schedule_queue_length", v.pending,
		"schedule_exit", none("end_job_queue", "default_queue_depth", "max_job_start", "max_rpc_cnt", "max_sched_time", "licenses"),
		"jobs_submitted", v.Submitted, "jobs_started", v.Started, "jobs_completed", v.Completed, "jobs_canceled", v.Cancelled, "jobs_failed",
		v.Failed,
		"jobs_pending", v.pending, "jobs_running", v.running, "job_states_ts", document.At(v.now), "bf_backfilled_jobs", 0,
		"bf_last_backfilled_jobs", 0,
		"bf_backfilled_het_jobs", 0, "bf_cycle_counter", v.Plans, "bf_cycle_mean", v.mean(), "bf_depth_mean", 0, "bf_depth_mean_try", 0,
		"bf_cycle_sum", micros(v.AllPlans), "bf_cycle_last", micros(v.LastPlan), document.Since(document.V41, "bf_cycle_max"),
		micros(v.LongestPlan),
		"bf_last_depth", v.pending, "bf_last_depth_try", v.pending, "bf_depth_sum", 0, "bf_depth_try_sum", 0, "bf_queue_len", v.pending,
		"bf_queue_len_mean", 0, "bf_queue_len_sum", 0, "bf_table_size", 0, document.Since(document.V41, "bf_table_size_sum"), 0,
		"bf_table_size_mean", 0,
		"bf_when_last_cycle", document.At(v.LastPlanTime), "bf_active", false,
		"bf_exit", none("end_job_queue", "bf_max_job_start", "bf_max_job_test", "bf_max_time", "bf_node_space_size", "state_changed"),
		"rpcs_by_message_type", []any{}, "rpcs_by_user", []any{},
		document.Since(document.V41, "pending_rpcs"), []any{}, document.Since(document.V41, "pending_rpcs_by_hostlist"), []any{})
}
