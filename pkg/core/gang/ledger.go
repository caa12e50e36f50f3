package gang

import (
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// The ledger is sums over attempts. Each epoch has a [Booking], which says what it is booked by; what it comes
// to ([Booked]) follows from that alone. A change of a booking changes the ledger by the difference, in
// the same commit, so that the ledger can be recounted from the attempts for as long as they are kept.

// bookEvery is how often what runs is booked.
const bookEvery = time.Hour

// Booking is by what an epoch that really started is in the ledger. Values are never changed.
type Booking struct {
	Epoch     int           `json:"epoch"`
	User      string        `json:"user"`
	Account   string        `json:"account,omitempty"`
	Partition string        `json:"partition,omitempty"` // that it ran in
	Waited    time.Duration `json:"waited,omitempty"`
	CPUs      int           `json:"cpus,omitempty"`
	Cards     []BookedCards `json:"cards,omitempty"` // by type; none: it had none
	Started   time.Time     `json:"started"`
	Until     time.Time     `json:"until"`           // booked up to then
	Cause     api.Cause     `json:"cause,omitempty"` // as what; empty: it runs
	// Kept: of its time that a checkpoint handed over; what is above it is lost unless it ended well
	Kept      time.Duration `json:"kept,omitempty"`
	SeenCPUMS int64         `json:"seen_cpu_ms,omitempty"` // milliseconds of CPUs held by members of which it is known what they used
	UsedCPUMS int64         `json:"used_cpu_ms,omitempty"`
}

// BookedCards are the cards of one type.
type BookedCards struct {
	Type    string `json:"type"`
	Cards   int    `json:"cards"`
	SeenMS  int64  `json:"seen_ms,omitempty"` // milliseconds of cards of which the utilization is known
	BusyMS  int64  `json:"busy_ms,omitempty"` // utilization times that
	IdleMS  int64  `json:"idle_ms,omitempty"`
	Joules  int64  `json:"joules,omitempty"`
	StartMS int64  `json:"start_ms,omitempty"` // of SeenMS: before the first use of a card of its member
}

// Booked is what a booking comes to, nil: nothing.
func Booked(b *Booking) []api.LedgerRow {
	if b == nil {
		return nil
	}
	cards := b.Cards
	if len(cards) == 0 {
		cards = []BookedCards{{}}
	}
	var out []api.LedgerRow
	whole := b.Until.Sub(b.Started)
	var done time.Duration // booked on days before
	for day := b.Started; ; {
		next := midnight(day)
		end := b.Until
		last := !next.Before(end)
		if !last {
			end = next
		}
		part := end.Sub(day)
		for i, c := range cards {
			row := api.LedgerRow{LedgerKey: api.LedgerKey{Day: api.LedgerDay(day), User: b.User, Account: b.Account, Partition: b.Partition,
				CardType: c.Type, Cause: b.Cause}}
			// Of a sum each day has the part that its time is of the whole, the last one the rest.
			// What was used is known to the end, so it is booked then.
			spread := func(sum int64) int64 {
				if b.Cause == "" {
					return 0
				}
				return partOf(sum, done+part, whole, last) - partOf(sum, done, whole, false)
			}
			// A millisecond is cut from the time since the start, not from each day: nothing gets lost.
			held := (done + part).Milliseconds() - done.Milliseconds()
			lost := int64(0)
			if wasLost(b.Cause) {
				lost = max(done+part-b.Kept, 0).Milliseconds() - max(done-b.Kept, 0).Milliseconds()
			}
			row.CardMS, row.LostCardMS = held*int64(c.Cards), lost*int64(c.Cards)
			row.SeenCardMS, row.BusyCardMS, row.IdleCardMS, row.Joules = spread(c.SeenMS), spread(c.BusyMS), spread(c.IdleMS), spread(c.Joules)
			row.StartCardMS = spread(c.StartMS)
			if i == 0 { // CPUs are counted once
				row.CPUMS, row.LostCPUMS = held*int64(b.CPUs), lost*int64(b.CPUs)
				row.SeenCPUMS, row.UsedCPUMS = spread(b.SeenCPUMS), spread(b.UsedCPUMS)
				if done == 0 && day.Equal(b.Started) {
					row.Starts, row.WaitMS = 1, b.Waited.Milliseconds()
				}
				if last && b.Cause != "" {
					row.Attempts = 1
				}
			}
			out = append(out, row)
		}
		if last {
			return out
		}
		day, done = next, done+part
	}
}

// partOf is the part of a sum that belongs to the first done of a whole; all is the sum.
func partOf(sum int64, done, whole time.Duration, all bool) int64 {
	if all {
		return sum
	}
	if whole <= 0 {
		return 0
	}
	return int64(float64(sum) * (float64(done) / float64(whole)))
}

// midnight is the end of a day.
func midnight(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// wasLost: the work of an attempt that ended so did not last, but for what a checkpoint kept.
func wasLost(c api.Cause) bool {
	return c != "" && c != api.CauseCompleted && c != api.CauseCancelled
}

// books keep the bookings of epochs.
type books struct {
	clock  *clock
	jobs   *jobs
	nodes  *nodes
	record *record

	ledger ledger
}

// rebook changes a job's booking, and the ledger by the difference.
func (bk *books) rebook(e *entry, change func(b *Booking)) {
	j := bk.jobs.edit(e)
	if j.Start.IsZero() {
		return
	}
	next := Booking{}
	old := j.Booking
	if old != nil && old.Epoch == j.Epoch {
		next = *old
		next.Cards = slices.Clone(old.Cards)
	} else {
		old, next = nil, bk.newBooking(j)
	}
	change(&next)
	j.Booking = &next
	bk.ledger.move(old, &next)
}

// ledger is what has to be added to the sums since they were last taken.
type ledger map[api.LedgerKey]api.LedgerFigures

// move takes the old booking of an epoch out, nil: there was none, and the next one in.
func (l ledger) move(old, next *Booking) {
	for _, r := range Booked(old) {
		f := l[r.LedgerKey]
		f.Sub(r.LedgerFigures)
		l[r.LedgerKey] = f
	}
	for _, r := range Booked(next) {
		f := l[r.LedgerKey]
		f.Add(r.LedgerFigures)
		l[r.LedgerKey] = f
	}
}

// take gives what changed, in order.
func (l ledger) take() (out []api.LedgerRow) {
	for k, f := range l {
		if f != (api.LedgerFigures{}) {
			out = append(out, api.LedgerRow{LedgerKey: k, LedgerFigures: f})
		}
	}
	slices.SortFunc(out, func(a, b api.LedgerRow) int { return a.Compare(b.LedgerKey) })
	clear(l)
	return out
}

// newBooking is that of an epoch that has just started, or that an older release started.
func (bk *books) newBooking(j *Job) Booking {
	b := Booking{Epoch: j.Epoch, User: j.User, Account: j.Spec.Account, Partition: RunsIn(j, bk.nodes.find), Started: j.Start, Until: j.Start,
		Waited: max(j.Start.Sub(j.Eligible), 0)}
	types := map[string]int{}
	seen := map[[2]string]bool{}
	for i := range j.Ranks {
		s := &j.Ranks[i].Slot
		b.CPUs += j.Spec.FiguresOf(i).CPUs
		for _, c := range s.Cards {
			if at := [2]string{s.Node, c}; !seen[at] {
				seen[at] = true
				types[bk.nodes.cardType(s.Node, c)]++
			}
		}
	}
	if cpus := CPUs(j); cpus > 0 {
		b.CPUs = cpus
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		b.Cards = append(b.Cards, BookedCards{Type: name, Cards: types[name]})
	}
	return b
}

// start books an epoch whose gate is opened, and what it will use each hour.
func (bk *books) start(e *entry) {
	bk.rebook(e, func(*Booking) {})
	bk.clock.in(bookEvery, bookTimer(e.job))
}

func bookTimer(j *Job) timer { return timer{kind: timerBook, job: j.ID, epoch: j.Epoch} }

// hour books what runs up to now.
func (bk *books) hour(e *entry, epoch int) {
	if e == nil || e.job.Epoch != epoch || !running(e.job) || e.job.Presumed != nil {
		return
	}
	bk.rebook(e, func(b *Booking) { b.Until = later(b.Until, bk.clock.now.Wall) })
	bk.record.epochs[e.job.key()] = epochRow(e.job)
	bk.clock.in(bookEvery, bookTimer(e.job))
}

// end books an epoch that is over, since then.
func (bk *books) end(e *entry, cause api.Cause, over time.Time) {
	bk.clock.timers.cancel(bookTimer(e.job))
	kept := time.Duration(0)
	if at := LastSaved(e.job, e.job.Epoch); !at.IsZero() {
		kept = max(at.Sub(e.job.Start), 0)
	}
	bk.rebook(e, func(b *Booking) { b.Until, b.Cause, b.Kept = later(b.Until, over), cause, kept })
}

// measured takes what a node says that its member used: no more than it held, whatever it says.
func (bk *books) measured(e *entry, i int, m *api.Measure) {
	if m == nil || e.job.Members[i].State == MemberStopped {
		return
	}
	j, node := e.job, e.job.Members[i].Node
	own := bk.record.measured(node, j.key(), i, m, func(uuid string) bool {
		return slices.ContainsFunc(j.Members[i].Ranks, func(r int) bool { return slices.Contains(j.Ranks[r].Slot.Cards, uuid) })
	})
	ran := min(max(bk.clock.now.Wall.Sub(j.Start), 0), span(own.Seconds))
	cpus := 0
	for _, r := range j.Members[i].Ranks {
		cpus += j.Spec.FiguresOf(r).CPUs
	}
	cpus = max(cpus, j.Members[i].CPUs)
	bk.rebook(e, func(b *Booking) {
		if own.CPUSeconds != nil {
			b.SeenCPUMS += ran.Milliseconds() * int64(cpus)
			most := (ran + time.Minute).Milliseconds() * int64(max(cpus, bk.nodes.byName[node].node.Res.CPUs()))
			b.UsedCPUMS += min(span(*own.CPUSeconds).Milliseconds(), most)
		}
		for _, c := range own.Cards {
			at := slices.IndexFunc(b.Cards, func(t BookedCards) bool { return t.Type == bk.nodes.cardType(node, c.UUID) })
			if at < 0 {
				continue
			}
			t := &b.Cards[at]
			if u := c.Utilization; u != nil && c.IdleSeconds != nil {
				seen := min(span(u.Seconds), ran).Milliseconds()
				t.SeenMS += seen
				t.BusyMS += int64(float64(seen) * min(u.Mean, 100) / 100)
				t.IdleMS += min(span(*c.IdleSeconds).Milliseconds(), seen)
				if s := own.Start; s != nil && s.CardUse != nil {
					t.StartMS += min(span(*s.CardUse).Milliseconds(), seen)
				}
			}
			if c.Joules != nil {
				t.Joules += int64(min(*c.Joules, mostWatts*(ran+time.Minute).Seconds()))
			}
		}
	})
}

// hooksRan records what a member used once more, with what the site's epilog wrote.
func (bk *books) hooksRan(h *host, at int, m *api.Measure) {
	l := &h.node.Left[at]
	if !l.Epilog || m == nil || len(m.Hooks) == 0 {
		return
	}
	g, _ := h.node.Res.Grant(l.MemberKey)
	bk.record.measured(h.node.Name, l.MemberKey, l.Member, m, func(uuid string) bool {
		return slices.ContainsFunc(g.Cards, func(c cluster.CardGrant) bool { return c.UUID == uuid })
	})
}

// mostWatts is what no card takes: sums must not be what a node makes up.
const mostWatts = 10_000

// span is a time in seconds, at most ten years.
func span(seconds float64) time.Duration {
	const most = 87600 * time.Hour
	if seconds >= most.Seconds() {
		return most
	}
	return time.Duration(seconds * float64(time.Second))
}
