package api

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Measure is what the part of an attempt on one node was seen using, from the start of its
// ranks to the end of its containment. What was never known is absent, and is not zero.
type Measure struct {
	Node    string  `json:"node"`
	Seconds float64 `json:"seconds"`      // that it ran
	CPUs    int     `json:"cpus"`         // that it held there
	Memory  int64   `json:"memory_bytes"` // that it had asked for there, 0: no figure
	// CPUSeconds are those of all its processes, user and system.
	CPUSeconds *float64 `json:"cpu_seconds,omitempty"`
	// MemoryPeak is the most that all its processes held together: by the account of their group,
	// where there is one, with the page cache.
	MemoryPeak *int64 `json:"memory_peak_bytes,omitempty"`
	IOBytes    *int64 `json:"io_bytes,omitempty"` // read and written, as far as it was seen
	// CPU is in percent of the CPUs held, Resident in bytes.
	CPU      *Figure `json:"cpu,omitempty"`
	Resident *Figure `json:"resident,omitempty"`
	// Ranks are its ranks without the steps of an allocation, by what the kernel says of each at its
	// end; nil: none has ended, or its supervisor did first.
	Ranks  *RankUse       `json:"ranks,omitempty"`
	Cards  []CardMeasure  `json:"cards,omitempty"`
	Series *MeasureSeries `json:"series,omitempty"`
	// Start is what was before the first step; nil: nothing of it is known.
	Start *StartParts `json:"start,omitempty"`
	// Hooks are the site's prolog and epilog around it, as far as they ran and wrote something or failed.
	Hooks []HookRun `json:"hooks,omitempty"`
}

// StartParts are the seconds that a start took on one node, one part after the other, to the first step of what
// it runs; nil is not known. CardUse and Beat count from the start of the ranks.
type StartParts struct {
	Image   *float64 `json:"image_seconds,omitempty"`   // its image was brought; 0: it has none, or it was there
	Prolog  *float64 `json:"prolog_seconds,omitempty"`  // the site's program ran
	Prepare *float64 `json:"prepare_seconds,omitempty"` // all else, until the node was ready
	Wait    *float64 `json:"wait_seconds,omitempty"`    // from then to the start: for the other nodes, and the controller
	CardUse *float64 `json:"first_use_seconds,omitempty"`
	Beat    *float64 `json:"first_beat_seconds,omitempty"`
}

// FirstStep is when the first step is taken to have been, from the start of the ranks: at the first beat, and
// not before the first use of a card. False: neither was seen.
func (p *StartParts) FirstStep() (seconds float64, known bool) {
	for _, v := range []*float64{p.CardUse, p.Beat} {
		if v != nil {
			seconds, known = max(seconds, *v), true
		}
	}
	return seconds, known
}

// Total is how long it took from the assignment to the first step, as far as its parts are known; false: no first
// step was seen.
func (p *StartParts) Total() (seconds float64, known bool) {
	seconds, known = p.FirstStep()
	for _, v := range []*float64{p.Image, p.Prolog, p.Prepare, p.Wait} {
		if v != nil {
			seconds += *v
		}
	}
	return seconds, known
}

// HookRun is a run of a site's hook: the last one, where a daemon that died ran it before.
type HookRun struct {
	Hook    string  `json:"hook"` // prolog or epilog
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty" bound:"any"`  // why it failed; empty: it did not
	Output  string  `json:"output,omitempty" bound:"any"` // the end of what it wrote, in lines
}

// RankUse is what ranks that have ended used. A process that nobody waited for is not in it.
type RankUse struct {
	Ranks      int     `json:"ranks"` // of which it is known
	CPUSeconds float64 `json:"cpu_seconds"`
	MinCPU     float64 `json:"min_cpu_seconds"`
	MinCPURank int     `json:"min_cpu_rank"`
	MaxRSS     int64   `json:"max_rss_bytes"` // of the largest process of one rank
	MaxRSSRank int     `json:"max_rss_rank"`
	SumRSS     int64   `json:"sum_rss_bytes"` // of the largest process of each
}

// CardMeasure is one card of a member. On a card that others shared, Utilization and VRAM are the
// member's own where the driver says whose they are, and Power and Joules are of the times when
// it had the card alone.
type CardMeasure struct {
	UUID        string  `json:"uuid"`
	Index       int     `json:"index"`
	Model       string  `json:"model"`
	VRAMBytes   int64   `json:"vram_bytes"`  // of the card
	VRAMAsked   int64   `json:"vram_asked"`  // of a shared card, 0: the card is its own
	Utilization *Figure `json:"utilization"` // percent
	VRAM        *Figure `json:"vram"`        // bytes
	Power       *Figure `json:"power"`       // watts
	// Joules is the energy; IdleSeconds is how long the card did nothing at all.
	Joules      *float64       `json:"joules"`
	IdleSeconds *float64       `json:"idle_seconds"`
	Series      *MeasureSeries `json:"series,omitempty"`
}

// MeasureBuckets is into how many equal parts of 100 percent a [Figure] sorts its time.
const MeasureBuckets = 16

// Figure is what became of the samples of one thing. Each counts for the time since the one before.
type Figure struct {
	Seconds float64 `json:"seconds"` // for which it is known
	Mean    float64 `json:"mean"`    // over that time
	Max     float64 `json:"max"`
	// Buckets are the seconds spent in each sixteenth of 100 percent; none of a figure that is no
	// percentage.
	Buckets []float64 `json:"buckets,omitempty" bound:"n=16"`
}

// MeasurePoints bounds a series. One that is full goes on with half its points, each of twice the time.
const MeasurePoints = 120

// MeasureSeries is how percentages went with time: of a member the CPUs held and the memory asked
// for (of the node's where it asked for none), of a card its utilization and its VRAM.
type MeasureSeries struct {
	Step   float64 `json:"step_seconds"` // of each point, from the start of the ranks
	Use    Points  `json:"use"`          // of CPUs, or of the card
	Memory Points  `json:"memory"`       // of memory, or of VRAM
}

// Points are percentages in JSON as numbers, with null where nothing is known.
type Points []uint8

// UnknownPoint is a point of which nothing is known.
const UnknownPoint = 255

// MarshalJSON writes the numbers.
func (p Points) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 4*len(p)+2)
	b = append(b, '[')
	for i, v := range p {
		if i > 0 {
			b = append(b, ',')
		}
		if v == UnknownPoint {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendUint(b, uint64(v), 10)
		}
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads them.
func (p *Points) UnmarshalJSON(b []byte) error {
	var all []*uint8
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("points: %w", err)
	}
	if len(all) > MeasurePoints {
		return Errorf(CodeInvalid, "%d points, at most %d", len(all), MeasurePoints)
	}
	*p = make(Points, len(all))
	for i, v := range all {
		(*p)[i] = UnknownPoint
		if v != nil {
			(*p)[i] = *v
		}
	}
	return nil
}

// Efficiency is what an attempt used of what it held, over all its nodes and cards. What is not
// known of every one of them is absent.
type Efficiency struct {
	Seconds       float64  `json:"seconds"` // that it ran
	CPUSeconds    *float64 `json:"cpu_seconds,omitempty"`
	CPUPercent    *float64 `json:"cpu_percent,omitempty"`       // of the CPUs held
	MemoryPeak    *int64   `json:"memory_peak_bytes,omitempty"` // on the node where it was most
	MemoryPercent *float64 `json:"memory_percent,omitempty"`    // of what was asked for there; absent where nothing was
	MaxRSS        *int64   `json:"max_rss_bytes,omitempty"`     // of its largest process
	GPUPercent    *float64 `json:"gpu_percent,omitempty"`       // mean utilization of its cards
	GPUIdle       *float64 `json:"gpu_idle_percent,omitempty"`  // of the card time: nothing ran on them
	VRAMPeak      *int64   `json:"vram_peak_bytes,omitempty"`   // on one card
	VRAMPercent   *float64 `json:"vram_percent,omitempty"`      // of that card, or of what was asked for of it
	TimePercent   *float64 `json:"time_percent,omitempty"`      // of its time limit; absent: it has none
	Joules        *float64 `json:"joules,omitempty"`            // of its cards
	// Start is that of the node whose first step came last; nil: none was seen.
	Start  *StartParts `json:"start,omitempty"`
	Advice []Advice    `json:"advice,omitempty"`
}

// Advice is what to ask for next time. Text is the sentence; Rule names what it comes from, as
// docs/efficiency.md lists them.
type Advice struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}
