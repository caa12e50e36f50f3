package sched

func (pl *planner) explainShape(c *Candidate, sh *shape) {}
