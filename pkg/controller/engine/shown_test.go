package engine

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// still is an engine that nobody runs, at noon: for what only looks at a state.
func still() *Engine {
	e := &Engine{own: &Conf{}, log: slog.New(slog.DiscardHandler), done: make(chan struct{})}
	e.published.Store(&inForce{Conf: e.own, policy: &e.own.Policy})
	e.opt.Clock = &handClock{gang.Instant{Wall: noon, Mono: time.Hour}}
	e.own.Settings = api.DefaultSettings()
	e.own.Policy.Partitions = []api.Partition{{Name: "main", Default: true}, {Name: "night"}}
	e.view.nodes = map[string]*gang.Node{}
	e.view.reservations = map[string]*api.Reservation{}
	e.view.desired, e.view.ended = map[string][]api.Assignment{}, map[int64]chan struct{}{}
	e.bus.init(0)
	return e
}

// differs fails with what is not as wanted.
func differs(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: want -, got +:\n%s", what, d)
	}
}

// waitingJob is one of one rank that nothing is known of.
func waitingJob(edit func(*gang.Job)) *gang.Job {
	j := &gang.Job{ID: 7, ArrayIndex: -1, User: "ada", Name: "job", Partition: "main", Spec: &api.Spec{Size: 1, CPUsPerRank: 1}, Ranks: []gang.Rank{{State: api.RankBlocked}},
		Wishes: new(gang.Wishes), Past: &gang.Past{}}
	edit(j)
	return j
}

// TestShowsAllOfAJob: each field that people and tools read of a job is what the job has.
func TestShowsAllOfAJob(t *testing.T) {
	e := still()
	e.own.Policy.Preempt = order.PreemptTier
	site := &e.own.Settings
	two, three := 2, 3
	s := &api.Spec{
		Account: "vision", AsAsked: api.AsAsked{Comment: "first", Notify: []api.Notify{{To: "ada@x"}}, Report: true, Allocation: true}, Size: 2, Launch: api.LaunchRanks,
		Roles:       []api.Role{{Name: "lead", Count: 1, CPUsPerRank: 3, Constraint: "ib"}, {Name: "work", Count: 1, CPUsPerRank: 4}},
		CPUsPerRank: 5, MemoryPerRank: 6, MemoryPerNode: 7, TmpPerNode: 8, GPUsPerRank: 9, GPUsPerNode: 10, VRAMBytes: 11, Share: true,
		Shape: api.CPUShape{Sockets: 1, Cores: 2, Threads: 3}, Asked: &api.Asked{GPUs: "9"}, RanksPerNode: 1, MinNodes: 2, Exclusive: true,
		NodeList: []string{"n1", "n2"}, Exclude: []string{"n3"}, Constraint: "ib", Prefer: "fast", Switches: 1, Reservation: "talk",
		TimeMin: 30 * time.Minute, Notice: &api.Notice{Signal: "USR1", Lead: 90 * time.Second, Scope: api.ScopeRanks}, Grace: 40 * time.Second,
		MinRun: 2 * time.Hour, MaxTimeTotal: 5 * time.Hour, StallTimeout: 3 * time.Second, GPUWatch: true,
		Nice: 4, Cron: &api.Cron{Schedule: "@daily"},
		WorkDir: "/home/ada", ScriptName: "train.sh", SubmitHost: "login", Output: "out", Error: "err", Input: "in",
		Container: &api.Container{Image: "docker://alpine"},
	}
	j := &gang.Job{ID: 12, ArrayID: 10, ArrayIndex: 2, Array: &gang.ArrayInfo{Limit: 4}, User: "ada", UID: 1000, GID: 1001, Name: "train", Partition: "main", Priority: 17,
		Spec: s, TimeLimit: 2 * time.Hour, Submit: noon.Add(-3 * time.Hour), Eligible: noon.Add(-2 * time.Hour),
		Ranks: []gang.Rank{
			{State: api.RankRunning, Slot: cluster.Slot{Node: "n1", Cards: []string{"c0"}}, PID: 100, Start: noon.Add(-time.Hour)},
			{State: api.RankDone, Slot: cluster.Slot{Node: "n2"}, PID: 101, Start: noon.Add(-time.Hour), End: noon, Exited: true, ExitCode: 3, Signal: 9}},
		Wishes: &gang.Wishes{Held: "user", Deadline: noon.Add(24 * time.Hour), Waits: "afterok:3"},
		Past:   &gang.Past{Attempt: gang.Attempt{Start: noon.Add(-time.Hour), Epoch: 3, Members: []gang.Member{{Node: "n1", Ranks: []int{0}}, {Node: "n2", Ranks: []int{1}}}, End: noon.Add(-4 * time.Hour), Restarts: 2}, Setbacks: gang.Setbacks{Used: map[api.Cause]int{api.CauseCrash: 1}}, Progress: gang.Progress{Ran: time.Hour, Checkpoint: &gang.Checkpoint{Epoch: 2, Time: noon.Add(-time.Minute), Bytes: 20, Complete: true}, TaskCheckpoint: &gang.TaskCheckpoint{StepSet: gang.StepSet{Epoch: 2, Step: 5, Tasks: 6}, Time: noon.Add(-2 * time.Minute), Bytes: 21, Complete: true}}, Allocation: gang.Allocation{Image: "sha256:1"}},
	}
	j.Steps = []gang.Step{{ID: 4, Ask: api.StepAsk{Name: "eval"}, Start: noon, Parts: []gang.StepPart{{Member: 1, Tasks: []int{0}, CPUs: 2, Importing: api.Import{Bytes: 1 << 20}}}}}
	x := e.notes.at(j)
	x.ranks[0] = rankNote{api.RankNote{Status: "epoch 4", Ready: true, Stopping: true}, noon.Add(-time.Second)}
	want := api.Job{JobID: 12, ArrayJobID: 10, ArrayIndex: &two, ArrayLimit: 4, Name: "train", User: "ada", UID: 1000, GID: 1001, Account: "vision", Partition: "main",
		State: api.JobRunning, StateCode: api.JobRunning.Code(), Reason: "None", Priority: 17, Cron: s.Cron, Held: "user", Size: 2, Launch: api.LaunchRanks, Epoch: 3, RestartCount: 2,
		Budgets: gang.Budgets(site, j), SubmitTime: j.Submit, EligibleTime: j.Eligible, StartTime: j.Start, EndTime: j.End, TimeLimitSeconds: 7200, MaxTimeTotal: 18000, RanSeconds: 3600,
		TimeMinSeconds: 1800, Deadline: j.Deadline, SafeUntil: noon.Add(time.Hour), SafeBy: string(order.ProtectedByItself), GraceSeconds: 40,
		Notice: &api.NoticeView{Signal: "USR1", LeadSeconds: 90, Scope: api.ScopeRanks}, VRAMBytes: 11, GPUsPerRank: 9, GPUsPerNode: 10, Cards: 20, CPUsPerRank: 5, MemoryBytes: 6, MemoryPerNode: 7,
		TmpPerNode: 8, Shape: s.Shape, Nodes: []string{"n1", "n2"}, MinNodes: 2, RanksPerNode: 1, NodeList: s.NodeList, Exclude: s.Exclude, Constraint: "ib", Prefer: "fast",
		Reservation: "talk", Switches: 1, Exclusive: true, Share: true, Nice: 4, AsAsked: s.AsAsked, Status: "epoch 4",
		Ready:          &api.Readiness{Ranks: 1, Size: 2},
		Checkpoint:     &api.Checkpoint{Epoch: 2, Time: noon.Add(-time.Minute), Bytes: 20, Complete: true},
		TaskCheckpoint: &api.Checkpoint{Epoch: 2, Time: noon.Add(-2 * time.Minute), Bytes: 21, Complete: true, StepID: "5", Tasks: 6},
		WorkDir:        "/home/ada", Command: "train.sh", StdOut: "out", StdErr: "err", StdIn: "in", Image: "docker://alpine", ImageDigest: "sha256:1", SubmitHost: "login", Dependency: "afterok:3",
		Steps: []api.Step{{JobID: 12, StepID: "4", Epoch: 3, Name: "eval", State: api.JobRunning, Nodes: []string{"n2"}, Tasks: 1, CPUs: 2, Layout: "1", StartTime: noon, User: "ada", Partition: "main", Status: "importing its image: 1M on n2"}},
		Asked: s.Asked, Roles: s.Roles, LastBeat: noon.Add(-time.Second), StallTimeoutSeconds: 3, GPUWatch: true,
		Ranks: []api.Rank{
			{Rank: 0, Role: "lead", State: api.RankRunning, Node: "n1", Cards: []string{"c0"}, PID: 100, StartTime: j.Start, LastBeat: noon.Add(-time.Second), Status: "epoch 4", Ready: true, Stopping: true},
			{Rank: 1, Role: "work", State: api.RankDone, Node: "n2", PID: 101, StartTime: j.Start, EndTime: noon, ExitCode: &three, Signal: 9}}}
	differs(t, "that runs", e.show(j, true), want)

	// Without its ranks, as lists are asked for; with what was changed after the submission.
	changed := j.Copy()
	changed.Constraint, changed.Prefer, changed.Comment, changed.Nice = new("roce"), new("big"), new("second"), new(int64(5))
	want.Ranks, want.Constraint, want.Prefer, want.Comment, want.Nice = []api.Rank{}, "roce", "big", "second", 5
	want.Roles = []api.Role{s.Roles[0], s.Roles[1]}
	want.Roles[0].Constraint = "roce"
	differs(t, "changed", e.show(changed, false), want)

	// What it did not ask for is the site's; of what is over it says how, and it does not come again.
	over := j.Copy()
	own := *s
	own.Grace, own.Output, own.Notice, own.Container = 0, "", nil, nil
	over.Spec, over.CancelledBy = &own, "root"
	over.Verdict = &gang.Verdict{State: api.JobCancelled, Cause: api.CauseCancelled, Trigger: 1, ExitCode: 143, Signal: 15, Text: "cancelled by root"}
	got := e.show(over, false)
	if got.GraceSeconds != int64(site.Grace/time.Second) || got.StdOut != "gang-%j.%r.out" && !strings.Contains(got.StdOut, "%") || got.Notice != nil || got.Image != "" || got.ImageDigest != "" || got.Cron != nil || got.SafeBy != "" {
		t.Errorf("%+v", got)
	}
	if got.Cause != api.CauseCancelled || got.Verdict != "cancelled by root" || *got.ExitCode != 143 || got.Signal != 15 || got.CancelledBy != "root" || *got.TriggerRank != 1 || got.State != api.JobCancelled {
		t.Errorf("%+v", got)
	}
}

// TestReasonOfAJob: the one word that lists show, by what keeps a job or ended it.
func TestReasonOfAJob(t *testing.T) {
	e := still()
	over := func(s api.JobState, c api.Cause) func(*gang.Job) {
		return func(j *gang.Job) { j.Epoch, j.Verdict = 1, &gang.Verdict{State: s, Cause: c, Trigger: -1} }
	}
	with := func(edits ...func(*gang.Job)) func(*gang.Job) {
		return func(j *gang.Job) {
			for _, f := range edits {
				f(j)
			}
		}
	}
	waits := func(j *gang.Job) { j.Waits = "afterok:3(failed)" }
	held := func(by string) func(*gang.Job) { return func(j *gang.Job) { j.Held = by } }
	for i, c := range []struct {
		edit  func(*gang.Job)
		want  string
		cause api.Cause
	}{
		{func(*gang.Job) {}, "None", ""},
		{held("user"), "JobHeldUser", ""}, {held("admin"), "JobHeldAdmin", ""}, {held("special"), api.ReasonSpecialExit, ""},
		{func(j *gang.Job) { j.Ranks[0].State, j.Spec.ReadyTimeout = api.RankRunning, time.Hour }, "NotReady", ""},
		{func(j *gang.Job) {
			j.Ranks[0].State, j.Spec.ReadyTimeout, j.Drain = api.RankRunning, time.Hour, &gang.Drain{Cause: api.CauseCrash}
		}, "None", api.CauseCrash},
		{over(api.JobCompleted, api.CauseCompleted), "None", api.CauseCompleted},
		{with(over(api.JobCompleted, api.CauseCompleted), waits), "None", api.CauseCompleted},
		{with(over(api.JobCancelled, api.CauseCancelled), waits), neverSatisfied, api.CauseCancelled},
		{with(over(api.JobCancelled, api.CauseCancelled), held("user"), func(j *gang.Job) { j.Epoch = 0 }), "JobHeldUser", api.CauseCancelled},
		{with(over(api.JobCancelled, api.CauseCancelled), held("user")), "None", api.CauseCancelled},
		{with(over(api.JobFailed, api.CauseCrash), held("user"), func(j *gang.Job) { j.Epoch = 0 }), "NonZeroExitCode", api.CauseCrash},
		{with(over(api.JobCancelled, api.CauseCancelled), func(j *gang.Job) { j.Epoch = 0 }), "None", api.CauseCancelled},
		{over(api.JobTimeout, api.CauseTimeout), "TimeLimit", api.CauseTimeout},
	} {
		var out api.Job
		e.line(&out, waitingJob(c.edit), noon)
		if out.Reason != c.want || out.Cause != c.cause {
			t.Errorf("%d: %s by %q, want %s by %q", i, out.Reason, out.Cause, c.want, c.cause)
		}
	}
	for _, index := range []int{-1, 0, 1} {
		var out api.Job
		e.line(&out, waitingJob(func(j *gang.Job) { j.ArrayIndex = index }), noon)
		if (out.ArrayIndex != nil) != (index >= 0) || out.ArrayIndex != nil && *out.ArrayIndex != index {
			t.Errorf("element %d is shown as %v", index, out.ArrayIndex)
		}
	}
	for _, c := range []struct {
		s    api.JobState
		c    api.Cause
		want string
	}{
		{api.JobDeadline, "", "DeadLine"}, {api.JobNodeFail, api.CauseNodeLost, "NodeDown"}, {api.JobFailed, api.CauseStalled, "Stalled"}, {api.JobFailed, api.CauseGPUHang, "GPUHang"},
		{api.JobFailed, api.CauseIdle, "Idle"}, {api.JobFailed, api.CauseLaunch, "JobLaunchFailure"}, {api.JobCompleted, "", "None"},
	} {
		if got := endReason(c.s, c.c); got != c.want {
			t.Errorf("%s by %s: %s, want %s", c.s, c.c, got, c.want)
		}
	}
}

// TestWaits: what keeps a job, with the way out where there is one; the first that holds is said.
func TestWaits(t *testing.T) {
	e := still()
	e.own.Policy.Partitions = append(e.own.Policy.Partitions, api.Partition{Name: "down", State: api.PartitionDown}, api.Partition{Name: "inactive", State: api.PartitionInactive})
	e.view.reservations["talk"] = &api.Reservation{Name: "talk", Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour), Nodes: []string{"n1", "n2"}, Users: []string{"ada"}, Accounts: []string{"vision"}}
	e.view.reservations["now"] = &api.Reservation{Name: "now", Start: noon, End: noon.Add(2 * time.Hour), Nodes: []string{"n1"}, Users: []string{"ada"}}
	reserved := func(name string) func(*gang.Job) {
		return func(j *gang.Job) { j.Spec.Reservation, j.Spec.Account = name, "vision" }
	}
	for _, c := range []struct {
		edit       func(*gang.Job)
		word, text string
	}{
		{func(j *gang.Job) { j.Held, j.Waits = "admin", "afterok:3" }, "JobHeldAdmin", "held by an admin; only an admin may release it (gctl release)"},
		{func(j *gang.Job) { j.Held = "user" }, "JobHeldUser", "held by its owner; gctl release 7 lets it go"},
		{func(j *gang.Job) { j.Held = "special" }, api.ReasonSpecialExit, "held by its owner; gctl release 7 lets it go"},
		{func(j *gang.Job) { j.Waits, j.Eligible = "afterok:3(unfulfilled)", noon.Add(1) }, "Dependency", "waits for afterok:3"},
		{func(j *gang.Job) { j.Waits, j.Hopeless = "afterok:3(failed)", true }, neverSatisfied, "its dependency can never be met: afterok:3(failed); gcancel 7 ends it"},
		{func(j *gang.Job) { j.Eligible = noon.Add(time.Hour) }, "BeginTime", "begins at 13:00:00"},
		{func(j *gang.Job) { j.Eligible = noon }, "None", "not looked at yet"},
		{func(j *gang.Job) { j.Eligible, j.Epoch = noon.Add(time.Hour), 1 }, "None", "not looked at yet"},
		{func(j *gang.Job) {
			j.Eligible, j.Epoch, j.Spec.Cron = noon.Add(time.Hour), 1, &api.Cron{Schedule: "@daily"}
		}, "BeginTime", "begins at 13:00:00, as its cron table says: @daily"},
		{func(j *gang.Job) { j.Eligible, j.Epoch, j.Spec.Cron = noon, 1, &api.Cron{Schedule: "@daily"} }, "None", "not looked at yet"},
		{func(j *gang.Job) { j.BackoffUntil, j.Epoch = noon.Add(time.Minute), 1 }, "BeginTime", "runs again at 12:01:00, after a back-off: an attempt failed, or it had ended"},
		{func(j *gang.Job) { j.BackoffUntil = noon }, "None", "not looked at yet"},
		{func(j *gang.Job) { j.Partition = "gone" }, "PartitionInactive", "partition gone is not there any more; gctl update 7 --partition=NAME moves it"},
		{func(j *gang.Job) { j.Partition = "down" }, "PartitionDown", "partition down is down: an admin lets nothing start in it"},
		{func(j *gang.Job) { j.Partition = "inactive" }, "PartitionInactive", "partition inactive is inactive: an admin lets nothing start in it"},
		{func(j *gang.Job) { j.Partition = "inactive,down" }, "PartitionInactive", "partition inactive is inactive: an admin lets nothing start in it"},
		{func(j *gang.Job) { j.Partition = "down,main,inactive" }, "None", "not looked at yet"},
		{reserved("none"), "ReservationDeleted", "its reservation none is not there any more; submit it again without --reservation, or gcancel 7"},
		{reserved("talk"), "Reservation", "its reservation talk (n[1-2]) begins at 13:00:00, in 1 h"},
		{func(j *gang.Job) { reserved("talk")(j); j.Spec.Account = "" }, "Reservation", "its reservation talk is not for ada any more"},
		{func(j *gang.Job) { reserved("talk")(j); j.Spec.Account = "speech" }, "Reservation", "its reservation talk is not for ada under account speech any more"},
		{func(j *gang.Job) { reserved("now")(j); j.User = "bob" }, "Reservation", "its reservation now is not for bob under account vision any more"},
		{reserved("now"), "None", "not looked at yet"},
		{func(j *gang.Job) { j.Array = &gang.ArrayInfo{Limit: 2} }, "JobArrayTaskLimit", "its array runs at most 2 at a time (--array=...%2), and so many do"},
		{func(j *gang.Job) { j.Array = &gang.ArrayInfo{} }, "None", "not looked at yet"},
	} {
		j := waitingJob(c.edit)
		if word, text := e.waits(j, noon, true); word != c.word || text != c.text {
			t.Errorf("got %s: %s\nwant %s: %s", word, text, c.word, c.text)
		}
		if word, _ := e.waits(j, noon, false); word != c.word {
			t.Errorf("in a list: %s, want %s", word, c.word)
		}
	}
}

// TestFenced: a gang that may still run somewhere names each such node, and the one to fence.
func TestFenced(t *testing.T) {
	e := still()
	left := func(job int64, ran bool) []gang.Left {
		return []gang.Left{{MemberKey: api.MemberKey{Job: 99, Epoch: 1}, Ran: true}, {MemberKey: api.MemberKey{Job: job, Epoch: 2}, Ran: ran}}
	}
	for _, n := range []*gang.Node{{Name: "n1", State: api.NodeUp, Left: left(8, true)}, {Name: "n2", State: api.NodeLost, Left: left(7, true)}, {Name: "n3", State: api.NodeUp, Left: left(7, false)},
		{Name: "n4", State: api.NodeDrained, Left: left(7, true)}} {
		e.view.putNode(n)
	}
	word, text := e.fenced(waitingJob(func(j *gang.Job) { j.Epoch = 2 }))
	want := "attempt 2 may still run on n2 (lost), n4 (drained); it runs again when that is known to be over: the node comes back, its lease ends, or an admin says so: gctl node fence n4"
	if word != "NodeDown" || text != want {
		t.Errorf("%s: %s\nwant %s", word, text, want)
	}
	for what, j := range map[string]*gang.Job{"never ran": waitingJob(func(*gang.Job) {}), "is nowhere": waitingJob(func(j *gang.Job) { j.ID, j.Epoch = 5, 2 })} {
		if word, text := e.fenced(j); word != "" || text != "" {
			t.Errorf("%s: %s: %s", what, word, text)
		}
	}
}

// TestImportWords: how far the images of a gang's members are, four of them by name.
func TestImportWords(t *testing.T) {
	far := api.Import{Bytes: 1 << 20}
	j := waitingJob(func(j *gang.Job) {
		j.Members = []gang.Member{{Node: "n1"}, {Node: "n2", Importing: far}, {Node: "n3", Importing: api.Import{Bytes: 1 << 20, Total: 3 << 20}}}
	})
	if got, want := importing(j), "importing its image: 1M on n2, 1M of 3M on n3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if e := still(); e.show(j, false).Status != importing(j) {
		t.Errorf("shown as %q", e.show(j, false).Status)
	}
	for n, want := range map[int]string{0: "", 1: "importing its image: a", 4: "importing its image: a, b, c, d", 5: "importing its image: a, b, c, d, and on 1 more", 6: "importing its image: a, b, c, d, and on 2 more"} {
		if got := importWords([]string{"a", "b", "c", "d", "e", "f"}[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestSafe: until when a gang is not preempted, where anybody is.
func TestSafe(t *testing.T) {
	runs := func(edit func(*gang.Job)) *gang.Job {
		return waitingJob(func(j *gang.Job) {
			j.Ranks[0].State, j.Start, j.Spec.MinRun = api.RankRunning, noon.Add(-time.Hour), 2*time.Hour
			edit(j)
		})
	}
	for what, c := range map[string]struct {
		policy order.Policy
		j      *gang.Job
		until  time.Time
		by     string
	}{
		"its own":           {order.Policy{Preempt: order.PreemptTier}, runs(func(*gang.Job) {}), noon.Add(time.Hour), string(order.ProtectedByItself)},
		"nobody preempts":   {order.Policy{}, runs(func(*gang.Job) {}), time.Time{}, ""},
		"does not run":      {order.Policy{Preempt: order.PreemptTier}, runs(func(j *gang.Job) { j.Ranks[0].State = api.RankReserved }), time.Time{}, ""},
		"the site's":        {order.Policy{Preempt: order.PreemptTier, MinRun: 3 * time.Hour}, runs(func(*gang.Job) {}), noon.Add(2 * time.Hour), string(order.ProtectedBySite)},
		"until it ends":     {order.Policy{Preempt: order.PreemptTier, ProtectDone: true}, runs(func(j *gang.Job) { j.Ranks = append(j.Ranks, gang.Rank{State: api.RankDone}) }), time.Time{}, string(order.ProtectedByDone)},
		"long enough by it": {order.Policy{Preempt: order.PreemptTier}, runs(func(j *gang.Job) { j.Spec.MinRun = time.Hour }), time.Time{}, ""},
	} {
		e := still()
		e.own.Policy = c.policy
		if until, by := e.safe(c.j, noon); !until.Equal(c.until) || by != c.by {
			t.Errorf("%s: until %s by %q, want %s by %q", what, until, by, c.until, c.by)
		}
	}
}

// TestMinNodes: the fewest nodes, by each figure that speaks of them.
func TestMinNodes(t *testing.T) {
	component := func(count, minNodes, perNode int) api.Role {
		return api.Role{Count: count, Component: &api.Component{MinNodes: minNodes, RanksPerNode: perNode}}
	}
	for want, s := range map[int]api.Spec{1: {Size: 9}, 2: {Size: 9, MinNodes: 2}, 3: {Size: 9, RanksPerNode: 3}, 4: {Size: 10, RanksPerNode: 3, MinNodes: 2}, 5: {Size: 5, RanksPerNode: 1},
		6: {Size: 5, Roles: []api.Role{component(1, 0, 0), component(4, 5, 0)}}, 7: {Size: 8, MinNodes: 1, Roles: []api.Role{component(1, 4, 0), component(5, 1, 2)}}} {
		if got := minNodes(&s); got != want {
			t.Errorf("%+v: %d, want %d", s, got, want)
		}
	}
}

// TestComponents: each component has its ranks, its partition and the nodes of its own ranks.
func TestComponents(t *testing.T) {
	e := still()
	j := waitingJob(func(j *gang.Job) {
		j.Partition = "main,night"
		j.Spec = &api.Spec{Size: 3, Launch: api.LaunchBatch, Roles: []api.Role{{Name: "a", Count: 2, Component: &api.Component{JobName: "lead", MinNodes: 2, Partition: "night"}}, {Name: "b", Count: 1, Component: &api.Component{}}}}
		j.Ranks = []gang.Rank{{Slot: cluster.Slot{Node: "n1"}}, {Slot: cluster.Slot{Node: "n1"}}, {Slot: cluster.Slot{Node: "n2"}}}
	})
	want := []api.JobComponent{{Name: "lead", Size: 2, MinNodes: 2, Nodes: []string{}, Partition: "night"}, {Size: 1, MinNodes: 1, Nodes: []string{}, Partition: "main,night"}}
	differs(t, "that waits", e.components(j), want)
	want[0].Nodes, want[1].Nodes = []string{"n1"}, []string{"n2"}
	j.Verdict = &gang.Verdict{}
	differs(t, "that is over", e.components(j), want)
	j.Verdict, j.Members = nil, []gang.Member{{Node: "n1"}, {Node: "n2"}}
	differs(t, "that runs", e.components(j), want)
	if got := e.components(waitingJob(func(j *gang.Job) { j.Verdict = &gang.Verdict{} })); got != nil {
		t.Errorf("of none: %+v", got)
	}
	j.Verdict, j.Members = nil, nil
	if got := nodesOf(j); got == nil || len(got) != 0 {
		t.Errorf("one that waits is on %v", got)
	}
	j.Verdict = &gang.Verdict{}
	if got := nodesOf(j); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("one that is over was on %v", got)
	}
}

// TestShowRanks: a blocked rank is nowhere, and only what has exited has a code.
func TestShowRanks(t *testing.T) {
	j := waitingJob(func(j *gang.Job) {
		j.Ranks = []gang.Rank{{State: api.RankBlocked, Slot: cluster.Slot{Node: "n1", Cards: []string{"c"}}, ExitCode: 4}, {State: api.RankFailed, Slot: cluster.Slot{Node: "n2", Cards: []string{"d"}}, Exited: true, ExitCode: 5}}
	})
	five := 5
	differs(t, "ranks", showRanks(j), []api.Rank{{Rank: 0, State: api.RankBlocked}, {Rank: 1, State: api.RankFailed, Node: "n2", Cards: []string{"d"}, ExitCode: &five}})
}

// TestAttempt: what is shown of one is what its row has, and its cards by the seconds it held them.
func TestAttempt(t *testing.T) {
	s := &api.Spec{Size: 3, Roles: []api.Role{{Name: "lead", Count: 1}, {Name: "work", Count: 2}}}
	slots := []cluster.Slot{{Node: "n1", Cards: []string{"a"}}, {Node: "n1", Cards: []string{"b"}}, {Node: "n2", Cards: []string{"a"}}}
	one := 1
	row := gang.EpochRow{Job: 7, Epoch: 4, Slots: slots, Started: noon, Ended: noon.Add(10 * time.Second), Cause: api.CauseCrash, Trigger: 1, ExitCodes: []int{0, 137, 143}, Signals: []int{0, 9, 15}, VRAMPeak: 77}
	want := api.Attempt{JobID: 7, Attempt: 2, Epoch: 4, Cause: api.CauseCrash, TriggerRank: &one, TriggerRole: "work", StartTime: noon, EndTime: noon.Add(10 * time.Second), Nodes: []string{"n1", "n2"},
		ExitCodes: []int{0, 137, 143}, GPUSeconds: 30, VRAMPeak: 77, Code: 137, Signal: 9}
	differs(t, "crashed", attempt(s, &row, 2), want)
	row.Cause = api.CauseTimeout
	want.Cause, want.Code, want.Signal = api.CauseTimeout, 75, 0
	differs(t, "timed out", attempt(s, &row, 2), want)
	row.Cause, row.Trigger, row.Signals = api.CauseCrash, 2, []int{0, 9}
	two := 2
	want.Cause, want.Code, want.TriggerRank, want.Signal = api.CauseCrash, 143, &two, 0
	differs(t, "its signal not known", attempt(s, &row, 2), want)
	row.Cause, row.Trigger, row.ExitCodes, row.Ended = api.CauseCompleted, 0, nil, time.Time{}
	want = api.Attempt{JobID: 7, Attempt: 2, Epoch: 4, Cause: api.CauseCompleted, StartTime: noon, Nodes: []string{"n1", "n2"}, ExitCodes: []int{}, VRAMPeak: 77}
	differs(t, "that runs", attempt(s, &row, 2), want)
}

// TestShowsAllOfANode: each field of a node is what the node and its grants have.
func TestShowsAllOfANode(t *testing.T) {
	card := func(i int, uuid string, s api.CardState) cluster.Card {
		return cluster.Card{CardInfo: api.CardInfo{Index: i, UUID: uuid, Model: "H100", VRAMBytes: 80, MIG: true, Compute: "9.0", NUMA: 1}, State: s, Reason: "r" + uuid, StrangersBytes: 3, UsedBytes: 4, Utilization: 5}
	}
	res := &cluster.Node{Name: "n1", Address: "10.0.0.1", Has: cluster.Amounts{cluster.CPUs: 64, cluster.Memory: 100, cluster.Tmp: 200}, Shape: api.CPUShape{Sockets: 2}, Partitions: []string{"main"}, Features: []string{"ib"},
		Cards: []cluster.Card{card(0, "a", api.CardOK), card(1, "b", api.CardOK), card(2, "c", api.CardQuarantined)}}
	grant := func(job int64, cards ...cluster.CardGrant) cluster.Grant {
		return cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: 1}, Takes: cluster.Amounts{cluster.CPUs: 2, cluster.Memory: 5, cluster.Tmp: 7}, Cards: cards}
	}
	part := cluster.CardGrant{UUID: "a", VRAMBytes: 10}
	res = res.Restore(grant(1, part)).Restore(grant(2, part, cluster.CardGrant{UUID: "b", VRAMBytes: 1, Exclusive: true}, cluster.CardGrant{UUID: "c"}))
	n := &gang.Node{Name: "n1", State: api.NodeDrained, Reason: "fans", Admin: "fans", DrainUser: "root", DrainTime: noon, Down: true, DrainBy: noon.Add(1), BootID: "boot", LastSeen: noon.Add(2), LostSince: noon.Add(3), Res: res,
		Strikes: []gang.Strike{{}, {}}, Hello: api.Hello{Version: "v", Containment: "cgroup2", Devices: "enforced", Containers: []string{"dir"}, Limits: api.NodeLimits{Memory: "enforced"}}}
	shown := func(i int, uuid string, s api.CardState, reserved int64, jobs ...int64) api.Card {
		return api.Card{Index: i, UUID: uuid, Model: "H100", VRAMBytes: 80, MIG: true, Compute: "9.0", NUMA: 1, State: s, Reason: "r" + uuid, StrangersBytes: 3, UsedBytes: 4, Utilization: 5, ReservedBytes: reserved, Jobs: jobs}
	}
	want := api.Node{Name: "n1", State: api.NodeDrained, Reason: "fans", Strikes: 2, DrainUser: "root", DrainTime: noon, DrainBy: noon.Add(1), Down: true, Address: "10.0.0.1", BootID: "boot", LostSince: noon.Add(3), LastSeen: noon.Add(2),
		Containment: "cgroup2", Containers: []string{"dir"}, Devices: "enforced", Limits: api.NodeLimits{Memory: "enforced"}, Version: "v", Partitions: []string{"main"}, Features: []string{"ib"}, CPUs: 64, Shape: api.CPUShape{Sockets: 2},
		CPUsUsed: 4, MemoryBytes: 100, MemoryUsed: 10, TmpBytes: 200, TmpUsed: 14, Jobs: []int64{1, 2},
		Cards: []api.Card{shown(0, "a", api.CardOK, 20, 1, 2), shown(1, "b", api.CardOK, 80, 2), shown(2, "c", api.CardQuarantined, 0, 2)}}
	differs(t, "the node", showNode(n), want)

	// What may still live there holds its cards, as far as nothing else is wrong with them.
	n.Left = []gang.Left{{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Text: "not heard of"}, {MemberKey: api.MemberKey{Job: 2, Epoch: 1}, Ran: true, Text: "not heard of"}}
	n.Reason = ""
	why := "job 2 epoch 1: not heard of"
	want.Reason = why
	for i := range 2 {
		want.Cards[i].State, want.Cards[i].Reason = api.CardQuarantined, why
	}
	differs(t, "with what is left", showNode(n), want)
	n.Left = nil
	if got := showNode(n).Reason; got != gang.StrikeText(n) || got == "" {
		t.Errorf("of failed launches it says %q", got)
	}
	n.Admin, n.Down, n.Strikes = "", false, nil
	if !showNode(n).Silent {
		t.Error("one that is only silent is not said to be")
	}
}

// TestShowNodes: nodes by name with how busy they are, and what holds for all.
func TestShowNodes(t *testing.T) {
	e := still()
	e.own.Policy.Switches = []api.Switch{{Name: "s1"}}
	e.own.Policy.Preempt = order.PreemptTier
	changes := []api.PartitionChange{{Name: "night"}}
	e.published.Store(&inForce{Conf: e.own, policy: &e.own.Policy, changes: changes})
	e.view.putNode(&gang.Node{Name: "n2", Res: &cluster.Node{Name: "n2"}})
	e.view.putNode(&gang.Node{Name: "n1", Res: &cluster.Node{Name: "n1"}})
	e.NodeLoad("n2", &api.NodeLoad{Hundredths: 150})
	e.view.reservations["talk"] = &api.Reservation{Name: "talk", Start: noon, End: noon.Add(time.Hour), Nodes: []string{"n1"}}
	got := e.ShowNodes()
	if got.SchemaVersion != api.SchemaVersion || got.Preempt != "tier" || !reflect.DeepEqual(got.Switches, e.own.Policy.Switches) || !reflect.DeepEqual(got.Changes, changes) || len(got.Partitions) != 2 {
		t.Errorf("%+v", got)
	}
	if len(got.Nodes) != 2 || got.Nodes[0].Name != "n1" || got.Nodes[0].Load != nil || got.Nodes[1].Load == nil || got.Nodes[1].Load.Hundredths != 150 || got.Nodes[0].Reservation == nil || got.Nodes[0].Reservation.Name != "talk" || got.Nodes[1].Reservation != nil {
		t.Errorf("%+v", got.Nodes)
	}
	e = still()
	e.own.Policy.Partitions = nil
	e.published.Store(&inForce{Conf: e.own, policy: &e.own.Policy})
	if got := e.ShowNodes(); got.Partitions == nil || got.Nodes == nil || got.Preempt != "off" {
		t.Errorf("of nothing: %+v", got)
	}
}
