package engine

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
)

// view is what readers see: the newest committed state. The jobs and nodes in it are
// immutable values, so a reader holds the lock only while it collects pointers.
type view struct {
	mu       sync.RWMutex
	jobs     []shown // by id; read it by from: purged ones are still in it until they are half of all
	known    int     // those of jobs that have one
	nodes    map[string]*gang.Node
	names    []string // of nodes, ascending
	desired  map[string][]api.Assignment
	cleaning map[int64][]string // nodes on which the site's epilog runs after a job, ascending
	// prepared is how many ranks are, of jobs that are being started.
	prepared map[int64]int
	// reservations by name; the values are immutable.
	reservations map[string]*api.Reservation
	// crontabs of users, by name; immutable too.
	crontabs map[string]*api.Crontab

	plan    sched.Plan              // the last one, for its reasons
	ended   map[int64]chan struct{} // closed at the end of a job that somebody waits for
	lineage uint64
	proof   string // of lineage
	nextID  int64  // the smallest id that no job has had
	hold    string // why the controller neither starts nor stops anything; empty: it does
}

// shown is a job by its number.
type shown struct {
	id    int64
	job   *gang.Job       // nil: it is not committed yet, or was purged
	class *order.JobClass // with which others it is planned; nil: it does not wait
}

func (v *view) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(v.jobs, id, func(s shown, id int64) int { return cmp.Compare(s.id, id) })
}

// get is what there is of a job.
func (v *view) get(id int64) (s shown) {
	if i, there := v.find(id); there {
		s = v.jobs[i]
	}
	return s
}

// put is where a job stands or is to stand.
func (v *view) put(id int64) *shown {
	// Ids grow, so this is an append in all but a replayed order.
	i, there := v.find(id)
	if !there {
		v.jobs = slices.Insert(v.jobs, i, shown{id: id})
	}
	return &v.jobs[i]
}

func (v *view) init(w *gang.World) {
	v.nodes = map[string]*gang.Node{}
	v.desired = map[string][]api.Assignment{}
	v.prepared, v.cleaning = map[int64]int{}, map[int64][]string{}
	v.ended = map[int64]chan struct{}{}
	v.nextID = w.NextID()
	v.reservations = map[string]*api.Reservation{}
	v.crontabs = w.Crontabs()
	for _, r := range w.Reservations() {
		v.reservations[r.Name] = r
	}
	for j := range w.Jobs() {
		v.putJob(j)
	}
	for _, n := range w.Nodes() {
		v.putNode(n)
		v.desired[n.Name] = w.Desired(n.Name)
	}
}

func (v *view) putNode(n *gang.Node) {
	if _, known := v.nodes[n.Name]; !known {
		i, _ := slices.BinarySearch(v.names, n.Name)
		v.names = slices.Insert(v.names, i, n.Name)
	}
	v.cleans(v.nodes[n.Name], n)
	v.nodes[n.Name] = n
}

// cleans takes in where epilogs run: was is how the node was, and n how it is; nil: it is not there. What was handed out
// is not written to.
func (v *view) cleans(was, n *gang.Node) {
	if was != nil {
		for i := range was.Left {
			if l := &was.Left[i]; l.Epilog {
				left := slices.DeleteFunc(slices.Clone(v.cleaning[l.Job]), func(name string) bool { return name == was.Name })
				if v.cleaning[l.Job] = left; len(left) == 0 {
					delete(v.cleaning, l.Job)
				}
			}
		}
	}
	if n == nil {
		return
	}
	for i := range n.Left {
		if l := &n.Left[i]; l.Epilog && !slices.Contains(v.cleaning[l.Job], n.Name) {
			now := append(slices.Clone(v.cleaning[l.Job]), n.Name)
			slices.Sort(now)
			v.cleaning[l.Job] = now
		}
	}
}

// epilogs are the nodes on which the site's epilog runs after a job.
func (v *view) epilogs(job int64) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.cleaning[job]
}

func (v *view) dropNode(name string) {
	if i, known := slices.BinarySearch(v.names, name); known {
		v.names = slices.Delete(v.names, i, i+1)
	}
	v.cleans(v.nodes[name], nil)
	delete(v.nodes, name)
	delete(v.desired, name)
}

func (v *view) putJob(j *gang.Job) {
	s := v.put(j.ID)
	if s.job == nil {
		v.known++
	}
	s.job = j
	if gang.JobState(j) != api.JobReserved {
		delete(v.prepared, j.ID)
	}
	if j.Verdict != nil {
		if ch := v.ended[j.ID]; ch != nil {
			close(ch)
			delete(v.ended, j.ID)
		}
	}
}

// setLineage makes the newest commit known, with the proof of it: nodes are told both in each beat.
func (e *Engine) setLineage(l uint64) {
	proof := e.prove(e.run(), l)
	e.view.mu.Lock()
	e.view.lineage, e.view.proof = l, proof
	e.view.mu.Unlock()
}

// next is the smallest id that no job has had.
func (v *view) next() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.nextID
}

// publish makes a committed batch visible: state first, then events, so that whoever is
// woken by an event finds its state.
func (e *Engine) publish(ch *gang.Changes) {
	v := &e.view
	v.mu.Lock()
	for _, j := range ch.Jobs {
		v.putJob(j)
	}
	maps.Copy(v.prepared, ch.Prepared)
	for _, name := range ch.Forgot {
		v.dropNode(name)
	}
	for _, n := range ch.Nodes {
		v.putNode(n)
	}
	for _, n := range ch.Seen {
		v.putNode(n)
	}
	for _, r := range ch.Reservations {
		if r.R == nil {
			delete(v.reservations, r.Name)
		} else {
			v.reservations[r.Name] = r.R
		}
	}
	for _, r := range ch.Crontabs {
		if r.T == nil {
			delete(v.crontabs, r.User)
		} else {
			v.crontabs[r.User] = r.T
		}
	}
	if len(ch.Partitions) > 0 || ch.Groups || e.took != nil {
		e.publishConf()
		e.groups.partitionsMoved()
	}
	for _, name := range ch.Dirty {
		v.desired[name] = e.world.Desired(name)
	}
	v.drop(ch.Purged)
	v.nextID = max(v.nextID, ch.NextID)
	v.plan = e.plan.last
	v.mu.Unlock()
	e.settle(ch)
	if len(ch.Events) > 0 {
		e.bus.publish(ch.Events)
		e.opt.Record.Events(ch.Events)
	}
}

// drop forgets purged jobs. Their places are taken out when they are half of all: a pass over a million
// for each commit that purges some would cost as much as all else of it.
func (v *view) drop(ids []int64) {
	for _, id := range ids {
		if i, there := v.find(id); there && v.jobs[i].job != nil {
			v.jobs[i].job = nil
			v.known--
		}
	}
	if len(v.jobs) > 2*v.known {
		v.jobs = slices.DeleteFunc(v.jobs, func(s shown) bool { return s.job == nil && s.class == nil })
	}
}

// from walks the jobs with that id and larger ones, by id.
func (v *view) from(id int64) iter.Seq[*gang.Job] {
	return func(yield func(*gang.Job) bool) {
		i, _ := v.find(id)
		for ; i < len(v.jobs); i++ {
			if j := v.jobs[i].job; j != nil && !yield(j) {
				return
			}
		}
	}
}

// setClasses notes with which others each job is planned, as far as it waits.
func (v *view) setClasses(ids []int64, q *order.Queue) {
	v.mu.Lock()
	defer v.mu.Unlock()
	q.JobClasses(ids, func(id int64, c *order.JobClass) {
		if c != nil {
			v.put(id).class = c
		} else if i, there := v.find(id); there {
			v.jobs[i].class = nil
		}
	})
}

// reason is why a job waits, from the last plan that looked at it. Its text names other jobs, which
// are looked up here: a second lock of a reader waits for a writer who waits for the first.
func (v *view) reason(id int64) (why.Reason, bool) {
	v.mu.RLock()
	plan, class := v.plan, v.get(id).class
	v.mu.RUnlock()
	return plan.Reason(id, class)
}

// brief is the text of reason for a line of a table; empty: there is none.
func (v *view) brief(id int64) string {
	v.mu.RLock()
	plan, class := v.plan, v.get(id).class
	v.mu.RUnlock()
	return plan.Brief(id, class)
}

// word is that of reason alone.
func (v *view) word(id int64) (string, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.plan.Word(id, v.get(id).class)
}

// some are the first few jobs for which keep is true, by id.
func (v *view) some(most int, keep func(*gang.Job) bool) (out []*gang.Job) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for j := range v.from(0) {
		if len(out) == most {
			break
		}
		if keep(j) {
			out = append(out, j)
		}
	}
	return out
}

// snapshot collects the jobs for which keep is true, by id.
func (v *view) snapshot(keep func(*gang.Job) bool) []*gang.Job {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []*gang.Job
	for j := range v.from(0) {
		if keep(j) {
			out = append(out, j)
		}
	}
	return out
}

// choose is snapshot for what may take long over each job, or has a caller who may go away: the lock is held
// only while pointers are copied.
func (v *view) choose(ctx context.Context, keep func(*gang.Job) bool) ([]*gang.Job, error) {
	all := v.snapshot(func(*gang.Job) bool { return true })
	out := all[:0]
	for i, j := range all {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if keep(j) {
			out = append(out, j)
		}
	}
	clear(all[len(out):])
	return out, nil
}

func (v *view) job(id int64) *gang.Job {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.get(id).job
}

func (v *view) preparedRanks(id int64) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.prepared[id]
}

func (v *view) node(name string) *gang.Node {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.nodes[name]
}

func (v *view) allNodes() []*gang.Node {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]*gang.Node, len(v.names))
	for i, name := range v.names {
		out[i] = v.nodes[name]
	}
	return out
}

// poolsUsed is what the jobs that have nodes hold of what the site has altogether.
func (v *view) poolsUsed() map[api.PoolKey]int {
	holders := map[int64]bool{}
	for _, n := range v.allNodes() {
		for i := range n.Res.Grants {
			holders[n.Res.Grants[i].Job] = true
		}
	}
	used := map[api.PoolKey]int{}
	for id := range holders {
		if j := v.job(id); j != nil {
			for i := range j.Spec.Pools {
				used[j.Spec.Pools[i].Key()] += j.Spec.Pools[i].Count
			}
		}
	}
	return used
}

// whenEnded is closed when the job has ended; nil when it has already, or is not here. All
// who wait for a job share one channel: those who gave up leave nothing behind.
func (v *view) whenEnded(id int64) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	j := v.get(id).job
	if j == nil || j.Verdict != nil {
		return nil
	}
	ch := v.ended[id]
	if ch == nil {
		ch = make(chan struct{})
		v.ended[id] = ch
	}
	return ch
}
