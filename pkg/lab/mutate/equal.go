package mutate

// equals are mutants that no test can tell from the source, by [Mutant.Key], with the reason.
var equals = map[string]string{
	`pkg/wire/auth/join.go post: skip "defer cancel()" #1`: "what is left is a timer, which ends by itself",

	`pkg/wire/auth/line.go parseLine: drop "err != nil" #5`: "what is decoded before an error is a multiple of three bytes",

	`pkg/wire/auth/renew.go renewOnce: bound "time.Until(expires) >= nodeLife/3" #1`: "a third to the nanosecond is between two readings " +
		"of the clock",

	`pkg/wire/auth/tokens.go Tokens.New: off by one "int64(maxTTL/time.Second)+1" #1`: "one second too many is refused as two are",

	`pkg/controller/engine/notes.go Engine.EachMeasure: bound "len(j.Members) > 0" #1`: "who has no members has no measures",

	`pkg/controller/engine/notes.go rankNotes.showTasks: drop "len(x.tasks) == 0" #1`: "of no tasks nothing is added",

	`pkg/controller/engine/notes.go saidOf: bound "len(n.Status) > api.MaxStatusBytes" #1`: "a status of that length is cut to itself",

	`pkg/controller/engine/show.go nodeNames.isNew: drop "n == a.last" #1`: "a name that was the last one is known, too",

	`pkg/controller/engine/readiness.go rankNotes.newlyReady: return zero "return ev, false" #1`: "nothing was put into it yet",

	`pkg/controller/engine/readiness.go rankNotes.unready: drop "p.ofStep()" #1`: "of ranks nobody asks whether a step is over",

	`pkg/controller/engine/records.go Engine.recordedBetween: skip "f.User = q.Users[0]" #1`: "what is others' is left out afterwards",

	`pkg/controller/engine/steps.go Engine.attemptSteps: drop "j.Verdict == nil" #1`: "a gang that is over has no steps that run",

	`pkg/controller/engine/steps.go stepOrder: return zero "return -1" #1`: "it comes before the steps of an attempt already, and the sort " +
		"is stable",

	`pkg/core/gang/clear.go fleet.clearAt: return zero "return by, \"\"" #1`: "the time is zero there",

	`pkg/core/gang/cron.go crontabs.due: drop "err != nil" #1`: "a schedule that can't be read has no next time",

	`pkg/core/gang/jobs.go jobs.element: bound "e.job.ArrayIndex < index" #1`: "the case before it has those that are the same",

	`pkg/core/gang/depend.go dependencies.target: bound "index < 0" #1`: "the element 0 of an array has its id",

	`pkg/core/gang/depend.go dependencies.tell: drop "!admitted(j)" #1`: "who is judged again for nothing is judged the same",

	`pkg/core/gang/timers.go timers.set: negate "len(t.heap) > 2*len(t.due)+64" #1`: "it says when what does not count any more is dropped",

	`pkg/core/sched/kept/memory.go Memory.Forget: negate "!slices.ContainsFunc(backfills, func(c given.Backfill) bool { return c.Job == job ` +
		`})" #1`: "what is forgotten is worked out anew",

	`pkg/core/sched/order/turn.go Policy.turnAt: bound "limit >= p.GuardAfter/OwnPatience" #1`: "at the bound both turns come at one " +
		"moment, and that of guard_after is looked at first",

	`pkg/core/sched/kept/kept.go Backfills.Restore: return zero "return 1" #1`: "a stable sort asks only whether one goes before the other",

	`pkg/core/sched/kept/backfillplace.go Backfills.choicesEmpty: bound "len(some) < most" #1`: "one node more than a gang can use is listed",

	`pkg/core/sched/kept/ends.go Backfills.endsFrom: off by one "0" #3`: "it is no less than what is free, and may be more",

	`pkg/core/sched/visit.go planner.startNow: drop "least.Before(sh.Blocked)" #1`: "it saves a look that finds no place again",

	`pkg/core/sched/visit.go planner.startNow: drop "sh.Blocked.IsZero()" #1`: "it saves a look that finds no place again",

	`pkg/core/sched/kept/views.go Backfills.Cuts: drop "by.Before(end)" #1`: "who does not fit until its end does not fit for longer either",

	`pkg/core/sched/fit/counted.go Counted.dealRanks: off by one "0" #3`: "with one rank a node no member is short",

	`pkg/core/sched/kept/ends.go Backfills.endsFrom: negate "!e.t.Equal(at)" #1`: "it says from where on to look, and from the " +
		"start the same is found",

	`pkg/core/sched/kept/most.go Backfills.mostFree: bound "kp.views[0].Kinds() <= fewClasses*(1+m.looks)" #1`: "it says how often the most " +
		"is counted anew, and an older one is no less",

	`pkg/core/sched/kept/memory.go grantsMemo.are: drop "k.n == len(b.Slots)" #1`: "of one ask there are as many places",

	`pkg/core/sched/order/ledger.go Ledger.Remaining: bound "len(l.expected) >= maxExpected" #1`: "it says when what was worked out is " +
		"forgotten, to be worked out anew",

	`pkg/core/sched/make.go Planner.planner: skip "m.kept.Forget(v.Backfills)" #1`: "what is kept of backfills that are gone takes memory, " +
		"and is asked for by nobody",

	`pkg/core/sched/visit.go planner.visit: bound "len(passed) > 0" #1`: "what is known of the ask class saves a look that finds no place " +
		"again",

	`pkg/core/sched/why/nearest.go dropped: bound "s.MinNodes > 0" #1`: "what was not asked for is tried in vain without it",

	`pkg/core/sched/fit/nodelist.go lists.run: return zero "return m.nodes.take(n)" #1`: "a run that has no place of its own yet gets one",

	`pkg/core/sched/fit/nodelist.go nodeList.insert: off by one "2" #1`: "where a run is cut is no matter",

	`pkg/core/sched/fit/nodeview.go newNodeView: off by one "pageSize" #1`: "a page too many is empty",

	`pkg/core/sched/fit/nodeview.go pool.reset: off by one "0" #2`: "ids only have to differ",

	`pkg/core/sched/order/queue.go Queue.key: bound "len(q.policy.Accounts) > 0" #1`: "finer classes cost a plan time",

	`pkg/core/sched/why/reason.go noted.again: drop "o.word != v.word" #1`: "verdicts of two words differ in another field, too",

	`pkg/core/sched/fit/fits.go Finder.countEmpty: off by one "0" #1`: "the first node that is looked at sets it",

	`pkg/core/sched/why/reason.go Why.Note: drop "sh.Need.Parts == nil" #1`: "the reason of a gang with roles does not come from what was " +
		"looked at last",

	`pkg/core/sched/given/reservation.go Facts.MayHave: return zero "return by, false" #1`: "the time is zero there",

	`pkg/core/sched/kept/timeline.go timeline.node: off by one "1" #1`: "only the sign counts",

	`pkg/core/sched/given/given.go Facts.SwitchUntil: bound "*w < wait" #1`: "of two equal waits either does",

	`pkg/core/sched/why/unsat.go nodesAsked: off by one "0" #2`: "with a least number at most one node is exactly one, which is told before",

	`pkg/core/script/derive.go Ask.asked: off by one "1<<20" #1`: "it was taken before, within these bounds",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #1`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #2`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #3`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #4`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #6`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #8`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/derive.go Ask.memory: off by one "0" #9`: "no memory that is asked for is less than a mebibyte",

	`pkg/core/script/duration.go unitDuration: drop "n == 0" #1`: "times says the same of no digits",

	`pkg/core/script/duration.go unitDuration: off by one "'9'" #2`: "a colon that ends a unit begins no number, and is refused all the same",

	`pkg/core/script/gres.go parseVRAM: off by one "0" #3`: "a number without a unit counts mebibytes",

	`pkg/wire/session/witness.go witness.verdict: skip "late.Stop()" #1`: "it would cancel what is over",

	`pkg/wire/session/contact.go contact.at: bound "int64(t) <= old" #1`: "an instant that is put in its own place changes nothing",

	`pkg/node/shim/asuser.go member.startStage: off by one "0" #1`: "the one protocol of a pair of such sockets has the number 1, too",

	`pkg/node/shim/container.go Container.open: off by one "0" #1`: "without O_CREAT nobody looks at the mode",

	`pkg/node/shim/jobsock.go jobSockets.handOver: off by one "0" #1`: "without O_CREAT nobody looks at the mode",

	`pkg/node/shim/jobsock.go rankSockets.close: off by one "0" #1`: "descriptor 0 of a shim is /dev/null for all its life",

	`pkg/node/shim/private.go member.closePrivate: bound "m.outer >= 0" #1`: "descriptor 0 of a shim is /dev/null for all its life",

	`pkg/controller/store/internal/row/check.go possible: drop "v.Type().Elem().Kind() == reflect.Uint8" #1`: "every byte is possible",

	`pkg/controller/store/internal/row/check.go possible: drop "v.Type().Elem().Kind() == reflect.String" #1`: "every string is possible",

	`pkg/controller/store/internal/sqlstore/history.go Store.Due: bound "len(d.out) < limit" #1`: "what is read beyond is cut off",

	`pkg/controller/store/internal/sqlstore/history.go Store.Due: off by one "math.MinInt64" #1`: "nothing ended in the first nanosecond " +
		"that there is",

	`pkg/controller/store/sqlitestore/commit.go Store.write: drop "rb != nil" #1`: "after a rollback no transaction is open",

	`pkg/controller/store/sqlitestore/commit.go prepareStatements: off by one "0" #1`: "arguments beyond those that are given are cut off",

	`pkg/controller/store/sqlitestore/commit.go prepareStatements: off by one "0" #2`: "arguments beyond those that are given are cut off",

	`pkg/controller/store/sqlitestore/commit.go prepareStatements: off by one "0" #3`: "arguments beyond those that are given are cut off",

	`pkg/controller/store/sqlitestore/commit.go prepareStatements: off by one "1" #1`: "arguments beyond those that are given are cut off",

	`pkg/controller/store/sqlitestore/commit.go prepareStatements: off by one "4" #1`: "arguments beyond those that are given are cut off",

	`pkg/controller/store/sqlitestore/database.go Store.transaction: drop "rb != nil" #1`: "after a rollback no transaction is open",

	`pkg/controller/store/sqlitestore/sparefile.go spareFile.admit: drop "!r.held" #1`: "what is held is taken once more, to no effect",

	`pkg/controller/store/sqlitestore/sparefile.go spareFile.admit: drop "(!newJobs && r.held)" #1`: "it saves a look at the disk",

	`pkg/controller/store/sqlitestore/sparefile.go spareFile.admit: bound "r.free() >= r.floor+spareBytes" #1`: "what is free on a disk " +
		"changes at any moment, so that nobody knows it to the byte",

	`pkg/controller/store/sqlitestore/sparefile.go spareFile.room: bound "free < r.floor" #1`: "what is free on a disk changes at any " +
		"moment, so that nobody knows it to the byte",

	`pkg/controller/store/sqlitestore/store.go Store.start: off by one "1" #1`: "how many connections wait to be used again is no matter",

	`pkg/controller/store/sqlitestore/store.go Store.start: off by one "2" #1`: "how many connections wait to be used again is no matter",

	`pkg/controller/store/internal/sqlstore/load.go Store.Jobs: off by one "0" #2`: "whatever has ended did so after the first nanosecond",

	`pkg/core/script/parse.go flags: off by one "0" #3`: "a command line has no columns",

	`pkg/core/supervise/machine.go Machine.empty: drop "m.state == Holding" #1`: "the last operand of the condition has it, too",

	`pkg/core/supervise/machine.go Machine.extend: drop "m.state == Stopping" #1`: "in every other state no kill is armed, and the later " +
		"of never and anything is never",

	`pkg/core/supervise/machine.go Machine.relimit: drop "n != nil" #1`: "nobody was noticed without a notice",

	`pkg/core/supervise/machine.go Machine.stop: skip "m.dumping = false" #1`: "it is looked at only in a lead, and none comes after a stop",
}
