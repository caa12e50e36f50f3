package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// dependencies finds those who wait for a job, an array or a name. A job that somebody waits
// for stays in memory, so that a dependency is always judged by what really is.
type dependencies struct {
	set    *api.Settings
	clock  *clock
	record *record
	jobs   *jobs
	queue  *queue
	stops  *stops

	on     map[int64]map[int64]struct{} // job or array -> who waits for it
	arrays map[int64]int                // array -> jobs of it in on; it stays whole, to be searched
	named  map[nameKey]*name
}

// nameKey is what singletons have in common.
type nameKey struct {
	uid  uint32
	name string
}

// name keeps the jobs of a name for as long as a singleton of it waits.
type name struct {
	live    []int64 // not ended, by id
	waiting int     // singletons
}

func newDepends() dependencies {
	return dependencies{on: map[int64]map[int64]struct{}{}, arrays: map[int64]int{}, named: map[nameKey]*name{}}
}

func keyOf(j *Job) nameKey { return nameKey{j.UID, j.Name} }

// watched: somebody waits for the job, for its array, or for another element of it.
func (ds *dependencies) watched(j *Job) bool {
	return len(ds.on[j.ID]) > 0 || j.ArrayID != 0 && ds.arrays[j.ArrayID] > 0
}

// add has who wait for a target, of an array or 0.
func (ds *dependencies) add(target, array, who int64) {
	if ds.on[target] == nil {
		ds.on[target] = map[int64]struct{}{}
		ds.arrays[array]++
	}
	ds.on[target][who] = struct{}{}
}

func (ds *dependencies) remove(target, array, who int64) {
	if ds.on[target] == nil {
		return // two conditions on one job
	}
	delete(ds.on[target], who)
	if len(ds.on[target]) > 0 {
		return
	}
	delete(ds.on, target)
	if ds.arrays[array]--; ds.arrays[array] == 0 {
		delete(ds.arrays, array)
	}
}

// status is how a condition stands.
type status uint8

const (
	unmet status = iota
	met
	never // it can't be met any more
)

// Unfulfilled and failedMark are squeue's marks of a condition.
const (
	Unfulfilled = "(unfulfilled)"
	failedMark  = "(failed)"
)

// watch begins to wait, if the job has a dependency that was not met yet.
func (ds *dependencies) watch(e *entry) {
	j := e.job
	if n := ds.named[keyOf(j)]; n != nil && j.Verdict == nil {
		n.insert(j.ID)
	}
	d := j.Dependency
	if d == nil || j.Verdict != nil || j.Waits == "" {
		return
	}
	for i := range d.On {
		if c := &d.On[i]; c.Kind == api.AfterSingle {
			ds.watchName(j)
		} else {
			target, array := ds.target(j, c)
			ds.add(target, array, j.ID)
		}
	}
	e.waiting = true
	ds.judge(e)
}

// watchName gathers the jobs of the name when its first singleton comes.
func (ds *dependencies) watchName(j *Job) {
	k := keyOf(j)
	n := ds.named[k]
	if n == nil {
		n = &name{}
		for id, o := range ds.jobs.byID {
			if o.job.Verdict == nil && keyOf(o.job) == k {
				n.live = append(n.live, id)
			}
		}
		slices.Sort(n.live)
		ds.named[k] = n
	}
	n.waiting++
}

func (n *name) insert(id int64) {
	if at, ok := slices.BinarySearch(n.live, id); !ok {
		n.live = slices.Insert(n.live, at, id)
	}
}

// unwatch ends the waiting, and takes an ended job out of those of its name.
func (ds *dependencies) unwatch(e *entry) {
	j := e.job
	k := keyOf(j)
	n := ds.named[k]
	if n != nil && j.Verdict != nil {
		if at, ok := slices.BinarySearch(n.live, j.ID); ok {
			n.live = slices.Delete(n.live, at, at+1)
		}
	}
	if !e.waiting {
		return
	}
	e.waiting = false
	ds.clock.timers.cancel(timer{kind: timerDepend, job: j.ID})
	d := j.Dependency
	for i := range d.On {
		c := &d.On[i]
		if c.Kind != api.AfterSingle {
			target, array := ds.target(j, c)
			ds.remove(target, array, j.ID)
			continue
		}
		if n.waiting--; n.waiting == 0 {
			delete(ds.named, k)
		}
	}
}

// target is whom a condition of j is about: a job, or an array by its id. array is the one
// that it belongs to or is, 0 for none.
func (ds *dependencies) target(j *Job, c *api.Condition) (id, array int64) {
	if e := ds.jobs.byID[c.Job]; e != nil {
		array = e.job.ArrayID
	}
	index := -1
	if c.Index != nil {
		index = *c.Index
	} else if c.Kind == api.AfterCorr {
		index = j.ArrayIndex
	}
	if index < 0 {
		return c.Job, array
	}
	if e := ds.jobs.element(c.Job, index); e != nil {
		return e.job.ID, array
	}
	return c.Job, array
}

// tell judges anew those who wait for the job, for its array, or for its name.
// A whole array changes what they see only at a few points, not with each of its elements.
func (ds *dependencies) tell(j *Job) {
	who := slices.Collect(maps.Keys(ds.on[j.ID]))
	if a := ds.queue.arrays[j.ArrayID]; a != nil && j.ArrayID != j.ID && turning(a, j) {
		who = slices.AppendSeq(who, maps.Keys(ds.on[j.ArrayID]))
	}
	if n := ds.named[keyOf(j)]; n != nil && !admitted(j) {
		who = append(who, n.live...)
	}
	for _, id := range unique(who) {
		if e := ds.jobs.byID[id]; e != nil && e.waiting {
			ds.judge(e)
		}
	}
}

// turning: what just happened to an element can change how the array as a whole stands.
func turning(a *array, j *Job) bool {
	n := arrayCount(j)
	return a.begun == n || a.over == n || j.Verdict != nil && j.Verdict.State != api.JobCompleted && a.bad == 1
}

// judge weighs the dependency of a waiting job: it goes on waiting, may be admitted, or
// can never be.
func (ds *dependencies) judge(e *entry) {
	if e == nil || !e.waiting {
		return
	}
	d := e.job.Dependency
	var open, failed []string
	fulfilled := 0
	for i := range d.On {
		c := &d.On[i]
		switch ds.stand(e.job, c) {
		case met:
			fulfilled++
		case unmet:
			open = append(open, c.String()+Unfulfilled)
		case never:
			failed = append(failed, c.String()+failedMark)
		}
	}
	switch {
	case fulfilled == len(d.On) || d.Any && fulfilled > 0:
		ds.fulfil(e)
	case d.Any && len(open) == 0 || !d.Any && len(failed) > 0:
		ds.hopeless(e, d, failed, append(failed, open...))
	default:
		ds.waitFor(e, d.Join(append(failed, open...)), false)
	}
}

func (ds *dependencies) waitFor(e *entry, what string, hopeless bool) {
	if e.job.Waits != what || e.job.Hopeless != hopeless {
		j := ds.jobs.edit(e)
		j.Waits, j.Hopeless = what, hopeless
		ds.queue.touch(e)
	}
}

// fulfil lets the job be admitted. What it waited for does not count a second time: a
// requeued job does not wait again.
func (ds *dependencies) fulfil(e *entry) {
	ds.unwatch(e)
	j := ds.jobs.edit(e)
	j.Waits, j.Hopeless = "", false
	ds.queue.eligibleNow(e)
	ds.queue.touch(e)
}

// hopeless: the dependency can't be met any more. The job ends, unless the site or its
// owner wants it kept.
func (ds *dependencies) hopeless(e *entry, d *api.Dependency, failed, all []string) {
	choice := e.job.Spec.InvalidDependency
	if choice == "" {
		choice = ds.set.InvalidDependency
	}
	if choice == api.InvalidWait {
		waits := d.Join(all)
		if e.job.Waits != waits {
			ds.record.emitJob(e.job, api.Event{Type: api.EventDependencyFailed, Text: waits})
		}
		ds.waitFor(e, waits, true)
		return
	}
	ds.jobs.edit(e).Waits = d.Join(all)
	e.job.Cancelled = true
	why := strings.ReplaceAll(strings.Join(failed, ", "), failedMark, "")
	ds.stops.end(e, verdictOf(e.job, api.CauseCancelled, -1, fmt.Sprintf("dependency can never be met: %s%s", why, ds.outcomes(d))))
}

// outcomes says how the jobs of a dependency ended, those few that a person wants to see.
func (ds *dependencies) outcomes(d *api.Dependency) string {
	var parts []string
	for i := range d.On {
		if e := ds.jobs.byID[d.On[i].Job]; e != nil && e.job.Verdict != nil && e.job.Array == nil {
			parts = append(parts, fmt.Sprintf("job %d ended %s", e.job.ID, e.job.Verdict.State))
		}
	}
	if len(parts) == 0 || len(parts) > 4 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// stand weighs one condition. What is not in memory decides nothing: after a restart the
// jobs of a dependency are recalled before anything is judged by them.
func (ds *dependencies) stand(j *Job, c *api.Condition) status {
	if c.Kind == api.AfterSingle {
		return ds.alone(j)
	}
	e := ds.jobs.byID[c.Job]
	if e == nil {
		return unmet
	}
	switch index := elementOf(j, c); {
	case e.job.Array == nil || e.job.ID != e.job.ArrayID:
		if c.Index != nil {
			return never // there are no elements
		}
		return ds.standJob(j, c, e.job)
	case index >= 0:
		el := ds.jobs.element(c.Job, index)
		if el == nil {
			return never
		}
		return ds.standJob(j, c, el.job)
	}
	return ds.standArray(j, c, e.job)
}

// elementOf is the element that a condition of j is about, -1: none in particular.
func elementOf(j *Job, c *api.Condition) int {
	switch {
	case c.Index != nil:
		return *c.Index
	case c.Kind == api.AfterCorr:
		return j.ArrayIndex
	}
	return -1
}

func (ds *dependencies) standJob(j *Job, c *api.Condition, on *Job) status {
	over := on.Verdict != nil
	good := over && on.Verdict.State == api.JobCompleted
	switch c.Kind {
	case api.After:
		if !everStarted(on) || c.Delay == 0 {
			return either(over || everStarted(on), met, unmet)
		}
		return ds.delayed(j, on.Start.Add(c.Delay).Sub(ds.clock.now.Wall))
	case api.AfterAny:
		return either(over, met, unmet)
	case api.AfterNotOK:
		return either(!over, unmet, either(good, never, met))
	}
	return either(!over, unmet, either(good, met, never))
}

func (ds *dependencies) standArray(j *Job, c *api.Condition, first *Job) status {
	a := ds.queue.arrays[first.ArrayID]
	n := arrayCount(first)
	switch c.Kind {
	case api.After:
		if a.begun < n || c.Delay == 0 {
			return either(a.begun < n, unmet, met)
		}
		return ds.delayed(j, a.start.Add(c.Delay).Sub(ds.clock.now.Wall))
	case api.AfterAny:
		return either(a.over == n, met, unmet)
	case api.AfterNotOK:
		return either(a.over < n, unmet, either(a.bad > 0, met, never))
	}
	return either(a.bad > 0, never, either(a.over == n, met, unmet))
}

func either(is bool, a, b status) status {
	if is {
		return a
	}
	return b
}

// delayed judges the job again when the first of its delays passes.
func (ds *dependencies) delayed(j *Job, left time.Duration) status {
	if left <= 0 {
		return met
	}
	k := timer{kind: timerDepend, job: j.ID}
	if at, armed := ds.clock.timers.due[k]; !armed || ds.clock.now.Mono+left < at {
		ds.clock.in(left, k)
	}
	return unmet
}

// alone: no earlier job of the name is left, and none runs. The elements of an array are one job of it.
func (ds *dependencies) alone(j *Job) status {
	for _, id := range ds.named[keyOf(j)].live {
		e := ds.jobs.byID[id]
		if ours := id == j.ID || j.ArrayID != 0 && e.job.ArrayID == j.ArrayID; !ours && (id < j.ID || admitted(e.job)) {
			return unmet
		}
	}
	return met
}
