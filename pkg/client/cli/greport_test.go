package cli

import (
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/plot/html"
	"gangd/pkg/core/table/used"
	"gangd/pkg/lab/sitetest"
)

func ledgerOf(t *testing.T) *sitetest.Site {
	return sitetest.Empty(t, &gang.Changes{Ledger: ledgerRows()})
}

func ledgerRows() []api.LedgerRow {
	const hour = int64(3600_000)
	row := func(day, user string, cause api.Cause, f api.LedgerFigures) api.LedgerRow {
		return api.LedgerRow{LedgerKey: api.LedgerKey{Day: day, User: user, Partition: "gpu", CardType: "H200", Cause: cause}, LedgerFigures: f}
	}
	return []api.LedgerRow{
		row("2026-02-27", "ada", api.CauseCompleted, api.LedgerFigures{Attempts: 3, Starts: 3, WaitMS: 90_000, CardMS: 10 * hour, CPUMS: 40 * hour, SeenCardMS: 8 * hour, BusyCardMS: 6 * hour, IdleCardMS: hour, StartCardMS: hour / 5, SeenCPUMS: 40 * hour, UsedCPUMS: 10 * hour, Joules: 7_200_000}),
		row("2026-02-28", "ada", api.CauseNodeLost, api.LedgerFigures{Attempts: 1, Starts: 1, CardMS: 2 * hour, LostCardMS: hour}),
		row("2026-02-28", "bob</script>", "", api.LedgerFigures{CardMS: hour / 2}),
	}
}

func TestGreport(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"usage --format=csv", "USER,GPU-HOURS,CPU-HOURS,GPU%,CPU%,KWH,ATTEMPTS\nada,12,40,75,25,2,4\nbob</script>,0.5,0,,,,0\n"},
		{"waste --format=csv", "CAUSE,GPU-HOURS,LOST,LOST%,IDLE,IDLE%,START,START%,CPU-HOURS,LOST-CPU\nrunning,0.5,0,0,0,,0,,0,0\ncompleted,10,0,0,1,12.5,0.2,2.5,40,0\nnode-lost,2,1,50,0,,0,,0,0\n"},
		{"wait --by=day --format=csv", "DAY,STARTS,MEAN-WAIT,ALL-WAIT\n2026-02-27,3,30,90\n2026-02-28,1,0,0\n"},
		{"health --format=csv", "PARTITION,ATTEMPTS,COMPLETED,PROGRAM,HARDWARE,HARDWARE%\ngpu,4,3,0,1,25\n"},
	} {
		out, errs, code := run(t, ledgerOf(t), NewGreport(html.Write), strings.Fields(c.args)...)
		if out != c.want || errs != "" || code != 0 {
			t.Errorf("%s: %d %s\n%s\nwant\n%s", c.args, code, errs, out, c.want)
		}
	}
	out, _, _ := run(t, ledgerOf(t), NewGreport(html.Write), "usage", "--by=user")
	if !strings.Contains(out, "75") || !strings.Contains(out, used.Unknown) {
		t.Error(out)
	}
	// A page fetches nothing, and no name ends its script. It has a column for each word of the key, the period, and the sums.
	out, _, _ = run(t, ledgerOf(t), NewGreport(html.Write), "usage", "--by=day,user", "--format=html", "--from=2026-02-01", "--to=2026-02-28")
	if strings.Count(out, "</script>") != 1 || strings.Contains(out, "src=") || strings.Contains(out, "<link") || strings.Count(out, `<div id="plot`) != 6 {
		t.Errorf("%.300s", out)
	}
	for _, want := range []string{"<h1>Usage by day and user</h1>", "2026-02-01 to 2026-02-28, 28 days", `<th scope="col">Day</th><th scope="col">User</th><th scope="col" class="r">Card hours</th>`,
		`<td class="word">2026-02-27</td><td class="word">ada</td><td class="r"><span class="bar"><i style="width:100%"></i></span>10.0</td>`,
		`<tfoot><tr><td class="word">All</td><td class="word"></td><td class="r">12.5</td><td class="r">40.0</td><td class="r">75</td>`, `"unit":"day"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
	// Without days there is nothing to draw a line of, and no script.
	if out, _, _ = run(t, ledgerOf(t), NewGreport(html.Write), "waste", "--format=html"); strings.Contains(out, "<script") || !strings.Contains(out, "<h1>Waste by cause</h1>") {
		t.Errorf("%.300s", out)
	}
	for _, bad := range []string{"", "usage waste", "power", "usage --from=yesterday", "usage --format=pdf", "usage --to=-3d"} {
		if _, errs, code := run(t, ledgerOf(t), NewGreport(html.Write), strings.Fields(bad)...); code != 2 || errs == "" {
			t.Errorf("%q: %d %s", bad, code, errs)
		}
	}
}

// What is asked is what the controller hears.
func TestGreportAsks(t *testing.T) {
	s := ledgerOf(t)
	run(t, s, NewGreport(html.Write), "health", "--by=user", "--from=2026-01-01", "--to=2026-01-31", "-u", "ada,bob", "-A", "x", "-p", "gpu")
	if want := "GET /v1/ledger?account=x&by=user&by=cause&from=2026-01-01&partition=gpu&to=2026-01-31&user=ada&user=bob"; !slices.Contains(s.Asked(), want) {
		t.Error(s.Asked())
	}
}
