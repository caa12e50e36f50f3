package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/why"
)

// Update changes what may be changed of each job that a request selects: an owner's word
// within what the site allows, an admin's beyond.
func (e *Engine) Update(ctx context.Context, r *api.UpdateRequest, who Caller, may Allowed, s Signaller) (*api.CancelReply, error) {
	if err := checkUpdate(r, who); err != nil {
		return nil, err
	}
	if err := e.checkTexts(r); err != nil {
		return nil, err
	}
	most := 0
	if d := r.Dependency; d != nil && len(d.On) > 0 {
		most = maxWaits / len(d.On)
	}
	c := e.change(r, who)
	return e.each(ctx, "update", &r.JobQuery, who, may, most, func(ctx context.Context, j *gang.Job, hand handFunc) waitFunc {
		ev, err := c.of(ctx, j)
		if err == nil {
			err = c.ruled(ctx, j, ev)
		}
		if err != nil {
			return answered(err)
		}
		wait := hand(*ev)
		return func() api.CancelResult {
			_, err := wait()
			if err == nil && r.Message != nil {
				err = e.tell(ctx, j, gang.Signed(*r.Message, who.User), s)
			}
			return api.CancelResult{Error: asError(err)}
		}
	})
}

// change is a request for many jobs: what it comes to for those that are alike, as the elements of an array are, is found once.
type change struct {
	e        *Engine
	r        *api.UpdateRequest
	who      Caller
	judged   map[asked]*judgement
	specs    map[string]*api.Spec // whole, by their hashes
	recalled *recalled            // nil: not looked up yet
	told     map[string]error     // of the site's rule, by question
}

func (e *Engine) change(r *api.UpdateRequest, who Caller) *change {
	return &change{e: e, r: r, who: who, judged: map[asked]*judgement{}, specs: map[string]*api.Spec{}, told: map[string]error{}}
}

type recalled struct {
	jobs []*gang.Job
	err  error
}

// asked is what a job asks for, as far as a change is judged by it.
type asked struct {
	spec, constraint, prefer, partition string
	uid                                 uint32
	limit                               time.Duration
}

// judgement is what a change comes to where that is asked for.
type judgement struct {
	spec   api.Spec // with the change
	named  string   // partitions
	limit  *time.Duration
	groups []string
	err    error
}

// tell writes a message where a script of Slurm's words that runs reports its own end, on its
// first node. An allocation's owner reads the event.
func (e *Engine) tell(ctx context.Context, j *gang.Job, text string, s Signaller) error {
	if !j.Spec.LastWords || j.Spec.Launch != api.LaunchBatch || gang.JobState(j) != api.JobRunning || len(j.Members) == 0 {
		return nil
	}
	_, err := s.Signal(ctx, j.Members[0].Node, api.SignalOrder{MemberKey: api.MemberKey{Job: j.ID, Epoch: j.Epoch}, Message: text})
	if api.CodeOf(err) == api.CodeConflict || api.CodeOf(err) == api.CodeNotFound {
		return nil // it ended meanwhile: the event is all there is to have
	}
	return err
}

// maxComment bounds what a change puts into the job's own row; one of the spec is stored once
// for all elements of an array.
const maxComment = 1024

func sayable(s string) bool {
	return len(s) <= maxComment && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// checkUpdate refuses what is wrong for whatever job.
func checkUpdate(r *api.UpdateRequest, who Caller) error {
	switch {
	case !r.Changes():
		return api.Errorf(api.CodeInvalid, "nothing to change was given")
	case r.Name != nil && (*r.Name == "" || strings.ContainsFunc(*r.Name, func(c rune) bool { return c < ' ' || c == 0x7f })):
		return api.Errorf(api.CodeInvalid, "name %q is empty or has control characters", *r.Name)
	case r.Comment != nil && !sayable(*r.Comment):
		return api.Errorf(api.CodeInvalid, "a comment may have %d bytes and no control characters", maxComment)
	case r.Message != nil && (*r.Message == "" || !sayable(*r.Message)):
		return api.Errorf(api.CodeInvalid, "a message may have 1 to %d bytes and no control characters", maxComment)
	case r.TimeLimit != nil && *r.TimeLimit < 0:
		return api.Errorf(api.CodeInvalid, "a time may not be negative")
	case r.ArrayLimit != nil && *r.ArrayLimit < 0:
		return api.Errorf(api.CodeInvalid, "an array limit may not be negative")
	case r.Priority != nil && *r.Priority > 0 && !who.Admin:
		return api.Errorf(api.CodePermission, "only an admin may set a priority above 0; lower your own with --nice")
	case r.Nice != nil && *r.Nice < 0 && !who.Admin:
		return api.Errorf(api.CodePermission, "only an admin may raise a priority with --nice=%d", *r.Nice)
	case r.Priority != nil && r.Nice != nil:
		return api.Errorf(api.CodeInvalid, "--priority and --nice exclude each other")
	}
	if r.Dependency != nil && len(r.Dependency.On) > 0 {
		return checkDependency(r.Dependency, 1)
	}
	return nil
}

// checkTexts refuses a constraint or a partition that is none before any job is looked at: each of an array's ten thousand elements would
// read it again, and have an answer with all of it.
func (e *Engine) checkTexts(r *api.UpdateRequest) error {
	var s api.Spec
	if r.Constraint != nil {
		s.Constraint = *r.Constraint
	}
	if r.Prefer != nil {
		s.Prefer = *r.Prefer
	}
	if err := checkConstraints(&s); err != nil {
		return err
	}
	if r.Partition == nil {
		return nil
	}
	s.Partition = *r.Partition
	_, _, err := e.partition(&s)
	return err
}

// of is the change of one job.
func (c *change) of(ctx context.Context, j *gang.Job) (*gang.Update, error) {
	r := c.r
	ev := &gang.Update{Job: j.ID, By: c.who.User, Name: r.Name, Priority: r.Priority, Begin: r.Begin, Deadline: r.Deadline,
		Constraint: r.Constraint, Prefer: r.Prefer, ArrayLimit: r.ArrayLimit, Dependency: r.Dependency, Comment: r.Comment, Message: r.Message}
	if r.Nice != nil {
		ev.Priority, ev.Nice = new(j.Priority+gang.NiceOf(j)-*r.Nice), r.Nice
	}
	if ev.Priority != nil && *ev.Priority > j.Priority && !c.who.Admin && *ev.Priority > 0 {
		return nil, api.Errorf(api.CodePermission, "only an admin may raise the priority of job %d above 0", j.ID)
	}
	own := gang.SpecOf(j)
	key := asked{spec: j.SpecHash, constraint: own.Constraint, prefer: own.Prefer, partition: j.Partition, uid: j.UID, limit: j.TimeLimit}
	about := c.judged[key]
	if about == nil {
		about = c.judge(ctx, j)
		c.judged[key] = about
	}
	if about.err != nil {
		return nil, about.err
	}
	ev.TimeLimit, ev.Groups = about.limit, about.groups
	if r.Partition != nil {
		ev.Partition = &about.named
	}
	if len(r.Parts) > 0 {
		if err := c.ask(ctx, j, &about.spec, ev); err != nil {
			return nil, err
		}
	}
	if c.recalled == nil {
		c.recalled = &recalled{}
		c.recalled.jobs, c.recalled.err = recall(ctx, c.e.store, r.Dependency, c.e.view.job, maxWaits)
	}
	ev.Recalled = c.recalled.jobs
	return ev, c.recalled.err
}

// judge finds what the change comes to for jobs that ask for what j does.
func (c *change) judge(ctx context.Context, j *gang.Job) *judgement {
	e, r := c.e, c.r
	changed := j.Copy()
	if r.Constraint != nil {
		changed.Constraint = r.Constraint
	}
	if r.Prefer != nil {
		changed.Prefer = r.Prefer
	}
	out := &judgement{spec: *gang.SpecOf(changed)}
	s := &out.spec
	if out.err = checkConstraints(s); out.err != nil {
		return out
	}
	s.Partition = j.Partition
	if r.Partition != nil {
		s.Partition = *r.Partition
	}
	part, parts, err := e.partition(s)
	if err != nil {
		out.err = err
		return out
	}
	out.named = strings.Join(parts, ",")
	in := unbounded(parts)
	if r.TimeLimit != nil || r.Partition != nil {
		limit := j.TimeLimit
		if r.TimeLimit != nil {
			limit = *r.TimeLimit
		}
		limit = cmp.Or(limit, part.DefaultTime)
		a, err := e.entrant(ctx, out.named, gang.Entrant{UID: j.UID, User: j.User, Account: s.Account, TimeLimit: limit, Spec: s})
		if err == nil {
			in, err = e.enters(out.named, a, c.who.Admin)
		}
		if err != nil {
			out.err = err
			return out
		}
		out.limit, out.groups = &limit, a.Groups
	}
	if r.Partition != nil || r.Constraint != nil || r.Prefer != nil {
		if nodes := e.resources(); len(nodes) > 0 {
			if err := why.Unsatisfiable(nodes, e.policy(), cluster.AskIn(s, in)); err != nil {
				out.err = err
			}
		}
	}
	return out
}

func unbounded(names []string) (in []cluster.In) {
	for _, name := range names {
		in = append(in, cluster.In{Name: name})
	}
	return in
}

// whole is the spec of a job with its texts, read once for all that share it.
func (c *change) whole(ctx context.Context, j *gang.Job) (*api.Spec, error) {
	if s := c.specs[j.SpecHash]; s != nil {
		return s, nil
	}
	s, err := c.e.whole(ctx, j)
	if err == nil {
		c.specs[j.SpecHash] = s
	}
	return s, err
}

// ask makes of parts of another spec what a waiting job asks for from now on: s, its spec as it stands, with these, judged as
// the whole of it would be at a submission of its owner.
func (c *change) ask(ctx context.Context, j *gang.Job, s *api.Spec, ev *gang.Update) error {
	e, r := c.e, c.r
	if r.Ask == nil {
		return api.Errorf(api.CodeInvalid, "parts of no request")
	}
	if len(s.Roles) > 0 && slices.Contains(r.Parts, api.PartResources) {
		return &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("job %s has roles or components, which are asked for together", j.Ref()),
			Hint: "cancel it and submit it with others"}
	}
	whole, err := c.whole(ctx, j)
	if err != nil {
		return err
	}
	own := *s
	own.Script, own.Args, own.Env = whole.Script, whole.Args, whole.Env
	own.Name, own.Dependency, own.Deadline = whole.Name, nil, j.Deadline
	own.TimeLimit = j.TimeLimit
	for _, part := range r.Parts {
		take := api.SpecParts[part]
		if take == nil {
			return api.Errorf(api.CodeInvalid, "%q is no part of a request that can be changed", part)
		}
		take(&own, r.Ask)
	}
	// Its owner's rights, but for the priority, which is not changed by this.
	owner := Caller{UID: j.UID, GID: j.GID, User: j.User, Admin: true}
	judged, _, err := e.resolve(ctx, &api.SubmitRequest{Spec: own}, owner)
	if err != nil {
		return err
	}
	final := *judged.Spec
	final.Dependency, final.Deadline, final.TimeLimit, final.Partition = whole.Dependency, whole.Deadline, whole.TimeLimit, whole.Partition
	ev.Spec, ev.SpecHash = &final, hashSpec(&final)
	return nil
}

// Rerun submits a job once more as it was submitted: a whole array, one element, or with
// Failed those elements that have ended without completing.
func (e *Engine) Rerun(ctx context.Context, r *api.RerunRequest, who Caller) (*api.SubmitReply, error) {
	j, err := e.One(ctx, r.Ref, who)
	if err != nil {
		return nil, err
	}
	if j.UID != who.UID {
		return nil, api.Errorf(api.CodePermission, "job %s belongs to %s: only its owner may run it once more", j.Ref(),
			j.User).About(api.ReasonOwner, j.User)
	}
	whole, err := e.whole(ctx, j)
	if err != nil {
		return nil, err
	}
	s := *gang.SpecOf(j)
	s.Script, s.Args, s.Env = whole.Script, whole.Args, whole.Env
	// What it waited for is over, and so is the moment it was to begin at; a deadline may be.
	s.Dependency, s.Hold, s.Name, s.Partition = nil, false, j.Name, j.Partition
	s.Begin, s.Deadline = time.Time{}, j.Deadline
	if !s.Deadline.After(e.opt.Clock.Now().Wall) {
		s.Deadline = time.Time{}
	}
	req := &api.SubmitRequest{Key: r.Key, Spec: s}
	switch {
	case j.Array == nil && r.Failed && (j.Verdict == nil || j.Verdict.State == api.JobCompleted):
		return nil, api.Errorf(api.CodeConflict, "job %d has not failed: %s", j.ID, gang.JobState(j))
	case j.Array != nil:
		if req.Array, err = e.again(ctx, j, r); err != nil {
			return nil, err
		}
	}
	return e.Submit(ctx, req, who)
}

// whole is the spec of a job with its texts. One that was forgotten meanwhile is not there any more.
func (e *Engine) whole(ctx context.Context, j *gang.Job) (*api.Spec, error) {
	s, err := e.store.Spec(ctx, j.SpecHash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, e.noJob(&named{ref: api.JobRef{ID: j.ID, Index: -1}}, true)
	case err != nil:
		return nil, fmt.Errorf("read the script of job %s: %w", j.Ref().String(), err)
	case j.Verdict != nil && j.Epoch == 0 && len(s.Script)+len(s.Args) == 0:
		return nil, api.Errorf(api.CodeNotFound, "the script of job %s is not kept any more: it ended without having started", j.Ref().String())
	}
	return s, nil
}

// Script is what was submitted, byte for byte.
func (e *Engine) Script(ctx context.Context, j *gang.Job) ([]byte, error) {
	s, err := e.whole(ctx, j)
	if err != nil {
		return nil, err
	}
	return s.Script, nil
}

// again chooses the elements of an array that run once more.
func (e *Engine) again(ctx context.Context, j *gang.Job, r *api.RerunRequest) (*api.Array, error) {
	failed := func(el *gang.Job) bool { return el.Verdict != nil && el.Verdict.State != api.JobCompleted }
	if r.Ref.Index >= 0 {
		if r.Failed && !failed(j) {
			return nil, api.Errorf(api.CodeConflict, "job %s has not failed: %s", r.Ref, gang.JobState(j))
		}
		return &api.Array{Indices: []int{j.ArrayIndex}}, nil
	}
	elements, err := e.elements(ctx, j.ArrayID)
	if err != nil {
		return nil, err
	}
	out := &api.Array{Limit: j.Array.Limit}
	waiting := 0
	for _, el := range elements {
		if !r.Failed || failed(el) {
			out.Indices = append(out.Indices, el.ArrayIndex)
		}
		if el.Verdict == nil {
			waiting++
		}
	}
	if len(out.Indices) == 0 {
		return nil, api.Errorf(api.CodeConflict, "no element of array %d has failed: %d completed, %d have not ended", j.ArrayID,
			len(elements)-waiting, waiting)
	}
	slices.Sort(out.Indices)
	return out, nil
}
