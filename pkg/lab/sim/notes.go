package sim

import (
	"reflect"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
)

// voice is what one process of a member has said, as the shim keeps it that has its socket.
type voice struct {
	step    int // -1: a rank
	note    api.RankNote
	silence watchdog.Silence
	ended   bool
}

// say puts something in a process's note.
func (p *proc) say(f func(n *api.RankNote)) {
	if p.ended || p.killed || p.s.dead {
		return
	}
	v := p.s.voice(p)
	before := v.note
	f(&v.note)
	if v.note.Ready != before.Ready || v.note.Stopping != before.Stopping || v.note.Saved != before.Saved || v.note.Silent != before.Silent {
		p.s.tellNotes()
	}
}

// voice is that of a process, made with its first word.
func (s *shimProc) voice(p *proc) *voice {
	step := -1
	if p.task() {
		step = p.launch.order.ID
	}
	for _, v := range s.voices {
		if v.step == step && v.note.Rank == p.rank {
			return v
		}
	}
	v := &voice{step: step, note: api.RankNote{Rank: p.rank}, silence: watchdog.Silence{Timeout: s.spec.body.Watch.StallTimeout}}
	s.voices = append(s.voices, v)
	return v
}

// beat says WATCHDOG=1 now and then, until the process hangs.
func (p *proc) beat() {
	if p.hung {
		return
	}
	p.say(func(n *api.RankNote) {
		n.Beats++
		n.Silent = false
		p.s.voice(p).silence.Beat(p.m.clocks().Mono)
	})
	p.after(p.job.StallTimeout/3, p.beat)
}

// hang is a process that does nothing any more.
func (p *proc) hang() {
	p.hung = true
	p.m.r.truth.hangs(p)
}

// listen finds who has fallen silent, and says when the next one will have.
func (s *shimProc) listen() (wait time.Duration) {
	now := s.m.clocks().Mono
	wait = shimPoll
	for _, v := range s.voices {
		if v.ended {
			v.silence.End()
		}
		if over := v.silence.Over(now); over != v.note.Silent {
			v.note.Silent = over
			s.tellNotes()
		}
		if at, ok := v.silence.Due(); ok && !v.note.Silent {
			wait = min(wait, at-now)
		}
	}
	return wait
}

// tellNotes has the daemon come for them.
func (s *shimProc) tellNotes() {
	if c := s.conn; c != nil {
		c.d.after(s.m.hop(), c.d.wakeSession)
	}
}

// heard is a member's note as it was told in this session.
func (d *daemon) note(x *member) (n api.MemberNote, news bool) {
	s := x.shim()
	if s == nil {
		return n, false
	}
	n = api.MemberNote{MemberKey: x.key, Watch: x.watch}
	for _, v := range s.voices {
		if v.step < 0 {
			n.Ranks = append(n.Ranks, v.note)
		} else {
			n.Tasks = append(n.Tasks, api.TaskNote{Step: v.step, RankNote: v.note, Ended: v.ended})
		}
	}
	if len(n.Ranks)+len(n.Tasks) == 0 && n.Watch == nil {
		return n, false
	}
	for i := range n.Ranks { // nobody here goes by the count of beats
		n.Ranks[i].Beats = min(n.Ranks[i].Beats, 1)
	}
	for i := range n.Tasks {
		n.Tasks[i].Beats = min(n.Tasks[i].Beats, 1)
	}
	return n, !reflect.DeepEqual(n, d.noted[x.key])
}

// check answers the controller's question whether the cards of a member work: they stand still
// when one of the gang does.
func (x *member) check(c *api.Check) {
	if c == nil || c.Round == x.round {
		return
	}
	x.round = c.Round
	x.d.after(time.Duration(max(c.Readings-1, 0))*c.Interval, func() {
		if x.gone || x.round != c.Round {
			return
		}
		f := &api.Finding{State: api.CardsBusy, Count: 1, Readings: 1, Cards: []api.CardFinding{{UUID: "simulated", State: api.CardsBusy,
			Utilization: 90}}}
		if x.d.m.r.truth.hung(x.key) {
			f = &api.Finding{State: api.CardsQuiet, Count: 1, Readings: c.Readings,
				Cards: []api.CardFinding{{UUID: "simulated", State: api.CardsQuiet}}}
		}
		x.watch = &api.WatchNote{Round: c.Round, Finding: f}
		x.d.wakeSession()
	})
}
