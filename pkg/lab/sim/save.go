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
	text := fmt.Sprintf("%d.%d.%d %d", p.key.Job, p.key.Epoch, p.rank, p.m.nextPID)
	call := &api.Call{MemberKey: p.key, Rank: p.rank, Put: &api.CheckpointPut{Key: text}}
	p.m.call(call, text, func(_ string, err error) {
		if err == nil {
			p.m.r.truth.saved(p)
		}
	})
}

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
	began := x.d.m.r.now
	missing := slices.Clone(s.ranks)
	x.fetchNext(s, missing, began, then)
}

func (x *member) fetchNext(s *memberSpec, missing []int, began time.Duration, then func()) {
	m := x.d.m
	if len(missing) == 0 {
		x.fetching = false
		then()
		return
	}
	if m.r.now-began > m.r.set.StartTimeout {
		x.refuseFetch("no answer")
		return
	}
	answered := false
	m.call(&api.Call{MemberKey: x.key, Rank: missing[0], Get: &api.CheckpointGet{Rank: missing[0], Epoch: s.from}}, "", func(out string, err error) {
		if answered || x.d.gone() || err != nil && api.CodeOf(err) == api.CodeUnavailable {
			return
		}
		answered = true
		if err != nil {
			x.refuseFetch(err.Error())
			return
		}
		m.r.truth.restored(x.key, missing[0], s.from, out)
		x.fetchNext(s, missing[1:], began, then)
	})
	x.d.after(time.Second, func() {
		if !answered {
			answered = true
			x.fetchNext(s, missing, began, then)
		}
	})
}

func (x *member) refuseFetch(text string) {
	x.fetching = false
	x.become(api.MemberActual{Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameUnknown, Text: "checkpoint: " + text}})
}
