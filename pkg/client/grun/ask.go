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
	"gangd/pkg/api/rlimit"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
)

// ask is what the options come to.
type ask struct {
	step        api.StepAsk
	limits      rlimit.Soft // of --propagate
	limitsAsked bool
	slurms      bool // by one of Slurm's names
	salloc      bool
	job         string // --jobid
	tasksCmd    bool   // -n was given on the command line
	nodesCmd    bool   // -N was given on the command line
	cpusSet     bool
	// exactly: what a task takes was said, so that others may run beside it; whole: not so.
	exactly, whole bool

	name                  string
	chdir                 string
	export                string
	exportSet             bool
	output, errput, input string
	openMode              string
	label, unbuffered     bool
	killOnBad, firstCode  bool // see client.Options
	killSet               bool // somebody has said so
	remapRoot             bool // tasks are root in user namespaces
	jobsBox               bool // the job that was made for the step runs in a container
	wait                  time.Duration
	multi, pty            bool
	quiet, verbose        int
	noProgress            bool
	immediate             time.Duration
	immediateSet          bool
	tasksPerGPU           int
	perTaskCards          bool // --gpu-bind leaves each task its own
	noBind                bool
	mpi                   string // one of [api.MPINone] ...; empty: as the site says
	box                   api.Container
	taskProlog            string
	taskEpilog            string
	bindCards             int
	cardsOf               [][]int // --gpu-bind=map_gpu, mask_gpu
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
	a := &ask{killOnBad: name == "grun", firstCode: name == "grun", slurms: name != "grun", salloc: name == "salloc"}
	var all []given
	for i := range options {
		o := &options[i]
		if slices.ContainsFunc(cmd, func(g given) bool { return g.o == o }) {
			continue
		}
		for _, name := range variables(name, o) {
			if v, ok := lookup(name, component); ok && v != "" && turnsOn(o, v) && !toldOnly(name, v) {
				if wait := os.Getenv(switchWaits[name]); wait != "" && !strings.Contains(v, "@") {
					v += "@" + wait
				}
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
	if a.exactly && !a.whole {
		a.step.Exact = true
	}
	if err := a.arbitrate(name); err != nil {
		return nil, err
	}
	return a, a.contradiction(name)
}

// variables are those of an option: salloc has its own, and reads none of a job around it. srun outside of a job reads more of
// them, which inside one say what the job has.
func variables(name string, o *Option) []string {
	if name != "salloc" {
		v := o.Env
		if outer := outerVariables[o.Long]; outer != "" && name == "srun" && !inJob() {
			v = append(slices.Clone(v), outer)
		}
		return v
	}
	var names []string
	for _, n := range []string{sallocVariables[o.Long], sharedVariables[o.Long]} {
		if n != "" {
			names = append(names, n)
		}
	}
	return names
}

func inJob() bool { return os.Getenv("SLURM_JOB_ID") != "" || os.Getenv("SLURM_JOBID") != "" }

// turnsOn reports whether a variable of an option without a value stands for it, as in Slurm.
func turnsOn(o *Option, v string) bool {
	n, err := strconv.Atoi(v)
	return o.Kind != noValue || strings.EqualFold(v, "yes") || err == nil && n != 0
}

// outerVariables are srun's outside of a job, beside those in the table, by the option that each stands for.
var outerVariables = map[string]string{"acctg-freq": "SLURM_ACCTG_FREQ", "bb": "SLURM_BURST_BUFFER", "bcast": "SLURM_BCAST",
	"bcast-exclude": "SLURM_BCAST_EXCLUDE", "clusters": "SLURM_CLUSTERS", "compress": "SLURM_COMPRESS", "constraint": "SLURM_CONSTRAINT",
	"container": "SRUN_CONTAINER", "container-id": "SRUN_CONTAINER_ID", "core-spec": "SLURM_CORE_SPEC", "cpu-freq": "SLURM_CPU_FREQ_REQ",
	"cpus-per-gpu": "SLURM_CPUS_PER_GPU", "cpus-per-task": "SLURM_CPUS_PER_TASK", "delay-boot": "SLURM_DELAY_BOOT",
	"dependency": "SLURM_DEPENDENCY", "epilog": "SLURM_EPILOG", "gpu-bind": "SLURM_GPU_BIND", "gpu-freq": "SLURM_GPU_FREQ",
	"gpus": "SLURM_GPUS", "gpus-per-node": "SLURM_GPUS_PER_NODE", "gres": "SLURM_GRES", "gres-flags": "SLURM_GRES_FLAGS",
	"job-name": "SLURM_JOB_NAME", "mem": "SLURM_MEM_PER_NODE", "mem-bind": "SLURM_MEM_BIND", "mem-per-cpu": "SLURM_MEM_PER_CPU",
	"mem-per-gpu": "SLURM_MEM_PER_GPU", "network": "SLURM_NETWORK", "no-kill": "SLURM_NO_KILL", "ntasks-per-core": "SLURM_NTASKS_PER_CORE",
	"ntasks-per-gpu": "SLURM_NTASKS_PER_GPU", "ntasks-per-socket": "SLURM_NTASKS_PER_SOCKET", "oom-kill-step": "SLURM_OOMKILLSTEP",
	"power": "SLURM_POWER", "profile": "SLURM_PROFILE", "prolog": "SLURM_PROLOG", "qos": "SLURM_QOS", "segment": "SLURM_SEGMENT_SIZE",
	"send-libs": "SLURM_SEND_LIBS", "signal": "SLURM_SIGNAL", "slurmd-debug": "SLURMD_DEBUG", "spread-job": "SLURM_SPREAD_JOB",
	"switches":    "SLURM_REQ_SWITCH",
	"thread-spec": "SLURM_THREAD_SPEC", "threads": "SLURM_THREADS", "tres-bind": "SLURM_TRES_BIND", "tres-per-task": "SLURM_TRES_PER_TASK",
	"use-min-nodes": "SLURM_USE_MIN_NODES", "wckey": "SLURM_WCKEY"}

// switchWaits are the second variables of --switches=N@TIME, by the first.
var switchWaits = map[string]string{"SLURM_REQ_SWITCH": "SLURM_WAIT4SWITCH", "SALLOC_REQ_SWITCH": "SALLOC_WAIT4SWITCH"}

// sharedVariables are those of salloc that other commands of Slurm's read too.
var sharedVariables = map[string]string{"clusters": "SLURM_CLUSTERS", "hint": "SLURM_HINT"}

// sallocVariables are salloc's, by the option that each stands for.
var sallocVariables = map[string]string{"account": "SALLOC_ACCOUNT", "acctg-freq": "SALLOC_ACCTG_FREQ", "bell": "SALLOC_BELL",
	"bb": "SALLOC_BURST_BUFFER", "clusters": "SALLOC_CLUSTERS",
	"constraint": "SALLOC_CONSTRAINT", "container": "SALLOC_CONTAINER", "container-id": "SALLOC_CONTAINER_ID",
	"core-spec": "SALLOC_CORE_SPEC", "cpu-freq": "SALLOC_CPU_FREQ_REQ",
	"cpus-per-gpu": "SALLOC_CPUS_PER_GPU",
	"verbose":      "SALLOC_DEBUG", "delay-boot": "SALLOC_DELAY_BOOT", "exclusive": "SALLOC_EXCLUSIVE", "gpu-bind": "SALLOC_GPU_BIND",
	"gpu-freq": "SALLOC_GPU_FREQ", "gpus": "SALLOC_GPUS",
	"gpus-per-node": "SALLOC_GPUS_PER_NODE", "gpus-per-task": "SALLOC_GPUS_PER_TASK", "gres": "SALLOC_GRES", "gres-flags": "SALLOC_GRES_FLAGS",
	"hint":      "SALLOC_HINT",
	"immediate": "SALLOC_IMMEDIATE", "kill-command": "SALLOC_KILL_CMD", "mem-bind": "SALLOC_MEM_BIND", "mem-per-cpu": "SALLOC_MEM_PER_CPU",
	"mem-per-gpu": "SALLOC_MEM_PER_GPU",
	"mem":         "SALLOC_MEM_PER_NODE", "network": "SALLOC_NETWORK", "no-bell": "SALLOC_NO_BELL", "no-kill": "SALLOC_NO_KILL",
	"overcommit": "SALLOC_OVERCOMMIT", "partition": "SALLOC_PARTITION",
	"power": "SALLOC_POWER", "profile": "SALLOC_PROFILE", "qos": "SALLOC_QOS", "switches": "SALLOC_REQ_SWITCH",
	"reservation": "SALLOC_RESERVATION", "segment": "SALLOC_SEGMENT_SIZE", "signal": "SALLOC_SIGNAL",
	"spread-job": "SALLOC_SPREAD_JOB", "thread-spec": "SALLOC_THREAD_SPEC", "threads-per-core": "SALLOC_THREADS_PER_CORE",
	"time": "SALLOC_TIMELIMIT", "use-min-nodes": "SALLOC_USE_MIN_NODES",
	"wait-all-nodes": "SALLOC_WAIT_ALL_NODES", "wckey": "SALLOC_WCKEY", "tres-bind": "SALLOC_TRES_BIND",
	"tres-per-task": "SALLOC_TRES_PER_TASK"}

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
	if ofTheJob(g) || g.env == "" && g.value == "" && a.slurms && script.TakesEmpty(g.o.Long) {
		return nil
	}
	if read := map[string]func(string) ([][2]string, error){"tres-per-task": script.TresPerTask,
		"tres-bind": script.TresBind}[g.o.Long]; read != nil {
		words, err := read(g.value)
		if err != nil {
			return &badValue{option: g.o.Long, where: where, value: g.value, err: err}
		}
		for _, w := range words {
			long := w[0]
			if long == "gpus-per-rank" {
				long = "gpus-per-task"
			}
			at := slices.IndexFunc(options, func(o Option) bool { return o.Long == long })
			if err := a.apply(given{o: &options[at], value: w[1], env: g.env}); err != nil {
				return err
			}
		}
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
	if (g.o.Alloc || a.salloc && script.IsTold(g.o.Long)) && (g.env == "" || a.salloc || a.slurms && !inJob() || g.o.Group == groupBox ||
		g.o.Group == groupAlloc || g.o.Long == "time") {
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
		*into, err = hostlist.Repeated(v) // of which --distribution=arbitrary counts the repeats
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
	if len(parts) > 1 && strings.EqualFold(parts[0], "gpu") {
		parts = parts[1:]
	}
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
	if strings.EqualFold(v, "none") || v == "" {
		a.step.GPUs, a.step.GPUsPerTask, a.step.GPUsPerNode, a.step.NoGPUs = 0, 0, 0, true
		return nil
	}
	total, asked := 0, false
	for _, part := range strings.Split(v, ",") {
		name, rest, _ := strings.Cut(part, ":")
		if _, count, _ := strings.Cut(rest, ":"); name != "gpu" && name != "gres/gpu" && (rest == "0" || count == "0") {
			continue // none of something is asked for
		}
		if name != "gpu" && name != "gres/gpu" {
			return fmt.Errorf("%q: only gpu is a resource here", part)
		}
		n := 1
		asked = true
		if rest != "" {
			var err error
			if n, err = gpuCount(rest); err != nil {
				return err
			}
		}
		total += n
	}
	if asked {
		a.step.GPUs, a.step.GPUsPerTask, a.step.NoGPUs = 0, 0, total == 0
		a.step.GPUsPerNode = total
	}
	return nil
}

func setDistribution(a *ask, v string) error {
	first, _, _ := strings.Cut(strings.ToLower(v), ",")
	first, _, _ = strings.Cut(first, ":")
	switch {
	case first == "*" || first == "block" || first == "cyclic" || first == api.Arbitrary || strings.HasPrefix(first, "plane="):
	default:
		return fmt.Errorf("%q: want block, cyclic, plane=N or arbitrary", v)
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
		a.killOnBad, a.killSet = true, true
	case "0":
		a.killOnBad, a.killSet = false, true
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

// insteadOfPMI is what there is for which programs.
const insteadOfPMI = "pmix serves Open MPI, pmi2 serves MPICH, MVAPICH and Intel MPI"

func setMPI(a *ask, v string) error {
	switch {
	case v == "none", v == "openmpi":
		a.mpi = api.MPINone
		return nil
	case v == "pmi2":
		a.mpi = api.MPIPMI2
		return nil
	case isPMIx(v):
		a.mpi = api.MPIPMIx
		return nil
	case v == "list":
		a.helpTopic = "mpi"
		return nil
	}
	return fmt.Errorf("%s is not offered: %s, or use --mpi=none", v, insteadOfPMI)
}

// isPMIx reports the names by which Slurm offers PMIx: pmix, and one for each version of it.
func isPMIx(v string) bool {
	version, ok := strings.CutPrefix(v, "pmix")
	if n, versioned := strings.CutPrefix(version, "_v"); versioned {
		_, err := strconv.ParseUint(n, 10, 8)
		return ok && err == nil
	}
	return ok && version == ""
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
