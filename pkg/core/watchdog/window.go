package watchdog

import (
	"time"

	"gangd/pkg/api"
)

// BlindWindows is how many windows in which nothing can be told are reported.
const BlindWindows = 10

// Window watches a member for as long as it runs, for the rules that need no
// beat (gpu-hang, idle) and for whether they, and stall, can see at all.
type Window struct {
	rules api.Watch
	hang  quiet
	idle  quiet
	beats bool
	// Of the figures that are missing now.
	blindSince time.Duration
	blind      bool
	unseen     *api.Finding // while blind, what the last reading showed
	last       time.Duration
	read       bool // last is set
}

// quiet is a quiet series and when it began.
type quiet struct {
	idle   Idle
	uuids  []string
	from   time.Duration // earlier readings are not looked at
	since  time.Duration
	series *Series // nil: not quiet
}

// NewWindow watches a member that started at the given time.
func NewWindow(rules api.Watch, idle Idle, uuids []string, started time.Duration) *Window {
	return &Window{rules: rules,
		hang: quiet{idle: idle, uuids: uuids, from: started + rules.HangGrace},
		idle: quiet{idle: idle, uuids: uuids, from: started}}
}

// Beats says that a rank of the member has begun to beat: stall relies on the cards too.
func (w *Window) Beats(now time.Duration) {
	if !w.beats && w.blind {
		w.blindSince = now // windows on a beating rank count from its first beat
	}
	w.beats = true
}

// Add takes a reading of the member. Readings that are further apart than gap left out
// something that was not seen.
func (w *Window) Add(now, gap time.Duration, see Sight) {
	if len(w.hang.uuids) == 0 {
		return
	}
	if w.read && now-w.last > gap {
		w.hang.series, w.idle.series = nil, nil
	}
	w.last, w.read = now, true
	cards := Sight{Card: see.Card}
	w.look(now, cards)
	if w.rules.HangWindow > 0 {
		w.hang.add(now, see)
	}
	if w.rules.IdleLimit > 0 {
		w.idle.add(now, cards) // cards that nobody uses are idle whatever their job does elsewhere
	}
}

// look keeps how long the figures have been missing.
func (w *Window) look(now time.Duration, see Sight) {
	blind := false
	for _, u := range w.hang.uuids {
		blind = blind || !see.Card(u).known(w.hang.idle)
	}
	if blind && !w.blind {
		w.blindSince = now
	}
	w.blind, w.unseen = blind, nil
	if blind {
		s := NewSeries(w.hang.idle, w.hang.uuids)
		s.Add(now, see)
		w.unseen = s.Finding()
	}
}

// add goes on with the series, or begins it anew with this reading where it ends one.
func (q *quiet) add(now time.Duration, see Sight) {
	if now < q.from {
		return
	}
	if q.series != nil {
		if q.series.Add(now, see); q.series.State() == api.CardsQuiet {
			return
		}
	}
	q.series, q.since = NewSeries(q.idle, q.uuids), now
	if q.series.Add(now, see); q.series.State() != api.CardsQuiet {
		q.series = nil
	}
}

// lasted is how long the series has lasted at its last reading.
func (q *quiet) lasted(last time.Duration) time.Duration {
	if q.series == nil {
		return 0
	}
	return last - q.since
}

// Note is what the rules found up to the last reading. What has not tripped a rule is not
// in it, so that it changes rarely.
func (w *Window) Note() api.WatchNote {
	var n api.WatchNote
	if x := w.rules.HangWindow; x > 0 && w.hang.series != nil && w.hang.lasted(w.last) >= x {
		n.Hung, n.Window = true, w.hang.series.Finding()
	}
	if limit := w.rules.IdleLimit; limit > 0 && w.idle.series != nil {
		switch lasted := w.idle.lasted(w.last); {
		case w.rules.IdleEnd > 0 && lasted >= limit+w.rules.IdleEnd:
			n.Idle, n.IdleFor = 2, limit+w.rules.IdleEnd
		case lasted >= limit:
			n.Idle, n.IdleFor = 1, limit
		}
	}
	if w.blind {
		missing := w.last - w.blindSince
		for _, x := range []time.Duration{w.rules.HangWindow, w.stallWindow()} {
			if x > 0 && missing > BlindWindows*x {
				n.Blind, n.Unseen = BlindWindows*x, w.unseen
			}
		}
	}
	return n
}

// stallWindow is 0 where stall does not look at the cards.
func (w *Window) stallWindow() time.Duration {
	if !w.beats {
		return 0
	}
	return w.rules.StallTimeout
}

// Due is when a reading would matter most: where a rule begins to look, or trips. It is
// false when nothing but the usual pace is wanted.
func (w *Window) Due() (at time.Duration, ok bool) {
	consider := func(t time.Duration) {
		if t > w.last && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if x := w.rules.HangWindow; x > 0 {
		consider(w.hang.from)
		if w.hang.series != nil {
			consider(w.hang.since + x)
		}
	}
	if x := w.rules.IdleLimit; x > 0 && w.idle.series != nil {
		consider(w.idle.since + x)
		consider(w.idle.since + x + w.rules.IdleEnd)
	}
	return at, ok
}
