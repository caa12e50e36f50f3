package slurm_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm/sbatch"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

// TestLists: every option that the manual pages of the Slurms have that are spoken is in a list, with its letter,
// and no list has another. Whether it takes a value is not compared: squeue's --jobs and
// --steps take one in another way than their page says.
func TestLists(t *testing.T) {
	b, err := os.ReadFile("testdata/options-22.05.txt")
	if err != nil {
		t.Fatal(err)
	}
	later, err := os.ReadFile("testdata/options-23.11.txt")
	if err != nil {
		t.Fatal(err)
	}
	latest, err := os.ReadFile("testdata/options-24.11.txt")
	if err != nil {
		t.Fatal(err)
	}
	b = append(append(b, later...), latest...)
	for _, l := range []cmdline.Lists{squeue.Lists(), sinfo.Lists(), scancel.Lists(), sbatch.Lists()} {
		slurmtest.Texts(t, l)
		var want, got []string
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == l.Name {
				name := strings.TrimRight(strings.TrimPrefix(f[len(f)-1], "--"), "[=")
				if len(f) == 3 {
					name = f[1] + " " + name
				}
				want = append(want, name)
			}
		}
		for _, o := range l.Options {
			name := o.Name
			if o.Short != 0 {
				name = "-" + string(o.Short) + " " + name
			}
			got = append(got, name)
		}
		slices.Sort(want)
		slices.Sort(got)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %s is in no list", l.Name, w)
			}
		}
		for _, g := range got {
			if !slices.Contains(want, g) {
				t.Errorf("%s: %s is in a list and no option of Slurm's", l.Name, g)
			}
		}
	}
}
