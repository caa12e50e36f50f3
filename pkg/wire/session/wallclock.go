package session

import (
	"sync"
	"time"

	"gangd/pkg/api"
)

// meter measures the wall clock of a node against that of its controller, by the beats that go both ways anyway: when a
// beat was sent and its echo came is known here, the node says when it got the beat and when it sent the echo. What
// is not known is how much of the way the one took and how much the other, so that half of both is the error.
type meter struct {
	mu   sync.Mutex
	sent map[uint64]time.Time // beats under way, by number
	last []api.NodeClock      // the newest readings, at most keptReadings
}

// keptReadings is how many beats a reading lasts: among so many one is not held up, and a clock does not drift far.
const keptReadings = 16

// leastDoubt is what a clock is never known better by: stamps are taken before a frame is written, and after it was read.
const leastDoubt = 100 * time.Microsecond

func (m *meter) beat(n uint64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sent == nil || len(m.sent) >= maxBeats {
		m.sent = map[uint64]time.Time{}
	}
	m.sent[n] = now
}

// echo takes in the answer to a beat.
func (m *meter) echo(n uint64, r *api.EchoTimes, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.sent[n]
	delete(m.sent, n)
	got, sent := time.UnixMicro(r.Got), time.UnixMicro(r.Sent)
	there, back := got.Sub(at), sent.Sub(now) // each is the clock's advance, and the way
	if !ok || sent.Before(got) || there < back {
		return // a clock was set in between
	}
	c := api.NodeClock{Ahead: (there + back) / 2, Within: (there-back)/2 + leastDoubt}
	// Readings that can't be true together are of a clock that was set: the older ones count no more.
	for i, o := range m.last {
		if d := (c.Ahead - o.Ahead).Abs(); d > c.Within+o.Within {
			m.last = m.last[i+1:]
			break
		}
	}
	if m.last = append(m.last, c); len(m.last) > keptReadings {
		m.last = m.last[1:]
	}
}

// best is the reading with the least error.
func (m *meter) best() (c api.NodeClock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.last {
		if c.Within == 0 || r.Within <= c.Within {
			c = r
		}
	}
	return c
}
