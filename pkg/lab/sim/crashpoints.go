package sim

import (
	"fmt"
	"time"
)

// CrashPoints are the variants of a scenario with one crash each: of the controller before
// and after every commit, and of whoever sends before and after every sending, as counted by
// a run without these crashes. What crashed is back after away.
func CrashPoints(sc *Scenario, away time.Duration) ([]*Scenario, error) {
	commits, err := AtEach(sc, AtCommit, Fault{Do: CrashGangd, For: away})
	if err != nil {
		return nil, err
	}
	sends, err := AtEach(sc, AtSend, Fault{Do: CrashSender, For: away})
	return append(commits, sends...), err
}

// AtEach are the variants of a scenario with one more fault each, before and after every
// commit or every sending.
func AtEach(sc *Scenario, site Site, f Fault) ([]*Scenario, error) {
	res, err := Run(sc, Options{})
	if err != nil {
		return nil, err
	}
	if res.Violation != nil {
		return nil, res.Violation
	}
	n := res.Commits
	if site == AtSend {
		n = res.Sends
	}
	var out []*Scenario
	for i := range n {
		for _, after := range []bool{false, true} {
			c := sc.clone()
			f.When = Point{On: site, N: i + 1, After: after}
			c.Name = fmt.Sprintf("%s, %s %s", sc.Name, f.Do, f.When)
			c.Faults = append(c.Faults, f)
			out = append(out, c)
		}
	}
	return out, nil
}

// String names the point.
func (p Point) String() string {
	side := "before"
	if p.After {
		side = "after"
	}
	switch p.On {
	case "":
		return "at once"
	case AtEvent:
		return fmt.Sprintf("at %s %d of job %d", p.Event, max(p.N, 1), p.Job)
	}
	return fmt.Sprintf("%s %s %d", side, p.On, p.N)
}
