package replay

import (
	"slices"
	"time"
)

// Figures sum up one quantity over all jobs, in seconds.
type Figures struct {
	Average float64 `json:"average"`
	Median  float64 `json:"median"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// Outcome is what became of one job.
type Outcome struct {
	ID                 string
	Submit, Start, End time.Duration
	Delay              time.Duration // waiting, in the queue and after preemptions
	Epochs             int
	GPUs               int
}

// Result is what a run came to.
type Result struct {
	Jobs        int           `json:"jobs"`
	Delay       Figures       `json:"delay_seconds"`
	Completion  Figures       `json:"completion_seconds"`
	Makespan    float64       `json:"makespan_seconds"`
	Utilisation float64       `json:"utilisation"`
	Preemptions int           `json:"preemptions"`
	Plans       int           `json:"plans"`
	PlanTime    time.Duration `json:"plan_time_ns"`
	PlanMax     time.Duration `json:"plan_max_ns"`
	Wall        time.Duration `json:"wall_ns"`
	Outcomes    []Outcome     `json:"-"`
}

func (s *Sim) result(wall time.Duration) *Result {
	r := &Result{Jobs: len(s.lives), Preemptions: s.meter.preempts, Plans: s.meter.plans, PlanTime: s.meter.planTime, PlanMax: s.meter.planMax, Wall: wall}
	delays, jcts := make([]float64, len(s.lives)), make([]float64, len(s.lives))
	last := time.Duration(0)
	for i := range s.lives {
		l, j := &s.lives[i], &s.trace.Jobs[i]
		o := Outcome{ID: j.ID, Submit: j.Submit, Start: l.first, End: l.end, Epochs: int(l.epochs), GPUs: j.GPUs()}
		o.Delay = l.end - j.Submit - j.Duration
		last = max(last, l.end)
		delays[i], jcts[i] = o.Delay.Seconds(), (l.end - j.Submit).Seconds()
		r.Outcomes = append(r.Outcomes, o)
	}
	r.Delay, r.Completion = figures(delays), figures(jcts)
	r.Makespan = last.Seconds()
	if r.Makespan > 0 && s.meter.cards > 0 {
		r.Utilisation = s.meter.busyArea / r.Makespan / float64(s.meter.cards)
	}
	return r
}

func figures(v []float64) Figures {
	if len(v) == 0 {
		return Figures{}
	}
	v = slices.Sorted(slices.Values(v))
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
	return Figures{Average: sum / float64(len(v)), Median: at(0.5), P90: at(0.9), P99: at(0.99), Max: v[len(v)-1]}
}
