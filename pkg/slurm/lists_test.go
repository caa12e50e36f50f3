package slurm_test

import (
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

// TestLists: every option that the manual pages of the Slurms have that are spoken is in a list,
// and no list has another. TestEveryOption tries their letters and values.
func TestLists(t *testing.T) {
	all := lines(t, "options-*.txt")
	hidden := lines(t, "options-unlisted.txt")
	for _, l := range []cmdline.Lists{squeue.Lists(), sinfo.Lists(), scancel.Lists(), sbatch.Lists()} {
		slurmtest.Texts(t, l)
		var want, got []string
		for _, f := range all {
			if f[0] == l.Name {
				want = append(want, strings.TrimRight(strings.TrimPrefix(f[len(f)-1], "--"), "[="))
			}
		}
		for _, o := range l.Options {
			got = append(got, o.Name)
		}
		slices.Sort(want)
		slices.Sort(got)
		for _, w := range want {
			if !slices.Contains(got, w) && !slices.ContainsFunc(hidden, func(f []string) bool {
				return f[0] == l.Name && strings.TrimRight(f[len(f)-1], "[=") == "--"+w
			}) {
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
