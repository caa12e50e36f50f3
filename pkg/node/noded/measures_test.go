package noded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/measure"
	"gangd/pkg/node/gpu/simgpu"
)

// What a member uses is told while it runs, goes on under another daemon, and comes with its end;
// what it used and no sample saw is in it.
func TestMemberIsMeasured(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	cards, err := simgpu.New("2x80G", "n1", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cards.Close() })
	o.GPU, o.CPUs, o.Memory = cards, 8, 64<<30
	c.run(o)
	var work string
	const burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done\n"
	k := c.desire(1, 1, 2, "#!/bin/sh\n"+burn+"while [ ! -e go ]; do sleep 0.05; done\n"+burn, func(a *api.Assignment, s *api.Spec) {
		s.GPUsPerRank, s.CPUsPerRank, s.MemoryPerNode, work = 1, 2, 4<<30, s.WorkDir
		a.Body.Ranks[0].Cards, a.Body.Ranks[1].Cards = []string{"GPU-sim-n1-0"}, []string{"GPU-sim-n1-1"}
	})
	var live *api.Measure
	c.until("a measure", func() bool {
		for _, n := range c.notes {
			if n.Measure != nil {
				live = n.Measure
			}
		}
		return live != nil
	})
	if live.Node != "n1" || live.CPUs != 4 || live.Memory != 4<<30 || live.Ranks != nil || len(live.Cards) != 2 || live.Cards[1].UUID != "GPU-sim-n1-1" || live.Cards[0].VRAMBytes != 80<<30 {
		t.Errorf("%+v", live)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := c.untilPhase(k, api.PhaseStopped)
	m := a.Measure
	if m == nil || m.Ranks == nil || m.Ranks.Ranks != 2 || m.Ranks.MaxRSS < 1<<20 || m.Ranks.SumRSS < m.Ranks.MaxRSS {
		t.Fatalf("%+v", m)
	}
	if m.Seconds < live.Seconds || *m.CPUSeconds < m.Ranks.CPUSeconds-0.001 || *m.CPUSeconds > 1.02*m.Ranks.CPUSeconds+0.05 || m.Ranks.CPUSeconds < 0.02 {
		t.Errorf("%gs, CPU %g, before %gs, ranks %+v", m.Seconds, *m.CPUSeconds, live.Seconds, m.Ranks)
	}
	if m.Series == nil || len(m.Cards[1].Series.Use) == 0 {
		t.Errorf("%+v", m)
	}
}

// A shared card: its own use where the driver says whose it is, else unknown; and no energy.
func TestCardsAreMeasured(t *testing.T) {
	const gib = int64(1) << 30
	me, job2 := process(t, job(1), 0).Process.Pid, process(t, job(2), 0).Process.Pid
	for _, c := range []struct {
		name   string
		shared bool
		steer  string
		want   measure.CardSample
	}{
		{"alone", false, `"utilization":60,"processes":[` + holds(me) + `]`, measure.CardSample{Utilization: 60, VRAM: gib, Watts: 70 + 60*63/10}},
		{"both work", true, `"utilization":60,"used":"9G","processes":[` + uses(me, 40) + "," + uses(job2, 20) + `]`, measure.CardSample{Utilization: 40, VRAM: gib, Watts: -1}},
		{"whose work it is is not said", true, `"utilization":60,"used":"9G","processes":[` + holds(me) + "," + holds(job2) + `]`, measure.CardSample{Utilization: -1, VRAM: gib, Watts: -1}},
		{"no figure", false, `"utilization":-1,"processes":[` + holds(me) + `]`, measure.CardSample{Utilization: -1, VRAM: gib, Watts: 70}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t, "1x80G")
			s.read()
			s.mustGive(job(1), card0(20, c.shared, 0))
			if c.shared {
				s.mustGive(job(2), card0(20, true, 0))
			}
			s.steer(`{"0":{` + c.steer + `}}`)
			s.read()
			if got := s.c.measured(job(1), "GPU-sim-n1-0"); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// The time that ranks ran is from the first start to the last end.
func TestRanFor(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	two := &api.MemberActual{Ranks: []api.RankActual{{Started: at(11), Ended: at(15)}, {Started: at(10), Ended: at(14)}}}
	if got := ranFor(two, time.Hour); got != 5*time.Second {
		t.Error(got)
	}
	two.Ranks[1].Ended = time.Time{}
	if got := ranFor(two, time.Hour); got != time.Hour {
		t.Error(got)
	}
	if got := ranFor(&api.MemberActual{}, time.Minute); got != time.Minute {
		t.Error(got)
	}
}
