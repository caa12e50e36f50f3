package sim

import (
	"strings"
	"time"

	"gangd/pkg/api"
)

// alloc is an allocation of two nodes with two slots each.
func alloc(script Behaviour, steps ...Step) Job {
	return Job{At: s1, Ranks: 4, Nodes: 2, Batch: true, Runs: script, Steps: steps}
}

// four is a step of a task on each slot.
func four(b Behaviour) Step { return Step{After: 200 * ms, Tasks: 4, Nodes: 2, Runs: b} }

func with(j Job, f func(j *Job)) []Job {
	f(&j)
	return []Job{j}
}

// lines counts those with all of some texts.
func (s *seen) lineCount(texts ...string) (n int) {
	for _, l := range s.lines {
		if has(l.text, texts) {
			n++
		}
	}
	return n
}

// lastLine is when the last of them was.
func (s *seen) lastLine(texts ...string) time.Duration {
	at := time.Duration(-1)
	for _, l := range s.lines {
		if has(l.text, texts) {
			at = l.at
		}
	}
	return at
}

func has(text string, all []string) bool {
	for _, t := range all {
		if !strings.Contains(text, t) {
			return false
		}
	}
	return true
}

// drained is how long the n-th stop of job 0 took.
func (s *seen) drained(n int) time.Duration {
	return s.when(api.EventDrainCompleted, 0, n) - s.when(api.EventDrainStarted, 0, n)
}

// saved says what is wrong when not each of the tasks was told once to end, and had its save.
func (s *seen) saved(tasks int) string {
	return firstOf(unless(s.lineCount("task", "gets TERM") == tasks, "%d tasks were told to end", s.lineCount("task", "gets TERM")),
		unless(s.lineCount("task", "ends with 0") == tasks, "%d tasks ended well", s.lineCount("task", "ends with 0")))
}

// saving is a task that needs two seconds to save.
var saving = Behaviour{For: 90 * s1, OnTerm: TermSaves, Saves: 2 * s1}

// allocations are about those who are told of an end, and about what they say and keep.
var allocationScenarios = []directed{
	{name: "a script that ends before its steps is a stop of them", seeds: 3,
		sc:   Scenario{Nodes: nodes(2, 2), Jobs: []Job{alloc(Behaviour{For: 3 * s1}, four(saving))}},
		want: func(s *seen) string { return firstOf(s.ended(0, api.JobCompleted, 1), s.saved(4)) }},
	{name: "the result of an allocation is its script's", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Jobs: []Job{alloc(Behaviour{For: 3 * s1, Exit: 3}, four(saving))}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobFailed, 1), s.saved(4), unless(s.jobs[0].Verdict.ExitCode == 3, "it ended with %d", s.jobs[0].Verdict.ExitCode))
		}},
	{name: "a script that waits for its steps is held until they have saved", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 30 * s1, Jobs: []Job{alloc(Behaviour{Awaits: true}, four(saving))},
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCancelled, 1), s.saved(4), unless(s.lineCount("rank 0", "ends with 143") == 1, "the script did not die of the signal"),
				unless(s.lastLine("rank 0", "gets TERM") > s.lastLine("task", "ends with 0"), "the script was told while tasks saved"))
		}},
	{name: "a script that ends in the lead of its steps", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 30 * s1, Jobs: with(alloc(Behaviour{For: 90 * s1, OnNotice: NoticeEnds}, four(saving)), func(j *Job) { j.Lead, j.Scope = 15*s1, api.ScopeFull }),
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Preempt})}},
		want: func(s *seen) string {
			return firstOf(unless(s.count(api.EventReserved, 0) == 2, "it was not requeued"),
				unless(s.drained(1) < 5*s1, "the stop took %s, of which 3 s were needed", s.drained(1)))
		}},
	{name: "a node without steps is free in a lead", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1, Jobs: with(alloc(Behaviour{For: 90 * s1, OnNotice: NoticeHeard}), func(j *Job) { j.Lead, j.Scope = 15*s1, api.ScopeFull }),
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			took := s.when(api.EventMemberStopped, 0, 1) - s.when(api.EventDrainStarted, 0, 1)
			return firstOf(s.ended(0, api.JobCancelled, 1), unless(took < 2*s1, "it was held for %s", took))
		}},
	{name: "tasks on other nodes have their lead", seeds: 3, // they can hear its notice, and save for longer
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1, Jobs: with(alloc(Behaviour{For: 90 * s1}, four(Behaviour{For: 90 * s1, OnTerm: TermSaves, OnNotice: NoticeSaves, Saves: 12 * s1})), func(j *Job) { j.Lead, j.Grace = 10*s1, 20*s1 }),
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			took := s.lineOf("gets TERM", 1) - s.when(api.EventDrainStarted, 0, 1)
			return firstOf(s.ended(0, api.JobCancelled, 1), s.saved(4), unless(took > 9900*ms, "the lead was %s", took))
		}},
	{name: "what a script leaves beside its steps goes with the last of them", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Jobs: with(alloc(Behaviour{For: 3 * s1, Daemon: true}, four(saving)), func(j *Job) { j.Grace = 12 * s1 })},
		want: func(s *seen) string {
			took := s.when(api.EventEnded, 0, 1) - s.lineOf("rank 0 pid", 1)
			return firstOf(s.ended(0, api.JobCompleted, 1), s.saved(4), unless(took < 5*s1, "it went %s after the script", took))
		}},
	{name: "tasks hear one stop signal, whoever ends them", seeds: 4,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 30 * s1, Jobs: []Job{alloc(Behaviour{For: 90 * s1}, four(saving))},
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: CrashStep, N: 1}), on(api.EventStarted, 1, 4*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string { return firstOf(s.ended(0, api.JobCancelled, 1), s.saved(4)) }},
	{name: "nobody dies of a notice", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1,
			Jobs: with(alloc(Behaviour{For: 90 * s1}, Step{After: 200 * ms, Tasks: 2, Runs: saving}, Step{After: s1, Tasks: 2, Runs: Behaviour{For: 90 * s1, OnNotice: NoticeHeard}}),
				func(j *Job) { j.Lead, j.TimeLimit = 3*s1, 8*s1 })},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobTimeout, 1), unless(s.lineCount("task 1.", "gets USR1") == 2, "%d were told", s.lineCount("gets USR1")))
		}},
	{name: "a notice that the script does not take goes to its tasks, on all nodes", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1, Jobs: with(alloc(Behaviour{For: 90 * s1}, four(Behaviour{For: 90 * s1, OnNotice: NoticeHeard, OnTerm: TermSaves})),
			func(j *Job) { j.Lead, j.Scope = 3*s1, api.ScopeBatch }),
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCancelled, 1), unless(s.lineCount("n1: ", "gets USR1") == 2 && s.lineCount("n2: ", "gets USR1") == 2, "%d were told", s.lineCount("gets USR1")))
		}},
	{name: "a notice that the script takes is its own", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1, Jobs: with(alloc(Behaviour{For: 90 * s1, OnNotice: NoticeHeard}, four(Behaviour{For: 90 * s1, OnNotice: NoticeHeard})),
			func(j *Job) { j.Lead, j.Scope = 3*s1, api.ScopeBatch }),
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCancelled, 1), unless(s.lineCount("rank 0", "gets USR1") == 1 && s.lineCount("gets USR1") == 1, "%d were told", s.lineCount("gets USR1")))
		}},
	{name: "a lead ends when the last task has saved", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1,
			Jobs: with(alloc(Behaviour{For: 90 * s1}, Step{After: 200 * ms, Tasks: 2, Runs: Behaviour{For: 90 * s1, OnNotice: NoticeSaves, Saves: 500 * ms}},
				Step{After: 300 * ms, Tasks: 2, Runs: Behaviour{For: 90 * s1, OnNotice: NoticeSaves, Saves: 5 * s1}}), func(j *Job) { j.Lead = 15 * s1 }),
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			took := s.lineOf("gets TERM", 1) - s.when(api.EventDrainStarted, 0, 1)
			return firstOf(s.ended(0, api.JobCancelled, 1), unless(took >= 5*s1 && took < 8*s1, "the lead was %s", took))
		}},
	{name: "a step that is ended is told so", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 30 * s1, Jobs: []Job{alloc(Behaviour{For: 12 * s1}, four(saving))},
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: StopStep})}},
		want: func(s *seen) string {
			took := s.lastLine("gets TERM") - s.when(api.EventStarted, 0, 1)
			return firstOf(s.ended(0, api.JobCompleted, 1), s.saved(4), unless(took < 5*s1, "its tasks were told %s after the start", took))
		}},
	{name: "a task that falls silent among others is found", seeds: 2,
		sc: Scenario{Nodes: []Node{{Name: "n1", CPUs: 2, Cards: 2}, {Name: "n2", CPUs: 2, Cards: 2}},
			Jobs: with(alloc(Behaviour{Awaits: true}, four(Behaviour{For: 20 * s1, Beats: true, Hangs: 5 * s1, FailRank: 3, OnTerm: TermSaves})),
				func(j *Job) { j.GPUs, j.StallTimeout = 1, 3*s1 })},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.jobs[0].Used[api.CauseStalled] == 1, "charged %v", s.jobs[0].Used))
		}},
	// The first epoch is ended when tasks have put one each third of 9 s, those of n2 later.
	{name: "a set is complete when every task has put one", seeds: 4,
		sc: Scenario{Nodes: nodes(2, 2), Jobs: with(alloc(Behaviour{Awaits: true}, four(Behaviour{For: 9 * s1, Skew: 4 * s1, Checkpoints: true})), func(*Job) {}),
			Faults: []Fault{on(api.EventCheckpoint, 2, 100*ms, Fault{Do: Requeue})}},
		want: func(s *seen) string { return s.ended(0, api.JobCompleted, 2) }},
	{name: "a step starts from a set of as many tasks", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 2),
			Jobs: with(alloc(Behaviour{Awaits: true}, Step{After: 100 * ms, Tasks: 2, Runs: Behaviour{For: s1}}, Step{After: 3 * s1, Tasks: 4, Nodes: 2, Runs: Behaviour{For: 9 * s1, Checkpoints: true}}),
				func(*Job) {}),
			Faults: []Fault{on(api.EventCheckpoint, 4, s1, Fault{Do: Requeue})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.lineCount("is handed") == 4, "%d tasks were handed their own", s.lineCount("is handed")))
		}},
	{name: "checkpoints are kept of the widest step", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 2),
			Jobs: []Job{alloc(Behaviour{Awaits: true}, four(Behaviour{For: 12 * s1, Checkpoints: true}), Step{After: s1, Tasks: 2, Overlap: true, Runs: Behaviour{For: 6 * s1, Checkpoints: true}})}},
		want: func(s *seen) string {
			c := s.jobs[0].TaskCheckpoint
			return firstOf(s.ended(0, api.JobCompleted, 1), unless(c != nil && c.Complete && c.Tasks == 4, "kept is %+v", c))
		}},
	{name: "a job that saves in the lead of its limit runs again until its time is used up", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1,
			Jobs: with(alloc(Behaviour{Awaits: true}, four(Behaviour{For: 90 * s1, OnNotice: NoticeEnds})),
				func(j *Job) { j.TimeLimit, j.Lead, j.TotalTime = 6*s1, 3*s1, 14*s1 })},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobTimeout, 3), unless(len(s.jobs[0].Used) == 0, "charged %v", s.jobs[0].Used))
		}},
	{name: "two steps at once are two", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 30 * s1,
			Jobs:   []Job{alloc(Behaviour{Awaits: true}, Step{After: 200 * ms, Tasks: 2, Runs: Behaviour{For: 4 * s1}}, Step{After: 600 * ms, Tasks: 2, Runs: saving})},
			Faults: []Fault{on(api.EventStarted, 1, 8*s1, Fault{Do: Requeue})}},
		want: func(s *seen) string {
			return firstOf(unless(s.count(api.EventReserved, 0) >= 2, "it was not requeued"), unless(s.lineCount("task 0.", "gets TERM") == 0, "tasks of the other step were told"))
		}},
	{name: "a cut between the nodes of a step ends it on neither", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1, Jobs: []Job{alloc(Behaviour{Awaits: true}, four(Behaviour{For: 15 * s1, OnTerm: TermSaves}))},
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: Cut, Node: "n2", For: 6 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 1), unless(s.lineCount("gets TERM") == 0, "%d were told to end", s.lineCount("gets TERM")))
		}},
	{name: "a step that begins while its job is stopped", seeds: 40, vary: func(i int, sc *Scenario) {
		sc.Faults = []Fault{on(api.EventStarted, 1, 200*ms+time.Duration(i)*500*time.Microsecond, Fault{Do: Cancel})}
	},
		sc:   Scenario{Nodes: nodes(2, 2), Calm: 20 * s1, Jobs: []Job{alloc(Behaviour{For: 30 * s1, OnTerm: TermSaves}, four(Behaviour{For: 90 * s1, OnTerm: TermIgnored}))}},
		want: func(s *seen) string { return s.ended(0, api.JobCancelled, 1) }},
	{name: "while no controller runs the end of a script is one all the same", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 60 * s1, Jobs: []Job{alloc(Behaviour{For: 5 * s1}, four(saving))},
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: CrashGangd, For: 20 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 1), s.saved(4), unless(s.lineOf("gets TERM", 2) < 10*s1, "tasks were told at %s", s.lineOf("gets TERM", 2)))
		}},
}
