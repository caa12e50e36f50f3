// Package pkg holds the one test about all packages: who may import whom.
package pkg

import (
	"bytes"
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

// The folder below pkg is the side that a package stands on. A side may import those that it
// names here: so no import runs up, and the node, the controller and the clients know each other
// by the wire alone.
var sides = map[string]string{
	"api":        "api",
	"core":       "api core",
	"wire":       "api core wire",
	"controller": "api core wire controller",
	"node":       "api core wire node",
	"client":     "api core wire client",
	"slurm":      "api core wire client slurm",
	"dev":        "api core wire controller node client",
	"lab":        "api core wire controller node client slurm dev lab",
}

// exceptions are imports that the sides forbid, each with its reason.
var exceptions = map[string]string{
	"client/gcron -> slurm":                        "a crontab's lines are read as scrontab reads them",
	"client/gcron -> slurm/sbatch":                 "a crontab's entries are submitted with sbatch's options",
	"client/grun -> slurm":                         "grun is srun too: the version that is spoken decides options and texts",
	"client/grun -> node/proc":                     "grun in a batch script tells its gshim that it only waits",
	"wire/hold -> node/proc":                       "so does the process that holds an allocation",
	"controller -> node/sitehook":                  "fence_hook, idle_hook and submit_rule run as a node's hooks do",
	"controller/store/pgserver/pgtest -> lab/tool": "a test says there which programs it needs",
	"controller/config -> node/gpu/simgpu":         "gnoded.toml describes simulated cards",
	"controller/config -> node/proc":               "gnoded.toml names kinds of containment",
}

// pure sides have no I/O, clock, goroutine or randomness: what stands there runs in gangd, in
// tests, in a simulator and in a replay alike, and a run could not be repeated otherwise.
var pure = []string{"core", "api"}

// impurePackages of the pure sides, each with its reason.
var impurePackages = map[string]string{
	"api/bound": "what it has learnt of a type is kept for the next value",
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
	return decoded(t, out)
}

func decoded(t *testing.T, out []byte) (all []listed) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestSides holds every package to its side.
func TestSides(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t, "gangd/pkg/...") {
		name := strings.TrimPrefix(p.ImportPath, "gangd/pkg/")
		here, _, _ := strings.Cut(name, "/")
		if p.ImportPath == "gangd/pkg" {
			continue
		}
		if sides[here] == "" {
			t.Errorf("pkg/%s stands on no side: below pkg are %s", name, strings.Join(slices.Sorted(maps.Keys(sides)), ", "))
			continue
		}
		isPure := slices.Contains(pure, here) && impurePackages[name] == ""
		used[name] = true
		for _, imp := range p.Imports {
			other, isOurs := strings.CutPrefix(imp, "gangd/pkg/")
			there, _, _ := strings.Cut(other, "/")
			arrow := name + " -> " + other
			switch {
			case strings.HasPrefix(imp, "gangd/") && !isOurs:
				t.Errorf("pkg/%s imports %s: packages know no program and no test", name, imp)
			case isOurs && exceptions[arrow] != "":
				used[arrow] = true
			case isOurs && !slices.Contains(strings.Fields(sides[here]), there):
				t.Errorf("pkg/%s imports pkg/%s: %s knows %s", name, other, here, sides[here])
			case isPure && slices.Contains(impure, imp):
				t.Errorf("pkg/%s imports %s: it must have no I/O, clock, goroutine or randomness", name, imp)
			case isPure && !isOurs && strings.Contains(imp, "."):
				t.Errorf("pkg/%s imports the module %s: pure packages use std alone", name, imp)
			}
		}
	}
	for _, listed := range append(slices.Sorted(maps.Keys(exceptions)), slices.Sorted(maps.Keys(impurePackages))...) {
		if !used[listed] {
			t.Errorf("%s is an exception that nothing needs: remove it", listed)
		}
	}
	if len(exceptions) > 10 {
		t.Errorf("%d exceptions: ten at most, or a package stands on the wrong side", len(exceptions))
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

// folder is the folder of a side, that of a command, or that of the module.
func folder(importPath string) string {
	parts := strings.Split(strings.TrimPrefix(importPath, "gangd/"), "/")
	switch {
	case parts[0] == "pkg" && len(parts) > 2:
		return strings.Join(parts[1:3], "/")
	case len(parts) > 1:
		return parts[1]
	}
	return parts[0]
}

// drawing are the commands that draw their tables by tablewriter.
var drawing = []string{"ginfo", "gctl", "gacct", "greport"}

// tablewriter takes a millisecond to load: what people look at pays for it, what scripts call in loops does not.
func TestWhoCarriesTablewriter(t *testing.T) {
	for _, p := range list(t, "gangd/cmd/...") {
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/olekukonko/") && !slices.Contains(drawing, path.Base(p.ImportPath)) {
				t.Errorf("%s carries %s", p.ImportPath, dep)
			}
		}
	}
}

// html/template is linked with what writes pages, for greport alone.
func TestWhoCarriesTemplates(t *testing.T) {
	for _, name := range clients {
		for _, p := range list(t, "gangd/cmd/"+name) {
			if slices.Contains(p.Deps, "html/template") && name != "greport" {
				t.Errorf("%s carries html/template: its start-up pays for it", name)
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

// lookUps are the modules that bring os/user, each with the program that may carry it so, and why.
var lookUps = map[string]string{
	"gangd github.com/jackc/pgx/v5/pgconn": "it looks for the files of whoever runs gangd; built without cgo, so that no directory is asked",
}

// People are looked up by pkg/wire/people, in a child that has a deadline: os/user knows those of a directory by cgo alone, where the
// look-up lasts as long as the directory wants, and without cgo it knows nobody there.
func TestWhoLooksPeopleUp(t *testing.T) {
	needs := map[string][]string{}
	for _, p := range list(t, "gangd/cmd/...") {
		for _, dep := range p.Deps {
			needs[dep] = append(needs[dep], path.Base(p.ImportPath))
		}
		needs[p.ImportPath] = append(needs[p.ImportPath], path.Base(p.ImportPath))
	}
	used := map[string]bool{}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "gangd/cmd/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range decoded(t, out) {
		if !slices.Contains(p.Imports, "os/user") {
			continue
		}
		for _, program := range needs[p.ImportPath] {
			if why := program + " " + p.ImportPath; lookUps[why] == "" {
				t.Errorf("%s carries os/user, by %s: look people up by pkg/wire/people", program, p.ImportPath)
			} else {
				used[why] = true
			}
		}
	}
	for why := range lookUps {
		if !used[why] {
			t.Errorf("%s is listed, and does not need os/user any more", why)
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
