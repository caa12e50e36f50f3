package noded

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/jobapi"
)

// stepFile is how far that is which the tasks of a step start from: their checkpoints, and their image.
type stepFile struct {
	off  context.CancelFunc // nobody waits for it any more
	here bool
	why  string     // it can't be had; empty: it is here
	far  api.Import // of its image
}

// startable holds the ordered steps back that can't be started yet. Those whose checkpoints are still on their
// way hold back those after them: steps are started in the order of their ids. One whose image is being imported,
// which may take long, holds back itself alone. A step that can't have what it starts from is refused, as a
// member is: it never starts without.
func (m *member) startable(ctx context.Context, steps []api.StepOrder) []api.StepOrder {
	steps = slices.Clone(steps)
	m.callOff(steps)
	for i := range steps {
		o := &steps[i]
		if o.From == nil && o.Container == nil || o.Stop || m.knows(o.ID) {
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
			order, ctx := *o, ctx
			ctx, f.off = context.WithCancel(ctx)
			m.d.running.Go(func() { m.fetchStep(ctx, order, f) })
		}
		here, why := f.here, f.why
		m.mu.Unlock()
		switch {
		case here:
			o.Refused = why
		case o.Container != nil:
			o.Held = true
		default:
			return steps[:i:i]
		}
	}
	return steps
}

// callOff ends the import for steps that nobody wants any more.
func (m *member) callOff(steps []api.StepOrder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, f := range m.files {
		if !slices.ContainsFunc(steps, func(o api.StepOrder) bool { return o.ID == id && !o.Stop }) {
			f.off()
			delete(m.files, id)
		}
	}
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

// imports are the steps whose images are being imported, as the controller is told of them.
func (m *member) imports() (steps []api.StepActual) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, f := range m.files {
		if f.far != (api.Import{}) && !m.knows(id) {
			steps = append(steps, api.StepActual{ID: id, Importing: f.far})
		}
	}
	slices.SortFunc(steps, func(a, b api.StepActual) int { return a.ID - b.ID })
	return steps
}

func (m *member) fetchStep(ctx context.Context, o api.StepOrder, f *stepFile) {
	why := m.fetchTasks(ctx, &o)
	if why == "" && o.Container != nil {
		why = m.fetchImage(ctx, &o, f)
	}
	m.mu.Lock()
	f.here, f.why, f.far = true, why, api.Import{}
	m.mu.Unlock()
	m.poke()
}

// fetchTasks brings the checkpoints of the tasks of a step that are on this node, or says why not.
func (m *member) fetchTasks(ctx context.Context, o *api.StepOrder) (why string) {
	if o.From == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, m.d.site().StartTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for _, task := range o.Numbers {
		group.Go(func() error { return m.fetchTask(ctx, o, task) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Sprintf("checkpoints of attempt %d: %v", o.From.Epoch, err)
	}
	return ""
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

// fetchImage imports the image of a step and writes down what its container is, or says why not.
func (m *member) fetchImage(ctx context.Context, o *api.StepOrder, f *stepFile) (why string) {
	s := m.known.Load()
	if s == nil {
		return "container: the record of the job on this node is lost"
	}
	if c := o.Container; c.Name != "" && (c.Image == "" || m.hasContainer(s, c.Name)) {
		return "" // the shim knows it, or refuses it
	}
	here := &image{}
	fl, r := m.d.importing(o.Container, s.User, s.UID, s.GID, o.Image, m.d.importLimits(s.MemoryMax))
	if r == nil && fl != nil {
		defer m.d.images.leave(fl)
		if here, r = m.await(ctx, fl, f); here == nil && r == nil {
			return "called off" // nobody hears it
		}
	}
	if r != nil {
		return r.Text
	}
	text, err := json.Marshal(m.d.container(o.Container, s, here, o.Dir))
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, shim.StepContainerFile(o.ID)), text, 0o600)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// await waits for an import and has it told how far it is; nil and nil: it was called off.
func (m *member) await(ctx context.Context, fl *flight, f *stepFile) (*image, *api.Refusal) {
	tick := time.NewTicker(importTick)
	defer tick.Stop()
	for {
		m.mu.Lock()
		f.far = fl.far()
		m.mu.Unlock()
		m.poke()
		select {
		case <-fl.done:
			return fl.image, fl.refusal
		case <-tick.C:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// hasContainer: there is one of that name, which later steps join.
func (m *member) hasContainer(s *shim.Spec, name string) bool {
	if s.Container != nil && s.Container.Container == name {
		return true
	}
	_, err := os.Lstat(filepath.Join(m.dir, shim.KeptContainerFile(name)))
	return err == nil
}

// stepImages are the directories of images that steps of a member run in.
func stepImages(dir string) (dirs []string) {
	names, _ := filepath.Glob(filepath.Join(dir, shim.StepContainerFiles)) // fails for a bad pattern alone
	kept, _ := filepath.Glob(filepath.Join(dir, shim.KeptContainerFile("*")))
	for _, name := range append(names, kept...) {
		var c shim.Container
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &c) == nil {
			dirs = append(dirs, c.Image)
		}
	}
	return dirs
}
