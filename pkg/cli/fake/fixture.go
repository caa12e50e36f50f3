package fake

import (
	"fmt"
	"time"

	"gangd/pkg/api"
)

// Now is the time at which the small cluster is looked at.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const gib = 1 << 30

func number(n int) *int { return &n }

// Small is a cluster of four nodes with a bit of everything: a gang that runs again after
// a crash, one that waits, an array, a held job, one that failed, a lost node, a drained
// one, a quarantined card and a stranger on another.
func Small() *Controller {
	c := &Controller{User: "ada", Processes: 3, Nodes: smallNodes(),
		Partitions: []api.Partition{{Name: "gpu", Nodes: []string{}, Default: true, MaxTime: 24 * time.Hour}, {Name: "long", Nodes: []string{"n3", "n4"}}},
		Why: map[int64]string{13: "needs 16 cards with 40G each at once: 11 are free\n" +
			"n1: 0 of 4 cards free, job 12 holds 4\nn2: 2 of 4 cards free, card 1 has 22G of 80G free"},
		Logs: map[string]string{"12/0/2": "epoch 2, rank 0\nstep 1200 loss 2.31\n", "12/1/2": "epoch 2, rank 1\n", "12/0/1": "epoch 1, rank 0\n"},
	}
	at := func(d time.Duration) time.Time { return Now.Add(-d) }
	run := job(12, "train-llm", api.JobRunning, 4)
	run.Epoch, run.RestartCount, run.Nodes, run.Priority = 2, 1, []string{"n1", "n2"}, 1000
	run.StartTime, run.Reason, run.Status = at(65*time.Minute+7*time.Second), "None", "step 1200 loss 2.31"
	run.TimeLimitSeconds, run.GPUsPerRank, run.VRAMBytes = 12*3600, 1, 40*gib
	run.Budgets = map[api.Cause]api.Budget{api.CauseCrash: {Used: 1, Limit: 2}, api.CausePreempted: {Limit: -1}}
	run.Notice = &api.NoticeView{Signal: "TERM", LeadSeconds: 120, Scope: api.ScopeRanks}
	for i := range 4 {
		run.Ranks = append(run.Ranks, api.Rank{Rank: i, State: api.RankRunning, Node: fmt.Sprintf("n%d", 1+i/2),
			PID: 4000 + i, StartTime: run.StartTime, Cards: []string{fmt.Sprintf("GPU-n%d-%d", 1+i/2, i%2)}})
	}
	wait := job(13, "a-very-long-name-of-a-job", api.JobPending, 16)
	wait.Reason, wait.MinNodes, wait.Priority = "Resources", 4, 900
	held := job(14, "later", api.JobPending, 1)
	held.Reason, held.Held, held.User, held.UID = "JobHeldUser", "user", "grace", 1001
	failed := job(15, "broken", api.JobFailed, 2)
	failed.Epoch, failed.Reason, failed.Cause, failed.ExitCode = 1, "NonZeroExitCode", api.CauseCrash, number(3)
	failed.StartTime, failed.EndTime, failed.Nodes = at(2*time.Hour), at(2*time.Hour-93*time.Second), []string{"n2"}
	failed.Verdict = "rank 1 exited with 3, and --max-retries is 0"
	failed.Roles = []api.Role{{Name: "coordinator", Count: 1, CPUsPerRank: 2, EndsGang: true},
		{Name: "worker", Count: 1, CPUsPerRank: 4, MemoryPerRank: 8 * gib, GPUsPerRank: 1, GPUType: "a100", VRAMBytes: 40 * gib, Constraint: "ib"}}
	failed.Ready = &api.Readiness{Ranks: 2, Size: 2, TimeoutSeconds: 60, Time: failed.StartTime.Add(2 * time.Second)}
	failed.Ranks = []api.Rank{{Rank: 0, Role: "coordinator", State: api.RankFailed, Node: "n2", PID: 5000, StartTime: failed.StartTime, ExitCode: number(143), Signal: 15},
		{Rank: 1, Role: "worker", State: api.RankFailed, Node: "n2", PID: 5001, StartTime: failed.StartTime, ExitCode: number(3), Cards: []string{"GPU-n2-3"}}}
	c.Jobs = []api.Job{run, wait, held, failed}
	for i := range 8 {
		e := job(20+int64(i), "sweep", api.JobPending, 1)
		e.ArrayJobID, e.ArrayIndex, e.ArrayLimit, e.Reason, e.Partition = 20, number(i), 2, "JobArrayTaskLimit", "long"
		if i < 2 {
			e.State, e.StateCode, e.Reason, e.Epoch = api.JobRunning, "R", "None", 1
			e.StartTime, e.Nodes = at(time.Duration(30+i)*time.Second), []string{"n2"}
		}
		c.Jobs = append(c.Jobs, e)
	}
	c.Attempts = map[int64][]api.Attempt{
		12: {{JobID: 12, Attempt: 1, Epoch: 1, Cause: api.CauseCrash, TriggerRank: number(1), StartTime: at(3 * time.Hour), EndTime: at(2 * time.Hour),
			Nodes: []string{"n1", "n3"}, ExitCodes: []int{143, 1, 143, 143}, Code: 1, GPUSeconds: 4 * 3600},
			{JobID: 12, Attempt: 2, Epoch: 2, StartTime: run.StartTime, Nodes: run.Nodes, ExitCodes: []int{}}},
		15: {{JobID: 15, Attempt: 1, Epoch: 1, Cause: api.CauseCrash, TriggerRank: number(1), TriggerRole: "worker", StartTime: failed.StartTime, EndTime: failed.EndTime,
			Nodes: failed.Nodes, ExitCodes: []int{0, 3}, Code: 3, GPUSeconds: 186}},
	}
	c.Events = smallEvents(at)
	return c
}

func job(id int64, name string, st api.JobState, size int) api.Job {
	return api.Job{JobID: id, Name: name, User: "ada", UID: 1000, Account: "lab", Partition: "gpu", State: st, StateCode: st.Code(),
		Priority: 500, Size: size, Launch: api.LaunchRanks, Budgets: map[api.Cause]api.Budget{}, CPUsPerRank: 2, MemoryBytes: 16 * gib,
		SubmitTime: Now.Add(-4 * time.Hour), EligibleTime: Now.Add(-4 * time.Hour), GraceSeconds: 15, WorkDir: "/home/ada/run",
		Command: "train.sh", StdOut: "gang-%j.out", SubmitHost: "login", Nodes: []string{}, Ranks: []api.Rank{}}
}

func smallEvents(at func(time.Duration) time.Time) []api.Event {
	t := func(ms int) time.Time { return at(3 * time.Hour).Add(time.Duration(ms) * time.Millisecond) }
	evs := []api.Event{
		{Time: t(0), Type: api.EventSubmitted},
		{Time: t(4), Epoch: 1, Type: api.EventReserved, Nodes: []string{"n1", "n3"}, Size: 4},
		{Time: t(11), Epoch: 1, Type: api.EventPrepared},
		{Time: t(12), Epoch: 1, Type: api.EventStarted},
		{Time: t(3600012), Epoch: 1, Type: api.EventRankExited, Rank: number(1), Node: "n1", ExitCode: number(1)},
		{Time: t(3600013), Epoch: 1, Type: api.EventDrainStarted, Cause: api.CauseCrash, Trigger: number(1), Moved: 3},
		{Time: t(3601200), Epoch: 1, Type: api.EventMemberStopped, Node: "n1", ExitCodes: map[int]int{0: 143, 1: 1}},
		{Time: t(3601400), Epoch: 1, Type: api.EventDrainCompleted, Outcome: "blocked", Cause: api.CauseCrash, Seconds: 1.387},
	}
	for i := range evs {
		evs[i].Seq, evs[i].JobID = int64(i+1), 12
	}
	return evs
}

func smallNodes() []api.Node {
	var nodes []api.Node
	for i := range 4 {
		name := fmt.Sprintf("n%d", i+1)
		n := api.Node{Name: name, State: api.NodeUp, Address: "10.0.0." + fmt.Sprint(i+1), BootID: "boot-" + name, LastSeen: Now,
			Containment: "cgroup2", Version: "1.2.3", Partitions: []string{"gpu"}, Features: []string{"ib"}, CPUs: 64, Shape: api.CPUShape{Sockets: 2, Cores: 16, Threads: 2}, MemoryBytes: 512 * gib, Jobs: []int64{}}
		if i >= 2 {
			n.Partitions = append(n.Partitions, "long")
		}
		for k := range 4 {
			n.Cards = append(n.Cards, api.Card{Index: k, UUID: fmt.Sprintf("GPU-%s-%d", name, k), Model: "H100", VRAMBytes: 80 * gib, State: api.CardOK, Jobs: []int64{}})
		}
		nodes = append(nodes, n)
	}
	for i := range 2 {
		n := &nodes[i]
		n.Jobs, n.CPUsUsed, n.MemoryUsed = []int64{12}, 4, 32*gib
		for k := range 2 {
			c := &n.Cards[k]
			c.ReservedBytes, c.UsedBytes, c.Utilization, c.Jobs = 80*gib, 37*gib+gib/2, 97, []int64{12}
		}
	}
	for i := range nodes {
		nodes[i].Limits = api.NodeLimits{Memory: api.LimitEnforced, Processes: api.LimitEnforced, CPUs: api.LimitEnforced, CPUSets: api.LimitEnforced}
	}
	nodes[1].Limits = api.NodeLimits{Memory: api.LimitSampled, Processes: api.LimitSampled, CPUs: api.LimitNone, CPUSets: api.LimitAdvised, Reason: "no cgroup may be written"}
	nodes[1].Jobs = []int64{12, 20, 21}
	nodes[1].Cards[3].StrangersBytes = 3 * gib
	nodes[2].State, nodes[2].Reason = api.NodeDrained, "new driver"
	nodes[2].Cards[1].State, nodes[2].Cards[1].Reason = api.CardQuarantined, "Xid 79: fallen off the bus"
	nodes[3].State, nodes[3].LostSince, nodes[3].LastSeen = api.NodeLost, Now.Add(-10*time.Minute), Now.Add(-11*time.Minute)
	for k := range nodes[3].Cards {
		nodes[3].Cards[k].Utilization = -1
	}
	return nodes
}
