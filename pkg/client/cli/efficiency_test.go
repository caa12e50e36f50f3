package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/measure"
	"gangd/pkg/lab/sitetest"
)

// hourOf is an attempt of an hour that was sampled each second: CPUs busy of 8, bytes held of 32G, a card's percent.
func hourOf(id int64, busy float64, gib int64, use int) *api.JobDetail {
	f := measure.Begin(api.Measure{Node: "n1", CPUs: 8, Memory: 32 << 30, Cards: []api.CardMeasure{{UUID: "GPU-1", Index: 3, VRAMBytes: 80 << 30}}}, 0)
	for s := range 3600 {
		at := time.Duration(s+1) * time.Second
		f.Add(measure.Sample{At: at, CPU: time.Duration(busy * float64(at)), Memory: gib << 30, Cards: []measure.CardSample{{Utilization: use, VRAM: 20 << 30, Watts: 360}}})
	}
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	a := api.Attempt{JobID: id, Attempt: 1, Cause: api.CauseCompleted, StartTime: start, EndTime: start.Add(time.Hour), Nodes: []string{"n1"},
		Measures: []api.Measure{*f.End(time.Hour, -1, -1, &api.RankUse{MaxRSS: 1 << 30})}}
	d := &api.JobDetail{Job: api.Job{JobID: id, Name: "train", Size: 1, CPUsPerRank: 8, TimeLimitSeconds: 5 * 3600}, Attempts: []api.Attempt{a}}
	d.Attempts[0].Efficiency = measure.Of(&d.Job, &d.Attempts[0])
	return d
}

func efficiencyOf(t *testing.T, g *gacct, details ...*api.JobDetail) string {
	t.Helper()
	var b strings.Builder
	if err := g.efficiency(screenOf(&b), details); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEfficiencyOfOneJob(t *testing.T) {
	got := efficiencyOf(t, &gacct{plot: true}, hourOf(12, 2, 4, 90))
	high := strings.Repeat("█", 113)
	want := `Job 12 train, attempt 1: completed, 1:00:00 on n1
  CPU     [#####---------------]  25%  of 8 CPUs, 2:00:00 of CPU time
  Memory  [###-----------------]  12%  4G of 32G
  GPU     [##################--]  90%  of 1 card
  VRAM    [#####---------------]  25%  20G on one card
  Energy  360Wh
  Time    [####----------------]  20%  of 5:00:00
  Start   [cccccccccccccccccccc] 0.5 s to the first step: to the first use of a card 0.5 s
  n1, 32 s a point
    CPU        ` + strings.Repeat("▃", 113) + `
    memory     ` + strings.Repeat("▂", 113) + `
    card 3     ` + high + `  95% of the time below 90%
      VRAM     ` + strings.Repeat("▃", 113) + `
  * it used at most 4G of 32G of memory on a node: try --mem=5G [memory]
  * it kept 2.0 of 8 CPUs a rank busy: try --cpus-per-task=3 [cpus]
  * it took 1:00:00 of a limit of 5:00:00, and shorter limits start sooner: try --time=1:30:00 [time]
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// Nothing known, and zero.
	d := hourOf(12, 0, 4, 0)
	if got := efficiencyOf(t, &gacct{}, d); !strings.Contains(got, "GPU     [--------------------]   0%  of 1 card, idle 100% of the time\n") || !strings.Contains(got, "[no-card]") {
		t.Error(got)
	}
	d.Attempts[0].Measures[0].Cards[0].Utilization = nil
	d.Attempts[0].Efficiency = measure.Of(&d.Job, &d.Attempts[0])
	if got := efficiencyOf(t, &gacct{}, d); !strings.Contains(got, "GPU     [                    ]    ?  of 1 card\n") {
		t.Error(got)
	}
	d.Attempts[0].Efficiency = nil
	if got := efficiencyOf(t, &gacct{}, d); !strings.HasSuffix(got, "Nothing is known of what it used.\n") {
		t.Error(got)
	}
}

// An array is one line, and who stands out is named.
func TestEfficiencyOfAnArray(t *testing.T) {
	var all []*api.JobDetail
	for i := range 100 {
		d := hourOf(int64(100+i), 4+float64(i%3)/10, 8, 80)
		switch i {
		case 7:
			d = hourOf(107, 0.1, 8, 80)
		case 50:
			d = hourOf(150, 4, 30, 80)
		case 99:
			d = hourOf(199, 4, 8, 2)
		}
		index := i
		d.Job.ArrayJobID, d.Job.ArrayIndex = 100, &index
		all = append(all, d)
	}
	got := efficiencyOf(t, &gacct{}, append([]*api.JobDetail{hourOf(12, 8, 32, 100)}, all...)...)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 6 || !strings.Contains(lines[1], " 100 ") || !strings.Contains(lines[2], "100_[0-99]") || !strings.Contains(lines[2], "51 (1-52)") || !strings.Contains(lines[2], "36.0kWh") {
		t.Errorf("%s", got)
	}
	if want := []string{"CPU of most is 50% to 52%, but of 100_7 (1%)", "memory of most is 25% to 25%, but of 100_50 (94%)", "GPU of most is 80% to 80%, but of 100_99 (2%)"}; !slices.Equal(lines[3:], want) {
		t.Errorf("%q", lines[3:])
	}
	if got := efficiencyOf(t, &gacct{parsable: true, noHeader: true}, all[:2]...); got != "100_0|train|completed|1:00:00|20|50|25|80|25|360Wh|memory,time\n100_1|train|completed|1:00:00|20|51|25|80|25|360Wh|memory,time\n" {
		t.Error(got)
	}
}

// The id of an array names its elements, each once, and what names nothing is said.
func TestGacctOfAnArray(t *testing.T) {
	sitetest.Small(t, sitetest.At("11:00:00", func(s *sitetest.Site) {
		first := s.Submit(sitetest.Ada, sitetest.SmallSpec("sweep", 1), &api.Array{Indices: []int{0, 1, 2}})
		for id := first; id < first+3; id++ {
			s.Run(id)
			s.End(id, sitetest.Well)
		}
	})).Found()
	for args, want := range map[string]string{"28": "28_0 28_1 28_2", "28_1 28": "28_1 28_0 28_2", "30": "28_2"} {
		out, errs, code := run(t, nil, NewGacct(), append([]string{"-P", "--noheader"}, strings.Fields(args)...)...)
		var ids []string
		for line := range strings.Lines(out) {
			id, _, _ := strings.Cut(line, "|")
			ids = append(ids, id)
		}
		if got := strings.Join(ids, " "); got != want || errs != "" || code != 0 {
			t.Errorf("%s: %q, want %q (%d %s)", args, got, want, code, errs)
		}
	}
	if out, errs, code := run(t, nil, NewGacct(), "-P", "--noheader", "99", "29"); !strings.HasPrefix(out, "28_1|") || !strings.Contains(errs, "99") || code == 0 {
		t.Errorf("%q %q %d", out, errs, code)
	}
}

// Who names a day gets what the controller has in memory no more, by what else was chosen.
func TestGacctSince(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"-u ada --since=0d", []string{"12", "12", "15", "20_0", "20_1"}}, {"-u ada --since=2026-03-01 -s FAILED", []string{"15"}}, {"-u ada -S 2d -w n3", []string{"12", "12"}}, {"-u ada -S 1d -n broken,other", []string{"15"}},
		{"-u ada -S 2026-03-02", []string{"12", "12", "20_0", "20_1"}}, {"-u grace --since=7d", nil}, {"-u ada -S 1d -p long", []string{"20_0", "20_1"}}, {"-u ada -S 1d -p nosuch", nil},
	} {
		out, _, code := run(t, sitetest.Small(t), NewGacct(), append(strings.Fields(c.args), "--noheader", "-P")...)
		var got []string
		for line := range strings.Lines(out) {
			got = append(got, strings.Split(line, "|")[0])
		}
		if code != 0 || !slices.Equal(got, c.want) {
			t.Errorf("%s: status %d, %q, want %q", c.args, code, got, c.want)
		}
	}
	for _, args := range [][]string{{"--since=7d", "12"}, {"--since=yesterday"}} {
		if _, errs, code := run(t, sitetest.Small(t), NewGacct(), args...); code != 2 || errs == "" {
			t.Errorf("%q: status %d, %q", args, code, errs)
		}
	}
}

// Of a job that has not run that is said, and not nothing.
func TestEfficiencyOfNoRun(t *testing.T) {
	out, errs, code := run(t, sitetest.Small(t), NewGacct(), "-e", "13")
	if code != 0 || errs != "" || out != "Job 13 is PENDING and has not run: nothing was used\n" {
		t.Errorf("status %d, %q, %q", code, out, errs)
	}
}
