package measure

import (
	"fmt"
	"math"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// The rules of advice, by the names under which docs/efficiency.md explains them.
const (
	RuleMemory     = "memory"      // much more memory than was ever held
	RuleMemoryMore = "memory-more" // it ran out of it
	RuleCPUs       = "cpus"        // many more CPUs than were kept busy
	RuleIdleCards  = "idle-cards"  // some cards were never used
	RuleNoCard     = "no-card"     // none was
	RuleShare      = "share"       // a card of its own that was hardly used
	RuleTime       = "time"        // a time limit far above the run
	RuleStart      = "start"       // its cards waited long for the first use
)

const (
	shortRun = 5 * time.Minute  // says nothing of the next
	timeRun  = 10 * time.Minute // nor of a time limit below it
	gib      = 1 << 30

	wasted    = 50   // percent of CPUs or memory below which less would have done
	hardly    = 15   // percent that a card is used which others could share
	halfVRAM  = 50   // and percent of its VRAM
	unhurried = 25   // percent of a time limit that was far too long
	room      = 1.25 // what is proposed beside what was used
	timeRoom  = 1.5

	longStart = 30 // seconds to the first use of a card that are worth a word
	startPart = 3  // where they are more than so many percent of the run
)

// advise says what to ask for next time. It is silent about a run that was short, that still goes on, or that did
// not end by itself or by its limit, and never speaks of CPUs and memory to who asked for whole nodes.
func advise(j *api.Job, a *api.Attempt, e *api.Efficiency) (out []api.Advice) {
	say := func(rule, format string, args ...any) {
		out = append(out, api.Advice{Rule: rule, Text: fmt.Sprintf(format, args...)})
	}
	if a.Cause == api.CauseOOM {
		if asked := askedMemory(a); asked > 0 && !j.Exclusive {
			say(RuleMemoryMore, "it ran out of the %s of memory asked for: try --mem=%s", cluster.Size(asked), size(float64(asked)*timeRoom))
		}
		return out
	}
	if e.Seconds < shortRun.Seconds() || a.Cause != api.CauseCompleted && a.Cause != api.CauseTimeout {
		return nil
	}
	cards(j, a, e, say)
	start(j, e, say)
	if !j.Exclusive {
		memory(a, e, say)
		cpus(j, a, e, say)
	}
	if e.TimePercent != nil && *e.TimePercent < unhurried && a.Cause == api.CauseCompleted && e.Seconds >= timeRun.Seconds() &&
		j.RestartCount == 0 {
		limit := time.Duration(j.TimeLimitSeconds) * time.Second
		better := time.Duration(math.Ceil(e.Seconds*timeRoom/600)) * 10 * time.Minute
		if better < limit {
			say(RuleTime, "it took %s of a limit of %s, and shorter limits start sooner: try --time=%s", clock(time.Duration(e.Seconds)*time.Second),
				clock(limit), clock(better))
		}
	}
	return out
}

type sayer = func(rule, format string, args ...any)

func cards(j *api.Job, a *api.Attempt, e *api.Efficiency, say sayer) {
	all, unused := 0, 0
	for i := range a.Measures {
		for k := range a.Measures[i].Cards {
			c := &a.Measures[i].Cards[k]
			if c.Utilization == nil || c.Utilization.Seconds < enough*a.Measures[i].Seconds {
				return // one that was not seen may have worked
			}
			all++
			if c.Utilization.Max == 0 {
				unused++
			}
		}
	}
	switch {
	case all == 0 || len(a.Measures) < len(a.Nodes):
	case unused == all:
		say(RuleNoCard, "none of its %d cards was ever used: ask for none, or see whether the program finds them", all)
	case unused > 0:
		say(RuleIdleCards, "%d of its %d cards were never used: ask for %d", unused, all, all-unused)
	case all == 1 && !j.Share && !j.Exclusive && e.GPUPercent != nil && *e.GPUPercent < hardly && e.VRAMPercent != nil &&
		*e.VRAMPercent < halfVRAM:
		say(RuleShare, "its card was used to %.0f%% and %s of VRAM: try --share --vram=%s", *e.GPUPercent, cluster.Size(*e.VRAMPeak),
			size(float64(*e.VRAMPeak)*room))
	}
}

// start is about cards that wait while a program begins.
func start(j *api.Job, e *api.Efficiency, say sayer) {
	if e.Start == nil || e.Start.CardUse == nil {
		return
	}
	took := *e.Start.CardUse
	if took < longStart || took < startPart/100.0*e.Seconds {
		return
	}
	each := ""
	if n := j.RestartCount; n > 0 {
		each = fmt.Sprintf(", and it was started %d times", n+1)
	}
	say(RuleStart, "%.0f s of the start were before the first use of a card%s: imports from a network disk? keep the environment on the node",
		took, each)
}

// askedMemory is what was asked for on the node that was asked for most.
func askedMemory(a *api.Attempt) (most int64) {
	for i := range a.Measures {
		most = max(most, a.Measures[i].Memory)
	}
	return most
}

func memory(a *api.Attempt, e *api.Efficiency, say sayer) {
	asked := askedMemory(a)
	if e.MemoryPercent == nil || *e.MemoryPercent >= wasted || len(a.Measures) < len(a.Nodes) {
		return
	}
	if better := float64(*e.MemoryPeak) * room; float64(asked)-better >= gib {
		say(RuleMemory, "it used at most %s of %s of memory on a node: try --mem=%s", cluster.Size(*e.MemoryPeak), cluster.Size(asked),
			size(better))
	}
}

func cpus(j *api.Job, a *api.Attempt, e *api.Efficiency, say sayer) {
	if e.CPUPercent == nil || *e.CPUPercent >= wasted || j.Size < 1 || j.CPUsPerRank < 2 || len(j.Roles) > 0 {
		return
	}
	// A rank that computes for a part of its time still wants its CPUs then.
	for i := range a.Measures {
		high, ok := Percentile(a.Measures[i].CPU, 0.95)
		if !ok || high >= wasted {
			return
		}
	}
	used := *e.CPUPercent / 100 * float64(j.CPUsPerRank)
	if better := int(math.Ceil(used * room)); better < j.CPUsPerRank {
		say(RuleCPUs, "it kept %.1f of %d CPUs a rank busy: try --cpus-per-task=%d", used, j.CPUsPerRank, max(better, 1))
	}
}

// size rounds up to what people ask for: whole GiB, or MiB below one.
func size(bytes float64) string {
	const mib = 1 << 20
	if bytes < gib {
		return fmt.Sprintf("%dM", max(int64(math.Ceil(bytes/(64*mib)))*64, 64))
	}
	return fmt.Sprintf("%dG", int64(math.Ceil(bytes/gib)))
}

// clock is a time as --time takes it.
func clock(d time.Duration) string {
	s := int64(d.Seconds())
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
