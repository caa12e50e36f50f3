package sacct

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"gangd/pkg/api"
	"gangd/pkg/cmdline"
	"gangd/pkg/hostlist"
	"gangd/pkg/slurm/document"
	"gangd/pkg/table/jobfield"
	"gangd/pkg/table/tres"
)

type object = document.Object

// of makes an object of keys and values.
func of(pairs ...any) object { return document.Of(pairs...) }

// documentOf is what `sacct --json` of 22.05 (its dbv0.0.38) writes.
func documentOf(records []*record) object {
	jobs := []any{}
	for i := 0; i < len(records); {
		r, steps := records[i], []any{}
		if r.isJob() {
			i++
		} else { // a step that was asked for by its number: within its job
			whole := *r
			whole.step = nil
			r = &whole
		}
		for ; i < len(records) && !records[i].isJob() && records[i].attempt == r.attempt; i++ {
			steps = append(steps, stepObject(records[i]))
		}
		jobs = append(jobs, jobObject(r, steps))
	}
	return of("meta", meta(), "errors", []any{}, "jobs", jobs)
}

// meta says who answers: Slurm's version, in Slurm's place.
func meta() object {
	var major, minor, micro int
	_, _ = fmt.Sscanf(cmdline.Compatible, "%d.%d.%d", &major, &minor, &micro) // a constant of ours
	return of(
		"plugin", of("type", "openapi/dbv0.0.38", "name", "Slurm OpenAPI DB v0.0.38"),
		"Slurm", of("version", of("major", major, "micro", micro, "minor", minor), "release", cmdline.Compatible),
		"gangd", of("version", api.Version),
	)
}

func jobObject(r *record, steps []any) object {
	j := r.job
	return of(
		"account", j.Account,
		"comment", of("administrator", nil, "job", orNil(j.Comment), "system", nil),
		"allocation_nodes", allocated(r),
		"array", arrayObject(r),
		"association", of("account", j.Account, "cluster", cmdline.Cluster, "partition", nil, "user", j.User),
		"cluster", cmdline.Cluster,
		"constraints", j.Constraint,
		"container", nil,
		"derived_exit_code", exitObject(r.derived(), false),
		"time", jobTimes(r),
		"exit_code", exitObject(r.exit(), r.waits()),
		"flags", []any{},
		"group", groupName(j.GID),
		"het", of("job_id", 0, "job_offset", nil),
		"job_id", j.JobID,
		"name", j.Name,
		"mcs", of("label", ""),
		"nodes", nodeList(r),
		"partition", j.Partition,
		"priority", jobfield.SlurmPriority(j),
		"qos", "",
		"required", of("CPUs", r.cpus(), "memory", r.requested().Memory>>20),
		"kill_request_user", killer(r),
		"reservation", of("id", 0, "name", 0),
		"state", of("current", r.plainState(), "reason", waitReason(r)),
		"steps", steps,
		"tres", of("allocated", allocatedList(r), "requested", tresList(r.requested())),
		"user", j.User,
		"wckey", of("wckey", "", "flags", []any{}),
		"working_directory", j.WorkDir,
	)
}

func stepObject(r *record) object {
	s := r.step
	nothing := of("max", []any{}, "min", []any{}, "average", []any{}, "total", []any{})
	return of(
		"nodes", of("list", document.Texts(s.Nodes), "count", len(s.Nodes), "range", hostlist.Compress(s.Nodes)),
		"tres", of("requested", nothing, "consumed", nothing, "allocated", allocatedList(r)),
		"time", stepTimes(r),
		"exit_code", exitObject(r.exit(), s.EndTime.IsZero()),
		"tasks", of("count", s.Tasks),
		"pid", nil,
		"CPU", of("requested_frequency", of("min", 0, "max", 0), "governor", []any{}),
		"kill_request_user", nil,
		"state", r.plainState(),
		"statistics", of("CPU", of("actual_frequency", 0), "energy", of("consumed", 0), "max_rss_bytes", s.MaxRSS),
		"step", of("job_id", r.job.JobID, "het", of("component", nil), "id", s.StepID, "name", s.Name),
		"task", of("distribution", "Unknown"),
	)
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func allocated(r *record) int64 {
	n, _ := strconv.ParseInt(allocNodes(r), 10, 64) // ours, always a number
	return n
}

func arrayObject(r *record) object {
	j := r.job
	var job int64
	var task, id any
	switch {
	case j.ArrayIndex == nil:
	case r.folded != nil:
		job, task = j.ArrayJobID, jobfield.IndexRanges(r.folded)
	default:
		job, id = j.ArrayJobID, *j.ArrayIndex
	}
	return of("job_id", job, "limits", of("max", of("running", of("tasks", j.ArrayLimit))), "task", task, "task_id", id)
}

func exitObject(exit string, pending bool) object {
	c, g, _ := strings.Cut(exit, ":")
	code, _ := strconv.Atoi(c)
	signal, _ := strconv.Atoi(g)
	switch {
	case pending:
		return of("status", "PENDING", "return_code", 0)
	case signal != 0:
		return of("status", "SIGNALED", "return_code", nil, "signal", of("signal_id", signal, "name", signalName(signal)))
	case code != 0:
		return of("status", "ERROR", "return_code", code)
	}
	return of("status", "SUCCESS", "return_code", 0)
}

// signalName is what the C library calls a signal: Go's words with a capital.
func signalName(n int) string {
	s := syscall.Signal(n).String()
	return strings.ToUpper(s[:1]) + s[1:]
}

func split(s float64) object {
	return of("seconds", int64(s), "microseconds", int64((s-float64(int64(s)))*1e6))
}

func jobTimes(r *record) object {
	var limit any
	if m := r.job.TimeLimitSeconds; m > 0 {
		limit = (m + 59) / 60
	}
	cpu := 0.0
	if r.attempt != nil {
		for i := range r.attempt.Steps {
			if s := &r.attempt.Steps[i]; s.StepID != api.StepExtern {
				cpu += s.CPUTime
			}
		}
	}
	return of(
		"elapsed", seconds(r.elapsed()), "eligible", document.Time(r.eligibleTime()), "end", document.Time(r.endTime()), "start", document.Time(r.start()),
		"submission", document.Time(r.job.SubmitTime), "suspended", 0, "limit", limit,
		"system", split(0), "user", split(0), "total", split(cpu),
	)
}

func stepTimes(r *record) object {
	return of(
		"elapsed", seconds(r.elapsed()), "end", document.Time(r.endTime()), "start", document.Time(r.start()), "suspended", 0,
		"system", split(0), "user", split(0), "total", split(r.step.CPUTime),
	)
}

// killer is the name of who cancelled.
func killer(r *record) any {
	if name := r.job.CancelledBy; name != "" && r.plainState() == string(api.JobCancelled) {
		return name
	}
	return nil
}

func allocatedList(r *record) []any {
	t, ok := r.allocated()
	if !ok {
		return []any{}
	}
	return tresList(t)
}

// tresList is Slurm's list of resources, with its ids; memory in MiB.
func tresList(t tres.Amount) []any {
	one := func(kind string, name any, id int, count int64) object {
		return of("type", kind, "name", name, "id", id, "count", count)
	}
	out := []any{one("cpu", nil, 1, t.CPUs)}
	if t.Memory > 0 {
		out = append(out, one("mem", nil, 2, t.Memory>>20))
	}
	out = append(out, one("node", nil, 4, t.Nodes))
	if t.Billing {
		out = append(out, one("billing", nil, 5, t.CPUs))
	}
	if t.GPUs > 0 {
		out = append(out, one("gres", "gpu", 1001, t.GPUs))
	}
	return out
}
