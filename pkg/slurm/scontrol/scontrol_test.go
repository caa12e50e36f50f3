package scontrol

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	jobfield.Now = func() time.Time { return sitetest.Now }
	hostname = func() string { return "vm" }
	groupName = func(uint32) string { return "users" }
	time.Local = time.UTC
	api.Version = "1.2.3"
	os.Exit(m.Run())
}

// step is one of the gang that runs.
func step() []sitetest.Scene {
	return []sitetest.Scene{sitetest.At("11:00:00", func(s *sitetest.Site) {
		s.Step(12, api.StepAsk{Name: "sleep", StepComponent: api.StepComponent{Tasks: 2, MinNodes: 2, Exact: true}, Client: "vm:11625"})
	})}
}

func TestFiles(t *testing.T) {
	t.Setenv("SLURM_NODELIST", "")
	t.Setenv("SLURM_JOB_NODELIST", "")
	slurmtest.Files(t, "testdata/*.txt", *update, step(), map[string]slurm.Runner{"scontrol": Run})
}

func TestLists(t *testing.T) {
	slurmtest.Lists(t, "../testdata/options-22.05.txt", options)
	for _, l := range Keywords() {
		slurmtest.Texts(t, l)
	}
}

// The commands and entities are those of scontrol's manual of 22.05.
func TestKeywordsAreSlurms(t *testing.T) {
	for file, have := range map[string][]string{"testdata/commands": keywordNames(), "testdata/entities": entityNames()} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, name := range have {
			known[strings.ToLower(name)] = true
		}
		for _, name := range strings.Fields(string(b)) {
			if !known[strings.ToLower(name)] {
				t.Errorf("%s is in %s, but in no list", name, file)
			}
		}
	}
}

// TestEveryKeyOfTheConfiguration: show config has each key of Slurm 22.05's, once.
func TestEveryKeyOfTheConfiguration(t *testing.T) {
	b, err := os.ReadFile("testdata/config")
	if err != nil {
		t.Fatal(err)
	}
	s := sitetest.Empty(t)
	s.Found()
	var out bytes.Buffer
	if status := Run([]string{"show", "config"}, cmdline.Streams{Out: &out, Err: &out}); status != 0 {
		t.Fatalf("status %d\n%s", status, out.String())
	}
	seen := map[string]int{}
	for line := range strings.Lines(out.String()) {
		if key, _, found := strings.Cut(line, " ="); found {
			seen[strings.TrimSpace(key)]++
		}
	}
	for _, key := range strings.Fields(string(b)) {
		if seen[key] != 1 {
			t.Errorf("%s is there %d times", key, seen[key])
		}
	}
}

func keywordNames() (out []string) {
	for i := range keywords {
		out = append(out, keywords[i].name)
	}
	return out
}

func entityNames() (out []string) {
	for i := range entities {
		out = append(out, entities[i].name)
	}
	return out
}

// A keyword that is kept runs something, a refused one nothing; so do parameters.
func TestKeptRunRefusedDont(t *testing.T) {
	for i := range keywords {
		if k := &keywords[i]; (k.run == nil) != (k.list == cmdline.Refused) {
			t.Errorf("%s: list %v", k.name, k.list)
		}
	}
	for i := range entities {
		if e := &entities[i]; (e.run == nil) != (e.list == cmdline.Refused) {
			t.Errorf("show %s: list %v", e.name, e.list)
		}
	}
	for i := range jobParameters {
		if p := &jobParameters[i]; p.name != "JobId" && (p.set == nil) != (p.list == cmdline.Refused) {
			t.Errorf("update %s: list %v", p.name, p.list)
		}
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{ // what 22.05.8 printed
		"n1,n2,n3,n2":      "n[1-3,2]",
		"n1,n2,n2,n3":      "n[1-2,2-3]",
		"n1-3":             "n1-3",
		"a,b":              "a,b",
		"n01,n02,n03":      "n[01-03]",
		"n9,n10":           "n[9-10]",
		"n1,m1,n2":         "n1,m1,n2",
		"login":            "login",
		"n1":               "n1",
		"n08,n09,n10,n011": "n[08-10,011]",
	} {
		if got := shorten(strings.Split(in, ",")); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// What is made short is written out as it was, in its order.
func TestShortenThenExpand(t *testing.T) {
	name := rapid.StringMatching(`[a-c]{1,2}(0?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(name, 1, 20, rapid.ID[string]).Draw(t, "names")
		back, err := expand(shorten(names))
		if err != nil || strings.Join(back, ",") != strings.Join(names, ",") {
			t.Fatalf("%v became %s, which is %v, %v", names, shorten(names), back, err)
		}
	})
}

func TestManual(t *testing.T) {
	slurmtest.Manual(t, "../../../man/gangd-scontrol.7", append([]cmdline.Lists{Lists()}, Keywords()...)...)
}

// What the site has set stands in show config under Slurm's names, in Slurm's form.
func TestSettingsOfTheSite(t *testing.T) {
	got := ""
	for _, s := range ofSite(&api.Site{Preempt: "off", Grace: 1500 * time.Millisecond, DrainSlack: time.Minute, NodeTimeout: 30 * time.Second,
		StartTimeout: 10 * time.Second, KeepEnded: 5 * time.Minute, PreemptMinRun: time.Hour, InvalidDependency: "wait"}) {
		got += s[0] + " = " + s[1] + "\n"
	}
	want := `BatchStartTimeout = 10 sec
DependencyParameters = (null)
KillWait = 2 sec
MinJobAge = 300 sec
PreemptExemptTime = 01:00:00
PreemptMode = OFF
PreemptType = preempt/none
SlurmdTimeout = 30 sec
UnkillableStepTimeout = 60 sec
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if slurm.PreemptMode("tier") != "REQUEUE" || slurm.PreemptMode("") != "OFF" {
		t.Error("preempt mode")
	}
	if got, want := slurmUser(&api.Site{Operator: "daemon"}), "daemon(1)"; got != want {
		t.Errorf("SlurmUser %s, want %s", got, want)
	}
	if got, want := slurmUser(nil), "root(0)"; got != want {
		t.Errorf("SlurmUser %s, want %s", got, want)
	}
	for want, site := range map[string]*api.Site{"(null)": nil, "ansys:1,matlab:10": {Pools: []api.Pool{{Kind: "licence", Name: "ansys", Count: 1}, {Kind: "licence", Name: "matlab", Count: 10}}}} {
		if !slices.Contains(settings("vm", "/run/gangd.sock", "23.11.11", site), [2]string{"Licenses", want}) {
			t.Errorf("Licenses is not %s", want)
		}
	}
	if len(settings("vm", "/run/gangd.sock", "23.11.11", nil)) == 0 {
		t.Error("an older controller leaves nothing to show")
	}
}

// What show job calls resources goes after the Slurm that is spoken.
func TestShowJobOfEachSlurm(t *testing.T) {
	for version, want := range map[string][2]string{ // what is there, what is not
		"22.05": {"\n   TRES=cpu=8,mem=64G,node=2,billing=8,gres/gpu=4\n", "ReqTRES"},
		"23.11": {"\n   ReqTRES=cpu=8,mem=64G,node=2,billing=8,gres/gpu=4\n   AllocTRES=cpu=8,mem=64G,node=2,billing=8,gres/gpu=4\n", "\n   TRES="},
		"24.11": {"\n   TresPerTask=gres/gpu:1\n", "Power="},
	} {
		t.Setenv("GANG_SLURM_VERSION", version)
		sitetest.Small(t).Found()
		var out, errs bytes.Buffer
		if status := Run([]string{"show", "job", "12"}, cmdline.Streams{Out: &out, Err: &errs}); status != 0 {
			t.Fatal(errs.String())
		}
		if got := out.String(); !strings.Contains(got, want[0]) || strings.Contains(got, want[1]) {
			t.Errorf("%s: want %q, not %q in\n%s", version, want[0], want[1], got)
		}
	}
}

// TestCronJobIsShown: a job of a cron table says so behind its times, as Slurm does.
func TestCronJobIsShown(t *testing.T) {
	at := func(j *api.Job) int {
		lines := new(call).jobLines(&shownJob{Row: jobfield.Row{Job: j}})
		i := slices.Index(lines, `CronJob=Yes CrontabSpec="5 4 * * 0"`)
		if i > 0 && !strings.HasPrefix(lines[i-1], "StartTime=") {
			t.Errorf("behind %s", lines[i-1])
		}
		return i
	}
	if at(&api.Job{State: api.JobPending, Cron: &api.Cron{Schedule: "5 4 * * 0"}}) < 0 || at(&api.Job{State: api.JobPending}) >= 0 {
		t.Error("a job is not shown to come again, or another is")
	}
}
