// Command bench measures the whole system as a person meets it: gangd with four node
// daemons and, where Debian's slurmctld, slurmd and munge are installed, a real Slurm with
// four slurmd on the same machine, one after the other in the same run. It prints a row a
// figure: name, gangd, slurm, ratio (how many times better gangd is; below 1 it is worse).
//
//	make bench                          all cases
//	go run ./bench -cases submit,jobs   some of them
//	go run ./bench -beside postgres     gangd on SQLite beside gangd on PostgreSQL
//	go run ./bench -beside prolog       beside gangd with a prolog of 10 ms
//	go run ./bench -beside DIR          beside the programs of another build
//
// Times of one machine say little; ratios of one run say more. Medians are printed, with
// p99 where a case names it.
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
	"text/tabwriter"

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
	beside := flag.String("beside", "slurm", "what gangd is measured beside: slurm, postgres (gangd with its state there), prolog (gangd with one of 10 ms), or a directory of other programs of gangd")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, *names, *only, *beside, *runs, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names, only, beside string, runs, jobs int) error {
	dir, err := os.MkdirTemp("", "gb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // as root a database is run by another user
		return err
	}
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	systems := []system{&gangdSystem{title: "gangd", bin: bin, dir: filepath.Join(dir, "g")}}
	switch beside {
	case "slurm":
		if why := slurmlab.Missing(); why == "" {
			systems = append(systems, &slurmSystem{dir: filepath.Join(dir, "s")})
		} else {
			fmt.Println("slurm is not measured:", why)
		}
	case "postgres":
		systems = append(systems, &gangdSystem{title: beside, bin: bin, dir: filepath.Join(dir, "p"), args: []string{"--postgres"}})
	case "prolog":
		path := filepath.Join(dir, beside)
		if err := os.WriteFile(path, []byte(prolog), 0o755); err != nil {
			return err
		}
		systems = append(systems, &gangdSystem{title: beside, bin: bin, dir: filepath.Join(dir, "p"), args: []string{"--set=prolog=" + path}})
	default:
		if beside, err = filepath.Abs(beside); err != nil {
			return err
		}
		systems = append(systems, &gangdSystem{title: "other", bin: beside, dir: filepath.Join(dir, "o")})
	}
	table := map[string]map[string]figure{}
	var order []string
	for _, s := range systems {
		if only != "" && s.name() != only {
			continue
		}
		if err := s.start(ctx); err != nil {
			s.stop()
			return fmt.Errorf("start %s: %w", s.name(), err)
		}
		m := &meter{ctx: ctx, sys: s, dir: filepath.Join(dir, "w-"+s.name()), runs: runs, jobs: jobs}
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		for _, c := range cases {
			if names != "" && !slices.Contains(strings.Split(names, ","), c.name) {
				continue
			}
			figures, err := c.measure(m)
			if err != nil {
				s.stop()
				return fmt.Errorf("%s on %s: %w", c.name, s.name(), err)
			}
			for _, f := range figures {
				if table[f.name] == nil {
					table[f.name] = map[string]figure{}
					order = append(order, f.name)
				}
				table[f.name][s.name()] = f
			}
		}
		s.stop()
	}
	print(order, table, systems[len(systems)-1].name())
	return ctx.Err()
}

// figure is one measured number; better says which way is up.
type figure struct {
	name   string
	value  float64
	unit   string
	higher bool // more is better
}

func print(order []string, table map[string]map[string]figure, beside string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "name\tgangd\t"+beside+"\tratio\t")
	for _, name := range order {
		g, haveG := table[name]["gangd"]
		s, haveS := table[name][beside]
		row := []string{name, "-", "-", "-"}
		if haveG {
			row[1] = fmt.Sprintf("%.1f %s", g.value, g.unit)
		}
		if haveS {
			row[2] = fmt.Sprintf("%.1f %s", s.value, s.unit)
		}
		if haveG && haveS && g.value > 0 && s.value > 0 {
			ratio := s.value / g.value
			if g.higher {
				ratio = 1 / ratio
			}
			row[3] = fmt.Sprintf("%.1fx", ratio)
		}
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	w.Flush()
}
