// Command bench measures the whole system as a person meets it: gangd with four node
// daemons and, where Debian's slurmctld, slurmd and munge are installed, a real Slurm with
// four slurmd on the same machine, each case on one after the other in the same run. It prints a row a
// figure: name, gangd, and for each other system its figure and the ratio (how many times better gangd is; below 1 it is
// worse); then the floor, which is what the machine takes for what the row can't do without, and how many times that gangd takes.
//
//	make bench                          all cases
//	go run ./bench -cases submit,jobs   some of them
//	go run ./bench -beside postgres     gangd on SQLite beside gangd on PostgreSQL
//	go run ./bench -beside prolog       beside gangd with a prolog of 10 ms
//	go run ./bench -beside DIR          beside the programs of another build
//	go run ./bench -beside slurm,DIR -turns 3 -cases next,start
//
// Times of one machine say little; ratios of one run say more. Medians are printed, with
// p99 where a case names it. With -turns each case is measured so often on each system, in an order that alternates, and
// medians of these are printed, of ratios too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gangd/e2e/slurmlab"
)

// system is one batch system under measurement.
type system interface {
	name() string
	start(ctx context.Context) error
	stop()
	// submit gives the command line that queues a script with options.
	submit(o job) []string
	// queue gives the command line that prints one line for each job that has not ended.
	queue() []string
	env() []string
}

// prolog is what a site's does that looks at something for 10 ms.
const prolog = "#!/bin/sh\nexec sleep 0.01\n"

// job is what a case submits, in both systems' common words.
type job struct {
	script string // path
	ranks  int    // one on each node
	array  int    // elements, 0: no array
}

func main() {
	names := flag.String("cases", "", "comma list of cases, default all")
	runs := flag.Int("n", 40, "repetitions of the latency cases")
	jobs := flag.Int("jobs", 500, "jobs of the throughput case")
	only := flag.String("only", "", "measure one system only, by its name")
	beside := flag.String("beside", "slurm", "what gangd is measured beside, a comma list: slurm, postgres (gangd with its state there), "+
		"prolog (gangd with one of 10 ms), or a directory of other programs of gangd")
	elements := flag.Int("array", 10000, "elements of the long array")
	waiting := flag.Int("waiting", 100000, "jobs that wait in the busy case")
	turns := flag.Int("turns", 1, "how often each case is measured on each system, in turns")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	size := meter{ctx: ctx, runs: *runs, jobs: *jobs, elements: *elements, waiting: *waiting}
	if err := run(ctx, *names, *only, *beside, *turns, size); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures on each system as size says.
func run(ctx context.Context, names, only, beside string, turns int, size meter) error {
	dir, err := os.MkdirTemp("", "gb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // as root a database is run by another user
		return err
	}
	systems, err := systemsOf(dir, beside)
	if err != nil {
		return err
	}
	if only != "" {
		systems = slices.DeleteFunc(systems, func(s system) bool { return s.name() != only })
	}
	before, err := measureFloor(dir)
	if err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	fmt.Println(before)
	meters := map[string]*meter{}
	for _, s := range systems {
		err := s.start(ctx)
		defer s.stop()
		if err != nil {
			return fmt.Errorf("start %s: %w", s.name(), err)
		}
		m := new(meter)
		*m = size
		m.sys = s
		meters[s.name()] = m
	}
	t := &table{rows: map[string]*row{}}
	for turn := range turns {
		for _, c := range cases {
			if names != "" && !slices.Contains(strings.Split(names, ","), c.name) {
				continue
			}
			for i := range systems {
				s := systems[i]
				if turn%2 == 1 {
					s = systems[len(systems)-1-i]
				}
				m := meters[s.name()]
				m.dir = filepath.Join(dir, fmt.Sprintf("w-%s-%s-%d", s.name(), c.name, turn)) // an earlier turn's witnesses aren't read again
				if err := os.MkdirAll(m.dir, 0o755); err != nil {
					return err
				}
				figures, err := c.measure(m)
				if err != nil {
					return fmt.Errorf("%s on %s: %w", c.name, s.name(), err)
				}
				t.add(s.name(), figures)
			}
		}
	}
	after, err := measureFloor(dir)
	if err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	fmt.Println(after)
	t.print(os.Stdout, systems, before.and(after))
	return ctx.Err()
}

// systemsOf is gangd, and what it is measured beside.
func systemsOf(dir, beside string) ([]system, error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return nil, err
	}
	systems := []system{&gangdSystem{title: "gangd", bin: bin, dir: filepath.Join(dir, "g")}}
	for i, other := range strings.Split(beside, ",") {
		own := filepath.Join(dir, fmt.Sprintf("o%d", i))
		switch other {
		case "":
		case "slurm":
			if why := slurmlab.Missing(); why != "" {
				fmt.Println("slurm is not measured:", why)
				continue
			}
			systems = append(systems, &slurmSystem{dir: own})
		case "postgres":
			systems = append(systems, &gangdSystem{title: other, bin: bin, dir: own, args: []string{"--postgres"}})
		case "prolog":
			path := filepath.Join(dir, other)
			if err := os.WriteFile(path, []byte(prolog), 0o755); err != nil {
				return nil, err
			}
			systems = append(systems, &gangdSystem{title: other, bin: bin, dir: own, args: []string{"--set=prolog=" + path}})
		default:
			path, err := filepath.Abs(other)
			if err != nil {
				return nil, err
			}
			systems = append(systems, &gangdSystem{title: fmt.Sprintf("other%d", i), bin: path, dir: own})
		}
	}
	return systems, nil
}
