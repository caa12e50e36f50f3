package watchdog

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

const mib = int64(1) << 20

// still is a sight with idle cards and these processes.
func still(memory, io int64) Sight {
	s := same(0, 0)
	s.Host = func() Host { return Host{MemoryBytes: memory, IOBytes: io} }
	return s
}

// What can't be told from the use of others is neither idle nor busy.
func TestOthersOnTheCard(t *testing.T) {
	for _, c := range []struct {
		name    string
		reading Reading
		want    api.CardsState
	}{
		{"others work, and the gang does not", Reading{Utilization: 0, AtMost: 0}, api.CardsQuiet},
		{"both are within what is idle", Reading{Utilization: 0, AtMost: 5, Others: "x"}, api.CardsQuiet},
		{"it can't be told who works", Reading{Utilization: 0, AtMost: 60, Others: "x"}, api.CardsUnknown},
		{"the gang does, and perhaps more than that", Reading{Utilization: 6, AtMost: 60, Others: "x"}, api.CardsBusy},
		{"its memory moves at least", Reading{Utilization: 0, AtMost: 60, UsedBytes: 9 * gib, Others: "x"}, api.CardsMoving},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSeries(idle, []string{"a"})
			s.Add(0, same(0, 0))
			s.Add(time.Second, all(c.reading))
			f := s.Finding()
			if f.State != c.want {
				t.Fatalf("%s, want %s", f.State, c.want)
			}
			want := api.CardFinding{UUID: "a", State: api.CardsUnknown, Utilization: -1, AtMost: 60, Others: "x"}
			if c.want == api.CardsUnknown && f.Cards[0] != want {
				t.Errorf("%+v", f.Cards[0])
			}
		})
	}
}

// What processes move on their machine counts beyond the floor, at whatever pace it is read.
func TestHostOfCheck(t *testing.T) {
	const slack = 64 << 10
	for _, c := range []struct {
		name       string
		memory, io func(ms int64) int64
		want       api.CardsState
	}{
		{"nothing moves", func(int64) int64 { return 40 * gib }, func(int64) int64 { return 7 * gib }, api.CardsQuiet},
		{"100 MB/s into memory", func(ms int64) int64 { return 100_000 * ms }, func(int64) int64 { return 0 }, api.CardsMoving},
		{"100 MB/s out of memory", func(ms int64) int64 { return 9*gib - 100_000*ms }, func(int64) int64 { return 0 }, api.CardsMoving},
		{"100 MB/s read", func(int64) int64 { return 0 }, func(ms int64) int64 { return 100_000 * ms }, api.CardsMoving},
		{"it fills and frees again", func(ms int64) int64 { return ms / 750 % 2 * 50 * mib }, func(int64) int64 { return 0 }, api.CardsMoving},
		{"a line each second", func(int64) int64 { return 0 }, func(ms int64) int64 { return ms / 1000 * 1024 }, api.CardsQuiet},
		{"the floor", func(ms int64) int64 { return 4 * mib * ms / 1000 }, func(ms int64) int64 { return 4 * mib * ms / 1000 }, api.CardsQuiet},
		{"a burst as large as the floor", func(ms int64) int64 { return min(ms, 1) * 4 * mib }, func(int64) int64 { return 0 }, api.CardsQuiet},
		{"twice the floor and a little", func(int64) int64 { return 0 }, func(ms int64) int64 { return (8*mib + slack) * ms / 1000 }, api.CardsMoving},
		{"a reader that ends takes its bytes along", func(int64) int64 { return 0 }, func(ms int64) int64 { return 9*gib - ms/750%2*gib }, api.CardsMoving},
		{"it only ends", func(int64) int64 { return 0 }, func(ms int64) int64 { return 9*gib - ms/900*gib }, api.CardsQuiet},
		{"no figure of memory", func(int64) int64 { return -1 }, func(int64) int64 { return 0 }, api.CardsUnknown},
		{"no figure of traffic", func(int64) int64 { return 0 }, func(int64) int64 { return -1 }, api.CardsUnknown},
	} {
		for _, pace := range []int64{1000, 250} {
			t.Run(c.name, func(t *testing.T) {
				k := NewCheck(api.Check{Round: 1, Readings: 3, Interval: time.Second}, idle, []string{"a"}, 0)
				for ms := int64(0); !k.Add(time.Duration(ms)*time.Millisecond, still(c.memory(ms), c.io(ms))); ms += pace {
					if ms > 2000 {
						t.Fatal("it has no end")
					}
				}
				if _, f := k.Note(); f.State != c.want || len(f.Hosts) != 1 || f.Hosts[0].State != c.want || f.Cards[0].State != api.CardsQuiet {
					t.Errorf("every %d ms: %+v, want %s", pace, f, c.want)
				}
			})
		}
	}
}

// One reading of the processes shows nothing, and one is not enough.
func TestCheckTakesTwoReadings(t *testing.T) {
	k := NewCheck(api.Check{Readings: 1, Interval: time.Second}, idle, []string{"a"}, 0)
	if k.Add(0, still(0, 0)) {
		t.Fatal("done after one reading")
	}
	if !k.Add(time.Second, still(gib, 0)) {
		t.Fatal("not done")
	}
	if _, f := k.Note(); f.State != api.CardsMoving || f.Hosts[0].MemoryBytes != gib {
		t.Errorf("%+v", f)
	}
}

// Processes are looked at only where the cards leave it open.
func TestBusyCardIsEnough(t *testing.T) {
	s := NewSeries(idle, []string{"a"})
	see := same(50, 0)
	see.Host = func() Host { t.Error("processes were read"); return unknownHost }
	s.Add(0, see)
	if f := s.Finding(); f.State != api.CardsBusy || len(f.Hosts) != 0 {
		t.Errorf("%+v", f)
	}
}

// A window of gpu-hang begins anew with what the processes move, however long it has lasted;
// the limit for idle cards is about cards.
func TestHostOfWindow(t *testing.T) {
	rules := api.Watch{HangWindow: 300 * time.Second, IdleLimit: 300 * time.Second}
	for _, c := range []struct {
		name   string
		memory func(second int) int64
		want   int // second at which hung is said, -1: never
	}{
		{"nothing moves", func(int) int64 { return gib }, 300},
		{"it loads for a while", func(s int) int64 { return min(int64(s), 200) * 100 * mib }, 200 + 300},
		{"a burst late in the window", func(s int) int64 { return int64(s/250) * 200 * mib }, -1},
		{"a log that grows", func(s int) int64 { return int64(s) * mib }, 300},
		{"no figures", func(int) int64 { return -1 }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWindow(rules, idle, []string{"a"}, 0)
			hung, idled := -1, -1
			for s := range 600 {
				w.Add(time.Duration(s)*time.Second, 3*time.Second, still(c.memory(s), 0))
				n := w.Note()
				if n.Hung && hung < 0 {
					hung = s
				}
				if n.Idle > 0 && idled < 0 {
					idled = s
				}
			}
			if hung != c.want || idled != 300 {
				t.Errorf("hung at %d, want %d; idle at %d", hung, c.want, idled)
			}
		})
	}
}

// A card whose use can't be told apart for long is said to be out of sight, with who else uses it.
func TestBlindOfOthers(t *testing.T) {
	w := NewWindow(api.Watch{StallTimeout: 10 * time.Second}, idle, []string{"a"}, 0)
	w.Beats(0)
	for s := range 102 {
		w.Add(time.Duration(s)*time.Second, 3*time.Second, all(Reading{AtMost: 60, Others: "python, user bob"}))
		if n := w.Note(); (n.Blind > 0) != (s > 100) {
			t.Fatalf("at %d: %+v", s, n)
		}
	}
	if n := w.Note(); n.Blind != 100*time.Second || n.Unseen.Cards[0].Others != "python, user bob" || n.Unseen.Cards[0].AtMost != 60 {
		t.Errorf("%+v", n.Unseen)
	}
	w.Add(102*time.Second, 3*time.Second, all(Reading{Utilization: 60, AtMost: 60}))
	if n := w.Note(); n.Blind != 0 || n.Unseen != nil {
		t.Errorf("it works itself: %+v", n)
	}
}

// What processes of several nodes did is told node by node, the least quiet first.
func TestMergeHosts(t *testing.T) {
	of := func(node string) *api.Finding {
		s := map[string]api.CardsState{"n1": api.CardsQuiet, "n2": api.CardsMoving, "n3": api.CardsUnknown}[node]
		return &api.Finding{State: s, Count: 1, Readings: 3, Hosts: []api.HostFinding{{State: s}}}
	}
	f := Merge([]string{"n1", "n2", "n3"}, of)
	if f.State != api.CardsMoving || len(f.Hosts) != 3 || f.Hosts[0].Node != "n2" || f.Hosts[1].Node != "n3" || f.Hosts[2].Node != "n1" {
		t.Errorf("%+v", f)
	}
	var many []string
	for range 2 * api.MaxFindingCards {
		many = append(many, "n1")
	}
	if f := Merge(many, of); len(f.Hosts) != api.MaxFindingCards {
		t.Errorf("%d hosts", len(f.Hosts))
	}
}
