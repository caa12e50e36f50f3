package sacct

import (
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/measure"
	"gangd/pkg/slurm"
)

// measuredHistory is that of the other tests with figures: job 30 has all, job 33 had a card that nobody saw, and
// 12 still runs.
func measuredHistory() *fake.Controller {
	c := history()
	f := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	fig := func(seconds, mean, most float64) *api.Figure {
		return &api.Figure{Seconds: seconds, Mean: mean, Max: most}
	}
	part := func(node string, seconds, cpu float64, peak int64, use float64) api.Measure {
		return api.Measure{Node: node, Seconds: seconds, CPUs: 2, Memory: 2 << 30, CPUSeconds: f(cpu), MemoryPeak: n(peak), CPU: fig(seconds, 50, 90),
			Cards: []api.CardMeasure{{UUID: "GPU-" + node, VRAMBytes: 80 << 30, Utilization: fig(seconds, use, 100), VRAM: fig(seconds, 20<<30, 40<<30),
				Power: fig(seconds, 300, 400), Joules: f(300 * seconds), IdleSeconds: f(0)}}}
	}
	give := func(id int64, all ...api.Measure) {
		a := c.Attempts[id]
		a[len(a)-1].Measures = all
		for i := range c.Jobs {
			if c.Jobs[i].JobID == id {
				a[len(a)-1].Efficiency = measure.Of(&c.Jobs[i], &a[len(a)-1])
			}
		}
	}
	give(30, part("n1", 600, 900, 1<<30, 75))
	dark := part("n1", 600, 0, 1<<20, 0)
	dark.Cards[0].Utilization, dark.Cards[0].Power, dark.Cards[0].Joules = nil, nil, nil
	give(33, dark)
	give(12, part("n1", 3900, 1000, 3<<30, 40), part("n2", 3900, 3000, 1<<30, 80))
	return c
}

func TestUsed(t *testing.T) {
	slurmtest.Files(t, "testdata/used/*.txt", *update, measuredHistory, map[string]slurm.Runner{"seff": Seff, "reportseff": Reportseff, "sstat": Sstat})
}

func TestSeffLists(t *testing.T) {
	slurmtest.Texts(t, seffCommand.Lists())
	slurmtest.Texts(t, reportseffCommand.Lists())
}

// A size is in the largest unit of which there is one, and a time has days only when there is one.
func TestSeffUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0.00 MB", 512: "0.50 KB", 1 << 20: "1.00 MB", 5 << 29: "2.50 GB", 3 << 50: "3.00 PB", 1 << 62: "4096.00 PB"} {
		if got := kilobytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := clockOf(59.6) + " " + clockOf(90061); got != "00:01:00 1-01:01:01" {
		t.Error(got)
	}
}

// A job is found by the names of files of its output.
func TestSeffFiles(t *testing.T) {
	for name, want := range map[string]string{"12": "12", "12_3": "12_3", "slurm-12.out": "12", "/tmp/a1/slurm-12_3.out": "12_3", "train_7": "7", "x.out": ""} {
		got := ""
		if m := ofAFile.FindStringSubmatch(name[strings.LastIndex(name, "/")+1:]); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
