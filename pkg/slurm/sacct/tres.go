package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tres is an amount of each resource that Slurm tracks.
type tres struct {
	cpus, nodes, gpus int64
	memory            int64 // bytes, of all nodes; 0: no figure
	billing           bool  // jobs are billed (by CPUs), steps are not
}

// text is TYPE=COUNT by name, as sacct shows it.
func (t tres) text() string {
	var parts []string
	if t.billing {
		parts = append(parts, fmt.Sprintf("billing=%d", t.cpus))
	}
	parts = append(parts, fmt.Sprintf("cpu=%d", t.cpus))
	if t.gpus > 0 {
		parts = append(parts, fmt.Sprintf("gres/gpu=%d", t.gpus))
	}
	if t.memory > 0 {
		parts = append(parts, "mem="+size(t.memory, 'M', view{}))
	}
	parts = append(parts, fmt.Sprintf("node=%d", t.nodes))
	return strings.Join(parts, ",")
}

// requested is what the job asked for.
func (r *record) requested() tres {
	j := r.job
	return tres{cpus: jobCPUs(r), nodes: int64(max(1, j.MinNodes, len(j.Nodes))), gpus: jobGPUs(r), memory: jobMemory(r), billing: true}
}

// allocated is what a started job or step had; ok is false where it had nothing.
func (r *record) allocated() (t tres, ok bool) {
	switch {
	case r.step != nil:
		s := r.step
		return tres{cpus: int64(s.CPUs), nodes: int64(len(s.Nodes)), gpus: int64(s.GPUs), memory: s.Memory * int64(len(s.Nodes))}, true
	case r.attempt != nil:
		t := r.requested()
		t.nodes = int64(len(r.attempt.Nodes))
		return t, true
	}
	return t, false
}

func jobCPUs(r *record) int64 {
	j := r.job
	if len(j.Roles) == 0 {
		return int64(j.Size) * int64(max(1, j.CPUsPerRank))
	}
	n := int64(0)
	for i := range j.Roles {
		n += int64(j.Roles[i].Count) * int64(max(1, j.Roles[i].CPUsPerRank))
	}
	return n
}

func jobGPUs(r *record) int64 {
	j := r.job
	if len(j.Roles) == 0 {
		return int64(j.Size)*int64(j.GPUsPerRank) + int64(j.GPUsPerNode)*r.nodes()
	}
	n := int64(0)
	for i := range j.Roles {
		n += int64(j.Roles[i].Count) * int64(j.Roles[i].GPUsPerRank)
	}
	return n
}

func jobMemory(r *record) int64 {
	j := r.job
	if len(j.Roles) == 0 {
		return int64(j.Size)*j.MemoryBytes + j.MemoryPerNode*r.nodes()
	}
	n := int64(0)
	for i := range j.Roles {
		n += int64(j.Roles[i].Count) * j.Roles[i].MemoryPerRank
	}
	return n
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
	return jobCPUs(r)
}

const unitLetters = "KMGTP"

// size writes bytes as Slurm does: in the unit given, then in larger ones as long as nothing
// is lost; with --units in that unit with two decimals; with --noconvert in bytes.
func size(bytes int64, unit byte, v view) string {
	if bytes == 0 {
		return "0"
	}
	if v.plain && unit == 'K' {
		return strconv.FormatInt(bytes, 10)
	}
	at := slices.Index([]byte(unitLetters), unit)
	n := bytes >> (10 * (at + 1))
	switch {
	case v.units != 0:
		return inUnit(bytes, v.units)
	case v.plain:
		return strconv.FormatInt(n, 10) + string(unit)
	case n == 0:
		return inUnit(bytes, unit)
	}
	for n%1024 == 0 && at < len(unitLetters)-1 {
		n, at = n/1024, at+1
	}
	return strconv.FormatInt(n, 10) + unitLetters[at:at+1]
}

func inUnit(bytes int64, unit byte) string {
	f := float64(bytes)
	for range slices.Index([]byte(unitLetters), unit) + 1 {
		f /= 1024
	}
	if f == float64(int64(f)) {
		return strconv.FormatInt(int64(f), 10) + string(unit)
	}
	return strconv.FormatFloat(f, 'f', 2, 64) + string(unit)
}
