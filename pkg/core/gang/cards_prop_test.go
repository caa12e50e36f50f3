package gang

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// cardStory is a world of a few nodes with cards of several sizes, and what really is on
// them. A member holds its cards in truth from its reservation until its node has said that
// nothing of it is left: while it drains, is fenced, or is on a lost node it holds them.
type cardStory struct {
	*rand.Rand
	w     *World
	now   Instant
	truth map[string][]held                 // by UUID
	live  map[api.MemberKey]map[string]bool // nodes on which something of the epoch may be
	cards map[string]*truthCard
	log   []string
}

type held struct {
	api.MemberKey
	vram  int64
	whole bool
}

type truthCard struct {
	node      string
	total     int64
	strangers int64
	bad       bool
}

const gib = int64(1 << 30)

func newCardStory(seed uint64) *cardStory {
	set := api.DefaultSettings()
	s := &cardStory{Rand: rand.New(rand.NewPCG(seed, 7)), w: New(set), now: Instant{Wall: epoch0, Mono: time.Hour},
		truth: map[string][]held{}, live: map[api.MemberKey]map[string]bool{}, cards: map[string]*truthCard{}}
	for i := range 1 + s.IntN(3) {
		s.hello(fmt.Sprintf("n%d", i+1), true)
	}
	return s
}

func (s *cardStory) step(ev Event) Outcome {
	s.log = append(s.log, fmt.Sprintf("%T %+v", ev, ev))
	s.now.Mono += time.Millisecond
	return s.w.Step(s.now, ev)
}

var cardSizes = []int64{24 * gib, 40 * gib, 80 * gib}

func (s *cardStory) hello(node string, first bool) {
	h := api.Hello{Node: node, BootID: "b", CPUs: 64, MemoryBytes: 1 << 40}
	for i := range 1 + int(node[1]-'0')%3 {
		uuid := fmt.Sprintf("%s-%d", node, i)
		if first {
			s.cards[uuid] = &truthCard{node: node, total: cardSizes[s.IntN(len(cardSizes))]}
		}
		h.Cards = append(h.Cards, api.CardInfo{Index: i, UUID: uuid, Model: "H100", VRAMBytes: s.cards[uuid].total})
	}
	for k, nodes := range s.live {
		if nodes[node] {
			phase := api.PhaseReady
			if j := s.w.Job(k.Job); j == nil || j.Epoch != k.Epoch || !reserved(j) {
				phase = api.PhaseRunning
			}
			h.Members = append(h.Members, api.MemberActual{MemberKey: k, Phase: phase, Port: 1})
		}
	}
	slices.SortFunc(h.Members, func(a, b api.MemberActual) int { return a.MemberKey.Compare(b.MemberKey) })
	s.step(NodeHello{Hello: h, Partitions: []string{"main"}})
}

// submit queues a gang; some share.
func (s *cardStory) submit() {
	spec := &api.Spec{Size: 1 + s.IntN(3), Launch: api.LaunchRanks, CPUsPerRank: 1, GPUsPerRank: 1 + s.IntN(2)*s.IntN(2), Script: []byte("x")}
	if s.IntN(4) > 0 {
		spec.VRAMBytes = []int64{5, 10, 16, 24, 40, 41, 80}[s.IntN(7)] * gib
		spec.Share = s.IntN(3) > 0
	}
	s.step(Submit{Spec: spec, SpecHash: hashOf(spec), User: "ada", Partition: "main"})
}

// reserve admits a gang as a planner would, or as a broken one might.
func (s *cardStory) reserve(t *testing.T) {
	var ids []int64
	for j := range s.w.Jobs() {
		if s.w.Candidate(j.ID) != nil {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	id := ids[s.IntN(len(ids))]
	j := s.w.Job(id)
	need, err := cluster.NewNeed(cluster.AskOf(j.Spec, []string{"main"}))
	if err != nil {
		t.Fatal(err)
	}
	r := Admit{Job: id}
	nodes := s.w.Nodes()
	s.Shuffle(len(nodes), func(a, b int) { nodes[a], nodes[b] = nodes[b], nodes[a] })
	for _, n := range nodes {
		left := len(j.Ranks) - len(r.Slots)
		k := min(left, need.Ranks(n.Res))
		if !n.Res.Ready {
			k = 0
		}
		if k > 0 {
			r.Slots = append(r.Slots, need.Pick(n.Res, k)...)
		}
	}
	for len(r.Slots) < len(j.Ranks) || s.IntN(8) == 0 && len(r.Slots) > 0 { // not a plan: any cards at all
		n := nodes[s.IntN(len(nodes))]
		slot := cluster.Slot{Node: n.Name}
		for range j.Spec.GPUsPerRank {
			slot.Cards = append(slot.Cards, n.Res.Cards[s.IntN(len(n.Res.Cards))].UUID)
		}
		if len(r.Slots) < len(j.Ranks) {
			r.Slots = append(r.Slots, slot)
		} else {
			r.Slots[s.IntN(len(r.Slots))] = slot
			break
		}
	}
	if !s.step(r).Applied {
		return
	}
	s.granted(t, s.w.Job(id))
}

// granted checks a new grant against what is there in truth.
func (s *cardStory) granted(t *testing.T, j *Job) {
	key := j.key()
	s.live[key] = map[string]bool{}
	share := j.Spec.Share && j.Spec.VRAMBytes > 0
	for _, m := range j.Members {
		s.live[key][m.Node] = true
		seen := map[string]bool{}
		for _, r := range m.Ranks {
			for _, uuid := range j.Ranks[r].Slot.Cards {
				if seen[uuid] {
					continue // a member's cards are counted once; ranks of one gang may see the same
				}
				seen[uuid] = true
				c := s.cards[uuid]
				if c.node != m.Node || c.bad {
					s.fail(t, "%+v granted on %s, which is of %s and bad %t", key, uuid, c.node, c.bad)
				}
				s.truth[uuid] = append(s.truth[uuid], held{key, j.Spec.VRAMBytes, !share})
				var sum int64
				whole := 0
				for _, h := range s.truth[uuid] {
					sum += h.vram
					if h.whole {
						whole++
					}
				}
				if whole > 0 && len(s.truth[uuid]) > 1 || sum > max(0, c.total-c.strangers) {
					s.fail(t, "card %s of %dG, strangers %dG, holds %+v", uuid, c.total/gib, c.strangers/gib, s.truth[uuid])
				}
			}
		}
	}
}

func (s *cardStory) fail(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\nafter %v", fmt.Sprintf(format, args...), s.log)
}

// gone: nothing of an epoch is left on a node, in truth.
func (s *cardStory) gone(k api.MemberKey, node string) {
	delete(s.live[k], node)
	if len(s.live[k]) == 0 {
		delete(s.live, k)
	}
	for uuid, hs := range s.truth {
		if s.cards[uuid].node == node {
			s.truth[uuid] = slices.DeleteFunc(hs, func(h held) bool { return h.MemberKey == k })
		}
	}
}

// any picks a member that may live.
func (s *cardStory) any() (k api.MemberKey, node string, ok bool) {
	keys := make([]api.MemberKey, 0, len(s.live))
	for k := range s.live {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return k, "", false
	}
	slices.SortFunc(keys, api.MemberKey.Compare)
	k = keys[s.IntN(len(keys))]
	var nodes []string
	for n := range s.live[k] {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	return k, nodes[s.IntN(len(nodes))], true
}

// member lets a node say something of a member.
func (s *cardStory) member(forget bool) {
	k, node, ok := s.any()
	if !ok || !s.w.Node(node).Connected {
		return
	}
	ma := api.MemberActual{MemberKey: k, Port: 1}
	j := s.w.Job(k.Job)
	current := j != nil && j.Epoch == k.Epoch && admitted(j)
	switch {
	case forget && !current, s.IntN(3) == 0: // it ends, whatever was wanted of it
		ma.Phase = api.PhaseStopped
		if current && reserved(j) {
			ma.Phase, ma.Refusal = api.PhaseRefused, &api.Refusal{Blame: []api.Blame{api.BlameCard, api.BlameNode}[s.IntN(2)], Text: "x"}
		}
		ma.Cards = s.someCards(node)
		s.gone(k, node)
	case current && reserved(j):
		ma.Phase = api.PhaseReady
	case current && s.IntN(4) == 0:
		ma.Phase = api.PhaseStuck
	case current:
		ma.Phase = api.PhaseRunning
		if len(j.Ranks) > 0 && s.IntN(3) == 0 {
			for _, m := range j.Members {
				if m.Node == node {
					ma.Ranks = append(ma.Ranks, api.RankActual{Rank: m.Ranks[0], Exited: true, ExitCode: s.IntN(2)})
				}
			}
		}
	default:
		ma.Phase = api.PhaseStuck
	}
	s.step(NodeReport{Node: node, Actual: api.Actual{Members: []api.MemberActual{ma}}})
}

func (s *cardStory) someCards(node string) []api.CardSample {
	var out []api.CardSample
	for i := range 3 {
		uuid := fmt.Sprintf("%s-%d", node, i)
		c := s.cards[uuid]
		if c == nil || s.IntN(3) > 0 {
			continue
		}
		c.strangers, c.bad = 0, false
		x := api.CardSample{UUID: uuid}
		switch s.IntN(4) {
		case 0:
			x.StrangersBytes = int64(s.IntN(60)) * gib
			c.strangers = x.StrangersBytes
		case 1:
			x.Held, c.bad = "held", true
		case 2:
			x.Unhealthy, c.bad = "Xid 79", true
		}
		out = append(out, x)
	}
	return out
}

// turn is one random event.
func (s *cardStory) turn(t *testing.T) {
	node := fmt.Sprintf("n%d", 1+s.IntN(len(s.w.Nodes())))
	switch s.IntN(16) {
	case 0, 1, 2:
		s.submit()
	case 3, 4, 5, 6:
		s.reserve(t)
	case 7, 8, 9:
		s.member(false)
	case 10:
		s.member(true)
	case 11:
		if x := s.someCards(node); s.w.Node(node).Connected {
			s.step(NodeSample{Node: node, Cards: x})
		} else { // not told: what the world knows is older than the truth, which is no over-commitment
			for _, c := range x {
				s.cards[c.UUID].strangers, s.cards[c.UUID].bad = 0, false
			}
		}
	case 12:
		if k, _, ok := s.any(); ok {
			s.step(Cancel{Job: k.Job})
		}
	case 13:
		if k, _, ok := s.any(); ok {
			s.step(Requeue{Job: k.Job})
		}
	case 14:
		if s.w.Node(node).Connected {
			s.step(NodeGone{Node: node})
		} else {
			s.hello(node, false)
		}
	case 15: // grace and slack pass, nodes are lost; leases run out only where they mean it
		s.now.Mono += []time.Duration{time.Second, 50 * time.Second}[s.IntN(2)]
		s.now.Wall = s.now.Wall.Add(time.Minute)
		s.step(Tick{})
	}
}

// TestCardsAreNeverOverCommitted plays many short histories. The planner's own picks and
// nonsense are offered alike; draining, fenced and lost members count until they are gone.
func TestCardsAreNeverOverCommitted(t *testing.T) {
	histories := 20_000
	if n, err := strconv.Atoi(os.Getenv("GANG_HISTORIES")); err == nil {
		histories = n
	}
	grants := 0
	for seed := range histories {
		s := newCardStory(uint64(seed))
		for range 24 {
			s.turn(t)
		}
		if bad := s.w.Verify(); len(bad) > 0 {
			s.fail(t, "seed %d: %q", seed, bad)
		}
		for j := range s.w.Jobs() {
			grants += j.Epoch
		}
	}
	if grants < histories {
		t.Errorf("only %d admissions in %d histories: they show nothing", grants, histories)
	}
	t.Logf("%d histories, %d admissions", histories, grants)
}
