package sacct

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// What ranks of several nodes used is one, on one line, and empty where nothing is known.
func TestUseOfRanks(t *testing.T) {
	joules, cpu := 7.2e6, 95.5
	fig := func(v float64) *api.Figure { return &api.Figure{Seconds: 60, Mean: v, Max: v} }
	d := &api.JobDetail{Job: api.Job{JobID: 12}, Attempts: []api.Attempt{{JobID: 12, Attempt: 1, Nodes: []string{"n1", "n2"}, StartTime: time.Unix(0, 0), EndTime: time.Unix(60, 0),
		Steps: []api.Step{{StepID: api.StepExtern, Tasks: 2}, {StepID: "0", Tasks: 1, CPUTime: 5}}, Efficiency: &api.Efficiency{Joules: &joules, CPUSeconds: &cpu},
		Measures: []api.Measure{
			{Node: "n1", Ranks: &api.RankUse{Ranks: 2, CPUSeconds: 30, MinCPU: 10, MinCPURank: 1, MaxRSS: 2 << 20, MaxRSSRank: 0, SumRSS: 3 << 20}, Cards: []api.CardMeasure{{Utilization: fig(80), VRAM: fig(2 << 30)}}},
			{Node: "n2", Ranks: &api.RankUse{Ranks: 1, CPUSeconds: 6, MinCPU: 6, MinCPURank: 2, MaxRSS: 6 << 20, MaxRSSRank: 2, SumRSS: 6 << 20}, Cards: []api.CardMeasure{{Utilization: fig(60), VRAM: fig(4 << 30)}}},
		}}}}
	line := func(r *record) string {
		var out []string
		for _, name := range strings.Fields("AveRSS MaxRSSNode MaxRSSTask MinCPU MinCPUNode MinCPUTask ConsumedEnergy ConsumedEnergyRaw TotalCPU TRESUsageInAve TRESUsageInTot") {
			for i := range fields {
				if fields[i].Name == name {
					out = append(out, fields[i].text(r))
				}
			}
		}
		return strings.Join(out, "|")
	}
	all := recordsOf(d, time.Unix(100, 0))
	for i, want := range []string{
		"||||||7.20M|7200000|01:35.500||",
		"3M|n2|2|00:00:06|n2|2|7.20M|7200000|00:00:00|cpu=00:00:12,gres/gpumem=3G,gres/gpuutil=70,mem=3M|cpu=00:00:36,gres/gpumem=3G,gres/gpuutil=70,mem=9M",
		"||||||||00:05.000||",
	} {
		if got := line(all[i]); got != want {
			t.Errorf("%s: %s\nwant %s", all[i].id(), got, want)
		}
	}
	d.Attempts[0].Measures, d.Attempts[0].Efficiency = nil, nil
	if got := line(recordsOf(d, time.Unix(100, 0))[1]); got != "||||||||00:00:00||" {
		t.Error(got)
	}
	if got := line(recordsOf(d, time.Unix(100, 0))[0]); got != "||||||||00:05.000||" {
		t.Error(got)
	}
}

// Slurm cuts both ends to whole seconds before it takes one from the other.
func TestElapsedIsOfWholeSeconds(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		want     time.Duration
	}{{10.9, 12.1, 2 * time.Second}, {10.1, 12.9, 2 * time.Second}, {10.1, 10.9, 0}} {
		at := func(s float64) time.Time { return time.UnixMilli(int64(1000 * s)) }
		r := &record{job: &api.Job{}, attempt: &api.Attempt{StartTime: at(c.from), EndTime: at(c.to)}}
		if got := r.elapsed(); got != c.want {
			t.Errorf("%v to %v: %v", c.from, c.to, got)
		}
	}
}
