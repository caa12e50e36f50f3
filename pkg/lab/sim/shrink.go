package sim

import (
	"reflect"
	"slices"
)

// Shrink drops what a violation of an invariant does not need: faults first, then jobs, then
// what jobs and faults say beyond the least. The scenario itself is not changed. It plays at
// most tries runs.
func Shrink(sc *Scenario, invariant string, tries int) *Scenario {
	s := &shrinker{best: sc.clone(), invariant: invariant, tries: tries}
	for again := true; again && s.tries > 0; {
		again = s.faults()
		again = s.jobs() || again
		again = s.simpler() || again
	}
	return s.best
}

type shrinker struct {
	best      *Scenario
	invariant string
	tries     int
}

func (sc *Scenario) clone() *Scenario {
	c := *sc
	c.Nodes, c.Jobs, c.Faults = slices.Clone(sc.Nodes), slices.Clone(sc.Jobs), slices.Clone(sc.Faults)
	return &c
}

// keep takes a smaller scenario when it still fails in the same way.
func (s *shrinker) keep(c *Scenario) bool {
	if s.tries <= 0 {
		return false
	}
	s.tries--
	res, err := Run(c, Options{})
	if err != nil || res.Violation == nil || res.Violation.Invariant != s.invariant {
		return false
	}
	s.best = c
	return true
}

// faults is delta debugging: without large parts first, then without smaller ones.
func (s *shrinker) faults() (any bool) {
	for size := max(len(s.best.Faults)/2, 1); size >= 1 && len(s.best.Faults) > 0; size /= 2 {
		for i := 0; i < len(s.best.Faults); {
			c := s.best.clone()
			if c.Calm == 0 { // the time that is left must not shrink with the faults
				c.Calm = calmOf(c)
			}
			c.Faults = slices.Delete(c.Faults, i, min(i+size, len(c.Faults)))
			if s.keep(c) {
				any = true
				continue
			}
			i += size
		}
	}
	return any
}

// jobs drops jobs from the end of those that no fault names, by making them nothing.
func (s *shrinker) jobs() (any bool) {
	for i := len(s.best.Jobs) - 1; i >= 0; i-- {
		c := s.best.clone()
		c.Jobs = slices.Delete(c.Jobs, i, i+1)
		kept := c.Faults[:0]
		for _, f := range c.Faults {
			if f.Job > i {
				f.Job--
			}
			if f.When.Job > i {
				f.When.Job--
			}
			kept = append(kept, f)
		}
		c.Faults = kept
		any = s.keep(c) || any
	}
	return any
}

// simpler tries the zero of one field after the other.
func (s *shrinker) simpler() (any bool) {
	for i := range s.best.Jobs {
		for _, edit := range []func(*Job){
			func(j *Job) { j.Array, j.Limit = 0, 0 }, func(j *Job) { j.Batch = false }, func(j *Job) { j.TimeLimit = 0 },
			func(j *Job) { j.Grace = 0 }, func(j *Job) { j.Lead = 0 }, func(j *Job) { j.MaxRetries = 0 }, func(j *Job) { j.GPUs = 0 },
			func(j *Job) { j.Nodes = 0 }, func(j *Job) { j.Priority = 0 }, func(j *Job) { j.NoRequeue = false },
			func(j *Job) { j.Runs = Behaviour{For: j.Runs.For} }, func(j *Job) { j.Runs.Checkpoints = false },
			func(j *Job) { j.Runs.Daemon = false }, func(j *Job) { j.Runs.Skew = 0 }, func(j *Job) { j.Ranks = max(j.Ranks/2, 1) },
			func(j *Job) { j.Steps = j.Steps[:len(j.Steps)/2] }, func(j *Job) { j.StallTimeout = 0 }, func(j *Job) { j.TotalTime = 0 },
		} {
			c := s.best.clone()
			was := c.Jobs[i]
			if edit(&c.Jobs[i]); !reflect.DeepEqual(c.Jobs[i], was) {
				any = s.keep(c) || any
			}
		}
	}
	for len(s.best.Nodes) > 1 {
		c := s.best.clone()
		c.Nodes = c.Nodes[:len(c.Nodes)-1]
		if !s.keep(c) {
			break
		}
		any = true
	}
	return any
}
