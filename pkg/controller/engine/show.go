package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/outpath"
	"gangd/pkg/core/sched/order"
)

// show turns a job into what people and tools read.
func (e *Engine) show(j *gang.Job, ranks bool) api.Job {
	spec := j.Spec
	grace := spec.Grace
	if grace == 0 {
		grace = e.conf().Settings.Grace
	}
	var out api.Job
	now := e.opt.Clock.Now().Wall
	e.line(&out, j, now)
	if out.State == api.JobPending {
		_, out.Why = e.waits(j, now, true)
	}
	out.UID, out.StateCode, out.Launch = j.UID, out.State.Code(), spec.Launch
	out.RestartCount, out.Budgets = j.Restarts, gang.Budgets(&e.conf().Settings, j)
	out.EligibleTime, out.GraceSeconds = j.Eligible, int64(grace/time.Second)
	out.VRAMBytes, out.GPUsPerRank, out.CPUsPerRank, out.MemoryBytes = spec.VRAMBytes, spec.GPUsPerRank, spec.CPUsPerRank, spec.MemoryPerRank
	out.NodeCPUs = nodeCPUs(j)
	out.GID, out.GPUsPerNode, out.MemoryPerNode = j.GID, spec.GPUsPerNode, spec.MemoryPerNode
	out.TmpPerNode, out.Shape = spec.TmpPerNode, spec.Shape
	out.Words = spec.Words
	out.Asked, out.RanksPerNode, out.NodeList, out.Exclude = spec.Asked, spec.RanksPerNode, spec.NodeList, spec.Exclude
	out.SafeUntil, out.SafeBy = e.safe(j, now)
	if gang.Recurs(j) {
		out.Cron = spec.Cron
	}
	current := gang.SpecOf(j)
	out.Constraint, out.Prefer = current.Constraint, current.Prefer
	out.Reservation, out.Switches = spec.Reservation, spec.Switches
	out.MaxTimeTotal, out.RanSeconds = int64(spec.MaxTimeTotal/time.Second), int64(j.Ran/time.Second)
	out.Deadline, out.TimeMinSeconds = j.Deadline, int64(spec.TimeMin/time.Second)
	out.Exclusive, out.Share, out.Nice, out.Roles = spec.Exclusive, spec.Share, gang.NiceOf(j), current.Roles
	out.AsAsked = spec.AsAsked
	out.Comment = gang.CommentOf(j)
	out.WorkDir, out.Command, out.SubmitHost = api.Shown(spec.WorkDir), spec.ScriptName, spec.SubmitHost
	out.StdOut, out.StdErr, out.StdIn = api.Shown(outputPattern(spec)), api.Shown(spec.Error), api.Shown(spec.Input)
	out.Dependency, out.Ranks = j.Waits, []api.Rank{}
	rules := gang.WatchOf(&e.conf().Settings, j)
	out.StallTimeoutSeconds, out.GPUWatch = rules.StallTimeout.Seconds(), spec.GPUWatch
	if n := spec.Notice; n != nil {
		out.Notice = &api.NoticeView{Signal: n.Signal, LeadSeconds: int64(n.Lead / time.Second), Scope: n.Scope}
	}
	if v := j.Verdict; v != nil {
		out.Verdict, out.ExitCode, out.Signal, out.CancelledBy = v.Text, &v.ExitCode, v.Signal, j.CancelledBy
		if v.Trigger >= 0 {
			out.TriggerRank = &v.Trigger
		}
	} else if d := j.Drain; d != nil && d.Trigger >= 0 {
		out.TriggerRank = &d.Trigger
	}
	if c := j.Checkpoint; c != nil {
		out.Checkpoint = &api.Checkpoint{Epoch: c.Epoch, Time: c.Time, Bytes: c.Bytes, Complete: c.Complete}
	}
	if c := j.TaskCheckpoint; c != nil {
		out.TaskCheckpoint = &api.Checkpoint{Epoch: c.Epoch, Time: c.Time, Bytes: c.Bytes, Complete: c.Complete, StepID: strconv.Itoa(c.Step),
			Tasks: c.Tasks}
	}
	if ranks {
		out.Ranks = showRanks(j)
	}
	out.Steps = e.liveSteps(j)
	e.notes.show(j, &out)
	if spec.Container != nil {
		out.Image, out.ImageDigest = spec.Container.Image, j.Image
	}
	if text := importing(j); text != "" {
		out.Status = text
	}
	return out
}

// importing says how far the import of a gang's image is; empty: none is under way.
func importing(j *gang.Job) string {
	var parts []string
	for i := range j.Members {
		if m := &j.Members[i]; m.Importing != (api.Import{}) {
			parts = append(parts, importText(m.Importing)+" on "+m.Node)
		}
	}
	return importWords(parts)
}

// importText is how far one is.
func importText(far api.Import) string {
	switch {
	case far.Unpacking:
		return "unpacking " + cluster.Size(far.Bytes)
	case far.Total > 0:
		return cluster.Size(far.Bytes) + " of " + cluster.Size(far.Total)
	}
	return cluster.Size(far.Bytes)
}

// stepImporting is the same of the image of a step.
func stepImporting(j *gang.Job, s *gang.Step) string {
	var parts []string
	for i := range s.Parts {
		if p := &s.Parts[i]; !p.Over && p.Importing != (api.Import{}) && p.Member < len(j.Members) {
			parts = append(parts, importText(p.Importing)+" on "+j.Members[p.Member].Node)
		}
	}
	return importWords(parts)
}

// importWords says how far imports on nodes are; empty: there are none.
func importWords(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	const shown = 4
	if more := len(parts) - shown; more > 0 {
		parts = append(parts[:shown], fmt.Sprintf("and on %d more", more))
	}
	return "importing its image: " + strings.Join(parts, ", ")
}

// safe is until when a running gang is not preempted, and by what; a zero time with a reason
// is until it ends.
func (e *Engine) safe(j *gang.Job, now time.Time) (until time.Time, by string) {
	if gang.JobState(j) != api.JobRunning || !e.policy().Preempts() {
		return time.Time{}, ""
	}
	what, until := e.policy().Protects(&order.Running{Start: j.Start, Ending: order.Ending{MinRun: j.Spec.MinRun, Done: gang.AnyDone(j)}}, now)
	return until, string(what)
}

// line is the part of a job that the usual table shows.
func (e *Engine) line(out *api.Job, j *gang.Job, now time.Time) {
	*out = api.Job{
		JobID: j.ID, ArrayJobID: j.ArrayID, Name: j.Name, User: j.User, Account: j.Spec.Account, Partition: e.runsIn(j), State: gang.JobState(j),
		Priority: j.Priority, Size: j.Spec.Size, Epoch: j.Epoch, MinNodes: minNodes(j.Spec), Nodes: nodesOf(j),
		TimeLimitSeconds: int64(gang.TimeLimit(j) / time.Second), SubmitTime: j.Submit, StartTime: j.Start, EndTime: j.End,
		Reason: "None", Held: j.Held,
	}
	out.Cards = cardsOf(j.Spec, len(out.Nodes))
	out.Components = e.components(j)
	out.Epilog = e.view.epilogs(j.ID)
	if j.ArrayIndex >= 0 {
		out.ArrayIndex = &j.ArrayIndex
	}
	if j.Array != nil {
		out.ArrayLimit = j.Array.Limit
	}
	if out.State == api.JobReserved {
		out.Prepared = e.view.preparedRanks(j.ID)
	}
	if j.Verdict != nil {
		out.Cause = j.Verdict.Cause
	} else if j.Drain != nil {
		out.Cause = j.Drain.Cause
	}
	switch s := out.State; {
	case s == api.JobPending:
		out.Reason, _ = e.waits(j, now, false)
	case gang.AwaitsReady(j):
		out.Reason = "NotReady"
	case s.Ended() && s != api.JobCompleted && j.Waits != "":
		out.Reason = neverSatisfied
	case s == api.JobCancelled && j.Held != "" && j.Epoch == 0: // Slurm leaves the last reason of what never began
		out.Reason = heldReason(j)
	case s.Ended() && s != api.JobCompleted:
		out.Reason = endReason(s, out.Cause)
	}
}

// minNodes is the fewest nodes that a gang can start on, by what it asked for.
func minNodes(s *api.Spec) int {
	sum := 0
	for i := range s.Components() {
		sum += minNodes(s.Part(i))
	}
	n := max(1, s.MinNodes, sum)
	if s.RanksPerNode > 0 {
		n = max(n, (s.Size+s.RanksPerNode-1)/s.RanksPerNode)
	}
	return n
}

// cardsOf is how many cards a gang asks for; nodes are those that it has, 0: none yet.
func cardsOf(s *api.Spec, nodes int) int {
	n := 0
	switch {
	case s.Components() > 0:
		for i := range s.Components() {
			n += cardsOf(s.Part(i), 0)
		}
	case len(s.Roles) > 0:
		for i := range s.Roles {
			n += s.Roles[i].Count * s.Roles[i].GPUsPerRank
		}
	default:
		n = s.Size * s.GPUsPerRank
	}
	if s.GPUsPerNode > 0 && s.Components() == 0 {
		n += max(nodes, minNodes(s)) * s.GPUsPerNode
	}
	return n
}

// components is where those of a heterogeneous job are.
func (e *Engine) components(j *gang.Job) []api.JobComponent {
	var out []api.JobComponent
	for i := range j.Spec.Components() {
		r := &j.Spec.Roles[i]
		id := int64(0)
		if r.Component.Numbered {
			id = j.ID + int64(i)
		}
		out = append(out, api.JobComponent{JobID: id, Name: r.Component.JobName, Size: r.Count, MinNodes: minNodes(j.Spec.Part(i)),
			Nodes:     []string{},
			Partition: cmp.Or(r.Component.Partition, e.runsIn(j))})
	}
	if len(out) == 0 || j.Verdict == nil && len(j.Members) == 0 {
		return out
	}
	for r := range j.Ranks {
		c := &out[j.Spec.ComponentAt(r)]
		if n := j.Ranks[r].Slot.Node; n != "" && !slices.Contains(c.Nodes, n) {
			c.Nodes = append(c.Nodes, n)
		}
	}
	if gang.CPUs(j) > 0 {
		for i := range j.Members {
			c := &out[j.Spec.ComponentAt(j.Members[i].Ranks[0])]
			c.NodeCPUs = append(c.NodeCPUs, j.Members[i].CPUs)
		}
	}
	return out
}

// nodeCPUs is how many CPUs each node of a job has that has them to itself.
func nodeCPUs(j *gang.Job) (out []int) {
	if gang.CPUs(j) > 0 {
		for i := range j.Members {
			out = append(out, j.Members[i].CPUs)
		}
	}
	return out
}

// heldReason is Slurm's word for who holds a job.
func heldReason(j *gang.Job) string {
	switch j.Held {
	case gang.HeldAdmin:
		return "JobHeldAdmin"
	case gang.HeldSpecial:
		return api.ReasonSpecialExit
	}
	return "JobHeldUser"
}

// endReason is Slurm's word for how a job ended.
func endReason(s api.JobState, c api.Cause) string {
	switch s {
	case api.JobTimeout:
		return "TimeLimit"
	case api.JobDeadline:
		return "DeadLine" // Slurm's spelling
	case api.JobNodeFail:
		return "NodeDown"
	case api.JobOutOfMemory:
		return "OutOfMemory"
	case api.JobFailed:
		switch c {
		case api.CauseLaunch:
			return "JobLaunchFailure" // nothing of it ran, so nothing had an exit code
		case api.CauseStalled: // Slurm has no words for what watchdogs end
			return "Stalled"
		case api.CauseGPUHang:
			return "GPUHang"
		case api.CauseIdle:
			return "Idle"
		}
		return "NonZeroExitCode"
	}
	return "None"
}

// before is the first job that a singleton waits for, as people know it; "" of any other job.
func (e *Engine) before(j *gang.Job) string {
	if d := j.Dependency; d == nil || !slices.ContainsFunc(d.On, func(c api.Condition) bool { return c.Kind == api.AfterSingle }) {
		return ""
	}
	for _, o := range e.view.some(1, func(o *gang.Job) bool { return o.ID < j.ID && o.Verdict == nil && o.UID == j.UID && o.Name == j.Name }) {
		return e.jobName(o.ID)
	}
	return ""
}

// waits says why a pending job is not admitted: what keeps it from being a candidate at
// all, else what the last plan found.
func (e *Engine) waits(j *gang.Job, now time.Time, say bool) (word, text string) {
	switch {
	case j.Held != "" && !say:
		return heldReason(j), ""
	case j.Held == gang.HeldAdmin:
		return heldReason(j), "held by an admin; only an admin may release it (gctl release)"
	case j.Held != "":
		return heldReason(j), fmt.Sprintf("held by its owner; gctl release %d lets it go", j.ID)
	case j.Waits != "":
		word, text := dependencyReason(j)
		if say { // it looks through all jobs
			if first := e.before(j); first != "" {
				text += ": job " + first + " of that name has not ended"
			}
		}
		return word, text
	case j.Spec.Cron != nil && j.Eligible.After(now) && !j.BackoffUntil.After(now):
		return "BeginTime", fmt.Sprintf("begins at %s, as its cron table says: %s", when.Clock(now, j.Eligible), j.Spec.Cron.Schedule)
	case j.Epoch == 0 && j.Eligible.After(now):
		return "BeginTime", "begins at " + when.Clock(now, j.Eligible)
	case j.BackoffUntil.After(now):
		return "BeginTime", fmt.Sprintf("runs again at %s, after a back-off: an attempt failed, or it had ended",
			j.BackoffUntil.Format("15:04:05"))
	}
	if word, text := e.awaitsPartition(j); word != "" {
		return word, text
	}
	if word, text := e.awaitsReservation(j, now); word != "" {
		return word, text
	}
	if !say {
		if word, ok := e.view.word(j.ID); ok {
			return word, ""
		}
	} else if r, ok := e.view.reason(j.ID); ok {
		return r.Word, r.Text
	}
	if word, text := e.fenced(j); word != "" {
		return word, text
	}
	if j.Array != nil && j.Array.Limit > 0 {
		return "JobArrayTaskLimit", fmt.Sprintf("its array runs at most %d at a time (--array=...%%%d), and so many do", j.Array.Limit,
			j.Array.Limit)
	}
	return "None", "not looked at yet"
}

// fenced: an epoch that is over for the gang may still run on a node that can't be asked.
func (e *Engine) fenced(j *gang.Job) (word, text string) {
	if j.Epoch == 0 {
		return "", ""
	}
	if on := e.view.epilogs(j.ID); len(on) > 0 {
		return "Cleaning", fmt.Sprintf("the site's epilog after attempt %d runs on %s; it runs again when that is over", j.Epoch,
			strings.Join(on, ", "))
	}
	var where []string
	for _, n := range e.view.allNodes() {
		if slices.ContainsFunc(n.Left, func(l gang.Left) bool { return l.Ran && l.Job == j.ID }) {
			where = append(where, fmt.Sprintf("%s (%s)", n.Name, n.State))
			text = n.Name
		}
	}
	if where == nil {
		return "", ""
	}
	return "NodeDown", fmt.Sprintf("attempt %d may still run on %s; it runs again when that is known to be over: the node comes back, its "+
		"lease ends, or an admin says so: gctl node fence %s",
		j.Epoch, strings.Join(where, ", "), text)
}

func showRanks(j *gang.Job) []api.Rank {
	out := make([]api.Rank, len(j.Ranks))
	for i := range j.Ranks {
		r := &j.Ranks[i]
		out[i] = api.Rank{Rank: i, Role: j.Spec.RoleName(i), State: r.State, PID: r.PID, StartTime: r.Start, EndTime: r.End, Signal: r.Signal}
		if r.State != api.RankBlocked {
			out[i].Node, out[i].Cards = r.Slot.Node, r.Slot.Cards
		}
		if r.Exited {
			out[i].ExitCode = &r.ExitCode
		}
	}
	return out
}

// nodesOf names the nodes of the current or last epoch, in the order of the first rank.
func nodesOf(j *gang.Job) []string {
	out := []string{}
	if j.Verdict == nil && len(j.Members) == 0 {
		return out
	}
	var all nodeNames
	for i := range j.Ranks {
		if n := j.Ranks[i].Slot.Node; all.isNew(n) {
			out = append(out, n)
		}
	}
	return out
}

// nodeNames knows which names it was asked for, of the many ranks that a node may have.
type nodeNames struct {
	last  string
	named map[string]bool
}

// isNew says whether a name comes for the first time; an empty one is none.
func (a *nodeNames) isNew(n string) bool {
	if n == a.last || n == "" || a.named[n] { // neighbours mostly share a node
		return false
	}
	if a.named == nil {
		a.named = map[string]bool{}
	}
	a.named[n], a.last = true, n
	return true
}

func attempt(spec *api.Spec, r *gang.EpochRow, number int) api.Attempt {
	a := api.Attempt{JobID: r.Job, Attempt: number, Epoch: r.Epoch, Cause: r.Cause, StartTime: r.Started, EndTime: r.Ended,
		ExitCodes: r.ExitCodes, Nodes: []string{}, VRAMPeak: r.VRAMPeak}
	if a.ExitCodes == nil {
		a.ExitCodes = []int{}
	}
	a.Code = attemptCode(r)
	if r.Trigger >= 0 && r.Trigger < len(r.Signals) && r.Cause.ExitClass() == 0 {
		a.Signal = r.Signals[r.Trigger]
	}
	if r.Trigger >= 0 && r.Cause != api.CauseCompleted {
		a.TriggerRank, a.TriggerRole = &r.Trigger, spec.RoleName(r.Trigger)
	}
	a.Text, a.TiedRanks = r.Text, r.Tied
	if by := r.StartedBy; by != nil {
		a.StartedBy = &api.AttemptReport{Cause: by.Cause, Text: by.Text}
		if by.Trigger >= 0 {
			a.StartedBy.TriggerRank = &by.Trigger
		}
	}
	for _, x := range r.Ends {
		a.Ends = append(a.Ends, api.AttemptEnd{Rank: x.Rank, MS: milliseconds(x.After), Within: milliseconds(x.Within), Own: x.Own})
	}
	if r.Stacks != nil { // frames are their owner's to ask for
		s := *r.Stacks
		s.Groups, a.Stacks = nil, &s
	}
	var all nodeNames
	for _, s := range r.Slots {
		if all.isNew(s.Node) {
			a.Nodes = append(a.Nodes, s.Node)
		}
	}
	if _, cards := taken(spec, r.Slots, ""); !r.Ended.IsZero() {
		a.GPUSeconds = int64(cards) * int64(r.Ended.Sub(r.Started)/time.Second)
	}
	return a
}

func milliseconds(d time.Duration) float64 { return math.Round(float64(d.Microseconds())/10) / 100 }

// attemptCode is how an attempt ended as one number; see [api.Attempt].
func attemptCode(r *gang.EpochRow) int {
	switch class := r.Cause.ExitClass(); {
	case class != 0:
		return class
	case r.Cause == api.CauseCompleted:
		return 0
	case r.Trigger >= 0 && r.Trigger < len(r.ExitCodes):
		return r.ExitCodes[r.Trigger]
	}
	return -1
}

// ShowNodes is what ginfo prints.
func (e *Engine) ShowNodes() *api.NodesReply {
	out := &api.NodesReply{SchemaVersion: api.SchemaVersion, Nodes: []api.Node{}, Partitions: e.policy().Partitions,
		Changes:  e.conf().changes,
		Switches: e.policy().Switches, Preempt: e.preempts(), Pools: e.pools()}
	out.Partitions = append([]api.Partition{}, out.Partitions...)
	for i := range out.Partitions {
		p := &out.Partitions[i]
		p.Nodes = append([]string{}, p.Nodes...) // a list, though it names none
	}
	out.Nodes = append(out.Nodes, e.showNodes(e.view.allNodes())...)
	return out
}

// ShowSome is some of these nodes.
func (e *Engine) ShowSome(names map[string]bool) []api.Node {
	return e.showNodes(slices.DeleteFunc(e.view.allNodes(), func(n *gang.Node) bool { return !names[n.Name] }))
}

func (e *Engine) showNodes(nodes []*gang.Node) (out []api.Node) {
	for _, n := range nodes {
		node := showNode(n)
		if l, ok := e.loads.Load(n.Name); ok {
			load, _ := l.(api.NodeLoad)
			node.Load = &load
		}
		out = append(out, node)
	}
	e.showReservations(out)
	return out
}

// pools are what the site has altogether, and what of it is held.
func (e *Engine) pools() []api.PoolState {
	var out []api.PoolState
	for _, p := range e.conf().Settings.Pools() {
		out = append(out, api.PoolState{Pool: p})
	}
	if out == nil {
		return nil
	}
	used := e.view.poolsUsed()
	for i := range out {
		out[i].Used = used[out[i].Key()]
	}
	return out
}

func showNode(n *gang.Node) api.Node {
	r := n.Res
	out := api.Node{Name: n.Name, State: n.State, Reason: n.Reason, Silent: gang.OnlySilent(n), DrainUser: n.DrainUser, DrainTime: n.DrainTime,
		DrainBy: n.DrainBy, Down: n.Down, Address: r.Address, BootID: n.BootID,
		LostSince: n.LostSince, LastSeen: n.LastSeen, Containment: n.Hello.Containment, Devices: n.Hello.Devices, Containers: n.Hello.Containers,
		Limits: n.Hello.Limits, Version: n.Hello.Version,
		Partitions: r.Partitions, Features: r.Features, Shape: r.Shape,
		Cards: []api.Card{}, Jobs: []int64{}}
	for i := range cluster.Resources {
		cluster.Resources[i].Show(&out, r.Has[i], r.Used(cluster.Resource(i)))
	}
	for i := range r.Grants {
		g := &r.Grants[i]
		out.Exclusive = out.Exclusive || g.Exclusive
		if !slices.Contains(out.Jobs, g.Job) {
			out.Jobs = append(out.Jobs, g.Job)
		}
	}
	for i := range r.Cards {
		out.Cards = append(out.Cards, showCard(r, &r.Cards[i]))
	}
	for i := range n.Left {
		if n.Left[i].Ran {
			showLeft(&out, r, &n.Left[i])
		}
	}
	out.Strikes = len(n.Strikes)
	if r := n.Reboot; r != nil {
		out.Reboot = &api.RebootPending{By: r.By, Reason: r.Reason, Asked: r.Asked, Asap: r.Asap, Then: r.Then, Issued: r.Issued}
	}
	if out.Reason == "" {
		out.Reason = gang.StrikeText(n)
	}
	return out
}

// showLeft shows what a member that may still live holds: its cards are out of service,
// alone, and the node says because of whom.
func showLeft(out *api.Node, n *cluster.Node, l *gang.Left) {
	reason := fmt.Sprintf("job %d epoch %d: %s", l.Job, l.Epoch, l.Text)
	if out.Reason == "" {
		out.Reason = reason
	}
	g, _ := n.Grant(l.MemberKey)
	for _, held := range g.Cards {
		for i := range out.Cards {
			if c := &out.Cards[i]; c.UUID == held.UUID && c.State == api.CardOK {
				c.State, c.Reason = api.CardQuarantined, reason
			}
		}
	}
}

// showCard: reserved is what the grants on it may use, the whole card when exclusive.
func showCard(n *cluster.Node, c *cluster.Card) api.Card {
	out := api.Card{Index: c.Index, UUID: c.UUID, Model: c.Model, VRAMBytes: c.VRAMBytes, UsedBytes: c.UsedBytes,
		StrangersBytes: c.StrangersBytes, Utilization: c.Utilization, State: c.State, Reason: c.Reason, Jobs: []int64{},
		MIG: c.MIG, Compute: c.Compute, NUMA: c.NUMA}
	for i := range n.Grants {
		for _, g := range n.Grants[i].Cards {
			if g.UUID != c.UUID {
				continue
			}
			if g.Exclusive {
				out.ReservedBytes = c.VRAMBytes
			} else {
				out.ReservedBytes += g.VRAMBytes
			}
			if !slices.Contains(out.Jobs, n.Grants[i].Job) {
				out.Jobs = append(out.Jobs, n.Grants[i].Job)
			}
		}
	}
	return out
}

func outputPattern(s *api.Spec) string {
	if s.Output != "" {
		return s.Output
	}
	return outpath.Default(s)
}
