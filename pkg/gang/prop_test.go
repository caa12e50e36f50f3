package gang

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// story is a world among simulated nodes: they do what they are told, late; they lose
// their session, reboot, refuse, crash and hang. What really lives on them is the truth
// that the world is held against.
type story struct {
	*bench
	rt     *rapid.T
	nodes  []*simNode
	saved  map[int64]*Job // what a store has after each commit
	ranks  map[int64][]Rank
	rows   map[string]*Node
	keys   map[string]int64
	nextID int64
	seq    int64

	base   []byte // Saved at the last restart, and what happened since
	baseAt Instant
	events []recorded

	published []print
	exits     map[string]int
	verdicts  map[int64]Verdict
	cancelled map[int64]int
	prepared  map[string]bool
	known     map[string]int // submission key -> count of ids
}

type recorded struct {
	at Instant
	ev Event
	ch string
}

type print struct {
	v    any
	text string
}

// simNode is one machine.
type simNode struct {
	name    string
	boot    int
	session bool
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

func newStory(rt *rapid.T, t *testing.T) *story {
	set := settings()
	set.Lease = 2 * time.Minute
	set.RetryBackoff = time.Second
	s := &story{bench: &bench{t: t, w: New(set), now: Instant{Wall: epoch0, Mono: time.Hour}}, rt: rt,
		saved: map[int64]*Job{}, ranks: map[int64][]Rank{}, rows: map[string]*Node{}, keys: map[string]int64{},
		exits: map[string]int{}, verdicts: map[int64]Verdict{}, cancelled: map[int64]int{}, prepared: map[string]bool{}, known: map[string]int{}}
	s.rebase()
	for i := range rapid.IntRange(2, 4).Draw(rt, "nodes") {
		n := &simNode{name: fmt.Sprintf("n%d", i+1), members: map[api.MemberKey]*simMember{}}
		s.nodes = append(s.nodes, n)
		s.connect(n)
	}
	return s
}

// do steps and commits, and holds the world against the truth.
func (s *story) do(ev Event) Outcome {
	s.settle() // the clock of the nodes first: a lease that ran out has ended its processes
	out := s.w.Step(s.now, ev)
	if bad := s.w.Verify(); len(bad) > 0 {
		s.rt.Fatalf("after %T %+v: %q", ev, ev, bad)
	}
	if !out.Applied && out.Refused == nil && out.Ignored == "" {
		s.rt.Fatalf("%T: no outcome", ev)
	}
	ch := s.w.Take()
	s.events = append(s.events, recorded{s.now, ev, text(ch)})
	s.commit(&ch)
	s.truth()
	return out
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (s *story) commit(ch *Changes) {
	for _, j := range ch.Jobs {
		s.published = append(s.published, print{j, text(j)})
		s.saved[j.ID] = j
		if len(s.ranks[j.ID]) == 0 {
			s.ranks[j.ID] = make([]Rank, len(j.Ranks))
		}
		if j.Key != "" {
			s.keys[j.Key] = j.ID
		}
		s.judge(j)
	}
	for _, r := range ch.Ranks {
		if was := s.ranks[r.Job][r.Index].State; was != r.Rank.State && !slices.Contains(RankMoves[was], r.Rank.State) {
			s.rt.Fatalf("rank %d of job %d: %s to %s in one commit", r.Index, r.Job, was, r.Rank.State)
		}
		s.ranks[r.Job][r.Index] = r.Rank
	}
	for _, n := range append(slices.Clone(ch.Nodes), ch.Seen...) {
		s.published = append(s.published, print{n, text(n)})
	}
	for _, n := range ch.Nodes {
		s.rows[n.Name] = n
	}
	for _, ev := range ch.Events {
		if ev.Seq != s.seq+1 {
			s.rt.Fatalf("event %d after %d", ev.Seq, s.seq)
		}
		s.seq = ev.Seq
		if ev.Type == api.EventRankExited {
			k := fmt.Sprint(ev.JobID, ev.Epoch, *ev.Rank)
			if s.exits[k]++; s.exits[k] > 1 {
				s.rt.Fatalf("I4: exit %s recorded twice", k)
			}
		}
	}
	for _, id := range ch.Purged {
		if s.saved[id].Verdict == nil {
			s.rt.Fatalf("I3: job %d left memory alive", id)
		}
		delete(s.saved, id)
		delete(s.ranks, id)
	}
	if ch.NextID < s.nextID {
		s.rt.Fatalf("I3: next id went back")
	}
	s.nextID = ch.NextID
}

// judge checks what must hold for each job over time.
func (s *story) judge(j *Job) {
	if v, over := s.verdicts[j.ID]; over && (j.Verdict == nil || *j.Verdict != v) {
		s.rt.Fatalf("I4: job %d ended twice: %+v, %+v", j.ID, v, j.Verdict)
	}
	if j.Verdict != nil {
		s.verdicts[j.ID] = *j.Verdict
	}
	if at, ok := s.cancelled[j.ID]; ok && j.Epoch != at {
		s.rt.Fatalf("I8: epoch %d after the cancel at %d", j.Epoch, at)
	}
}

// truth holds the world against the processes that exist.
func (s *story) truth() {
	lives := map[string]api.MemberKey{}
	for _, n := range s.nodes {
		for k, m := range n.members {
			if _, held := s.w.Node(n.name).Res.Grant(k); !held && (len(m.live) > 0 || m.Phase == api.PhasePreparing || m.Phase == api.PhaseReady) {
				s.rt.Fatalf("I5: job %d epoch %d is %s on %s without a grant", k.Job, k.Epoch, m.Phase, n.name)
			}
			for r := range m.live {
				id := fmt.Sprint(k.Job, "/", r)
				if other, twice := lives[id]; twice {
					s.rt.Fatalf("I1: rank %s lives in epochs %d and %d", id, other.Epoch, k.Epoch)
				}
				lives[id] = k
			}
			for other := range lives {
				if lives[other].Job == k.Job && lives[other].Epoch != k.Epoch {
					s.rt.Fatalf("I1: job %d lives in epochs %d and %d", k.Job, lives[other].Epoch, k.Epoch)
				}
			}
		}
	}
	for _, n := range s.w.Nodes() {
		cpus := 0
		for _, g := range n.Res.Grants {
			cpus += g.CPUs
		}
		if cpus > n.Res.CPUs {
			s.rt.Fatalf("I5: %d of %d CPUs on %s", cpus, n.Res.CPUs, n.Name)
		}
	}
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
	}
}

func (m *simMember) exit(rank, code int) {
	delete(m.live, rank)
	for i := range m.Ranks {
		if m.Ranks[i].Rank == rank {
			m.Ranks[i].Exited, m.Ranks[i].ExitCode = true, code
		}
	}
}

// obey lets a node act on what it is told now.
func (s *story) obey(n *simNode) {
	if !n.session {
		return
	}
	as, _ := s.w.Desired(n.name)
	want := map[api.MemberKey]bool{}
	for _, a := range as {
		want[a.MemberKey] = true
		m := n.members[a.MemberKey]
		switch {
		case m == nil && a.Stop != nil:
			n.send(api.Actual{Gone: []api.MemberKey{a.MemberKey}})
		case m == nil && a.Gate != nil:
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
	h.Hello.BootID = fmt.Sprint("boot-", n.boot)
	for _, k := range slices.SortedFunc(maps.Keys(n.members), compareKeys) {
		h.Hello.Members = append(h.Hello.Members, copyOf(n.members[k]))
	}
	s.do(h)
}

func (s *story) cut(n *simNode) {
	n.session, n.outbox, n.contact = false, nil, s.now.Mono
	s.do(NodeGone{Node: n.name})
}

func (s *story) node() *simNode { return rapid.SampledFrom(s.nodes).Draw(s.rt, "node") }

func (s *story) job() int64 { return rapid.Int64Range(1, max(s.w.nextID, 2)).Draw(s.rt, "job") }

func (s *story) member(n *simNode) *simMember {
	if len(n.members) == 0 {
		s.rt.Skip("nothing there")
	}
	k := rapid.SampledFrom(slices.SortedFunc(maps.Keys(n.members), compareKeys)).Draw(s.rt, "member")
	return n.members[k]
}

// rebase remembers what is stored now as the begin of what determinism is checked on.
func (s *story) rebase() {
	s.base, s.baseAt, s.events = []byte(text(s.stored())), s.now, nil
}

// stored is what a store would give back: rows, not pointers of the old world.
func (s *story) stored() *Saved {
	out := &Saved{Keys: s.keys, NextID: max(s.nextID, 1), NextSeq: s.seq + 1}
	for _, id := range slices.Sorted(maps.Keys(s.saved)) {
		j := *s.saved[id]
		j.Ranks = s.ranks[id]
		out.Jobs = append(out.Jobs, &j)
	}
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		out.Nodes = append(out.Nodes, s.rows[name])
	}
	return out
}

func decode(data []byte) *Saved {
	var out Saved
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return &out
}

// restart replaces the world by one made from what was stored, and compares the two.
func (s *story) restart() {
	old := s.w
	s.rebase()
	s.w = Restore(s.now, old.set, decode(s.base))
	if bad := s.w.Verify(); len(bad) > 0 {
		s.rt.Fatalf("restored: %q", bad)
	}
	if d := cmp.Diff(observable(old), observable(s.w)); d != "" {
		s.rt.Fatalf("restored (-before +after):\n%s", d)
	}
	for _, n := range s.nodes {
		if n.session {
			n.session, n.contact, n.outbox = false, s.now.Mono, nil
		}
	}
}

// observable is what a restart must not change.
func observable(w *World) []string {
	var out []string
	for j := range w.Jobs() {
		out = append(out, text(j), string(JobState(j)), fmt.Sprint(w.Fenced(j.ID)))
		if j.Array == nil {
			out = append(out, fmt.Sprint("candidate ", w.Candidate(j.ID) != nil))
		}
	}
	for _, n := range w.Nodes() {
		out = append(out, n.Name, text(n.Left), text(n.Res.Grants), n.Admin, fmt.Sprint(n.Strikes, n.LostSince))
		as, _ := w.Desired(n.Name)
		out = append(out, text(as))
	}
	return append(out, fmt.Sprint(w.nextID, w.nextSeq, len(w.keys)))
}

func (s *story) submitAny(t *rapid.T) {
	spec := specOf(rapid.IntRange(1, 4).Draw(t, "size"))
	spec.NoRequeue = rapid.IntRange(0, 5).Draw(t, "no requeue") == 0
	if rapid.IntRange(0, 3).Draw(t, "batch") == 0 {
		spec.Launch = api.LaunchBatch
	}
	if rapid.Bool().Draw(t, "retries") {
		spec.MaxRetries = intPtr(rapid.IntRange(0, 2).Draw(t, "max retries"))
	}
	if rapid.IntRange(0, 3).Draw(t, "notice") == 0 {
		spec.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	}
	ev := Submit{Spec: spec, SpecHash: fmt.Sprint("h", s.nextID), Partition: "main", Key: rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(t, "key")}
	if rapid.IntRange(0, 4).Draw(t, "array") == 0 {
		ev.Array = &api.Array{Indices: []int{1, 2, 3}, Limit: rapid.IntRange(0, 2).Draw(t, "limit")}
	}
	before := s.w.nextID
	out := s.do(ev)
	if out.Applied && out.JobIDs[0] != before || !out.Applied && s.w.nextID != before {
		s.rt.Fatalf("ids %v, next was %d", out.JobIDs, before)
	}
}

func (s *story) reserveAny(t *rapid.T) {
	var ids []int64
	for j := range s.w.Jobs() {
		if s.w.Candidate(j.ID) != nil {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) == 0 || rapid.IntRange(0, 9).Draw(t, "any job") == 0 {
		ids = []int64{s.job()}
	}
	r := Reserve{Job: rapid.SampledFrom(ids).Draw(t, "candidate")}
	size := 1
	if j := s.w.Job(r.Job); j != nil {
		size = len(j.Ranks)
	}
	for range size {
		r.Slots = append(r.Slots, cluster.Slot{Node: s.node().name})
	}
	s.do(r)
}

func (s *story) actions() map[string]func(*rapid.T) {
	reserve := func(t *rapid.T) { s.reserveAny(t) }
	obey := func(t *rapid.T) { s.obey(s.node()) }
	deliver := func(t *rapid.T) { s.deliver(t) }
	return map[string]func(*rapid.T){
		"submit":  func(t *rapid.T) { s.submitAny(t) },
		"reserve": reserve, "reserve2": reserve, "obey": obey, "obey2": obey, "obey3": obey,
		"deliver": deliver, "deliver2": deliver, "deliver3": deliver,
		"prepare": func(t *rapid.T) { s.prepareAny(t) }, "prepare2": func(t *rapid.T) { s.prepareAny(t) },
		"launch": func(t *rapid.T) { s.launch(t) }, "launch2": func(t *rapid.T) { s.launch(t) },
		"echo": func(t *rapid.T) { s.echo(t) }, "echo2": func(t *rapid.T) { s.echo(t) }, "echo3": func(t *rapid.T) { s.echo(t) },
		"settle": func(t *rapid.T) { s.settleDown() }, "settle2": func(t *rapid.T) { s.settleDown() },
		"lose a node": func(t *rapid.T) {
			n := s.node()
			if !n.session || len(n.members) == 0 {
				t.Skip()
			}
			s.cut(n)
			s.pass(31 * time.Second)
			s.settleDown()
			s.launch(t)
		},
		"all is well": func(t *rapid.T) { s.calm() },
		"exit":        func(t *rapid.T) { s.exitAny(t) },
		"stop by itself": func(t *rapid.T) {
			n := s.node()
			m := s.member(n)
			if m.Phase != api.PhaseRunning {
				t.Skip()
			}
			m.end(143, rapid.SampledFrom([]api.Cause{api.CauseTimeout, api.CauseStalled, api.CauseOOM}).Draw(t, "why"))
			n.tell(m)
		},
		"shim dies": func(t *rapid.T) {
			n := s.node()
			m := s.member(n)
			m.live, m.Phase = map[int]bool{}, api.PhaseLost
			n.tell(m)
		},
		"cut": func(t *rapid.T) {
			if n := s.node(); n.session {
				s.cut(n)
			}
		},
		"connect": func(t *rapid.T) { s.connect(s.node()) },
		"reboot": func(t *rapid.T) {
			n := s.node()
			if n.session {
				s.cut(n)
			}
			n.boot++
			n.members = map[api.MemberKey]*simMember{}
		},
		"time": func(t *rapid.T) {
			s.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 16 * time.Second, 31 * time.Second, 3 * time.Minute, 6 * time.Minute}).Draw(t, "d"))
		},
		"cancel": func(t *rapid.T) {
			id := s.job()
			if out := s.do(Cancel{Job: id, Now: rapid.Bool().Draw(t, "now")}); out.Applied {
				s.cancelled[id] = s.w.Job(id).Epoch
			}
		},
		"preempt": func(t *rapid.T) { s.do(Preempt{Job: s.job(), For: "job 0"}) },
		"requeue": func(t *rapid.T) { s.do(Requeue{Job: s.job()}) },
		"hold":    func(t *rapid.T) { s.do(Hold{Job: s.job(), Admin: rapid.Bool().Draw(t, "admin")}) },
		"release": func(t *rapid.T) { s.do(Release{Job: s.job(), Admin: true}) },
		"drain node": func(t *rapid.T) {
			s.do(NodeDrain{Node: s.node().name, Reason: "disk"})
		},
		"resume node": func(t *rapid.T) { s.do(NodeResume{Node: s.node().name}) },
		"fence node": func(t *rapid.T) {
			n := s.node()
			if s.w.Node(n.name).State == api.NodeLost {
				n.members = map[api.MemberKey]*simMember{} // a person's word is true
				s.do(NodeFence{Node: n.name})
			}
		},
		"sample": func(t *rapid.T) {
			n := s.node()
			s.do(NodeSample{Node: n.name, Cards: []api.CardSample{{UUID: "GPU-" + n.name + "-0", StrangersBytes: int64(rapid.IntRange(0, 2).Draw(t, "gib")) << 30,
				Unhealthy: rapid.SampledFrom([]string{"", "xid 79"}).Draw(t, "bad")}}})
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				s.restart()
			}
		},
	}
}

// echo brings something that was said before once more.
func (s *story) echo(t *rapid.T) {
	n := s.node()
	if len(n.said) == 0 || !n.session {
		t.Skip()
	}
	s.do(NodeReport{Node: n.name, Actual: rapid.SampledFrom(n.said).Draw(t, "said")})
}

// deliver brings a report, any of those under way; once or twice.
func (s *story) deliver(t *rapid.T) {
	n := s.node()
	if len(n.outbox) == 0 || !n.session {
		t.Skip()
	}
	i := rapid.IntRange(0, len(n.outbox)-1).Draw(t, "which")
	a := n.outbox[i]
	if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
		n.outbox = slices.Delete(n.outbox, i, i+1)
	}
	s.do(NodeReport{Node: n.name, Actual: a})
	if out := s.do(NodeReport{Node: n.name, Actual: a}); out.Applied {
		s.rt.Fatalf("a repeat changed something: %+v", a)
	}
}

// launch brings a candidate to its start on nodes that all work: without it few histories
// would get to what happens after.
func (s *story) launch(t *rapid.T) {
	s.reserveAny(t)
	for range 3 {
		for _, n := range s.nodes {
			if !n.session {
				continue
			}
			s.obey(n)
			for _, k := range slices.SortedFunc(maps.Keys(n.members), compareKeys) {
				if m := n.members[k]; m.Phase == api.PhasePreparing {
					m.Phase = api.PhaseReady
					s.prepared[fmt.Sprint(n.name, k)] = true
					n.tell(m)
				}
			}
			for len(n.outbox) > 0 {
				a := n.outbox[0]
				n.outbox = n.outbox[1:]
				s.do(NodeReport{Node: n.name, Actual: a})
			}
		}
	}
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

func (s *story) prepareAny(t *rapid.T) {
	n := s.node()
	m := s.member(n)
	if m.Phase != api.PhasePreparing {
		t.Skip()
	}
	m.Phase = api.PhaseReady
	s.prepared[fmt.Sprint(n.name, m.MemberKey)] = true
	if k := rapid.IntRange(0, 9).Draw(t, "refuses"); k == 0 {
		m.Phase, m.Refusal = api.PhaseRefused, &api.Refusal{Text: "no", Job: rapid.Bool().Draw(t, "own fault")}
	}
	n.tell(m)
}

func (s *story) exitAny(t *rapid.T) {
	n := s.node()
	m := s.member(n)
	if len(m.live) == 0 {
		t.Skip()
	}
	r := rapid.SampledFrom(slices.Sorted(maps.Keys(m.live))).Draw(t, "rank")
	m.exit(r, rapid.SampledFrom([]int{0, 0, 0, 1, 137}).Draw(t, "code"))
	if len(m.live) == 0 {
		m.Phase = api.PhaseStopped
	}
	n.tell(m)
}

func (s *story) pass(d time.Duration) {
	end := s.now.Mono + d
	for range 10000 {
		at, ok := s.w.NextDeadline()
		if !ok || at > end {
			s.forward(end)
			return
		}
		s.forward(max(at, s.now.Mono))
		s.do(Tick{})
	}
	s.rt.Fatalf("timers without end")
}

func (s *story) forward(mono time.Duration) {
	s.now.Wall, s.now.Mono = s.now.Wall.Add(mono-s.now.Mono), mono
	s.settle()
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
	as, _ := s.w.Desired(n.name)
	stop := map[api.MemberKey]*api.Stop{}
	for _, a := range as {
		stop[a.MemberKey] = a.Stop
	}
	for _, k := range slices.SortedFunc(maps.Keys(n.members), compareKeys) {
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
	as, _ := s.w.Desired(n.name)
	for _, a := range as {
		if m := n.members[a.MemberKey]; m != nil && a.Stop != nil {
			m.end(143, a.Stop.Cause)
			n.tell(m)
		}
	}
	s.obey(n)
}

// finish checks what can only be seen at the end: that nothing published was changed, and
// that the same events give the same changes.
func (s *story) finish() {
	for _, p := range s.published {
		if text(p.v) != p.text {
			s.rt.Fatalf("published, then changed:\n%s\n%s", p.text, text(p.v))
		}
	}
	w := Restore(s.baseAt, s.w.set, decode(s.base))
	for i, r := range s.events {
		w.Step(r.at, r.ev)
		if got := text(w.Take()); got != r.ch {
			s.rt.Fatalf("event %d %T gave other changes the second time:\n%s\n%s", i, r.ev, r.ch, got)
		}
	}
}

func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStory(rt, t)
		rt.Repeat(s.actions())
		s.finish()
	})
}
