package measure

import (
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

func some(v float64) *float64 { return &v }
func bytes(v int64) *int64    { return &v }

func even(seconds, v float64) *api.Figure {
	f := &api.Figure{Seconds: seconds, Mean: v, Max: v, Buckets: make([]float64, api.MeasureBuckets)}
	f.Buckets[min(int(v*api.MeasureBuckets/100), api.MeasureBuckets-1)] = seconds
	return f
}

// hour is a node of a run of an hour that used a quarter of 8 CPUs, 4G of 32G, and cards as said.
func hour(node string, uses ...float64) api.Measure {
	m := api.Measure{Node: node, Seconds: 3600, CPUs: 8, Memory: 32 * gib, CPUSeconds: some(7200), MemoryPeak: bytes(4 * gib), CPU: even(3600, 25)}
	for _, u := range uses {
		c := api.CardMeasure{UUID: node, VRAMBytes: 100 * gib, Utilization: even(3600, u), VRAM: &api.Figure{Seconds: 3600, Mean: 10 * gib, Max: 20 * gib},
			Power: &api.Figure{Seconds: 3600, Mean: 100, Max: 100}, Joules: some(360000), IdleSeconds: some(0)}
		if u == 0 {
			*c.IdleSeconds = 3600
		}
		m.Cards = append(m.Cards, c)
	}
	return m
}

func done(measures ...api.Measure) *api.Attempt {
	a := &api.Attempt{Cause: api.CauseCompleted, Measures: measures}
	for i := range measures {
		a.Nodes = append(a.Nodes, measures[i].Node)
	}
	return a
}

var job = api.Job{Size: 2, CPUsPerRank: 4, TimeLimitSeconds: 24 * 3600}

func TestOf(t *testing.T) {
	e := Of(&job, done(hour("a", 100, 0), hour("b", 50, 50)))
	for what, f := range map[string][2]float64{"CPU": {*e.CPUPercent, 25}, "CPU time": {*e.CPUSeconds, 14400}, "memory": {*e.MemoryPercent, 12.5}, "cards": {*e.GPUPercent, 50},
		"idle": {*e.GPUIdle, 25}, "VRAM": {*e.VRAMPercent, 20}, "limit": {*e.TimePercent, 100.0 / 24}, "energy": {*e.Joules, 4 * 360000}} {
		near(t, what, f[0], f[1])
	}
	if Of(&job, done()) != nil {
		t.Error("figures of nothing")
	}
}

// What is not known of one part is not known of the whole, and never 0.
func TestOfDoesNotGuess(t *testing.T) {
	dark := hour("b", 50)
	dark.CPUSeconds, dark.Cards[0].Utilization, dark.Cards[0].Power, dark.Cards[0].Joules = nil, nil, nil, nil
	lost := done(hour("a", 100))
	lost.Nodes = append(lost.Nodes, "b")
	few := hour("a", 100)
	few.Cards[0].Utilization.Seconds, few.Cards[0].Power.Seconds = 100, 100
	few.CPUSeconds = nil
	bare := api.Measure{Node: "a", Seconds: 3600}
	for what, a := range map[string]*api.Attempt{"a node that can't see": done(hour("a", 100), dark), "a lost node": lost, "a card seen for a moment": done(few), "nothing seen": done(bare)} {
		if e := Of(&job, a); e.CPUPercent != nil || e.CPUSeconds != nil || e.GPUPercent != nil || e.GPUIdle != nil || what != "a lost node" && e.Joules != nil {
			t.Errorf("%s: %+v", what, e)
		}
	}
	// A card never used and a job without cards are two things.
	if e := Of(&job, done(hour("a", 0))); *e.GPUPercent != 0 || *e.GPUIdle != 100 {
		t.Errorf("%+v", e)
	}
	if e := Of(&job, done(hour("a"))); e.GPUPercent != nil || e.Joules != nil {
		t.Errorf("%+v", e)
	}
}

// after is a measure of a node whose cards were used first so many seconds after the start.
func after(m api.Measure, seconds float64) api.Measure {
	m.Start = &api.StartParts{CardUse: &seconds}
	return m
}

func TestAdvise(t *testing.T) {
	rules := func(change func(j *api.Job, a *api.Attempt), measures ...api.Measure) (out []string) {
		j, a := job, done(measures...)
		change(&j, a)
		for _, x := range Of(&j, a).Advice {
			out = append(out, x.Rule)
			if x.Text == "" || strings.Contains(x.Text, "%!") {
				t.Errorf("%q", x.Text)
			}
		}
		return out
	}
	as := func(*api.Job, *api.Attempt) {}
	busy := hour("a", 90)
	busy.CPU, busy.CPUSeconds, busy.MemoryPeak = even(3600, 90), some(8*3600*0.9), bytes(30*gib)
	bursts := hour("a", 90)
	bursts.CPU.Buckets[4], bursts.CPU.Buckets[15], bursts.CPU.Max = 3000, 600, 100
	unseen := hour("a", 0, 0)
	unseen.Cards[1].Utilization = nil
	for _, c := range []struct {
		what     string
		change   func(*api.Job, *api.Attempt)
		measures []api.Measure
		want     string
	}{
		{"much asked for", as, []api.Measure{hour("a", 90)}, "memory cpus time"},
		{"well used", func(j *api.Job, _ *api.Attempt) { j.TimeLimitSeconds = 7200 }, []api.Measure{busy}, ""},
		{"no limit", func(j *api.Job, _ *api.Attempt) { j.TimeLimitSeconds = 0 }, []api.Measure{busy}, ""},
		{"whole nodes", func(j *api.Job, _ *api.Attempt) { j.Exclusive = true }, []api.Measure{hour("a", 90)}, "time"},
		{"a short run", func(_ *api.Job, a *api.Attempt) { a.Measures[0].Seconds = 200 }, []api.Measure{hour("a", 0)}, ""},
		{"cancelled", func(_ *api.Job, a *api.Attempt) { a.Cause = api.CauseCancelled }, []api.Measure{hour("a", 0)}, ""},
		{"running", func(_ *api.Job, a *api.Attempt) { a.Cause = "" }, []api.Measure{hour("a", 0)}, ""},
		{"crashed", func(_ *api.Job, a *api.Attempt) { a.Cause = api.CauseCrash }, []api.Measure{hour("a", 0)}, ""},
		{"its limit", func(_ *api.Job, a *api.Attempt) { a.Cause = api.CauseTimeout }, []api.Measure{busy}, ""},
		{"out of memory", func(_ *api.Job, a *api.Attempt) { a.Cause = api.CauseOOM }, []api.Measure{hour("a", 0)}, "memory-more"},
		{"bursts", as, []api.Measure{bursts}, "memory time"},
		{"one card idle", as, []api.Measure{busy, hour("b", 90, 0)}, "idle-cards time"},
		{"no card used", as, []api.Measure{hour("a", 0, 0)}, "no-card memory cpus time"},
		{"a card not seen", as, []api.Measure{unseen}, "memory cpus time"},
		{"a card hardly used", as, []api.Measure{hour("a", 5)}, "share memory cpus time"},
		{"shared already", func(j *api.Job, _ *api.Attempt) { j.Share = true }, []api.Measure{hour("a", 5)}, "memory cpus time"},
		{"a lost node", func(_ *api.Job, a *api.Attempt) { a.Nodes = append(a.Nodes, "z") }, []api.Measure{hour("a", 0)}, "time"},
		{"began slowly", as, []api.Measure{after(hour("a", 90), 120)}, "start memory cpus time"},
		{"the other node began slowly", as, []api.Measure{hour("b", 90), after(hour("a", 90), 120)}, "start memory cpus time"},
		{"not slowly", as, []api.Measure{after(hour("a", 90), 20)}, "memory cpus time"},
		{"slowly, for a short run", as, []api.Measure{after(hour("a", 90), 100)}, "memory cpus time"},
		{"began slowly, and then crashed", func(_ *api.Job, a *api.Attempt) { a.Cause = api.CauseCrash }, []api.Measure{after(hour("a", 90), 120)}, ""},
		{"ran before", func(j *api.Job, _ *api.Attempt) { j.RestartCount = 1 }, []api.Measure{busy}, ""},
	} {
		if got := rules(c.change, c.measures...); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v, want %s", c.what, got, c.want)
		}
	}
	j, a := job, done(after(hour("a", 90), 120))
	j.RestartCount = 5
	if got := Of(&j, a).Advice[0].Text; got != "120 s of the start were before the first use of a card, and it was started 6 times: imports from a network disk? keep the environment on the node" {
		t.Errorf("%q", got)
	}
	j, a = job, done(hour("a", 5))
	var texts []string
	for _, x := range Of(&j, a).Advice {
		texts = append(texts, x.Text)
	}
	want := []string{"its card was used to 5% and 20G of VRAM: try --share --vram=25G", "it used at most 4G of 32G of memory on a node: try --mem=5G",
		"it kept 1.0 of 4 CPUs a rank busy: try --cpus-per-task=2", "it took 1:00:00 of a limit of 24:00:00, and shorter limits start sooner: try --time=1:30:00"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
}
