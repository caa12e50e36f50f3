package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/lab/sitetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain makes this test binary the commands themselves, for the scripts.
func TestMain(m *testing.M) {
	mains := map[string]func(){}
	for _, cmd := range programs() {
		mains[cmd.Name()] = func() { Main(cmd) }
	}
	clitest.Main(leakTested{m}, mains)
}

// leakTested is goleak around all tests of the package.
type leakTested struct{ m *testing.M }

func (l leakTested) Run() int {
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
	}
	return code
}

// TestScripts runs each command as people do; every script has a controller of its own.
func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata/script", *update) }

// run runs a command in this process against a site; nil: the one that it found before.
func run(t *testing.T, s *sitetest.Site, cmd *cobra.Command, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if s != nil {
		s.Found()
	}
	var out, errs bytes.Buffer
	code = program.Run(cmd, args, &out, &errs)
	return out.String(), errs.String(), code
}

// shown is what commands are told of the small site.
type shown struct {
	jobs   []api.Job
	nodes  []api.Node
	train  *api.JobDetail // job 12
	broken *api.JobDetail // job 15
	events []api.Event    // of job 12
	why    string         // job 13 waits

	partitions []api.Partition
}

var smallShown shown

// small reads the small site, once for all tests. What is in it is not changed.
func small(t testing.TB) *shown {
	t.Helper()
	if smallShown.jobs == nil {
		s := sitetest.Small(t)
		smallShown = read(t, s)
		s.Close()
	}
	return &smallShown
}

func read(t testing.TB, s *sitetest.Site) (out shown) {
	var errs [5]error
	var why *api.WhyReply
	out.jobs, errs[0] = s.List(t.Context(), &api.JobQuery{All: true})
	nodes := s.ShowNodes()
	out.nodes, out.partitions = nodes.Nodes, nodes.Partitions
	out.train, errs[1] = s.Detail(t.Context(), s.Job(12))
	out.broken, errs[4] = s.Detail(t.Context(), s.Job(15))
	out.events, _, errs[2] = s.Events(t.Context(), 12, 0, 1000)
	if why, errs[3] = s.Explain(t.Context(), s.Job(13)); errors.Join(errs[:]...) != nil {
		t.Fatal(errors.Join(errs[:]...))
	}
	out.why = why.Why
	return out
}

// job is one of them.
func (s *shown) job(id int64) *api.Job {
	return &s.jobs[slices.IndexFunc(s.jobs, func(j api.Job) bool { return j.JobID == id })]
}

// golden compares text with a file of testdata/golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", path, diff)
	}
}
