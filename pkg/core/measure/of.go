package measure

import "gangd/pkg/api"

// enough is the part of a run for which a figure has to be known to speak for all of it.
const enough = 0.5

// Of sums up what an attempt used of what it held, nil: nothing is known of it. Each node's share
// counts by its time. What is not known of one of them is not known of all.
func Of(j *api.Job, a *api.Attempt) *api.Efficiency {
	if len(a.Measures) == 0 {
		return nil
	}
	e := &api.Efficiency{}
	whole := len(a.Measures) == len(a.Nodes) // the rest are nodes that were lost
	var cpu, held, joules float64
	use, idle := mean{known: true}, 0.0
	cpuKnown, joulesKnown := whole, whole
	for i := range a.Measures {
		m := &a.Measures[i]
		e.Seconds = max(e.Seconds, m.Seconds)
		if m.CPUSeconds != nil {
			cpu += *m.CPUSeconds
			held += m.Seconds * float64(m.CPUs)
		} else {
			cpuKnown = false
		}
		if m.MemoryPeak != nil {
			if e.MemoryPeak == nil || *m.MemoryPeak > *e.MemoryPeak {
				e.MemoryPeak = m.MemoryPeak
			}
			if m.Memory > 0 {
				most(&e.MemoryPercent, percent(float64(*m.MemoryPeak), float64(m.Memory)))
			}
		}
		if r := m.Ranks; r != nil {
			highest(&e.MaxRSS, r.MaxRSS)
		}
		for k := range m.Cards {
			c := &m.Cards[k]
			use.add(c.Utilization, m.Seconds)
			if c.IdleSeconds != nil {
				idle += *c.IdleSeconds
			}
			if c.VRAM != nil {
				highest(&e.VRAMPeak, int64(c.VRAM.Max))
				whole := c.VRAMBytes
				if c.VRAMAsked > 0 {
					whole = c.VRAMAsked
				}
				most(&e.VRAMPercent, percent(c.VRAM.Max, float64(whole)))
			}
			if c.Joules == nil || c.Power.Seconds < enough*m.Seconds {
				joulesKnown = false
			} else {
				joules += *c.Joules
			}
		}
		joulesKnown = joulesKnown && len(m.Cards) > 0
	}
	if cpuKnown {
		e.CPUSeconds = &cpu
		if held > 0 {
			p := 100 * cpu / held
			e.CPUPercent = &p
		}
	}
	if whole && use.known && use.seconds > 0 {
		mean, idle := use.sum/use.seconds, 100*idle/use.seconds
		e.GPUPercent, e.GPUIdle = &mean, &idle
	}
	if joulesKnown {
		e.Joules = &joules
	}
	for i := range a.Steps {
		if n := a.Steps[i].MaxRSS; n > 0 {
			highest(&e.MaxRSS, n)
		}
	}
	if j.TimeLimitSeconds > 0 {
		p := percent(e.Seconds, float64(j.TimeLimitSeconds))
		e.TimePercent = &p
	}
	if whole {
		e.Start = lastStart(a)
	}
	e.Advice = advise(j, a, e)
	return e
}

// lastStart is the start of the node whose first step came last, nil: none was seen. A card that nobody used is another
// matter, and so is a node none of whose ranks beats.
func lastStart(a *api.Attempt) (last *api.StartParts) {
	most := -1.0
	for i := range a.Measures {
		s := a.Measures[i].Start
		if s == nil {
			continue
		}
		if took, known := s.Total(); known && took > most {
			last, most = s, took
		}
	}
	return last
}

// mean is one over cards.
type mean struct {
	sum, seconds float64
	known        bool // of each
}

func (m *mean) add(f *api.Figure, ran float64) {
	if f == nil || f.Seconds < enough*ran {
		m.known = false
		return
	}
	m.sum += f.Mean * f.Seconds
	m.seconds += f.Seconds
}

func most(to **float64, v float64) {
	if v >= 0 && (*to == nil || v > **to) {
		*to = &v
	}
}
