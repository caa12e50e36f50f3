package sacct

import (
	"bytes"
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	clock = func() time.Time { return sitetest.Now }
	groupName = func(uint32) string { return "users" }
	time.Local = time.UTC
	api.Version = "1.2.3"
	userNames = func(name string) ([]string, bool) { return []string{name}, name != "nobodyx" }
	os.Exit(m.Run())
}

// history is jobs of the small site that ended in every way, and what 12, 30 and 33 used.
func history() []sitetest.Scene {
	submit := func(name string, change func(*api.Spec)) func(*sitetest.Site) {
		spec := sitetest.SmallSpec(name, 1)
		spec.Launch, spec.MemoryPerRank, spec.GPUsPerRank = api.LaunchBatch, 2<<30, 1
		spec.TimeLimit, spec.Constraint, spec.Comment, spec.NodeList = 10*time.Minute, "ib", "hello there", []string{"n1"}
		if change != nil {
			change(&spec)
		}
		return func(s *sitetest.Site) { s.Submit(sitetest.Ada, spec, nil) }
	}
	shared := func(s *api.Spec) { s.NodeList, s.Share, s.VRAMBytes = []string{"n2"}, true, 10<<30 }
	end := func(id int64, how func(*api.MemberActual, *api.RankActual)) sitetest.Scene {
		return sitetest.At("11:20:00", func(s *sitetest.Site) {
			s.End(id, func(a *api.MemberActual, r *api.RankActual) {
				if how(a, r); a.Measure != nil {
					a.Measure.Cards[0].UUID = s.Job(id).Ranks[0].Slot.Cards[0]
				}
			})
		})
	}
	cancel := func(clock string, id int64) sitetest.Scene {
		return sitetest.At(clock, func(s *sitetest.Site) { _, _ = s.Do(context.Background(), gang.Cancel{Job: id, By: "ada"}) })
	}
	scenes := []sitetest.Scene{
		sitetest.At("10:59:00", func(s *sitetest.Site) {
			s.Restart(30)
			for _, n := range []string{"n1", "n2", "n4"} {
				s.NodeDo("drain", n, "cable")
			}
		}),
		sitetest.At("11:00:00", submit("okjob", nil)),
		sitetest.At("11:00:00", submit("killed", shared)),
		sitetest.At("11:00:00", submit("cancelled", shared)),
		sitetest.At("11:00:00", submit("late", nil)),
		sitetest.At("11:00:00", submit("oom", shared)),
		sitetest.At("11:00:00", submit("lost", func(s *api.Spec) {
			none := 0
			s.NodeList, s.TimeLimit, s.BackoffLimit = []string{"n4"}, time.Hour, &none
		})),
		sitetest.At("11:00:00", submit("never", func(s *api.Spec) { s.Hold = true })),
		sitetest.At("11:10:00", func(s *sitetest.Site) {
			for _, n := range []string{"n1", "n2", "n4"} {
				s.NodeDo("resume", n, "")
			}
			for id := int64(30); id <= 35; id++ {
				s.Run(id)
			}
		}),
		cancel("11:10:00", 36),
		sitetest.At("11:11:00", func(s *sitetest.Site) {
			s.Step(30, api.StepAsk{Name: "true", StepComponent: api.StepComponent{Tasks: 2, Overcommit: true}})
		}),
		sitetest.At("11:12:00", func(s *sitetest.Site) {
			s.StepIs(30, api.StepActual{Over: true, ExitCode: 2, Ended: sitetest.Now.Add(-48 * time.Minute), CPUTime: 0.014})
		}),
		cancel("11:20:00", 32),
		end(30, func(a *api.MemberActual, r *api.RankActual) {
			a.Measure, r.Own = measured("n1", 600, 900, 1<<30, 75), true
			a.Measure.Ranks = &api.RankUse{CPUSeconds: 61.5, MaxRSS: 3289088}
		}),
		end(31, func(_ *api.MemberActual, r *api.RankActual) { r.ExitCode, r.Signal, r.Own = 137, 9, true }),
		end(32, sitetest.Stopped),
		end(33, func(a *api.MemberActual, r *api.RankActual) {
			sitetest.Stopped(a, r)
			a.Stopping, a.Measure = api.CauseTimeout, measured("n1", 600, 0, 1<<20, 0)
			c := &a.Measure.Cards[0] // which nobody saw
			c.Utilization, c.Power, c.Joules = nil, nil, nil
		}),
		end(34, func(_ *api.MemberActual, r *api.RankActual) { r.ExitCode, r.Signal, r.OOM, r.Own = 137, 9, true, true }),
		sitetest.At("12:00:00", func(s *sitetest.Site) {
			key := api.MemberKey{Job: 12, Epoch: 2}
			s.NodeNotes("n1", []api.MemberNote{{MemberKey: key, Measure: measured("n1", 3900, 1000, 3<<30, 40)}})
			s.NodeNotes("n2", []api.MemberNote{{MemberKey: key, Measure: measured("n2", 3900, 3000, 1<<30, 80)}})
		}),
	}
	return scenes
}

// measured is what a member was seen using: CPU seconds, memory at most, and percent of a card.
func measured(node string, seconds, cpu float64, peak int64, use float64) *api.Measure {
	f := func(v float64) *float64 { return &v }
	fig := func(mean, most float64) *api.Figure { return &api.Figure{Seconds: seconds, Mean: mean, Max: most} }
	return &api.Measure{Node: node, Seconds: seconds, CPUs: 2, Memory: 2 << 30, CPUSeconds: f(cpu), MemoryPeak: &peak, CPU: fig(50, 90),
		Cards: []api.CardMeasure{{UUID: "GPU-" + node, VRAMBytes: 80 << 30, Utilization: fig(use, 100), VRAM: fig(20<<30, 40<<30),
			Power: fig(300, 400), Joules: f(300 * seconds), IdleSeconds: f(0)}}}
}

func TestFiles(t *testing.T) {
	t.Setenv("GANG_SLURM_VERSION", "22.05") // of which the documents in them are
	slurmtest.Files(t, "testdata/*.txt", *update, history(), map[string]slurm.Runner{"sacct": Run, "sstat": Sstat})
}

// --json has the members that the tables of Slurm's data parsers have.
func TestDocumentsOfLaterSlurms(t *testing.T) {
	for version, schema := range map[string]string{"23.11": "v0.0.40", "24.11": "v0.0.42"} {
		t.Run(version, func(t *testing.T) {
			t.Setenv("GANG_SLURM_VERSION", version)
			sitetest.Small(t, history()...).Found()
			var out, errs bytes.Buffer
			if code := Run([]string{"--json", "-j", "30,31,32,33,34,35,36,20"}, cmdline.Streams{Out: &out, Err: &errs}); code != 0 {
				t.Fatalf("status %d: %s", code, errs.String())
			}
			slurmtest.Shape(t, "../testdata/sacct-"+schema+".schema", out.Bytes())
		})
	}
}

func TestLists(t *testing.T) {
	slurmtest.Lists(t, "../testdata/options-22.05.txt", command)
	slurmtest.Texts(t, sstatCommand.Lists())
	slurmtest.Texts(t, columns())
	slurmtest.Texts(t, SstatColumns())
}

// What is in a list as kept does something when it is given, but for what there is one of.
func TestEveryOptionIsTaken(t *testing.T) {
	alone := strings.Fields("allclusters array federation local use-local-uid help usage")
	for i := range command.Options {
		o := &command.Options[i]
		nothing := o.List == cmdline.Refused || o.As != "" || slices.Contains(alone, o.Long)
		if (o.Set == nil) != nothing {
			t.Errorf("--%s is in the list %v, taken: %v", o.Long, o.List, o.Set != nil)
		}
	}
}

// The columns are those that sacct -e of 22.05.8 lists, in its order.
func TestColumnsAreSlurms(t *testing.T) {
	b, err := os.ReadFile("testdata/helpformat")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(b))
	var got []string
	for _, c := range fieldColumns(true) {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Slurm's window of time, by what was given of -S, -E, -s and -j.
func TestWindow(t *testing.T) {
	at := func(h int) time.Time { return time.Date(2026, 3, 1, h, 0, 0, 0, time.UTC) }
	jobs := []jobRef{{JobRef: api.JobRef{ID: 1, Index: -1}, component: -1}}
	states := []string{"FAILED"}
	for _, c := range []struct {
		name     string
		ask      ask
		from, to time.Time
	}{
		{"nothing", ask{}, at(0), at(12)},
		{"jobs", ask{jobs: jobs}, time.Time{}, at(12)},
		{"states", ask{states: states}, at(12), at(12)},
		{"jobs and states", ask{jobs: jobs, states: states}, time.Time{}, at(12)},
		{"start", ask{from: at(8), fromSet: true}, at(8), at(12)},
		{"start and states", ask{from: at(8), fromSet: true, states: states}, at(8), at(8)},
		{"start, end and states", ask{from: at(8), fromSet: true, to: at(9), toSet: true, states: states}, at(8), at(9)},
		{"end", ask{to: at(9), toSet: true}, at(0), at(9)},
	} {
		if err := c.ask.window(sitetest.Now); err != nil || !c.ask.from.Equal(c.from) || !c.ask.to.Equal(c.to) {
			t.Errorf("%s: %s to %s, %v", c.name, c.ask.from, c.ask.to, err)
		}
	}
}

func TestManual(t *testing.T) {
	slurmtest.Manual(t, "../../../man/gangd-sacct.7", Lists(), columns(), sstatCommand.Lists(), SstatColumns(), seffCommand.Lists(), reportseffCommand.Lists())
}

// TestExitOfAnAttempt: an attempt that is not the last one has its signal from itself, and a code above
// 128 stays one.
func TestExitOfAnAttempt(t *testing.T) {
	job := &api.Job{State: api.JobCompleted}
	for _, x := range []struct {
		a    api.Attempt
		want string
	}{
		{api.Attempt{Cause: api.CauseCrash, Code: 137, Signal: 9}, "0:9"},
		{api.Attempt{Cause: api.CauseCrash, Code: 137}, "137:0"},
		{api.Attempt{Cause: api.CauseCrash, Code: 3}, "3:0"},
	} {
		if got := (&record{job: job, attempt: &x.a}).exit(); got != x.want {
			t.Errorf("%+v: %s, want %s", x.a, got, x.want)
		}
	}
}
