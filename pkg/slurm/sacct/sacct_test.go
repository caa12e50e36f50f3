package sacct

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/cmdline"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	clock = func() time.Time { return fake.Now }
	groupName = func(uint32) string { return "users" }
	time.Local = time.UTC
	api.Version = "1.2.3"
	userNames = func(name string) ([]string, bool) { return []string{name}, name != "nobodyx" }
	os.Exit(m.Run())
}

func code(n int) *int { return &n }

// history is the small cluster and jobs that ended in every way.
func history() *fake.Controller {
	c := fake.Small()
	at := func(minutes int) time.Time { return fake.Now.Add(time.Duration(minutes) * time.Minute) }
	step := func(job int64, id, name string, st api.JobState, from, to int, exit *int, signal int) api.Step {
		s := api.Step{JobID: job, StepID: id, Name: name, State: st, Nodes: []string{"n1"}, Tasks: 1, CPUs: 2, StartTime: at(from), ExitCode: exit, Signal: signal}
		if to != 0 {
			s.EndTime = at(to)
		}
		return s
	}
	for i, x := range []struct {
		name    string
		state   api.JobState
		cause   api.Cause
		verdict string
		by      string
		exit    *int
		signal  int
		steps   func(id int64) []api.Step
	}{
		{"okjob", api.JobCompleted, api.CauseCompleted, "", "", code(0), 0, func(id int64) []api.Step {
			batch, first := step(id, "batch", "batch", api.JobCompleted, -50, -40, code(0), 0), step(id, "0", "true", api.JobFailed, -49, -48, code(2), 0)
			batch.MaxRSS, batch.CPUTime, first.Tasks, first.CPUTime = 3289088, 61.5, 2, 0.014
			return []api.Step{batch, step(id, "extern", "extern", api.JobCompleted, -50, -40, code(0), 0), first}
		}},
		{"killed", api.JobFailed, api.CauseCrash, "rank 0 was killed by signal 9", "", code(137), 9, func(id int64) []api.Step {
			return []api.Step{step(id, "batch", "batch", api.JobFailed, -50, -40, code(137), 9)}
		}},
		{"cancelled", api.JobCancelled, api.CauseCancelled, "cancelled by ada", "ada", code(1), 15, func(id int64) []api.Step {
			return []api.Step{step(id, "batch", "batch", api.JobCancelled, -50, -40, nil, 0)}
		}},
		{"late", api.JobTimeout, api.CauseTimeout, "", "", code(75), 0, nil},
		{"oom", api.JobOutOfMemory, api.CauseOOM, "", "", code(137), 9, nil},
		{"lost", api.JobNodeFail, api.CauseNodeLost, "", "", code(1), 0, nil},
		{"never", api.JobCancelled, api.CauseCancelled, "cancelled by ada", "ada", code(1), 0, nil},
	} {
		id := int64(30 + i)
		j := api.Job{JobID: id, Name: x.name, User: "ada", UID: 1000, GID: 1000, Account: "lab", Partition: "gpu", State: x.state, StateCode: x.state.Code(),
			Cause: x.cause, Verdict: x.verdict, CancelledBy: x.by, ExitCode: x.exit, Signal: x.signal, Size: 1, CPUsPerRank: 2, GPUsPerRank: 1, MemoryBytes: 2 << 30,
			SubmitTime: at(-60), EligibleTime: at(-60), TimeLimitSeconds: 600, WorkDir: "/home/ada/run", Command: "train.sh", Nodes: []string{"n1"},
			Constraint: "ib", Comment: "hello there"}
		if x.name != "never" {
			j.StartTime, j.EndTime = at(-50), at(-40)
			a := api.Attempt{JobID: id, Attempt: 1, Epoch: 1, Cause: x.cause, StartTime: j.StartTime, EndTime: j.EndTime, Nodes: j.Nodes, ExitCodes: []int{*x.exit}}
			if x.steps != nil {
				a.Steps = x.steps(id)
			}
			c.Attempts[id] = []api.Attempt{a}
		} else {
			j.EndTime, j.Nodes = at(-50), nil
		}
		c.Jobs = append(c.Jobs, j)
	}
	for i, id := range []int64{20, 21} {
		c.Attempts[id] = []api.Attempt{{JobID: id, Attempt: 1, Epoch: 1, StartTime: at(0).Add(-time.Duration(30+i) * time.Second), Nodes: []string{"n2"}}}
	}
	return c
}

func TestFiles(t *testing.T) {
	t.Setenv("GANG_SLURM_VERSION", "22.05") // of which the documents in them are
	slurmtest.Files(t, "testdata/*.txt", *update, history, map[string]slurm.Runner{"sacct": Run, "sstat": Sstat})
}

// --json has the members that the tables of Slurm's data parsers have.
func TestDocumentsOfLaterSlurms(t *testing.T) {
	for version, schema := range map[string]string{"23.11": "v0.0.40", "24.11": "v0.0.42"} {
		t.Run(version, func(t *testing.T) {
			t.Setenv("GANG_SLURM_VERSION", version)
			clitest.Serve(t, history())
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
	alone := strings.Fields("allclusters federation local use-local-uid help usage")
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
		if err := c.ask.window(fake.Now); err != nil || !c.ask.from.Equal(c.from) || !c.ask.to.Equal(c.to) {
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
