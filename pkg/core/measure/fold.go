package measure

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Gap is for how long a sample may stand for what was not looked at.
const Gap = 15 * time.Second

// Sample is one look at a member; -1 is what could not be seen.
type Sample struct {
	At     time.Duration // since the start of its ranks
	CPU    time.Duration // of all its processes up to now
	Memory int64         // bytes that they hold together
	Peak   int64         // the most that they ever held, where the kernel keeps that
	IO     int64         // bytes read and written up to now
	Cards  []CardSample  // in the order that the fold was begun with
}

// CardSample is a card as far as the member uses it.
type CardSample struct {
	Utilization int   // percent
	VRAM        int64 // bytes
	Watts       int
}

// Nothing is a card of which nothing could be seen.
var Nothing = CardSample{Utilization: -1, VRAM: -1, Watts: -1}

// Fold is the measure of a member in the making. In JSON it can be kept and gone on with.
type Fold struct {
	M     api.Measure   `json:"m"` // without series, and what only the end has
	Total int64         `json:"total"`
	At    time.Duration `json:"at"`
	CPU   time.Duration `json:"cpu"` // at the last sample that knew it
	CPUAt time.Duration `json:"cpu_at"`
	Track track         `json:"track"`
	Cards []track       `json:"cards,omitempty"`
	// Unused is until when all cards were seen, and seen doing nothing. Missed: the first use was not seen, or not when.
	Unused time.Duration `json:"unused,omitempty"`
	Early  time.Duration `json:"early,omitempty"` // when a card was seen in use so early that it may have been somebody else's use
	Missed bool          `json:"missed,omitempty"`
}

// Begin begins a member. m and its cards have what is known before: the node, CPUs, memory, and
// which cards. Total is the memory of the node, of which the series of a member is a percentage that
// asked for none.
func Begin(m api.Measure, total int64) *Fold {
	m.Cards = slices.Clone(m.Cards)
	return &Fold{M: m, Total: cmp.Or(m.Memory, total), Track: track{Step: firstStep}, Cards: slices.Repeat([]track{{Step: firstStep}},
		len(m.Cards))}
}

// Add takes a sample. One that is not newer than the last is nothing.
func (f *Fold) Add(s Sample) {
	span := s.At - f.At
	if span <= 0 {
		return
	}
	f.At = s.At
	use := f.cpu(s.CPU)
	highest(&f.M.MemoryPeak, max(s.Memory, s.Peak))
	highest(&f.M.IOBytes, s.IO)
	f.firstUse(s.Cards)
	if span > Gap {
		f.Track.add(span, -1, -1)
		for i := range f.Cards {
			f.Cards[i].add(span, -1, -1)
		}
		return
	}
	count(&f.M.Resident, float64(s.Memory), span, false)
	f.Track.add(span, use, percent(float64(s.Memory), float64(f.Total)))
	for i := range f.Cards {
		c := Nothing
		if i < len(s.Cards) {
			c = s.Cards[i]
		}
		f.card(i, c, span)
	}
}

// settled is how long after a start the use of a card is what the member does with it: a reading may be a second old, and
// is of up to a second before it.
const settled = 2 * time.Second

// firstUse looks for the first use of a card: between the last sample that saw all of them do nothing, and this one.
// Where these are far apart, nobody can tell. Use that is seen before a card was seen to do nothing may be that of the job
// before, and counts when it goes on.
func (f *Fold) firstUse(cards []CardSample) {
	if len(f.Cards) == 0 || f.Missed || f.M.Start != nil && f.M.Start.CardUse != nil {
		return
	}
	used, seen := false, len(cards) >= len(f.Cards)
	for _, c := range cards {
		used = used || c.Utilization > 0
		seen = seen && c.Utilization >= 0
	}
	by := f.At // when at the latest
	if used && f.Early > 0 {
		by = f.Early
	}
	switch gap := by - f.Unused; {
	case used && f.Unused == 0 && f.At < settled:
		f.Early = by
	case used && gap > max(settled, f.At/10):
		f.Missed = true
	case used:
		at := (f.Unused + gap/2).Seconds()
		f.start().CardUse = &at
	case seen:
		f.Unused, f.Early = f.At, 0
	default:
		f.Early = 0
	}
}

// Beat takes the first beat, so long after the start of the ranks.
func (f *Fold) Beat(at time.Duration) {
	if s := f.start(); s.Beat == nil {
		seconds := max(at, 0).Seconds()
		s.Beat = &seconds
	}
}

func (f *Fold) start() *api.StartParts {
	if f.M.Start == nil {
		f.M.Start = &api.StartParts{}
	}
	return f.M.Start
}

// cpu takes the counter and gives the percentage since it was last known, -1: unknown.
func (f *Fold) cpu(total time.Duration) float64 {
	span := f.At - f.CPUAt
	if total < f.CPU || span <= 0 {
		return -1 // unknown, or processes have gone with what they had used
	}
	use := percent(float64(total-f.CPU), float64(span)*float64(f.M.CPUs))
	count(&f.M.CPU, use, span, true)
	f.CPU, f.CPUAt = total, f.At
	seconds := total.Seconds()
	f.M.CPUSeconds = &seconds
	return use
}

func (f *Fold) card(i int, s CardSample, span time.Duration) {
	m := &f.M.Cards[i]
	count(&m.Utilization, float64(s.Utilization), span, true)
	count(&m.VRAM, float64(s.VRAM), span, false)
	count(&m.Power, float64(s.Watts), span, false)
	if s.Watts >= 0 {
		sum(&m.Joules, float64(s.Watts)*span.Seconds())
	}
	if s.Utilization >= 0 {
		idle := 0.0
		if s.Utilization == 0 {
			idle = span.Seconds()
		}
		sum(&m.IdleSeconds, idle)
	}
	f.Cards[i].add(span, float64(s.Utilization), percent(float64(s.VRAM), float64(cmp.Or(m.VRAMAsked, m.VRAMBytes))))
}

// End is the measure of a member that ran for so long. CPU and peak are what was read of it at its
// end, -1: nothing; they count where they are more than what was seen on the way.
func (f *Fold) End(ran, cpu time.Duration, peak int64, ranks *api.RankUse) *api.Measure {
	if ran > f.At && cpu >= f.CPU {
		f.At = ran
		f.cpu(cpu)
	} else if s := cpu.Seconds(); cpu >= 0 && (f.M.CPUSeconds == nil || s > *f.M.CPUSeconds) {
		f.M.CPUSeconds = &s
	}
	highest(&f.M.MemoryPeak, peak)
	f.At = ran
	m := f.Measure()
	m.Ranks = ranks
	return m
}

// Measure is what there is up to now. It shares nothing with the fold.
func (f *Fold) Measure() *api.Measure {
	m := f.M
	m.Seconds = thousandth(f.At.Seconds())
	m.CPUSeconds, m.MemoryPeak, m.IOBytes = rounded(m.CPUSeconds), same(m.MemoryPeak), same(m.IOBytes)
	m.CPU, m.Resident, m.Series = figure(m.CPU), figure(m.Resident), f.Track.series()
	if s := m.Start; s != nil {
		m.Start = &api.StartParts{Image: rounded(s.Image), Prolog: rounded(s.Prolog), Prepare: rounded(s.Prepare), Wait: rounded(s.Wait),
			CardUse: rounded(s.CardUse), Beat: rounded(s.Beat)}
	}
	m.Cards = slices.Clone(m.Cards)
	for i := range m.Cards {
		c := &m.Cards[i]
		c.Utilization, c.VRAM, c.Power = figure(c.Utilization), figure(c.VRAM), figure(c.Power)
		c.Joules, c.IdleSeconds, c.Series = rounded(c.Joules), rounded(c.IdleSeconds), f.Cards[i].series()
	}
	return &m
}

// percent of a whole, -1 where one of them is not known.
func percent(part, whole float64) float64 {
	if part < 0 || whole <= 0 {
		return -1
	}
	return 100 * part / whole
}

// count adds a value that stood for a span; one below 0 is unknown.
func count(to **api.Figure, v float64, span time.Duration, buckets bool) {
	if v < 0 {
		return
	}
	f := *to
	if f == nil {
		f = &api.Figure{}
		if buckets {
			f.Buckets = make([]float64, api.MeasureBuckets)
		}
		*to = f
	}
	s := span.Seconds()
	f.Mean += (v - f.Mean) * s / (f.Seconds + s)
	f.Seconds += s
	f.Max = max(f.Max, v)
	if buckets {
		f.Buckets[min(int(v*api.MeasureBuckets/100), api.MeasureBuckets-1)] += s
	}
}

// Percentile is the value below which a figure was for so much of its time (0.5: the median), by
// its buckets; false where it has none.
func Percentile(f *api.Figure, part float64) (float64, bool) {
	if f == nil || len(f.Buckets) == 0 || f.Seconds <= 0 {
		return 0, false
	}
	const width = 100.0 / api.MeasureBuckets
	left := part * f.Seconds
	for i, s := range f.Buckets {
		if s > 0 && left <= s {
			return min(width*(float64(i)+left/s), f.Max), true
		}
		left -= s
	}
	return f.Max, true
}

func highest(to **int64, v int64) {
	if v >= 0 && (*to == nil || v > **to) {
		*to = &v
	}
}

func sum(to **float64, v float64) {
	if *to != nil {
		v += **to
	}
	*to = &v
}

// thousandth keeps texts short; no figure is better than that.
func thousandth(v float64) float64 { return math.Round(v*1000) / 1000 }

func rounded(p *float64) *float64 {
	if p == nil {
		return nil
	}
	v := thousandth(*p)
	return &v
}

func same[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func figure(f *api.Figure) *api.Figure {
	if f == nil {
		return nil
	}
	out := &api.Figure{Seconds: thousandth(f.Seconds), Mean: thousandth(f.Mean), Max: thousandth(f.Max)}
	for _, b := range f.Buckets {
		out.Buckets = append(out.Buckets, math.Round(b*10)/10)
	}
	return out
}
