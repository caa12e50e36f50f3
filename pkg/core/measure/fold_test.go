package measure

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.01*math.Abs(want) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

func begun(cards int) *Fold {
	m := api.Measure{Node: "n1", CPUs: 4, Memory: 16 * gib}
	for range cards {
		m.Cards = append(m.Cards, api.CardMeasure{UUID: "GPU-1", Model: "H200", VRAMBytes: 100 * gib})
	}
	return Begin(m, 64*gib)
}

// An hour that is known second by second: every figure within a hundredth.
func TestFoldKnowsAnHour(t *testing.T) {
	f := begun(2)
	for s := 1; s <= 3600; s++ {
		u, w := 90, 500
		if s > 1800 {
			u, w = 10, 100
		}
		f.Add(Sample{At: time.Duration(s) * time.Second, CPU: time.Duration(s) * 2 * time.Second, Memory: 8 * gib, Peak: 9 * gib, IO: int64(s),
			Cards: []CardSample{{Utilization: u, VRAM: 50 * gib, Watts: w}, {Utilization: 0, VRAM: 0, Watts: 70}}})
	}
	m := f.End(3601*time.Second, 7210*time.Second, -1, nil)
	near(t, "seconds", m.Seconds, 3601)
	near(t, "CPU time", *m.CPUSeconds, 7210)
	near(t, "CPU", m.CPU.Mean, 50)
	near(t, "peak", float64(*m.MemoryPeak), 9*gib)
	near(t, "memory", m.Resident.Mean, 8*gib)
	near(t, "IO", float64(*m.IOBytes), 3600)
	c := m.Cards[0]
	near(t, "utilization", c.Utilization.Mean, 50)
	near(t, "highest", c.Utilization.Max, 90)
	near(t, "energy", *c.Joules, 1800*600)
	near(t, "power", c.Power.Mean, 300)
	near(t, "VRAM", c.VRAM.Max, 50*gib)
	if *c.IdleSeconds != 0 || *m.Cards[1].IdleSeconds != 3600 || m.Cards[1].Utilization.Max != 0 {
		t.Errorf("idle %g and %g", *c.IdleSeconds, *m.Cards[1].IdleSeconds)
	}
	if low, _ := Percentile(c.Utilization, 0.25); low < 6.25 || low > 12.5 {
		t.Errorf("a quarter of the time below %g", low)
	}
	if high, ok := Percentile(c.Utilization, 0.95); !ok || high < 87.5 || high > 90 {
		t.Errorf("95%% of the time below %g", high)
	}
	s := c.Series
	if len(s.Use) < api.MeasurePoints/2 || len(s.Use) > api.MeasurePoints || s.Step*float64(len(s.Use)) < 3600 {
		t.Fatalf("%d points of %gs", len(s.Use), s.Step)
	}
	if n := len(s.Use); s.Use[0] != 90 || s.Use[n-1] != 10 || s.Memory[n/2] != 50 || m.Series.Use[n/2] != 50 || m.Series.Memory[n/2] != 50 {
		t.Errorf("%v", s)
	}
}

// What was not seen is unknown and in no mean; what was seen to be 0 is 0.
func TestFoldDoesNotGuess(t *testing.T) {
	f := begun(1)
	for s := 1; s <= 60; s++ {
		c := Nothing
		if s > 50 {
			c = CardSample{Utilization: 80, VRAM: -1, Watts: -1}
		}
		f.Add(Sample{At: time.Duration(s) * time.Second, CPU: -1, Memory: -1, Peak: -1, IO: -1, Cards: []CardSample{c}})
	}
	m := f.Measure()
	if m.CPUSeconds != nil || m.CPU != nil || m.MemoryPeak != nil || m.Resident != nil || m.IOBytes != nil {
		t.Errorf("%+v", m)
	}
	c := m.Cards[0]
	if c.Utilization.Mean != 80 || c.Utilization.Seconds != 10 || c.VRAM != nil || c.Joules != nil || *c.IdleSeconds != 0 {
		t.Errorf("%+v", c)
	}
	if s := c.Series; s.Use[0] != api.UnknownPoint || s.Use[55] != 80 {
		t.Errorf("%v", s.Use)
	}
	// A daemon that stood still has seen nothing of cards meanwhile; the kernel counted on.
	f.Add(Sample{At: time.Hour, CPU: 2 * time.Hour, Memory: gib, Peak: -1, IO: -1, Cards: []CardSample{{Utilization: 100}}})
	m = f.Measure()
	if m.Cards[0].Utilization.Seconds != 10 || m.Resident != nil || *m.MemoryPeak != gib || math.Abs(m.CPU.Mean-50) > 0.01 {
		t.Errorf("%+v", m)
	}
	// Without CPUs of its own there is nothing that its time is a percentage of.
	f = Begin(api.Measure{}, 0)
	f.Add(Sample{At: time.Second, CPU: time.Second, Memory: gib})
	if m := f.Measure(); m.CPU != nil || *m.CPUSeconds != 1 || m.Series.Use[0] != api.UnknownPoint || m.Series.Memory[0] != api.UnknownPoint {
		t.Errorf("%+v", m)
	}
}

// A run shorter than a sample has what its end says, and nothing else.
func TestFoldOfAMoment(t *testing.T) {
	m := begun(1).End(300*time.Millisecond, 200*time.Millisecond, 5*gib, &api.RankUse{Ranks: 1, CPUSeconds: 0.2})
	if *m.CPUSeconds != 0.2 || *m.MemoryPeak != 5*gib || m.Cards[0].Utilization != nil || m.Seconds != 0.3 || m.Ranks.Ranks != 1 {
		t.Errorf("%+v", m)
	}
	if m := begun(0).End(time.Second, -1, -1, nil); m.CPUSeconds != nil || m.MemoryPeak != nil {
		t.Errorf("%+v", m)
	}
}

// A daemon that restarts goes on with what it kept.
func TestFoldGoesOn(t *testing.T) {
	all, before := begun(1), begun(1)
	for s := 1; s <= 500; s++ {
		x := Sample{At: time.Duration(s) * time.Second, CPU: time.Duration(s) * time.Second, Memory: gib, Cards: []CardSample{{Utilization: s % 100, VRAM: gib, Watts: s}}}
		all.Add(x)
		before.Add(x)
		if s == 250 {
			kept, err := json.Marshal(before)
			if err != nil {
				t.Fatal(err)
			}
			before = &Fold{}
			if err := json.Unmarshal(kept, before); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, _ := json.Marshal(all.Measure())
	b, _ := json.Marshal(before.Measure())
	if string(a) != string(b) {
		t.Errorf("%s\n%s", a, b)
	}
}

// However long a run is and whatever is seen of it: no more than so much, and no figure that is
// impossible.
func TestFoldIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := begun(1)
		var at, cpu time.Duration
		for range rapid.IntRange(1, 2000).Draw(t, "samples") {
			span := time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "span"))
			at += span
			cpu += time.Duration(rapid.Int64Range(0, 4*int64(span)).Draw(t, "cpu"))
			f.Add(Sample{At: at, CPU: cpu, Memory: rapid.Int64Range(-1, 16*gib).Draw(t, "memory"), Peak: -1, IO: -1, Cards: []CardSample{{
				Utilization: rapid.IntRange(-1, 100).Draw(t, "utilization"), VRAM: rapid.Int64Range(-1, 100*gib).Draw(t, "VRAM"), Watts: rapid.IntRange(-1, 1000).Draw(t, "watts")}}})
		}
		m := f.Measure()
		if len(m.Series.Use) != len(m.Series.Memory) || len(m.Series.Use) > api.MeasurePoints {
			t.Fatalf("%d and %d points", len(m.Series.Use), len(m.Series.Memory))
		}
		if covered := m.Series.Step * float64(len(m.Series.Use)); covered < m.Seconds-0.002 || covered > m.Seconds+m.Series.Step {
			t.Fatalf("points of %gs, the run of %gs", covered, m.Seconds)
		}
		if c := m.CPU; c.Mean > 100.001 || c.Max < c.Mean-0.001 || c.Seconds > m.Seconds+0.002 {
			t.Fatalf("%+v", c)
		}
		if c := m.Cards[0]; c.Utilization != nil && (c.Utilization.Mean > 100 || *c.IdleSeconds > c.Utilization.Seconds+0.002) {
			t.Fatalf("%+v", c)
		}
	})
}

// Eight cards each second: a hundredth of a core is 10 ms.
func BenchmarkFold(b *testing.B) {
	f := begun(8)
	s := Sample{Memory: gib, Peak: -1, IO: -1, Cards: make([]CardSample, 8)}
	for i := range s.Cards {
		s.Cards[i] = CardSample{Utilization: 50, VRAM: gib, Watts: 400}
	}
	b.ReportAllocs()
	for b.Loop() {
		s.At += time.Second
		s.CPU += time.Second
		f.Add(s)
	}
}

// The first use of a card is between the last look that saw none and the one that saw it, and is not known where these are far apart.
func TestFoldSeesTheFirstUse(t *testing.T) {
	look := func(f *Fold, at float64, use ...int) {
		s := Sample{At: time.Duration(at * float64(time.Second)), CPU: -1, Memory: -1, Peak: -1, IO: -1}
		for _, u := range use {
			s.Cards = append(s.Cards, CardSample{Utilization: u, VRAM: -1, Watts: -1})
		}
		f.Add(s)
	}
	for _, c := range []struct {
		name  string
		looks func(f *Fold)
		want  float64 // below 0: not known
	}{
		{"each second", func(f *Fold) {
			for s := 1.0; s <= 40; s++ {
				look(f, s, 0, 0)
			}
			look(f, 41, 0, 70)
			look(f, 42, 90, 70)
		}, 40.5},
		{"at once", func(f *Fold) { look(f, 1, 5, 0); look(f, 2, 5, 0) }, 0.5},
		{"for a moment", func(f *Fold) { look(f, 1, 5, 0) }, -1},
		{"by the one before", func(f *Fold) { look(f, 0.01, 90, 0); look(f, 1.01, 20, 0); look(f, 2.01, 0, 0); look(f, 3.01, 50, 0) }, 2.51},
		{"by the one before, and then not seen", func(f *Fold) { look(f, 0.01, 90, 0); look(f, 1.01, -1, 0); look(f, 9.01, 50, 0) }, -1},
		{"soon, and seen not to be before", func(f *Fold) { look(f, 0.5, 0, 0); look(f, 1.5, 90, 0); look(f, 2.5, 0, 0) }, 1},
		{"never", func(f *Fold) { look(f, 1, 0, 0); look(f, 2, 0, 0) }, -1},
		{"not seen", func(f *Fold) { look(f, 1, -1, -1); look(f, 2, -1, 0) }, -1},
		{"seen too late", func(f *Fold) { look(f, 1, 0, 0); look(f, 9, 80, 0); look(f, 10, 80, 0) }, -1},
		{"one of them not seen before", func(f *Fold) {
			for s := 1.0; s <= 8; s++ {
				look(f, s, 0, -1)
			}
			look(f, 9, 80, -1)
		}, -1},
		{"a gap that does not matter so late", func(f *Fold) {
			for s := 5.0; s <= 100; s += 5 {
				look(f, s, 0, 0)
			}
			look(f, 105, 80, 0)
		}, 102.5},
	} {
		f := begun(2)
		c.looks(f)
		got := f.Measure().Start
		switch {
		case c.want < 0 && (got == nil || got.CardUse == nil):
		case c.want < 0 || got == nil || got.CardUse == nil || math.Abs(*got.CardUse-c.want) > 0.01:
			t.Errorf("%s: %+v, wanted %g", c.name, got, c.want)
		}
	}
	f := begun(0)
	f.Beat(12 * time.Second)
	f.Beat(20 * time.Second)
	if got := f.Measure().Start; got == nil || *got.Beat != 12 {
		t.Errorf("%+v", got)
	}
}
