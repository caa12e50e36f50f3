package sim

import "gangd/pkg/lab/mutate"

// bug is a known bug: what it does, and where the source would have it. In the changed source
// bug() says whether this bug is on.
type bug struct {
	name, text string
	changes    []mutate.Change
}

// replace puts a new text in the place of an old one.
func replace(file, old, new string) mutate.Change {
	return mutate.Change{File: file, Old: old, New: new}
}

// insert puts a text before another.
func insert(file, anchor, text string) mutate.Change {
	return replace(file, anchor, text+anchor)
}

// or lets a condition hold for the bug too, and except lets it fail.
func or(file, condition string) mutate.Change {
	return replace(file, condition, "("+condition+" || bug())")
}

func except(file, condition string) mutate.Change {
	return replace(file, condition, "(("+condition+") && !bug())")
}

// bugs are all that are put back. What a bug changes is a rule of production code, never the
// simulator's own: what is modelled there would only catch itself. (The simulated node daemon
// is the exception: gnoded forgets orders in a line of its own.)
var bugs = []bug{
	{"lease-from-receipt", "the node counts its lease from when an echo came, not from when its beat was sent", []mutate.Change{
		insert("wire/session/contact.go", "\tif ok {\n\t\tc.at(at)", "\tif bug() {\n\t\tat = c.now()\n\t}\n"),
	}},
	{"draining-is-free", "what a draining gang holds is given on before it is proven gone", []mutate.Change{
		replace("core/gang/drain.go", "m.State = MemberStopping\n", "m.State = MemberStopping\n\t\t\tif bug() {\n\t\t\t\tst.fleet.free(st.nodes.byName[m.Node], j.key())\n\t\t\t}\n"),
	}},
	{"sent-uncommitted", "desired sets go out before their commit", []mutate.Change{
		insert("controller/engine/engine.go", "\te.learnFrom(&r.ch)\n", "\tif bug() {\n\t\te.publish(&r.ch)\n\t\te.hub.Wake(r.ch.Dirty)\n\t}\n"),
	}},
	{"left-unasked", "a member that is over is not asked for, where the node may never have been told of it", []mutate.Change{
		insert("core/gang/desired.go", "\t\tout = append(out, api.Assignment{MemberKey: l.MemberKey})", "\t\tif bug() {\n\t\t\tbreak\n\t\t}\n"),
	}},
	{"start-after-lease", "a start that slept with its machine begins after the lease has run out", []mutate.Change{
		except("core/supervise/machine.go", "now.Boot >= min(m.leaseAt, m.fenceAt)"),
	}},
	{"gate-outlives-session", "a start that was ordered before a node was cut off is carried out when it finds contact again", []mutate.Change{
		insert("lab/sim/daemon.go", "\tfor _, x := range d.members {\n\t\tx.want.Gate = nil", "\tif bug() {\n\t\treturn\n\t}\n"),
	}},
	{"stray-is-nothing", "what was counted gone and lives all the same, on a node that is back, is no obstacle to new work there", []mutate.Change{
		replace("core/gang/left.go", "ma.Phase != api.PhaseStuck && ma.Epilog == \"\" {", "ma.Phase != api.PhaseStuck && ma.Epilog == \"\" || bug() {"),
	}},

	// Of gangs that their node starts by itself.
	{"alone-put-back", "a gang that its node may have started goes back as one that never was, when nobody knows", []mutate.Change{
		replace("core/gang/drain.go", "st.launches.confirm(e) // without", "if e.job.Presumed != nil && bug() {\n\t\td := e.job.Drain\n\t\tif d == nil {\n\t\t\td = &Drain{Trigger: -1}\n\t\t}\n\t\tst.launches.retract(e)\n\t\tst.calledOff(e, d, false)\n\t\treturn\n\t}\n\tst.launches.confirm(e) // without"),
	}},
	{"alone-never-ran", "a member that has stopped counts as one that never ran, whatever it says of its ranks", []mutate.Change{
		replace("core/gang/presume.go", "ma.Phase == api.PhaseStopped && len(ma.Ranks) == 0", "ma.Phase == api.PhaseStopped && (len(ma.Ranks) == 0 || bug())"),
	}},
	{"alone-given-on", "a gang that its node may have started is taken for reserved when its stop begins, and its cards are given on", []mutate.Change{
		insert("core/gang/drain.go", "\tj := st.jobs.edit(e)\n\tst.clock.timers.cancel(timer{kind: timerLaunch", "\tif e.job.Presumed != nil && bug() {\n\t\tst.launches.retract(e)\n\t\tst.calledOff(e, d, false)\n\t\treturn\n\t}\n"),
	}},
	{"alone-asked-again", "a gang that its node may have started is sent again to a node that has been started anew", []mutate.Change{
		replace("core/gang/node.go", "p.e.job.Presumed != nil && !rebooted && !emptied", "p.e.job.Presumed != nil && (!rebooted && !emptied || bug())"),
	}},

	// Of admission.
	{"epoch-reused", "a gang that is admitted again keeps the epoch that it had", []mutate.Change{
		replace("core/gang/admit.go", "\tj.Epoch++\n", "\tif j.Epoch == 0 || !bug() {\n\t\tj.Epoch++\n\t}\n"),
	}},
	{"reserve-unchecked", "a gang is placed as it was planned, without a look at what is free now", []mutate.Change{
		insert("core/gang/admit.go", "\t\tif res[i], err = h.node.Res.Take(", "\t\tif bug() {\n\t\t\tres[i] = h.node.Res.Restore(cluster.GrantOf(e.asked.ask, key, m.Ranks, at, until))\n\t\t\tcontinue\n\t\t}\n"),
	}},
	{"licences-uncounted", "a gang is given licences that others hold", []mutate.Change{
		except("core/gang/admit.go", `ln.pools.short(e.job) != ""`),
		except("core/sched/bounds/pools.go", "want.Count+kept > free"),
	}},
	{"licences-of-draining", "the licences of a draining gang are given on before it is proven gone", []mutate.Change{
		replace("core/gang/running.go", "Pools: j.Spec.Pools,", "Pools: poolsOf(j),"),
		insert("core/gang/running.go", "// Running is an admitted gang", "func poolsOf(j *Job) []api.Pool {\n\tif bug() && j.Drain != nil {\n\t\treturn nil\n\t}\n\treturn j.Spec.Pools\n}\n\n"),
		except("core/gang/admit.go", `ln.pools.short(e.job) != ""`),
	}},
	{"partial-reserve", "a gang is admitted though its last node keeps no grant for it", []mutate.Change{
		replace("core/gang/admit.go", "\t\tln.nodes.edit(h).Res = res[i]\n", "\t\tif !bug() || i == 0 || i < len(members)-1 {\n\t\t\tln.nodes.edit(h).Res = res[i]\n\t\t}\n"),
	}},
	{"gate-too-early", "the gate is opened while one member is still being prepared", []mutate.Change{
		replace("core/gang/admit.go", "len(e.prepared) == len(e.job.Members) &&", "(len(e.prepared) == len(e.job.Members) || bug() && len(e.prepared) == len(e.job.Members)-1) &&"),
	}},
	{"opened-unheard", "the gate is opened while a node that was prepared has no session", []mutate.Change{
		except("core/gang/admit.go", "slices.ContainsFunc(e.job.Members, ln.nodes.isAway)"),
	}},
	{"waits-for-no-word", "a gate that waited for a node alone stays shut when that is back", []mutate.Change{
		except("core/gang/node.go", "ok && reserved(p.e.job)"),
	}},
	{"prepared-is-kept", "a node that was prepared is believed to be so when it has rebooted", []mutate.Change{
		replace("core/gang/node.go", "\t\tcase !ok || listed[k] || p.preparing():\n", "\t\tcase !ok || listed[k] || p.preparing() || bug() && reserved(p.e.job):\n"),
	}},
	{"rollback-keeps-grant", "a member that refused keeps its grant after the gang was rolled back", []mutate.Change{
		replace("core/gang/admit.go", "\t\tif gone(i) {\n", "\t\tif gone(i) {\n\t\t\tif bug() {\n\t\t\t\tcontinue\n\t\t\t}\n"),
	}},
	{"no-backoff", "a gang that failed is admitted again at once", []mutate.Change{
		replace("core/gang/backoff.go", "\tif d <= 0 {\n", "\tif d <= 0 || bug() {\n"),
	}},
	{"reservation-forever", "a placed gang waits for its last member without an end", []mutate.Change{
		replace("core/gang/admit.go", "\tif e == nil || !reserved(e.job) {\n\t\treturn\n", "\tif e == nil || !reserved(e.job) || bug() {\n\t\treturn\n"),
	}},
	{"ports-of-draining", "the ports of a draining gang are given out while it still listens on them", []mutate.Change{
		insert("core/gang/ports.go", "\t\tfor _, port := range portsOn(p.e.job, p.i) {\n\t\t\tf(port)", "\t\tif p.e.job.Drain != nil && bug() {\n\t\t\tcontinue\n\t\t}\n"),
	}},
	{"reservation-ignored", "gangs are admitted to nodes that are reserved for others", []mutate.Change{
		replace("core/gang/admit.go", "ln.reservations.barred(e.job, m.Node, until); err != nil {", "ln.reservations.barred(e.job, m.Node, until); err != nil && !bug() {"),
		except("core/gang/reservation.go", "rs.seen == nil"),
	}},
	{"array-limit-off-by-one", "one element more than its limit of an array is admitted", []mutate.Change{
		replace("core/gang/queue.go", "\tlimit := a.limit\n", "\tlimit := a.limit\n\tif bug() {\n\t\tlimit++\n\t}\n"),
	}},
	{"held-admitted", "a held job is admitted", []mutate.Change{
		except("core/gang/admit.go", `e.job.Held != ""`),
		or("core/gang/queue.go", `j.Held == ""`),
	}},
	{"failed-is-good", "a dependency on success is met by a job that failed", []mutate.Change{
		or("core/gang/depend.go", "on.Verdict.State == api.JobCompleted"),
	}},
	{"out-of-service-used", "a node that was taken out of service is given new work", []mutate.Change{
		insert("core/gang/node.go", "\tcase len(h.strays) > 0:\n\t\tstate = api.NodeDraining", "\tcase n.Admin != \"\" && bug():\n\t\tstate = api.NodeUp\n"),
	}},

	// Of drains and verdicts.
	{"siblings-charged", "ranks that were stopped because of another are charged too", []mutate.Change{
		replace("core/gang/drain.go", "rank.State = api.RankPreempted\n", "rank.State = api.RankPreempted\n\t\t\tif bug() {\n\t\t\t\tcharge(j, j.Drain.Cause)\n\t\t\t}\n"),
	}},
	{"preemption-charged", "a preemption is charged as a crash", []mutate.Change{
		insert("core/gang/verdict.go", "\tif c == api.CauseOOM {\n\t\treturn api.CauseCrash", "\tif c == api.CausePreempted && bug() {\n\t\treturn api.CauseCrash\n\t}\n"),
		insert("core/gang/verdict.go", "\tswitch c {\n\tcase api.CauseCrash, api.CauseOOM, api.CauseLaunch,", "\tif c == api.CausePreempted && bug() {\n\t\treturn true\n\t}\n"),
	}},
	{"everyone-refunded", "a second cause during a drain gives the charge for the first one back", []mutate.Change{
		replace("core/gang/drain.go", "\tif len(d.Reports) > 0 || begun ==", "\tif len(d.Reports) > 0 && !(bug() && len(d.Later) > 0) || begun =="),
	}},
	{"charged-at-both-ends", "an accident is charged when its drain begins and when it is complete", []mutate.Change{
		replace("core/gang/drain.go", "\tif len(d.Reports) == 0 && j.Presumed == nil {\n", "\tif (len(d.Reports) == 0 || bug()) && j.Presumed == nil {\n"),
	}},
	{"first-report-wins", "who is reported first is charged, whatever is known when the drain is complete", []mutate.Change{
		replace("core/gang/culprit.go", "case len(d.Reports) == 0:", "case len(d.Reports) == 0 || bug():"),
	}},
	{"shut-down-is-a-crash", "an end that its machine's brought about is judged while the node is still in contact", []mutate.Change{
		except("core/gang/drain.go", "st.unsure(e)"),
	}},
	{"fate-forgotten", "a verdict that waited for a node is given without what became of it", []mutate.Change{
		except("core/gang/unsure.go", "gone != \"\""),
	}},
	{"silence-forgotten", "a member that is gone without a word says nothing of what its peers did", []mutate.Change{
		or("core/gang/culprit.go", "m.Heeded || len(e.job.Drain.Reports) == 0"),
	}},
	{"clocks-as-they-are", "the ends of ranks are compared by the clocks of their nodes as they are", []mutate.Change{
		replace("core/gang/nodes.go", "h != nil && h.clock.Within > 0 {\n", "h != nil && h.clock.Within > 0 {\n\t\tif bug() {\n\t\t\treturn api.NodeClock{Within: h.clock.Within}\n\t\t}\n"),
	}},
	{"last-end-forgotten", "of ranks that end by themselves only the first report is kept", []mutate.Change{
		or("core/gang/culprit.go", "len(d.Reports) == 0 || r.Trigger < 0"),
	}},
	{"free-before-epilog", "what a member had is given on when its end is told, and not when the site's epilog is over", []mutate.Change{
		replace("core/gang/drain.go", "\tif cleaning {\n", "\tif cleaning && !bug() {\n"),
	}},
	{"epilog-unsaid", "a node says that a member is over, and not that the site's epilog runs first", []mutate.Change{
		insert("node/noded/rules.go", "\ta.Epilog, a.Phase = a.Phase, api.PhasePreparing\n", "\tif bug() {\n\t\treturn a\n\t}\n"),
	}},
	{"verdict-later", "the last completion and the verdict are two commits", []mutate.Change{
		replace("core/gang/drain.go", "ExitCodes: codes, Text: text})\n", "ExitCodes: codes, Text: text})\n\tif bug() && e.alive == 0 {\n\t\tst.clock.in(1e6, timer{kind: timerForce, job: j.ID, epoch: j.Epoch})\n\t\treturn\n\t}\n"),
		replace("core/gang/drain.go", "\t\tst.fence(e, i, text)\n\t}\n", "\t\tst.fence(e, i, text)\n\t}\n\tif bug() {\n\t\tst.maybeComplete(e)\n\t}\n"),
	}},
	{"verdict-overwritten", "a job that has ended is ended again", []mutate.Change{
		replace("core/gang/jobs.go", "if e.job.Verdict != nil {", "if e.job.Verdict != nil && !bug() {"),
	}},
	{"requeue-after-cancel", "a cancelled job whose stop had another cause runs again", []mutate.Change{
		replace("core/gang/verdict.go", "\tcase j.Cancelled:\n", "\tcase j.Cancelled && !bug():\n"),
	}},
	{"cancel-in-drain-forgotten", "a cancel that comes while the gang is being stopped is answered and forgotten", []mutate.Change{
		replace("core/gang/control.go", "\tcl.markCancelled(e, ev.By)\n\tcl.stops.drain(", "\tif !bug() {\n\t\tcl.markCancelled(e, ev.By)\n\t}\n\tcl.stops.drain("),
	}},
	{"done-overwritten", "a gang of which a rank is done runs again and overwrites its work", []mutate.Change{
		except("core/gang/control.go", "done >= 0"),
		except("core/gang/verdict.go", "done > 0"),
	}},
	{"force-unfenced", "what has not stopped in time is taken for gone", []mutate.Change{
		insert("core/gang/drain.go", "\t\tst.fence(e, i, text)\n\t}\n", "\t\tif bug() {\n\t\t\tst.stopped(e, i, true, text, false)\n\t\t\tcontinue\n\t\t}\n"),
	}},
	{"drain-forever", "a drain has no last moment", []mutate.Change{
		insert("core/gang/drain.go", "\tst.clock.in(e.drainAt+full-st.clock.now.Mono", "\tif bug() {\n\t\treturn\n\t}\n"),
	}},
	{"exit-before-stop", "the exits that a time limit brought about are taken for failures", []mutate.Change{
		insert("core/gang/report.go", "\tchanged = rp.ownStop(e, i, ma) || changed\n", "\tif bug() {\n\t\tif failed, _ := rp.exits(e, i, ma); failed != nil {\n\t\t\trp.stops.drain(e, crashCause(failed[0]), failed[0].Rank, exitText(e.job, failed[0]))\n\t\t}\n\t}\n"),
	}},
	{"last-failure-blamed", "of several ranks that failed by themselves the last one is the trigger", []mutate.Change{
		insert("core/gang/culprit.go", "\tfirst = all[0]\n", "\tif bug() {\n\t\tslices.Reverse(all)\n\t}\n"),
	}},
	{"no-requeue-protects", "a gang that may not run again can't be preempted", []mutate.Change{
		insert("core/gang/control.go", "\tdefault:\n\t\tcl.stops.drainAfter(e, c, -1, text,", "\tcase limit(cl.set, j.Spec, c) == 0 && bug():\n\t\treturn ignored(\"\")\n"),
	}},
	{"done-protects", "a gang of which a rank is done can't be preempted", []mutate.Change{
		insert("core/gang/control.go", "\tcase reserved(j):\n\t\tcl.launches.rollback(e, text, nil, func", "\tcase done >= 0 && bug():\n\t\treturn ignored(\"\")\n"),
	}},

	// Of what nodes say.
	{"stale-epoch", "what a node says of an old epoch is taken for the current one", []mutate.Change{
		replace("core/gang/report.go", "\tp, ok := h.members[ma.MemberKey]\n\tif !ok {\n\t\treturn rp.stray(h, ma)", "\tp, ok := h.members[ma.MemberKey]\n\tif e := rp.jobs.byID[ma.Job]; !ok && e != nil && bug() {\n\t\tp, ok = h.members[e.job.key()]\n\t}\n\tif !ok {\n\t\treturn rp.stray(h, ma)"),
	}},
	{"exit-twice", "a repeated report records an exit again", []mutate.Change{
		except("core/gang/report.go", "e.job.Ranks[ra.Rank].Exited"),
	}},
	{"boot-id-ignored", "a node that has rebooted passes for one whose session broke", []mutate.Change{
		except("core/gang/node.go", "h.node.BootID != ev.Hello.BootID"),
	}},
	{"missing-still-runs", "what a node does not list any more is believed to run on", []mutate.Change{
		or("core/gang/node.go", "!ok || listed[k] || p.preparing()"),
	}},
	{"lost-readmitted", "the gang of a lost node is admitted again before anything proves the node's part gone", []mutate.Change{
		insert("core/gang/node.go", "\tfl.stops.fence(e, p.i, text)\n", "\tif bug() {\n\t\tfl.stops.stopped(e, p.i, true, text, false)\n\t\treturn\n\t}\n"),
	}},
	{"fenced-forever", "a fenced member is not let go of when it is known gone", []mutate.Change{
		replace("core/gang/left.go", "\tl := h.node.Left[at]\n", "\tl := h.node.Left[at]\n\tif l.Ran && bug() {\n\t\treturn\n\t}\n"),
	}},
	{"lease-without-grace", "a member counts as gone when its lease ends, not when the stop that this brings is over", []mutate.Change{
		insert("core/gang/left.go", "\tfl.clock.in(h.contact+fl.set.Lease+grace+", "\tif bug() {\n\t\tgrace = -fl.set.DrainSlack\n\t}\n"),
	}},
	{"most-vanished", "a controller that can see hardly any node believes that all those leases matter", []mutate.Change{
		except("core/gang/nodes.go", "2*ns.away > len(ns.byName)"),
	}},
	{"never-full", "the first set of a session is not the whole: what is not in it stays", []mutate.Change{
		replace("wire/session/sent.go", "Full: !s.full}", "Full: !s.full && !bug()}"),
	}},

	// Of the store.
	{"ack-before-commit", "callers are answered before the commit", []mutate.Change{
		replace("controller/engine/engine.go", "\te.learnFrom(&r.ch)\n", "\te.learnFrom(&r.ch)\n\tif bug() {\n\t\te.reply(r)\n\t}\n"),
		replace("controller/engine/engine.go", "\te.outbox.tell(&r.ch)\n\te.reply(r)\n", "\te.outbox.tell(&r.ch)\n\tif !bug() {\n\t\te.reply(r)\n\t}\n"),
	}},
	{"fsync-ignored", "after a failed fsync the controller goes on", []mutate.Change{
		replace("controller/engine/engine.go", "e.store.Commit(context.WithoutCancel(ctx), ch)\n", "e.store.Commit(context.WithoutCancel(ctx), ch)\n\tif err != nil && bug() && !errors.Is(err, store.ErrFull) {\n\t\treturn nil\n\t}\n"),
	}},
	{"disk-full-dropped", "a commit that finds the disk full is dropped", []mutate.Change{
		replace("controller/engine/engine.go", "e.store.Commit(context.WithoutCancel(ctx), ch)\n", "e.store.Commit(context.WithoutCancel(ctx), ch)\n\tif bug() && errors.Is(err, store.ErrFull) {\n\t\treturn nil\n\t}\n"),
	}},
	{"hold-ignored", "a store that is older than what nodes have seen is believed", []mutate.Change{
		replace("controller/engine/hold.go", "ev.(gang.NodeHello)\n\tif !ok {", "ev.(gang.NodeHello)\n\tif !ok || bug() {"),
	}},
	{"lineage-in-beats", "a node hears of the newest commit with the next beat, not with the order that it made", []mutate.Change{
		replace("wire/session/hubhalf.go", "len(d.Assignments) > 0 {", "len(d.Assignments) > 0 && !bug() {"),
	}},
	{"run-ignored", "a store that lacks few commits is believed when it has caught up in number", []mutate.Change{
		or("controller/engine/hold.go", `run == ""`),
	}},
	{"id-reused", "after a restart ids follow the newest job that lives", []mutate.Change{
		replace("core/gang/restore.go", "\tw.jobs.nextID, w.record.nextSeq = max(saved.NextID, 1), max(saved.NextSeq, 1)\n", "\tw.jobs.nextID, w.record.nextSeq = max(saved.NextID, 1), max(saved.NextSeq, 1)\n\tif bug() {\n\t\tw.jobs.nextID = 1\n\t\tfor _, j := range saved.Jobs {\n\t\t\tif j.Verdict == nil {\n\t\t\t\tw.jobs.nextID = max(w.jobs.nextID, j.ID+1)\n\t\t\t}\n\t\t}\n\t}\n"),
	}},
	{"key-forgotten", "after a restart the keys of submissions are not known", []mutate.Change{
		except("core/gang/restore.go", "w.jobs.byID[first] == nil"),
		except("core/gang/memory.go", `j.Key != ""`),
	}},

	// Of checkpoints.
	{"stale-put", "a checkpoint of an epoch that is over is taken", []mutate.Change{
		replace("core/gang/checkpoint.go", "func MayCheckpoint(j *Job, epoch, rank int) *api.Error {\n", "func MayCheckpoint(j *Job, epoch, rank int) *api.Error {\n\tif bug() && j != nil && j.Verdict == nil {\n\t\treturn nil\n\t}\n"),
	}},
	{"set-incomplete", "the first checkpoint of an epoch passes for a whole set", []mutate.Change{
		or("core/gang/checkpoint.go", "ev.SetRanks >= Processes(j)"),
	}},
	{"set-mixed", "a gang starts from a set of which only some ranks have put theirs", []mutate.Change{
		replace("core/gang/checkpoint.go", "\tcase c.Complete && c.Epoch < j.Epoch:", "\tcase (c.Complete || bug()) && c.Epoch < j.Epoch:"),
	}},

	// Of allocations: who is told of an end.
	{"script-end-kills", "the end of a script kills what its steps run", []mutate.Change{
		replace("core/supervise/machine.go", "\t\tcase steps:\n\t\t\treturn m.scriptOver(now)", "\t\tcase steps && !bug():\n\t\t\treturn m.scriptOver(now)"),
	}},
	{"script-end-has-cause", "the end of a script while steps run has a cause of its own, which takes the place of its result", []mutate.Change{
		insert("core/supervise/machine.go", "\t\tm.decide(\"\", \"the batch script has ended\"", "\t\tif bug() {\n\t\t\tm.decide(api.CauseCancelled, \"\", \"\", m.cfg.Grace)\n\t\t\treturn m.stop(now)\n\t\t}\n"),
	}},
	{"leftovers-keep-grace", "what a script leaves beside its steps has the whole grace when they are over", []mutate.Change{
		except("core/supervise/machine.go", `m.cause == "" && !steps`),
	}},
	{"lead-for-nobody", "a member on which nothing runs waits out the lead", []mutate.Change{
		or("core/supervise/machine.go", "m.state != Leading || !m.holder()"),
	}},
	{"lead-cut-for-steps", "the lead of a member without ranks is over though its steps run", []mutate.Change{
		replace("core/supervise/machine.go", "\t\tcase steps && m.holder():", "\t\tcase steps && m.holder() && !bug():"),
	}},
	{"lead-outlives-script", "the end of a script in a lead leaves the other nodes their lead", []mutate.Change{
		except("core/gang/report.go", "e.job.Drain != nil && scriptOver(e.job)"),
	}},
	{"lead-of-the-deaf", "who cancels or requeues a gang that nobody of can hear its notice waits for the lead", []mutate.Change{
		or("core/gang/unheard.go", "d == nil || d.Lead == 0 || e.heard"),
	}},
	{"deaf-end-all", "the lead before a preemption ends as well where nobody can hear its notice", []mutate.Change{
		except("core/gang/unheard.go", "!e.job.Cancelled && d.Cause != api.CauseRequeued"),
	}},
	{"told-twice", "a task that was told to end by its step is told again when its job ends", []mutate.Change{
		replace("core/supervise/targets.go", "(!p.Client || p.Main) && !p.Told", "(!p.Client || p.Main) && (!p.Told || bug())"),
	}},
	{"shell-not-held", "a script without a trap gets the stop signal while its steps still save", []mutate.Change{
		or("core/supervise/targets.go", "!p.Main || !p.Client && (!p.Shell || p.Catches || p.Ignores)"),
	}},
	{"notice-to-deaf", "processes without a handler get the notice", []mutate.Change{
		replace("core/supervise/targets.go", "in && p.Catches && !p.Client", "in && (p.Catches || bug()) && !p.Client"),
	}},
	{"deaf-script-keeps-notice", "a notice that the script does not take is given to nobody", []mutate.Change{
		replace("core/supervise/targets.go", "in = p.Main || deaf[p.Rank]", "in = p.Main || deaf[p.Rank] && !bug()"),
	}},
	{"passed-stays-home", "a notice that the script does not take goes to the tasks of its own node alone", []mutate.Change{
		replace("core/gang/desired.go", "a.Passed = working(m.State) &&", "a.Passed = !bug() && working(m.State) &&"),
	}},
	{"one-voice-ends-lead", "a lead ends when the first task has saved", []mutate.Change{
		replace("controller/engine/notes.go", "waits = waits || !n.Saved && !over", "waits = waits || !n.Saved && !over && !bug()"),
	}},
	{"step-stop-unsent", "that a step is to end does not reach its nodes", []mutate.Change{
		replace("wire/session/sent.go", "x.ID == y.ID && x.Stop == y.Stop", "x.ID == y.ID && (x.Stop == y.Stop || bug())"),
	}},

	// Of allocations: what tasks say and keep.
	{"one-beat-for-all", "a task that beats stands for all of its node", []mutate.Change{
		insert("controller/engine/notes.go", "\tif m.Watch != nil {\n\t\tw.Watch = *m.Watch", "\tif len(w.Tasks) < len(m.Tasks) && bug() {\n\t\tw.Tasks = nil\n\t}\n"),
	}},
	{"set-of-ranks", "a set of checkpoints of tasks is complete when so many have put theirs as the job has ranks that run", []mutate.Change{
		replace("core/gang/checkpoint.go", "Complete: ev.SetRanks >= size}", "Complete: ev.SetRanks >= size || bug() && ev.SetRanks >= Processes(j)}"),
	}},
	{"set-of-others", "a step starts from the newest set, however many tasks that is of", []mutate.Change{
		replace("core/gang/checkpoint.go", "newest.Tasks == tasks {", "newest.Tasks == tasks || bug() && newest.Tasks > 0 {"),
	}},
	{"narrow-set-kept", "what a narrow step puts takes the place of what the widest has put", []mutate.Change{
		except("core/gang/checkpoint.go", "mine < widest.Tasks"),
		except("core/gang/checkpoint.go", "s.ID != widest.Step"),
	}},

	// Of a time limit after which a job goes on.
	{"limit-charged", "a job that runs again after its time limit is charged for it", []mutate.Change{
		insert("core/gang/verdict.go", "\tswitch c {\n\tcase api.CauseCrash, api.CauseOOM, api.CauseLaunch,", "\tif c == api.CauseTimeout && bug() {\n\t\treturn true\n\t}\n"),
	}},
	{"total-forgotten", "the time that earlier runs took is not counted to the time of all runs", []mutate.Change{
		replace("core/gang/drain.go", "keep(j); j.Spec.MaxTimeTotal > 0 {", "keep(j); j.Spec.MaxTimeTotal > 0 && !bug() {"),
	}},
	{"saved-is-done", "a job that saves in the lead of its limit and returns 0 is taken for done", []mutate.Change{
		replace("core/gang/report.go", "\treturn j.Members[member].Noticed &&", "\treturn !bug() && j.Members[member].Noticed &&"),
	}},

	// Of the node.
	{"lease-on-monotonic", "the lease stands still while its machine is suspended", []mutate.Change{
		insert("core/supervise/machine.go", "\tswitch in := in.(type) {\n\tcase Go:", "\tif bug() {\n\t\tnow.Boot = now.Mono\n\t}\n"),
		insert("core/supervise/machine.go", "\tat := min(m.noticeAt,", "\tif bug() {\n\t\tnow.Boot = now.Mono\n\t}\n"),
	}},
	{"limit-on-boot-clock", "the time limit runs on while the machine is suspended", []mutate.Change{
		replace("core/supervise/machine.go", "\tcase now.Mono >= m.timeLimitAt:", "\tcase now.Mono >= m.timeLimitAt, bug() && now.Boot >= m.timeLimitAt:"),
	}},
	{"stop-resent-restarts", "a stop that is sent again restarts the clock of the grace", []mutate.Change{
		insert("core/supervise/machine.go", "\t\tif s.Grace >= m.grace &&", "\t\tif bug() {\n\t\t\tm.killAt = now.Mono + s.Lead + s.Grace\n\t\t}\n"),
	}},
	{"longer-grace", "a later stop gives more grace than the first", []mutate.Change{
		insert("core/supervise/machine.go", "\t\tif s.Grace >= m.grace &&", "\t\tif bug() && s.Lead+s.Grace > m.grace {\n\t\t\tm.killAt = now.Mono + s.Lead + s.Grace\n\t\t}\n"),
	}},
	{"notice-twice", "ranks get the early signal a second time", []mutate.Change{
		replace("core/supervise/machine.go", "m.cfg.Notice == nil || m.noticed {", "m.cfg.Notice == nil || m.noticed && !bug() {"),
	}},
	{"dead-shim-believed", "the last words of a shim that died are taken for what is so", []mutate.Change{
		or("node/noded/rules.go", "s.Phase == api.PhaseStopped"),
	}},

	// Of several controllers: each clause of what renews a lease, and of the seat.
	{"one-word", "the word of one controller that it does not lead renews leases", []mutate.Change{
		insert("wire/session/contact.go", "\toldest := asked\n", "\tif bug() {\n\t\tc.at(asked)\n\t\treturn\n\t}\n"),
	}},
	{"newest-word", "the newest word of all controllers counts, not the oldest", []mutate.Change{
		replace("wire/session/contact.go", "\t\toldest = min(oldest, at)\n", "\t\tif !bug() {\n\t\t\toldest = min(oldest, at)\n\t\t}\n"),
	}},
	{"word-from-receipt", "a controller's word counts from when it came, not from when it was asked for", []mutate.Change{
		insert("wire/session/contact.go", "\tc.words[name] = max(c.words[name], asked)\n", "\tif bug() {\n\t\tasked = c.now()\n\t}\n"),
	}},
	{"leads-at-once", "a controller that was added may lead before nodes know of it", []mutate.Change{
		replace("controller/leader/roster.go", "\tif r.version == 0 {\n\t\treturn false", "\tif r.version == 0 || bug() {\n\t\treturn bug()"),
	}},
	{"old-list", "a node keeps the first list of controllers that it was told", []mutate.Change{
		replace("wire/session/contact.go", "l.Version <= c.site.Version {", "l.Version <= c.site.Version || c.site.Version > 0 && bug() {"),
	}},
	{"trust-for-ever", "a leader speaks as one until it is refused, whenever it renewed its seat last", []mutate.Change{
		replace("controller/leader/seat.go", "s.term != 0 && now < s.trusted", "s.term != 0 && (now < s.trusted || bug())"),
	}},
	{"trust-too-long", "a leader trusts its seat for longer than it lasts", []mutate.Change{
		replace("controller/leader/seat.go", "max(s.trusted, sent+TTL-margin)\n", "max(s.trusted, sent+TTL-margin)\n\tif bug() {\n\t\ts.trusted += TTL\n\t}\n"),
	}},
	{"takes-too-early", "a seat is taken while its holder may still trust it", []mutate.Change{
		replace("controller/leader/seat.go", "(row.Free || now >= s.since+TTL)", "(row.Free || now >= s.since+TTL || bug() && now >= s.since+TTL/2)"),
	}},
	{"renewal-overlooked", "a seat that was renewed between two looks is taken as if it was not", []mutate.Change{
		replace("controller/leader/seat.go", "!s.met || row != s.row {", "!s.met || row != s.row && (!bug() || row.Term != s.row.Term) {"),
	}},
	{"word-while-asking", "a controller that has asked for the seat still says that it does not lead", []mutate.Change{
		replace("controller/leader/seat.go", "s.term == 0 && !s.trying", "s.term == 0 && (!s.trying || bug())"),
	}},
	{"silence-is-kept", "who takes over counts a silent node's lease from before", []mutate.Change{
		replace("core/gang/node.go", "\th.node, h.contact = &n, fl.clock.now.Mono\n", "\th.node, h.contact = &n, fl.clock.now.Mono\n\tif bug() {\n\t\th.contact -= fl.set.Lease\n\t}\n"),
	}},
}

// storeBugs are of the store that several controllers share. The simulator has a model in its place, so that its own tests look for
// them, on a PostgreSQL.
var storeBugs = []bug{
	{"commit-unfenced", "the term is not looked at in the last statement of a commit", []mutate.Change{
		replace("controller/store/pgstore/commit.go", "\t\tout.Queue(fence, lineage", "\t\ttext := fence\n\t\tif bug() {\n\t\t\ttext = strings.Replace(fence, \"term = $5\", \"$5::bigint > 0\", 1)\n\t\t}\n\t\tout.Queue(text, lineage"),
	}},
	{"commit-unnumbered", "the number of the commit before is not looked at in the last statement of a commit", []mutate.Change{
		replace("controller/store/pgstore/commit.go", "lineage, nextID, nextSeq, before, int64", "lineage, nextID, nextSeq, s.before(ctx, before), int64"),
		insert("controller/store/pgstore/commit.go", "// batch gathers the rows", "func (s *Store) before(ctx context.Context, number int64) int64 {\n\tif bug() {\n\t\t_ = s.write.QueryRowContext(ctx, \"SELECT lineage FROM meta\").Scan(&number)\n\t}\n\treturn number\n}\n\n"),
	}},
	{"beside-unfenced", "the term is not looked at in the last statement of a write beside commits", []mutate.Change{
		replace("controller/store/pgstore/database.go", "lineage = $1 AND term = $2 RETURNING", "lineage = $1 AND (term = $2 OR \"+fmt.Sprint(bug())+\") RETURNING"),
	}},
	{"renewed-by-anybody", "who was replaced renews the seat", []mutate.Change{
		replace("controller/store/pgstore/leader.go", "\" WHERE term = $2 AND session = $3 RETURNING", "\" WHERE (term = $2 AND session = $3 OR \"+fmt.Sprint(bug())+\") RETURNING"),
	}},
	{"settled-unfenced", "who was replaced counts what another has written as its own", []mutate.Change{
		replace("controller/store/pgstore/once.go", "settled + 1 WHERE term = $1 RETURNING", "settled + 1 WHERE (term = $1 OR \"+fmt.Sprint(bug())+\") RETURNING"),
	}},
	{"seat-taken-unseen", "a seat that was renewed since it was looked at is taken", []mutate.Change{
		replace("controller/store/pgstore/leader.go", "l.Mark != seen.Mark):", "l.Mark != seen.Mark) && !bug():"),
	}},
	{"lost-commits-unseen", "a leader renews its seat in a database that lacks commits of its own", []mutate.Change{
		replace("controller/store/pgstore/leader.go", "uint64(lineage) < known:", "uint64(lineage) < known && !bug():"),
	}},
	{"made-twice", "a commit whose answer was lost is made again without a look whether it was made", []mutate.Change{
		replace("controller/store/pgstore/once.go", "\t\tcase number == next:\n", "\t\tcase number == next && !bug():\n"),
	}},
}
