package noded

import (
	"bytes"
	"context"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// cardsOf are the cards that a member has on one node of its gang, in the order of its ranks.
func cardsOf(node int, body *api.AssignmentBody, spec *api.Spec) []shim.Card {
	var out []shim.Card
	for r, p := range body.Ranks {
		if p.Node != node {
			continue
		}
		for _, uuid := range p.Cards {
			i := slices.IndexFunc(out, func(c shim.Card) bool { return c.UUID == uuid })
			if i < 0 {
				i = len(out)
				out = append(out, shim.Card{UUID: uuid, VRAMBytes: spec.VRAMBytes, Shared: spec.Share && spec.VRAMBytes > 0, Base: -1})
			}
			out[i].Ranks = append(out[i].Ranks, r)
		}
	}
	return out
}

// settleCards puts into the last word on a member how its cards were found. Nothing ran of one
// that was refused, so there is nothing to prove.
func (m *member) settleCards(ctx context.Context, a *api.MemberActual) {
	if m.spec == nil || len(m.spec.Cards) == 0 {
		return
	}
	if !m.over.Load() {
		switch a.Phase {
		case api.PhaseStopped, api.PhaseLost:
			m.lastPeaks(a)
			m.seen = m.d.cards.takeBack(ctx, m.key, m.spec.Cards, proofWait)
		case api.PhaseRefused:
			m.d.cards.drop(m.key, m.spec.Cards)
		}
	}
	if m.seen != nil { // refreshed when it is told
		a.Cards = m.seen
	}
	for i := range a.Ranks {
		if !a.Ranks[i].Exited {
			a.Ranks[i].Warning = m.warnings[a.Ranks[i].Rank]
		}
	}
}

// lastPeaks adds what ranks used to their results.
func (m *member) lastPeaks(a *api.MemberActual) {
	for i := range a.Ranks {
		if r := &a.Ranks[i]; r.Exited && r.VRAMPeak == 0 {
			r.VRAMPeak = m.d.cards.peakOf(m.key, r.Rank)
		}
	}
}

// outputTail is how much of a failed rank's output is looked at: a traceback and what
// frameworks print behind it.
const (
	outputTail = 8 << 10
	outputWait = time.Second
)

// lookInto finds out why ranks failed before it is told: whether one of their cards has gone
// bad, and whether a card had no memory left. Both would be charged to the job as a crash
// otherwise.
func (m *member) lookInto(ctx context.Context, a *api.MemberActual) {
	if m.spec == nil || a.Stopping != "" {
		return
	}
	fresh := false
	for i := range a.Ranks {
		r := &a.Ranks[i]
		if !r.Exited || r.ExitCode == 0 || r.OOM || r.Error != "" {
			continue
		}
		was, done := m.judged[r.Rank]
		if !done {
			fresh = true
			was.kill, was.oom = m.killedForMemory(r)
			was.cudaOOM = !was.oom && len(m.spec.Cards) > 0 && m.cudaOOM(ctx, r)
			if m.judged == nil {
				m.judged = map[int]failure{}
			}
			m.judged[r.Rank] = was
		}
		r.OOM, r.CUDAOOM = was.oom, was.cudaOOM
		if was.oom {
			r.MemoryAsked, r.MemoryUsed = m.spec.MemoryMax, was.kill.Used
			r.HostOOM = was.kill.Used <= m.spec.MemoryMax
		}
	}
	if len(m.spec.Cards) == 0 {
		return
	}
	m.lastPeaks(a)
	if fresh && !Ended(a.Phase) { // the end has a reading of its own
		m.seen = m.d.cards.look(ctx, m.spec.Cards)
	}
}

// failure is what was found out about the end of a rank.
type failure struct {
	oom, cudaOOM bool
	kill         proc.OOMKill
}

// oomAge bounds how old the kernel's word on a killed process may be: its number may be that
// of another one later.
const oomAge = time.Minute

// killedForMemory asks the kernel's log about a rank that KILL ended, by itself or below its
// shell. Without a cgroup that counts, nothing else knows why.
func (m *member) killedForMemory(r *api.RankActual) (proc.OOMKill, bool) {
	if r.ExitCode != 128+9 {
		return proc.OOMKill{}, false
	}
	pids := append(m.d.cards.pidsOf(m.key), r.PID)
	return proc.OOMKilled(pids, min(oomAge, time.Since(r.Started)+time.Second))
}

// pidsOf are the processes of a member that were seen holding VRAM last.
func (c *cards) pidsOf(key api.MemberKey) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []int
	for _, k := range c.card {
		if _, on := k.users[key]; !on {
			continue
		}
		for _, p := range k.last.Processes {
			if o := c.owners.of(p.PID); o.ours && o.key == key {
				out = append(out, p.PID)
			}
		}
	}
	return out
}

func (c *cards) look(ctx context.Context, of []shim.Card) []api.CardSample {
	if c.provider == nil || c.read(ctx, readWait) != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.samples(of)
}

// cudaOOM reads the end of a rank's output, as its user, but nothing of an attempt before.
func (m *member) cudaOOM(ctx context.Context, r *api.RankActual) bool {
	i := slices.IndexFunc(m.spec.Ranks, func(s shim.RankSpec) bool { return s.Rank == r.Rank })
	if i < 0 {
		return false
	}
	path, since := m.spec.Ranks[i].Error, r.ErrStart
	if path == "" {
		path, since = m.spec.Ranks[i].Output, r.OutStart
	}
	ctx, cancel := context.WithTimeout(ctx, outputWait)
	defer cancel()
	var tail tailFrom
	err := m.d.ReadLog(ctx, api.LogRead{Path: path, UID: m.spec.UID, GID: m.spec.GID, User: m.spec.User, Offset: -outputTail}, &tail)
	return err == nil && saysCUDAOOM(tail.after(since))
}

// tailFrom is the end of a file, which knows where in the file it begins.
type tailFrom struct {
	bytes.Buffer
	began int64
}

// Began implements what [session.Began] tells.
func (t *tailFrom) Began(offset int64) { t.began = offset }

// after is what of it lies behind an offset of the file.
func (t *tailFrom) after(offset int64) []byte {
	return t.Bytes()[min(max(0, offset-t.began), int64(t.Len())):]
}

// cudaOOMTexts are what CUDA programs end with when a card has no memory left: PyTorch's
// exception by its class, the driver's and the runtime's own names, JAX and TensorFlow. None
// of them is a sentence that a program prints on its way.
var cudaOOMTexts = [][]byte{
	[]byte("torch.OutOfMemoryError: "), []byte("torch.cuda.OutOfMemoryError: "), []byte("RuntimeError: CUDA out of memory"),
	[]byte("CUDA_ERROR_OUT_OF_MEMORY"), []byte("cudaErrorMemoryAllocation"), []byte("CUDA error: out of memory"),
	[]byte("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), []byte("cupy.cuda.memory.OutOfMemoryError: "),
}

// oomLines is how far from the end such a text may stand: launchers print a summary of some
// twenty lines behind the traceback. A program that caught one and went on has long printed
// more before it fails of something else.
const oomLines = 40

func saysCUDAOOM(tail []byte) bool {
	lines := bytes.Split(bytes.TrimRight(tail, "\n"), []byte("\n"))
	for _, line := range lines[max(0, len(lines)-oomLines):] {
		for _, text := range cudaOOMTexts {
			if bytes.Contains(line, text) {
				return true
			}
		}
	}
	return false
}

// refresh puts into words that were said before how the cards are now: an old reading must
// not undo a newer one.
func (c *cards) refresh(members []api.MemberActual) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range members {
		seen := slices.Clone(members[i].Cards)
		for j := range seen {
			if k := c.card[seen[j].UUID]; k != nil && k.known {
				seen[j] = k.now
			}
		}
		members[i].Cards = seen
	}
}

// stopFor ends the member by this node's own decision; the first one counts.
func (m *member) stopFor(s api.Stop) {
	m.set(func(w *memberOrders) {
		if w.own == nil {
			w.own = &s
		}
	})
}

// warn has a rank told what it will be stopped for.
func (m *member) warn(s shim.Warning) {
	m.set(func(w *memberOrders) { w.warn = append(w.warn, s) })
}

// ownWishes hands on what this node has decided by itself.
func (m *member) ownWishes(w *memberOrders) {
	for i := range w.warn {
		m.tellWarning(&w.warn[i])
	}
	if w.own != nil && !m.sentOwn {
		m.sentOwn = true
		m.send(shim.Command{Stop: w.own})
	}
}

// tellWarning hands a warning to the rank and to the controller.
func (m *member) tellWarning(w *shim.Warning) {
	m.send(shim.Command{Warn: w})
	if m.warnings == nil {
		m.warnings = map[int]string{}
	}
	m.warnings[w.Rank] = w.Text
	a := m.actual
	a.Ranks = slices.Clone(a.Ranks)
	for i := range a.Ranks {
		if a.Ranks[i].Rank == w.Rank && !a.Ranks[i].Exited {
			a.Ranks[i].Warning = w.Text
		}
	}
	m.actual = a
	m.publish()
}

// checkOverruns warns and stops members that use more of a shared card than they asked for.
func (d *daemon) checkOverruns() {
	grace := d.site().SharedVRAMGrace
	for _, o := range d.cards.overruns(time.Now(), d.opts.Name, grace) {
		m := d.find(o.MemberKey)
		if m == nil {
			continue
		}
		log := d.log.With("job", o.Job, "epoch", o.Epoch, "rank", o.rank)
		switch {
		case o.stop:
			log.Warn("rank over its VRAM is stopped", "reason", o.last)
			m.stopFor(api.Stop{Cause: api.CauseOOM, Text: o.last, Trigger: &o.rank, Grace: m.grace()})
		case o.ended:
			log.Info("rank within its VRAM again")
			m.warn(shim.Warning{Rank: o.rank, Cause: api.CauseOOM})
		default:
			log.Warn("rank over its VRAM", "reason", o.text, "stopped_in", grace)
			m.warn(shim.Warning{Rank: o.rank, Cause: api.CauseOOM, Text: o.text, Left: grace})
		}
	}
}

// grace is the member's own, from the stop signal to KILL.
func (m *member) grace() time.Duration {
	if s := m.known.Load(); s != nil {
		return s.Grace
	}
	return m.d.site().Grace
}
