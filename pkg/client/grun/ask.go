package grun

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
)

// ask is what the options come to.
type ask struct {
	step     api.StepAsk
	job      string // --jobid
	tasksCmd bool   // -n was given on the command line
	nodesCmd bool   // -N was given on the command line
	cpusSet  bool

	name                  string
	chdir                 string
	export                string
	exportSet             bool
	output, errput, input string
	openMode              string
	label, unbuffered     bool
	killOnBad, firstCode  bool // see client.Options
	wait                  time.Duration
	multi, pty            bool
	quiet, verbose        int
	noProgress            bool
	immediate             time.Duration
	immediateSet          bool
	tasksPerGPU           int
	perTaskCards          bool // --gpu-bind leaves each task its own
	noBind                bool
	pmi                   bool
	box                   api.Container
	taskProlog            string
	taskEpilog            string
	bindCards             int
	bind                  cpus.Binding
	idle                  time.Duration
	testOnly              bool
	timeout               *time.Duration // nil: not given
	noShell               bool
	asUser, asGroup       string         // --uid, --gid
	killCommand           syscall.Signal // 0: not given
	extra                 []string       // NAME=value, for the tasks
	quit, sendInt         bool           // what the first Ctrl-C does
	help, usage, version  bool
	helpTopic             string

	groups []int // --het-group

	alloc []string // for the submission: --name=value
}

func number(into *int, v string, least int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < least {
		return fmt.Errorf("%q is not a number from %d", v, least)
	}
	*into = n
	return nil
}

// take fills the ask from what was given, command line over environment, later over earlier.
// By its own name a step is a gang: one task that fails ends it and gives it its exit code. As
// srun it keeps Slurm's rule, on which scripts of tasks that have nothing to do with each other rest.
//
// component is which of several it is for: inside a heterogeneous job variables say of each
// component what it has.
func take(name string, component int, cmd []given) (*ask, error) {
	a := &ask{killOnBad: name == "grun", firstCode: name == "grun"}
	var all []given
	for i := range options {
		o := &options[i]
		if slices.ContainsFunc(cmd, func(g given) bool { return g.o == o }) {
			continue
		}
		for _, name := range o.Env {
			if v, ok := lookup(name, component); ok && v != "" && !toldOnly(name, v) {
				all = append(all, given{o: o, value: v, env: name})
				break
			}
		}
	}
	for _, g := range append(all, cmd...) {
		if err := a.apply(g); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// toldOnly: a task has been told what it may use in the words in which its shell could ask for it. A
// step that it starts is not bound to that task's CPUs.
func toldOnly(name, value string) bool {
	return name == "SLURM_CPU_BIND" && strings.Contains(value, ","+cpus.ByMask+":") && os.Getenv("SLURM_STEP_ID") != ""
}

func (a *ask) apply(g given) error {
	where := "--" + g.o.Long
	if g.env != "" {
		where = g.env
	}
	if g.o.List == cmdline.Refused {
		if g.env != "" {
			return nil // of the job around: nobody asked for it here
		}
		text := where + ": " + g.o.Note
		if g.o.Use != "" {
			text += "; " + g.o.Use
		}
		return program.Usagef("%s", text)
	}
	if ofTheJob(g) {
		return nil
	}
	if g.o.Long == "nodefile" {
		hosts, err := script.NodesOf(g.value, func(file string) (string, error) {
			b, err := os.ReadFile(file)
			return string(b), err
		})
		if err != nil {
			return &badValue{option: g.o.Long, where: where, value: g.value, err: err}
		}
		g.value, g.o = hosts, &options[slices.IndexFunc(options, func(o Option) bool { return o.Long == "nodelist" })]
	}
	if g.o.Alloc && (g.env == "" || g.o.Group == groupBox || g.o.Group == groupAlloc || g.o.Long == "time") {
		word := "--" + g.o.Long
		if g.o.Kind != cmdline.None {
			word += "=" + g.value
		}
		a.alloc = append(a.alloc, word)
	}
	if g.o.Long == "nodes" {
		a.nodesCmd = a.nodesCmd || g.env == ""
	}
	if g.o.Long == "ntasks" {
		a.tasksCmd = a.tasksCmd || g.env == ""
	}
	if g.o.Set == nil {
		return nil
	}
	if err := g.o.Set(a, g.value); err != nil {
		return &badValue{option: g.o.Long, where: where, value: g.value, err: err}
	}
	return nil
}

// badValue is an option whose value means nothing.
type badValue struct {
	option, where, value string
	err                  error
}

func (e *badValue) Error() string { return e.where + ": " + e.err.Error() }
func (e *badValue) Unwrap() error { return e.err }

func setNodes(a *ask, v string) error {
	low, high, ranged := strings.Cut(v, "-")
	if err := number(&a.step.MinNodes, low, 1); err != nil {
		return err
	}
	a.step.MaxNodes = a.step.MinNodes
	if ranged {
		return number(&a.step.MaxNodes, high, a.step.MinNodes)
	}
	return nil
}

func setHosts(into *[]string) func(v string) error {
	return func(v string) (err error) {
		*into, err = hostlist.Expand(v)
		return err
	}
}

func setMemory(into *int64, v string) (err error) {
	*into, err = script.ParseSize(v)
	return err
}

// gpuCount reads [TYPE:]N or TYPE.
func gpuCount(v string) (int, error) {
	parts := strings.Split(v, ":")
	last := parts[len(parts)-1]
	n, err := strconv.Atoi(last)
	if err != nil {
		if len(parts) == 1 && last != "" && last[0] > '9' {
			return 1, nil
		}
		return 0, fmt.Errorf("%q: want [TYPE:]N", v)
	}
	if n < 0 {
		return 0, fmt.Errorf("%q: want [TYPE:]N", v)
	}
	return n, nil
}

func setGPUs(a *ask, into *int, v string) error {
	n, err := gpuCount(v)
	if err != nil {
		return err
	}
	a.step.GPUs, a.step.GPUsPerTask, a.step.GPUsPerNode, a.step.NoGPUs = 0, 0, 0, n == 0
	*into = n
	return nil
}

// setGres reads gpu, gpu:2, gpu:a100:2, none.
func setGres(a *ask, v string) error {
	if v == "none" || v == "" {
		a.step.GPUs, a.step.GPUsPerTask, a.step.GPUsPerNode, a.step.NoGPUs = 0, 0, 0, true
		return nil
	}
	total := 0
	for _, part := range strings.Split(v, ",") {
		name, rest, _ := strings.Cut(part, ":")
		if name != "gpu" && name != "gres/gpu" {
			return fmt.Errorf("%q: only gpu is a resource here", part)
		}
		n := 1
		if rest != "" {
			var err error
			if n, err = gpuCount(rest); err != nil {
				return err
			}
		}
		total += n
	}
	a.step.GPUs, a.step.GPUsPerTask, a.step.NoGPUs = 0, 0, total == 0
	a.step.GPUsPerNode = total
	return nil
}

func setDistribution(a *ask, v string) error {
	first, _, _ := strings.Cut(v, ",")
	first, _, _ = strings.Cut(first, ":")
	switch {
	case first == "*" || first == "block" || first == "cyclic" || strings.HasPrefix(first, "plane="):
	case first == "arbitrary":
		return fmt.Errorf("arbitrary: tasks can not be placed one by one here; use --nodelist and --distribution=cyclic or plane=N")
	default:
		return fmt.Errorf("%q: want block, cyclic or plane=N", v)
	}
	if first == "*" {
		first = ""
	}
	a.step.Distribution = first
	return nil
}

func setWait(a *ask, v string) error {
	var n int
	if err := number(&n, v, 0); err != nil {
		return err
	}
	a.wait = time.Duration(n) * time.Second
	return nil
}

func setKill(a *ask, v string) error {
	switch v {
	case "", "1":
		a.killOnBad = true
	case "0":
		a.killOnBad = false
	default:
		return fmt.Errorf("%q: want 0 or 1", v)
	}
	return nil
}

func setKillCommand(a *ask, v string) error {
	name := strings.TrimPrefix(strings.ToUpper(v), "SIG")
	if n, err := strconv.Atoi(name); err == nil {
		a.killCommand = syscall.Signal(n)
	} else {
		a.killCommand = unix.SignalNum("SIG" + name)
	}
	if unix.SignalName(a.killCommand) == "" {
		return fmt.Errorf("%q is no signal", v)
	}
	return nil
}

func setTime(a *ask, v string) error {
	d, err := script.ParseTime(v)
	if err == nil {
		a.step.TimeLimit = d
	}
	return err
}

// insteadOfPMI is what works for Open MPI, which speaks PMIx alone.
const insteadOfPMI = "pmi2 serves MPICH, MVAPICH and Intel MPI; programs of Open MPI would each run alone, as rank 0 of 1: start them with its mpirun inside the allocation, which uses srun"

func setMPI(a *ask, v string) error {
	a.pmi = v == "pmi2"
	switch v {
	case "none", "openmpi", "pmi2":
		return nil
	case "list":
		a.helpTopic = "mpi"
		return nil
	}
	return fmt.Errorf("%s is not offered: %s, or use --mpi=none", v, insteadOfPMI)
}

func setPorts(a *ask, v string) error {
	if v == "" {
		a.step.Ports = api.PortEach
		return nil
	}
	return number(&a.step.Ports, v, 0)
}

func setExclusive(a *ask, v string) error {
	a.step.Exact, a.step.Overlap = true, false
	return nil
}
