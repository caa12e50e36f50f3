// Mutants draws small changes of packages, one at a time, and runs the packages' own tests: a
// change that no test notices survives. See package mutate.
//
//	go run ./pkg/lab/mutants -seed 1 -mutants 600
//	go run ./pkg/lab/mutants -only gang,supervise    # of the same 600, those of two packages
//	go run ./pkg/lab/mutants -only auth -mutants 0   # all of one package
//
// Begin with main. It must not know how a mutant is made: package mutate does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gangd/pkg/lab/mutate"
)

// targets are the packages that mutants are drawn from.
var targets = []string{"core/gang", "core/sched", "core/sched/order", "core/sched/fit", "core/sched/given", "core/sched/kept",
	"core/supervise", "core/script", "controller/engine", "controller/store/internal/row", "controller/store/internal/sqlstore",
	"controller/store/sqlitestore", "node/shim", "wire/session", "wire/auth"}

// testsOf are the tests of a package: its own, but for what is only a part of another.
func testsOf(short string) mutate.Tests {
	switch short {
	case "node/shim":
		return mutate.Tests{Package: ours + short, Program: "gangd/cmd/gshim", Variable: "GANG_TEST_GSHIM"}
	case "controller/store/internal/sqlstore":
		return mutate.Tests{Package: ours + "controller/store/sqlitestore"}
	}
	return mutate.Tests{Package: ours + short}
}

const ours = "gangd/pkg/"

// alone are those whose tests start processes and look at what is left of them.
var alone = []string{"node/shim"}

func main() {
	seed := flag.Uint64("seed", 1, "what is drawn")
	n := flag.Int("mutants", 600, "how many are drawn; 0: all")
	only := flag.String("only", "", "of these, run those of some packages, with commas between")
	workers := flag.Int("workers", runtime.NumCPU(), "runs at a time")
	report := flag.String("report", "", "a document whose part about drawn mutants is written anew")
	results := flag.String("results", "bin/mutants.json", "file that keeps what became of the mutants of each package")
	flag.Parse()
	if err := play(*seed, *n, *only, *workers, *report, *results); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func play(seed uint64, n int, only string, workers int, report, results string) error {
	var paths []string
	for _, t := range targets {
		paths = append(paths, ours+t)
	}
	packages, err := mutate.Load(paths...)
	if err != nil {
		return err
	}
	slices.SortFunc(packages, func(a, b *mutate.Package) int { return strings.Compare(a.Path, b.Path) })
	all := 0
	for _, p := range packages {
		all += len(p.Mutants)
	}
	if n == 0 {
		n = all
	}
	drawn := mutate.Draw(packages, n, seed)
	book, err := mutate.OpenBook(results, seed, n)
	if err != nil {
		return err
	}
	book.Possible = all
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Tests may start processes of other users from here.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, p := range packages {
		short := strings.TrimPrefix(p.Path, ours)
		if only != "" && !slices.Contains(strings.Split(only, ","), path.Base(short)) {
			continue
		}
		w := workers
		if slices.Contains(alone, short) {
			w = 1
		}
		if err := one(p, drawn[p.Path], dir, w, book, short); err != nil {
			return err
		}
	}
	if err := book.Save(); err != nil {
		return err
	}
	fmt.Print(book.Table())
	if report != "" {
		return book.Report(report)
	}
	return nil
}

// one tries the mutants of a package.
func one(p *mutate.Package, mutants []*mutate.Mutant, dir string, workers int, book *mutate.Book, short string) error {
	began := time.Now()
	s, err := mutate.Build(p, testsOf(short), mutants, dir, workers)
	if err != nil {
		return err
	}
	if err := s.Learn(); err != nil {
		return err
	}
	for _, t := range s.Broken {
		fmt.Printf("%s: %s fails without any mutant and is left out\n", short, t)
	}
	fmt.Printf("%s: %d of %d mutants, tests known after %s\n", short, len(mutants), len(p.Mutants), time.Since(began).Round(time.Second))
	book.Begin(short, len(p.Mutants))
	s.Try(func(r mutate.Result) {
		equal := book.Add(short, r)
		if r.Fate == mutate.Survived || r.Fate == mutate.Unseen {
			note := ""
			if equal {
				note = " (equal)"
			}
			fmt.Printf("%s%s %s\n", r.Fate, note, r.Mutant)
		}
	})
	book.End(short, time.Since(began))
	return os.RemoveAll(filepath.Join(dir, strings.ReplaceAll(p.Path, "/", "_")))
}
