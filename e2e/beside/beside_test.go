package beside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gangd/e2e/slurmlab"
)

// TestBesideSlurm plays every third of the quick cases on both. GANG_COMPARE=all plays all, any
// other value is a regular expression of the cases to play. With GANG_COMPARE_ITSELF=1 it
// is Slurm beside another Slurm, which shows what differs between any two runs. What Slurm
// showed is written to the file GANG_COMPARE_SLURM.
func TestBesideSlurm(t *testing.T) {
	t.Run("not bound", func(t *testing.T) { besideSlurm(t, false) })
	t.Run("bound", func(t *testing.T) { besideSlurm(t, true) })
}

func besideSlurm(t *testing.T, bound bool) {
	if why := slurmlab.Missing(); why != "" {
		t.Skip(why)
	}
	all, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	cases := slices.DeleteFunc(chosen(t, all), func(k *kase) bool { return k.bound != bound })
	switch {
	case len(cases) == 0:
		t.Skip("no case of these is chosen")
	case bound && runtime.NumCPU() < boundCPUs:
		t.Skip("needs two CPUs")
	}
	dir, err := os.MkdirTemp("", "gc") // short: unix sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	slurm, gangd := startSlurm(t, filepath.Join(dir, "1"), bound), (*system)(nil)
	if os.Getenv("GANG_COMPARE_ITSELF") != "" {
		gangd = startSlurm(t, filepath.Join(dir, "2"), bound)
	} else {
		gangd = startGangd(t, dir, bound)
	}
	counts := map[verdict]int{}
	var report, shown strings.Builder
	for n, k := range cases {
		s, v, diff := k.play(t.Context(), slurm, gangd, n)
		if v == differs || v == needless {
			// Two clusters on a busy machine: what happened in another order once is told from what is different.
			t.Logf("%s (cases.txt:%d): once more, %s\n%s", k.name(), k.line, v, diff)
			s, v, diff = k.play(t.Context(), slurm, gangd, n+len(cases))
		}
		record(&shown, k, s)
		counts[v]++
		fmt.Fprintf(&report, "%-28s %s\n", v, k.name())
		if v == differs || v == needless {
			t.Errorf("%s (cases.txt:%d): %s\n%s", k.name(), k.line, v, diff)
		}
	}
	if path := os.Getenv("GANG_COMPARE_SLURM"); path != "" {
		if err := os.WriteFile(path, []byte(shown.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	fmt.Fprintf(&report, "%d cases: %d same, %d differ with a justification, %d without, %d justified needlessly\n",
		len(cases), counts[same], counts[justified], counts[differs], counts[needless])
	t.Log("\n" + report.String())
}

// play runs a case on both at once.
func (k *kase) play(ctx context.Context, slurm, gangd *system, n int) (*seen, verdict, string) {
	var s, g *seen
	var both sync.WaitGroup
	both.Go(func() { s = slurm.run(ctx, k, n) })
	both.Go(func() { g = gangd.run(ctx, k, n) })
	both.Wait()
	v, diff := k.judge(s, g)
	return s, v, diff
}

// record writes what a case showed, for who makes gangd show the same.
func record(w *strings.Builder, k *kase, s *seen) {
	plain := kase{norms: k.norms}
	fmt.Fprintf(w, "=== %s\n%s--- stdout\n%s--- stderr\n%s--- exit %s\n\n", k.name(), k.script, plain.equal(s.stdout, s), plain.equal(s.stderr, s), s.status())
}

// share is which part of the cases is played unasked: one in so many, about 100 s on two cores.
const share = 5

// chosen is the cases to play.
func chosen(t *testing.T, all []*kase) []*kase {
	t.Helper()
	which := os.Getenv("GANG_COMPARE")
	var re *regexp.Regexp
	if which != "" && which != "all" {
		var err error
		if re, err = regexp.Compile(which); err != nil {
			t.Fatal(err)
		}
	}
	accounts := slurmlab.MissingAccounting() == ""
	var out []*kase
	for n, k := range all {
		switch {
		case re != nil && !re.MatchString(k.name()):
		case which == "" && (k.slow || n%share != 0):
		case k.accounts && !accounts:
			t.Logf("left out: %s: %s", k.name(), slurmlab.MissingAccounting())
		default:
			out = append(out, k)
		}
	}
	return out
}

// TestTable holds what can be held without a Slurm.
func TestTable(t *testing.T) {
	all, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, k := range all {
		if names[k.name()] {
			t.Errorf("cases.txt:%d: %s is there twice", k.line, k.name())
		}
		names[k.name()] = true
		cmd := exec.Command("bash", "-n")
		cmd.Stdin = strings.NewReader(prelude + k.script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("cases.txt:%d: %s: %v\n%s", k.line, k.name(), err, out)
		}
	}
	if len(all) < 400 {
		t.Errorf("%d cases, want at least 400", len(all))
	}
}

const document = "../../docs/slurm-differences.md"

// TestDocument holds docs/slurm-differences.md against the table; GANG_UPDATE=1 writes it.
func TestDocument(t *testing.T) {
	all, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	suite, err := os.ReadFile("../../scripts/expect-suite.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := differences(all, suite)
	path := filepath.FromSlash(document)
	if os.Getenv("GANG_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the table says: run GANG_UPDATE=1 go test ./e2e/beside -run Document", document)
	}
}

const documentHead = `# Differences from Slurm

<!-- Made from e2e/beside/cases.txt by ` + "`GANG_UPDATE=1 go test ./e2e/beside -run Document`" + `; a test holds it current. -->

The same scripts run on gangd, under Slurm's names, and on Slurm 22.05 beside it (` + "`make compare`" + `). What is compared is standard output,
standard error, exit status, and what jobs wrote. %d of the %d cases have to be the same, character by character; the others differ only as said here.
Lines of sbatch that begin with "sbatch: gangd:" or "sbatch: warning:" are gangd's own, stand behind Slurm's and are left out of the comparison.
What the differences mean for people who move is in [from-slurm.md](from-slurm.md).

| area | cases | the same |
|---|---|---|
`

const suiteHead = `
## Slurm's own test suite

` + "`scripts/expect-suite`" + ` runs the tests of Slurm's Expect suite (22.05.8) that pass on Debian's Slurm, with gangd under Slurm's names. These do not pass.

| test | why |
|---|---|
`

const usersHead = `
These pass as root and not as an ordinary user (` + "`-u`" + `), who is no operator: they are about what operators do.

| test | why |
|---|---|
`

// differences is the document: of the cases, and of the tests of Slurm's suite.
func differences(all []*kase, suite []byte) string {
	var areas []string
	count, equal := map[string]int{}, map[string]int{}
	sames := 0
	for _, k := range all {
		if count[k.area]++; count[k.area] == 1 {
			areas = append(areas, k.area)
		}
		if len(k.reasons()) == 0 {
			equal[k.area]++
			sames++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, documentHead, sames, len(all))
	for _, a := range areas {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", a, count[a], equal[a])
	}
	for _, a := range areas {
		if count[a] == equal[a] {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| case | what differs, and why |\n|---|---|\n", a)
		for _, k := range all {
			if k.area == a && len(k.reasons()) > 0 {
				fmt.Fprintf(&b, "| %s | %s |\n", cell(k.title), cell(strings.Join(k.reasons(), "; ")))
			}
		}
	}
	b.WriteString(suiteHead)
	var ofUsers strings.Builder
	for _, line := range strings.Split(string(suite), "\n") {
		test, why, ok := strings.Cut(line, " ")
		if !ok || test == "#" {
			continue
		}
		if user, is := strings.CutPrefix(why, "user: "); is {
			fmt.Fprintf(&ofUsers, "| %s | %s |\n", test, cell(user))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", test, cell(why))
	}
	return b.String() + usersHead + ofUsers.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
