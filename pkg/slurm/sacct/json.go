package sacct

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/hostlist"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/tres"
)

// object is a JSON object; encoding/json writes its keys in order of the alphabet.
type object = map[string]any

// writeJSON writes what `sacct --json` of 22.05 (its dbv0.0.38) writes.
func writeJSON(w io.Writer, records []*record) error {
	jobs := []object{}
	var steps []object
	for _, r := range records {
		if r.isJob() {
			if len(jobs) > 0 {
				jobs[len(jobs)-1]["steps"] = nonNil(steps)
			}
			jobs, steps = append(jobs, jobObject(r)), nil
			continue
		}
		steps = append(steps, stepObject(r))
	}
	if len(jobs) > 0 {
		jobs[len(jobs)-1]["steps"] = nonNil(steps)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(object{"meta": meta(), "errors": []any{}, "jobs": jobs})
}

func nonNil(list []object) []object {
	if list == nil {
		return []object{}
	}
	return list
}

// meta says who answers: Slurm's version, in Slurm's place.
func meta() object {
	var major, minor, micro int
	_, _ = fmt.Sscanf(slurm.Compatible, "%d.%d.%d", &major, &minor, &micro) // a constant of ours
	return object{
		"plugin": object{"type": "openapi/dbv0.0.38", "name": "Slurm OpenAPI DB v0.0.38"},
		"Slurm":  object{"version": object{"major": major, "micro": micro, "minor": minor}, "release": slurm.Compatible},
		"gangd":  object{"version": api.Version},
	}
}

func jobObject(r *record) object {
	j := r.job
	return object{
		"account":           j.Account,
		"comment":           object{"administrator": nil, "job": orNil(j.Comment), "system": nil},
		"allocation_nodes":  allocated(r),
		"array":             arrayObject(r),
		"association":       object{"account": j.Account, "cluster": slurm.Cluster, "partition": nil, "user": j.User},
		"cluster":           slurm.Cluster,
		"constraints":       j.Constraint,
		"container":         nil,
		"derived_exit_code": exitObject(r.derived(), false),
		"time":              jobTimes(r),
		"exit_code":         exitObject(r.exit(), r.waits()),
		"flags":             []any{},
		"group":             groupName(j.GID),
		"het":               object{"job_id": 0, "job_offset": nil},
		"job_id":            j.JobID,
		"name":              j.Name,
		"mcs":               object{"label": ""},
		"nodes":             nodeList(r),
		"partition":         j.Partition,
		"priority":          j.Priority,
		"qos":               "",
		"required":          object{"CPUs": r.cpus(), "memory": r.requested().Memory >> 20},
		"kill_request_user": killer(r),
		"reservation":       object{"id": 0, "name": 0},
		"state":             object{"current": r.plainState(), "reason": waitReason(r)},
		"steps":             []object{},
		"tres":              object{"allocated": allocatedList(r), "requested": tresList(r.requested())},
		"user":              j.User,
		"wckey":             object{"wckey": "", "flags": []any{}},
		"working_directory": j.WorkDir,
	}
}

func stepObject(r *record) object {
	s := r.step
	nothing := object{"max": []any{}, "min": []any{}, "average": []any{}, "total": []any{}}
	return object{
		"nodes":             object{"list": s.Nodes, "count": len(s.Nodes), "range": hostlist.Compress(s.Nodes)},
		"tres":              object{"requested": nothing, "consumed": nothing, "allocated": allocatedList(r)},
		"time":              stepTimes(r),
		"exit_code":         exitObject(r.exit(), s.EndTime.IsZero()),
		"tasks":             object{"count": s.Tasks},
		"pid":               nil,
		"CPU":               object{"requested_frequency": object{"min": 0, "max": 0}, "governor": []any{}},
		"kill_request_user": nil,
		"state":             r.plainState(),
		"statistics":        object{"CPU": object{"actual_frequency": 0}, "energy": object{"consumed": 0}, "max_rss_bytes": s.MaxRSS},
		"step":              object{"job_id": r.job.JobID, "het": object{"component": nil}, "id": s.StepID, "name": s.Name},
		"task":              object{"distribution": "Unknown"},
	}
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
	a := object{"job_id": 0, "limits": object{"max": object{"running": object{"tasks": j.ArrayLimit}}}, "task": nil, "task_id": nil}
	if j.ArrayIndex == nil {
		return a
	}
	a["job_id"] = j.ArrayJobID
	if r.folded != nil {
		a["task"] = ranges(r.folded)
		return a
	}
	a["task_id"] = *j.ArrayIndex
	return a
}

func exitObject(exit string, pending bool) object {
	c, g, _ := strings.Cut(exit, ":")
	code, _ := strconv.Atoi(c)
	signal, _ := strconv.Atoi(g)
	switch {
	case pending:
		return object{"status": "PENDING", "return_code": 0}
	case signal != 0:
		return object{"status": "SIGNALED", "return_code": nil, "signal": object{"signal_id": signal, "name": signalName(signal)}}
	case code != 0:
		return object{"status": "ERROR", "return_code": code}
	}
	return object{"status": "SUCCESS", "return_code": 0}
}

// signalName is what the C library calls a signal: Go's words with a capital.
func signalName(n int) string {
	s := syscall.Signal(n).String()
	return strings.ToUpper(s[:1]) + s[1:]
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func split(s float64) object {
	return object{"seconds": int64(s), "microseconds": int64((s - float64(int64(s))) * 1e6)}
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
	return object{
		"elapsed": seconds(r.elapsed()), "eligible": unix(r.eligibleTime()), "end": unix(r.endTime()), "start": unix(r.start()),
		"submission": unix(r.job.SubmitTime), "suspended": 0, "limit": limit,
		"system": split(0), "user": split(0), "total": split(cpu),
	}
}

func stepTimes(r *record) object {
	return object{
		"elapsed": seconds(r.elapsed()), "end": unix(r.endTime()), "start": unix(r.start()), "suspended": 0,
		"system": split(0), "user": split(0), "total": split(r.step.CPUTime),
	}
}

// killer is the name of who cancelled.
func killer(r *record) any {
	if name := r.canceller(); name != "" && r.plainState() == string(api.JobCancelled) {
		return name
	}
	return nil
}

func allocatedList(r *record) []object {
	t, ok := r.allocated()
	if !ok {
		return []object{}
	}
	return tresList(t)
}

// tresList is Slurm's list of resources, with its ids; memory in MiB.
func tresList(t tres.Amount) []object {
	one := func(kind string, name any, id int, count int64) object {
		return object{"type": kind, "name": name, "id": id, "count": count}
	}
	out := []object{one("cpu", nil, 1, t.CPUs)}
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
