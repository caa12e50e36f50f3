package mutate

// equals are mutants that no test can tell from the source, by [Mutant.Key], with the reason.
var equals = map[string]string{
	`pkg/auth/renew.go renewOnce: bound "time.Until(expires) >= nodeLife/3" #1`:              "a third to the nanosecond is between two readings of the clock",
	`pkg/engine/control.go Engine.missing: drop "m.ref.Last > 0" #1`:                         "a reference to the last job has no number, and no job has the number 0",
	`pkg/engine/steps.go Engine.attemptSteps: drop "j.Verdict == nil" #1`:                    "a gang that is over has no steps that run",
	`pkg/gang/depend.go World.element: bound "e.job.ArrayIndex < index" #1`:                  "the case before it has those that are the same",
	`pkg/sched/backfill.go planner.restoreBackfills: return zero "return 1" #1`:              "a stable sort asks only whether one goes before the other",
	`pkg/sched/counted.go countedLayout.dealRanks: off by one "0" #3`:                        "with one rank a node no member is short",
	`pkg/sched/hopeless.go planner.mostFree: bound "len(pl.views[0].live) <= fewClasses" #1`: "it says how often the most is counted anew, and an older one is no less",
	`pkg/sched/make.go planner.visit: bound "len(passed) > 0" #1`:                            "what is known of the ask class saves a look that finds no place again",
	`pkg/sched/nearest.go dropped: bound "s.MinNodes > 0" #1`:                                "what was not asked for is tried in vain without it",
	`pkg/sched/nearest.go memories: off by one "0" #1`:                                       "no amount is less than one byte",
	`pkg/sched/reason.go planner.countEmpty: off by one "0" #1`:                              "the first node that is looked at sets it",
	`pkg/sched/reason.go planner.note: drop "sh.need.Parts == nil" #1`:                       "the reason of a gang with roles does not come from what was looked at last",
	`pkg/sched/topology.go planner.switchUntil: bound "*w < wait" #1`:                        "of two equal waits either does",
	`pkg/sched/unsat.go nodesAsked: off by one "0" #2`:                                       "with a least number at most one node is exactly one, which is told before",
	`pkg/script/duration.go unitDuration: drop "n == 0" #1`:                                  "times says the same of no digits",
	`pkg/script/duration.go unitDuration: off by one "'9'" #2`:                               "a colon that ends a unit begins no number, and is refused all the same",
	`pkg/script/gres.go parseVRAM: off by one "0" #3`:                                        "a number without a unit counts mebibytes",
	`pkg/session/contact.go contact.at: bound "int64(t) <= old" #1`:                          "an instant that is put in its own place changes nothing",
	`pkg/supervise/machine.go Machine.empty: drop "m.state == Holding" #1`:                   "the last operand of the condition has it, too",
	`pkg/supervise/machine.go Machine.extend: drop "m.state == Stopping" #1`:                 "in every other state no kill is armed, and the later of never and anything is never",
	`pkg/supervise/machine.go Machine.relimit: drop "n != nil" #1`:                           "nobody was noticed without a notice",
	`pkg/supervise/machine.go Machine.stop: skip "m.dumping = false" #1`:                     "it is looked at only in a lead, and none comes after a stop",
}
