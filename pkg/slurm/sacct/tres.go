package sacct

import (
	"strconv"

	"gangd/pkg/core/table/tres"
)

// requested is what the job asked for.
func (r *record) requested() tres.Amount { return tres.Of(r.job, tres.Nodes(r.job)) }

// allocated is what a started job or step had; ok is false where it had nothing.
func (r *record) allocated() (a tres.Amount, ok bool) {
	switch {
	case r.step != nil:
		s := r.step
		n := int64(len(s.Nodes))
		return tres.Amount{CPUs: int64(s.CPUs), Nodes: n, GPUs: int64(s.GPUs), Memory: s.Memory * n}, true
	case r.attempt != nil:
		return tres.Of(r.job, int64(len(r.attempt.Nodes))), true
	}
	return a, false
}

// nodes is on how many nodes it ran or wants to.
func (r *record) nodes() int64 {
	switch {
	case r.step != nil:
		return int64(len(r.step.Nodes))
	case r.attempt != nil:
		return int64(len(r.attempt.Nodes))
	}
	return int64(max(1, r.job.MinNodes))
}

func (r *record) cpus() int64 {
	if r.step != nil {
		return int64(r.step.CPUs)
	}
	return r.requested().CPUs
}

// size writes bytes as the call wants them: Slurm's way, in one unit, or as they are.
func size(bytes int64, unit byte, v view) string {
	switch {
	case bytes == 0:
		return "0"
	case v.units != 0:
		return tres.InUnit(bytes, v.units)
	case v.plain && unit == 'K':
		return strconv.FormatInt(bytes, 10)
	case v.plain:
		return strconv.FormatInt(bytes>>20, 10) + "M"
	}
	return tres.Size(bytes, unit)
}
