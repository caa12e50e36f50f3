package squeue

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm/document"
)

// dump is --json and --yaml: the jobs that were chosen, of 22.05 all in memory whatever else is said, as
// its squeue does.
func (q *squeue) dump(ctx context.Context, c *client.Client) error {
	style, err := q.document.Style(ctx, c, q.Streams)
	if err != nil {
		return err
	}
	style.Command = append([]string{"squeue"}, q.args...)
	query := api.JobQuery{All: true}
	if style.Parser >= document.V40 {
		query = q.Query
	}
	query.NoRanks, query.Start = true, true
	var jobs []api.Job
	if style.Parser < document.V40 || !q.nothing() {
		reply, err := c.Jobs(ctx, &query)
		if err != nil {
			return q.notLoaded(err)
		}
		jobs = api.Split(reply.Jobs)
	}
	if style.Parser >= document.V40 {
		jobs = slices.DeleteFunc(jobs, func(j api.Job) bool { return !q.chosen(&j) })
	}
	var list []document.Object
	rows := jobfield.Fold{Expand: style.Parser >= document.V40 && q.elements()}.Rows(jobs)
	for i := range rows {
		list = append(list, JobObject(&rows[i], style.Parser))
	}
	return style.Write(q.Out, style.Envelope("jobs", list, jobfield.Now()))
}

// orNil is a number that null stands for where it was not given.
func orNil[T int | int64](n T) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}

// JobObject is a job with the members of a data parser, in Slurm's order. What gangd has nothing of is
// as Slurm has it where the feature is not used.
func JobObject(r *jobfield.Row, p document.Parser) document.Object {
	text := func(letter byte) string {
		if s := jobfield.Squeue.Letter(letter).Text(r); s != "(null)" && s != "N/A" && s != "n/a" {
			return s
		}
		return ""
	}
	named := func(name string) string { return jobfield.Squeue.Name(name).Text(r) }
	since, until := document.Since, document.Until
	none := document.Number{}
	exit := waitStatus(r)
	ended := document.Exit{Code: int(exit >> 8), Signal: int(exit & 0x7f), Name: cmdline.SignalOf(int(exit & 0x7f)), Plain: exit}
	perNode, cards := text('b'), "gres:gpu"
	if p >= document.V40 {
		perNode, cards = strings.Replace(perNode, "gres:", "gres/", 1), "gres/gpu"
	}
	asked := jobfield.TRES(r.Job, cards)
	het, hetSet, hetOffset, offset := int64(0), "", none, 0
	if r.Component != nil {
		het, hetSet, offset = r.JobID, cmp.Or(r.ComponentIDs, strconv.FormatInt(r.JobID, 10)), *r.Component
		hetOffset = document.Number{Value: offset}
	}
	o := p.Members(
		"account", r.Account, "accrue_time", document.At(jobfield.Eligible(r)), "admin_comment", "", since(document.V40, "allocating_node"),
		r.SubmitHost,
		"array_job_id", document.Number{Value: r.ArrayJobID}, "array_task_id", document.Number{Value: arrayTaskID(r)},
		"array_max_tasks", document.Number{Value: r.ArrayLimit},
		"array_task_string", arrayTaskString(r), "association_id", 0, "batch_features", "", "batch_flag", !r.Allocation,
		"batch_host", text('B'), "flags", []any{}, "burst_buffer", "", "burst_buffer_state", "", "cluster", cmdline.Cluster,
		"cluster_features", "", "command", jobfield.Command(r.Job), "comment", jobfield.Note("Comment", r.Job), "container", "",
		since(document.V40, "container_id"), "", "contiguous", false,
		"core_spec", nil, "thread_spec", nil, "cores_per_socket", none, "billable_tres", document.Number{Value: float64(jobfield.CPUs(r))},
		"cpus_per_task", document.Number{Value: orNil(r.CPUsPerRank)}, "cpu_frequency_minimum", none, "cpu_frequency_maximum", none,
		"cpu_frequency_governor", none, "cpus_per_tres", asked["CpusPerTres"], since(document.V40, "cron"), "", "deadline",
		document.At(r.Deadline), "delay_boot", document.Number{Value: 0},
		"dependency", r.Dependency, "derived_exit_code", document.Exit{Plain: 0}, "eligible_time", document.At(jobfield.Eligible(r)),
		"end_time", document.At(jobfield.ExpectedEnd(r)), "excluded_nodes", hostlist.Compress(r.Exclude), "exit_code", ended,
		since(document.V40, "extra"), jobfield.Note("Extra", r.Job), since(document.V40, "failed_node"), "",
		"features", r.Constraint, "federation_origin", "", "federation_siblings_active", "", "federation_siblings_viable", "",
		"gres_detail", []any{}, "group_id", int64(r.GID), "group_name", jobfield.GroupName(r.GID),
		since(document.V40, "het_job_id"), document.Number{Value: het}, since(document.V40, "het_job_id_set"), hetSet,
		since(document.V40, "het_job_offset"), hetOffset,
		"job_id", jobfield.JobID(r),
	)
	if len(r.Nodes) > 0 {
		o = append(o, document.Member{Key: "job_resources", Value: resources(r, p)})
	} else if p >= document.V40 {
		o = append(o, document.Member{Key: "job_resources", Value: nil})
	}
	return append(o, p.Members(
		since(document.V40, "job_size_str"), []any{}, "job_state", document.Flags{jobfield.SlurmState(r.Job)}, "last_sched_evaluation",
		document.Number{Value: 0}, "licenses", jobfield.Note("Licenses", r.Job),
		since(document.V40, "mail_type"), []any{}, since(document.V40, "mail_user"), "", "max_cpus", document.Number{Value: 0},
		"max_nodes", document.Number{Value: 0}, "mcs_label", "", "memory_per_tres", asked["MemPerTres"], "name", r.Name,
		since(document.V40, "network"), "",
		"nodes", hostlist.Compress(r.Nodes),
		until(document.V40, "nice"), orNil(r.Nice), since(document.V40, "nice"), r.Nice, "tasks_per_core", none,
		since(document.V40, "tasks_per_tres"), none,
		"tasks_per_node", document.Number{Value: r.RanksPerNode}, "tasks_per_socket", none,
		"tasks_per_board", document.Number{Value: 0}, "cpus", document.Number{Value: jobfield.CPUs(r)}, "node_count",
		document.Number{Value: jobfield.NodeCount(r)},
		"tasks", document.Number{Value: r.Tasks()},
		until(document.V40, "het_job_id"), het, until(document.V40, "het_job_id_set"), hetSet, until(document.V40, "het_job_offset"), offset,
		"partition", r.Partition, "prefer", r.Prefer,
		"memory_per_node", document.Number{Value: orNil(jobfield.MemoryPerNode(r) >> 20)}, "memory_per_cpu", none,
		"minimum_cpus_per_node", document.Number{Value: number(text('c'))}, "minimum_tmp_disk_per_node",
		document.Number{Value: r.TmpPerNode >> 20},
		document.Key{Name: "power", Since: document.V40, Last: document.V41}, document.Of("flags", []any{}),
		"preempt_time", document.Number{Value: 0}, since(document.V40, "preemptable_time"), document.Number{Value: 0}, "pre_sus_time",
		document.Number{Value: 0},
		since(document.V40, "hold"), r.Held != "", "priority", document.Number{Value: jobfield.SlurmPriority(r.Job)},
		since(document.V42, "priority_by_partition"), []any{}, until(document.V40, "profile"), nil, since(document.V40, "profile"),
		document.Flags{"NOT_SET"}, "qos", "", "reboot", false,
		"required_nodes", hostlist.Compress(r.NodeList),
		document.Key{Name: "minimum_switches", Since: document.V40, Last: document.V41}, r.Switches, since(document.V42, "required_switches"),
		r.Switches,
		"requeue", jobfield.Requeues(r.Job), "resize_time", document.Number{Value: 0}, "restart_cnt", r.RestartCount,
		"resv_name", r.Reservation, since(document.V40, "scheduled_nodes"), "", since(document.V40, "selinux_context"), "",
		until(document.V40, "shared"), shared(r), since(document.V40, "shared"), sharedFlags(r),
		document.Key{Name: "exclusive", Since: document.V40, Last: document.V41}, exclusive(r), document.Key{Name: "oversubscribe",
			Since: document.V40, Last: document.V41}, r.Share,
		until(document.V40, "show_flags"), document.Texts([]string{"SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"}),
		document.Key{Name: "show_flags", Since: document.V40, Last: document.V41}, document.Texts([]string{"ALL", "DETAIL", "LOCAL"}),
		"sockets_per_board", 0, "sockets_per_node", none, "start_time", document.At(jobfield.Started(r)), "state_description", "",
		"state_reason", cmp.Or(r.Reason, "None"), "standard_error", named("stderr"), "standard_input", named("stdin"),
		"standard_output", named("stdout"), "submit_time", document.At(r.SubmitTime), "suspend_time", document.Number{Value: 0}, "system_comment",
		"",
		"time_limit", limit(r.TimeLimitSeconds), "time_minimum", document.Number{Value: (r.TimeMinSeconds + 59) / 60},
		"threads_per_core", none, "tres_bind", asked["TresBind"], "tres_freq", asked["TresFreq"], "tres_per_job", asked["TresPerJob"],
		"tres_per_node", perNode,
		"tres_per_socket", asked["TresPerSocket"], "tres_per_task", asked["TresPerTask"], "tres_req_str", named("tres-alloc"), "tres_alloc_str",
		allocated(r, named("tres-alloc")),
		"user_id", int64(r.UID), "user_name", r.User, since(document.V40, "maximum_switch_wait_time"), 0, "wckey", "",
		"current_working_directory", r.WorkDir,
	)...)
}

// limit is a time limit in minutes.
func limit(seconds int64) any {
	if seconds == 0 {
		return document.Infinite{}
	}
	return document.Number{Value: (seconds + 59) / 60}
}

func exclusive(r *jobfield.Row) any {
	if r.Exclusive {
		return document.Flags{"true"}
	}
	return []any{}
}

func sharedFlags(r *jobfield.Row) any {
	switch {
	case r.Exclusive:
		return document.Flags{"none"}
	case r.Share:
		return document.Flags{"oversubscribe"}
	}
	return []any{}
}

func arrayTaskID(r *jobfield.Row) any {
	if r.ArrayIndex == nil || r.Folded != nil {
		return nil
	}
	return *r.ArrayIndex
}

// arrayTaskString is the elements that one object stands for.
func arrayTaskString(r *jobfield.Row) string {
	if r.Folded == nil {
		return ""
	}
	return jobfield.Squeue.Letter('K').Text(r)
}

func shared(r *jobfield.Row) any {
	switch {
	case r.Exclusive:
		return "none"
	case r.Share:
		return "shared"
	}
	return nil
}

func allocated(r *jobfield.Row, tres string) string {
	if len(r.Nodes) == 0 {
		return ""
	}
	return tres
}

func waitStatus(r *jobfield.Row) int64 { return number(jobfield.Squeue.Name("exit_code").Text(r)) }

func number(s string) int64 {
	n := int64(0)
	for _, c := range s {
		if c < '0' || c > '9' {
			return n
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// resources is where the job is: nodes and CPUs; which cores, gangd leaves to the kernel.
func resources(r *jobfield.Row, p document.Parser) document.Object {
	var nodes []any
	count := jobfield.NodeCount(r)
	each := jobfield.CPUs(r) / count
	memory := jobfield.MemoryPerNode(r) >> 20
	for _, n := range r.Nodes {
		if p >= document.V41 {
			nodes = append(nodes, document.Of("index", len(nodes), "name", n, "cpus", document.Of("count", each, "used", each),
				"memory", document.Of("used", 0, "allocated", memory), "sockets", []any{}))
			continue
		}
		nodes = append(nodes, document.Of("sockets", document.Of(), "nodename", n, "cpus_used", each, "memory_used", 0, "memory_allocated",
			memory))
	}
	list := hostlist.Compress(r.Nodes)
	switch {
	case p >= document.V41:
		return document.Of("select_type", document.Flags{"CPU", "MEMORY"}, "nodes", document.Of("count", count, "select_type",
			document.Flags{"AVAILABLE"},
			"list", list, "whole", r.Exclusive, "allocation", nodes), "cpus", jobfield.CPUs(r), "threads_per_core", document.Number{})
	case p >= document.V40:
		return document.Of("nodes", list, "allocated_cores", jobfield.CPUs(r), "allocated_cpus", 0, "allocated_hosts", count, "allocated_nodes",
			nodes)
	}
	return document.Of("nodes", list, "allocated_cores", jobfield.CPUs(r), "allocated_hosts", count, "allocated_nodes", nodes)
}
