package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// Signaller delivers one-shot signals to a member; the session hub is one.
type Signaller interface {
	Signal(ctx context.Context, node string, o api.SignalOrder) (processes int, err error)
}

// Allowed says whether the caller may act on a job of owner.
type Allowed func(owner uint32) bool

// Cancel ends each job that the request selects; [Engine.Signal] is its sibling for
// --signal. A job of somebody else answers as one that is not there.
func (e *Engine) Cancel(ctx context.Context, r *api.CancelRequest, who Caller, may Allowed) (*api.CancelReply, error) {
	return e.each(ctx, "cancel", &r.JobQuery, who, may, 0, func(_ context.Context, j *gang.Job, hand handFunc) waitFunc {
		wait := hand(gang.Cancel{Job: j.ID, By: who.User, Now: r.Now, Asker: who.Asker})
		return func() api.CancelResult {
			_, err := wait()
			return api.CancelResult{Stop: e.stopping(j.ID), Error: asError(err)}
		}
	})
}

// stopping is how a job is being brought to its end, nil where it is not, or has nothing that runs.
func (e *Engine) stopping(id int64) *api.Stopping {
	j := e.view.job(id)
	if j == nil || j.Drain == nil || j.Drain.Cause == api.CauseCompleted || j.Verdict != nil {
		return nil
	}
	out := &api.Stopping{Signal: cmp.Or(j.Spec.StopSignal, "TERM"), Notice: j.Drain.Lead > 0,
		EndsBy: j.Drain.Started.Add(j.Drain.Spent + j.Drain.Lead + max(cmp.Or(j.Spec.Grace, e.conf().Settings.Grace), j.Spec.GraceMax))}
	if out.Notice && j.Spec.Notice != nil {
		out.Signal = j.Spec.Notice.Signal
	}
	return out
}

// asAdmin: the hold is one that only admins may release.
func asAdmin(as string, who Caller, owner uint32) bool {
	return who.Admin && as != api.HoldUser && (as == api.HoldAdmin || who.UID != owner)
}

// Act does hold, release, requeue or requeue-hold to each job that a query selects.
func (e *Engine) Act(ctx context.Context, action string, r *api.ActionRequest, who Caller, may Allowed) (*api.CancelReply, error) {
	return e.each(ctx, action, &r.JobQuery, who, may, 0, func(ctx context.Context, j *gang.Job, hand handFunc) waitFunc {
		var ev gang.Event
		admin := asAdmin(r.As, who, j.UID)
		if r.Ended && j.Verdict != nil && j.Epoch == 0 {
			if _, err := e.whole(ctx, j); err != nil { // one that was recalled for another's dependency may have none any more
				return answered(err)
			}
		}
		switch action {
		case "hold":
			ev = gang.Hold{Job: j.ID, Admin: admin, Lower: who.Admin && r.As == api.HoldUser}
		case "release":
			ev = gang.Release{Job: j.ID, Admin: who.Admin}
		case "requeue":
			ev = gang.Requeue{Job: j.ID, By: who.User, Now: r.Now, Ended: r.Ended, Asker: who.Asker}
		case "requeue-hold":
			hold := gang.HeldUser
			switch {
			case r.As == api.HoldSpecial:
				hold = gang.HeldSpecial
			case admin:
				hold = gang.HeldAdmin
			}
			ev = gang.Requeue{Job: j.ID, By: who.User, Now: r.Now, Hold: hold, Ended: r.Ended, Asker: who.Asker}
		}
		wait := hand(ev)
		return func() api.CancelResult {
			out, err := wait()
			return api.CancelResult{Idle: out.Ignored, Error: asError(err)}
		}
	})
}

// Signal delivers a signal to the processes of running jobs and changes no state.
func (e *Engine) Signal(ctx context.Context, r *api.CancelRequest, who Caller, may Allowed, s Signaller) (*api.CancelReply, error) {
	if err := firstError([]error{knownSignal("signal", r.Signal), knownScope("scope", r.Scope)}); err != nil {
		return nil, err
	}
	scope := cmp.Or(r.Scope, api.ScopeRanks)
	some := len(r.Ranks) > 0 || r.Role != ""
	if some && scope != api.ScopeRanks {
		return nil, api.Errorf(api.CodeInvalid, "scope: %q is of a whole job: ranks and roles are signalled with %q", scope, api.ScopeRanks)
	}
	return e.each(ctx, "signal", &r.JobQuery, who, may, 0, func(ctx context.Context, j *gang.Job, _ handFunc) waitFunc {
		if gang.JobState(j) != api.JobRunning {
			return answered(api.Errorf(api.CodeConflict, "job %s is %s: only a running job can be signalled", j.Ref(), gang.JobState(j)))
		}
		o := api.SignalOrder{MemberKey: api.MemberKey{Job: j.ID, Epoch: j.Epoch}, Signal: r.Signal, Scope: scope}
		if some {
			var err *api.Error
			if o.Named, err = namedRanks(j, r); err != nil {
				return answered(err)
			}
			o.Scope = api.ScopeNamed
		}
		return func() api.CancelResult { return e.signalMembers(ctx, j, o, s) }
	})
}

// namedRanks are the ranks of a job that a signal is for.
func namedRanks(j *gang.Job, r *api.CancelRequest) (named []int, err *api.Error) {
	if j.Spec.Launch == api.LaunchBatch {
		return nil, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("job %s has a batch script, and no ranks of its own", j.Ref()),
			Hint: fmt.Sprintf("name a step of it: %s.0", j.Ref())}
	}
	named = slices.Clone(r.Ranks)
	if r.Role != "" {
		first, count, ok := j.Spec.RoleRanks(r.Role)
		if !ok {
			return nil, api.Errorf(api.CodeNotFound, "job %s has no role %q", j.Ref(), r.Role)
		}
		for i := range count {
			named = append(named, first+i)
		}
	}
	for _, rank := range named {
		if rank < 0 || rank >= len(j.Ranks) {
			return nil, api.Errorf(api.CodeInvalid, "job %s has no rank %d: its ranks are 0 to %d", j.Ref(), rank, len(j.Ranks)-1)
		}
	}
	return named, nil
}

// signalMembers reaches all nodes of a gang side by side: a slow node must not delay the
// signal on the others.
func (e *Engine) signalMembers(ctx context.Context, j *gang.Job, o api.SignalOrder, s Signaller) api.CancelResult {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var out api.CancelResult
	for i := range j.Members {
		if o.Scope == api.ScopeNamed && !slices.ContainsFunc(j.Members[i].Ranks, func(rank int) bool { return slices.Contains(o.Named, rank) }) {
			continue
		}
		wg.Go(func() {
			n, err := s.Signal(ctx, j.Members[i].Node, o)
			mu.Lock()
			defer mu.Unlock()
			out.Processes += n
			if err != nil {
				out.Error = asError(err)
			} else if n > 0 {
				out.Nodes++
			}
		})
	}
	wg.Wait()
	return out
}

// waitFunc waits for what has become of a job.
type waitFunc func() api.CancelResult

// handFunc hands in an event, and gives what waits for its outcome.
type handFunc func(ev gang.Event) (wait func() (gang.Outcome, error))

// handOf hands in one event of many: so many of all such calls are waited for at a time.
func (e *Engine) handOf(ctx context.Context) handFunc {
	return func(ev gang.Event) func() (gang.Outcome, error) {
		select {
		case e.many <- struct{}{}:
		case <-ctx.Done():
			return func() (gang.Outcome, error) { return gang.Outcome{}, context.Cause(ctx) }
		}
		wait := e.hand(ctx, ev)
		return func() (gang.Outcome, error) {
			defer func() { <-e.many }()
			return wait()
		}
	}
}

// answered waits for nothing: it is refused.
func answered(err error) waitFunc {
	return func() api.CancelResult { return api.CancelResult{Error: asError(err)} }
}

// maxSaid bounds the text of one of many refusals: a request may quote what it was given, and each of ten thousand jobs
// would answer it again.
const maxSaid = 400

// brief is a refusal among many.
func brief(err *api.Error) *api.Error {
	if err == nil || len(err.Message)+len(err.Hint)+len(err.Subject) <= maxSaid {
		return err
	}
	short := *err
	short.Message, short.Hint, short.Subject = begins(err.Message), begins(err.Hint), begins(err.Subject)
	return &short
}

// begins is a text, or how a long one begins.
func begins(text string) string {
	const most = maxSaid / 2
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// each runs fn, which does what verb says, for every job of a query, at most jobs of them, 0: any number. fn hands in what there is to
// do, for one job after the other, so that a call over many takes one processor and not as many as there are; what it returns
// waits, many at a time so that they share commits.
func (e *Engine) each(ctx context.Context, verb string, q *api.JobQuery, who Caller, may Allowed, most int,
	fn func(context.Context, *gang.Job, handFunc) waitFunc) (*api.CancelReply, error) {
	if len(q.Refs)+len(q.Users)+len(q.Names)+len(q.Accounts)+len(q.Partitions)+len(q.Nodes)+len(q.States) == 0 {
		return nil, api.Errorf(api.CodeInvalid, "no job was named: give ids, or select by name, user, state, partition or node")
	}
	if err := e.known(q); err != nil {
		return nil, err
	}
	jobs, missing, err := e.findJobs(ctx, q, who, true)
	if err != nil {
		return nil, err
	}
	reply := &api.CancelReply{SchemaVersion: api.SchemaVersion, Results: []api.CancelResult{}}
	if err := e.sayEnded(ctx, missing, may); err != nil {
		return nil, err
	}
	for _, m := range missing {
		reply.Results = append(reply.Results, api.CancelResult{Ref: m.ref.String(), Error: m.err})
	}
	named, names := len(q.Refs) > 0, setOf(q.Names)
	if most > 0 && len(jobs) > most {
		return nil, &api.Error{Code: api.CodeInvalid,
			Message: fmt.Sprintf("this would be done to %d jobs: at most %d at a time", len(jobs), most),
			Hint:    "let one small job wait for what these shall wait for, and these for that job"}
	}
	hand := e.handOf(ctx)
	results := make([]*api.CancelResult, len(jobs))
	sem := make(chan struct{}, maxBatch)
	var wg sync.WaitGroup
	for i, j := range jobs {
		if !may(j.UID) {
			if named {
				results[i] = &api.CancelResult{Error: api.Errorf(api.CodePermission, "job %s belongs to %s: only its owner or an admin may %s it",
					j.Ref(), j.User, verb).About(api.ReasonOwner, j.User)}
			}
			continue // a selection by name or state means "of mine"
		}
		if names != nil && !names[j.Name] {
			results[i] = &api.CancelResult{Error: &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("%s is a component of job %s: the "+
				"components of a heterogeneous job are one gang",
				strings.Join(q.Names, ","), j.Ref()), Hint: fmt.Sprintf("to %s all of it give its id: %s", verb, j.Ref())}}
			continue
		}
		if ctx.Err() != nil {
			break // nobody is there to be answered, and what was not begun is not done
		}
		sem <- struct{}{}
		wait := fn(ctx, j, hand)
		wg.Go(func() {
			defer func() { <-sem }()
			r := wait()
			r.Error = brief(r.Error)
			results[i] = &r
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	going, ended := goingArrays(q, jobs, results), slices.ContainsFunc(q.States, api.JobState.Ended)
	for i, r := range results {
		if r != nil {
			if overAlready(r) && (!named && !ended || going[jobs[i].ArrayID]) {
				continue // who chose those of a kind meant the ones that have not ended, and this one has just now
			}
			r.JobID, r.Ref = jobs[i].ID, jobs[i].Ref().String()
			reply.Results = append(reply.Results, *r)
		}
	}
	return reply, nil
}

// goingArrays are the arrays that were named as such and of which some elements have not ended. Those
// that have are no mistake of who named the array.
func goingArrays(q *api.JobQuery, jobs []*gang.Job, results []*api.CancelResult) map[int64]bool {
	going, named := map[int64]bool{}, setOf(q.Refs)
	for i, j := range jobs {
		if j.ArrayID != 0 && results[i] != nil && !overAlready(results[i]) && named[api.JobRef{ID: j.ArrayID, Index: -1}] {
			going[j.ArrayID] = true
		}
	}
	return going
}

func overAlready(r *api.CancelResult) bool {
	return r.Error != nil && r.Error.Code == api.CodeAlreadyEnded
}

// maxPastAsked is for how many references of one call it is looked whether there was such a job: each is a
// read of the store. Of others it is said that there is none.
const maxPastAsked = 1000

// sayEnded tells "ended long ago" from "never was" for jobs that have left memory. Of a whole array its first element answers.
func (e *Engine) sayEnded(ctx context.Context, missing []refError, may Allowed) error {
	next := e.view.next()
	for i := range missing[:min(len(missing), maxPastAsked)] {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ref := missing[i].ref
		if ref.Last > 0 || ref.ID >= next {
			continue
		}
		var j *gang.Job
		var err error
		if ref.Index < 0 {
			j, err = e.anyJob(ctx, ref.ID)
		} else {
			j, _, err = e.pastElement(ctx, ref)
		}
		if err != nil {
			return err
		}
		if j != nil && j.Verdict != nil && may(j.UID) {
			missing[i].err = api.AlreadyEnded(ref, gang.JobState(j))
		}
	}
	return nil
}

// NodeAction hands a person's word on a node to the core.
func (e *Engine) NodeAction(ctx context.Context, action, node string, r *api.NodeAction, who Caller) error {
	var ev gang.Event
	switch action {
	case "drain":
		if !r.Deadline.IsZero() && !r.Deadline.After(e.opt.Clock.Now().Wall) {
			return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("the deadline %s has passed", r.Deadline.Format(time.RFC3339)),
				Hint: "give a later one: --deadline=now+10minutes, say, or none to let running work end by itself"}
		}
		ev = gang.NodeDrain{Node: node, Reason: r.Reason, User: who.User, By: r.Deadline, Down: r.Down}
	case "resume":
		ev = gang.NodeResume{Node: node}
	case "reboot":
		if !slices.Contains([]api.RebootThen{api.RebootAsBefore, api.RebootResume, api.RebootDown}, r.Then) {
			return api.Errorf(api.CodeInvalid, "then %q: want resume or down, or nothing to leave it as it is", r.Then)
		}
		ev = gang.NodeReboot{Node: node, By: who.User, Reason: r.Reason, Asap: r.Asap, Then: r.Then}
	case "cancel-reboot":
		ev = gang.NodeRebootCancel{Node: node, By: who.User}
	case "fence":
		ev = gang.NodeFence{Node: node}
	case "features":
		for _, f := range r.Features {
			if c, err := cluster.ParseConstraint(f); err != nil || c == nil || strings.ContainsAny(f, "&|*()[], ") {
				return api.Errorf(api.CodeInvalid, "feature %q: want a word of letters, digits, '_', '-', '.' and ':'", f)
			}
		}
		ev = gang.NodeFeatures{Node: node, By: who.User, Features: r.Features}
	case "forget":
		ev = gang.NodeForget{Node: node, By: who.User}
	default:
		return api.Errorf(api.CodeNotFound, "no node action %q: want drain, resume, reboot, cancel-reboot, features, fence or forget", action)
	}
	_, err := e.Do(ctx, ev)
	return err
}

func asError(err error) *api.Error {
	if err == nil {
		return nil
	}
	var a *api.Error
	if errors.As(err, &a) {
		return a
	}
	return api.Errorf(api.CodeInternal, "%v", err)
}
