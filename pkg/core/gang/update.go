package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
)

// Update changes what may be changed of a job after its submission; nil fields stay. The
// caller has checked them against the site.
type Update struct {
	Job        int64
	By         string
	Name       *string
	TimeLimit  *time.Duration // 0: none; of a running gang too, counted from its start
	Priority   *int64
	Nice       *int64     // what of the priority is taken off
	Begin      *time.Time // zero: now
	Deadline   *time.Time // zero: none
	Comment    *string
	Message    *string // changes nothing: an event for those who follow the job
	Partition  *string
	Constraint *string // empty: none
	Prefer     *string
	ArrayLimit *int            // of the whole array that the job is of, 0: no limit
	Groups     []string        // as of [Submit], where the time limit or the partition is another
	Dependency *api.Dependency // without conditions: none
	Recalled   []*Job          // jobs that it depends on and that had left memory
	// Spec is what a job that waits asks for from now on, SpecHash its name, judged as at a submission; nil: it stays.
	Spec     *api.Spec
	SpecHash string
}

func (Update) event() {}

func (cl *control) update(ev Update) Outcome {
	e, err := cl.jobs.living(ev.Job)
	if err == nil && Recurs(e.job) && ev.Message == nil {
		err = conflict("change its line: gcron -e", "job %s is of a cron table and is changed there", e.job.Ref()).About(api.ReasonCronJob, "")
	}
	if err == nil {
		err = cl.updatable(e, &ev)
	}
	if err != nil {
		return refused(err)
	}
	if ev.Groups != nil {
		cl.site.setGroups(Groups{Of: map[uint32][]string{e.job.UID: ev.Groups}})
	}
	var said []string
	say := func(format string, args ...any) {
		for i, a := range args {
			if text, ok := a.(string); ok {
				args[i] = inShort(text)
			}
		}
		said = append(said, fmt.Sprintf(format, args...))
	}
	cl.rename(e, ev.Name, say)
	cl.relimit(e, &ev, say)
	if p := ev.Priority; p != nil && *p != e.job.Priority {
		say("priority %d, was %d", *p, e.job.Priority)
		cl.jobs.edit(e).Priority = *p
	}
	if n := ev.Nice; n != nil && *n != NiceOf(e.job) {
		say("nice %d, was %d", *n, NiceOf(e.job))
		cl.jobs.edit(e).Nice = n
	}
	if c := ev.Comment; c != nil && *c != CommentOf(e.job) {
		say("comment %q, was %q", *c, CommentOf(e.job))
		cl.jobs.edit(e).Comment = c
	}
	cl.move(e, ev.Partition, say)
	cl.reconstrain(e, &ev, say)
	cl.respec(e, &ev, say)
	cl.delay(e, ev.Begin, say)
	cl.limitArray(e, ev.ArrayLimit, say)
	cl.depend(e, ev.Dependency, say)
	if m := ev.Message; m != nil {
		cl.record.emitJob(e.job, api.Event{Type: api.EventMessage, Text: Signed(*m, ev.By)})
	}
	switch {
	case said == nil && ev.Message != nil:
		return applied()
	case said == nil:
		return ignored("it is so already")
	}
	cl.record.emitJob(e.job, api.Event{Type: api.EventUpdated, Text: Signed(strings.Join(said, "; "), ev.By)})
	e.body = nil // as a restarted gangd would make it
	cl.queue.touch(e)
	return applied()
}

// Signed says whose words they are.
func Signed(text, who string) string {
	if who == "" {
		return text
	}
	return text + " (" + who + ")"
}

// NiceOf is what is taken off a job's priority now.
func NiceOf(j *Job) int64 {
	if j.Nice != nil {
		return *j.Nice
	}
	return j.Spec.Nice
}

// CommentOf is what a job's comment is now.
func CommentOf(j *Job) string {
	if j.Comment != nil {
		return *j.Comment
	}
	return j.Spec.Comment
}

// updatable refuses all of an update when a part of it can't be done.
func (cl *control) updatable(e *entry, ev *Update) *api.Error {
	j := e.job
	waiting := func(what string) *api.Error {
		return conflict("", "job %s is %s: its %s can be changed only while it waits", j.Ref(), phrase(j), what)
	}
	switch {
	case ev.TimeLimit != nil && j.Drain != nil:
		return conflict("", "job %s is being stopped: its time limit has no effect any more", j.Ref())
	case ev.Deadline != nil && j.Drain != nil:
		return conflict("", "job %s is being stopped: a deadline has no effect any more", j.Ref())
	case ev.Partition != nil && !blocked(j):
		return waiting("partition")
	case (ev.Constraint != nil || ev.Prefer != nil) && !blocked(j):
		return waiting("constraint")
	case ev.Begin != nil && !blocked(j):
		return waiting("begin time")
	case ev.Dependency != nil && !blocked(j):
		return waiting("dependency")
	case ev.Spec != nil && !blocked(j):
		return waiting("request")
	case ev.Spec != nil && ev.Spec.Size != j.Spec.Size && j.Epoch > 0:
		return conflict("submit it once more", "job %s has been started with %s, and stays of that size", j.Ref(), api.Count(j.Spec.Size, "rank"))
	case ev.ArrayLimit != nil && cl.queue.arrays[j.ArrayID] == nil:
		return conflict("", "job %s is not of an array", j.Ref())
	}
	if ev.Spec != nil {
		if err := cl.holdings.mayHold(&Submit{Spec: ev.Spec, SpecHash: ev.SpecHash, UID: j.UID, User: j.User}, 0); err != nil {
			return err
		}
	}
	if err := cl.endsInTime(j, ev); err != nil {
		return err
	}
	if ev.TimeLimit != nil || ev.Deadline != nil {
		limit, by := baseLimit(j), j.Deadline
		if ev.TimeLimit != nil {
			limit = *ev.TimeLimit
		}
		if ev.Deadline != nil {
			by = *ev.Deadline
		}
		if err := cl.reservations.longerIntoReservation(e, limit, by); err != nil {
			return err
		}
	}
	if d := ev.Dependency; d != nil {
		for i := range d.On {
			if d.On[i].Job >= j.ID {
				return conflict("", "dependency %s: a job can wait only for one that was submitted before it", &d.On[i]).About(api.ReasonDependency,
					d.On[i].String())
			}
		}
		return cl.memory.recall(d, ev.Recalled)
	}
	return nil
}

type reportFunc func(format string, args ...any)

// inShort is how a text stands in an event that tells of a change: the job has all of it, and ten thousand of them may be changed at once.
func inShort(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

func (cl *control) rename(e *entry, name *string, say reportFunc) {
	if name == nil || *name == e.job.Name {
		return
	}
	say("name %s, was %s", *name, e.job.Name)
	waiting := e.waiting
	cl.deps.unwatch(e)
	cl.deps.leaveName(e)
	cl.jobs.edit(e).Name = *name
	cl.deps.joinName(e)
	if waiting {
		cl.deps.watch(e)
	}
}

// relimit moves the time limit and the deadline, of a running gang also on its nodes and in
// its grants.
func (cl *control) relimit(e *entry, ev *Update, say reportFunc) {
	limit, by := ev.TimeLimit, ev.Deadline
	longer, later := limit != nil && *limit != e.job.TimeLimit, by != nil && !by.Equal(e.job.Deadline)
	if !longer && !later {
		return
	}
	j := cl.jobs.edit(e)
	if longer {
		say("time limit %s, was %s", limitText(*limit), limitText(j.TimeLimit))
		// A person's word: what a plan made of the old one does not count any more.
		cl.launches.changeAsk(e, func(j *Job) { j.TimeLimit, j.CutTimeLimit = *limit, 0 }) // partitions may keep it by that
	}
	if later {
		say("deadline %s, was %s", timeText(*by), timeText(j.Deadline))
		j.Deadline = *by
	}
	cl.launches.armDeadline(e)
	cl.record.armPart(e)
	if !admitted(j) {
		return
	}
	until := endsBy(cl.set, j, baseLimit(j), j.ReservedAt)
	for i := range j.Members {
		h := cl.nodes.byName[j.Members[i].Node]
		cl.nodes.wake(h.node.Name)
		if g, ok := h.node.Res.Grant(j.key()); ok {
			g.Until = until
			n := cl.nodes.edit(h)
			n.Res = n.Res.Release(j.key()).Restore(g)
		}
	}
}

func (cl *control) move(e *entry, partition *string, say reportFunc) {
	if partition == nil || *partition == e.job.Partition {
		return
	}
	say("partition %s, was %s", *partition, e.job.Partition)
	j := cl.jobs.edit(e)
	j.Partition = *partition
	cl.specs.askAgain(e)
}

// reconstrain changes which nodes a waiting gang may have. Its spec is shared: the change
// stands in the job alone.
func (cl *control) reconstrain(e *entry, ev *Update, say reportFunc) {
	s := SpecOf(e.job)
	constrained := ev.Constraint != nil && *ev.Constraint != s.Constraint
	prefers := ev.Prefer != nil && *ev.Prefer != s.Prefer
	if !constrained && !prefers {
		return
	}
	j := cl.jobs.edit(e)
	if constrained {
		say("constraint %s, was %s", orNone(*ev.Constraint), orNone(s.Constraint))
		j.Constraint = ev.Constraint
	}
	if prefers {
		say("prefers %s, was %s", orNone(*ev.Prefer), orNone(s.Prefer))
		j.Prefer = ev.Prefer
	}
	cl.specs.askAgain(e)
}

// respec gives a waiting gang another spec: its own from then on, where it was that of an array.
func (cl *control) respec(e *entry, ev *Update, say reportFunc) {
	if ev.Spec == nil || ev.SpecHash == e.job.SpecHash {
		return
	}
	old := SpecOf(e.job)
	changes := specChanges(old, ev.Spec)
	if changes == nil {
		changes = []string{"request, in what has no words"} // a change is never silent: who plans is told of what is said
	}
	for _, text := range changes {
		say("%s", text)
	}
	j := cl.jobs.edit(e)
	cl.holdings.uncount(j)
	cl.specs.drop(j)
	cl.specs.left = append(cl.specs.left, j.SpecHash)
	j.Spec, j.SpecHash, j.TextBytes = ev.Spec.WithoutTexts(), ev.SpecHash, ev.Spec.TextBytes()
	j.Constraint, j.Prefer = nil, nil // the spec has them
	if cl.specs.whole == nil {
		cl.specs.whole = map[string]*api.Spec{}
	}
	cl.specs.whole[ev.SpecHash] = ev.Spec
	cl.specs.keep(j)
	cl.holdings.count(j)
	if len(j.Ranks) != j.Spec.Size {
		j.Ranks = BlankRanks(j.Spec.Size)
		e.ownRanks = true
	}
	cl.specs.askAgain(e)
}

// specChanges says what is other in a spec than it was, for what people can change of one.
func specChanges(old, now *api.Spec) (out []string) {
	for _, f := range changeable {
		if was, is := f.text(old), f.text(now); was != is {
			out = append(out, f.name+" "+orNone(is)+", was "+orNone(was))
		}
	}
	return out
}

// changeableRow is one thing that can be changed of a spec, and how it is said.
type changeableRow struct {
	name string
	text func(s *api.Spec) string
}

var changeable = slices.Concat([]changeableRow{
	{"ranks", func(s *api.Spec) string { return strconv.Itoa(s.Size) }},
	{"nodes", func(s *api.Spec) string { return rangeText(s.MinNodes, s.MaxNodes) }},
	{"ranks of a node", func(s *api.Spec) string { return countText(s.RanksPerNode) }},
}, changeableAmounts(), []changeableRow{
	{"cards of a rank", func(s *api.Spec) string { return countText(s.GPUsPerRank) }},
	{"cards of a node", func(s *api.Spec) string { return countText(s.GPUsPerNode) }},
	{"kind of cards", func(s *api.Spec) string { return s.GPUType }},
	{"VRAM of a card", func(s *api.Spec) string { return bytesText(s.VRAMBytes) }},
	{"least compute capability", func(s *api.Spec) string { return s.MinCompute }},
	{"shared cards", func(s *api.Spec) string { return yesText(s.Share) }},
	{"exclusive", func(s *api.Spec) string { return yesText(s.Exclusive) }},
	{"node list", func(s *api.Spec) string { return hostlist.Compress(s.NodeList) }},
	{"excluded nodes", func(s *api.Spec) string { return hostlist.Compress(s.Exclude) }},
	{"shape of a node", func(s *api.Spec) string { return shapeText(s.Shape) }},
	{"switches", func(s *api.Spec) string { return countText(s.Switches) }},
	{"account", func(s *api.Spec) string { return s.Account }},
	{"reservation", func(s *api.Spec) string { return s.Reservation }},
	{"output", func(s *api.Spec) string { return api.Shown(s.Output) }},
	{"error", func(s *api.Spec) string { return api.Shown(s.Error) }},
	{"input", func(s *api.Spec) string { return api.Shown(s.Input) }},
	{"directory", func(s *api.Spec) string { return api.Shown(s.WorkDir) }},
	{"requeue", func(s *api.Spec) string { return yesText(!s.NoRequeue) }},
	{"shortest time limit", func(s *api.Spec) string {
		if s.TimeMin == 0 {
			return ""
		}
		return when.Words(s.TimeMin)
	}},
	{"notices", func(s *api.Spec) string { return notices(s.Notify) }},
})

func changeableAmounts() (out []changeableRow) {
	for i := range api.PoolRows {
		row := &api.PoolRows[i]
		out = append(out, changeableRow{row.Option, func(s *api.Spec) string { return api.PoolText(s.Pools, row.Kind) }})
	}
	for r := range cluster.Resources {
		row := &cluster.Resources[r]
		add := func(f *cluster.Figure, of string) {
			if f.Option != "" {
				out = append(out, changeableRow{row.Noun + of, func(s *api.Spec) string {
					if v := f.In(s); v != 0 {
						return row.Figure(v)
					}
					return ""
				}})
			}
		}
		add(&row.Rank, " of a rank")
		add(&row.Member, " of a node")
	}
	return out
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func bytesText(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return cluster.Size(bytes)
}

func yesText(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func rangeText(low, high int) string {
	if low == high || high == 0 {
		return countText(low)
	}
	return countText(low) + "-" + countText(high)
}

func shapeText(s api.CPUShape) string {
	if s == (api.CPUShape{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d", s.Sockets, s.Cores, s.Threads)
}

func notices(all []api.Notify) string {
	var out []string
	for i := range all {
		kinds := make([]string, len(all[i].Types))
		for k, t := range all[i].Types {
			kinds[k] = string(t)
		}
		out = append(out, cmp.Or(all[i].Target, all[i].To)+":"+strings.Join(kinds, ","))
	}
	return strings.Join(out, " ")
}

// delay moves the begin time of a gang that was never admitted; one that was has begun.
func (cl *control) delay(e *entry, begin *time.Time, say reportFunc) {
	if begin == nil || e.job.Epoch > 0 {
		return
	}
	at := *begin
	if at.Before(cl.clock.now.Wall) {
		at = cl.clock.now.Wall
	}
	if at.Equal(e.job.Eligible) {
		return
	}
	say("begins at %s", at.Format(time.RFC3339))
	cl.jobs.edit(e).Eligible = at
	k := timer{kind: timerEligible, job: e.job.ID}
	cl.clock.timers.cancel(k)
	if d := at.Sub(cl.clock.now.Wall); d > 0 {
		cl.clock.in(d, k)
	}
}

// limitArray changes how many elements may be admitted at once. Those that are stay.
func (cl *control) limitArray(e *entry, limit *int, say reportFunc) {
	if limit == nil {
		return
	}
	a := cl.queue.arrays[e.job.ArrayID]
	if a.limit == *limit {
		return
	}
	say("at most %d elements at once, was %d (0: no limit)", *limit, a.limit)
	var kept []*entry // that could not start before, for the limit alone
	for _, id := range a.waiting {
		el := cl.jobs.byID[id]
		if !cl.queue.inTurn(el) {
			kept = append(kept, el)
		}
		j := cl.jobs.edit(el)
		info := *j.Array
		info.Limit = *limit
		j.Array = &info
		if el.offered {
			cl.queue.withdraw(a, el)
		}
		cl.jobs.changed(el)
	}
	a.limit, a.above = *limit, a.active
	if a.limit > 0 {
		cl.queue.offer(a)
	}
	for _, el := range kept {
		if cl.queue.eligible(el) && cl.queue.inTurn(el) {
			cl.queue.eligibleNow(el)
		}
	}
}

// depend replaces the dependency of a waiting gang. What it waits for from now on stands in
// the job alone: its spec is shared.
func (cl *control) depend(e *entry, d *api.Dependency, say reportFunc) {
	if d == nil {
		return
	}
	if d.String() == dependencyText(e.job) {
		return
	}
	say("dependency %s", orNone(d.String()))
	cl.deps.unwatch(e)
	j := cl.jobs.edit(e)
	j.Dependency, j.Waits, j.Hopeless = nil, "", false
	if len(d.On) > 0 {
		j.Dependency, j.Waits = d, d.String()
		cl.deps.watch(e)
	}
}

func dependencyText(j *Job) string {
	if j.Dependency == nil {
		return ""
	}
	return j.Dependency.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// leaveName and joinName move a job between the names that singletons wait for.
func (ds *dependencies) leaveName(e *entry) {
	n := ds.named[keyOf(e.job)]
	if n == nil {
		return
	}
	if at, ok := slices.BinarySearch(n.live, e.job.ID); ok {
		n.live = slices.Delete(n.live, at, at+1)
	}
	for _, id := range slices.Clone(n.live) {
		ds.judge(ds.jobs.byID[id])
	}
}

func (ds *dependencies) joinName(e *entry) {
	if n := ds.named[keyOf(e.job)]; n != nil {
		n.insert(e.job.ID)
	}
}
