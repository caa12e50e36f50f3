package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
)

var shapes = []shape{
	{name: "conda", check: func(s *shaped) { // logs/ is not there
		s.has(fmt.Sprintf("logs/train_%d.out", s.id), "cards 1 environment torch")
		s.is(fmt.Sprintf("logs/train_%d.err", s.id), "epoch 0\nepoch 1\nepoch 2\n")
		s.is(fmt.Sprintf("runs/%d/loss", s.id), "3\n")
	}},
	{name: "standalone", check: func(s *shaped) {
		s.is("rank-0", "0 of 2, 2 cards, 2 threads\n")
		s.is("rank-1", "1 of 2, 2 cards, 2 threads\n")
	}},
	{name: "multinode", check: func(s *shaped) {
		var local, nodes []string
		for i := range 4 {
			local = append(local, strings.TrimSpace(s.file(fmt.Sprintf("rank-%d", i))))
			nodes = append(nodes, strings.TrimSpace(s.file(fmt.Sprintf("node-%d", i))))
		}
		if want := []string{"0 of 4, local 0", "1 of 4, local 1", "2 of 4, local 0", "3 of 4, local 1"}; !slices.Equal(local, want) {
			s.t.Errorf("ranks %v", local)
		}
		if nodes[0] != nodes[1] || nodes[2] != nodes[3] || nodes[0] == nodes[2] {
			s.t.Errorf("ranks on %v", nodes)
		}
	}},
	{name: "cards", check: func(s *shaped) {
		cards := map[string]bool{}
		for i := range 4 {
			s.is(fmt.Sprintf("rank-%d", i), fmt.Sprintf("%d of 4, local %d, node %d, 1 card, master True\n", i, i%2, i/2))
			cards[fmt.Sprint(i/2, s.file(fmt.Sprintf("card-%d", i)))] = true
		}
		if len(cards) != 4 {
			s.t.Errorf("cards by node: %v", cards)
		}
	}},
	{name: "quotes", check: func(s *shaped) {
		dir := filepath.Base(s.tmp)
		s.is(fmt.Sprintf("quotes-%d.out", s.id), fmt.Sprintf("task 0: lr=1e-0 name='a \"b  c\" $HOME' it's \"%s\"\ntask 1: lr=1e-1 name='a \"b  c\" $HOME' it's \"%s\"\nsum: 0\n", dir, dir))
		if j := s.job(s.id); j.Comment != "two words, 'quoted'" {
			s.t.Errorf("comment %q", j.Comment)
		}
	}},
	{name: "requeue", args: []string{"--signal=USR1@8", "--time=0:14"}, check: func(s *shaped) {
		s.has(fmt.Sprintf("long-%d.out", s.id), "start 0", "start 1", "end 1") // in between is what srun said of its end
		if out := s.file(fmt.Sprintf("long-%d.out", s.id)); strings.Count(out, "start ") != 2 || strings.Count(out, "end ") != 1 {
			s.t.Errorf("it came back more than once:\n%s", out)
		}
		s.is("state-0", "saved\nresumed\n")
		s.is("state-1", "saved\nresumed\n")
		s.epochs("REQUEUED|0:0 COMPLETED|0:0")
	}},
	{name: "trap", args: []string{"--signal=B:USR1@10", "--time=0:13"}, check: func(s *shaped) {
		s.is("ended", "child ended with 7\n")
		if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(s.file("checkpoint"), "step "))); err != nil || n < 1 {
			s.t.Errorf("checkpoint %q", s.file("checkpoint"))
		}
		s.count("wrong", 0)
		s.epochs("COMPLETED|0:0")
	}},
	{name: "sweep", array: 16, check: func(s *shaped) {
		if sum := s.sum(s.count("results/*", 16)); sum != 1000 {
			s.t.Errorf("sum %d", sum)
		}
		s.count("running/*", 0)
		s.is(fmt.Sprintf("logs/%d_7.out", s.id), fmt.Sprintf("task 7 of 16, 0 to 15, array %d\n", s.id))
		for _, n := range strings.Fields(s.file("at-once")) {
			if at, err := strconv.Atoi(n); err != nil || at < 1 || at > 4 {
				s.t.Errorf("%s at once", n)
			}
		}
	}},
	{name: "chain", array: 10, check: func(s *shaped) {
		want, last := "", 0
		for i := 1; i <= 10; i++ {
			want += fmt.Sprintf("%d after %d\n", i, last)
			last += i
		}
		s.is("order", want)
		s.is("checkpoint", "55\n")
	}},
	{name: "successor", check: func(s *shaped) {
		s.until("the last part", func() bool { return strings.Contains(s.everyFile(), "part 3 ends") })
		s.is("story", "part 1 begins\npart 1 ends\npart 2 begins\npart 2 ends\npart 3 begins\npart 3 ends\n")
		if waits := strings.Split(strings.TrimSpace(s.file("waits")), "\n"); len(waits) != 2 || !strings.HasSuffix(waits[0], " PENDING Dependency") || !strings.HasSuffix(waits[1], " PENDING Dependency") {
			s.t.Errorf("successors: %q", waits)
		}
	}},
	{name: "container", check: func(s *shaped) {
		if got := sortLines(s.file("container.out")); got != "rank 0 of 2 in image cards 1\nrank 1 of 2 in image cards 1\n" {
			s.t.Errorf("%q", got)
		}
		for i := range 2 {
			s.is(fmt.Sprintf("container.%d", i), "--nv\n--bind "+s.tmp+":/work,/tmp\nimage images/torch.sif\n")
		}
	}},
	{name: "head", check: func(s *shaped) {
		s.is("sum", "13\n")
		toldToEnd(s, "head", "worker 1", "worker 2")
	}},
	{name: "head: one dies", after: []string{"dies"}, failed: true, check: func(s *shaped) {
		s.count("sum", 0)
		toldToEnd(s, "head", "worker 1")
		if j := s.job(s.id); j.ExitCode == nil || *j.ExitCode != 137 {
			s.t.Errorf("exit code %v", j.ExitCode)
		}
	}},
	{name: "partitions", check: func(s *shaped) {
		got := strings.TrimSpace(s.file("where"))
		if got != "gpu n2 2\ngpu n2 RUNNING" && got != "long n2 2\nlong n2 RUNNING" {
			s.t.Errorf("%q", got)
		}
	}},
}

// elements waits for all of an array, and wants each to have been run once.
func elements(s *shaped, n int) {
	s.t.Helper()
	s.until("all elements", func() bool {
		out := s.tool("sacct", "-X", "-n", "-P", "-o", "State", "-j", fmt.Sprint(s.id))
		return strings.Count(out, string(api.JobCompleted)+"\n") == n
	})
	if out := s.tool("sacct", "-D", "-X", "-n", "-P", "-o", "State", "-j", fmt.Sprint(s.id)); strings.Count(out, "\n") != n {
		s.t.Errorf("runs of the elements:\n%s", out)
	}
}

// toldToEnd wants these parts to have been told to end, each once, and nothing of the job left.
func toldToEnd(s *shaped, parts ...string) {
	s.t.Helper()
	if got := sortLines(s.file("ended")); got != strings.Join(parts, "\n")+"\n" {
		s.t.Errorf("told to end: %q, want %q", got, parts)
	}
	s.until("nothing of it is left", func() bool { return len(processesIn(s.tmp)) == 0 })
}

// Every shape that stands in testdata is in the table.
func TestShapesAreRun(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/shapes/*/job.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		name := filepath.Base(filepath.Dir(d))
		if !slices.ContainsFunc(shapes, func(s shape) bool { return s.name == name }) {
			t.Errorf("nobody runs the shape %s", name)
		}
	}
	if len(dirs) < 12 {
		t.Errorf("%d shapes", len(dirs))
	}
}
