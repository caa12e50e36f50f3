package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/measure"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// Find gives the jobs that a query selects, by id, and one error for each of its references that names none of them: those in
// memory, and of what it names by reference those of the history too where it asks for them. It costs what the jobs and
// the query come to, one beside the other, and ends when ctx does.
func (e *Engine) Find(ctx context.Context, q *api.JobQuery, who Caller) ([]*gang.Job, []refError, error) {
	return e.findJobs(ctx, q, who, false)
}

// findJobs is Find; whole refuses references that name a component of a job, to which nothing can be done by itself.
func (e *Engine) findJobs(ctx context.Context, q *api.JobQuery, who Caller, whole bool) ([]*gang.Job, []refError, error) {
	s := selectionOf(q)
	if q.Cleaning {
		e.view.mu.RLock()
		s.cleaning = maps.Clone(e.view.cleaning)
		e.view.mu.RUnlock()
	}
	if len(q.Refs) == 0 {
		out, err := e.view.choose(ctx, s.matches)
		return out, nil, err
	}
	found, err := e.lookUp(ctx, q.Refs, who, q.Past)
	if err != nil {
		return nil, nil, err
	}
	var out []*gang.Job
	var missing []refError
	seen := map[int64]bool{}
	for i := range found {
		n := &found[i]
		if len(n.jobs) == 0 {
			missing = append(missing, refError{n.ref, e.noJob(n, q.Past)})
		}
		if whole && n.component > 0 {
			missing = append(missing, refError{n.ref, notByItself(n)})
			continue
		}
		for _, j := range n.jobs {
			// A job asked for by id is shown whatever its state, as squeue does within
			// MinJobAge; the other filters still narrow.
			if !seen[j.ID] && (s.matches(j) || len(q.States) == 0 && s.narrows(j)) {
				seen[j.ID] = true
				out = append(out, j)
			}
		}
	}
	slices.SortFunc(out, func(a, b *gang.Job) int { return cmp.Compare(a.ID, b.ID) })
	return out, missing, nil
}

// notByItself refuses to do something to one component of a job.
func notByItself(n *named) *api.Error {
	job := n.jobs[0].Ref().String()
	return &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("%s is component %d of job %s: the components of a heterogeneous job are "+
		"one gang", n.ref, n.component, job), Hint: "give the id of all of it: " + job, Reason: api.ReasonComponent, Subject: job}
}

// lookEvery is after how many jobs a long loop looks whether its caller is still there.
const lookEvery = 1024

// known refuses a partition or node that does not exist: an empty answer to a mistyped name
// looks like an empty queue.
func (e *Engine) known(q *api.JobQuery) error {
	if len(q.Partitions) > 0 {
		var parts []string
		for _, p := range e.policy().Partitions {
			parts = append(parts, p.Name)
		}
		there := setOf(parts)
		for _, p := range q.Partitions {
			if !there[p] {
				return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no partition %q", p), Hint: "partitions here: " +
					strings.Join(parts, ", "), Reason: api.ReasonPartition, Subject: p}
			}
		}
	}
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	for _, n := range q.Nodes {
		if e.view.nodes[n] == nil {
			return gang.NoNode(n, e.view.names)
		}
	}
	return nil
}

type refError struct {
	ref api.JobRef
	err *api.Error
}

// selection is a query made ready to be held against many jobs: its lists are sets, where nil
// stands for any.
type selection struct {
	users, names, accounts, partitions, nodes map[string]bool
	uids                                      map[uint32]bool // of those of users that are numbers
	states                                    map[api.JobState]bool
	all                                       bool
	cleaning                                  map[int64][]string // that are COMPLETING though they have ended
}

func selectionOf(q *api.JobQuery) *selection {
	s := &selection{users: setOf(q.Users), names: setOf(q.Names), accounts: setOf(q.Accounts), partitions: setOf(q.Partitions),
		nodes: setOf(q.Nodes), states: setOf(q.States), all: q.All}
	for _, name := range q.Users {
		if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
			if s.uids == nil {
				s.uids = map[uint32]bool{}
			}
			s.uids[uint32(uid)] = true
		}
	}
	return s
}

// user: the job is of one of those that are asked for, by name or number.
func (s *selection) user(j *gang.Job) bool { return s.users == nil || s.users[j.User] || s.uids[j.UID] }

// unique is a list without what is in it twice, in its order.
func unique[S comparable](list []S) []S {
	if len(list) < 2 {
		return list
	}
	seen := make(map[S]bool, len(list))
	return slices.DeleteFunc(slices.Clone(list), func(s S) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// setOf is a list to be looked up in, nil of an empty one.
func setOf[S comparable](list []S) map[S]bool {
	if len(list) == 0 {
		return nil
	}
	out := make(map[S]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}

// matches is the query without its references; jobs that have ended match only when asked
// for by All or States.
func (s *selection) matches(j *gang.Job) bool {
	state := gang.JobState(j)
	if state.Ended() && s.cleaning[j.ID] != nil {
		state = api.JobCompleting
	}
	if s.states != nil {
		if !s.states[state] {
			return false
		}
	} else if !s.all && state.Ended() {
		return false
	}
	return s.narrows(j)
}

// narrows is the query without references and states.
func (s *selection) narrows(j *gang.Job) bool {
	return s.user(j) && (s.names == nil || s.names[j.Name] || s.component(j)) &&
		(s.accounts == nil || s.accounts[j.Spec.Account]) && (s.partitions == nil || s.partition(j)) && (s.nodes == nil || s.node(j))
}

// component: one of the job's has a name that is asked for.
func (s *selection) component(j *gang.Job) bool {
	return slices.ContainsFunc(j.Spec.Roles[:j.Spec.Components()], func(r api.Role) bool { return s.names[r.Component.JobName] })
}

// partition: one of several, of which any would do for the job, is asked for.
func (s *selection) partition(j *gang.Job) bool {
	for name := range strings.SplitSeq(j.Partition, ",") {
		if s.partitions[name] {
			return true
		}
	}
	return false
}

func (s *selection) node(j *gang.Job) bool {
	return slices.ContainsFunc(j.Members, func(m gang.Member) bool { return s.nodes[m.Node] })
}

// Lines answers a query in the form of [api.LinesType].
func (e *Engine) Lines(ctx context.Context, q *api.JobQuery, who Caller) ([]byte, error) {
	jobs, err := e.selected(ctx, q, who)
	if err != nil {
		return nil, err
	}
	return e.lines(jobs, q.Cleaning), nil
}

// LinesOf gives those of the jobs with these numbers that are in memory.
func (e *Engine) LinesOf(ids []int64) []byte {
	jobs := make([]*gang.Job, 0, len(ids))
	for _, id := range ids {
		if j := e.view.job(id); j != nil {
			jobs = append(jobs, j)
		}
	}
	return e.lines(jobs, false)
}

func (e *Engine) lines(jobs []*gang.Job, cleaning bool) []byte {
	b := api.AppendLineHeader(make([]byte, 0, 256+96*len(jobs)))
	now := e.opt.Clock.Now().Wall
	var line api.Job
	for _, j := range jobs {
		e.line(&line, j, now)
		if cleaning {
			stillCompleting(&line)
		}
		b = api.AppendLine(b, &line)
	}
	return b
}

// selected is who a query is about, an error when it names only what is not there.
func (e *Engine) selected(ctx context.Context, q *api.JobQuery, who Caller) ([]*gang.Job, error) {
	if err := e.known(q); err != nil {
		return nil, err
	}
	jobs, missing, err := e.Find(ctx, q, who)
	if err == nil && len(jobs) == 0 && len(missing) > 0 {
		return nil, missing[0].err
	}
	return jobs, err
}

// List answers a query of the controller's own with what people see.
func (e *Engine) List(ctx context.Context, q *api.JobQuery) ([]api.Job, error) {
	var out []api.Job
	err := e.EachListed(ctx, q, Caller{}, func(j *api.Job) error {
		out = append(out, *j)
		return nil
	})
	return out, err
}

// EachListed calls fn with each job of such an answer: 100,000 of them at a time are more than
// one caller should have in memory.
func (e *Engine) EachListed(ctx context.Context, q *api.JobQuery, who Caller, fn func(*api.Job) error) error {
	jobs, err := e.selected(ctx, q, who)
	if err != nil {
		return err
	}
	for i, j := range jobs {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		shown := e.show(j, !q.NoRanks)
		if q.Cleaning {
			stillCompleting(&shown)
		}
		if err := fn(&shown); err != nil {
			return err
		}
	}
	return nil
}

// stillCompleting shows a job as not over whose nodes are being cleaned up after it.
func stillCompleting(j *api.Job) {
	if j.State.Ended() && len(j.Epilog) > 0 {
		j.State = api.JobCompleting
		j.StateCode = j.State.Code()
	}
}

// Expect looks ahead, and gives what fills in a waiting job's place in the queue, and when it is expected to start.
func (e *Engine) Expect(ctx context.Context) (fill func(*api.Job), err error) {
	var v *given.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return nil, err
	}
	now := e.opt.Clock.Now().Wall
	expected := sched.Forecast(now, v, e.policy())
	return func(j *api.Job) {
		if j.State != api.JobPending {
			return
		}
		if at := v.Queue.Position(j.JobID); at >= 0 {
			j.QueuePlace, j.QueueLength = at+1, v.Queue.Len()
		}
		x := expected[j.JobID]
		j.ExpectedStart, j.ExpectedSure = x.At, x.Sure
		// Nothing but its reservation keeps it: then it starts when that does.
		if r := j.Reservation; x.At.IsZero() && r != "" && j.Reason == "Reservation" {
			if b, err := e.view.reservation(r); err == nil && b.Start.After(now) {
				j.ExpectedStart = b.Start
			}
		}
	}, nil
}

// Detail shows a job with its attempts.
func (e *Engine) Detail(ctx context.Context, j *gang.Job) (*api.JobDetail, error) {
	var rows []gang.EpochRow
	var err error
	if j.Epoch > 0 || j.Verdict != nil { // else it had no nodes yet, and the store has nothing of it but its row
		rows, j, err = e.epochsOf(ctx, j)
	}
	if err != nil {
		return nil, err
	}
	d := &api.JobDetail{SchemaVersion: api.SchemaVersion, Job: e.show(j, true), Attempts: []api.Attempt{}}
	if len(rows) == 0 {
		return d, nil
	}
	steps, err := e.store.Steps(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	used, err := e.store.Measures(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	used = append(used, e.notes.measured(j)...) // behind those of members that have ended: they were the last
	for i := range rows {
		if !rows[i].Started.IsZero() {
			a := attempt(j.Spec, &rows[i], len(d.Attempts)+1)
			a.Measures = measuresOf(used, rows[i].Epoch)
			a.Steps = e.attemptSteps(j, &rows[i], &a, steps)
			a.Efficiency = measure.Of(&d.Job, &a)
			d.Attempts = append(d.Attempts, a)
		}
	}
	return d, nil
}

// shownLater is how often it is looked whether what is stored is shown as well: that comes right behind the commit.
const shownLater = 10

// epochsOf are the rows of a job's epochs, and the job as of then: the end of an epoch is stored a moment before it is shown.
func (e *Engine) epochsOf(ctx context.Context, j *gang.Job) (rows []gang.EpochRow, as *gang.Job, err error) {
	for n := 0; ; n++ {
		if rows, err = e.store.Epochs(ctx, j.ID); err != nil || len(rows) == 0 {
			return rows, j, err
		}
		last := &rows[len(rows)-1]
		if !runs(j, last.Epoch) || last.Ended.IsZero() || n == shownLater {
			return rows, j, nil
		}
		if now := e.view.job(j.ID); now != nil && now != j {
			j = now
		} else if err := e.pause(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// measuresOf are those of an epoch, one a member.
func measuresOf(used []gang.MeasureRow, epoch int) (out []api.Measure) {
	seen := map[int]*api.Measure{}
	for i := range used {
		if u := &used[i]; u.Epoch == epoch && seen[u.Member] == nil {
			seen[u.Member] = u.Measure
		}
	}
	for _, member := range slices.Sorted(maps.Keys(seen)) {
		out = append(out, *seen[member])
	}
	return out
}

// Ledger sums up what was used.
func (e *Engine) Ledger(ctx context.Context, q *api.LedgerQuery) (*api.LedgerReply, error) {
	for _, w := range q.By {
		if !slices.Contains(api.LedgerBy, w) {
			return nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("the ledger is not kept by %q", w), Hint: "by " +
				strings.Join(api.LedgerBy, ", ")}
		}
	}
	for _, day := range []string{q.From, q.To} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return nil, api.Errorf(api.CodeInvalid, "%q is no day: want 2026-11-23", day)
		}
	}
	rows, err := e.store.Ledger(ctx, q)
	if err != nil {
		return nil, err
	}
	return &api.LedgerReply{SchemaVersion: api.SchemaVersion, From: q.From, To: q.To, By: q.By, Rows: rows}, nil
}

// Wait returns a job once it has ended.
func (e *Engine) Wait(ctx context.Context, j *gang.Job) (*gang.Job, error) {
	if ended := e.view.whenEnded(j.ID); ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-e.done:
			return nil, errStopped
		}
	}
	if now := e.view.job(j.ID); now != nil {
		return now, nil
	}
	return e.store.Job(ctx, j.ID)
}

// preempts is who may be preempted, written out.
func (e *Engine) preempts() string { return string(cmp.Or(e.policy().Preempt, order.PreemptOff)) }

func (e *Engine) site() *api.Site {
	set := &e.conf().Settings
	return &api.Site{Preempt: e.preempts(), PreemptMinRun: set.PreemptMinRun, Grace: set.Grace, DrainSlack: set.DrainSlack,
		NodeTimeout: set.NodeTimeout, StartTimeout: set.StartTimeout, KeepEnded: set.KeepEnded, InvalidDependency: set.InvalidDependency,
		SlurmVersion: set.SlurmVersion, Pools: set.Pools(), Operator: e.conf().Operator, MaxJobs: set.MaxJobs}
}

// Ping says how the controller is; the caller adds who it is.
func (e *Engine) Ping() *api.PingReply {
	figures := e.figures.so()
	p := &api.PingReply{SchemaVersion: api.SchemaVersion, Hold: e.view.onHold(), Site: e.site(), Figures: &figures}
	for _, n := range e.view.allNodes() {
		p.Nodes++
		if n.State == api.NodeUp {
			p.NodesUp++
		}
	}
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	p.Lineage, p.NextJobID = e.view.lineage, e.view.nextID
	return p
}

// Vouches says whether a node may speak for a user of its own: where a gang of that user
// has a member, the node could act as the user anyway.
func (e *Engine) Vouches(node string, uid uint32) bool {
	jobs := e.view.snapshot(func(j *gang.Job) bool {
		return j.UID == uid && j.Verdict == nil && slices.ContainsFunc(j.Members, func(m gang.Member) bool { return m.Node == node })
	})
	return len(jobs) > 0
}

// NodeNames are the nodes that the controller knows.
func (e *Engine) NodeNames() (out []string) {
	for _, n := range e.view.allNodes() {
		out = append(out, n.Name)
	}
	return out
}
