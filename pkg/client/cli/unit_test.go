package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/drawn"
	"gangd/pkg/client/jobs"
	"gangd/pkg/client/program"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/lab/sitetest"
)

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00", 59 * time.Second: "0:59", 61 * time.Second: "1:01", time.Hour: "1:00:00",
		25*time.Hour + time.Second: "1-01:00:01", -time.Second: "INVALID", 999 * time.Millisecond: "0:00",
	} {
		if got := jobfield.Elapsed(d); got != want {
			t.Errorf("elapsed(%v) = %q, want %q", d, got, want)
		}
	}
}

// What gctl ping says of several controllers; one that was removed is none.
func TestPingControllers(t *testing.T) {
	p := &api.PingReply{Term: 7, Controllers: []api.ControllerState{
		{Name: "a", State: api.ControllerLeads, Lineage: 9},
		{Name: "b", State: api.ControllerStandsBy, Lineage: 9},
		{Name: "c", State: api.ControllerJoins, Lineage: 8, BehindCommits: 1, BehindSeconds: 0.25, Why: "waits for n3 to know of it"},
		{Name: "d", State: api.ControllerSilent, Why: "connection refused"},
		{Name: "e", State: api.ControllerRemoved},
	}}
	var out bytes.Buffer
	want := "controller a leads, term 7\ncontroller b stands by, lacks no commit of 9\ncontroller c joins, lacks 1 commit, had all 0.2s ago; waits for n3 to know of it\ncontroller d silent, connection refused\n"
	if err := pingControllers(&out, p); err != nil || out.String() != want {
		t.Errorf("%v\n got %s\nwant %s", err, out.String(), want)
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1023: "1023", 1024: "1K", 80 << 30: "80G", 23040 << 20: "22.5G", 1023 << 30: "1T", 1 << 40: "1T"} {
		if got := jobfield.BytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestFoldedRowsKeepEveryElement: whatever the elements' states and reasons are, folding
// neither loses nor doubles one, and only waiting ones that never ran are folded.
func TestFoldedRowsKeepEveryElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		jobs := make([]api.Job, n)
		for i := range jobs {
			index := i
			jobs[i] = api.Job{JobID: int64(100 + i), ArrayJobID: 100, ArrayIndex: &index, Epoch: rapid.IntRange(0, 1).Draw(t, "epoch"),
				State:  rapid.SampledFrom([]api.JobState{api.JobPending, api.JobPending, api.JobRunning}).Draw(t, "state"),
				Reason: rapid.SampledFrom([]string{"Resources", "Priority"}).Draw(t, "reason")}
		}
		seen := map[int]int{}
		for _, r := range (jobfield.Fold{ByReason: true}).Rows(jobs) {
			indices := r.Folded
			if indices == nil {
				indices = []int{*r.ArrayIndex}
			}
			for _, i := range indices {
				seen[i]++
				if len(indices) > 1 && (jobs[i].State != api.JobPending || jobs[i].Epoch > 0 || jobs[i].Reason != r.Reason) {
					t.Fatalf("element %d does not belong to %v", i, r.Folded)
				}
			}
		}
		for i := range jobs {
			if seen[i] != 1 {
				t.Fatalf("element %d is shown %d times", i, seen[i])
			}
		}
	})
}

// TestIndexRangesReadBack: what gqueue prints is what gcancel takes.
func TestIndexRangesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfNDistinct(rapid.IntRange(0, 50), 2, 20, rapid.ID[int]).Draw(t, "indices")
		var jobs []api.Job
		for i := range set {
			jobs = append(jobs, api.Job{JobID: int64(10 + i), ArrayJobID: 10, ArrayIndex: &set[i], ArrayLimit: 4, State: api.JobPending})
		}
		rows := (jobfield.Fold{ByReason: true}).Rows(jobs)
		refs, err := parseRefs([]string{jobfield.ID(&rows[0])})
		if err != nil || len(refs) != len(set) {
			t.Fatalf("%s reads as %v (%v), want %v", jobfield.ID(&rows[0]), refs, err, set)
		}
	})
}

// TestControlCharactersStayOut: a name must not move the cursor or fake a line.
func TestControlCharactersStayOut(t *testing.T) {
	job := *small(t).job(12)
	job.Name = "x\x1b[2J\ny|z"
	for _, g := range []*gqueue{{}, {parsable: true}, {format: "%j"}} {
		var out bytes.Buffer
		if err := errors.Join(g.settle(NewGqueue()), g.write(&screen{w: &out}, []api.Job{job})); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("%q", out.String())
		}
	}
}

// TestWideLetters: a column stays a column under letters that take two places.
func TestWideLetters(t *testing.T) {
	tab := &table{cols: []tableColumn{{head: "NAME", width: 8}, {head: "ST"}}, rows: [][]string{{"訓練", "R"}, {"train", "R"}}}
	var b bytes.Buffer
	if err := tab.write(&screen{w: &b}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME     ST\n訓練     R\ntrain    R\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestDrawnAndPrintedAgree: tablewriter and the plain writer give the same table.
func TestDrawnAndPrintedAgree(t *testing.T) {
	Drawer = drawn.Draw
	defer func() { Drawer = nil }()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[ -~]{0,12}`)
		tab := &table{cols: []tableColumn{{head: "A", right: true}, {head: "BB", width: 6}, {head: "C", right: true}, {head: "D"}}}
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			tab.rows = append(tab.rows, []string{cell.Draw(t, "a"), cell.Draw(t, "b"), cell.Draw(t, "c"), cell.Draw(t, "d")})
		}
		var out, printed bytes.Buffer
		s := &screen{terminal: true, width: 1000}
		widths := tab.widths()
		s.w = &out
		if err := tab.draw(s, widths); err != nil {
			t.Fatal(err)
		}
		s.w = &printed
		if err := tab.print(s, widths); err != nil {
			t.Fatal(err)
		}
		if out.String() != printed.String() {
			t.Fatalf("drawn:\n%q\nprinted:\n%q", out.String(), printed.String())
		}
	})
}

// TestNarrowTables: where not all has room, what can be spared goes, a sentence goes on below, and no word
// of it is lost.
func TestNarrowTables(t *testing.T) {
	Drawer = drawn.Draw
	defer func() { Drawer = nil }()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zé訓]{1,9}`), 1, 12).Draw(t, "words")
		tab := &table{cols: []tableColumn{{head: "NODE", keep: true}, {head: "CPUS", right: true, spare: 1}, {head: "MEMORY", spare: 2}, {head: "REASON", wrap: true}},
			rows: [][]string{{"n1", "64", "512G", strings.Join(words, " ")}}}
		width := rapid.IntRange(30, 90).Draw(t, "width")
		var out bytes.Buffer
		if err := tab.write(&screen{w: &out, terminal: true, width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if textWidth(strings.TrimRight(line, "\n")) > width {
				t.Fatalf("wider than %d:\n%s", width, out.String())
			}
		}
		text := strings.Fields(out.String())
		for _, word := range append(words, "NODE", "n1") {
			i := slices.Index(text, word)
			if i < 0 {
				t.Fatalf("%q is lost:\n%s", word, out.String())
			}
			text = slices.Delete(text, i, i+1)
		}
		if slices.Contains(text, "MEMORY") && !slices.Contains(text, "CPUS") {
			t.Fatalf("CPUS went before MEMORY:\n%s", out.String())
		}
	})
}

// tables hands on what a watch draws, one write at a time.
type tables struct{ drawn chan string }

func (w *tables) Write(p []byte) (int, error) {
	w.drawn <- string(p)
	return len(p), nil
}

// TestWatchShowsEachChange: a change is shown because the controller tells of it, and
// nothing new is drawn without one.
func TestWatchShowsEachChange(t *testing.T) {
	site := sitetest.Small(t)
	site.Found()
	g := &gqueue{}
	if err := g.settle(NewGqueue()); err != nil {
		t.Fatal(err)
	}
	lateLook = time.Hour // so that only the stream can show the change
	t.Cleanup(func() { lateLook = 300 * time.Millisecond })
	ctx, stop := context.WithCancel(t.Context())
	cl := client.New()
	w := &tables{drawn: make(chan string, 16)}
	done := make(chan error, 1)
	go func() { done <- g.follow(ctx, cl, &screen{w: w}) }()
	if first := <-w.drawn; !strings.Contains(first, "train-llm") {
		t.Fatalf("first table: %q", first)
	}
	<-site.Followed
	site.Play(sitetest.Scene{At: sitetest.Now, Do: func(s *sitetest.Site) {
		_, err := s.Do(t.Context(), gang.Release{Job: 14})
		if err != nil {
			t.Error(err)
		}
		s.Run(14)
	}})
	for second := ""; !strings.Contains(second, "14       gpu                     later    grace  R"); {
		if second = <-w.drawn; !strings.HasPrefix(second, "\n") {
			t.Fatalf("another table: %q", second)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWatchEndsWithTheController: exit status 4, not a silent stop.
func TestWatchEndsWithTheController(t *testing.T) {
	s := sitetest.Small(t)
	s.Found()
	w := &tables{drawn: make(chan string, 16)}
	done := make(chan int, 1)
	go func() { done <- program.Run(NewGqueue(), []string{"--watch"}, w, &bytes.Buffer{}) }()
	<-w.drawn
	s.Stop()
	if code := <-done; code != api.ExitUnreachable {
		t.Errorf("status %d, want %d", code, api.ExitUnreachable)
	}
}

func TestClip(t *testing.T) {
	if got, want := clip("a\nb\nc\nd\n", 3), "a\nb\n... and 2 lines more: a taller window, or filters, show them\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, lines := range []int{0, 4, 5} {
		if got := clip("a\nb\nc\nd\n", lines); got != "a\nb\nc\nd\n" {
			t.Errorf("clip to %d: %q", lines, got)
		}
	}
}

func TestFollowEventsGivesALineEach(t *testing.T) {
	s := sitetest.Small(t)
	s.Found()
	w := &tables{drawn: make(chan string, 16)}
	done := make(chan int, 1)
	last := s.LastEvent()
	go func() {
		done <- program.Run(NewGctl(), []string{"events", "--follow", "--json", fmt.Sprintf("--since=%d", last-1)}, w, &bytes.Buffer{})
	}()
	if line := <-w.drawn; !strings.HasPrefix(line, fmt.Sprintf(`{"seq":%d,`, last)) || strings.Count(line, "\n") != 1 {
		t.Errorf("first line %q", line)
	}
	s.NodeDo("resume", "n3", "")
	if line := <-w.drawn; !strings.HasPrefix(line, fmt.Sprintf(`{"seq":%d,`, last+1)) || !strings.Contains(line, `"node":"n3"`) {
		t.Errorf("second line %q", line)
	}
	s.Stop()
	if code := <-done; code != api.ExitUnreachable {
		t.Errorf("status %d", code)
	}
}

// TestCompletions are live, and silent where no controller answers.
func TestCompletions(t *testing.T) {
	out, _, _ := run(t, sitetest.Small(t), NewGcancel(), "__complete", "")
	for _, want := range []string{"12\tRUNNING train-llm\n", "20_3\tPENDING sweep\n", ":4\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("completing gcancel lacks %q:\n%s", want, out)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"-p|", "gpu\nlong\n:4\n"},
		{"--partition=lo", "long\n:4\n"},
		{"-w|n1,", "n1,n1\nn1,n2\nn1,n3\nn1,n4\n:4\n"},
		{"-d|afterok:", "afterok:12\t"},
		{"job.sh|-p", ":0\n"},
		{"--signal|US", "USR1\nUSR2\n:4\n"},
	} {
		out, _, _ := run(t, nil, newGsubmit(), append([]string{"__complete"}, strings.Split(tt.args, "|")...)...)
		if !strings.HasPrefix(out, tt.want) {
			t.Errorf("gsubmit %s: %q", tt.args, out)
		}
	}
	out, _, _ = run(t, nil, NewGqueue(), "__complete", "--partition", "")
	if !strings.Contains(out, "gpu\nlong\n") {
		t.Errorf("completing partitions: %q", out)
	}
	out, _, _ = run(t, nil, NewGctl(), "__complete", "node", "drain", "")
	if !strings.Contains(out, "n1\nn2\nn3\nn4\n") {
		t.Errorf("completing nodes: %q", out)
	}
	out, _, _ = run(t, nil, NewGqueue(), "__complete", "--user", "")
	if !strings.Contains(out, "ada\ngrace\n") {
		t.Errorf("completing users: %q", out)
	}
	t.Setenv("GANG_DIR", t.TempDir())
	out, _, code := run(t, nil, NewGcancel(), "__complete", "")
	if out != ":4\n" || code != 0 {
		t.Errorf("without a controller: %q, status %d", out, code)
	}
}

// TestRefusalsKeepTheirStatus: the codes of the wire become the contract's exit status.
func TestRefusalsKeepTheirStatus(t *testing.T) {
	s := sitetest.Empty(t)
	s.Found()
	for code, want := range map[api.Code]int{
		api.CodeInvalid: 1, api.CodeUnsatisfiable: 1, api.CodePermission: 1, api.CodeNotFound: 3, api.CodeConflict: 1,
		api.CodeStaleEpoch: 1, api.CodeAlreadyEnded: 1, api.CodeTooLarge: 1, api.CodeDiskFull: 1, api.CodeUnavailable: 4, api.CodeInternal: 1,
	} {
		s.Refuse(&api.Error{Code: code, Message: "no", Hint: "try later"})
		out, errs, status := run(t, nil, NewGinfo())
		if status != want || out != "" || errs != "ginfo: no; try later\n" {
			t.Errorf("%s: status %d, want %d; stdout %q, stderr %q", code, status, want, out, errs)
		}
	}
}

// FuzzFormat: no format of any kind may crash or run away.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{jobs.FormatDefault, jobs.FormatLong, jobs.FormatStart, "%all", "%", "%.", "%9", "%.18", "x%iy", "%%", "é%.3ié"} {
		f.Add(s)
	}
	all := small(f).jobs[:2] // enough to sort
	cmd := NewGqueue()
	f.Fuzz(func(t *testing.T, format string) {
		for _, g := range []*gqueue{{format: format}, {longFormat: format}, {sort: format}} {
			if g.settle(cmd) != nil {
				continue
			}
			if err := g.write(&screen{w: io.Discard}, append([]api.Job(nil), all...)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What gqueue shows by the short form of a job is what it shows by the whole.
func TestLinesAreEnough(t *testing.T) {
	c := small(t)
	if len(c.jobs) < 5 {
		t.Fatalf("only %d jobs to compare", len(c.jobs))
	}
	for i := range c.jobs {
		whole := jobfield.Row{Job: &c.jobs[i]}
		read, err := api.ReadLines(bytes.NewReader(api.AppendLine(api.AppendLineHeader(nil), &c.jobs[i])))
		if err != nil {
			t.Fatal(err)
		}
		short := jobfield.Row{Job: &read[0]}
		for _, letter := range []byte(jobfield.LineLetters) {
			f := jobfield.Gqueue.Letter(letter)
			if got, want := f.Text(&short), f.Text(&whole); got != want {
				t.Errorf("job %d, %%%c: %q by its line, %q by the whole", c.jobs[i].JobID, letter, got, want)
			}
			if f.Compare != nil && f.Compare(&short, &whole) != 0 {
				t.Errorf("job %d, %%%c: sorts differently by its line", c.jobs[i].JobID, letter)
			}
		}
	}
}

// Who drained a node stands behind the reason, and in front of when it is to be empty.
func TestReasonOfADrainedNode(t *testing.T) {
	at := sitetest.Now.Add(-time.Hour)
	n := &api.Node{State: api.NodeDraining, Reason: "fan", DrainUser: "root", DrainTime: at, DrainBy: sitetest.Now}
	if got, want := nodeReason(n), "fan [root@"+jobfield.Stamp(at)+"]; empty by "+jobfield.Stamp(sitetest.Now); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// What the controller says of a lost node is from when it was lost: it is silent for longer now.
	lost := &api.Node{State: api.NodeLost, LastSeen: now().Add(-11 * time.Minute), Reason: "silent for 60 s", Silent: true}
	if got := nodeReason(lost); got != "silent for 11m" {
		t.Errorf("lost: %q", got)
	}
	lost.Reason, lost.Silent = "silent fan", false
	if got := nodeReason(lost); got != "silent fan (silent for 11m)" {
		t.Errorf("lost for another reason: %q", got)
	}
}

// What tasks of steps say stands beside what ranks say, and only what was said.
func TestStoryOfTasks(t *testing.T) {
	d := &api.JobDetail{Job: api.Job{JobID: 12, Size: 2, TaskCheckpoint: &api.Checkpoint{Epoch: 3, Bytes: 2048, Complete: true, StepID: "1", Tasks: 2},
		Steps: []api.Step{{StepID: "0", Tasks: 1}, {StepID: "1", Tasks: 4, TaskList: []api.Task{{Task: 0, Node: "n1", Status: "loss 2\n.3", Ready: true},
			{Task: 1, Node: "n1", Stopping: true, Ready: true}, {Task: 2, Node: "n2", Ended: true, Stopping: true}, {Task: 3, Node: "n2", LastBeat: jobfield.Now().Add(time.Hour)}}}}}}
	var out bytes.Buffer
	if err := writeStory(&screen{w: &out}, d, nil); err != nil {
		t.Fatal(err)
	}
	want := `
Tasks
TASK PHASE    NODE   BEAT STATUS
 1.0 ready    n1      N/A loss 2?.3
 1.1 stopping n1      N/A -
 1.2 ended    n2      N/A -
 1.3 running  n2     0:00 -
`
	if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, "   TaskCheckpoint=2K Epoch=3 Step=1 Tasks=2 Time=N/A Complete=true\n") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if d.Job.Steps = d.Job.Steps[:1]; taskTable(d.Job.Steps).rows != nil {
		t.Error("a table of nothing")
	}
}

// TestLinesOfRanksInOrder: by the times that they begin with, a rank in its own order.
func TestLinesOfRanksInOrder(t *testing.T) {
	var out bytes.Buffer
	m := newLogMerge(&screen{w: &out}, io.Discard)
	m.out.Size, m.lines = 3, map[int][]byte{
		0: []byte("begin\n2026-01-31 12:00:00,500 a\n  of a\n2026-01-31 12:00:02.000 d\n"),
		1: []byte("2026-01-31T12:00:01 c\n[2026-01-31 12:00:00.900] back\n2026-01-31 12:00:03 without an end"),
		2: []byte("half a line\n2026-01-31 12:00:00.700 b\n"),
	}
	if err := m.inOrder(int64(len(m.lines[2]))); err != nil {
		t.Fatal(err)
	}
	want := "0: begin\n0: 2026-01-31 12:00:00,500 a\n0:   of a\n2: 2026-01-31 12:00:00.700 b\n1: 2026-01-31T12:00:01 c\n" +
		"1: [2026-01-31 12:00:00.900] back\n0: 2026-01-31 12:00:02.000 d\n1: 2026-01-31 12:00:03 without an end\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	for line, want := range map[string]string{"2026-01-31T12:00:00.25Z x": "12:00:00.25", "2026-01-31 12:00:00+02:00 x": "10:00:00", "(2026-01-31 12:00:00)": "12:00:00",
		"2026-01-31": "", "step 12 of 2026-01-31 12:00:00": "", "2026-13-31 12:00:00": ""} {
		at, ok := lineTime([]byte(line))
		if ok != (want != "") || ok && at.UTC().Format("15:04:05.999") != want {
			t.Errorf("%q: %v %v", line, at, ok)
		}
	}
}

// What a drain waits for; of a node that is lost or back in service nobody can say that it is empty.
func TestDraining(t *testing.T) {
	at := time.Date(2026, 3, 1, 18, 0, 0, 0, time.Local)
	all := []api.Node{{Name: "n1", State: api.NodeDrained}, {Name: "n2", State: api.NodeDraining, Jobs: []int64{7, 8}, DrainBy: at}, {Name: "n3", State: api.NodeSuspect, Jobs: []int64{7}},
		{Name: "n4", State: api.NodeLost}, {Name: "n5", State: api.NodeUp, Jobs: []int64{9}}}
	for names, want := range map[string]string{"n1": "", "n1 n2 n3": "n[2-3]: 2 jobs run, until 18:00:00 at the latest", "n3": "n3: 1 job runs"} {
		if got, err := draining(all, strings.Fields(names)); got != want || err != nil {
			t.Errorf("%s: %q, %v", names, got, err)
		}
	}
	for name, want := range map[string]string{"n4": "node n4 is lost: what runs there is not known", "n5": "node n5 was put back into service"} {
		if _, err := draining(all, []string{"n1", name}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAttemptsInImages: gacct names the image and its digest where a job runs in one, and has no such column elsewhere.
func TestAttemptsInImages(t *testing.T) {
	var all []*api.JobDetail
	for id, image := range [][2]string{{"", ""}, {"nvcr.io/tool:1", "sha256:12"}, {"tool@sha256:34", "sha256:34"}} {
		all = append(all, &api.JobDetail{Job: api.Job{JobID: int64(id), Image: image[0], ImageDigest: image[1]}, Attempts: []api.Attempt{{Attempt: 1}}})
	}
	var got []string
	for _, row := range attemptTable(all, true).rows {
		got = append(got, row[len(row)-2])
	}
	if want := []string{"-", "nvcr.io/tool:1@sha256:12", "tool@sha256:34"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if cols := attemptTable(all[:1], true).cols; cols[len(cols)-2].head != "NODES" {
		t.Error("a column of images that nobody has")
	}
}

// TestWhyAttemptsEnded: each attempt has its own reason, the last of a job that has ended the job's, and what never started a line of its own.
func TestWhyAttemptsEnded(t *testing.T) {
	crash := []api.Attempt{{Attempt: 1, Cause: api.CauseCrash, Text: "rank 0 exited with code 3"}, {Attempt: 2, Cause: api.CauseCrash, Text: "rank 1 exited with code 4"}}
	all := []*api.JobDetail{
		{Job: api.Job{JobID: 1, State: api.JobFailed, Verdict: "rank 1 exited with code 4; no re-run is left"}, Attempts: crash},
		{Job: api.Job{JobID: 2, State: api.JobRunning}, Attempts: append(slices.Clone(crash), api.Attempt{Attempt: 3})},
		{Job: api.Job{JobID: 3, State: api.JobCancelled, Cause: api.CauseCancelled, Verdict: "cancelled by ada"}},
		{Job: api.Job{JobID: 4, State: api.JobCompleted}, Attempts: []api.Attempt{{Attempt: 1, Cause: api.CauseCompleted}}},
		{Job: api.Job{JobID: 5, State: api.JobPending}},
	}
	var got []string
	for _, row := range attemptTable(all, true).rows {
		got = append(got, strings.Join([]string{row[0], row[2], row[3], row[len(row)-1]}, " "))
	}
	want := []string{"1 1 crash rank 0 exited with code 3", "1 2 crash rank 1 exited with code 4; no re-run is left", "2 1 crash rank 0 exited with code 3",
		"2 2 crash rank 1 exited with code 4", "2 3 running ", "3 - cancelled cancelled by ada", "4 1 completed "}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestEndedText: of a job that is named and has ended it is said how, of an array how many ended how.
func TestEndedText(t *testing.T) {
	el := func(i int, st api.JobState) api.Job {
		return api.Job{JobID: int64(20 + i), ArrayJobID: 20, ArrayIndex: &i, State: st}
	}
	for want, over := range map[string][]api.Job{
		"job 24 has ended: FAILED (rank 1 exited with code 1); gacct 24":        {{JobID: 24, State: api.JobFailed, Verdict: "rank 1 exited with code 1"}},
		"job 24 has ended: COMPLETED; gacct 24":                                 {{JobID: 24, State: api.JobCompleted}},
		"array 24 has ended: 2 COMPLETED (20_[0,2]), 1 FAILED (20_1); gacct 24": {el(0, api.JobCompleted), el(1, api.JobFailed), el(2, api.JobCompleted)},
	} {
		if got := endedText(api.JobRef{ID: 24, Index: -1}, over); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNodesAlike: what several nodes are alike in stands once below the table; a node that is alone in it says it in its line.
func TestNodesAlike(t *testing.T) {
	sampled := api.NodeLimits{Memory: api.LimitSampled, Processes: api.LimitSampled, Reason: "no cgroup may be written"}
	other := sampled
	other.Reason = "cgroups of v1"
	nodes := []api.Node{{Name: "n1", State: api.NodeUp, Limits: sampled}, {Name: "n2", State: api.NodeUp, Limits: sampled}, {Name: "n3", State: api.NodeUp, Limits: other}, {Name: "n4", State: api.NodeDrained, Limits: sampled}}
	var out bytes.Buffer
	if err := new(ginfo).writeNodes(&screen{w: &out}, nodes); err != nil {
		t.Fatal(err)
	}
	const below = "\nn[1-2]: memory and processes are sampled, not enforced: no cgroup may be written\n"
	if got := out.String(); !strings.HasSuffix(got, below) || strings.Count(got, "no cgroup may be written") != 1 || strings.Count(got, "cgroups of v1") != 1 {
		t.Errorf("%s", got)
	}
}
