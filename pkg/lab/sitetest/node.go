package sitetest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/gang"
	"gangd/pkg/wire/session"
)

// Processes is how many processes of a member a signal reaches.
const Processes = 3

// node is a played node: what it has of members, and the files on its disk.
type node struct {
	s         *Site
	inventory api.Hello
	up        bool
	members   map[api.MemberKey]*api.MemberActual
	files     map[string]string // [Denied]: which its user may not read
	broken    map[string]string // cards by UUID, with what the node sees of them
}

func (s *Site) names() []string { return slices.Sorted(maps.Keys(s.nodes)) }

// Join opens the session of a node.
func (s *Site) Join(h api.Hello) {
	s.t.Helper()
	n := &node{s: s, inventory: h, members: map[api.MemberKey]*api.MemberActual{}, files: map[string]string{}, broken: map[string]string{}}
	n.inventory.Protocol = api.SessionProtocol
	s.nodes[h.Node] = n
	n.hello()
}

func (n *node) hello() {
	n.s.t.Helper()
	h := n.inventory
	for _, k := range slices.SortedFunc(maps.Keys(n.members), api.MemberKey.Compare) {
		h.Members = append(h.Members, *n.members[k])
	}
	_, err := n.s.NodeHello(n.s.t.Context(), &h)
	must(n.s.t, err)
	n.up = true
}

// Lose breaks the session of a node, which goes on.
func (s *Site) Lose(name string) {
	s.nodes[name].up = false
	s.NodeGone(name)
	s.tick()
}

// forget says of what is over and not wanted any more that it is gone.
func (n *node) forget() {
	if !n.up {
		return
	}
	all, _ := n.s.Desired(n.inventory.Node)
	for _, k := range slices.SortedFunc(maps.Keys(n.members), api.MemberKey.Compare) {
		wanted := slices.ContainsFunc(all, func(a api.Assignment) bool { return a.MemberKey == k && a.Body != nil })
		if !wanted && n.members[k].Phase == api.PhaseStopped {
			delete(n.members, k)
			n.s.NodeReport(n.inventory.Node, &api.Actual{Gone: []api.MemberKey{k}})
			n.s.tick()
		}
	}
}

// each changes what nodes have of a gang, and has them report it.
func (s *Site) each(id int64, change func(m *gang.Member, a *api.MemberActual)) {
	s.t.Helper()
	j := s.Job(id)
	for i := range j.Members {
		m := &j.Members[i]
		n := s.nodes[m.Node]
		key := api.MemberKey{Job: id, Epoch: j.Epoch}
		a := &api.MemberActual{MemberKey: key}
		if old := n.members[key]; old != nil {
			*a = *old
			a.Ranks, a.Steps = slices.Clone(a.Ranks), slices.Clone(a.Steps)
		}
		change(m, a)
		n.members[key] = a
		s.NodeReport(m.Node, &api.Actual{Members: []api.MemberActual{*a}})
		s.tick()
	}
	s.settle()
}

// Prepare has every member of a gang ready to start.
func (s *Site) Prepare(id int64) {
	s.t.Helper()
	s.each(id, func(m *gang.Member, a *api.MemberActual) {
		if a.Phase = api.PhaseReady; m.Ranks[0] == 0 {
			a.Port = 20000
		}
	})
}

// Start has every rank of a gang run, from now on. change, if there is one, says what else there is to say of it.
func (s *Site) Start(id int64, change ...func(*api.RankActual)) {
	s.t.Helper()
	now := s.clock.Now().Wall
	s.each(id, func(m *gang.Member, a *api.MemberActual) {
		a.Phase = api.PhaseRunning
		for _, rank := range m.Ranks {
			r := api.RankActual{Rank: rank, PID: int(id)*100 + rank, Started: now}
			for _, c := range change {
				c(&r)
			}
			a.Ranks = append(a.Ranks, r)
		}
	})
}

// Run is Prepare and Start at once.
func (s *Site) Run(id int64) {
	s.t.Helper()
	s.Prepare(id)
	s.Start(id)
}

// Exit ends one rank by itself.
func (s *Site) Exit(id int64, rank, code int) {
	s.t.Helper()
	now := s.clock.Now().Wall
	s.each(id, func(_ *gang.Member, a *api.MemberActual) {
		for i := range a.Ranks {
			if r := &a.Ranks[i]; r.Rank == rank {
				r.Exited, r.ExitCode, r.Ended, r.Own = true, code, now, true
			}
		}
	})
}

// End ends what runs of a gang and all that it left: how says it of each rank, and what else of the member.
func (s *Site) End(id int64, how func(*api.MemberActual, *api.RankActual)) {
	s.t.Helper()
	now := s.clock.Now().Wall
	s.each(id, func(_ *gang.Member, a *api.MemberActual) {
		a.Phase = api.PhaseStopped
		if d := s.Job(id).Drain; d != nil && d.Cause != api.CauseCompleted {
			a.Stopping = d.Cause
		}
		for i := range a.Ranks {
			if r := &a.Ranks[i]; !r.Exited {
				r.Exited, r.Ended = true, now
				how(a, r)
			}
		}
		for i := range a.Steps {
			if st := &a.Steps[i]; !st.Over {
				st.Over, st.Ended = true, now
			}
		}
	})
}

// Well is the end of a rank that did all that it had to.
func Well(_ *api.MemberActual, r *api.RankActual) { r.Own = true }

// Stopped is the end of a rank that heeded TERM.
func Stopped(_ *api.MemberActual, r *api.RankActual) { r.ExitCode, r.Signal = 143, 15 }

// Step begins a step of so many tasks in an allocation.
func (s *Site) Step(id int64, ask api.StepAsk) int {
	s.t.Helper()
	ask.Hosts, ask.Fingerprint = []string{"login:1"}, "0000000000000000000000000000000000000000000000000000000000000000"
	r, err := s.BeginStep(s.t.Context(), s.Job(id), &api.StepRequest{Key: ask.Name, Ask: ask})
	must(s.t, err)
	s.StepIs(id, api.StepActual{ID: r.StepID, PID: int(id)*100 + 50 + r.StepID, Started: s.clock.Now().Wall})
	return r.StepID
}

// StepIs is what the nodes of a step have of it.
func (s *Site) StepIs(id int64, st api.StepActual) {
	s.t.Helper()
	s.each(id, func(_ *gang.Member, a *api.MemberActual) {
		at := slices.IndexFunc(a.Steps, func(o api.StepActual) bool { return o.ID == st.ID })
		if at < 0 {
			a.Steps = append(a.Steps, st)
			return
		}
		st.PID, st.Started = a.Steps[at].PID, a.Steps[at].Started
		a.Steps[at] = st
	})
}

// Note is what ranks of a job on one node have said.
func (s *Site) Note(id int64, node string, notes ...api.RankNote) {
	s.t.Helper()
	s.NodeNotes(node, []api.MemberNote{{MemberKey: api.MemberKey{Job: id, Epoch: s.Job(id).Epoch}, Ranks: notes}})
}

// NodeDo is what Ada does to a node: drain or resume.
func (s *Site) NodeDo(action, name, reason string) {
	s.t.Helper()
	must(s.t, s.NodeAction(s.t.Context(), action, name, &api.NodeAction{Reason: reason}, engine.Caller{UID: Ada.UID, User: Ada.User,
		Admin: true}))
}

// Sample is what the cards of a node are seen doing.
func (s *Site) Sample(name string, cards ...api.CardSample) {
	for _, c := range cards {
		s.nodes[name].broken[c.UUID] = c.Unhealthy
	}
	s.NodeSample(name, cards)
	s.tick()
}

// Denied is the text of a file that its user may not read.
const Denied = "\x00"

// File is a file on a node's disk.
func (s *Site) File(node, path, text string) { s.nodes[node].files[path] = text }

// hub is the sessions with the nodes of a site.
type hub struct{ *Site }

// Wake is nothing: the test says when a node answers.
func (hub) Wake([]string) {}

// AppendLog is the engine's, for [api.Spec.Report]: no job here asks for one.
func (h hub) AppendLog(_ context.Context, name string, _ api.LogAppend) error {
	_, err := h.reached(name)
	return err
}

// Stacks is where [Processes] of a member are: nobody was looked at.
func (h hub) Stacks(_ context.Context, name string, _ api.MemberKey) (*api.MemberStacks, error) {
	_, err := h.reached(name)
	return &api.MemberStacks{}, err
}

func (h hub) reached(name string) (*node, error) {
	if n := h.nodes[name]; n != nil && n.up {
		return n, nil
	}
	return nil, api.Errorf(api.CodeUnavailable, "node %s is not connected", name)
}

// Signal reaches [Processes] of a member.
func (h hub) Signal(_ context.Context, name string, _ api.SignalOrder) (int, error) {
	_, err := h.reached(name)
	return Processes, err
}

// ResumeCard agrees, unless the node sees that the card is broken.
func (h hub) ResumeCard(_ context.Context, name, uuid string) error {
	n, err := h.reached(name)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(n.inventory.Cards, func(c api.CardInfo) bool { return c.UUID == uuid })
	if why := n.broken[uuid]; why != "" {
		return api.Errorf(api.CodeConflict, "card %d stays out of service: %s", at, why)
	}
	return nil
}

// ReadLog gives a file, and of one that is followed nothing more until the reader goes away; one that is not there may
// come.
func (h hub) ReadLog(ctx context.Context, name string, q api.LogRead, w io.Writer) error {
	n, err := h.reached(name)
	if err != nil {
		return err
	}
	text, ok := n.files[q.Path]
	switch {
	case text == Denied:
		return api.Errorf(api.CodePermission, "open %s: permission denied", q.Path)
	case !ok && !q.Follow:
		return api.Errorf(api.CodeNotFound, "open %s: no such file or directory", q.Path)
	}
	from := q.Offset
	if from < 0 {
		from += int64(len(text))
	}
	from = min(max(0, from), int64(len(text)))
	session.Began(w, from)
	if _, err := io.WriteString(w, text[from:]); err != nil || !q.Follow {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// Serve and Witness: no node comes by HTTP.
func (hub) Serve(w http.ResponseWriter, _ *http.Request, _ string) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// Witness is described at Serve.
func (h hub) Witness(w http.ResponseWriter, r *http.Request, name string) { h.Serve(w, r, name) }
