package grun

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cpus"
	"gangd/pkg/wire/limits"
)

// hint is an option of srun that changes nothing about what is run here.
func hint(long string, short byte, kind cmdline.Kind, arg, note string) Option {
	return Option{Long: long, Short: short, Kind: kind, Arg: arg, List: partial, Group: groupHints, Note: note}
}

const notBound = "accepted without effect: the node chooses among sockets and cores"

var hints = []Option{
	{Long: "mem-bind", Names: "mem-bind mem_bind", Kind: value, Arg: "TYPE", List: partial, Group: groupHints,
		Note: "accepted without effect: memory is not bound; use numactl"},
	hint("ntasks-per-core", 0, value, "N", notBound),
	hint("ntasks-per-socket", 0, value, "N", notBound),
	hint("accel-bind", 0, value, "TYPE", "accepted without effect: cards are not tied to CPUs"),
	hint("gres-flags", 0, value, "TYPE", "accepted without effect: cards are not tied to CPUs"),
	hint("acctg-freq", 0, value, "SPEC", "accepted without effect: sampling is the same for all"),
	hint("profile", 0, value, "TYPE", "accepted without effect: no profile is written"),
	{Long: "propagate", Kind: mayValue, Arg: "LIMITS", List: partial, Group: groupEnv, Env: []string{"SLURM_PROPAGATE"},
		Help: "soft resource limits of this process that the tasks have: ALL, NONE, or NOFILE,STACK and so on",
		Note: "each at most the node's hard limit, where Slurm says that it can't set it", Set: func(a *ask, v string) (err error) {
			a.limitsAsked = true
			a.limits, err = limits.Own().Choose(v)
			return err
		}},
	hint("no-kill", 'k', mayValue, "off", "accepted without effect: a job that loses a node ends as a whole"),
	hint("qos", 'q', value, "QOS", "accepted without effect: there is no quality of service"),
	hint("wckey", 0, value, "KEY", "accepted without effect: the key is not recorded"),
	hint("msg-timeout", 0, value, "SECONDS", "accepted without effect: a lost connection is noticed by itself"),
	hint("threads", 'T', value, "N", "accepted without effect: nodes connect by themselves"),
	{Long: "preserve-env", Short: 'E', Kind: noValue, List: exact, Group: groupEnv,
		Help: "leave SLURM_NNODES and SLURM_NTASKS as they are, whatever -N and -n say",
		Set: func(a *ask, _ string) error {
			for _, name := range []string{"SLURM_NNODES", "SLURM_NTASKS"} {
				if v := os.Getenv(name); v != "" {
					a.extra = append(a.extra, name+"="+v)
				}
			}
			return nil
		}},
	hint("use-min-nodes", 0, noValue, "", "accepted without effect: the fewest nodes are taken anyway"),
	hint("segment", 0, value, "NODES", "accepted without effect: near nodes are taken where it can be"),
	hint("spread-job", 0, noValue, "", "accepted without effect: tasks are spread over the nodes of the step anyway"),
	hint("slurmd-debug", 0, value, "LEVEL", "accepted without effect: see the log of gnoded"),
	{Long: "mincpus", Kind: value, Arg: "N", List: partial, Group: groupAlloc, Alloc: true, Help: "CPUs of each node at least",
		Note: allocNote},
	hint("oversubscribe", 's', noValue, "", "accepted without effect: see --overlap"),
	hint("contiguous", 0, noValue, "", "accepted without effect: node names say nothing about cables"),
	hint("switches", 0, value, "N[@TIME]", "accepted without effect inside an allocation; gsubmit takes it"),
	hint("compress", 0, mayValue, "TYPE", "accepted without effect: see --bcast"),
	hint("send-libs", 0, mayValue, "yes|no", "accepted without effect: see --bcast"),
	hint("delay-boot", 0, value, "MINUTES", "accepted without effect: nodes are not booted"),
	hint("cpu-freq", 0, value, "SPEC", "accepted without effect: frequencies are the node's"),
	hint("gpu-freq", 0, value, "SPEC", "accepted without effect: frequencies are the node's"),
	hint("power", 0, value, "FLAGS", "accepted without effect: power is not managed"),
	{Long: "licenses", Short: 'L', Kind: value, Arg: "NAME[:N],...", List: partial, Group: groupAlloc, Alloc: true,
		Help: "licences of the site", Note: allocNote},
	{Long: "extra", Kind: value, Arg: "TEXT", List: partial, Group: groupAlloc, Alloc: true, Help: "text for programs of the site's",
		Note: allocNote},
	hint("oom-kill-step", 0, mayValue, "0|1", "accepted without effect: see --kill-on-bad-exit"),
	hint("stepmgr", 0, noValue, "", "accepted without effect: steps are begun by clients and nodes anyway"),
	hint("treewidth", 0, value, "N", "accepted without effect: nodes connect by themselves"),
	hint("wait-all-nodes", 0, value, "0|1", "accepted without effect: nothing starts before every node is ready"),
	hint("get-user-env", 0, mayValue, "MODE", "accepted without effect: no login shell is run for the environment"),
	hint("wait-for-children", 0, noValue, "", "accepted without effect: a task is over with its own process, and its children end with the "+
		"step"),
	{Long: "tres-per-task", Kind: value, Arg: "cpu=N,gres/gpu=N", List: partial, Group: groupRes, Env: []string{"SLURM_TRES_PER_TASK"},
		Help: "as --cpus-per-task and --gpus-per-task",
		Note: "no other resource is counted by task"},
	{Long: "tres-bind", Kind: value, Arg: "gres/gpu:TYPE", List: partial, Group: groupRes, Env: []string{"SLURM_TRES_BIND"},
		Help: "as --gpu-bind", Note: "as --gpu-bind"},
	hint("network", 0, value, "TYPE", "accepted without effect: networks are not managed"),
	hint("core-spec", 'S', value, "N", "accepted without effect: no core is set aside"),
	hint("thread-spec", 0, value, "N", "accepted without effect: no thread is set aside"),
	{Long: "bell", Kind: noValue, Group: groupHints, Note: "of salloc: accepted without effect"},
	{Long: "no-bell", Kind: noValue, Group: groupHints, Note: "of salloc: accepted without effect"},
	hint("interactive", 0, noValue, "", "accepted without effect: use --pty"),
	hint("mcs-label", 0, value, "LABEL", "accepted without effect: there are no labels"),
}

func no(long string, short byte, kind cmdline.Kind, why, use string) Option {
	if use != "" {
		use = "use " + use
	}
	return Option{Long: long, Short: short, Kind: kind, Arg: "VALUE", List: refusedList, Group: groupNot, Note: why, Use: use}
}

var refused = []Option{
	no("bcast", 0, mayValue, "files are not copied to nodes", "a shared directory, or cp in a step before"),
	no("bcast-exclude", 0, value, "files are not copied to nodes", "a shared directory"),
	no("bb", 0, value, "there are no burst buffers", ""),
	no("bbf", 0, value, "there are no burst buffers", ""),
	no("cluster-constraint", 0, value, "there is one cluster", "GANG_DIR to choose another"),
	no("container", 0, value, "OCI bundles are not run: no runtime reads their config.json",
		"--container-image with the directory of their root"),
	no("container-id", 0, value, "OCI bundles are not run: no runtime reads their config.json",
		"--container-image with the directory of their root"),
	no("context", 0, value, "no security context is set for what runs", ""),
	no("debugger-test", 0, noValue, "no debugger is served", "gattach, or a debugger in the step"),
	no("no-allocate", 'Z', noValue, "nothing runs without an allocation", ""),
	no("prolog", 0, value, "no program is run before the step", "a shell: grun sh -c 'before; exec program'"),
	no("epilog", 0, value, "no program is run after the step", "the next line of the script"),
	no("reboot", 0, noValue, "nodes are not booted by jobs", ""),
	no("external-launcher", 0, mayValue, "steps without tasks are not made", "--overlap and a program that waits"),
	no("async", 0, noValue, "a step ends with its client", "& of the shell"),
	no("x11", 0, mayValue, "X11 is not forwarded", "ssh -X"),
}

func setCPUBind(a *ask, v string) error {
	b, err := cpus.ParseBinding(v)
	b.OneThread = a.bind.OneThread
	a.bind = b
	return err
}

func setHint(a *ask, v string) error {
	switch strings.ToLower(v) {
	case "nomultithread":
		a.bind.OneThread = true
	case "multithread", "compute_bound", "memory_bound":
	default:
		return fmt.Errorf("%q: want nomultithread, multithread, compute_bound or memory_bound", v)
	}
	return nil
}

// setGPUBind: every task sees all cards of the step on its node, or its own.
func setGPUBind(a *ask, v string) error {
	v = strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(v), "verbose,"), "v,")
	kind, n, _ := strings.Cut(v, ":")
	switch kind {
	case "none", "closest":
		a.noBind = kind == "none"
		return nil
	case "map_gpu", "mask_gpu":
		a.noBind = true
		return setCardsOf(a, kind, n)
	case "single", "per_task":
		if n == "" {
			n = "1"
		}
		a.bindCards = 0
		return number(&a.bindCards, n, 1)
	}
	return fmt.Errorf("%q: want none, closest, single:1, per_task:N, map_gpu:LIST or mask_gpu:LIST", v)
}

// maxCards bounds the cards of a node that a list may name.
const maxCards = 64

// setCardsOf reads a list of map_gpu, a card for each task of a node, or of mask_gpu, a set of cards; N*COUNT is N for so many
// tasks. The list begins anew where there are more tasks.
func setCardsOf(a *ask, kind, list string) error {
	a.cardsOf = nil
	for word := range strings.SplitSeq(list, ",") {
		word, times, counted := strings.Cut(word, "*")
		n, count := uint64(0), 1
		var err error
		if kind == "mask_gpu" {
			n, err = strconv.ParseUint(strings.TrimPrefix(strings.ToLower(word), "0x"), 16, maxCards)
		} else if n, err = strconv.ParseUint(word, 0, 16); err == nil && n >= maxCards {
			err = strconv.ErrRange
		}
		if counted && err == nil {
			err = number(&count, times, 1)
		}
		if err != nil || count > api.MaxStepTasks {
			return fmt.Errorf("%q: want numbers of cards from 0 to %d (map_gpu), or masks in hex (mask_gpu), each with *COUNT for so many tasks",
				list, maxCards-1)
		}
		var cards []int
		if kind == "mask_gpu" {
			for i := range maxCards {
				if n&(1<<i) != 0 {
					cards = append(cards, i)
				}
			}
		} else {
			cards = []int{int(n)}
		}
		for range count {
			a.cardsOf = append(a.cardsOf, cards)
		}
		if len(a.cardsOf) > api.MaxStepTasks {
			return fmt.Errorf("%q: more than %d tasks", list, api.MaxStepTasks)
		}
	}
	return nil
}
