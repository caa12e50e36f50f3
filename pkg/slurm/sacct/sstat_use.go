package sacct

import (
	"fmt"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/measure"
)

// ofTheParts says whose the figures of sstat are. What a rank used is known at its end; while it runs, what its
// node measures is known: of all processes of the job there, the steps with them.
const ofTheParts = "on the line of the script: of all that runs of the job on a node, as of the last minute"

// sstatUses are the columns that measures fill, empty where a node does not know.
var sstatUses = map[string]func(a *api.Attempt, v view) string{
	"AveCPU":             cpuOf(mean),
	"MinCPU":             cpuOf(least),
	"MinCPUNode":         func(a *api.Attempt, _ view) string { return nodeOf(a, cpuSeconds, least) },
	"AveRSS":             memoryOf(mean),
	"MaxRSS":             memoryOf(most),
	"MaxRSSNode":         func(a *api.Attempt, _ view) string { return nodeOf(a, peak, most) },
	"ConsumedEnergy":     func(a *api.Attempt, v view) string { return energy(&record{attempt: withFigures(a), view: v}) },
	"ConsumedEnergyRaw":  func(a *api.Attempt, v view) string { return energyRaw(&record{attempt: withFigures(a), view: v}) },
	"TRESUsageInAve":     usageOf(mean),
	"TRESUsageInMax":     usageOf(most),
	"TRESUsageInMaxNode": func(a *api.Attempt, _ view) string { return usageNodes(a, most) },
	"TRESUsageInMin":     usageOf(least),
	"TRESUsageInMinNode": func(a *api.Attempt, _ view) string { return usageNodes(a, least) },
	"TRESUsageInTot":     usageOf(total),
}

// withFigures has them summed up, where the controller did not.
func withFigures(a *api.Attempt) *api.Attempt {
	if a.Efficiency != nil {
		return a
	}
	all := *a
	all.Efficiency = measure.Of(&api.Job{}, a)
	return &all
}

// one is a figure of one node, false: it does not know.
type one func(m *api.Measure) (float64, bool)

func cpuSeconds(m *api.Measure) (float64, bool) {
	if m.CPUSeconds == nil {
		return 0, false
	}
	return *m.CPUSeconds, true
}

func peak(m *api.Measure) (float64, bool) {
	if m.MemoryPeak == nil {
		return 0, false
	}
	return float64(*m.MemoryPeak), true
}

// sum makes one figure of those of all nodes, and says whose it is.
type sum func(all []float64) (v float64, at int)

func total(all []float64) (v float64, at int) {
	for _, x := range all {
		v += x
	}
	return v, 0
}

func mean(all []float64) (v float64, at int) {
	v, _ = total(all)
	return v / float64(len(all)), 0
}

func most(all []float64) (v float64, at int) {
	for i, x := range all {
		if i == 0 || x > v {
			v, at = x, i
		}
	}
	return v, at
}

func least(all []float64) (v float64, at int) {
	for i, x := range all {
		if i == 0 || x < v {
			v, at = x, i
		}
	}
	return v, at
}

// over is that over all nodes, false: one of them does not know.
func over(a *api.Attempt, of one, by sum) (v float64, node string, known bool) {
	all := make([]float64, len(a.Measures))
	for i := range a.Measures {
		if all[i], known = of(&a.Measures[i]); !known {
			return 0, "", false
		}
	}
	v, at := by(all)
	return v, a.Measures[at].Node, true
}

func cpuOf(by sum) func(*api.Attempt, view) string {
	return func(a *api.Attempt, _ view) string {
		v, _, known := over(a, cpuSeconds, by)
		if !known {
			return ""
		}
		return spanOf(v)
	}
}

func memoryOf(by sum) func(*api.Attempt, view) string {
	return func(a *api.Attempt, v view) string {
		n, _, known := over(a, peak, by)
		if !known {
			return ""
		}
		return size(int64(n), 'K', v)
	}
}

func nodeOf(a *api.Attempt, of one, by sum) string {
	_, node, _ := over(a, of, by)
	return node
}

// gpuUse and gpuMemory are the means of the cards of a node.
func gpuUse(m *api.Measure) (float64, bool) {
	return overCards(m, func(c *api.CardMeasure) *api.Figure { return c.Utilization })
}

func gpuMemory(m *api.Measure) (float64, bool) {
	return overCards(m, func(c *api.CardMeasure) *api.Figure { return c.VRAM })
}

func overCards(m *api.Measure, of func(*api.CardMeasure) *api.Figure) (v float64, known bool) {
	for i := range m.Cards {
		f := of(&m.Cards[i])
		if f == nil {
			return 0, false
		}
		v += f.Mean
	}
	return v / float64(max(len(m.Cards), 1)), len(m.Cards) > 0
}

func usageOf(by sum) func(*api.Attempt, view) string {
	return func(a *api.Attempt, v view) string {
		return usageText(a, by, func(name string, x float64, _ string) string {
			switch name {
			case "cpu":
				return spanOf(x)
			case "gres/gpuutil":
				return fmt.Sprintf("%.0f", x)
			case "gres/gpumem":
				return size(int64(x), 'M', v)
			}
			return size(int64(x), 'K', v)
		})
	}
}

func usageNodes(a *api.Attempt, by sum) string {
	return usageText(a, by, func(_ string, _ float64, node string) string { return node })
}

// usageText has NAME=TEXT of what is known of all nodes.
func usageText(a *api.Attempt, by sum, text func(name string, v float64, node string) string) string {
	var parts []string
	for _, f := range []struct {
		name string
		of   one
	}{{"cpu", cpuSeconds}, {"gres/gpumem", gpuMemory}, {"gres/gpuutil", gpuUse}, {"mem", peak}} {
		if v, node, known := over(a, f.of, by); known {
			parts = append(parts, f.name+"="+text(f.name, v, node))
		}
	}
	return strings.Join(parts, ",")
}
