package sacct

import (
	"strings"
	"testing"

	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

func TestUsed(t *testing.T) {
	slurmtest.Files(t, "testdata/used/*.txt", *update, history(), map[string]slurm.Runner{"seff": Seff, "reportseff": Reportseff, "sstat": Sstat})
}

func TestSeffLists(t *testing.T) {
	slurmtest.Texts(t, seffCommand.Lists())
	slurmtest.Texts(t, reportseffCommand.Lists())
}

// A size is in the largest unit of which there is one, and a time has days only when there is one.
func TestSeffUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0.00 MB", 512: "0.50 KB", 1 << 20: "1.00 MB", 5 << 29: "2.50 GB", 3 << 50: "3.00 PB", 1 << 62: "4096.00 PB"} {
		if got := kilobytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := clockOf(59.6) + " " + clockOf(90061); got != "00:01:00 1-01:01:01" {
		t.Error(got)
	}
}

// A job is found by the names of files of its output.
func TestSeffFiles(t *testing.T) {
	for name, want := range map[string]string{"12": "12", "12_3": "12_3", "slurm-12.out": "12", "/tmp/a1/slurm-12_3.out": "12_3", "train_7": "7", "x.out": ""} {
		got := ""
		if m := ofAFile.FindStringSubmatch(name[strings.LastIndex(name, "/")+1:]); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
