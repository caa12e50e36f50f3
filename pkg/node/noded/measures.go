package noded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/measure"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

const (
	// measureFile keeps in a member's directory what was measured, for a daemon to come.
	measureFile = "measure.json"
	// measureTold is how often that is told, and kept, of a member that runs, measureFirst when first.
	measureTold  = time.Minute
	measureFirst = 2 * time.Second
	// measureShare bounds what a look at a member's processes costs to this part of a core, measureMost
	// how seldom that makes it: a sample stands for the time since the one before.
	measureShare = 200
	measureMost  = 10 * time.Second
)

// meters measure the members that run here. It has no goroutine: [daemon.tick] gives it its turn.
type meters struct {
	now   func() time.Duration
	usage func(k api.MemberKey) proc.Usage // of its processes

	mu      sync.Mutex
	members map[api.MemberKey]*meter
}

// meter is one member.
type meter struct {
	fold  *measure.Fold
	dir   string
	began time.Duration // when its ranks did, by mono
	next  time.Duration // when its processes are looked at next
	told  time.Duration
	// beat: a first one was heard. resumed: its ranks were there before this daemon looked.
	beat, resumed bool
}

// beginMeasure measures a member from now on, or goes on where the daemon before was.
func (d *daemon) beginMeasure(m *member) {
	if m.spec == nil || m.bare {
		return
	}
	d.meters.mu.Lock()
	defer d.meters.mu.Unlock()
	if d.meters.members[m.key] != nil {
		return
	}
	x := d.meterOf(m, m.actual.Ranks)
	age := x.fold.At
	if len(m.actual.Ranks) > 0 {
		age = max(age, time.Since(m.actual.Ranks[0].Started))
	}
	x.resumed = m.begun.ready.IsZero()
	x.began = d.meters.now() - age
	x.told = d.meters.now() - measureTold + measureFirst
	d.meters.members[m.key] = x
}

// meterOf is what is known of a member so far, whose ranks are these.
func (d *daemon) meterOf(m *member, ranks []api.RankActual) *meter {
	x := &meter{dir: m.dir}
	if b, err := os.ReadFile(filepath.Join(m.dir, measureFile)); err == nil {
		kept := &measure.Fold{}
		if json.Unmarshal(b, kept) == nil && len(kept.Cards) == len(m.spec.Cards) && len(kept.M.Cards) == len(kept.Cards) {
			x.fold = kept
			x.beat = kept.M.Start != nil && kept.M.Start.Beat != nil
			return x
		}
	}
	x.fold = measure.Begin(api.Measure{Node: d.opts.Name, CPUs: m.spec.CPUs, Memory: m.spec.MemoryMax, Cards: d.cards.toMeasure(m.spec.Cards),
		Start: m.begun.parts(firstStarted(ranks))}, d.memory())
	return x
}

// toMeasure is what is known of cards before anything is seen of them.
func (c *cards) toMeasure(given []shim.Card) []api.CardMeasure {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]api.CardMeasure, len(given))
	for i, g := range given {
		info := c.at(g.UUID).info
		out[i] = api.CardMeasure{UUID: g.UUID, Index: info.Index, Model: info.Model, VRAMBytes: info.VRAMBytes}
		if g.Shared {
			out[i].VRAMAsked = g.VRAMBytes
		}
	}
	return out
}

// measured is a card as a member uses it now. Where others are on it, what can't be told apart is
// unknown.
func (c *cards) measured(k api.MemberKey, uuid string) measure.CardSample {
	r := c.reading(k, uuid)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := measure.Nothing
	card := c.card[uuid]
	if card == nil || !card.known || !c.fresh {
		return s
	}
	if r.AtMost <= r.Utilization {
		s.Utilization = r.Utilization
	}
	s.VRAM = c.usedBy(card, k, -1)
	if len(card.users) <= 1 && card.now.StrangersBytes == 0 {
		s.Watts = card.last.PowerWatts
	}
	return s
}

// measure looks at all members whose turn it is.
func (d *daemon) measure() {
	d.meters.mu.Lock()
	defer d.meters.mu.Unlock()
	for k, x := range d.meters.members {
		now := d.meters.now()
		if now < x.next {
			continue
		}
		u := d.readUsage(k, d.meters.usage)
		done := d.meters.now()
		x.next = now + min((done-now)*measureShare, measureMost)
		s := measure.Sample{At: done - x.began, CPU: u.CPU, Memory: u.MemoryBytes, Peak: u.Peak, IO: u.IOBytes,
			Cards: make([]measure.CardSample, len(x.fold.M.Cards))}
		for i := range s.Cards {
			s.Cards[i] = d.cards.measured(k, x.fold.M.Cards[i].UUID)
		}
		was := x.fold.M.Start
		unused := was == nil || was.CardUse == nil
		x.fold.Add(s)
		if now := x.fold.M.Start; unused && now != nil && now.CardUse != nil {
			x.keep()
		}
		if done-x.told >= measureTold {
			x.told = done
			d.notes.putMeasure(k, x.fold.Measure())
			x.keep()
		}
	}
}

// keep writes down what there is. What is lost with a machine is a minute, and with it the member.
func (x *meter) keep() {
	b, err := json.Marshal(x.fold)
	if err != nil {
		return // a figure that is no number
	}
	_ = replaceFile(filepath.Join(x.dir, measureFile), b)
}

func (s *meters) drop(k api.MemberKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, k)
}

// endMeasure gives what was measured of a member that is over, nil: it never ran.
func (d *daemon) endMeasure(m *member, a *api.MemberActual) *api.Measure {
	d.meters.mu.Lock()
	x := d.meters.members[m.key]
	delete(d.meters.members, m.key)
	d.meters.mu.Unlock()
	if m.spec == nil || m.bare || a.Phase != api.PhaseStopped && a.Phase != api.PhaseLost || x == nil && a.Used == nil && len(a.Ranks) == 0 {
		return nil
	}
	now := d.meters.now()
	if x == nil { // it was over before anybody looked, or when this daemon came
		x = d.meterOf(m, a.Ranks)
		x.began = now - x.fold.At
	}
	cpu, peak := time.Duration(-1), int64(-1)
	if a.Used != nil {
		cpu, peak = a.Used.CPU, a.Used.MemoryPeak
	}
	return x.fold.End(ranFor(a, now-x.began), cpu, peak, rankUse(a.Ranks))
}

// ranFor is how long ranks ran, where they all said when they ended; else as long as was looked at.
func ranFor(a *api.MemberActual, seen time.Duration) time.Duration {
	if len(a.Ranks) == 0 {
		return seen
	}
	first, last := a.Ranks[0].Started, a.Ranks[0].Ended
	for i := range a.Ranks {
		r := &a.Ranks[i]
		if r.Ended.IsZero() {
			return seen
		}
		if r.Started.Before(first) {
			first = r.Started
		}
		if r.Ended.After(last) {
			last = r.Ended
		}
	}
	return max(last.Sub(first), 0)
}

// rankUse sums up ranks that have ended, nil: nothing is known of any.
func rankUse(ranks []api.RankActual) (u *api.RankUse) {
	for i := range ranks {
		r := &ranks[i]
		if r.Used == nil {
			continue
		}
		cpu := r.Used.CPU.Seconds()
		if u == nil {
			u = &api.RankUse{MinCPU: cpu, MinCPURank: r.Rank, MaxRSSRank: r.Rank}
		}
		u.Ranks++
		u.CPUSeconds += cpu
		u.SumRSS += r.Used.MaxRSS
		if cpu < u.MinCPU {
			u.MinCPU, u.MinCPURank = cpu, r.Rank
		}
		if r.Used.MaxRSS > u.MaxRSS {
			u.MaxRSS, u.MaxRSSRank = r.Used.MaxRSS, r.Rank
		}
	}
	return u
}
