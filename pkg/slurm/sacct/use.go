package sacct

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// What ranks have used is on the line of the script, and of a gang without one on that of the allocation, as
// Slurm has what is no step of a step's number there.

// ranksUse is that of the ranks of all nodes, and on which node the largest and the least were; nil: the line is of
// something else, or nothing is known.
func (r *record) ranksUse() (sum *api.RankUse, most, least string) {
	if r.step == nil || r.attempt == nil || r.step.StepID != r.ownLine() {
		return nil, "", ""
	}
	for i := range r.attempt.Measures {
		m := &r.attempt.Measures[i]
		u := m.Ranks
		if u == nil || u.Ranks == 0 {
			continue
		}
		if sum == nil {
			first := *u
			sum, most, least = &first, m.Node, m.Node
			continue
		}
		if u.MaxRSS > sum.MaxRSS {
			sum.MaxRSS, sum.MaxRSSRank, most = u.MaxRSS, u.MaxRSSRank, m.Node
		}
		if u.MinCPU < sum.MinCPU {
			sum.MinCPU, sum.MinCPURank, least = u.MinCPU, u.MinCPURank, m.Node
		}
		sum.Ranks += u.Ranks
		sum.CPUSeconds += u.CPUSeconds
		sum.SumRSS += u.SumRSS
	}
	return sum, most, least
}

// ownLine is the step on whose line the use of ranks is.
func (r *record) ownLine() string {
	for i := range r.attempt.Steps {
		if r.attempt.Steps[i].StepID == api.StepBatch {
			return api.StepBatch
		}
	}
	return api.StepExtern
}

// ofRanks is a column of what ranks used.
func ofRanks(f func(r *record, u *api.RankUse, most, least string) string) func(*record) string {
	return func(r *record) string {
		u, most, least := r.ranksUse()
		if u == nil {
			return ""
		}
		return f(r, u, most, least)
	}
}

func spanOf(seconds float64) string {
	return when.Span(time.Duration(seconds * float64(time.Second)))
}

func aveRSS(r *record, u *api.RankUse, _, _ string) string {
	return size(u.SumRSS/int64(u.Ranks), 'K', r.view)
}
func maxRSSNode(_ *record, _ *api.RankUse, most, _ string) string { return most }
func maxRSSTask(_ *record, u *api.RankUse, _, _ string) string    { return strconv.Itoa(u.MaxRSSRank) }
func minCPU(_ *record, u *api.RankUse, _, _ string) string        { return spanOf(u.MinCPU) }
func minCPUNode(_ *record, _ *api.RankUse, _, least string) string {
	return least
}
func minCPUTask(_ *record, u *api.RankUse, _, _ string) string { return strconv.Itoa(u.MinCPURank) }

// joules are those of the cards: on the line of the job, and on that of the ranks.
func joules(r *record) (string, bool) {
	if r.attempt == nil || r.attempt.Efficiency == nil || r.attempt.Efficiency.Joules == nil || r.step != nil && r.step.StepID != r.ownLine() {
		return "", false
	}
	return strconv.FormatFloat(*r.attempt.Efficiency.Joules, 'f', 0, 64), true
}

func energyRaw(r *record) string {
	text, _ := joules(r)
	return text
}

func energy(r *record) string {
	text, ok := joules(r)
	if !ok || len(text) < 4 || r.view.plain {
		return text
	}
	j := *r.attempt.Efficiency.Joules
	for _, unit := range []string{"K", "M", "G"} {
		if j /= 1000; j < 1000 {
			return fmt.Sprintf("%.2f%s", j, unit)
		}
	}
	return fmt.Sprintf("%.2fT", j/1000)
}

// usageIn is TRESUsageIn of each so many of the ranks: what is known of it. Of cards it is the mean.
func usageIn(each func(*api.RankUse) int) func(*record) string {
	return ofRanks(func(r *record, u *api.RankUse, _, _ string) string {
		n := each(u)
		parts := []string{"cpu=" + spanOf(u.CPUSeconds/float64(n))}
		var use, vram float64
		cards, known := 0, true
		for i := range r.attempt.Measures {
			for k := range r.attempt.Measures[i].Cards {
				c := &r.attempt.Measures[i].Cards[k]
				if c.Utilization == nil || c.VRAM == nil {
					known = false
					continue
				}
				cards++
				use, vram = use+c.Utilization.Mean, vram+c.VRAM.Mean
			}
		}
		if cards > 0 && known {
			parts = append(parts, "gres/gpumem="+size(int64(vram)/int64(cards), 'M', r.view), fmt.Sprintf("gres/gpuutil=%.0f", use/float64(cards)))
		}
		return strings.Join(append(parts, "mem="+size(u.SumRSS/int64(n), 'K', r.view)), ",")
	})
}

var (
	usageAve = usageIn(func(u *api.RankUse) int { return u.Ranks })
	usageTot = usageIn(func(*api.RankUse) int { return 1 })
)

// usedCPU is that of a whole attempt: of all its nodes where each says it, else of the steps that have ended.
func usedCPU(a *api.Attempt) (sum float64) {
	if e := a.Efficiency; e != nil && e.CPUSeconds != nil {
		return *e.CPUSeconds
	}
	for i := range a.Steps {
		if s := &a.Steps[i]; s.StepID != api.StepExtern {
			sum += s.CPUTime
		}
	}
	return sum
}
