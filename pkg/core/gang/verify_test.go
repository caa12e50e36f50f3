package gang

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// TestVerifyFinds: each thing that must not be is named.
func TestVerifyFinds(t *testing.T) {
	for want, c := range map[string]struct {
		state GangState
		spoil func(w *World, j *Job)
	}{
		"job 1: id not below the next one, 1": {GangRunning, func(w *World, j *Job) { w.jobs.nextID = 1 }},
		"job 1: part of it is blocked: map[blocked:1 running:1]": {GangBlocked, func(w *World, j *Job) {
			j.Ranks = slices.Clone(j.Ranks) // all that wait share theirs
			j.Ranks[1].State = api.RankRunning
		}},
		"job 1: blocked with 0 members":                              {GangBlocked, func(w *World, j *Job) { j.Drain = &Drain{} }},
		"job 1: cancelled and waiting":                               {GangBlocked, func(w *World, j *Job) { j.Cancelled = true }},
		"job 1: waits with a limit of 1 s":                           {GangBlocked, func(w *World, j *Job) { j.CutTimeLimit = time.Second }},
		"job 1: part of it is reserved: map[reserved:1 running:1]":   {GangReserved, func(w *World, j *Job) { j.Ranks[1].State = api.RankRunning }},
		"job 1 rank 0: reserved in a member that is running":         {GangReserved, func(w *World, j *Job) { j.Members[0].State = MemberRunning }},
		"job 1 rank 1: slot on n1, member on n2":                     {GangReserved, func(w *World, j *Job) { j.Ranks[1].Slot.Node = "n1" }},
		"job 1: running, but ranks are map[failed:1 running:1]":      {GangRunning, func(w *World, j *Job) { j.Ranks[1].State = api.RankFailed }},
		"job 1: admitted, and waits for x":                           {GangRunning, func(w *World, j *Job) { j.Waits = "x" }},
		"job 1: running without a running rank":                      {GangRunning, func(w *World, j *Job) { j.Ranks[0].State, j.Ranks[1].State = api.RankDone, api.RankDone }},
		"job 1: member on n2 is not listed":                          {GangRunning, func(w *World, j *Job) { delete(w.nodes.byName["n2"].members, j.key()) }},
		"job 1: stopped member on n2 is listed":                      {GangRunning, func(w *World, j *Job) { j.Members[1].State = MemberStopped }},
		"job 1: 0 members left, counted 1":                           {GangRunning, func(w *World, j *Job) { w.jobs.byID[1].left = 1 }},
		"job 1: PENDING, deadline watched: false":                    {GangBlocked, func(w *World, j *Job) { j.Deadline = epoch0 }},
		"job 1: draining, but ranks are map[preempting:1 running:1]": {GangDraining, func(w *World, j *Job) { j.Ranks[1].State = api.RankRunning }},
		"job 1: over and draining":                                   {GangEnded, func(w *World, j *Job) { j.Drain = &Drain{} }},
		"job 1: over, but ranks are map[cancelled:1 running:1]":      {GangEnded, func(w *World, j *Job) { j.Ranks[1].State = api.RankRunning }},
		"job 1: completed, but ranks are map[cancelled:2]":           {GangEnded, func(w *World, j *Job) { j.Verdict.State = api.JobCompleted }},
		"node n1: up, ready false":                                   {GangRunning, func(w *World, j *Job) { w.nodes.byName["n1"].node.Res.Ready = false }},
		"node n1: in service, to be empty by 2026-03-01T12:00:00":    {GangBlocked, func(w *World, j *Job) { w.nodes.byName["n1"].node.DrainBy = epoch0 }},
		"node n1: 1 members, 2 grants": {GangRunning, func(w *World, j *Job) {
			r := w.nodes.byName["n1"].node.Res
			r.Grants = append(r.Grants, cluster.Grant{})
		}},
		"node n1: in service, drained by ada at -":                {GangBlocked, func(w *World, j *Job) { w.nodes.byName["n1"].node.DrainUser = "ada" }},
		"node n1: in service, drained by  at 2026-03-01T12:00:00": {GangBlocked, func(w *World, j *Job) { w.nodes.byName["n1"].node.DrainTime = epoch0 }},
		"node n1: down, and nothing says since when":              {GangBlocked, func(w *World, j *Job) { w.nodes.byName["n1"].node.Down = true }},
		"node n1: to be empty, and nobody will tell job 1":        {GangRunning, func(w *World, j *Job) { w.nodes.byName["n1"].node.DrainBy = epoch0 }},
		"node n1: up without a session":                           {GangRunning, func(w *World, j *Job) { w.nodes.byName["n1"].node.Connected = false }},
		"node n1: job 1 epoch 1 is both live and left": {GangRunning, func(w *World, j *Job) {
			n := w.nodes.byName["n1"].node
			n.Left = append(n.Left, Left{MemberKey: j.key()})
		}},
		"node n1: grant of job 9 epoch 2 without a member": {GangRunning, func(w *World, j *Job) {
			r := w.nodes.byName["n1"].node.Res
			r.Grants = append(r.Grants, cluster.Grant{MemberKey: memberKey(9, 2)})
		}},
		"node n1: lists epoch 1 of job 1, which is at 2":         {GangRunning, func(w *World, j *Job) { j.Epoch = 2 }},
		"node n3 is not where its name belongs":                  {GangRunning, func(w *World, j *Job) { w.nodes.byName["n3"] = w.nodes.byName["n2"] }},
		"3 nodes, listed 2":                                      {GangRunning, func(w *World, j *Job) { w.nodes.sorted = w.nodes.sorted[:2] }},
		"1 nodes away, counted 0":                                {GangRunning, func(w *World, j *Job) { w.nodes.byName["n3"].node.Connected = false }},
		"job 1: blocked with 1 members":                          {GangBlocked, func(w *World, j *Job) { j.Members = []Member{{Node: "n1"}} }},
		"job 1: waits and has turn 1":                            {GangBlocked, func(w *World, j *Job) { j.Turn = order.NoTurn + 1 }},
		"job 1: 2 alive 2 open, counted 3 2":                     {GangRunning, func(w *World, j *Job) { w.jobs.byID[1].alive++ }},
		"job 1: 2 alive 2 open, counted 2 3":                     {GangRunning, func(w *World, j *Job) { w.jobs.byID[1].open++ }},
		"job 1: running, and 1 of its members count as prepared": {GangRunning, func(w *World, j *Job) { w.jobs.byID[1].prepared = map[int]int{0: 0} }},
		"job 1: 1 of its ranks are prepared, counted 2":          {GangReserved, func(w *World, j *Job) { w.jobs.byID[1].ranks++ }},
		"job 1: prepared, and its gate is not open":              {GangReserved, func(w *World, j *Job) { w.jobs.byID[1].prepared[1] = 0 }},
		"job 1 rank 1: in 2 members":                             {GangRunning, func(w *World, j *Job) { j.Members[0].Ranks = []int{0, 1} }},
		"job 1 rank 1: in 0 members":                             {GangRunning, func(w *World, j *Job) { j.Members[1].Ranks = nil }},
		"job 1: admitted without a member":                       {GangRunning, func(w *World, j *Job) { j.Members = nil }},
		"job 1: waits for \"x\", watching: false":                {GangBlocked, func(w *World, j *Job) { j.Waits = "x" }},
		"job 1: 0 wait for it, listed 1":                         {GangBlocked, func(w *World, j *Job) { w.deps.on[1] = map[int64]struct{}{9: {}} }},
		"letter 5 has the id 4":                                  {GangBlocked, func(w *World, j *Job) { w.record.outbox.letters[5] = &api.Letter{ID: 4} }},
		"0 users hold jobs, counted 1":                           {GangNone, func(w *World, j *Job) { w.site.holdings.byUser[7] = &holding{} }},
		"0 specs, counted 1":                                     {GangNone, func(w *World, j *Job) { w.specs.byKey[specKey{}] = &sharedSpec{} }},
		"0 nodes away, counted 1":                                {GangRunning, func(w *World, j *Job) { w.nodes.away = 1 }},
		"1 jobs have not ended, counted 2":                       {GangRunning, func(w *World, j *Job) { w.site.holdings.live = 2 }},
	} {
		b := scene(t, c.state)
		c.spoil(b.w, b.w.Job(1))
		if found := b.w.Verify(); !slices.Contains(found, want) {
			t.Errorf("%q, want %q", found, want)
		}
	}
}

// TestVerifyLooksAtWhatIsShared: nobody may write to what all gangs have that have none of their own.
func TestVerifyLooksAtWhatIsShared(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	for want, spoil := range map[string]func(){
		"the past and the wishes of the gangs that have none are ": func() { noPast.Epoch = 1 },
		"the past and the wishes of the gangs":                     func() { noWishes.Held = "x" },
		"the epoch of the gangs that have none is ":                func() { b.w.jobs.noEpoch.alive = 1 },
		"rank 0 of the gangs that never had nodes is ":             func() { blank[0].State = api.RankDone },
		"rank 1 of the gangs that never had nodes is ":             func() { blank[1].Slot.Node = "n1" },
		"rank 2 of the gangs that never had nodes is ":             func() { blank[2].Slot.Cards = []string{} },
		"rank 3 of the gangs that never had nodes is ":             func() { blank[3].PID = 1 },
		"rank 4 of the gangs that never had nodes is ":             func() { blank[4].Exited = true },
		"rank 5 of the gangs that never had nodes is ":             func() { blank[5].Own = true },
		"rank 6 of the gangs that never had nodes is ":             func() { blank[6].Start = epoch0 },
		"rank 4095 of the gangs that never had nodes is ":          func() { blank[4095].End = epoch0 },
	} {
		spoil()
		if found := b.w.Verify(); len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%q, want %q", found, want)
		}
		*noPast, *noWishes, *b.w.jobs.noEpoch = Past{}, Wishes{}, epoch{}
		copy(blank, newBlank(maxBlank))
	}
}
