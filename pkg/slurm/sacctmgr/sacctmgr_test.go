package sacctmgr

import (
	"flag"
	"os"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/auth"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	clock = func() time.Time { return sitetest.Now }
	myself = func() string { return "ada" }
	knownUser = func(name string) bool { return name == "ada" || name == "eve" }
	api.Version = "1.2.3"
	os.Exit(m.Run())
}

// secondAccounts are a second one of each user.
func secondAccounts() []sitetest.Scene {
	job := func(who auth.Identity, account string) func(*sitetest.Site) {
		spec := sitetest.SmallSpec("held", 1)
		spec.Hold, spec.Account = true, account
		return func(s *sitetest.Site) { s.Submit(who, spec, nil) }
	}
	return []sitetest.Scene{sitetest.At("11:00:00", job(sitetest.Ada, "second")), sitetest.At("11:01:00", job(sitetest.Grace, "other"))}
}

func TestFiles(t *testing.T) {
	slurmtest.Files(t, "testdata/*.txt", *update, secondAccounts(), map[string]slurm.Runner{"sacctmgr": Run, "sshare": Sshare, "sprio": Sprio})
}

func TestLists(t *testing.T) {
	for _, l := range append([]cmdline.Lists{lists(), sshareCommand.Lists(), sprioCommand.Lists()}, keywords()...) {
		slurmtest.Texts(t, l)
	}
}

// Every column that a default format names is one of its table.
func TestFormatsAreOfTheirTables(t *testing.T) {
	for i := range tables {
		for _, format := range []string{tables[i].format, tables[i].withAssc} {
			if _, err := accttable.Parse(format, tables[i].columns); err != nil {
				t.Errorf("%s: %v", tables[i].name, err)
			}
		}
	}
}

func TestManual(t *testing.T) {
	slurmtest.Manual(t, "../../../man/gangd-sacct.7", append([]cmdline.Lists{lists(), sshareCommand.Lists(), sprioCommand.Lists()}, keywords()...)...)
}
