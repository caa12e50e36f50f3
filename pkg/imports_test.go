// Package pkg holds the one test about all packages: who may import whom.
package pkg

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// A package stands on a floor and on a side. It may import what is on a lower floor, of its own
// side or shared: so no arrow runs up, none in a circle, and the node, the controller and the
// clients know each other by the wire alone. Every package has its place here.
type floor struct {
	// pure floors have no I/O, clock, goroutine or randomness: what stands there runs in gangd, in
	// tests, in a simulator and in a replay alike, and a run could not be repeated otherwise.
	pure  bool
	rooms map[side]string
}

type side string

const (
	shared     side = "shared"
	controller side = "controller"
	node       side = "node"
	client     side = "client"
	whole      side = "whole" // brings up all the others, and knows them
	lab        side = "lab"   // only proves or plays: the same, and nothing but gangsim carries it
)

// house is all packages, from the ground up.
var house = []floor{
	{true, map[side]string{
		shared: "api nearest checksum cpus cmdline/when cron table/column table/accttable",
	}},
	{true, map[side]string{
		shared: "container",
	}},
	{true, map[side]string{
		shared: "cmdline hostlist outpath cluster watchdog table/tres",
		node:   "supervise",
	}},
	{true, map[side]string{
		shared:     "script rankenv measure",
		controller: "sched",
	}},
	{true, map[side]string{
		controller: "gang",
		client:     "slurm/conf",
	}},
	{false, map[side]string{
		shared: "bound proc dirlock trusted lifesign jobapi table/jobfield plot",
		node:   "gpu",
		client: "slurm/document statusline table/drawn",
	}},
	{false, map[side]string{
		shared:     "table/used auth session sitehook step/pmi step/wire",
		controller: "config metrics notify store store/internal/row store/pgserver",
		client:     "client",
	}},
	{false, map[side]string{
		shared:     "jobapi/jobhttp step/hold",
		controller: "engine leader web store/internal/sqlstore store/pgserver/pgtest",
		node:       "relay shim gpu/gputest gpu/simgpu gpu/nvmlgpu",
		client:     "program slurm step/client",
	}},
	{false, map[side]string{
		controller: "rpc store/sqlitestore store/storetest",
		node:       "noded step/launcher adopt",
		client:     "jobs submit slurm/links grun",
	}},
	{false, map[side]string{controller: "store/pgstore"}},
	{false, map[side]string{
		controller: "controller",
		client:     "cli slurm/sbatch slurm/squeue slurm/sinfo slurm/sacct slurm/sacctmgr slurm/sdiag slurm/sreport",
	}},
	{false, map[side]string{
		client: "slurm/scancel slurm/scontrol gcron",
		whole:  "dev",
		lab:    "lab/disk lab/extremes lab/mutate lab/registry lab/trace lab/transcript lab/sim",
	}},
	{false, map[side]string{lab: "lab/mutants lab/replay lab/sitetest"}},
	{false, map[side]string{lab: "lab/replay/reference lab/clitest lab/slurmtest"}},
	{false, map[side]string{lab: "lab/gangsim"}},
}

type place struct {
	floor int
	side  side
	pure  bool
}

func places(t *testing.T) map[string]place {
	t.Helper()
	at := map[string]place{}
	for i, f := range house {
		for s, rooms := range f.rooms {
			for _, name := range strings.Fields(rooms) {
				if _, twice := at[name]; twice {
					t.Errorf("pkg/%s stands in the house twice", name)
				}
				at[name] = place{i, s, f.pure}
			}
		}
	}
	return at
}

// impure is std that a pure package must not know.
var impure = []string{"os", "net", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "sync", "sync/atomic", "context", "io/fs", "syscall", "unsafe"}

// daemons' modules that no client may carry: its start-up time is its speed.
var heavy = []string{"github.com/spf13/viper", "modernc.org/sqlite", "github.com/jackc/pgx/v5", "github.com/prometheus/client_golang/prometheus",
	"github.com/NVIDIA/go-nvml/pkg/nvml", "github.com/coder/websocket"}

var clients = []string{"gsubmit", "gqueue", "gcancel", "ginfo", "gctl", "glog", "gacct", "gckpt", "gbarrier", "grun", "gattach", "gstep", "gcp", "gcron", "greport", "gtop"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T, pattern string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", pattern)
	cmd.Stderr = os.Stderr // a circle of packages is said there
	out, err := cmd.Output()
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

// TestHouse holds every package to its place.
func TestHouse(t *testing.T) {
	at := places(t)
	seen := map[string]bool{}
	for _, p := range list(t, "gangd/pkg/...") {
		name := strings.TrimPrefix(p.ImportPath, "gangd/pkg/")
		here, ok := at[name]
		if seen[name] = true; !ok {
			if p.ImportPath != "gangd/pkg" {
				t.Errorf("pkg/%s has no place: put it on a floor and a side of the house in pkg/imports_test.go", name)
			}
			continue
		}
		for _, imp := range p.Imports {
			other, isOurs := strings.CutPrefix(imp, "gangd/pkg/")
			there := at[other]
			switch {
			case strings.HasPrefix(imp, "gangd/") && !isOurs:
				t.Errorf("pkg/%s imports %s: packages know no program and no test", name, imp)
			case isOurs && there.floor >= here.floor:
				t.Errorf("pkg/%s (floor %d) imports pkg/%s (floor %d): imports point down", name, here.floor, other, there.floor)
			case isOurs && !knows(here.side, there.side):
				t.Errorf("pkg/%s (%s) imports pkg/%s (%s): one side knows its own and what is shared", name, here.side, other, there.side)
			case here.pure && slices.Contains(impure, imp):
				t.Errorf("pkg/%s imports %s: it must have no I/O, clock, goroutine or randomness", name, imp)
			case here.pure && !isOurs && strings.Contains(imp, "."):
				t.Errorf("pkg/%s imports the module %s: pure packages use std alone", name, imp)
			}
		}
	}
	for name := range at {
		if !seen[name] {
			t.Errorf("the house in pkg/imports_test.go has a place for pkg/%s, which does not exist", name)
		}
	}
}

func knows(here, there side) bool {
	switch here {
	case lab:
		return true
	case whole:
		return there != lab
	default:
		return there == here || there == shared
	}
}

// Folders are what people see first: taken as one, each is above or below the others. A folder
// whose packages stand on both ends of another could not be read, or taken out, by itself.
func TestFoldersMakeNoCircle(t *testing.T) {
	to := map[string][]string{}
	for _, p := range list(t, "gangd/...") {
		for _, imp := range p.Imports {
			if a, b := folder(p.ImportPath), folder(imp); strings.HasPrefix(imp, "gangd/") && a != b && !slices.Contains(to[a], b) {
				to[a] = append(to[a], b)
			}
		}
	}
	done := map[string]bool{}
	var visit func(f string, path []string)
	visit = func(f string, path []string) {
		if i := slices.Index(path, f); i >= 0 {
			t.Errorf("a circle of folders: %s", strings.Join(append(path[i:], f), " -> "))
			return
		}
		if done[f] {
			return
		}
		for _, next := range to[f] {
			visit(next, append(slices.Clone(path), f))
		}
		done[f] = true
	}
	for _, f := range slices.Sorted(maps.Keys(to)) {
		visit(f, nil)
	}
}

// folder is the first folder below pkg or cmd, or that of the module.
func folder(importPath string) string {
	parts := strings.Split(strings.TrimPrefix(importPath, "gangd/"), "/")
	if (parts[0] == "pkg" || parts[0] == "cmd") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// tablewriter takes a millisecond to load: only what draws for people pays for it.
func TestOnlyGtableCarriesTablewriter(t *testing.T) {
	for _, p := range list(t, "gangd/cmd/...") {
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/olekukonko/") && p.ImportPath != "gangd/cmd/gtable" {
				t.Errorf("%s carries %s", p.ImportPath, dep)
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

// What only proves or plays is carried by gangsim alone.
func TestLabStaysInTheLab(t *testing.T) {
	for _, p := range list(t, "gangd/cmd/...") {
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "gangd/pkg/lab/") && p.ImportPath != "gangd/cmd/gangsim" {
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
