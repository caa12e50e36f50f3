package sdiag

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/grun"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	clock = func() time.Time { return sitetest.Now }
	time.Local = time.UTC
	api.Version = "1.2.3"
	os.Exit(m.Run())
}

func TestFiles(t *testing.T) {
	slurmtest.Files(t, "testdata/*.txt", *update, nil, map[string]slurm.Runner{"sdiag": Run, "strigger": Strigger, "sbcast": grun.Sbcast})
}

// --json has the members that the tables of Slurm's data parsers have.
func TestDocuments(t *testing.T) {
	for version, schema := range map[string]string{"23.11": "v0.0.40", "24.11": "v0.0.42"} {
		t.Setenv("GANG_SLURM_VERSION", version)
		sitetest.Small(t).Found()
		var out, errs bytes.Buffer
		if code := Run([]string{"--json"}, cmdline.Streams{Out: &out, Err: &errs}); code != 0 {
			t.Fatalf("status %d: %s", code, errs.String())
		}
		slurmtest.Shape(t, "../testdata/sdiag-"+schema+".schema", out.Bytes())
	}
}

// Times of plans are in microseconds.
func TestCycles(t *testing.T) {
	var out strings.Builder
	(&seen{Figures: api.Figures{Plans: 120, LastPlan: 1500 * time.Microsecond, LongestPlan: 9 * time.Millisecond, AllPlans: 240 * time.Millisecond}}).text(&out)
	if want := "\tLast cycle:   1500\n\tMax cycle:    9000\n\tTotal cycles: 120\n\tMean cycle:   2000\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%s\nlacks %s", out.String(), want)
	}
}

func TestManual(t *testing.T) {
	for _, l := range []cmdline.Lists{command.Lists(), striggerCommand.Lists(), grun.SbcastLists(), grun.AttachLists()} {
		slurmtest.Texts(t, l)
	}
	slurmtest.Manual(t, "../../../man/gangd-scontrol.7", command.Lists(), grun.SbcastLists(), grun.AttachLists())
}
