package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/lab/sitetest"
)

// past is the small site the morning after: what has ended has left the controller's memory. Ada's last jobs were an array of which
// one element failed (28), one that was cancelled while it was held (31) and one that failed (32).
func past(t *testing.T) {
	s := sitetest.Small(t,
		sitetest.At("12:00:10", func(s *sitetest.Site) {
			s.Submit(sitetest.Ada, sitetest.SmallSpec("grid", 1), &api.Array{Indices: []int{0, 1, 2}})
			for id := int64(28); id < 31; id++ {
				s.Run(id)
			}
		}),
		sitetest.At("12:00:20", func(s *sitetest.Site) {
			s.Exit(29, 0, 7)
			s.End(29, sitetest.Stopped)
			for _, id := range []int64{28, 30} {
				s.End(id, sitetest.Well)
			}
		}),
		sitetest.At("12:00:30", func(s *sitetest.Site) {
			held := sitetest.SmallSpec("held", 1)
			held.Hold = true
			s.Submit(sitetest.Ada, held, nil)
		}),
		sitetest.At("12:00:40", func(s *sitetest.Site) {
			_, err := s.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: 31, Index: -1}}}}, engine.Caller{UID: sitetest.Ada.UID, User: "ada"}, func(uint32) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			s.Submit(sitetest.Ada, sitetest.SmallSpec("night", 1), nil)
			s.Run(32)
			s.File("n2", "/home/ada/run/gang-32.out", "Traceback: no such data set\n")
		}),
		sitetest.At("12:00:50", func(s *sitetest.Site) {
			s.Exit(32, 0, 3)
			s.End(32, sitetest.Stopped)
		}))
	s.Set(func(set *api.Settings) { set.KeepEnded = 0 })
	for _, id := range []int64{15, 28, 31, 32} {
		if jobs, err := s.List(t.Context(), &api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}, All: true}); err == nil {
			t.Fatalf("%d jobs are in memory of job %d, which is to be in the history alone", len(jobs), id)
		}
	}
	s.Found()
}

// TestTheMorningAfter: each command that shows a job answers of those that have left the controller's memory, by id and as one's last.
func TestTheMorningAfter(t *testing.T) {
	past(t)
	for _, c := range []struct {
		args []string
		out  string // of standard output
		err  string
	}{
		{args: []string{"gctl", "show", "job", "32"}, out: `JobState=FAILED .*NonZeroExitCode(?s:.*)Verdict=rank 0 exited with code 3(?s:.*)Attempts\n`},
		{args: []string{"gctl", "show", "job", "@"}, out: `JobId=32 JobName=night`},
		{args: []string{"gctl", "show", "job", "28"}, out: `States=2 COMPLETED \(28_\[0,2\]\), 1 FAILED \(28_1\)`},
		{args: []string{"gctl", "show", "job", "28_1"}, out: `JobId=29 ArrayJobId=28 ArrayTaskId=1(?s:.*)Verdict=rank 0 exited with code 7`},
		{args: []string{"gctl", "show", "job", "@", "--json"}, out: `"verdict": "rank 0 exited with code 3"`},
		{args: []string{"gqueue", "--why", "32"}, out: `^job 32 is FAILED \(NonZeroExitCode\)\n  ended 12:00:50: FAILED: rank 0 exited with code 3\n  waited 0 s, from 12:00:40 until it started on n2\n`},
		{args: []string{"gqueue", "--why", "@"}, out: `^job 32 is FAILED`},
		{args: []string{"gqueue", "--why", "@~1"}, out: `^job 31 is CANCELLED \(JobHeldUser\)\n  ended 12:00:40: CANCELLED(?s:.*)\n  waited 10 s, from 12:00:30, and never started\n  of that 10 s held by its owner\n`},
		{args: []string{"gqueue", "--why", "28"}, out: `^array 28: 2 COMPLETED \(28_\[0,2\]\), 1 FAILED \(28_1\)\n`},
		{args: []string{"gqueue", "32"}, out: `^ *JOBID.*\n$`, err: `^gqueue: job 32 has ended: FAILED \(rank 0 exited with code 3\); gacct 32\n$`},
		{args: []string{"gqueue", "@~2"}, out: `^ *JOBID.*\n$`, err: `^gqueue: array 28 has ended: 2 COMPLETED \(28_\[0,2\]\), 1 FAILED \(28_1\); gacct 28\n$`},
		{args: []string{"gqueue", "28_1"}, out: `^ *JOBID.*\n$`, err: `^gqueue: job 28_1 has ended: FAILED \(rank 0 exited with code 7\); gacct 28_1\n$`},
		{args: []string{"gqueue", "12", "32"}, out: `(?s)^ *JOBID.* 12 .*$`, err: `^gqueue: job 32 has ended`},
		{args: []string{"gqueue", "-t", "F", "32", "28"}, out: `(?s)^ *JOBID.*28_1.* F .*32.* F .*$`},
		{args: []string{"gqueue", "-t", "F"}, out: `^ *JOBID.*\n$`, err: `^gqueue: what has ended leaves the queue after some minutes; gacct lists it\n$`},
		{args: []string{"gqueue", "-t", "all", "-n", "night"}, out: `^ *JOBID.*\n$`, err: `^gqueue: what has ended leaves the queue`},
		{args: []string{"gqueue", "--start", "32"}, out: `^ *JOBID.*\n$`, err: `^gqueue: job 32 has ended: FAILED \(rank 0 exited with code 3\); gacct 32\n$`},
		{args: []string{"gqueue", "--start", "12"}, out: `^ *JOBID.*\n$`, err: `^gqueue: job 12 waits no more: RUNNING\n$`},
		{args: []string{"gctl", "events", "28_1"}, out: `job 28_1 epoch 1  ended: FAILED`},
		{args: []string{"gqueue", "--json", "31"}, out: `"verdict": "cancelled by ada"`},
		{args: []string{"glog", "32"}, out: `^Traceback: no such data set\n$`},
		{args: []string{"glog", "-f", "@"}, out: `^Traceback: no such data set\n$`},
		{args: []string{"gctl", "events", "@"}, out: `ended: FAILED`},
		{args: []string{"gacct", "32"}, out: `(?m)^ +32 night +1 crash .* rank 0 exited with code 3$`},
		{args: []string{"gacct", "@"}, out: `(?m)^ +32 night `},
		{args: []string{"gacct", "28"}, out: `(?m)^ +28_1 grid +1 crash .* rank 0 exited with code 7$`},
		{args: []string{"gacct", "-u", "1000"}, out: `(?s) 15 broken .*28_0 .*31 held +- cancelled .*cancelled by ada\n.*32 night `, err: `^gacct: these are the jobs of the last 24 hours; further back: gacct --since=7d\n$`},
		{args: []string{"gacct", "-s", "F"}, out: `^.*\n +15 broken .*\n +28_1 .*\n +32 night .*\n$`, err: `last 24 hours`},
		{args: []string{"gacct", "-e", "@"}, out: `Job 32`},
		{args: []string{"gacct", "-n", "broken"}, out: `^.*\n +15 broken .*\n`, err: `last 24 hours`},
	} {
		out, errs, code := run(t, nil, command(c.args[0]), c.args[1:]...)
		if code != 0 || !regexp.MustCompile(c.out).MatchString(out) || c.err == "" && errs != "" || !regexp.MustCompile(c.err).MatchString(errs) {
			t.Errorf("%q: status %d\n%s%s\nwant %s, %s", c.args, code, out, errs, c.out, c.err)
		}
	}
	// What is done to one says that it is over, and a job that never was is none.
	for _, c := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"gcancel", "@"}, 1, "gcancel: job 32 has already ended: FAILED\n"},
		{[]string{"gcancel", "28_1"}, 1, "gcancel: job 28_1 has already ended: FAILED\n"},
		{[]string{"gcancel", "-Q", "@"}, 0, ""},
		{[]string{"gctl", "hold", "32"}, 1, "gctl: job 32 has already ended: FAILED\n"},
		{[]string{"glog", "31"}, 3, "glog: job 31 ended before it started, and has no output: CANCELLED: cancelled by ada; gqueue --why 31 says more\n"},
		{[]string{"glog", "-f", "31"}, 3, "glog: job 31 ended before it started, and has no output: CANCELLED: cancelled by ada; gqueue --why 31 says more\n"},
		{[]string{"gqueue", "99"}, 3, "gqueue: no job 99; list jobs with gqueue, ended ones with gacct\n"},
		{[]string{"gctl", "show", "job", "28_9"}, 3, "gctl: no job 28_9; list jobs with gqueue, ended ones with gacct\n"},
		{[]string{"gqueue", "@~20"}, 3, "gqueue: no job @~20: not so many that you have submitted are known here; list yours with gqueue --me, ended ones with gacct\n"},
	} {
		if _, errs, code := run(t, nil, command(c.args[0]), c.args[1:]...); code != c.code || errs != c.err {
			t.Errorf("%q: status %d, %q, want %d, %q", c.args, code, errs, c.code, c.err)
		}
	}
	// A day later gacct shows what is of the last day, and says so.
	before := jobfield.Now
	defer func() { jobfield.Now = before }()
	jobfield.Now = func() time.Time { return before().Add(48 * time.Hour) }
	out, errs, _ := run(t, nil, command("gacct"), "-u", "1000")
	if regexp.MustCompile(`night|broken`).MatchString(out) || !regexp.MustCompile(`train-llm`).MatchString(out) || errs == "" {
		t.Errorf("two days later: %s%s", out, errs)
	}
	if out, _, _ := run(t, nil, command("gacct"), "-u", "1000", "--since=7d"); !regexp.MustCompile(`broken`).MatchString(out) {
		t.Errorf("of the last seven days: %s", out)
	}
}

// TestCommandsOfTheQuestions: each command that docs/see.md answers a question by is one that the programs take.
func TestCommandsOfTheQuestions(t *testing.T) {
	past(t)
	page, err := os.ReadFile("../../../docs/see.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "### Fifteen questions")
	table, _, _ = strings.Cut(table, "\n## ")
	questions, commands := 0, 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "--") || strings.Contains(cells[1], "question") {
			continue
		}
		questions++
		for _, m := range regexp.MustCompile("`(g[^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			args := strings.Fields(strings.NewReplacer("20", "28", "n3", "n2").Replace(m[1])) // an array and a node of this site
			if args[0] == "gcancel" || len(args) > 1 && args[1] == "rerun" {
				args = append(args, "--help") // it is not done here
			}
			commands++
			cmd := command(args[0])
			if args[0] == "greport" {
				cmd = NewGreport(nil)
			}
			if _, errs, code := run(t, nil, cmd, args[1:]...); code == 2 || code == 4 {
				t.Errorf("%q: status %d, %s", m[1], code, errs)
			}
		}
	}
	if !found || questions != 15 || commands < 15 {
		t.Errorf("%d questions, %d commands", questions, commands)
	}
}
