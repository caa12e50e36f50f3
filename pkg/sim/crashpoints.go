package sim

import (
	"fmt"
	"time"
)

// CrashPoints are the variants of a scenario with one crash each: of the controller before
// and after every commit, and of whoever sends before and after every sending, as counted by
// a run without these crashes. What crashed is back after away.
func CrashPoints(sc *Scenario, away time.Duration) ([]*Scenario, error) {
	res, err := Run(sc, Options{})
	if err != nil {
		return nil, err
	}
	if res.Violation != nil {
		return nil, res.Violation
	}
	var out []*Scenario
	add := func(p Point, k Kind) {
		c := sc.clone()
		c.Name = fmt.Sprintf("%s, %s", sc.Name, p)
		c.Faults = append(c.Faults, Fault{When: p, Do: k, For: away})
		out = append(out, c)
	}
	for n := 1; n <= res.Commits; n++ {
		add(BeforeCommit(n), CrashGangd)
		add(AfterCommit(n), CrashGangd)
	}
	for n := 1; n <= res.Sends; n++ {
		add(BeforeSend(n), CrashSender)
		add(AfterSend(n), CrashSender)
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
