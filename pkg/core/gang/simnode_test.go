package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// simNode is one machine.
type simNode struct {
	name    string
	boot    int
	session bool
	opens   bool // the gate of a gang that it has alone
	contact time.Duration
	members map[api.MemberKey]*simMember
	outbox  []api.Actual
	said    []api.Actual // in this session, for what comes twice and late
}

type simMember struct {
	api.MemberActual
	live  map[int]bool // ranks whose process exists
	slots []int
	batch bool // holds the containment only
}

// settle lets the nodes that are cut off end what their lease does not cover any more.
func (s *story) settle() {
	for _, n := range s.nodes {
		if n.session || s.now.Mono < n.contact+s.w.set.Lease+s.w.set.Grace {
			continue
		}
		for _, m := range n.members {
			m.end(143, api.CauseNodeLost)
		}
	}
}

func (m *simMember) end(code int, why api.Cause) {
	if len(m.live) > 0 || m.batch && m.Phase == api.PhaseRunning {
		m.Stopping = why
	}
	for _, r := range slices.Sorted(maps.Keys(m.live)) {
		m.exit(r, code)
	}
	if m.Phase != api.PhaseRefused && m.Phase != api.PhaseLost {
		m.Phase = api.PhaseStopped
		cpu, idle := 1e6, 1e6 // more than there was
		m.Measure = &api.Measure{Seconds: 1e6, CPUSeconds: &cpu}
		for i := range 16 { // its own, and others
			m.Measure.Cards = append(m.Measure.Cards, api.CardMeasure{UUID: fmt.Sprintf("GPU-n%d-%d", i/4+1, i%4), Utilization: &api.Figure{Seconds: 1e6, Mean: 50}, IdleSeconds: &idle})
		}
	}
}

func (m *simMember) exit(rank, code int) {
	delete(m.live, rank)
	for i := range m.Ranks {
		if m.Ranks[i].Rank == rank {
			m.Ranks[i].Exited, m.Ranks[i].ExitCode, m.Ranks[i].Signal = true, code, max(code-128, 0)
		}
	}
}

// obey lets a node act on what it is told now.
func (s *story) obey(n *simNode) {
	if !n.session {
		return
	}
	as := s.w.Desired(n.name)
	want := map[api.MemberKey]bool{}
	for _, a := range as {
		m := n.members[a.MemberKey]
		if a.Body == nil {
			if m == nil {
				n.send(api.Actual{Gone: []api.MemberKey{a.MemberKey}})
			}
			continue
		}
		want[a.MemberKey] = true
		switch {
		case m == nil && a.Stop != nil:
			n.send(api.Actual{Gone: []api.MemberKey{a.MemberKey}})
		case m == nil && a.Gate != nil && !a.Gate.Alone:
			// It was prepared before; this node has lost it since and must not begin anew.
			n.send(api.Actual{Gone: []api.MemberKey{a.MemberKey}})
		case m == nil:
			n.members[a.MemberKey] = newMember(n, a)
		case a.Stop != nil && m.Phase != api.PhaseStopped:
			if rapid.IntRange(0, 3).Draw(s.rt, "resists") > 0 {
				m.end(143, a.Stop.Cause)
			} else {
				m.Phase = api.PhaseStuck
				m.Stopping = a.Stop.Cause
			}
			n.tell(m)
		case a.Gate != nil && m.Phase == api.PhaseReady:
			s.begin(n, m, a)
		}
	}
	for k := range n.members {
		if !want[k] {
			delete(n.members, k) // killed and forgotten
			n.send(api.Actual{Gone: []api.MemberKey{k}})
		}
	}
}

func newMember(n *simNode, a api.Assignment) *simMember {
	m := &simMember{MemberActual: api.MemberActual{MemberKey: a.MemberKey, Phase: api.PhasePreparing}, live: map[int]bool{}}
	for r, p := range a.Body.Ranks {
		if a.Body.Nodes[p.Node].Name == n.name {
			m.slots = append(m.slots, r)
		}
	}
	return m
}

func (s *story) begin(n *simNode, m *simMember, a api.Assignment) {
	for _, p := range a.Body.Nodes {
		if !s.prepared[fmt.Sprint(p.Name, a.MemberKey)] {
			s.rt.Fatalf("I2: job %d starts on %s before %s is prepared", a.Job, n.name, p.Name)
		}
	}
	m.Phase = api.PhaseRunning
	s.began[a.MemberKey] = true
	for _, r := range m.slots {
		if s.w.Job(a.Job).Spec.Launch == api.LaunchBatch && r > 0 {
			m.batch = true
			continue
		}
		m.batch = false
		m.live[r] = true
		m.Ranks = append(m.Ranks, api.RankActual{Rank: r, PID: 100*a.Epoch + r})
	}
	n.tell(m)
}

// tell queues the state of a member as a report.
func (n *simNode) tell(m *simMember) {
	n.send(api.Actual{Members: []api.MemberActual{copyOf(m)}})
}

func copyOf(m *simMember) api.MemberActual {
	c := m.MemberActual
	c.Ranks = slices.Clone(c.Ranks)
	return c
}

func (n *simNode) send(a api.Actual) {
	n.outbox = append(n.outbox, a)
	n.said = append(n.said, a)
}

func (s *story) connect(n *simNode) {
	n.session, n.outbox, n.said = true, nil, nil
	h := helloOf(n.name)
	h.Hello.BootID, h.Hello.Opens, h.Hello.Reboots = fmt.Sprint("boot-", n.boot), n.opens, true
	for _, k := range slices.SortedFunc(maps.Keys(n.members), api.MemberKey.Compare) {
		h.Hello.Members = append(h.Hello.Members, copyOf(n.members[k]))
	}
	s.do(h)
}

func (s *story) cut(n *simNode) {
	n.session, n.outbox, n.contact = false, nil, s.now.Mono
	s.do(NodeGone{Node: n.name})
}

// settleDown lets the nodes in contact do what they are told, and say so.
func (s *story) settleDown() {
	for _, n := range s.nodes {
		if !n.session {
			continue
		}
		s.obeyCalmly(n)
		for len(n.outbox) > 0 {
			a := n.outbox[0]
			n.outbox = n.outbox[1:]
			s.do(NodeReport{Node: n.name, Actual: a})
		}
	}
}

// calm lets everything that is under way come to its end, without new faults: then each
// gang must have come somewhere (I7).
func (s *story) calm() {
	for round := 0; round < 60; round++ {
		for _, n := range s.nodes {
			if !n.session {
				s.connect(n)
			}
			s.calmNode(n)
		}
		s.pass(20 * time.Second)
	}
	for j := range s.w.Jobs() {
		if j.Drain != nil || reserved(j) {
			s.rt.Fatalf("I7: job %d is %s after twenty minutes without faults: %s", j.ID, JobState(j), text(j))
		}
		if s.w.Fenced(j.ID) != nil {
			s.rt.Fatalf("I7: job %d waits for %v", j.ID, s.w.Fenced(j.ID))
		}
	}
}

func (s *story) calmNode(n *simNode) {
	as := s.w.Desired(n.name)
	stop := map[api.MemberKey]*api.Stop{}
	for _, a := range as {
		stop[a.MemberKey] = a.Stop
	}
	for _, k := range slices.SortedFunc(maps.Keys(n.members), api.MemberKey.Compare) {
		m := n.members[k]
		if m.Phase == api.PhasePreparing {
			m.Phase = api.PhaseReady
			s.prepared[fmt.Sprint(n.name, k)] = true
		}
		if m.Phase == api.PhaseStuck || stop[k] != nil {
			m.end(143, m.Stopping)
		}
		n.tell(m)
	}
	s.obeyCalmly(n)
	for len(n.outbox) > 0 && n.session {
		a := n.outbox[0]
		n.outbox = n.outbox[1:]
		s.do(NodeReport{Node: n.name, Actual: a})
	}
}

// obeyCalmly is obey of a node on which a stop works.
func (s *story) obeyCalmly(n *simNode) {
	as := s.w.Desired(n.name)
	for _, a := range as {
		if m := n.members[a.MemberKey]; m != nil && a.Stop != nil {
			m.end(143, a.Stop.Cause)
			n.tell(m)
		}
	}
	s.obey(n)
}
