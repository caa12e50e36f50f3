package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// shape is one way in which people write scripts for Slurm. Its directory of testdata/shapes
// has the script and its programs as they stand in a home; args are what a person would give
// on the command line, where leads and limits are shorter than the script's.
type shape struct {
	name   string
	args   []string // of sbatch, in front of job.sh
	after  []string // of the script
	failed bool     // it is one that has to fail
	array  int      // elements of an array
	check  func(*shaped)
}

// shaped is one that has run: its directory, and the job.
type shaped struct {
	*cluster
	id int64
}

// TestShapes runs the shapes unchanged, side by side in one cluster, and looks at what came
// of them.
func TestShapes(t *testing.T) {
	t.Parallel()
	needsPython(t)
	c := start(t, "--nodes=4", "--gpus=4x80G", "--cpus=16", "--set", "retry_backoff=50ms", "--set", "grace=20s")
	c.partitions(`name = "main"`, "name = \"gpu\"\nnodes = [\"n1\", \"n2\"]", "name = \"long\"\nnodes = [\"n2\", \"n3\", \"n4\"]", "name = \"short\"\nnodes = [\"n1\"]")
	names := c.slurmNames()
	c.copyTo(names, "stand-ins")
	// All are queued before the first is looked at: two of them wait for their notice.
	var queued []shaped
	for i := range shapes {
		own := *c
		own.tmp = t.TempDir()
		queued = append(queued, shaped{&own, shapes[i].submit(&own)})
	}
	for i := range shapes {
		t.Run(shapes[i].name, func(t *testing.T) {
			s := &queued[i]
			s.t = t
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s\n%s", s.story(s.id), s.everyFile())
				}
			})
			shapes[i].hold(s)
		})
	}
}

// submit puts the files of a shape where its job is to run, and queues it.
func (s *shape) submit(c *cluster) int64 {
	dir, _, _ := strings.Cut(s.name, ":")
	c.copyTo(c.tmp, dir)
	if dir == "conda" {
		c.fakeConda()
	}
	out := c.tool("sbatch", append(append(append([]string{"--parsable"}, s.args...), "job.sh"), s.after...)...)
	id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		c.t.Fatalf("sbatch --parsable printed %q", out)
	}
	return id
}

// hold waits for the end and holds what came of it against what had to.
func (s *shape) hold(did *shaped) {
	switch {
	case s.array > 0:
		elements(did, s.array)
	case s.failed:
		did.wait(did.id, api.JobFailed)
	default:
		did.wait(did.id, api.JobCompleted)
	}
	s.check(did)
}

// partitions gives the cluster these, each the inside of its table.
func (c *cluster) partitions(tables ...string) {
	c.t.Helper()
	text := ""
	for _, p := range tables {
		text += "\n[[partition]]\n" + p + "\n"
	}
	c.configure(text)
	c.until("the nodes are in their partitions", func() bool {
		return !slices.ContainsFunc(c.nodes(), func(n api.Node) bool { return n.State != api.NodeUp || len(n.Partitions) < 2 })
	})
}

// copyTo copies the files of a shape.
func (c *cluster) copyTo(dir, from string) {
	c.t.Helper()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "shapes", from))); err != nil {
		c.t.Fatal(err)
	}
}

// fakeConda puts what the script sources where conda puts it, and an environment with a python.
func (c *cluster) fakeConda() {
	c.t.Helper()
	tool.Need(c.t, "python3")
	at := filepath.Join(c.tmp, "miniconda3", "etc", "profile.d")
	bin := filepath.Join(c.tmp, "miniconda3", "envs", "torch", "bin")
	for _, d := range []string{at, bin} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			c.t.Fatal(err)
		}
	}
	conda, err := os.ReadFile(filepath.Join("testdata", "shapes", "stand-ins", "conda.sh"))
	if err == nil {
		err = os.WriteFile(filepath.Join(at, "conda.sh"), conda, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\nexec python3 \"$@\"\n"), 0o700)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// everyFile is what lies in a shape's directory, for the log of a failure.
func (c *cluster) everyFile() string {
	var b strings.Builder
	filepath.WalkDir(c.tmp, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "== %s\n%s", strings.TrimPrefix(path, c.tmp+"/"), text)
		}
		return nil
	})
	return b.String()
}

// is holds a file against its whole text.
func (s *shaped) is(name, want string) {
	s.t.Helper()
	if got := s.file(name); got != want {
		s.t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// has wants all these lines in a file.
func (s *shaped) has(name string, want ...string) {
	s.t.Helper()
	have := strings.Split(s.file(name), "\n")
	for _, w := range want {
		if !slices.Contains(have, w) {
			s.t.Errorf("%s has no line %q:\n%s", name, w, s.file(name))
		}
	}
}

// count is how many files there are of a pattern.
func (s *shaped) count(pattern string, want int) []string {
	s.t.Helper()
	all, _ := filepath.Glob(filepath.Join(s.tmp, pattern))
	if len(all) != want {
		s.t.Errorf("%d files %s, want %d", len(all), pattern, want)
	}
	return all
}

// sum adds the numbers in files.
func (s *shaped) sum(paths []string) (sum int) {
	s.t.Helper()
	for _, p := range paths {
		b, err := os.ReadFile(p)
		n, bad := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || bad != nil {
			s.t.Errorf("%s: %v %v", filepath.Base(p), err, bad)
		}
		sum += n
	}
	return sum
}

// epochs says by sacct how each run of the job ended, for those who count restarts so.
func (s *shaped) epochs(want string) {
	s.t.Helper()
	if got := strings.ReplaceAll(s.tool("sacct", "-D", "-X", "-n", "-P", "-o", "State,ExitCode", "-j", fmt.Sprint(s.id)), "\n", " "); strings.TrimSpace(got) != want {
		s.t.Errorf("sacct -D: %q, want %q", got, want)
	}
}
