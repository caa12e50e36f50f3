package engine

import (
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
)

// said is what ranks have said about themselves in their current epochs. It is shown, not
// stored: after a restart of the controller the nodes say it again.
type said struct {
	mu   sync.Mutex
	jobs map[int64]*saidJob
}

type saidJob struct {
	epoch int
	ranks map[int]saidRank
}

type saidRank struct {
	api.RankNote
	beat time.Time // of the last beat, zero: none
}

// NodeNotes takes in what ranks of a node said. A node is believed only about ranks that
// are placed on it now.
func (e *Engine) NodeNotes(node string, notes []api.MemberNote) {
	now := e.opt.Clock.Now().Wall
	for i := range notes {
		m := &notes[i]
		j := e.view.job(m.Job)
		if j == nil || j.Epoch != m.Epoch || j.Verdict != nil {
			continue
		}
		e.said.put(j, node, m, now)
		if j.Drain != nil {
			e.acknowledge(j)
		}
	}
}

// acknowledge hands the core a count that rose, or that all have nothing left to save.
func (e *Engine) acknowledge(j *gang.Job) {
	stopping, saved := e.said.acknowledged(j)
	if stopping > j.Drain.Acked || saved {
		e.post(gang.Acknowledged{Job: j.ID, Epoch: j.Epoch, Ranks: stopping, Saved: saved})
	}
}

func (s *said) put(j *gang.Job, node string, m *api.MemberNote, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[int64]*saidJob{}
	}
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch {
		x = &saidJob{epoch: j.Epoch, ranks: map[int]saidRank{}}
		s.jobs[j.ID] = x
	}
	for _, n := range m.Ranks {
		if n.Rank < 0 || n.Rank >= len(j.Ranks) || j.Ranks[n.Rank].Slot.Node != node {
			continue
		}
		if len(n.Status) > api.MaxStatusBytes {
			n.Status = n.Status[:api.MaxStatusBytes]
		}
		r := saidRank{RankNote: n}
		if n.Beats > 0 {
			r.beat = now.Add(-max(n.BeatAge, 0))
		}
		x.ranks[n.Rank] = r
	}
}

// of gives what was said in the current epoch of a job; s.mu is held.
func (s *said) of(j *gang.Job) map[int]saidRank {
	if x := s.jobs[j.ID]; x != nil && x.epoch == j.Epoch {
		return x.ranks
	}
	return nil
}

// acknowledged counts the ranks that said they are stopping; saved: every rank whose
// process lives has nothing left to save, and one at least said so.
func (s *said) acknowledged(j *gang.Job) (stopping int, saved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ranks := s.of(j)
	waits := false
	for r := range gang.Processes(j) {
		n := ranks[r]
		if n.Stopping || n.Saved {
			stopping++
		}
		saved = saved || n.Saved
		waits = waits || !n.Saved && !j.Ranks[r].Exited
	}
	return stopping, saved && !waits
}

// show adds what was said to what is shown of a job.
func (s *said) show(j *gang.Job, out *api.Job) {
	if j.Drain != nil {
		out.Acknowledged, _ = s.acknowledged(j)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ranks := s.of(j)
	out.Status = ranks[0].Status
	for r := range out.Ranks {
		if n, ok := ranks[r]; ok {
			x := &out.Ranks[r]
			x.LastBeat, x.Status, x.Ready, x.Stopping = n.beat, n.Status, n.Ready, n.Stopping
		}
	}
}

func (s *said) drop(jobs []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range jobs {
		delete(s.jobs, id)
	}
}

// settle brings what hangs on a job up to date after a commit.
func (e *Engine) settle(ch *gang.Changes) {
	for _, j := range ch.Jobs {
		over := e.meet.check(j)
		if over || j.Verdict != nil && j.Checkpoint != nil {
			e.forget(j.ID)
		}
	}
	if len(ch.Purged) > 0 {
		e.said.drop(ch.Purged)
	}
}
