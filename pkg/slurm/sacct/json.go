package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/tres"
	"gangd/pkg/slurm/document"
)

type object = document.Object

// of makes an object of keys and values.
func of(pairs ...any) object { return document.Of(pairs...) }

// hetOf says which component of which heterogeneous job it is.
func hetOf(j *api.Job, p document.Parser) object {
	if j.Component == nil {
		return p.Members("job_id", 0, "job_offset", document.Number{})
	}
	return p.Members("job_id", j.JobID, "job_offset", document.Number{Value: *j.Component})
}

// documentOf is what `sacct --json` writes.
func documentOf(records []*record, style *document.Style) object {
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
			steps = append(steps, stepObject(records[i], style.Parser))
		}
		jobs = append(jobs, jobObject(r, steps, style.Parser))
	}
	return style.Accounting("jobs", jobs, document.Member{Key: "gangd", Value: of("version", api.Version)})
}

func jobObject(r *record, steps []any, p document.Parser) object {
	j := r.job
	since, until := document.Since, document.Until
	file := func(which string) string { return jobfield.Squeue.Name(which).Text(&jobfield.Row{Job: j}) }
	return p.Members(
		"account", j.Account,
		"comment", of("administrator", text(p, ""), "job", text(p, j.Comment), "system", text(p, r.why())),
		"allocation_nodes", allocated(r),
		"array", arrayObject(r, p),
		"association", p.Members("account", j.Account, "cluster", cmdline.Cluster, "partition", text(p, ""), "user", j.User,
			since(document.V40, "id"), 0),
		since(document.V40, "block"), "",
		"cluster", cmdline.Cluster,
		"constraints", j.Constraint,
		"container", text(p, ""),
		"derived_exit_code", exitObject(r.derived(), false),
		"time", jobTimes(r, p),
		"exit_code", exitObject(r.exit(), r.waits()),
		since(document.V40, "extra"), jobfield.Note("Extra", j), since(document.V40, "failed_node"), "",
		"flags", []any{},
		"group", groupName(j.GID),
		"het", hetOf(j, p),
		"job_id", j.ID(),
		"name", j.Name,
		since(document.V40, "licenses"), jobfield.Note("Licenses", j),
		"mcs", of("label", ""),
		"nodes", nodeList(r),
		"partition", j.Partition,
		since(document.V40, "hold"), j.Held != "",
		"priority", document.Number{Value: jobfield.SlurmPriority(j)},
		"qos", "", since(document.V42, "qosreq"), "",
		"required", p.Members("CPUs", r.cpus(), until(document.V40, "memory"), r.requested().Memory>>20,
			since(document.V40, "memory_per_cpu"), document.Number{}, since(document.V40, "memory_per_node"),
			document.Number{Value: r.requested().Memory >> 20}),
		"kill_request_user", killer(r, p),
		since(document.V42, "restart_cnt"), j.RestartCount,
		"reservation", p.Members("id", 0, until(document.V40, "name"), 0, since(document.V40, "name"), j.Reservation),
		since(document.V40, "script"), "",
		since(document.V42, "stdin_expanded"), file("stdin"), since(document.V42, "stdout_expanded"), file("stdout"),
		since(document.V42, "stderr_expanded"), file("stderr"),
		since(document.V42, "stdout"), j.StdOut, since(document.V42, "stderr"), j.StdErr, since(document.V42, "stdin"), j.StdIn,
		"state", of("current", document.Flags{r.plainState()}, "reason", waitReason(r)),
		"steps", steps,
		since(document.V40, "submit_line"), "",
		"tres", of("allocated", allocatedList(r, p), "requested", tresList(r.requested(), p)),
		since(document.V40, "used_gres"), "",
		"user", j.User,
		"wckey", of("wckey", "", "flags", []any{}),
		"working_directory", j.WorkDir,
	)
}

func stepObject(r *record, p document.Parser) object {
	s := r.step
	since, until := document.Since, document.Until
	nothing := of("max", []any{}, "min", []any{}, "average", []any{}, "total", []any{})
	id := any(s.StepID)
	if p >= document.V40 {
		id = fmt.Sprint(r.job.JobID, ".", s.StepID)
	}
	return of(
		"nodes", of("list", document.Texts(s.Nodes), "count", len(s.Nodes), "range", hostlist.Compress(s.Nodes)),
		"tres", of("requested", nothing, "consumed", slices.Clone(nothing), "allocated", allocatedList(r, p)),
		"time", stepTimes(r, p),
		"exit_code", exitObject(r.exit(), s.EndTime.IsZero()),
		"tasks", of("count", s.Tasks),
		"pid", text(p, ""),
		"CPU", p.Members("requested_frequency", of("min", document.Number{Value: 0}, "max", document.Number{Value: 0}),
			until(document.V40, "governor"), []any{}, since(document.V40, "governor"), "0"),
		"kill_request_user", text(p, ""),
		"state", document.Flags{r.plainState()},
		"statistics", of("CPU", of("actual_frequency", 0), "energy", of("consumed", document.Number{Value: 0}), "max_rss_bytes", s.MaxRSS),
		"step", p.Members(until(document.V40, "job_id"), r.job.JobID, until(document.V40, "het"), of("component", nil), "id", id, "name", s.Name),
		"task", of("distribution", "Unknown"),
	)
}

// text is a text, of which older parsers write null where it is empty.
func text(p document.Parser, s string) any {
	if s == "" && p < document.V40 {
		return nil
	}
	return s
}

func allocated(r *record) int64 {
	n, _ := strconv.ParseInt(allocNodes(r), 10, 64) // ours, always a number
	return n
}

func arrayObject(r *record, p document.Parser) object {
	j := r.job
	var job int64
	var id any
	task := text(p, "")
	switch {
	case j.ArrayIndex == nil:
	case r.folded != nil:
		job, task = j.ArrayJobID, jobfield.IndexRanges(r.folded)
	default:
		job, id = j.ArrayJobID, *j.ArrayIndex
	}
	return of("job_id", job, "limits", of("max", of("running", of("tasks", j.ArrayLimit))), "task", task, "task_id",
		document.Number{Value: id})
}

func exitObject(exit string, pending bool) document.Exit {
	c, g, _ := strings.Cut(exit, ":")
	code, _ := strconv.Atoi(c)
	signal, _ := strconv.Atoi(g)
	e := document.Exit{Code: code, Signal: signal, Pending: pending, Name: cmdline.SignalOf(signal)}
	switch {
	case pending:
		e.Plain = of("status", "PENDING", "return_code", 0)
	case signal != 0:
		e.Plain = of("status", "SIGNALED", "return_code", nil, "signal", of("signal_id", signal, "name", signalName(signal)))
	case code != 0:
		e.Plain = of("status", "ERROR", "return_code", code)
	default:
		e.Plain = of("status", "SUCCESS", "return_code", 0)
	}
	return e
}

// signalName is what the C library calls a signal: Go's words with a capital.
func signalName(n int) string {
	s := syscall.Signal(n).String()
	return strings.ToUpper(s[:1]) + s[1:]
}

func split(s float64) object {
	return of("seconds", int64(s), "microseconds", int64((s-float64(int64(s)))*1e6))
}

func jobTimes(r *record, p document.Parser) object {
	limit := any(document.Infinite{})
	if m := r.job.TimeLimitSeconds; m > 0 {
		limit = document.Number{Value: (m + 59) / 60}
	}
	planned := int64(0)
	if at := r.start(); !at.IsZero() {
		planned = max(0, int64(at.Sub(r.eligibleTime())/time.Second))
	}
	cpu := 0.0
	if r.attempt != nil {
		cpu = usedCPU(r.attempt)
	}
	return p.Members(
		"elapsed", seconds(r.elapsed()), "eligible", document.Time(r.eligibleTime()), "end", document.Time(r.endTime()), "start",
		document.Time(r.start()),
		document.Since(document.V42, "planned"), document.Number{Value: planned},
		"submission", document.Time(r.job.SubmitTime), "suspended", 0, "limit", limit,
		"system", split(0), "user", split(0), "total", split(cpu),
	)
}

func stepTimes(r *record, p document.Parser) object {
	return p.Members(
		"elapsed", seconds(r.elapsed()), document.Until(document.V40, "end"), document.Time(r.endTime()), document.Until(document.V40, "start"),
		document.Time(r.start()),
		document.Since(document.V40, "end"), document.At(r.endTime()), document.Since(document.V40, "start"), document.At(r.start()), "suspended",
		0,
		"system", split(0), "user", split(0), "total", split(r.step.CPUTime),
	)
}

// killer is the name of who cancelled.
func killer(r *record, p document.Parser) any {
	if name := r.job.CancelledBy; name != "" && r.plainState() == string(api.JobCancelled) {
		return name
	}
	return text(p, "")
}

func allocatedList(r *record, p document.Parser) []any {
	t, ok := r.allocated()
	if !ok {
		return []any{}
	}
	return tresList(t, p)
}

// tresList is Slurm's list of resources, with its ids; memory in MiB.
func tresList(t tres.Amount, p document.Parser) []any {
	one := func(kind string, name any, id int, count int64) object {
		return of("type", kind, "name", name, "id", id, "count", count)
	}
	out := []any{one("cpu", text(p, ""), 1, t.CPUs)}
	if t.Memory > 0 {
		out = append(out, one("mem", text(p, ""), 2, t.Memory>>20))
	}
	out = append(out, one("node", text(p, ""), 4, t.Nodes))
	if t.Billing {
		out = append(out, one("billing", text(p, ""), 5, t.CPUs))
	}
	if t.GPUs > 0 {
		out = append(out, one("gres", "gpu", 1001, t.GPUs))
	}
	return out
}
