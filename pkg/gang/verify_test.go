package gang

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// TestVerifyFinds: each thing that must not be is named.
func TestVerifyFinds(t *testing.T) {
	for want, c := range map[string]struct {
		state GangState
		spoil func(w *World, j *Job)
	}{
		"job 1: id not below the next one, 1": {GangRunning, func(w *World, j *Job) { w.nextID = 1 }},
		"job 1: part of it is blocked: map[blocked:1 running:1]": {GangBlocked, func(w *World, j *Job) {
			j.Ranks = slices.Clone(j.Ranks) // all that wait share theirs
			j.Ranks[1].State = api.RankRunning
		}},
		"job 1: blocked with 0 members":                                     {GangBlocked, func(w *World, j *Job) { j.Drain = &Drain{} }},
		"job 1: cancelled and waiting":                                      {GangBlocked, func(w *World, j *Job) { j.Cancelled = true }},
		"job 1: waits with a limit of 1s":                                   {GangBlocked, func(w *World, j *Job) { j.CutTimeLimit = time.Second }},
		"job 1: part of it is reserved: map[reserved:1 running:1]":          {GangReserved, func(w *World, j *Job) { j.Ranks[1].State = api.RankRunning }},
		"job 1 rank 0: reserved in a member that is running":                {GangReserved, func(w *World, j *Job) { j.Members[0].State = MemberRunning }},
		"job 1 rank 1: slot on n1, member on n2":                            {GangReserved, func(w *World, j *Job) { j.Ranks[1].Slot.Node = "n1" }},
		"job 1: running, but ranks are map[failed:1 running:1]":             {GangRunning, func(w *World, j *Job) { j.Ranks[1].State = api.RankFailed }},
		"job 1: admitted, and waits for x":                                  {GangRunning, func(w *World, j *Job) { j.Waits = "x" }},
		"job 1: running without a running rank":                             {GangRunning, func(w *World, j *Job) { j.Ranks[0].State, j.Ranks[1].State = api.RankDone, api.RankDone }},
		"job 1: member on n2 is not listed":                                 {GangRunning, func(w *World, j *Job) { delete(w.nodes["n2"].members, j.key()) }},
		"job 1: stopped member on n2 is listed":                             {GangRunning, func(w *World, j *Job) { j.Members[1].State = MemberStopped }},
		"job 1: 0 members left, counted 1":                                  {GangRunning, func(w *World, j *Job) { w.jobs[1].left = 1 }},
		"job 1: PENDING, deadline watched: false":                           {GangBlocked, func(w *World, j *Job) { j.Deadline = epoch0 }},
		"job 1: draining, but ranks are map[preempting:1 running:1]":        {GangDraining, func(w *World, j *Job) { j.Ranks[1].State = api.RankRunning }},
		"job 1: over and draining":                                          {GangEnded, func(w *World, j *Job) { j.Drain = &Drain{} }},
		"job 1: over, but ranks are map[cancelled:1 running:1]":             {GangEnded, func(w *World, j *Job) { j.Ranks[1].State = api.RankRunning }},
		"job 1: completed, but ranks are map[cancelled:2]":                  {GangEnded, func(w *World, j *Job) { j.Verdict.State = api.JobCompleted }},
		"node n1: up, ready false":                                          {GangRunning, func(w *World, j *Job) { w.nodes["n1"].node.Res.Ready = false }},
		"node n1: in service, to be empty by 2026-03-01 12:00:00 +0000 UTC": {GangBlocked, func(w *World, j *Job) { w.nodes["n1"].node.DrainBy = epoch0 }},
		"node n1: 1 members, 2 grants":                                      {GangRunning, func(w *World, j *Job) { r := w.nodes["n1"].node.Res; r.Grants = append(r.Grants, cluster.Grant{}) }},
		"0 nodes away, counted 1":                                           {GangRunning, func(w *World, j *Job) { w.away = 1 }},
		"1 jobs have not ended, counted 2":                                  {GangRunning, func(w *World, j *Job) { w.live = 2 }},
	} {
		b := scene(t, c.state)
		c.spoil(b.w, b.w.jobs[1].job)
		if found := b.w.Verify(); !slices.Contains(found, want) {
			t.Errorf("%q, want %q", found, want)
		}
	}
}
