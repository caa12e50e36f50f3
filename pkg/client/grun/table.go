package grun

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/script"
)

// The groups of the help, in its order.
const (
	groupStep  = "The step"
	groupRes   = "CPUs, memory and cards of the step"
	groupIO    = "Input and output"
	groupBox   = "A container"
	groupEnd   = "Its end"
	groupEnv   = "Environment"
	groupAlloc = "Outside an allocation: the job around it"
	groupOwn   = "gangd's own"
	groupInfo  = "Information"
	groupHints = "Accepted for srun's sake"
	groupNot   = "Refused"
)

const allocNote = "as gsubmit takes it; inside an allocation it has no effect, as in Slurm"

// options is every option of grun and every option of srun of Slurm 22.05.
var options = slices.Concat(asked, containers(), hints, refused)

var asked = []Option{
	{Long: "ntasks", Short: 'n', Kind: value, Arg: "N", List: exact, Group: groupStep, Env: []string{"SLURM_NTASKS", "SLURM_NPROCS"},
		Alloc: true,
		Help:  "tasks to run", Set: func(a *ask, v string) error { return number(&a.step.Tasks, v, 1) }},
	{Long: "nodes", Short: 'N', Kind: value, Arg: "MIN[-MAX]", List: exact, Group: groupStep,
		Env: []string{"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}, Alloc: true,
		Help: "nodes to run on", Set: setNodes},
	{Long: "ntasks-per-node", Names: "ntasks-per-node tasks-per-node", Kind: value, Arg: "N", List: exact, Group: groupStep,
		Env: []string{"SLURM_NTASKS_PER_NODE"}, Alloc: true,
		Help: "at most so many tasks on each node", Set: func(a *ask, v string) error { return number(&a.step.TasksPerNode, v, 1) }},
	{Long: "nodelist", Short: 'w', Kind: value, Arg: "HOSTS", List: exact, Group: groupStep, Alloc: true,
		Help: "nodes that must be among its own", Set: func(a *ask, v string) error { return setHosts(&a.step.NodeList)(v) }},
	{Long: "exclude", Short: 'x', Kind: value, Arg: "HOSTS", List: exact, Group: groupStep, Alloc: true,
		Help: "nodes that must not", Set: func(a *ask, v string) error { return setHosts(&a.step.Exclude)(v) }},
	{Long: "nodefile", Short: 'F', Kind: value, Arg: "FILE", List: partial, Group: groupStep,
		Help: "as --nodelist with the nodes of a file", Note: "each once: how often a node stands there says nothing of its tasks"},
	{Long: "relative", Short: 'r', Kind: value, Arg: "N", List: exact, Group: groupStep,
		Help: "begin with the Nth node of the allocation, from 0", Set: func(a *ask, v string) error { return number(&a.step.Relative, v, 0) }},
	{Long: "distribution", Short: 'm', Kind: value, Arg: "TYPE", List: partial, Group: groupStep, Env: []string{"SLURM_DISTRIBUTION"},
		Help: "how tasks are numbered over nodes: block, cyclic, plane=N, or arbitrary: a node of --nodelist or of the file SLURM_HOSTFILE " +
			"for each",
		Note: "the part behind a colon or comma is about sockets and has no effect",
		Set:  setDistribution},
	{Long: "multi-prog", Kind: noValue, List: exact, Group: groupStep,
		Help: "the program is a file that says which tasks run what", Set: func(a *ask, _ string) error { a.multi = true; return nil }},
	{Long: "job-name", Short: 'J', Kind: value, Arg: "NAME", List: exact, Group: groupStep, Alloc: true,
		Help: "name of the step (and of the job around it)",
		Set:  func(a *ask, v string) error { a.name = v; return nil }},
	{Long: "jobid", Kind: value, Arg: "ID", List: exact, Group: groupStep, Env: []string{"SLURM_JOB_ID", "SLURM_JOBID"},
		Help: "the job to run in",
		Set:  func(a *ask, v string) error { a.job = v; return nil }},
	{Long: "het-group", Names: "het-group pack-group", Kind: value, Arg: "LIST", List: exact, Group: groupStep,
		Env:  []string{"SLURM_HET_GROUP"},
		Help: "components of a heterogeneous job to run on (0), as 1 or 0,2-3", Set: func(a *ask, v string) (err error) {
			a.groups,
				err = taskList(v)
			return err
		}},
	{Long: "time", Short: 't', Env: []string{"SLURM_TIMELIMIT"}, Kind: value, Arg: "TIME", List: exact, Group: groupStep, Alloc: true,
		Help: "time limit of the step (and of the job around it)", Set: setTime},
	{Long: "resv-ports", Kind: mayValue, Arg: "N", List: partial, Group: groupStep, Env: []string{"SLURM_RESV_PORTS"},
		Help: "reserve N ports on each node of the step: GANG_PORTS, SLURM_STEP_RESV_PORTS",
		Note: "without N one for each task of the node that has the most (Slurm: none)", Set: setPorts},
	{Long: "task-prolog", Kind: value, Arg: "PROGRAM", List: exact, Group: groupStep, Env: []string{"SLURM_TASK_PROLOG"},
		Help: "run before each task, after the site's own", Set: func(a *ask, v string) error { a.taskProlog = v; return nil }},
	{Long: "task-epilog", Kind: value, Arg: "PROGRAM", List: partial, Group: groupStep, Env: []string{"SLURM_TASK_EPILOG"},
		Help: "run after each task, before the site's own; it has 5 seconds", Note: "what it writes goes to the task's output (Slurm: nowhere)",
		Set: func(a *ask, v string) error { a.taskEpilog = v; return nil }},
	{Long: "chdir", Short: 'D', Env: []string{"SLURM_WORKING_DIR", "SLURM_REMOTE_CWD"}, Kind: value, Arg: "DIR", List: exact, Group: groupStep,
		Help: "directory to run in",
		Set:  func(a *ask, v string) error { a.chdir = v; return nil }},
	{Long: "immediate", Short: 'I', Env: []string{"SLURM_IMMEDIATE"}, Kind: mayValue, Arg: "SECONDS", Default: "1", List: exact,
		Group: groupStep,
		Help:  "fail when there is no room for it within so long", Set: func(a *ask, v string) error {
			var n int
			err := number(&n, v, 0)
			a.immediate, a.immediateSet = time.Duration(n)*time.Second, true
			return err
		}},

	{Long: "cpus-per-task", Short: 'c', Kind: value, Arg: "N", List: partial, Group: groupRes, Env: []string{"SRUN_CPUS_PER_TASK"},
		Alloc: true,
		Help:  "CPUs of each task; implies --exact", Note: "they are its own where the node binds CPUs", Set: func(a *ask, v string) error {
			a.cpusSet, a.exactly = true, true
			return number(&a.step.CPUsPerTask, v, 1)
		}},
	{Long: "cpu-bind", Names: "cpu-bind cpu_bind", Kind: value, Arg: "TYPE", List: partial, Group: groupRes, Env: []string{"SLURM_CPU_BIND"},
		Help: "which of the step's CPUs a task may use: none, cores, threads, ldoms, map_cpu:LIST, mask_cpu:LIST",
		Note: "sockets, boards, rank_ldom lists, map_ldom and mask_ldom are refused; CPUs of a list have to be the step's; without effect, " +
			"with a warning, where the node binds no CPUs",
		Set: setCPUBind},
	{Long: "hint", Kind: value, Arg: "TYPE", List: partial, Group: groupRes, Env: []string{"SLURM_HINT"},
		Help: "multithread, or nomultithread: one thread of each core",
		Note: "compute_bound and memory_bound are as no hint: cores are packed as they are near the cards", Set: setHint},
	{Long: "threads-per-core", Kind: value, Arg: "N", List: partial, Group: groupRes, Env: []string{"SLURM_THREADS_PER_CORE"}, Alloc: true,
		Help: "1: tasks use one thread of each core", Note: "from 2 on a new job has nodes whose cores have so many threads; inside an " +
			"allocation as without it", Set: func(a *ask, v string) error {
			var n int
			err := number(&n, v, 1)
			a.bind.OneThread, a.exactly = a.bind.OneThread || n == 1, true
			return err
		}},
	{Long: "overlap", Env: []string{"SLURM_OVERLAP"}, Kind: mayValue, List: exact, Group: groupRes, Help: "share everything with other steps",
		Set: func(a *ask, _ string) error { a.step.Overlap = true; return nil }},
	{Long: "exact", Kind: noValue, List: exact, Group: groupRes, Env: []string{"SLURM_EXACT"},
		Help: "take only the CPUs that the tasks ask for, not all of the nodes'",
		Set:  func(a *ask, _ string) error { a.step.Exact = true; return nil }},
	{Long: "exclusive", Env: []string{"SLURM_EXCLUSIVE"}, Kind: mayValue, Arg: "user|mcs", List: partial, Group: groupRes, Alloc: true,
		Help: "as --exact; outside an allocation: whole nodes",
		Note: "a value has no effect", Set: setExclusive},
	{Long: "whole", Kind: noValue, List: exact, Group: groupRes, Help: "take all CPUs of the nodes (as it is without --exact)",
		Set: func(a *ask, _ string) error { a.step.Exact, a.whole = false, true; return nil }},
	{Long: "overcommit", Short: 'O', Kind: noValue, List: exact, Group: groupRes, Env: []string{"SLURM_OVERCOMMIT"}, Alloc: true,
		Help: "tasks need not have a CPU each",
		Set:  func(a *ask, _ string) error { a.step.Overcommit = true; return nil }},
	{Long: "mem", Kind: value, Arg: "SIZE", List: partial, Group: groupRes, Alloc: true, Help: "memory on each node",
		Note: "counted among steps that say it, and enforced for the job's member as a whole",
		Set:  func(a *ask, v string) error { return setMemory(&a.step.MemoryPerNode, v) }},
	{Long: "tmp", Kind: value, Arg: "SIZE", List: partial, Group: groupRes, Alloc: true, Help: "temporary space on each node",
		Note: "of an allocation; a step has what its job has", Set: func(*ask, string) error { return nil }},
	{Long: "mem-per-cpu", Kind: value, Arg: "SIZE", List: partial, Group: groupRes, Alloc: true, Help: "memory for each CPU",
		Note: "as --mem", Set: func(a *ask, v string) error { return setMemory(&a.step.MemoryPerCPU, v) }},
	{Long: "gpus", Short: 'G', Kind: value, Arg: "[TYPE:]N", List: partial, Group: groupRes, Alloc: true, Help: "cards of the step in all",
		Note: "inside an allocation the type is not looked at: its cards are of those it asked for",
		Set:  func(a *ask, v string) error { return setGPUs(a, &a.step.GPUs, v) }},
	{Long: "gpus-per-node", Kind: value, Arg: "[TYPE:]N", List: partial, Group: groupRes, Alloc: true, Help: "cards on each node",
		Note: "as --gpus", Set: func(a *ask, v string) error { return setGPUs(a, &a.step.GPUsPerNode, v) }},
	{Long: "gpus-per-task", Kind: value, Arg: "[TYPE:]N", List: partial, Group: groupRes, Env: []string{"SLURM_GPUS_PER_TASK"}, Alloc: true,
		Help: "cards of each task, which sees no others",
		Note: "as --gpus; each task sees its own by CUDA_VISIBLE_DEVICES", Set: func(a *ask, v string) error {
			a.perTaskCards = true
			return setGPUs(a, &a.step.GPUsPerTask, v)
		}},
	{Long: "ntasks-per-gpu", Names: "ntasks-per-gpu ntasks-per-tres", Kind: value, Arg: "N",
		List: partial, Group: groupRes, Alloc: true, Help: "tasks that share a card",
		Note: "the number of tasks follows from the cards, or that of the cards from the tasks",
		Set:  func(a *ask, v string) error { return number(&a.tasksPerGPU, v, 1) }},
	{Long: "gres", Env: []string{"SLURM_STEP_GRES"}, Kind: value, Arg: "gpu[:TYPE][:N]", List: partial, Group: groupRes, Alloc: true,
		Help: "cards on each node, or none",
		Note: "gpu is the only resource", Set: setGres},
	{Long: "gpu-bind", Kind: value, Arg: "TYPE", List: partial, Group: groupRes, Help: "which of the step's cards on its node a task sees: " +
		"none (all), closest, single:1, per_task:N, map_gpu:LIST, mask_gpu:LIST",
		Note: "closest is all of them: a job's cards are chosen near its CPUs; a card of a list has to be the step's", Set: setGPUBind},

	{Long: "output", Short: 'o', Kind: value, Arg: "FILE", List: exact, Group: groupIO, Env: []string{"SRUN_OUTPUT", "SLURM_STDOUTMODE"},
		Help: "all, none, a task's number, or a file: %t %n %N make one for each task or node", Set: func(a *ask,
			v string) error {
			a.output = v
			return nil
		}},
	{Long: "error", Short: 'e', Kind: value, Arg: "FILE", List: exact, Group: groupIO, Env: []string{"SRUN_ERROR", "SLURM_STDERRMODE"},
		Help: "the same for standard error",
		Set:  func(a *ask, v string) error { a.errput = v; return nil }},
	{Long: "input", Short: 'i', Kind: value, Arg: "FILE", List: exact, Group: groupIO, Env: []string{"SRUN_INPUT", "SLURM_STDINMODE"},
		Help: "all, none, a task's number, or a file",
		Set:  func(a *ask, v string) error { a.input = v; return nil }},
	{Long: "open-mode", Kind: value, Arg: "append|truncate", List: exact, Group: groupIO, Env: []string{"SLURM_OPEN_MODE"},
		Help: "what becomes of a file that is there",
		Set: func(a *ask, v string) error {
			if a.openMode = script.OpenMode(v); a.openMode == "" {
				return fmt.Errorf("%q: want append or truncate", v)
			}
			return nil
		}},
	{Long: "label", Short: 'l', Kind: noValue, List: exact, Group: groupIO, Env: []string{"SLURM_LABELIO"},
		Help: "put the task's number before each line",
		Set:  func(a *ask, _ string) error { a.label = true; return nil }},
	{Long: "unbuffered", Short: 'u', Kind: noValue, List: partial, Group: groupIO, Env: []string{"SLURM_UNBUFFEREDIO"},
		Help: "show output as it comes, not line by line",
		Note: "what a program itself holds back it still does: there is a pipe, not a terminal; PYTHONUNBUFFERED is set", Set: func(a *ask,
			_ string) error {
			a.unbuffered = true
			return nil
		}},
	{Long: "pty", Kind: mayValue, List: exact, Group: groupIO, Help: "give task 0 a terminal: grun --pty bash",
		Set: func(a *ask, _ string) error { a.pty = true; return nil }},

	{Long: "kill-on-bad-exit", Short: 'K', Kind: mayValue, Arg: "0|1", Default: "1", List: exact, Group: groupEnd,
		Env:  []string{"SLURM_KILL_BAD_EXIT"},
		Help: "end all tasks when one fails; grun does, srun does not", Set: setKill},
	{Long: "wait", Short: 'W', Kind: value, Arg: "SECONDS", List: exact, Group: groupEnd, Env: []string{"SLURM_WAIT"},
		Help: "end the other tasks so long after the first has ended; 0: never",
		Set:  setWait},
	{Long: "quit-on-interrupt", Kind: noValue, List: exact, Group: groupEnd, Help: "pass the first Ctrl-C on to the tasks and end the step",
		Set: func(a *ask, _ string) error { a.quit = true; return nil }},
	{Long: "disable-status", Short: 'X', Kind: noValue, List: exact, Group: groupEnd, Env: []string{"SLURM_DISABLE_STATUS"},
		Help: "pass the first Ctrl-C on to the tasks", Set: func(a *ask, _ string) error { a.sendInt = true; return nil }},

	{Long: "export", Kind: value, Arg: "LIST", List: exact, Group: groupEnv, Env: []string{"SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV"},
		Help: "ALL, NONE, or names and NAME=value for the tasks",
		Set:  func(a *ask, v string) error { a.export, a.exportSet = v, true; return nil }},

	{Long: "partition", Short: 'p', Env: []string{"SLURM_PARTITION"}, Kind: value, Arg: "NAMES", List: exact, Group: groupAlloc, Alloc: true,
		Help: "partition"},
	{Long: "account", Short: 'A', Env: []string{"SLURM_ACCOUNT"}, Kind: value, Arg: "NAME", List: exact, Group: groupAlloc, Alloc: true,
		Help: "account"},
	{Long: "constraint", Short: 'C', Kind: value, Arg: "LIST", List: partial, Group: groupAlloc, Alloc: true, Help: "features of nodes",
		Note: allocNote},
	{Long: "clusters", Names: "clusters cluster", Short: 'M', Kind: value, Arg: "NAME", List: partial, Group: groupAlloc,
		Help: "the one cluster, " + cmdline.Cluster, Note: "any other name is refused; GANG_DIR chooses another's controller",
		Set: func(_ *ask, v string) error { return script.CheckCluster(v) }},
	{Long: "uid", Kind: value, Arg: "USER", List: partial, Group: groupAlloc, Help: "whose the job is", Note: "another is root's to choose",
		Set: func(a *ask, v string) error { a.asUser = v; return nil }},
	{Long: "gid", Kind: value, Arg: "GROUP", List: partial, Group: groupAlloc, Help: "group of the job",
		Note: "another is root's to choose; on nodes of several users it runs in the groups that its user has there", Set: func(a *ask,
			v string) error {
			a.asGroup = v
			return nil
		}},
	{Long: "prefer", Kind: value, Arg: "LIST", List: partial, Group: groupAlloc, Alloc: true, Help: "features of nodes that are tried first",
		Note: allocNote},
	{Long: "begin", Short: 'b', Kind: value, Arg: "TIME", List: partial, Group: groupAlloc, Alloc: true, Help: "not before", Note: allocNote},
	{Long: "deadline", Kind: value, Arg: "TIME", List: partial, Group: groupAlloc, Alloc: true, Help: "ended by then", Note: allocNote},
	{Long: "dependency", Short: 'd', Kind: value, Arg: "LIST", List: partial, Group: groupAlloc, Alloc: true, Help: "after other jobs",
		Note: allocNote},
	{Long: "comment", Kind: value, Arg: "TEXT", List: partial, Group: groupAlloc, Alloc: true, Help: "comment", Note: allocNote},
	{Long: "mail-type", Kind: value, Arg: "TYPE", List: partial, Group: groupAlloc, Alloc: true,
		Help: "be told by mail of BEGIN, END, FAIL and so on", Note: allocNote},
	{Long: "mail-user", Kind: value, Arg: "USER", List: partial, Group: groupAlloc, Alloc: true, Help: "whom", Note: allocNote},
	{Long: "hold", Short: 'H', Kind: noValue, List: partial, Group: groupAlloc, Alloc: true, Help: "submit held", Note: allocNote},
	{Long: "nice", Kind: mayValue, Arg: "N", Default: "100", List: partial, Group: groupAlloc, Alloc: true, Help: "lower priority",
		Note: allocNote},
	{Long: "priority", Kind: value, Arg: "N", List: partial, Group: groupAlloc, Alloc: true, Help: "priority", Note: allocNote},
	{Long: "cpus-per-gpu", Kind: value, Arg: "N", List: partial, Group: groupAlloc, Alloc: true, Help: "CPUs for each card", Note: allocNote},
	{Long: "gpus-per-socket", Kind: value, Arg: "N", List: partial, Group: groupAlloc, Alloc: true,
		Help: "cards of a node, with --sockets-per-node", Note: allocNote},
	{Long: "sockets-per-node", Kind: value, Arg: "N", List: partial, Group: groupAlloc, Alloc: true,
		Help: "nodes with so many sockets at least", Note: allocNote},
	{Long: "cores-per-socket", Kind: value, Arg: "N", List: partial, Group: groupAlloc, Alloc: true,
		Help: "nodes whose sockets have so many cores at least", Note: allocNote},
	{Long: "extra-node-info", Short: 'B', Kind: value, Arg: "S[:C[:T]]", List: partial, Group: groupAlloc, Alloc: true,
		Help: "nodes with so many sockets, cores and threads at least", Note: allocNote},
	{Long: "mem-per-gpu", Kind: value, Arg: "SIZE", List: partial, Group: groupAlloc, Alloc: true, Help: "memory for each card",
		Note: allocNote},
	{Long: "reservation", Env: []string{"SLURM_RESERVATION"}, Kind: value, Arg: "NAME", List: partial, Group: groupAlloc, Alloc: true,
		Help: "nodes that are kept by this name", Note: allocNote},
	{Long: "time-min", Kind: value, Arg: "TIME", List: partial, Group: groupAlloc, Alloc: true, Help: "shortest time limit", Note: allocNote},
	{Long: "kill-command", Kind: mayValue, Arg: "SIG", Default: "TERM", List: exact, Group: groupAlloc,
		Help: "of salloc: the signal for its command when the allocation is revoked; without it none", Set: setKillCommand},
	{Long: "test-only", Kind: noValue, List: partial, Group: groupAlloc, Help: "say where the job would start, and make none",
		Note: "inside an allocation it has no effect", Set: func(a *ask, _ string) error { a.testOnly = true; return nil }},
	{Long: "signal", Kind: value, Arg: "[B:]SIG[@SECONDS]", List: partial, Group: groupAlloc, Alloc: true, Help: "notice before the end",
		Note: allocNote},

	{Long: "no-shell", Kind: noValue, Group: groupOwn, Help: "make an allocation, print its number and leave it (as salloc --no-shell); " +
		"gcancel ends it",
		Set: func(a *ask, _ string) error { a.noShell = true; return nil }},
	{Long: "fail", Kind: value, Arg: "any", Group: groupOwn, Alloc: true, Help: "of an allocation: a step that fails ends the job"},
	{Long: "idle-timeout", Kind: value, Arg: "TIME", Group: groupOwn, Help: "end a --pty step when nobody has typed, and nothing was " +
		"shown, for so long",
		Set: func(a *ask, v string) (err error) { a.idle, err = script.ParseTime(v); return err }},
	{Long: "timeout", Kind: value, Arg: "TIME", Group: groupOwn, Help: cmdline.TimeoutHelp,
		Set: func(a *ask, v string) error {
			d, err := cmdline.ParseTimeout(v)
			a.timeout = &d
			return err
		}},

	{Long: "quiet", Short: 'Q', Kind: noValue, List: exact, Group: groupInfo, Env: []string{"SLURM_QUIET"},
		Help: "errors only; twice: nothing", Set: func(a *ask, _ string) error { a.quiet++; return nil }},
	{Long: "no-progress", Kind: noValue, Group: groupInfo, Help: "no status line on the terminal while the allocation waits",
		Set: func(a *ask, _ string) error { a.noProgress = true; return nil }},
	{Long: "verbose", Short: 'v', Env: []string{"SLURM_DEBUG"}, Kind: noValue, List: partial, Group: groupInfo,
		Help: "say what the step got", Note: "one level",
		Set: func(a *ask, _ string) error { a.verbose++; return nil }},
	{Long: "help", Short: 'h', Kind: mayValue, Arg: "slurm", Default: "", List: exact, Group: groupInfo,
		Help: "this text; --help=slurm lists srun's options",
		Set:  func(a *ask, v string) error { a.help, a.helpTopic = true, v; return nil }},
	{Long: "usage", Kind: noValue, List: exact, Group: groupInfo, Help: "one line",
		Set: func(a *ask, _ string) error { a.usage = true; return nil }},
	{Long: "version", Short: 'V', Kind: noValue, List: exact, Group: groupInfo, Help: "version",
		Set: func(a *ask, _ string) error { a.version = true; return nil }},
	{Long: "mpi", Kind: value, Arg: "none|pmi2|pmix|list", List: partial, Group: groupStep, Env: []string{"SLURM_MPI_TYPE"},
		Help: "pmix: serve PMIx to programs of Open MPI; pmi2: PMI-1 and PMI-2 to those of MPICH, MVAPICH and Intel MPI",
		Note: "none (and openmpi, which means the same), pmi2, and pmix (pmix_vN), which takes libpmix.so.2 on the nodes: where no node has " +
			"it a line in the step's error output says so, and tasks run without; else as the site has set it", Set: setMPI},
}
