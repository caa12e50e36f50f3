package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

const cardBytes = 80 << 30

// short is the name of jobs that end at once, well.
const short = "short"

// node is a node daemon without processes: it speaks the real session, says of each order at once
// that it was carried out, and runs nothing.
type node struct {
	hello  api.Hello
	client *session.Client
	seen   *seen

	mu      sync.Mutex
	members map[api.MemberKey]*member
	changed map[api.MemberKey]bool
	gone    []api.MemberKey
	asked   uint64 // revision of the newest orders
	sampled bool   // the cards were told in this session
}

type member struct {
	ranks  []int
	cards  []api.CardSample // its own, with nothing on them
	first  bool             // has rank 0
	short  bool
	actual api.MemberActual
}

// seen is what all nodes together have seen.
type seen struct {
	up, downs, running, gone, stopped atomic.Int64
	started                           atomic.Int64 // when the newest member was, Unix nanoseconds
}

func (s *seen) lastStart() time.Time { return time.Unix(0, s.started.Load()) }

func newNode(socket string, i, cards int, s *seen) *node {
	name := fmt.Sprintf("n%05d", i)
	n := &node{seen: s, members: map[api.MemberKey]*member{}, changed: map[api.MemberKey]bool{},
		hello: api.Hello{Node: name, StateID: name, Version: api.Version, BootID: name, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255,
			i&255),
			Containment: "fake", CPUs: 128, MemoryBytes: 1 << 40}}
	for c := range cards {
		n.hello.Cards = append(n.hello.Cards, api.CardInfo{Index: c, UUID: fmt.Sprintf("GPU-%08x-%04x-4000-8000-%012x", i, c, i),
			Model:     "NVIDIA H100 80GB HBM3",
			VRAMBytes: cardBytes, NUMA: c * 2 / cards})
	}
	n.client = session.NewClient(session.Options{Controllers: []string{"unix:" + socket}, Agent: n, Log: slog.New(slog.DiscardHandler)})
	return n
}

func (n *node) Hello() *api.Hello {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hello
	h.Members = []api.MemberActual{}
	for _, m := range n.members {
		h.Members = append(h.Members, m.actual)
	}
	n.sampled = false
	return &h
}

func (n *node) Welcome(*api.Welcome)   { n.seen.up.Add(1) }
func (n *node) Down(error)             { n.seen.downs.Add(1); n.seen.up.Add(-1) }
func (n *node) Lineage(uint64, string) {}
func (n *node) Settings(*api.Settings) {}

func (n *node) Desired(d *api.Desired) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = d.Revision
	for i := range d.Assignments {
		n.order(&d.Assignments[i])
	}
	for _, k := range d.Forget {
		if m := n.members[k]; m != nil && m.actual.Phase == api.PhaseRunning {
			n.seen.stopped.Add(int64(len(m.ranks)))
		}
		delete(n.members, k)
		delete(n.changed, k)
		n.gone = append(n.gone, k)
		n.seen.gone.Add(1)
	}
	n.client.Wake()
}

func (n *node) order(a *api.Assignment) {
	m := n.members[a.MemberKey]
	if m == nil {
		if a.Body == nil {
			n.gone = append(n.gone, a.MemberKey)
			return
		}
		m = &member{actual: api.MemberActual{MemberKey: a.MemberKey, Phase: api.PhaseReady}, short: a.Body.Name == short}
		for r, p := range a.Body.Ranks {
			if a.Body.Nodes[p.Node].Name == n.hello.Node {
				m.ranks = append(m.ranks, r)
				m.first = m.first || r == 0
				for _, uuid := range p.Cards {
					m.cards = append(m.cards, api.CardSample{UUID: uuid})
				}
			}
		}
		if m.first {
			m.actual.Port = 20000
		}
		n.members[a.MemberKey] = m
		n.changed[a.MemberKey] = true
	}
	x := &m.actual
	switch now := time.Now(); {
	case a.Stop != nil && x.Phase != api.PhaseStopped:
		x.Phase, x.Stopping = api.PhaseStopped, a.Stop.Cause
		n.seen.stopped.Add(int64(len(m.ranks)))
		for i := range x.Ranks {
			r := &x.Ranks[i]
			r.Exited, r.Signal, r.ExitCode, r.Ended = true, 15, 143, now
		}
		x.Cards = m.cards
		n.changed[a.MemberKey] = true
	case a.Gate != nil && x.Phase == api.PhaseReady:
		x.Phase = api.PhaseRunning
		for _, r := range m.ranks {
			x.Ranks = append(x.Ranks, api.RankActual{Rank: r, PID: 1000 + r, Started: now})
		}
		if m.short {
			x.Phase = api.PhaseStopped
			for i := range x.Ranks {
				r := &x.Ranks[i]
				r.Exited, r.Own, r.Ended = true, true, now
			}
			x.Cards = m.cards
		}
		n.changed[a.MemberKey] = true
		n.seen.started.Store(now.UnixNano())
		n.seen.running.Add(1)
	}
}

func (n *node) idle() []api.CardSample {
	out := make([]api.CardSample, len(n.hello.Cards))
	for i, c := range n.hello.Cards {
		out[i].UUID = c.UUID
	}
	return out
}

func (n *node) Report() *api.Actual {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.changed) == 0 && len(n.gone) == 0 {
		return nil
	}
	a := &api.Actual{Revision: n.asked, Gone: n.gone}
	for k := range n.changed {
		a.Members = append(a.Members, n.members[k].actual)
	}
	clear(n.changed)
	n.gone = nil
	return a
}

func (n *node) Load() *api.NodeLoad { return nil }
func (n *node) Samples() []api.CardSample {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sampled {
		return nil
	}
	n.sampled = true
	return n.idle()
}

func (n *node) Notes() []api.MemberNote                              { return nil }
func (n *node) Signal(context.Context, api.SignalOrder) (int, error) { return 0, nil }
func (n *node) ResumeCard(context.Context, string) error             { return nil }
func (n *node) Reboot(*api.RebootOrder)                              {}
func (n *node) Keep(session.Kept) error                              { return nil }
func (n *node) AppendLog(context.Context, api.LogAppend) error       { return nil }
func (n *node) Stacks(context.Context, api.MemberKey) (*api.MemberStacks, error) {
	return &api.MemberStacks{}, nil
}
func (n *node) ReadLog(context.Context, api.LogRead, io.Writer) error {
	return api.Errorf(api.CodeNotFound, "a node without processes has no logs")
}
