package squeue

import (
	"cmp"
	"context"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/hostlist"
	"gangd/pkg/slurm/document"
	"gangd/pkg/table/jobfield"
)

// dump is --json and --yaml: all jobs in memory, whatever else is chosen, as squeue does.
func (q *squeue) dump(ctx context.Context, c *client.Client) error {
	reply, err := c.Jobs(ctx, &api.JobQuery{All: true, NoRanks: true, Start: true})
	if err != nil {
		return q.notLoaded(err)
	}
	var list []document.Object
	rows := jobfield.Fold{}.Rows(reply.Jobs)
	for i := range rows {
		list = append(list, jobObject(&rows[i]))
	}
	o := document.Envelope("jobs", list)
	return document.Write(q.Out, o, q.yaml)
}

// orNil is a number that null stands for where it was not given.
func orNil[T int | int64](n T) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}

// jobObject is a job with the members of v0.0.38, in its order. What gangd has nothing of is
// as Slurm has it where the feature is not used.
func jobObject(r *jobfield.Row) document.Object {
	text := func(letter byte) string {
		if s := jobfield.Squeue.Letter(letter).Text(r); s != "(null)" && s != "N/A" && s != "n/a" {
			return s
		}
		return ""
	}
	named := func(name string) string { return jobfield.Squeue.Name(name).Text(r) }
	o := document.Of(
		"account", r.Account, "accrue_time", document.Time(jobfield.Eligible(r)), "admin_comment", "",
		"array_job_id", r.ArrayJobID, "array_task_id", arrayTaskID(r), "array_max_tasks", r.ArrayLimit,
		"array_task_string", arrayTaskString(r), "association_id", 0, "batch_features", "", "batch_flag", true,
		"batch_host", text('B'), "flags", []any{}, "burst_buffer", "", "burst_buffer_state", "", "cluster", "gangd",
		"cluster_features", "", "command", jobfield.Command(r.Job), "comment", r.Comment, "container", "", "contiguous", false,
		"core_spec", nil, "thread_spec", nil, "cores_per_socket", nil, "billable_tres", float64(jobfield.CPUs(r)),
		"cpus_per_task", orNil(r.CPUsPerRank), "cpu_frequency_minimum", nil, "cpu_frequency_maximum", nil,
		"cpu_frequency_governor", nil, "cpus_per_tres", "", "deadline", document.Time(r.Deadline), "delay_boot", 0,
		"dependency", r.Dependency, "derived_exit_code", 0, "eligible_time", document.Time(jobfield.Eligible(r)),
		"end_time", document.Time(jobfield.ExpectedEnd(r)), "excluded_nodes", hostlist.Compress(r.Exclude), "exit_code", waitStatus(r),
		"features", r.Constraint, "federation_origin", "", "federation_siblings_active", "", "federation_siblings_viable", "",
		"gres_detail", []any{}, "group_id", int64(r.GID), "group_name", jobfield.GroupName(r.GID), "job_id", jobfield.JobID(r),
	)
	if len(r.Nodes) > 0 {
		o = append(o, document.Member{Key: "job_resources", Value: resources(r)})
	}
	return append(o, document.Of(
		"job_state", jobfield.SlurmState(r.State), "last_sched_evaluation", 0, "licenses", "", "max_cpus", 0,
		"max_nodes", 0, "mcs_label", "", "memory_per_tres", "", "name", r.Name, "nodes", hostlist.Compress(r.Nodes),
		"nice", orNil(r.Nice), "tasks_per_core", nil, "tasks_per_node", r.RanksPerNode, "tasks_per_socket", nil,
		"tasks_per_board", 0, "cpus", jobfield.CPUs(r), "node_count", jobfield.NodeCount(r), "tasks", r.Size,
		"het_job_id", 0, "het_job_id_set", "", "het_job_offset", 0, "partition", r.Partition, "prefer", r.Prefer,
		"memory_per_node", orNil(r.MemoryBytes*int64(max(r.RanksPerNode, 1))>>20), "memory_per_cpu", nil,
		"minimum_cpus_per_node", number(text('c')), "minimum_tmp_disk_per_node", 0, "preempt_time", 0, "pre_sus_time", 0,
		"priority", jobfield.SlurmPriority(r.Job), "profile", nil, "qos", "", "reboot", false,
		"required_nodes", hostlist.Compress(r.NodeList), "requeue", true, "resize_time", 0, "restart_cnt", r.RestartCount,
		"resv_name", r.Reservation, "shared", shared(r), "show_flags", document.Texts([]string{"SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"}),
		"sockets_per_board", 0, "sockets_per_node", nil, "start_time", document.Time(jobfield.Started(r)), "state_description", "",
		"state_reason", cmp.Or(r.Reason, "None"), "standard_error", named("stderr"), "standard_input", named("stdin"),
		"standard_output", named("stdout"), "submit_time", document.Time(r.SubmitTime), "suspend_time", 0, "system_comment", "",
		"time_limit", orNil((r.TimeLimitSeconds+59)/60), "time_minimum", (r.TimeMinSeconds+59)/60,
		"threads_per_core", nil, "tres_bind", "", "tres_freq", "", "tres_per_job", "", "tres_per_node", text('b'),
		"tres_per_socket", "", "tres_per_task", "", "tres_req_str", named("tres-alloc"), "tres_alloc_str", allocated(r, named("tres-alloc")),
		"user_id", int64(r.UID), "user_name", r.User, "wckey", "", "current_working_directory", r.WorkDir,
	)...)
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
func resources(r *jobfield.Row) document.Object {
	var nodes []any
	count := jobfield.NodeCount(r)
	each := jobfield.CPUs(r) / count
	seen := map[string]bool{}
	for _, n := range r.Nodes {
		if seen[n] {
			continue
		}
		seen[n] = true
		nodes = append(nodes, document.Of("sockets", document.Of(), "nodename", n, "cpus_used", each, "memory_used", 0,
			"memory_allocated", r.MemoryBytes*int64(max(r.RanksPerNode, 1))>>20))
	}
	return document.Of("nodes", hostlist.Compress(r.Nodes), "allocated_cores", jobfield.CPUs(r), "allocated_hosts", count, "allocated_nodes", nodes)
}
