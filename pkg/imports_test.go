// Package pkg holds the one test about all packages: who may import whom.
package pkg

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pure packages and what each may import of ours. They are what runs in gangd, in tests,
// in a simulator and in a replay alike: with a clock, I/O or a goroutine in them a run
// could not be repeated.
var pure = map[string][]string{
	"api":             {},
	"hostlist":        {"api"},
	"nearest":         {},
	"cmdline/lists":   {},
	"cmdline/getopt":  {},
	"table/column":    {},
	"table/accttable": {},
	"cmdline/when":    {},
	"table/tres":      {"api"},
	"script":          {"api", "hostlist", "nearest", "cmdline/lists"},
	"cluster":         {"api"},
	"sched":           {"api", "cluster", "hostlist", "nearest"},
	"fault":           {},
	"gang":            {"api", "cluster", "fault", "hostlist", "nearest", "sched", "watchdog"},
	"supervise":       {"api", "fault"},
	"watchdog":        {"api"},
	"outpath":         {"api"},
	"rankenv":         {"api", "hostlist", "outpath"},
	"slurm/conf":      {"hostlist", "nearest", "script"},
}

// impure is std that a pure package must not know.
var impure = []string{"os", "net", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "sync", "sync/atomic", "context", "io/fs", "syscall", "unsafe"}

// daemons' modules that no client may carry: its start-up time is its speed.
var heavy = []string{"github.com/spf13/viper", "modernc.org/sqlite", "github.com/prometheus/client_golang/prometheus",
	"github.com/NVIDIA/go-nvml/pkg/nvml", "github.com/coder/websocket"}

var clients = []string{"gsubmit", "gqueue", "gcancel", "ginfo", "gctl", "glog", "gacct", "gckpt", "gbarrier", "grun", "gattach", "gstep"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T, pattern string) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", pattern).Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestPurePackages(t *testing.T) {
	for _, p := range list(t, "gangd/pkg/...") {
		allowed, isPure := pure[strings.TrimPrefix(p.ImportPath, "gangd/pkg/")]
		if !isPure {
			continue
		}
		for _, imp := range p.Imports {
			ours, isOurs := strings.CutPrefix(imp, "gangd/pkg/")
			switch {
			case isOurs && !slices.Contains(allowed, ours):
				t.Errorf("%s imports %s: a pure package may import only %v of ours", p.ImportPath, imp, allowed)
			case slices.Contains(impure, imp):
				t.Errorf("%s imports %s: it must have no I/O, clock, goroutine or randomness", p.ImportPath, imp)
			case !isOurs && strings.Contains(imp, "."):
				t.Errorf("%s imports the module %s: pure packages use std alone", p.ImportPath, imp)
			}
		}
	}
}

func TestClientsAreLight(t *testing.T) {
	for _, name := range clients {
		for _, p := range list(t, "gangd/cmd/"+name) {
			for _, dep := range p.Deps {
				if slices.Contains(heavy, dep) {
					t.Errorf("%s carries %s, which is for daemons: its start-up would pay for it", name, dep)
				}
			}
		}
	}
}

// The orders that know what no scheduler can know stay in the simulator, and what draws its
// plots is carried by nothing else.
func TestReferencesStayInTheSimulator(t *testing.T) {
	for _, p := range list(t, "gangd/cmd/...") {
		for _, dep := range p.Deps {
			if (strings.HasPrefix(dep, "gangd/pkg/lab/replay") || strings.HasPrefix(dep, "gonum.org/")) && p.ImportPath != "gangd/cmd/gangsim" {
				t.Errorf("%s carries %s", p.ImportPath, dep)
			}
		}
	}
}

// NVML is linked by gnoded alone: the driver's library must not decide whether anything
// else starts. gshim is small because one runs for every member.
func TestOnlyGnodedLinksNVML(t *testing.T) {
	for _, p := range list(t, "gangd/cmd/...") {
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/NVIDIA/") && p.ImportPath != "gangd/cmd/gnoded" {
				t.Errorf("%s links %s", p.ImportPath, dep)
			}
			if p.ImportPath == "gangd/cmd/gshim" && (dep == "net/http" || strings.Contains(dep, "spf13")) {
				t.Errorf("gshim carries %s", dep)
			}
		}
	}
}

// What exists is where people look for it first.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	b, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := strings.FieldsFunc(string(b), func(r rune) bool { return !unicode.IsLower(r) && !unicode.IsDigit(r) })
	for _, p := range list(t, "gangd/pkg/...") {
		if !slices.Contains(named, path.Base(p.ImportPath)) {
			t.Errorf("docs/architecture.md does not name %s", p.ImportPath)
		}
	}
}

// Effects point downwards: nothing below the daemons knows the daemons.
func TestImportsPointDown(t *testing.T) {
	below := map[string][]string{
		"store":      {"engine", "rpc", "session", "noded", "controller", "client", "cli"},
		"fence":      {"engine", "controller"},
		"hook":       {"engine", "controller", "fence"},
		"engine":     {"fence", "rpc", "noded", "controller", "client", "cli", "config"},
		"session":    {"engine", "rpc", "noded", "controller", "client", "cli", "store"},
		"shim":       {"engine", "rpc", "session", "noded", "controller", "client", "cli", "store", "config"},
		"proc":       {"shim", "noded", "supervise"},
		"noded":      {"engine", "rpc", "controller", "store", "cli", "gang", "sched"},
		"relay":      {"engine", "rpc", "session", "noded", "controller", "client", "cli", "store", "config", "gang"},
		"client":     {"engine", "rpc", "noded", "controller", "store", "config", "gang"},
		"gpu":        {"noded", "engine", "session"},
		"config":     {"engine", "noded", "controller", "store"},
		"lab/trace":  {"engine", "store", "gang", "sched", "cluster", "lab/replay", "lab/gangsim", "cli", "config"},
		"lab/replay": {"engine", "store", "session", "noded", "rpc", "controller", "client", "config", "lab/gangsim", "cli", "lab/replay/reference"},
		"step":       {"engine", "rpc", "session", "noded", "controller", "client", "cli", "store", "config", "gang"},
		"cli":        {"engine", "rpc", "noded", "controller", "store", "config", "gang"},
	}
	for _, p := range list(t, "gangd/pkg/...") {
		name := strings.TrimPrefix(p.ImportPath, "gangd/pkg/")
		for _, up := range below[name] {
			if slices.Contains(p.Imports, "gangd/pkg/"+up) {
				t.Errorf("pkg/%s imports pkg/%s, which is above it", name, up)
			}
		}
	}
}
