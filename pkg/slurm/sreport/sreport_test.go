package sreport

import (
	"flag"
	"os"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	clock = func() time.Time { return sitetest.Now }
	properName = func(login string) string { return "The " + login }
	time.Local = time.UTC
	api.Version = "1.2.3"
	os.Exit(m.Run())
}

// ledger is what was used the day before.
func ledger() []sitetest.Scene {
	row := func(account, user string, cpuHours, cardHours, joules int64) api.LedgerRow {
		return api.LedgerRow{LedgerKey: api.LedgerKey{Day: "2026-02-28", Account: account, User: user},
			LedgerFigures: api.LedgerFigures{CPUMS: cpuHours * 3600_000, CardMS: cardHours * 3600_000, Joules: joules}}
	}
	rows := &gang.Changes{Ledger: []api.LedgerRow{row("lab", "ada", 100, 20, 36e6), row("lab", "grace", 28, 4, 0), row("ops", "ada", 2, 0, 0)}}
	return []sitetest.Scene{sitetest.At("08:00:00", func(s *sitetest.Site) { s.Restart(12, rows) })}
}

func TestFiles(t *testing.T) {
	slurmtest.Files(t, "testdata/*.txt", *update, ledger(), map[string]slurm.Runner{"sreport": Run})
}

func TestLists(t *testing.T) {
	for _, l := range []cmdline.Lists{command.Lists(), Reports()} {
		slurmtest.Texts(t, l)
	}
}

func TestManual(t *testing.T) {
	slurmtest.Manual(t, "../../../man/gangd-sacct.7", command.Lists(), Reports())
}

// Every column that a default format names is one of its report.
func TestFormatsAreOfTheirReports(t *testing.T) {
	for i := range reports {
		for _, f := range []string{reports[i].format, reports[i].tresFormat} {
			if _, err := accttable.Parse(f, reports[i].columns); err != nil {
				t.Errorf("%s: %v", reports[i].name, err)
			}
		}
	}
}

// A window is brought to whole days of UTC, and does not reach into the future.
func TestWindow(t *testing.T) {
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		v, err := time.Parse("2006-01-02T15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ start, end, from, to string }{ // it is 2026-03-01 12:00
		{"", "", "2026-02-28T00:00", "2026-03-01T00:00"},
		{"2026-02-01T00:00", "", "2026-02-01T00:00", "2026-03-01T00:00"},
		{"2026-02-01T05:00", "2026-02-03T20:00", "2026-02-01T00:00", "2026-02-04T00:00"},
		{"2026-02-01T20:00", "2026-02-03T05:00", "2026-02-02T00:00", "2026-02-03T00:00"},
		{"2026-02-01T01:00", "2026-02-01T02:00", "2026-02-01T00:00", "2026-02-02T00:00"},
		{"2026-03-01T11:00", "2026-03-01T12:00", "2026-03-01T00:00", "2026-03-01T12:00"},
		{"2026-03-01T11:00", "", "2026-03-01T00:00", "2026-03-01T12:00"},
		{"2026-02-01T00:00", "2027-01-01T00:00", "2026-02-01T00:00", "2026-03-01T12:00"},
	} {
		a := &ask{start: at(c.start), end: at(c.end)}
		if err := a.window(); err != nil || !a.start.Equal(at(c.from)) || !a.end.Equal(at(c.to)) {
			t.Errorf("%s to %s: %v to %v, %v", c.start, c.end, a.start, a.end, err)
		}
	}
	if err := (&ask{start: sitetest.Now.Add(time.Hour)}).window(); err == nil {
		t.Error("a start that is yet to come")
	}
}
