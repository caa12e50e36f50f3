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
	"gangd/pkg/core/cluster"
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
	crons  map[string]*api.Crontab
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
	began     map[api.MemberKey]bool
	known     map[string]int // submission key -> count of ids
	ledger    map[api.LedgerKey]api.LedgerFigures
	booked    map[api.MemberKey]*Booking // as the rows of attempts have it
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

func newStory(rt *rapid.T, t *testing.T) *story {
	set := settings()
	set.Lease = 2 * time.Minute
	set.RetryBackoff = time.Second
	s := &story{bench: &bench{t: t, w: New(set), now: Instant{Wall: epoch0, Mono: time.Hour}}, rt: rt,
		saved: map[int64]*Job{}, ranks: map[int64][]Rank{}, rows: map[string]*Node{}, crons: map[string]*api.Crontab{},
		exits: map[string]int{}, verdicts: map[int64]Verdict{}, cancelled: map[int64]int{}, prepared: map[string]bool{}, began: map[api.MemberKey]bool{}, known: map[string]int{},
		ledger: map[api.LedgerKey]api.LedgerFigures{}, booked: map[api.MemberKey]*Booking{}}
	s.rebase()
	for i := range rapid.IntRange(2, 4).Draw(rt, "nodes") {
		n := &simNode{name: fmt.Sprintf("n%d", i+1), members: map[api.MemberKey]*simMember{}, opens: rapid.Bool().Draw(rt, "opens")}
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

// recount: the ledger is what the attempts come to.
func (s *story) recount(ch *Changes) {
	if len(ch.Ledger) == 0 && len(ch.Epochs) == 0 {
		return
	}
	for _, r := range ch.Ledger {
		f := s.ledger[r.LedgerKey]
		f.Add(r.LedgerFigures)
		s.ledger[r.LedgerKey] = f
	}
	for i := range ch.Epochs {
		s.booked[api.MemberKey{Job: ch.Epochs[i].Job, Epoch: ch.Epochs[i].Epoch}] = ch.Epochs[i].Booking
	}
	left := maps.Clone(s.ledger)
	for _, b := range s.booked {
		for _, r := range Booked(b) {
			f := left[r.LedgerKey]
			f.Sub(r.LedgerFigures)
			left[r.LedgerKey] = f
		}
	}
	for k, f := range left {
		if f != (api.LedgerFigures{}) {
			s.rt.Fatalf("the ledger has of %+v what no attempt comes to: %+v", k, f)
		}
		has := s.ledger[k]
		has.Each(&has, func(v, _ *int64) {
			if *v < 0 {
				s.rt.Fatalf("the ledger of %+v: %+v", k, has)
			}
		})
		if has.SeenCardMS > has.CardMS || has.BusyCardMS > has.SeenCardMS || has.IdleCardMS > has.SeenCardMS || has.StartCardMS > has.SeenCardMS || has.LostCardMS > has.CardMS || has.SeenCPUMS > has.CPUMS {
			s.rt.Fatalf("the ledger of %+v has more seen than held: %+v", k, has)
		}
	}
}

func (s *story) commit(ch *Changes) {
	s.recount(ch)
	for _, id := range ch.Revived {
		delete(s.verdicts, id)
		delete(s.cancelled, id)
	}
	for _, j := range ch.Jobs {
		s.published = append(s.published, print{j, text(j)})
		s.saved[j.ID] = j
		if len(s.ranks[j.ID]) == 0 {
			s.ranks[j.ID] = OwnRanks(BlankRanks(len(j.Ranks))) // what a store has until a rank changes
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
	for _, r := range ch.Crontabs {
		if s.crons[r.User] = r.T; r.T == nil {
			delete(s.crons, r.User)
		}
	}
	for _, ev := range ch.Events {
		if ev.Seq != s.seq+1 {
			s.rt.Fatalf("event %d after %d", ev.Seq, s.seq)
		}
		s.seq = ev.Seq
		if ev.Type == api.EventRolledBack && s.began[api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch}] {
			s.rt.Fatalf("I26: epoch %d of job %d goes back as one that never started: %s", ev.Epoch, ev.JobID, ev.Text)
		}
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
				if len(m.live) > 0 && lives[other].Job == k.Job && lives[other].Epoch != k.Epoch {
					s.rt.Fatalf("I1: job %d lives in epochs %d and %d", k.Job, lives[other].Epoch, k.Epoch)
				}
			}
		}
	}
	held := 0
	for j := range s.w.Jobs() {
		if admitted(j) {
			for _, p := range j.Spec.Pools {
				held += p.Count
			}
		}
	}
	if held > 2 || held != s.w.site.pools.held[api.PoolKey{Kind: "licence", Name: "l"}] {
		s.rt.Fatalf("I5: %d of 2 licences are held, counted %v", held, s.w.site.pools.held)
	}
	for _, n := range s.w.Nodes() {
		cpus := 0
		for _, g := range n.Res.Grants {
			cpus += int(g.Takes[cluster.CPUs])
		}
		if cpus > n.Res.CPUs() {
			s.rt.Fatalf("I5: %d of %d CPUs on %s", cpus, n.Res.CPUs(), n.Name)
		}
	}
}

// rebase remembers what is stored now as the begin of what determinism is checked on.
func (s *story) rebase() {
	s.base, s.baseAt, s.events = []byte(text(s.stored())), s.now, nil
}

// stored is what a store would give back: rows, not pointers of the old world.
func (s *story) stored() *Snapshot {
	out := &Snapshot{NextID: max(s.nextID, 1), NextSeq: s.seq + 1}
	for _, id := range slices.Sorted(maps.Keys(s.saved)) {
		j := *s.saved[id]
		j.Ranks = s.ranks[id]
		out.Jobs = append(out.Jobs, &j)
	}
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		out.Nodes = append(out.Nodes, s.rows[name])
	}
	for _, user := range slices.Sorted(maps.Keys(s.crons)) {
		out.Crontabs = append(out.Crontabs, s.crons[user])
	}
	return out
}

func decode(data []byte) *Snapshot {
	var out Snapshot
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	for _, j := range out.Jobs { // nothing of it is in the text where all of it is zero
		if j.Wishes == nil {
			j.Wishes = new(Wishes)
		}
		if j.Past == nil {
			j.Past = new(Past)
		}
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
		// An empty list and none are the same.
		out = append(out, n.Name, text(append([]Left{}, n.Left...)), text(append([]cluster.Grant{}, n.Res.Grants...)), n.Admin, fmt.Sprint(n.Strikes, n.LostSince, n.DrainBy.Unix(), n.DrainUser, n.DrainTime.Unix()))
		as := w.Desired(n.Name)
		for i := range as {
			as[i].Check = nil // asked anew when the nodes have said again what they see
		}
		out = append(out, text(as))
	}
	return append(out, fmt.Sprint(w.jobs.nextID, w.record.nextSeq, len(w.memory.keys)))
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
