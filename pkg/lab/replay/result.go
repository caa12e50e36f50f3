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
	Submit, Start, End time.Duration // Start: of its first epoch
	Delay              time.Duration // all that its completion took beyond its duration
	Epochs             int
	GPUs               int
	TimedOut           bool
}

// Width is the jobs that ask for so many cards.
type Width struct {
	From  int     `json:"from_cards"`
	To    int     `json:"to_cards"` // 0: and more
	Jobs  int     `json:"jobs"`
	Delay Figures `json:"delay_seconds"`
	Long  float64 `json:"share_over_48_h"` // of these jobs, with such a delay
}

// widthEnds are where classes of width end: one card, one node, two, four, and all above.
var widthEnds = []int{1, 8, 16, 32, 0}

// longDelay is a delay that people speak of.
const longDelay = 48 * time.Hour

// widths sums up the jobs by width; one without any is left out.
func widths(list []Outcome) (out []Width) {
	from := 0
	for _, to := range widthEnds {
		w := Width{From: from, To: to}
		var delays []float64
		long := 0
		for i := range list {
			if o := &list[i]; o.GPUs >= from && (to == 0 || o.GPUs <= to) {
				delays = append(delays, o.Delay.Seconds())
				if o.Delay > longDelay {
					long++
				}
			}
		}
		if w.Jobs = len(delays); w.Jobs > 0 {
			w.Delay, w.Long = figures(delays), float64(long)/float64(w.Jobs)
			out = append(out, w)
		}
		from = to + 1
	}
	return out
}

// Result is what a run came to.
type Result struct {
	Jobs        int     `json:"jobs"`
	Delay       Figures `json:"delay_seconds"`      // completion less the job's own duration
	Start       Figures `json:"start_seconds"`      // from the submission to the first start
	Completion  Figures `json:"completion_seconds"` // from the submission to the end
	Widths      []Width `json:"by_width"`
	Makespan    float64 `json:"makespan_seconds"`
	Utilisation float64 `json:"utilisation"` // of all cards over the makespan
	// Fragmentation is the part of the free cards that lie on nodes in use, where no gang of
	// whole nodes can have them, over the makespan.
	Fragmentation float64       `json:"fragmentation"`
	Preemptions   int           `json:"preemptions"`
	LostSeconds   float64       `json:"lost_card_seconds"` // of work done again after preemptions
	TimedOut      int           `json:"timed_out"`         // ended by their limits
	Plans         int           `json:"plans"`
	PlanTime      time.Duration `json:"plan_time_ns"`
	PlanMax       time.Duration `json:"plan_max_ns"`
	Wall          time.Duration `json:"wall_ns"` // on the machine that simulated
	JobsPerSecond float64       `json:"jobs_per_second"`
	Outcomes      []Outcome     `json:"-"`
	Series        []Sample      `json:"-"`
	Cards         int           `json:"cards"`
}

func (s *Sim) result(wall time.Duration) *Result {
	m := &s.meter
	r := &Result{Jobs: len(s.lives), Preemptions: m.preempts, LostSeconds: m.lost, Plans: m.plans, PlanTime: m.planTime,
		PlanMax: m.planMax, Wall: wall, Series: m.series, Cards: m.cards, Outcomes: make([]Outcome, len(s.lives))}
	delays, starts, ends := make([]float64, r.Jobs), make([]float64, r.Jobs), make([]float64, r.Jobs)
	last := time.Duration(0)
	for i := range s.lives {
		l, j := &s.lives[i], &s.trace.Jobs[i]
		o := Outcome{ID: j.ID, Submit: j.Submit, Start: l.first, End: l.end, Epochs: int(l.epochs), GPUs: j.GPUs(), TimedOut: l.timeout}
		o.Delay = l.end - j.Submit - l.done
		if l.timeout {
			r.TimedOut++
		}
		last = max(last, l.end)
		delays[i], starts[i], ends[i] = o.Delay.Seconds(), (l.first - j.Submit).Seconds(), (l.end - j.Submit).Seconds()
		r.Outcomes[i] = o
	}
	r.Delay, r.Start, r.Completion = figures(delays), figures(starts), figures(ends)
	r.Widths = widths(r.Outcomes)
	if r.Makespan = last.Seconds(); r.Makespan > 0 && m.cards > 0 {
		r.Utilisation = m.busyArea / r.Makespan / float64(m.cards)
	}
	if m.freeArea > 0 {
		r.Fragmentation = m.brokenArea / m.freeArea
	}
	if wall > 0 {
		r.JobsPerSecond = float64(r.Jobs) / wall.Seconds()
	}
	return r
}

func figures(v []float64) Figures {
	if len(v) == 0 {
		return Figures{}
	}
	slices.Sort(v)
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
	return Figures{Average: sum / float64(len(v)), Median: at(0.5), P90: at(0.9), P99: at(0.99), Max: v[len(v)-1]}
}
