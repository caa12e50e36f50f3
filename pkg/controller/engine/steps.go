package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/container"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/hostlist"
)

// maxStepWait bounds how long one call waits for free resources; the client asks again.
const maxStepWait = time.Minute

// BeginStep starts a step in the allocation of a job. While other steps have what it asks
// for it waits as long as the request says.
func (e *Engine) BeginStep(ctx context.Context, j *gang.Job, r *api.StepRequest) (*api.StepReply, error) {
	if err := checkStep(&r.Ask); err != nil {
		return nil, err
	}
	if err := onMembers(j, &r.Ask); err != nil {
		return nil, err
	}
	if err := e.checkImages(j, r.Ask.Container); err != nil {
		return nil, err
	}
	secret, err := newSecret()
	if err != nil {
		return nil, err
	}
	ev := gang.StepBegin{Job: j.ID, Epoch: r.Epoch, Key: r.Key, Secret: secret, Ask: r.Ask, Within: r.Within}
	until := time.NewTimer(min(max(r.Wait, 0), maxStepWait))
	defer until.Stop()
	for {
		changed := e.stepWaiters.watch(j.ID)
		var others <-chan struct{} // ports are everybody's
		if r.Ask.Ports != 0 {
			others = e.stepWaiters.watch(anyJob)
		}
		out, err := e.Do(ctx, ev)
		if err == nil {
			return e.stepReply(j.ID, out.Step)
		}
		if api.CodeOf(err) != api.CodeBusy {
			return nil, err
		}
		select {
		case <-changed:
		case <-others:
		case <-until.C:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-e.done:
			return nil, errStopped
		}
	}
}

// onMembers refuses nodes that the allocation does not have, and leaves out of those that are excluded what has no
// part in it: the core need not go through a list that is longer than the allocation.
func onMembers(j *gang.Job, a *api.StepAsk) error {
	if len(a.NodeList)+len(a.Exclude)+len(a.More) == 0 {
		return nil
	}
	members := make(map[string]bool, len(j.Members))
	for i := range j.Members {
		members[j.Members[i].Node] = true
	}
	narrow := func(c *api.StepComponent) error {
		if c.Distribution != api.Arbitrary { // of which each place is a task's
			c.NodeList = unique(c.NodeList)
		}
		for _, n := range c.NodeList {
			if !members[n] && len(members) > 0 {
				return api.Errorf(api.CodeUnsatisfiable, "node %s is not in the allocation of job %d", n, j.ID).About(api.ReasonOutside, n)
			}
		}
		c.Exclude = slices.DeleteFunc(unique(c.Exclude), func(n string) bool { return !members[n] })
		return nil
	}
	if err := narrow(&a.StepComponent); err != nil {
		return err
	}
	for i := range a.More {
		if err := narrow(&a.More[i]); err != nil {
			return err
		}
	}
	return nil
}

func newSecret() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

func checkStep(a *api.StepAsk) error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalid, format, args...) }
	cards := 0
	for _, n := range []int{a.GPUs, a.GPUsPerTask, a.GPUsPerNode} {
		if n < 0 {
			return bad("a negative number of GPUs")
		}
		cards += min(n, 1)
	}
	switch {
	case len(a.Hosts) == 0 || len(a.Hosts) > 64 || len(a.Fingerprint) != 64:
		return bad("a step names 1 to 64 addresses of its client and the SHA-256 of its certificate")
	case a.Tasks < 0 || a.MinNodes < 0 || a.MaxNodes < 0 || a.CPUsPerTask < 0 || a.TasksPerNode < 0 || a.MemoryPerNode < 0 ||
		a.MemoryPerCPU < 0 || a.TimeLimit < 0:
		return bad("a step's figures are not negative")
	case max(a.Tasks, a.CPUsPerTask, a.TasksPerNode, a.MinNodes) > api.MaxStepTasks:
		return bad("more than %d tasks, CPUs or nodes in one step", api.MaxStepTasks)
	case a.MaxNodes > 0 && a.MaxNodes < a.MinNodes:
		return bad("at most %d nodes is below at least %d", a.MaxNodes, a.MinNodes)
	case cards > 1:
		return bad("give one of GPUs, GPUs per task, GPUs per node")
	case a.Ports < api.PortEach:
		return bad("%d ports: want a number from 0, or %d for one each", a.Ports, api.PortEach)
	case len(a.Name) > 1024 || len(a.Command) > 4096 || len(a.Client) > 512:
		return bad("name, command or client of a step is too long")
	case a.Container != nil && !path.IsAbs(a.Dir):
		return bad("dir %q: a step in a container says in which directory it runs", a.Dir)
	}
	if len(a.More) > 0 {
		for _, one := range a.Components() {
			if err := checkStep(&one); err != nil {
				return err
			}
		}
	}
	return checkContainer(a.Container, true)
}

// checkImages says which nodes of an allocation can't run the image of a step.
func (e *Engine) checkImages(j *gang.Job, c *api.Container) error {
	if c == nil {
		return nil
	}
	if c.Image == "" { // one that is there, on nodes that have run its image
		return nil
	}
	image, err := container.Parse(c.Image)
	if err != nil {
		return err
	}
	var unfit []string
	for i := range j.Members {
		n := e.view.node(j.Members[i].Node)
		if n != nil && n.Res != nil && !slices.ContainsFunc(image.Features(), func(f string) bool { return slices.Contains(n.Res.Features, f) }) {
			unfit = append(unfit, j.Members[i].Node)
		}
	}
	if len(unfit) < len(j.Members) { // which nodes the step gets is not known yet: one that can not refuses it
		return nil
	}
	why := api.Errorf(api.CodeUnsatisfiable, "%s of job %s can't run the image %s: it needs a node with %s", hostlist.Compress(unfit), j.Ref(),
		c.Image, strings.Join(image.Features(), " or "))
	why.Hint = "start the job with --constraint=" + image.Features()[0]
	return why.About(api.ReasonAllocation, "")
}

// stepReply is what the client of a step needs. The nodes are told of it by now.
func (e *Engine) stepReply(id int64, s *gang.Step) (*api.StepReply, error) {
	j := e.view.job(id)
	if j == nil || len(j.Members) == 0 {
		return nil, api.Errorf(api.CodeStaleEpoch, "job %d has been stopped meanwhile", id)
	}
	out := &api.StepReply{SchemaVersion: api.SchemaVersion, JobID: id, Epoch: j.Epoch, StepID: s.ID, Secret: s.Secret,
		CPUsPerTask: max(1, s.Ask.CPUsPerTask), Ports: hostlist.Ranges(s.Ports), Allocation: e.allocation(j)}
	out.Fail = j.Spec.Fail
	if m := e.conf().Settings.MPIDefault; m != api.MPINone {
		out.MPIDefault = m
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Member >= len(out.Allocation.Nodes) {
			return nil, api.Errorf(api.CodeStaleEpoch, "job %d has been stopped meanwhile", id)
		}
		n := out.Allocation.Nodes[p.Member]
		part := api.StepNode{Name: n.Name, Address: n.Address, Index: p.Member, Group: p.Group, Tasks: p.Tasks, CPUs: p.CPUs}
		for _, c := range n.Cards {
			if slices.Contains(p.Cards, c.UUID) {
				part.Cards = append(part.Cards, c)
			}
		}
		out.Tasks += len(p.Tasks)
		out.Nodes = append(out.Nodes, part)
	}
	return out, nil
}

// allocation is what a client has to know of a job whose gate is open.
func (e *Engine) allocation(j *gang.Job) api.Allocation {
	grace := cmp.Or(j.Spec.Grace, e.conf().Settings.Grace)
	a := api.Allocation{JobID: j.ID, Name: j.Name, User: j.User, UID: j.UID, GID: j.GID, Account: j.Spec.Account, Pools: j.Spec.Pools,
		Partition: e.runsIn(j),
		StartTime: j.Start, WorkDir: api.Shown(j.Spec.WorkDir), SubmitHost: j.Spec.SubmitHost, MasterPort: j.Members[0].Port, Grace: grace,
		Groups: j.Spec.Components()}
	if limit := gang.TimeLimit(j); limit > 0 && !j.Start.IsZero() {
		a.EndTime = j.Start.Add(limit)
	}
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	for i := range j.Members {
		m := &j.Members[i]
		n := api.StepNode{Name: m.Node, Index: i, Group: max(0, j.Spec.ComponentAt(m.Ranks[0])), Tasks: m.Ranks}
		node := e.view.nodes[m.Node]
		if node != nil {
			n.Address = node.Hello.Address
		}
		for _, r := range m.Ranks {
			n.CPUs += j.Spec.FiguresOf(r).CPUs
			for _, uuid := range j.Ranks[r].Slot.Cards {
				if !slices.ContainsFunc(n.Cards, func(c api.StepCard) bool { return c.UUID == uuid }) {
					n.Cards = append(n.Cards, api.StepCard{UUID: uuid, Index: cardIndex(node, uuid)})
				}
			}
		}
		if j.Spec.Exclusive && node != nil && node.Res != nil {
			n.CPUs = max(n.CPUs, node.Res.CPUs())
		}
		a.Nodes = append(a.Nodes, n)
	}
	return a
}

func cardIndex(n *gang.Node, uuid string) int {
	if n != nil {
		for i := range n.Hello.Cards {
			if n.Hello.Cards[i].UUID == uuid {
				return n.Hello.Cards[i].Index
			}
		}
	}
	return -1
}

// StopStep ends a step: its tasks get TERM, the grace, KILL. The cause is timeout, or none.
func (e *Engine) StopStep(ctx context.Context, j *gang.Job, step int, cause api.Cause, by string) (*api.StepSignalReply, error) {
	if cause != "" && cause != api.CauseTimeout {
		return nil, api.Errorf(api.CodeInvalid, "the cause of a step's end is timeout, or none: not %s", cause)
	}
	if _, err := e.Do(ctx, gang.StepStop{Job: j.ID, Step: step, By: by, Late: cause == api.CauseTimeout}); err != nil {
		return nil, err
	}
	return &api.StepSignalReply{SchemaVersion: api.SchemaVersion}, nil
}

// SignalStep delivers a signal to the tasks of a step and changes no state.
func (e *Engine) SignalStep(ctx context.Context, j *gang.Job, step int, signal string, s Signaller) (*api.StepSignalReply, error) {
	if err := knownSignal("signal", signal); err != nil {
		return nil, err
	}
	live, err := liveStep(j, step)
	if err != nil {
		return nil, err
	}
	o := api.SignalOrder{MemberKey: api.MemberKey{Job: j.ID, Epoch: j.Epoch}, Signal: signal, Scope: api.ScopeFull, Step: &live.ID}
	part := j.Copy()
	part.Members = nil
	for i := range live.Parts {
		part.Members = append(part.Members, j.Members[live.Parts[i].Member])
	}
	r := e.signalMembers(ctx, part, o, s)
	if r.Error != nil {
		return nil, r.Error
	}
	return &api.StepSignalReply{SchemaVersion: api.SchemaVersion, Processes: r.Processes, Nodes: r.Nodes}, nil
}

func liveStep(j *gang.Job, step int) (*gang.Step, *api.Error) {
	for i := range j.Steps {
		if j.Steps[i].ID == step {
			return &j.Steps[i], nil
		}
	}
	if step >= 0 && step < j.NextStep {
		return nil, api.Errorf(api.CodeAlreadyEnded, "step %s has already ended", api.StepText(j.ID, step))
	}
	return nil, api.Errorf(api.CodeNotFound, "no step %s", api.StepText(j.ID, step))
}

// AttachStep says where the client of a running step listens.
func (e *Engine) AttachStep(j *gang.Job, step int) (*api.StepAttachReply, error) {
	s, err := liveStep(j, step)
	if err != nil {
		return nil, err
	}
	return &api.StepAttachReply{SchemaVersion: api.SchemaVersion, Step: e.showStep(j, s),
		Hosts: s.Ask.Hosts, Fingerprint: s.Ask.Fingerprint, Secret: s.Secret}, nil
}

// WaitStep returns when a step of the current epoch does not run (any more).
func (e *Engine) WaitStep(ctx context.Context, j *gang.Job, step int) error {
	for epoch := j.Epoch; ; {
		changed := e.stepWaiters.watch(j.ID)
		now := e.view.job(j.ID)
		if now == nil || now.Epoch != epoch {
			return nil
		}
		if _, err := liveStep(now, step); err != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.done:
			return errStopped
		}
	}
}

// Steps are all steps of all attempts of a job, oldest first.
func (e *Engine) Steps(ctx context.Context, j *gang.Job) ([]api.Step, error) {
	d, err := e.Detail(ctx, j)
	if err != nil {
		return nil, err
	}
	out := []api.Step{}
	for i := range d.Attempts {
		out = append(out, d.Attempts[i].Steps...)
	}
	return out, nil
}

// liveSteps are the steps that run.
func (e *Engine) liveSteps(j *gang.Job) []api.Step {
	var out []api.Step
	for i := range j.Steps {
		out = append(out, e.showStep(j, &j.Steps[i]))
	}
	return out
}

// showStep is a step that runs, in the partition that its job runs in.
func (e *Engine) showStep(j *gang.Job, s *gang.Step) api.Step {
	out := gang.ShowStep(j, s, time.Time{})
	out.Partition, out.Status = e.runsIn(j), stepImporting(j, s)
	return out
}

// runsIn goes by the published view: callers are not the goroutine that steps.
func (e *Engine) runsIn(j *gang.Job) string { return gang.RunsIn(j, e.view.node) }

// attemptSteps are the steps of an attempt: its script, its allocation, those that ended and
// those that run.
func (e *Engine) attemptSteps(j *gang.Job, r *gang.EpochRow, a *api.Attempt, ended []api.Step) []api.Step {
	current := r.Epoch == j.Epoch
	frame := api.Step{JobID: j.ID, Epoch: r.Epoch, Nodes: a.Nodes, User: j.User, Partition: e.runsIn(j), StartTime: r.Started,
		EndTime: r.Ended, State: api.JobRunning}
	var out []api.Step
	if j.Spec.Launch == api.LaunchBatch && !j.Spec.Allocation && len(a.Nodes) > 0 {
		batch := frame
		batch.CPUs, batch.GPUs = taken(j.Spec, r.Slots, a.Nodes[0])
		out = append(out, batchStep(batch, r, a))
	}
	frame.CPUs, frame.GPUs = taken(j.Spec, r.Slots, "")
	extern := frame
	extern.StepID, extern.Name, extern.Tasks, extern.Layout = api.StepExtern, api.StepExtern, len(a.Nodes), api.PerNode(ones(len(a.Nodes)))
	if j.Spec.Launch != api.LaunchBatch {
		ranksOf(a, &extern)
	}
	if !r.Ended.IsZero() {
		extern.State, extern.ExitCode = api.JobCompleted, new(int)
	}
	out = append(out, extern)
	for i := range ended {
		if ended[i].Epoch == r.Epoch {
			out = append(out, ended[i])
		}
	}
	if current && j.Verdict == nil {
		out = append(out, e.liveSteps(j)...)
	}
	slices.SortStableFunc(out, func(a, b api.Step) int { return cmp.Compare(stepOrder(a.StepID), stepOrder(b.StepID)) })
	return out
}

// taken is how many CPUs and cards an epoch has on a node, empty: on all. Ranks may name the
// same card: those of a node that was asked for by --gpus-per-node.
func taken(spec *api.Spec, slots []cluster.Slot, node string) (cpus, cards int) {
	seen := map[[2]string]bool{}
	for i := range slots {
		if node != "" && slots[i].Node != node {
			continue
		}
		cpus += spec.FiguresOf(i).CPUs
		for _, c := range slots[i].Cards {
			seen[[2]string{slots[i].Node, c}] = true
		}
	}
	return cpus, len(seen)
}

func stepOrder(id string) int {
	switch id {
	case api.StepBatch:
		return -2
	case api.StepExtern:
		return -1
	}
	n, _ := strconv.Atoi(id)
	return n
}

func ones(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// batchStep is the script as a step: one task on the first node, with all that the allocation
// has there.
func batchStep(s api.Step, r *gang.EpochRow, a *api.Attempt) api.Step {
	s.StepID, s.Name, s.Tasks, s.Layout = api.StepBatch, api.StepBatch, 1, "1"
	if len(s.Nodes) > 1 {
		s.Nodes = s.Nodes[:1]
	}
	if r.Ended.IsZero() {
		return s
	}
	ranksOf(a, &s)
	code := -1
	if len(r.ExitCodes) > 0 {
		code = r.ExitCodes[0]
	}
	switch {
	case a.Cause == api.CauseCompleted:
		s.State = api.JobCompleted
	case a.Cause == api.CauseOOM:
		s.State, s.Cause = api.JobOutOfMemory, a.Cause
	case a.Cause == api.CauseNodeLost:
		s.State, s.Cause = api.JobNodeFail, a.Cause
	case a.Cause == api.CauseCrash:
		s.State = api.JobFailed
	default:
		s.State, s.Cause = api.JobCancelled, a.Cause // as Slurm has it for time-outs, too: the script was ended
	}
	if code >= 0 {
		s.ExitCode = &code
		if len(r.Signals) > 0 {
			s.Signal = r.Signals[0]
		}
	}
	return s
}

// ranksOf puts what the ranks of an attempt used on the step that stands for them.
func ranksOf(a *api.Attempt, s *api.Step) {
	for i := range a.Measures {
		if u := a.Measures[i].Ranks; u != nil {
			s.CPUTime += u.CPUSeconds
			s.MaxRSS = max(s.MaxRSS, u.MaxRSS)
		}
	}
}

// stepWaiters wakes those who wait for resources of an allocation.
type stepWaiters struct {
	mu sync.Mutex
	on map[int64]chan struct{}
}

// anyJob is watched by who waits for what a step or a gang of any job may give back.
const anyJob = 0

// watch gives a channel that is closed at the next change of the job.
func (f *stepWaiters) watch(job int64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.on == nil {
		f.on = map[int64]chan struct{}{}
	}
	if f.on[job] == nil {
		f.on[job] = make(chan struct{})
	}
	return f.on[job]
}

func (f *stepWaiters) wake(jobs []*gang.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wake := func(id int64) {
		if ch := f.on[id]; ch != nil {
			close(ch)
			delete(f.on, id)
		}
	}
	for _, j := range jobs {
		wake(j.ID)
	}
	if len(jobs) > 0 {
		wake(anyJob)
	}
}
