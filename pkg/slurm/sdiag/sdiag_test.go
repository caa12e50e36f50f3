package sdiag

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/cmdline"
	"gangd/pkg/grun"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	clock = func() time.Time { return fake.Now }
	time.Local = time.UTC
	api.Version = "1.2.3"
	os.Exit(m.Run())
}

func TestFiles(t *testing.T) {
	slurmtest.Files(t, "testdata/*.txt", *update, fake.Small, map[string]slurm.Runner{"sdiag": Run, "strigger": Strigger, "sbcast": grun.Sbcast})
}

// --json has the members that the tables of Slurm's data parsers have.
func TestDocuments(t *testing.T) {
	for version, schema := range map[string]string{"23.11": "v0.0.40", "24.11": "v0.0.42"} {
		t.Setenv("GANG_SLURM_VERSION", version)
		clitest.Serve(t, fake.Small())
		var out, errs bytes.Buffer
		if code := Run([]string{"--json"}, cmdline.Streams{Out: &out, Err: &errs}); code != 0 {
			t.Fatalf("status %d: %s", code, errs.String())
		}
		slurmtest.Shape(t, "../testdata/sdiag-"+schema+".schema", out.Bytes())
	}
}

func TestManual(t *testing.T) {
	for _, l := range []cmdline.Lists{command.Lists(), striggerCommand.Lists(), grun.SbcastLists()} {
		slurmtest.Texts(t, l)
	}
	slurmtest.Manual(t, "../../../man/gangd-scontrol.7", command.Lists(), grun.SbcastLists())
}
