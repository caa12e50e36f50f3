package script

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/api/rlimit"
	"gangd/pkg/core/cmdline"
)

const noSockets = "CPUs are counted; the node chooses among sockets and cores"

// hints are options of sbatch that change nothing about what is run or allocated here:
// they are accepted, so that scripts run unchanged, and each use is named in a warning.
var hints = []Option{
	{Long: "qos", Short: 'q', Env: []string{"SBATCH_QOS"}, Kind: Value, Arg: "QOS", List: Partial, Warn: true, Group: groupHints,
		Note: "there is no quality of service; --partition and --priority choose"},
	{Long: "wckey", Env: []string{"SBATCH_WCKEY"}, Kind: Value, Arg: "KEY", List: Partial, Warn: true, Group: groupHints,
		Note: "the key is not recorded; --account and --comment are"},
	{Long: "acctg-freq", Env: []string{"SBATCH_ACCTG_FREQ"}, Kind: Value, Arg: "SPEC", List: Partial, Warn: true, Group: groupHints,
		Note: "sampling is the same for all jobs"},
	{Long: "profile", Env: []string{"SBATCH_PROFILE"}, Kind: Value, Arg: "TYPE", List: Partial, Warn: true, Group: groupHints,
		Note: "no profile is written"},
	{Long: "no-kill", Short: 'k', Env: []string{"SBATCH_NO_KILL"}, Kind: MayValue, Arg: "off", List: Partial, Warn: true, Group: groupHints,
		Note: "a gang that loses a node ends as a whole and runs again; --no-requeue ends it for good"},
	{Long: "get-user-env", Env: []string{"SBATCH_GET_USER_ENV"}, Kind: MayValue, Arg: "MODE", List: Partial, Warn: true, Group: groupHints,
		Note: "no login shell is run for the environment; begin the script with #!/bin/bash -l"},
	{Long: "propagate", Kind: MayValue, Arg: "LIMITS", List: Partial, Group: groupFiles,
		Help: "soft resource limits of this process that the job has: ALL, NONE, or NOFILE,STACK and so on",
		Note: "each at most the node's hard limit, where Slurm says that it can't set it",
		Set: func(_ *Ask, v string) error {
			if _, err := (rlimit.Soft{}).Choose(v); err != nil {
				return bad(err.Error(), "")
			}
			return nil
		}},
	{Long: "distribution", Short: 'm', Env: []string{"SBATCH_DISTRIBUTION"}, Kind: Value, Arg: "TYPE", List: Partial, Warn: true,
		Group: groupHints,
		Note:  "ranks are numbered node by node (block)", Set: checkDistribution,
		Heeded: func(v string) bool { return plainDistribution(v) == api.Arbitrary }}, // by srun in the script
	{Long: "mem-bind", Kind: Value, Arg: "TYPE", List: Partial, Warn: true, Group: groupHints,
		Note: "memory is not bound; use numactl in the script"},
	{Long: "gpu-bind", Env: []string{"SBATCH_GPU_BIND"}, Kind: Value, Arg: "TYPE", List: Partial, Group: groupHints,
		Note: "always as none: every rank sees all cards of its gang on the node; other types warn",
		Set:  setGPUBind},
	{Long: "gres-flags", Env: []string{"SBATCH_GRES_FLAGS"}, Kind: Value, Arg: "TYPE", List: Partial, Warn: true, Group: groupHints,
		Note: "cards are not tied to CPUs"},
	{Long: "ntasks-per-core", Kind: Value, Arg: "N", List: Partial, Warn: true, Group: groupHints,
		Note: "a CPU is what the node counts as one; cores are not told from threads"},
	{Long: "extra-node-info", Short: 'B', Kind: Value, Arg: "S[:C[:T]]", List: Partial, Group: groupPlace,
		Help: "nodes with so many sockets, cores of a socket and threads of a core at least; * is any",
		Note: "of a range the least counts; on the nodes any CPUs are taken", Set: setShape},
	{Long: "gpus-per-socket", Kind: Value, Arg: "N", List: Partial, Group: groupHints,
		Note: "times --sockets-per-node it is --gpus-per-node, whichever sockets the cards are at",
		Set:  func(a *Ask, v string) error { return gpusInto(&a.gpusPerSocket, &a.Spec.GPUType, v) }},
	{Long: "sockets-per-node", Kind: Value, Arg: "N", List: Partial, Group: groupPlace, Help: "nodes with so many sockets at least",
		Note: "on the nodes any CPUs are taken",
		Set:  func(a *Ask, v string) error { return numberInto(&a.Spec.Shape.Sockets, v, 1, 1<<10) }},
	{Long: "cores-per-socket", Kind: Value, Arg: "N", List: Partial, Group: groupPlace,
		Help: "nodes whose sockets have so many cores at least",
		Note: "on the nodes any CPUs are taken",
		Set:  func(a *Ask, v string) error { return numberInto(&a.Spec.Shape.Cores, v, 1, 1<<16) }},
	{Long: "ntasks-per-socket", Kind: Value, Arg: "N", List: Partial, Warn: true, Group: groupHints, Note: noSockets +
		"; --ntasks-per-node counts"},
	{Long: "core-spec", Short: 'S', Env: []string{"SBATCH_CORE_SPEC"}, Kind: Value, Arg: "N", List: Partial, Warn: true, Group: groupHints,
		Note: "no core is set aside for the system by a job"},
	{Long: "thread-spec", Env: []string{"SBATCH_THREAD_SPEC"}, Kind: Value, Arg: "N", List: Partial, Warn: true, Group: groupHints,
		Note: "no thread is set aside for the system by a job"},
	{Long: "cpu-freq", Kind: Value, Arg: "FREQ", List: Partial, Warn: true, Group: groupHints,
		Note: "clocks are the node's"},
	{Long: "gpu-freq", Env: []string{"SBATCH_GPU_FREQ"}, Kind: Value, Arg: "FREQ", List: Partial, Warn: true, Group: groupHints,
		Note: "clocks are the node's"},
	{Long: "power", Env: []string{"SBATCH_POWER"}, Kind: Value, Arg: "FLAGS", List: Partial, Warn: true, Group: groupHints,
		Note: "there is no power management"},
	{Long: "delay-boot", Env: []string{"SBATCH_DELAY_BOOT"}, Kind: Value, Arg: "MINUTES", List: Partial, Warn: true, Group: groupHints,
		Note: "nodes are never rebooted for a job"},
	{Long: "wait-all-nodes", Env: []string{"SBATCH_WAIT_ALL_NODES"}, Kind: Value, Arg: "0|1", List: Partial, Group: groupHints,
		Note: "always as 1: nothing starts before every node is ready",
		Set: func(_ *Ask, v string) error {
			_, err := number(v, 0, 1)
			return err
		}},
	{Long: "contiguous", List: Partial, Warn: true, Group: groupHints,
		Note: "nodes have no order; near ones are taken where it can be"},
	{Long: "segment", Env: []string{"SBATCH_SEGMENT_SIZE"}, Kind: Value, Arg: "NODES", List: Partial, Warn: true, Group: groupHints,
		Note: "near nodes are taken where it can be, of all that the job has"},
	{Long: "spread-job", Env: []string{"SBATCH_SPREAD_JOB"}, List: Partial, Warn: true, Group: groupHints,
		Note: "ranks are packed; --ranks-per-node=1 spreads them"},
	{Long: "use-min-nodes", Env: []string{"SBATCH_USE_MIN_NODES"}, List: Partial, Warn: true, Group: groupHints,
		Note: "ranks are packed on few nodes anyway"},
	{Long: "network", Env: []string{"SBATCH_NETWORK"}, Kind: Value, Arg: "TYPE", List: Partial, Warn: true, Group: groupHints,
		Note: "networks are not allocated; NCCL_SOCKET_IFNAME and the like choose one"},
	{Long: "bb", Kind: Value, Arg: "SPEC", List: Partial, Warn: true, Group: groupHints,
		Note: "there are no burst buffers; copy the data in the script"},
	{Long: "bbf", Kind: Value, Arg: "FILE", List: Partial, Warn: true, Group: groupHints,
		Note: "there are no burst buffers; copy the data in the script"},
	{Long: "cluster-constraint", Kind: Value, Arg: "LIST", List: Partial, Warn: true, Group: groupHints,
		Note: "there is one cluster; --constraint chooses nodes"},
	{Long: "mcs-label", Kind: Value, Arg: "LABEL", List: Partial, Warn: true, Group: groupHints,
		Note: "there are no security labels; --exclusive keeps others off the node"},
	{Long: "reboot", List: Partial, Warn: true, Group: groupHints,
		Note: "nodes are never rebooted for a job"},
	{Long: "oversubscribe", Short: 's', List: Partial, Warn: true, Group: groupHints,
		Note: "CPUs are never shared; cards are with --share --vram=SIZE"},
	{Long: "extra", Env: []string{"SBATCH_EXTRA"}, Kind: Value, Arg: "TEXT", List: Partial, Group: groupFiles,
		Help: "text for programs of the site's, kept with the job",
		Note: "recorded and shown; nodes have no extra words that it could be compared with, and --constraint chooses nodes",
		Set:  func(a *Ask, v string) error { return noteInto(&a.Spec.Extra, v) }},
	{Long: "licenses", Short: 'L', Kind: Value, Arg: "NAME[:N],...", List: Partial, Group: groupPlace,
		Help: "licences of the site, held from start to end",
		Note: "all that are named; one or another can't be asked for",
		Set:  poolsInto("licence")},
	{Long: "oom-kill-step", Kind: MayValue, Arg: "0|1", List: Partial, Group: groupHints,
		Note: "always as 0: a step of which the kernel has killed a process for memory goes on, and its state says so; srun " +
			"--kill-on-bad-exit ends it with the task",
		Set: func(_ *Ask, v string) error {
			if v == "" {
				return nil
			}
			_, err := number(v, 0, 1)
			return err
		}},
	{Long: "stepmgr", List: Partial, Group: groupHints,
		Note: "steps are begun by the job's own nodes and clients anyway, and cost the controller little",
		Set:  func(*Ask, string) error { return nil }},
	{Long: "ignore-pbs", Env: []string{"SBATCH_IGNORE_PBS"}, List: Exact, Group: groupHints,
		Help: "#PBS lines are never read",
		Set:  func(*Ask, string) error { return nil }},
}

// slurms are options of sbatch that gsubmit has better words for.
var slurms = []Option{
	{Long: "tres-per-task", Env: []string{"SBATCH_TRES_PER_TASK"}, Kind: Value, Arg: "cpu=N,gres/gpu=N", List: Partial, Group: groupHints,
		Note: "as --cpus-per-task and --gpus-per-task; no other resource is counted by task", Set: func(_ *Ask, v string) error {
			_, err := TresPerTask(v)
			return err
		}},
	{Long: "tres-bind", Env: []string{"SBATCH_TRES_BIND"}, Kind: Value, Arg: "gres/gpu:TYPE", List: Partial, Group: groupHints,
		Note: "as --gpu-bind", Set: func(_ *Ask, v string) error {
			_, err := TresBind(v)
			return err
		}},
	{Long: "mincpus", Kind: Value, Arg: "N", List: Partial, Group: groupHints,
		Note: "CPUs of a rank are raised until a node's ranks have N; how many ranks a node has must be said where there are several",
		Set:  func(a *Ask, v string) error { return numberInto(&a.minCPUs, v, 1, 1<<20) }},
	{Long: "ntasks-per-gpu", Names: "ntasks-per-gpu ntasks-per-tres", Kind: Value, Arg: "N", List: Partial, Group: groupHints,
		Note: "tasks that share a card; --share --vram=SIZE shares one between jobs",
		Set:  func(a *Ask, v string) error { return numberInto(&a.tasksPerGPU, v, 1, 1<<16) }},
	{Long: "overcommit", Short: 'O', Env: []string{"SBATCH_OVERCOMMIT"}, List: Partial, Group: groupHints,
		Note: "one CPU on each node is asked for, which the N tasks of --ntasks share; cards are never promised twice",
		Set:  func(a *Ask, _ string) error { a.overcommit = true; return nil }},
	{Long: nodefile, Short: 'F', Kind: Value, Arg: "FILE", List: Partial, Group: groupPlace,
		Help: "only the nodes that this file names, a line each",
		Note: "as --nodelist with the nodes of the file, each once", Set: func(*Ask, string) error { return nil }},
	{Long: "export-file", Kind: Value, Arg: "FILE|FD", List: Partial, Group: groupFiles,
		Help: "environment of the job, as env -0 writes it",
		Note: "the environment of the job is what the file holds, NAME=value with a NUL behind each, in place of the caller's; names of " +
			"--export are looked up in it",
		Set: func(a *Ask, v string) error { a.ExportFile = v; return nil }},
	{Long: "uid", Kind: Value, Arg: "USER", List: Partial, Group: groupSubmit,
		Help: "as root: submit it as this user",
		Note: "another user is root's to choose; anybody may name himself", Set: func(a *Ask, v string) error { a.User = v; return nil }},
	{Long: "gid", Kind: Value, Arg: "GROUP", List: Partial, Group: groupSubmit,
		Help: "as root: submit it in this group",
		Note: "another group is root's to choose; anybody may name his own", Set: func(a *Ask, v string) error { a.UserGroup = v; return nil }},
	{Long: "clusters", Names: "clusters cluster", Short: 'M', Env: []string{"SBATCH_CLUSTERS", "SLURM_CLUSTERS"},
		Kind: Value, Arg: "NAME", List: Partial,
		Group: groupHints,
		Note:  cmdline.Cluster + " is the one cluster; GANG_DIR chooses another's controller",
		Set:   func(_ *Ask, v string) error { return CheckCluster(v) }},
}

// CheckCluster refuses a list with any name that is not the one cluster's.
func CheckCluster(v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if !cmdline.IsCluster(name) {
			return bad("there is one cluster, "+cmdline.Cluster, "set GANG_DIR to the directory of another one")
		}
	}
	return nil
}

// expand puts in the place of --tres-per-task and --tres-bind the options that they are another spelling of.
func expand(settings []Setting) ([]Setting, error) {
	out := make([]Setting, 0, len(settings))
	for i := range settings {
		s := settings[i]
		var words [][2]string
		var err error
		switch s.Option.Long {
		case "tres-per-task":
			words, err = TresPerTask(s.Value)
		case "tres-bind":
			words, err = TresBind(s.Value)
		default:
			out = append(out, s)
			continue
		}
		if err != nil {
			v, _ := err.(*valueError)
			e := s.refuse(s.String()+": "+v.msg, v.hint)
			e.Bad = &s
			return nil, e
		}
		for _, w := range words {
			one := s
			one.Option, one.Name, one.Value = named(w[0]), w[0], w[1]
			out = append(out, one)
		}
	}
	return out, nil
}

// TresPerTask is the options that --tres-per-task stands for: cpu=4,gres/gpu:a100=1, with : or = before a number.
func TresPerTask(v string) (words [][2]string, err error) {
	for _, part := range strings.Split(v, ",") {
		name, rest, ok := strings.Cut(strings.Replace(part, "=", ":", -1), ":")
		switch strings.ToLower(strings.TrimPrefix(name, "gres/")) {
		case "cpu":
			words = append(words, [2]string{"cpus-per-task", rest})
		case "gpu":
			if !ok {
				rest = "1"
			}
			words = append(words, [2]string{"gpus-per-rank", rest})
		default:
			return nil, bad("unknown resource "+strconv.Quote(name), "cpu and gres/gpu are counted by task")
		}
		if rest == "" {
			return nil, bad(name+" has no number", "write --tres-per-task="+name+"=1")
		}
	}
	return words, nil
}

// TresBind is the option that --tres-bind stands for: gres/gpu:single:1.
func TresBind(v string) ([][2]string, error) {
	name, rest, _ := strings.Cut(v, ":")
	if name = strings.ToLower(name); strings.TrimPrefix(name, "gres/") != "gpu" || rest == "" {
		return nil, bad("want gres/gpu: and a type", "write --tres-bind=gres/gpu:single:1, which is --gpu-bind=single:1")
	}
	return [][2]string{{"gpu-bind", rest}}, nil
}

// refused are the options of sbatch whose loss would change what a job means.
var refused = []Option{
	{Long: "container", Env: []string{"SBATCH_CONTAINER"}, Kind: Value, List: Refused, Group: groupNot,
		Note: "OCI bundles are not run: their config.json is an OCI runtime's to obey, and none is used here",
		Use:  "use --container-image=BUNDLE/rootfs, with --container-mounts"},
	{Long: "container-id", Env: []string{"SBATCH_CONTAINER_ID"}, Kind: Value, List: Refused, Group: groupNot,
		Note: "OCI bundles are not run: their config.json is an OCI runtime's to obey, and none is used here",
		Use:  "use --container-image=BUNDLE/rootfs, with --container-name"},
	{Long: "context", Kind: Value, List: Refused, Group: groupNot, Note: "no security context is set for what runs",
		Use: "leave it out, and the node's holds"},
	{Long: "batch", Env: []string{"SBATCH_BATCH"}, Kind: Value, List: Refused, Group: groupNot,
		Note: "the script's node can't be chosen apart from the others", Use: "use --constraint for all nodes"},
}

// checkDistribution refuses what is no distribution: a typo is one anywhere.
func checkDistribution(_ *Ask, v string) error {
	const kinds = "kinds are block, cyclic, plane=N, arbitrary and *, for nodes, sockets and cores with colons between, and behind a comma " +
		"Pack or NoPack"
	of, _, _ := strings.Cut(strings.ToLower(v), ",")
	for _, k := range strings.Split(of, ":") {
		k, _, _ = strings.Cut(k, "=")
		if !slices.Contains([]string{"block", "cyclic", "fcyclic", "plane", "arbitrary", "pack", "nopack", "*"}, k) {
			return bad("not a distribution", kinds)
		}
	}
	return nil
}
