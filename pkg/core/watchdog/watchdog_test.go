package watchdog

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

var idle = Idle{Percent: 5, StaticBytes: 5 << 30, HostBytes: 4 << 20}

const gib = int64(1) << 30

// same gives every card the same reading.
func same(utilization int, bytes int64) Sight { return all(used(utilization, bytes)) }

func all(r Reading) Sight { return Sight{Card: func(string) Reading { return r }} }

func used(utilization int, bytes int64) Reading {
	return Reading{Utilization: utilization, UsedBytes: bytes}
}

func TestSeries(t *testing.T) {
	type pair struct {
		utilization int
		bytes       int64
	}
	type reading map[string]pair
	for _, c := range []struct {
		name     string
		readings []reading
		want     api.CardsState
	}{
		{"nothing was read", nil, api.CardsUnknown},
		{"idle and still", []reading{{"a": {5, 40 * gib}, "b": {0, 0}}, {"a": {0, 40*gib + 5*gib - 1}, "b": {0, 0}}}, api.CardsQuiet},
		{"above the percentage", []reading{{"a": {0, 0}, "b": {0, 0}}, {"a": {0, 0}, "b": {6, 0}}}, api.CardsBusy},
		{"memory moved by the limit", []reading{{"a": {0, 0}, "b": {0, 0}}, {"a": {0, 5 * gib}, "b": {0, 0}}}, api.CardsMoving},
		{"memory moved down", []reading{{"a": {0, 6 * gib}, "b": {0, 0}}, {"a": {0, 0}, "b": {0, 0}}}, api.CardsMoving},
		{"moved and came back", []reading{{"a": {0, 0}, "b": {0, 0}}, {"a": {0, 6 * gib}, "b": {0, 0}}, {"a": {0, 0}, "b": {0, 0}}}, api.CardsMoving},
		{"no utilisation", []reading{{"a": {-1, 0}, "b": {0, 0}}}, api.CardsUnknown},
		{"no memory", []reading{{"a": {0, -1}, "b": {0, 0}}}, api.CardsUnknown},
		{"unknown once is unknown", []reading{{"a": {-1, -1}, "b": {0, 0}}, {"a": {0, 0}, "b": {0, 0}}}, api.CardsUnknown},
		{"busy outweighs unknown", []reading{{"a": {-1, -1}, "b": {90, 0}}}, api.CardsBusy},
		{"moving outweighs unknown", []reading{{"a": {-1, -1}, "b": {0, 0}}, {"a": {0, 0}, "b": {0, 9 * gib}}}, api.CardsMoving},
		{"busy outweighs moving", []reading{{"a": {0, 0}, "b": {9, 0}}, {"a": {0, 9 * gib}, "b": {0, 0}}}, api.CardsBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSeries(idle, []string{"a", "b"})
			for _, r := range c.readings {
				s.Add(0, Sight{Card: func(uuid string) Reading { return used(r[uuid].utilization, r[uuid].bytes) }})
			}
			if got := s.State(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if f := s.Finding(); f.State != c.want || f.Count != 2 || f.Readings != len(c.readings) || len(c.readings) > 0 && f.Cards[0].State != c.want {
				t.Errorf("finding %+v", f)
			}
		})
	}
	none := NewSeries(idle, nil)
	none.Add(0, same(0, 0))
	if none.State() != api.CardsUnknown {
		t.Error("no cards show nothing")
	}
}

// Only when each card is idle and still in each reading a series is quiet, in whatever
// order things were seen.
func TestQuietIsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cards := rapid.SliceOfNDistinct(rapid.StringMatching("[a-d]"), 1, 4, rapid.ID).Draw(t, "cards")
		s := NewSeries(idle, cards)
		quiet := true
		low, high := map[string]int64{}, map[string]int64{}
		for i := range rapid.IntRange(1, 5).Draw(t, "readings") {
			r := map[string]Reading{}
			for _, c := range cards {
				x := Reading{Utilization: rapid.IntRange(-1, 8).Draw(t, "utilization"), UsedBytes: rapid.Int64Range(-1, 7).Draw(t, "used")}
				if x.UsedBytes > 0 {
					x.UsedBytes *= gib
				}
				r[c] = x
				quiet = quiet && x.Utilization >= 0 && x.Utilization <= 5 && x.UsedBytes >= 0
				if i == 0 {
					low[c], high[c] = x.UsedBytes, x.UsedBytes
				}
				low[c], high[c] = min(low[c], x.UsedBytes), max(high[c], x.UsedBytes)
			}
			s.Add(0, Sight{Card: func(uuid string) Reading { return r[uuid] }})
		}
		for _, c := range cards {
			quiet = quiet && high[c]-low[c] < idle.StaticBytes
		}
		if got := s.State() == api.CardsQuiet; got != quiet {
			t.Fatalf("quiet %v, want %v: %+v", got, quiet, s.Finding())
		}
	})
}

func TestMerge(t *testing.T) {
	of := map[string]*api.Finding{
		"n1": {State: api.CardsQuiet, Count: 8, Readings: 3, Cards: []api.CardFinding{{UUID: "a", State: api.CardsQuiet, Utilization: 1}}},
		"n2": {State: api.CardsBusy, Count: 8, Readings: 1, Cards: []api.CardFinding{{UUID: "b", State: api.CardsBusy, Utilization: 90}}},
		"n3": {State: api.CardsUnknown, Count: 8, Readings: 3},
	}
	for want, nodes := range map[api.CardsState][]string{
		api.CardsQuiet: {"n1"}, api.CardsBusy: {"n1", "n2", "n3"}, api.CardsUnknown: {"n1", "n3"},
	} {
		if f := Merge(nodes, func(n string) *api.Finding { return of[n] }); f.State != want {
			t.Errorf("%v: %s, want %s", nodes, f.State, want)
		}
	}
	f := Merge([]string{"n1", "n2"}, func(n string) *api.Finding { return of[n] })
	if f.Count != 16 || f.Readings != 1 || f.Cards[0].Node != "n2" || f.Cards[0].UUID != "b" {
		t.Errorf("%+v", f)
	}
	if f := Merge([]string{"n1", "n9"}, func(n string) *api.Finding { return of[n] }); f.State != api.CardsUnknown {
		t.Errorf("a node that said nothing: %s", f.State)
	}
	if f := Merge(nil, nil); f.State != api.CardsUnknown {
		t.Errorf("no nodes: %s", f.State)
	}
}

func TestSilence(t *testing.T) {
	s := Silence{Timeout: 120 * time.Second}
	if s.Over(time.Hour) {
		t.Error("a rank that never beat is silent")
	}
	s.Beat(10 * time.Second)
	if s.Over(130*time.Second - 1) {
		t.Error("too early")
	}
	if !s.Over(130 * time.Second) {
		t.Error("too late")
	}
	s.Beat(130 * time.Second)
	if s.Over(249 * time.Second) {
		t.Error("a beat arms it anew")
	}
	s.End()
	if s.Over(time.Hour) {
		t.Error("a rank that has ended is silent")
	}
	off := Silence{}
	off.Beat(0)
	if off.Over(time.Hour) {
		t.Error("without a time-out nothing is judged")
	}
}

func TestCheck(t *testing.T) {
	ask := api.Check{Round: 7, Readings: 3, Interval: time.Second}
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	type step struct {
		at   float64
		read Sight
		done bool
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  api.CardsState
	}{
		{"three readings a second apart", []step{{0, same(0, 0), false}, {1, same(0, 0), false}, {2, same(0, 0), true}}, api.CardsQuiet},
		{"readings in between do not count", []step{{0, same(0, 0), false}, {0.4, same(0, 0), false}, {0.8, same(0, 0), false},
			{1, same(0, 0), false}, {1.5, same(0, 0), false}, {2, same(0, 0), true}}, api.CardsQuiet},
		{"but what they show does", []step{{0, same(0, 0), false}, {0.4, same(80, 0), true}}, api.CardsBusy},
		{"busy at once", []step{{0, same(80, 0), true}}, api.CardsBusy},
		{"unknown at once", []step{{0, same(-1, 0), true}}, api.CardsUnknown},
		{"moved at last", []step{{0, same(0, 0), false}, {1, same(0, 0), false}, {2, same(0, 9*gib), true}}, api.CardsMoving},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := NewCheck(ask, idle, []string{"a"}, at(0))
			for _, s := range c.steps {
				if done := k.Add(at(s.at), s.read); done != s.done {
					t.Fatalf("at %v: done %v", s.at, done)
				}
			}
			if round, f := k.Note(); round != 7 || f.State != c.want {
				t.Errorf("round %d, %s, want %s", round, f.State, c.want)
			}
		})
	}
	k := NewCheck(ask, idle, []string{"a"}, 0)
	for i, want := range []bool{false, true} {
		k.Add(time.Duration(i)*time.Second, same(0, 0))
		if k.Nearly() != want {
			t.Errorf("after %d readings nearly %v", i+1, k.Nearly())
		}
	}
}

// drive feeds a window once a second and gives the first second at which hung is said, -1
// for never.
func drive(w *Window, from, to int, read func(second int) Reading) int {
	for s := from; s <= to; s++ {
		w.Add(time.Duration(s)*time.Second, 3*time.Second, all(read(s)))
		if w.Note().Hung {
			return s
		}
	}
	return -1
}

// The window of gpu-hang and its load grace are exact.
func TestHang(t *testing.T) {
	rules := api.Watch{HangWindow: 300 * time.Second, HangGrace: 600 * time.Second}
	quiet := used(0, 40*gib)
	for _, c := range []struct {
		name string
		read func(second int) Reading
		want int
	}{
		{"never works", func(int) Reading { return quiet }, 1000 + 600 + 300},
		{"works to the end", func(int) Reading { return used(50, 40*gib) }, -1},
		{"works now and then", func(s int) Reading {
			if s%299 == 0 {
				return used(50, 40*gib)
			}
			return quiet
		}, -1},
		{"hangs after it worked", func(s int) Reading {
			if s < 3000 {
				return used(90, 40*gib)
			}
			return quiet
		}, 3000 + 300},
		{"memory moved in the middle", func(s int) Reading {
			if s < 1800 {
				return used(0, 10*gib)
			}
			return quiet
		}, 1800 + 300},
		{"one figure is missing in the middle", func(s int) Reading {
			if s == 1750 {
				return Unknown
			}
			return quiet
		}, 1751 + 300},
		{"memory creeps", func(s int) Reading { return used(0, int64(s)*gib/30) }, -1}, // 5 GiB in 150 s
		{"the figures are missing", func(int) Reading { return Unknown }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWindow(rules, idle, []string{"a"}, 1000*time.Second)
			if got := drive(w, 1000, 6000, c.read); got != c.want {
				t.Errorf("at %d s, want %d", got, c.want)
			}
		})
	}
}

// A gap between readings left out something that was not seen.
func TestGapBeginsAnew(t *testing.T) {
	w := NewWindow(api.Watch{HangWindow: 300 * time.Second}, idle, []string{"a"}, 0)
	quiet := func(int) Reading { return Reading{} }
	if drive(w, 0, 299, quiet) != -1 {
		t.Fatal("too early")
	}
	if got := drive(w, 310, 1000, quiet); got != 610 {
		t.Errorf("at %d, want 610", got)
	}
}

// The next reading that matters is asked for to the instant.
func TestDue(t *testing.T) {
	w := NewWindow(api.Watch{HangWindow: 2500 * time.Millisecond, HangGrace: 700 * time.Millisecond}, idle, []string{"a"}, 0)
	w.Add(0, time.Second, same(0, 0))
	at, ok := w.Due()
	if !ok || at != 700*time.Millisecond {
		t.Fatalf("due %v %v, want the end of the grace", at, ok)
	}
	w.Add(at, time.Second, same(0, 0))
	for range 2 {
		w.Add(w.last+time.Second, 2*time.Second, same(0, 0))
	}
	if at, ok = w.Due(); !ok || at != 3200*time.Millisecond {
		t.Fatalf("due %v %v, want grace and window", at, ok)
	}
	if w.Note().Hung {
		t.Error("hung before it was seen")
	}
	w.Add(at, time.Second, same(0, 0))
	if n := w.Note(); !n.Hung || n.Window.Readings != 4 {
		t.Errorf("%+v", n)
	}
}

func TestIdleStages(t *testing.T) {
	w := NewWindow(api.Watch{IdleLimit: 10 * time.Second, IdleEnd: 5 * time.Second}, idle, []string{"a", "b"}, 0)
	stage := func(second, utilization int) int {
		w.Add(time.Duration(second)*time.Second, time.Minute, same(utilization, 0))
		return w.Note().Idle
	}
	for s, want := range []int{9: 0, 10: 1, 14: 1, 15: 2, 20: 2} {
		if got := stage(s, 0); s >= 9 && want > 0 && got != want {
			t.Errorf("second %d: stage %d, want %d", s, got, want)
		}
	}
	if stage(21, 50) != 0 {
		t.Error("it works again")
	}
	if stage(22, 0) != 0 || stage(32, 0) != 1 {
		t.Error("the limit begins anew")
	}
	off := NewWindow(api.Watch{IdleLimit: 10 * time.Second}, idle, []string{"a"}, 0)
	off.Add(0, time.Hour, same(0, 0))
	off.Add(time.Hour, time.Hour, same(0, 0))
	if n := off.Note(); n.Idle != 1 {
		t.Errorf("without an end it stays a warning: %+v", n)
	}
}

// A guard that can't see says so, when what it guards relies on it, and not a moment before.
func TestBlind(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  api.Watch
		beatAt int // -1: never
		want   int // first second at which it is said, -1: never
	}{
		{"a beating rank", api.Watch{StallTimeout: 10 * time.Second}, 0, 101},
		{"it beats from later on", api.Watch{StallTimeout: 10 * time.Second}, 50, 151},
		{"it never beats", api.Watch{StallTimeout: 10 * time.Second}, -1, -1},
		{"gpu-watch needs no beat", api.Watch{HangWindow: 20 * time.Second}, -1, 201},
		{"nobody watches", api.Watch{}, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWindow(c.rules, idle, []string{"a"}, 0)
			got := -1
			for s := range 400 {
				w.Add(time.Duration(s)*time.Second, 3*time.Second, all(Unknown))
				if s == c.beatAt {
					w.Beats(time.Duration(s) * time.Second)
				}
				if w.Note().Blind > 0 && got < 0 {
					got = s
				}
			}
			if got != c.want {
				t.Errorf("said at %d, want %d", got, c.want)
			}
			w.Add(400*time.Second, 3*time.Second, same(0, 0))
			if w.Note().Blind != 0 {
				t.Error("it sees again")
			}
		})
	}
}

// Whatever comes, nothing trips unless a whole window of readings, all known, all idle, was
// seen just before.
func TestHangNeedsAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := api.Watch{HangWindow: 10 * time.Second, HangGrace: time.Duration(rapid.IntRange(0, 20).Draw(t, "grace")) * time.Second}
		w := NewWindow(rules, idle, []string{"a"}, 0)
		var since time.Duration // of the run of plain readings, -1: none
		since = -1
		now := time.Duration(0)
		var low, high int64
		for range rapid.IntRange(1, 80).Draw(t, "readings") {
			step := time.Duration(rapid.IntRange(1, 4).Draw(t, "step")) * time.Second
			now += step
			r := Reading{Utilization: rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 5, 6, -1}).Draw(t, "utilization"),
				UsedBytes: rapid.SampledFrom([]int64{0, 0, 0, gib, 4 * gib, 5 * gib, -1}).Draw(t, "used")}
			w.Add(now, 3*time.Second, all(r))
			if step > 3*time.Second || r.Utilization > 5 || r.Utilization < 0 || r.UsedBytes < 0 || now < rules.HangGrace {
				since = -1
			}
			if r.Utilization >= 0 && r.Utilization <= 5 && r.UsedBytes >= 0 && now >= rules.HangGrace {
				if since < 0 || max(high, r.UsedBytes)-min(low, r.UsedBytes) >= idle.StaticBytes {
					since, low, high = now, r.UsedBytes, r.UsedBytes
				}
				low, high = min(low, r.UsedBytes), max(high, r.UsedBytes)
			}
			want := since >= 0 && now-since >= rules.HangWindow
			if got := w.Note().Hung; got != want {
				t.Fatalf("at %v hung %v, want %v (quiet since %v)", now, got, want, since)
			}
		}
	})
}

func ExampleSeries() {
	s := NewSeries(Idle{Percent: 5, StaticBytes: 5 << 30}, []string{"GPU-0", "GPU-1"})
	for range 3 {
		s.Add(0, Sight{Card: func(uuid string) Reading { return Reading{Utilization: 2, UsedBytes: 40 << 30} }})
	}
	fmt.Println(s.State())
	// Output: quiet
}
