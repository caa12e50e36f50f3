package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/lab/sitetest"
)

// BenchmarkQueue10k is the whole of "gqueue" over 10,000 jobs but the start of the
// process: the call, decoding, sorting and printing. What the controller does for it is in it.
func BenchmarkQueue10k(b *testing.B) {
	s := sitetest.Empty(b)
	for i := range 10_000 {
		spec := sitetest.SmallSpec(fmt.Sprintf("train-%d", i), 4)
		*spec.Priority = int64(i % 7)
		s.Submit(sitetest.Ada, spec, nil)
	}
	s.Found()
	for b.Loop() {
		if code := program.Run(NewGqueue(), nil, io.Discard, io.Discard); code != 0 {
			b.Fatal(code)
		}
	}
}

// BenchmarkTable10k is the printing alone.
func BenchmarkTable10k(b *testing.B) {
	jobs := make([]api.Job, 10_000)
	for i := range jobs {
		jobs[i] = small(b).train.Job
		jobs[i].JobID = int64(i + 1)
	}
	g := &gqueue{}
	if err := g.settle(NewGqueue()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := g.write(&screen{w: io.Discard}, jobs); err != nil {
			b.Fatal(err)
		}
	}
}

// heavy are packages whose initialisation or size a client must not pay for.
var heavy = []string{"spf13/viper", "database/sql", "modernc.org/", "prometheus/", "go-nvml", "coder/websocket", "text/template",
	"gangd/pkg/controller/engine", "gangd/pkg/controller/store", "gangd/pkg/node/noded", "gangd/pkg/node/shim", "gangd/pkg/controller/config"}

// TestClientsStayLight reads the import graph of every command of a person: its start-up
// is its speed (budget 5 ms).
func TestClientsStayLight(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go list")
	}
	args := []string{"list", "-deps"}
	for _, cmd := range programs() {
		args = append(args, "gangd/cmd/"+cmd.Name())
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		for _, h := range heavy {
			if strings.Contains(dep, h) && !knownHeavy(dep) {
				t.Errorf("a client imports %s: the commands must start in 5 ms; find who by go mod why %s", dep, dep)
			}
		}
	}
}

// knownHeavy is what the two libraries that the commands need bring along: cobra imports
// text/template for templates that no command sets; tablewriter imports database/sql, of
// the standard library and without any driver, to print its null values. With both,
// gqueue --version takes 2.5 ms as a process (BenchmarkVersion).
func knownHeavy(dep string) bool {
	switch dep {
	case "text/template", "text/template/parse", "database/sql", "database/sql/driver":
		return true
	}
	return false
}

// BenchmarkVersion is the start-up of a command, as a process: gqueue --version.
func BenchmarkVersion(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "gqueue")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "gangd/cmd/gqueue")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for b.Loop() {
		if err := exec.Command(bin, "--version").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
