package engine

import (
	"context"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// stacksWait is how long a node may take to look where the processes of a member are. A look takes half a second at the most.
const stacksWait = 3 * time.Second

// Stacks says where the processes of a job are just now or, of one that does not run, where those of its newest attempt were that was
// stopped for a hang or at its time limit.
func (e *Engine) Stacks(ctx context.Context, j *gang.Job) (*api.StacksReply, error) {
	out := &api.StacksReply{SchemaVersion: api.SchemaVersion, JobID: j.ID, Epoch: j.Epoch}
	if gang.JobState(j) == api.JobRunning {
		out.Live, out.Stacks = true, e.lookNow(ctx, j)
		return out, ctx.Err()
	}
	if d := j.Drain; d != nil && d.Stacks != nil {
		out.Stacks = *d.Stacks
		return out, nil
	}
	rows, err := e.store.Epochs(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if s := rows[i].Stacks; s != nil {
			out.Epoch, out.Stacks = rows[i].Epoch, *s
			return out, nil
		}
	}
	return nil, &api.Error{Code: api.CodeConflict, Message: "job " + j.Ref().String() +
		" does not run, and where its processes were was not kept: it was ended by no hang and no time limit",
		Hint: "ask while it runs; what ended it is in gctl events " + j.Ref().String()}
}

// lookNow asks all nodes of a gang side by side.
func (e *Engine) lookNow(ctx context.Context, j *gang.Job) api.Stacks {
	bounded, cancel := context.WithTimeout(ctx, stacksWait)
	defer cancel()
	seen := make([]*api.MemberStacks, len(j.Members))
	var wg sync.WaitGroup
	for i := range j.Members {
		wg.Go(func() {
			if m, err := e.hub.Stacks(bounded, j.Members[i].Node, api.MemberKey{Job: j.ID, Epoch: j.Epoch}); err == nil {
				seen[i] = m
			}
		})
	}
	wg.Wait()
	return gang.CompareStacks(j, e.opt.Clock.Now(), func(i int) *api.MemberStacks { return seen[i] })
}
