package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// save puts a checkpoint: by way of the daemon and its session to the controller. A rank
// without an answer does not care here; what counts is what was answered.
func (p *proc) save() {
	p.m.nextPID++
	call := &api.Call{MemberKey: p.key, Rank: p.rank, Put: &api.CheckpointPut{}}
	slot := slot{p.key, -1, p.rank}
	if p.task() {
		call.Step, slot.step = &p.launch.order.ID, p.launch.order.ID
	}
	text := fmt.Sprintf("%s %d", slot, p.m.nextPID)
	call.Put.Key = text
	p.m.r.truth.putting(slot)
	p.m.call(call, text, func(_ string, err error) {
		if err == nil {
			p.m.r.truth.saved(slot)
		}
	})
}

// slot is where the checkpoint of one process lies.
type slot struct {
	api.MemberKey
	step, rank int // step -1: of a rank
}

func (s slot) String() string { return fmt.Sprintf("%d.%d.%d.%d", s.Job, s.Epoch, s.step, s.rank) }

// call carries one call of a rank to the controller and its answer back; neither comes when
// the line breaks.
func (m *machine) call(c *api.Call, in string, answer func(out string, err error)) {
	d := m.daemon
	if d == nil || d.line == nil || !d.greeted {
		answer("", errNoSession)
		return
	}
	l := d.line
	m.r.send(d, func() {
		l.ship(true, parcel{do: func() { l.hub.serve(c, in, l, answer) }})
	})
}

var errNoSession = api.Errorf(api.CodeUnavailable, "no session")

// serve is a call at the controller.
func (s *hubSession) serve(c *api.Call, in string, l *line, answer func(string, error)) {
	if s.over || !s.greeted {
		return
	}
	g := s.g
	var out bytes.Buffer
	_, err := g.eng.NodeCall(g.r.ctx, s.node, c, strings.NewReader(in), &out)
	if g.dead {
		return
	}
	var refused *api.Error
	if err != nil && !errors.As(err, &refused) {
		g.crash(time.Second)
		return
	}
	g.answer()
	if g.dead {
		return
	}
	g.r.truth.turned()
	g.plan()
	text := out.String()
	g.r.send(g, func() { l.ship(false, parcel{do: func() { answer(text, err) }}) })
}

// fetch gets the checkpoints that the ranks of a member start from, and then goes on; a
// member that can't have them in time is refused.
func (x *member) fetch(s *memberSpec, then func()) {
	if s.from == 0 {
		then()
		return
	}
	x.fetching = true
	f := &fetching{x: x, began: x.d.m.r.now, done: func(why string) {
		x.fetching = false
		if why != "" {
			x.become(api.MemberActual{Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameUnknown, Text: "checkpoint: " + why}})
			return
		}
		then()
	}}
	for _, rank := range s.ranks {
		f.want(slot{api.MemberKey{Job: x.key.Job, Epoch: s.from}, -1, rank}, &api.Call{MemberKey: x.key, Rank: rank,
			Get: &api.CheckpointGet{Rank: rank, Epoch: s.from}})
	}
	f.next()
}

// fetching gets checkpoints, one after the other.
type fetching struct {
	x     *member
	calls []*api.Call
	from  []slot
	began time.Duration
	done  func(why string) // empty: all are here
}

func (f *fetching) want(from slot, c *api.Call) {
	f.calls, f.from = append(f.calls, c), append(f.from, from)
}

func (f *fetching) next() {
	m := f.x.d.m
	if len(f.calls) == 0 {
		f.done("")
		return
	}
	if m.r.now-f.began > m.r.set.StartTimeout {
		f.done("no answer")
		return
	}
	answered := false
	m.call(f.calls[0], "", func(out string, err error) {
		if answered || f.x.d.gone() || err != nil && api.CodeOf(err) == api.CodeUnavailable {
			return
		}
		answered = true
		if err != nil {
			f.done(err.Error())
			return
		}
		m.r.truth.restored(f.x.key, f.from[0], out)
		f.calls, f.from = f.calls[1:], f.from[1:]
		f.next()
	})
	f.x.d.after(time.Second, func() {
		if !answered {
			answered = true
			f.next()
		}
	})
}

// stepFile is how far the checkpoints are that the tasks of a step start from, as in package
// noded.
type stepFile struct {
	here bool
	why  string
}

// startable cuts the ordered steps before the first whose checkpoints are still on their way.
func (x *member) startable(steps []api.StepOrder) []api.StepOrder {
	for i := range steps {
		o := &steps[i]
		if o.From == nil || o.Stop || x.knows(o.ID) {
			continue
		}
		f := x.files[o.ID]
		if f == nil {
			f = &stepFile{}
			if x.files == nil {
				x.files = map[int]*stepFile{}
			}
			x.files[o.ID] = f
			x.fetchStep(*o, f)
		}
		if !f.here {
			return steps[:i:i]
		}
		o.Refused = f.why
	}
	return steps
}

// knows: the shim has been told of a step, or it is over.
func (x *member) knows(id int) bool {
	return slices.ContainsFunc(x.actual.Steps, func(a api.StepActual) bool { return a.ID == id })
}

func (x *member) fetchStep(o api.StepOrder, file *stepFile) {
	f := &fetching{x: x, began: x.d.m.r.now, done: func(why string) {
		file.here, file.why = true, why
		x.poke()
	}}
	for _, task := range o.Numbers {
		from := slot{api.MemberKey{Job: x.key.Job, Epoch: o.From.Epoch}, o.From.Step, task}
		f.want(from, &api.Call{MemberKey: x.key, Step: &o.ID, Rank: task, Get: &api.CheckpointGet{Rank: task, From: o.From}})
	}
	x.d.m.r.truth.whole(x.key, &o)
	f.next()
}
