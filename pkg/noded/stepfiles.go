package noded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/jobapi"
)

// stepFile is how far the checkpoints are that the tasks of a step start from.
type stepFile struct {
	here bool
	why  string // they can't be had; empty: they are here
}

// startable cuts the ordered steps before the first whose checkpoints are still on their way:
// steps are started in the order of their ids. A step whose checkpoints can't be had is refused, as
// a member is: it never starts without them.
func (m *member) startable(ctx context.Context, steps []api.StepOrder) []api.StepOrder {
	for i := range steps {
		o := &steps[i]
		if o.From == nil || o.Stop || m.knows(o.ID) {
			continue
		}
		m.mu.Lock()
		f := m.files[o.ID]
		if f == nil {
			if m.files == nil {
				m.files = map[int]*stepFile{}
			}
			f = &stepFile{}
			m.files[o.ID] = f
			order := *o
			m.d.running.Go(func() { m.fetchStep(ctx, order, f) })
		}
		here, why := f.here, f.why
		m.mu.Unlock()
		if !here {
			return steps[:i:i]
		}
		o.Refused = why
	}
	return steps
}

// knows: the shim has been told of a step, or it is over.
func (m *member) knows(id int) bool {
	for i := range m.actual.Steps {
		if m.actual.Steps[i].ID == id {
			return true
		}
	}
	return false
}

// fetchStep brings the checkpoints of the tasks of a step that are on this node.
func (m *member) fetchStep(ctx context.Context, o api.StepOrder, f *stepFile) {
	ctx, cancel := context.WithTimeout(ctx, m.d.site().StartTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for _, task := range o.Numbers {
		group.Go(func() error { return m.fetchTask(ctx, &o, task) })
	}
	err := group.Wait()
	m.mu.Lock()
	f.here = true
	if err != nil {
		f.why = fmt.Sprintf("checkpoints of attempt %d: %v", o.From.Epoch, err)
	}
	m.mu.Unlock()
	m.poke()
}

func (m *member) fetchTask(ctx context.Context, o *api.StepOrder, task int) error {
	name := jobapi.TaskName(jobapi.CheckPrefix, o.ID, task)
	part := filepath.Join(m.dir, "."+name)
	call := &api.Call{MemberKey: m.key, Step: &o.ID, Rank: task, Get: &api.CheckpointGet{Rank: task, From: o.From}}
	if err := m.d.fetch(ctx, call, part); err != nil {
		return err
	}
	if s := m.known.Load(); s != nil && s.SwitchUser {
		if err := os.Lchown(part, int(s.UID), int(s.GID)); err != nil {
			return err
		}
	}
	return os.Rename(part, filepath.Join(m.dir, name))
}
