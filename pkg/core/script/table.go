package script

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
)

// maxKey is what the controller takes of a key.
const maxKey = 256

// The groups of the help, in its order.
const (
	groupGang   = "The gang"
	groupCards  = "Cards, CPUs, memory of each rank or node"
	groupTime   = "Time, stop and retry"
	groupPlace  = "Where and when"
	groupFiles  = "Files and environment"
	groupSubmit = "Submitting"
	groupHints  = "Accepted for sbatch's sake"
	groupNot    = "Refused"
)

// Options is every option of gsubmit and every option of sbatch of Slurm 22.05.
var Options = slices.Concat(asked, containers(), slurms, hints, refused)

// asked are the options that do something here.
var asked = []Option{
	{Long: "size", Kind: Value, Arg: "N", Group: groupGang,
		Help: "ranks of the gang; each runs the script",
		Set:  func(a *Ask, v string) error { return numberInto(&a.size, v, 1, api.MaxGangSize) }},
	{Long: "role", Kind: Value, Repeat: true, Arg: "NAME:N[,OPTION=VALUE...]", Group: groupGang,
		Help: "N ranks of a kind with its own gpus-per-rank, vram, cpus, mem, constraint; ends=gang; may be repeated",
		Set:  setRole},
	{Long: "ranks-per-node", Kind: Value, Arg: "N", Group: groupGang,
		Help: "exactly N ranks on each node (the last may have fewer)",
		Set:  func(a *Ask, v string) error { return numberInto(&a.Spec.RanksPerNode, v, 1, api.MaxGangSize) }},
	{Long: "launch", Kind: Value, Arg: "ranks|batch", Group: groupGang,
		Help: "run the script in every rank, or once on the first node",
		Set:  setLaunch},
	{Long: "nodes", Short: 'N', Kind: Value, Arg: "MIN[-MAX]", List: Partial, Group: groupGang,
		Help: "number of nodes",
		Note: "with a range and no --ntasks the gang has MIN ranks; the script runs on the first node and starts steps with srun or grun",
		Set:  setNodes},
	{Long: "ntasks", Short: 'n', Kind: Value, Arg: "N", List: Partial, Group: groupGang,
		Help: "slots for tasks; the script runs once on the first node",
		Note: "N ranks are allocated and the script runs once with SLURM_NTASKS and starts steps with srun or grun (--launch=ranks runs the " +
			"script in each)",
		Set: func(a *Ask, v string) error { return numberInto(&a.ntasks, v, 1, api.MaxGangSize) }},
	{Long: "ntasks-per-node", Names: "ntasks-per-node tasks-per-node", Kind: Value, Arg: "N", List: Partial, Group: groupGang,
		Help: "slots for tasks on each node",
		Note: "as --ntasks",
		Set:  func(a *Ask, v string) error { return numberInto(&a.perNode, v, 1, api.MaxGangSize) }},
	{Long: "array", Short: 'a', Env: []string{"SBATCH_ARRAY_INX"}, Kind: Value, Arg: "LIST[%N]", List: Partial, Group: groupGang,
		Help: "one job for each index: 0-15, 1,3,5, 0-100:10; %4 runs four at a time",
		Note: "every element is a job from the start; at most 10000 elements, any index",
		Set:  cmdline.Parsed(func(a *Ask) **api.Array { return &a.Array }, parseArray)},

	{Long: "gpus-per-rank", Names: "gpus-per-rank gpus-per-task", Slurm: "gpus-per-task", Env: []string{"SBATCH_GPUS_PER_TASK"},
		Kind: Value, Arg: "[TYPE:]N", List: Partial, Group: groupCards,
		Help: "cards for each rank",
		Note: "one type, alternatives as a100|h100:N; the ranks of a node see each other's cards",
		Set:  func(a *Ask, v string) error { return gpusInto(&a.Spec.GPUsPerRank, &a.Spec.GPUType, v) }},
	{Long: "gpus-per-node", Env: []string{"SBATCH_GPUS_PER_NODE"}, Kind: Value, Arg: "[TYPE:]N", List: Partial, Group: groupCards,
		Help: "cards on each node",
		Note: "one type, alternatives as a100|h100:N",
		Set:  func(a *Ask, v string) error { return gpusInto(&a.Spec.GPUsPerNode, &a.Spec.GPUType, v) }},
	{Long: "gpus", Short: 'G', Env: []string{"SBATCH_GPUS"}, Kind: Value, Arg: "[TYPE:]N", List: Partial, Group: groupCards,
		Help: "cards of the whole gang, shared out evenly",
		Note: "N must divide evenly over ranks or nodes; one type",
		Set:  func(a *Ask, v string) error { return gpusInto(&a.gpusTotal, &a.Spec.GPUType, v) }},
	{Long: "gres", Env: []string{"SBATCH_GRES"}, Kind: Value, Arg: "gpu[:TYPE][:N][,VRAM:SIZE]", List: Partial, Group: groupCards,
		Help: "cards on each node, as sites spell it",
		Note: "gpu and VRAM (also gpumem, gmem: for each card); no other resource is known",
		Set:  cmdline.Parsed(func(a *Ask) *gres { return &a.gres }, parseGRES)},
	{Long: "vram", Kind: Value, Arg: "SIZE", Group: groupCards,
		Help: "free VRAM on each card; alone it asks for one card a rank",
		Set:  cmdline.Parsed(func(a *Ask) *int64 { return &a.Spec.VRAMBytes }, parseVRAM)},
	{Long: "min-compute", Kind: Value, Arg: "CC", Group: groupCards,
		Help: "least CUDA compute capability of each card, as 8.0 or sm_80",
		Set:  cmdline.Parsed(func(a *Ask) *string { return &a.Spec.MinCompute }, parseCompute)},
	{Long: "card-names", Kind: Value, Arg: "uuid|number", Group: groupCards,
		Help: "how CUDA_VISIBLE_DEVICES names the cards (unless given: as the site says)",
		Set:  setCardNames},
	{Long: "share", Group: groupCards,
		Help: "share cards with other gangs while the VRAM fits (needs --vram)",
		Set:  func(a *Ask, _ string) error { a.Spec.Share = true; return nil }},
	{Long: "mail-type", Kind: Value, Arg: "TYPE[,TYPE...]", List: Partial, Group: groupSubmit,
		Help: "be told by mail of BEGIN, END, FAIL, REQUEUE, TIME_LIMIT_80 and so on; ALL; NONE",
		Note: "the site's mail server sends it; STALL, IDLE and PREEMPT are kinds of our own; STAGE_OUT never happens",
		Set:  cmdline.Parsed(func(a *Ask) *[]api.NotifyType { return &a.mailTypes }, notifyTypes)},
	{Long: "mail-user", Kind: Value, Arg: "USER", List: Partial, Group: groupSubmit,
		Help: "whom, instead of the person who submits",
		Note: "an address in a domain to which the site sends; several with commas",
		Set:  func(a *Ask, v string) error { a.mailUser = v; return nil }},
	{Long: "notify", Kind: Value, Repeat: true, Arg: "NAME[:TYPE,...]", Group: groupSubmit,
		Help: "tell a target that the site lists (a chat, a webhook) of these kinds, else of END and FAIL; may be repeated",
		Set:  setNotify},
	{Long: "report", Group: groupSubmit,
		Help: "write behind the job's output, when it has ended, what it used of what it asked for, with advice (gacct -e)",
		Set:  func(a *Ask, _ string) error { a.Spec.Report = true; return nil }},
	{Long: "cpu-bind", Kind: Value, Arg: "none|cores|ldoms", Group: groupCards,
		Help: "what of its gang's CPUs on the node a rank may use: all, its own cores, or those at their NUMA nodes",
		Set:  setCPUBind},
	{Long: "hint", Env: []string{"SBATCH_HINT", "SLURM_HINT"}, Kind: Value, Arg: "TYPE", List: Partial, Group: groupCards,
		Help: "multithread, or nomultithread: one thread of each core",
		Note: "as --threads-per-core=1 for nomultithread; compute_bound and memory_bound are as no hint",
		Set:  setHint},
	{Long: "threads-per-core", Env: []string{"SBATCH_THREADS_PER_CORE"}, Kind: Value, Arg: "N", List: Partial, Group: groupCards,
		Help: "1: CPUs of different cores, as long as there are enough; from 2 on nodes whose cores have so many threads",
		Note: "a CPU is one thread, so that the number of CPUs stays what was asked for",
		Set: func(a *Ask, v string) error {
			err := numberInto(&a.Spec.ThreadsPerCore, v, 1, 1<<16)
			a.Spec.Shape.Threads = a.Spec.ThreadsPerCore
			return err
		}},
	{Long: "cpus-per-task", Names: "cpus-per-task cpus-per-rank", Short: 'c', Kind: Value, Arg: "N", List: Exact, Group: groupCards,
		Help: "CPUs for each rank (1)",
		Set:  func(a *Ask, v string) error { return numberInto(&a.Spec.CPUsPerRank, v, 1, 1<<20) }},
	{Long: "cpus-per-gpu", Env: []string{"SBATCH_CPUS_PER_GPU"}, Kind: Value, Arg: "N", List: Partial, Group: groupCards,
		Help: "CPUs for each card",
		Note: "becomes CPUs of a rank, so the cards must be asked for by rank, or ranks and cards by node",
		Set:  func(a *Ask, v string) error { return numberInto(&a.cpusPerGPU, v, 1, 1<<20) }},
	{Long: "mem", Env: []string{"SBATCH_MEM_PER_NODE"}, Kind: Value, Arg: "SIZE", List: Partial, Group: groupCards,
		Help: "memory on each node; a plain number is MiB",
		Note: "0 asks for no figure (sbatch: for all of the node; use --exclusive)",
		Set:  func(a *Ask, v string) error { return memoryInto(&a.memNode, v) }},
	{Long: "tmp", Kind: Value, Arg: "SIZE", List: Partial, Group: groupCards,
		Help: "temporary space on each node; a plain number is MiB",
		Note: "counted, and where /tmp and its like are private it is the size that the job has there (sbatch: what a node has to have)",
		Set:  func(a *Ask, v string) error { return memoryInto(&a.Spec.TmpPerNode, v) }},
	{Long: "mem-per-cpu", Env: []string{"SBATCH_MEM_PER_CPU"}, Kind: Value, Arg: "SIZE", List: Exact, Group: groupCards,
		Help: "memory for each CPU",
		Set:  func(a *Ask, v string) error { return memoryInto(&a.memCPU, v) }},
	{Long: "mem-per-gpu", Env: []string{"SBATCH_MEM_PER_GPU"}, Kind: Value, Arg: "SIZE", List: Exact, Group: groupCards,
		Help: "memory for each card",
		Set:  func(a *Ask, v string) error { return memoryInto(&a.memGPU, v) }},
	{Long: "mem-per-rank", Kind: Value, Arg: "SIZE", Group: groupCards,
		Help: "memory for each rank",
		Set:  func(a *Ask, v string) error { return memoryInto(&a.Spec.MemoryPerRank, v) }},
	{Long: "exclusive", Env: []string{"SBATCH_EXCLUSIVE"}, Kind: MayValue, Arg: "", List: Partial, Group: groupCards,
		Help: "no other gang on the nodes",
		Note: "without user or mcs; a batch script that asks for cards has all of its nodes, and CPUs are counted as asked for (sbatch: all " +
			"cards and CPUs)",
		Set: setExclusive},

	{Long: "resv-ports", Kind: MayValue, Arg: "N", List: Exact, Group: groupCards,
		Help: "reserve N ports for the gang on each of its nodes (GANG_PORTS); without N one for each rank of the fullest node",
		Set: func(a *Ask, v string) error {
			if v == "" {
				a.Spec.Ports = api.PortEach
				return nil
			}
			return numberInto(&a.Spec.Ports, v, 0, 65535)
		}},

	{Long: "time", Short: 't', Env: []string{"SBATCH_TIMELIMIT"}, Kind: Value, Arg: "TIME", List: Partial, Group: groupTime,
		Help: "time limit: 90 (minutes), 90m, 12:00:00, 3-00:00:00",
		Note: "kept to the second (sbatch rounds up to a minute); 0 and UNLIMITED take the partition's limit",
		Set:  setTime},
	{Long: "signal", Env: []string{"SBATCH_SIGNAL"}, Kind: Value, Arg: "[B:|A:]SIG[@LEAD]", List: Partial, Group: groupTime,
		Help: "early notice: SIG to the ranks' processes LEAD before the end (B: to the script, A: to both)",
		Note: "the notice also precedes preemption, requeue and cancel; on time, not up to a minute early; R: has no effect",
		Set: func(a *Ask, v string) (err error) {
			a.Spec.Notice, err = a.parseNotice(v)
			return err
		}},
	{Long: "grace", Kind: Value, Arg: "TIME", Group: groupTime,
		Help: "from the stop signal to the kill (the site's, 15s)",
		Set:  setGrace},
	{Long: "min-run", Kind: Value, Arg: "TIME", Group: groupTime,
		Help: "not preempted before it has run so long (unless given: the least run of the site)",
		Set:  cmdline.Parsed(func(a *Ask) *time.Duration { return &a.Spec.MinRun }, ParseSeconds)},
	{Long: "grace-max", Kind: Value, Arg: "TIME", Group: groupTime,
		Help: "how far ranks may extend the grace themselves (EXTEND_TIMEOUT_USEC; not at all)",
		Set:  cmdline.Parsed(func(a *Ask) *time.Duration { return &a.Spec.GraceMax }, graceOf)},
	{Long: "ready-timeout", Kind: Value, Arg: "TIME", Group: groupTime,
		Help: "every rank has to say READY=1 (sd_notify) within TIME of the start, or the launch has failed",
		Set: func(a *Ask, v string) (err error) {
			a.Spec.ReadyTimeout, err = ParseSeconds(v)
			if err == nil && (a.Spec.ReadyTimeout <= 0 || a.Spec.ReadyTimeout > maxGrace) {
				return bad("want more than nothing and at most a day", "write --ready-timeout=5m")
			}
			return err
		}},
	{Long: "checkpoint", Kind: Value, Arg: "drain", Group: groupTime,
		Help: "take checkpoints (gckpt put) only while the job is being stopped",
		Set:  onlyWord("checkpoint", api.CheckpointDrain, "to take them at any time", func(a *Ask) *string { return &a.Spec.Checkpoint })},
	{Long: "fail", Kind: Value, Arg: "any", Group: groupTime,
		Help: "a step that fails ends the job as its script would have, and its first failing task the step",
		Set:  onlyWord("fail", api.FailAny, "to let the script decide", func(a *Ask) *string { return &a.Spec.Fail })},
	{Long: "stop-signal", Kind: Value, Arg: "SIG", Group: groupTime,
		Help: "the stop signal (TERM)",
		Set:  cmdline.Parsed(func(a *Ask) *string { return &a.Spec.StopSignal }, ParseSignalName)},
	{Long: "requeue", Env: []string{"SBATCH_REQUEUE"}, Kind: MayValue, Arg: "CAUSE,...", List: Partial, Group: groupTime,
		Help: "run again after these causes (all that have a budget left)",
		Note: "a list of causes may be given; without the option a gang is run again after node loss and preemption too",
		Set:  setRequeue},
	{Long: "max-time-total", Kind: Value, Arg: "TIME", Group: groupTime,
		Help: "with --requeue=timeout: how long all runs together may last",
		Set: func(a *Ask, v string) (err error) {
			a.Spec.MaxTimeTotal, err = ParseTime(v)
			if err == nil && a.Spec.MaxTimeTotal <= 0 {
				return bad("want more than nothing", "write --max-time-total=3-00:00:00")
			}
			return err
		}},
	{Long: "no-requeue", Env: []string{"SBATCH_NO_REQUEUE"}, List: Exact, Group: groupTime,
		Help: "never run again",
		Set:  func(a *Ask, _ string) error { a.noRequeue = true; return nil }},
	{Long: "max-retries", Kind: Value, Arg: "N", Group: groupTime,
		Help: "run again after a crash, at most N times (0)",
		Set:  func(a *Ask, v string) error { return numberPtr(&a.Spec.MaxRetries, v, 0, 1000000) }},
	{Long: "backoff-limit", Kind: Value, Arg: "N", Group: groupTime,
		Help: "run again after node loss, at most N times (5); without --max-retries after a crash too",
		Set:  func(a *Ask, v string) error { return numberPtr(&a.Spec.BackoffLimit, v, 0, 1000000) }},
	{Long: "stall-retries", Kind: Value, Arg: "N", Group: groupTime,
		Help: "run again after a stall or a hanging card, at most N times (3)",
		Set:  func(a *Ask, v string) error { return numberPtr(&a.Spec.StallRetries, v, 0, 1000000) }},

	{Long: "stall-timeout", Kind: Value, Arg: "TIME|off", Group: groupTime,
		Help: "a rank that has begun to beat may be silent so long (the site's, 120s)",
		Set:  setStallTimeout},
	{Long: "gpu-watch", Group: groupTime,
		Help: "run again when the cards do nothing for the site's window (300s)",
		Set:  func(a *Ask, _ string) error { a.Spec.GPUWatch = true; return nil }},

	{Long: "partition", Short: 'p', Env: []string{"SBATCH_PARTITION"}, Kind: Value, Arg: "NAME,...", List: Exact, Group: groupPlace,
		Help: "partition, or several of which any will do",
		Set:  func(a *Ask, v string) error { return nameListInto(&a.Spec.Partition, v) }},
	{Long: "nodelist", Short: 'w', Kind: Value, Arg: "n[1-4],...", List: Partial, Group: groupPlace,
		Help: "only these nodes",
		Note: "the gang runs on these nodes only (sbatch: at least on these)",
		Set:  func(a *Ask, v string) error { return hostsInto(&a.Spec.NodeList, v) }},
	{Long: "exclude", Short: 'x', Kind: Value, Arg: "n[1-4],...", List: Exact, Group: groupPlace,
		Help: "never these nodes",
		Set: func(a *Ask, v string) error {
			if a.Spec.Exclude = nil; v == "" {
				return nil
			}
			return hostsInto(&a.Spec.Exclude, v)
		}},
	{Long: "constraint", Short: 'C', Env: []string{"SBATCH_CONSTRAINT"}, Kind: Value, Arg: "a&b", List: Partial, Group: groupPlace,
		Help: "only nodes with these features: a&b, a|b, a&(b|c), [a|b] all the same one, a*2 at least so many nodes",
		Note: "all of Slurm's operators; a node that is counted has a rank, so that there are as many ranks at least",
		Set:  setConstraint},
	{Long: "prefer", Kind: Value, Arg: "a&b", List: Partial, Group: groupPlace,
		Help: "nodes with these features if it can start on such now, instead of --constraint",
		Note: "in Slurm's operators; what no nodes can ever meet is no reason to refuse the job",
		Set:  func(a *Ask, v string) error { return textInto(&a.Spec.Prefer, v) }},
	{Long: "switches", Env: []string{"SBATCH_REQ_SWITCH", "SBATCH_WAIT4SWITCH"}, Kind: Value, Arg: "N[@TIME]", List: Exact, Group: groupPlace,
		Help: "its nodes below at most N switches; after TIME (unless given: as long as the site says) anywhere",
		Set:  setSwitches},
	{Long: "reservation", Env: []string{"SBATCH_RESERVATION"}, Kind: Value, Arg: "NAME", List: Partial, Group: groupPlace,
		Help: "on the nodes of this reservation, while it lasts; gctl show reservation lists them",
		Note: "one name; what runs at its end runs on",
		Set:  setReservation},
	{Long: "time-min", Kind: Value, Arg: "TIME", List: Exact, Group: groupTime,
		Help: "the time limit may be cut down to this, for a deadline or to start before others' turn",
		Set:  setTimeMin},
	{Long: "deadline", Kind: Value, Arg: "TIME", List: Exact, Group: groupPlace,
		Help: "end by then, or do not start: 18:00, now+6hours, 2030-01-20T12:34:00",
		Set:  setDeadline},
	{Long: "begin", Short: 'b', Kind: Value, Arg: "TIME", List: Exact, Group: groupPlace,
		Help: "not before: 16:00, now+1hour, 2030-01-20T12:34:00",
		Set:  setBegin},
	{Long: "dependency", Short: 'd', Env: []string{"SBATCH_DEPENDENCY"}, Kind: Value, Arg: "KIND:ID[:ID...],...", List: Partial,
		Group: groupPlace,
		Help:  "after other jobs: afterok:12, afterany:12:13, after:12+10, aftercorr:12, singleton",
		Note:  "no expand and no afterburstbuffer; a job that left the queue counts as it ended",
		Set:   cmdline.Parsed(func(a *Ask) **api.Dependency { return &a.Spec.Dependency }, ParseDependency)},
	{Long: "kill-on-invalid-dep", Kind: Value, Arg: "yes|no", List: Exact, Group: groupPlace,
		Help: "end the job when its dependency can never be met (the site's choice, yes)",
		Set:  setInvalidDependency},
	{Long: "hold", Short: 'H', List: Exact, Group: groupPlace,
		Help: "queue it held; gctl release lets it go",
		Set:  func(a *Ask, _ string) error { a.Spec.Hold = true; return nil }},
	{Long: "priority", Kind: Value, Arg: "N", List: Exact, Group: groupPlace,
		Help: "priority, where the site allows it",
		Set:  setPriority},
	{Long: "nice", Kind: MayValue, Arg: "N", Default: "100", List: Exact, Group: groupPlace,
		Help: "lower the priority by N (100)",
		Set:  setNice},
	{Long: "account", Short: 'A', Env: []string{"SBATCH_ACCOUNT"}, Kind: Value, Arg: "NAME", List: Exact, Group: groupPlace,
		Help: "account to record the use under",
		Set:  func(a *Ask, v string) error { return textInto(&a.Spec.Account, v) }},

	{Long: "job-name", Short: 'J', Env: []string{"SBATCH_JOB_NAME"}, Kind: Value, Arg: "NAME", List: Exact, Group: groupFiles,
		Help: "name of the job (the script's)",
		Set:  func(a *Ask, v string) error { return textInto(&a.Spec.Name, v) }},
	{Long: "comment", Kind: Value, Arg: "TEXT", List: Exact, Group: groupFiles,
		Help: "free text kept with the job",
		Set:  func(a *Ask, v string) error { return noteInto(&a.Spec.Comment, v) }},
	{Long: "chdir", Short: 'D', Kind: Value, Arg: "DIR", List: Exact, Group: groupFiles,
		Help: "working directory of the job (this one)",
		Set:  func(a *Ask, v string) error { return lineInto(&a.Chdir, v) }},
	{Long: "output", Short: 'o', Env: []string{"SBATCH_OUTPUT"}, Kind: Value, Arg: "PATTERN", List: Partial, Group: groupFiles,
		Help: "output file (gang-%j.out): %j job, %x name, %A_%a array, %t rank, %N node, %r restart",
		Note: "directories are made; the default is gang-%j.out or gang-%A_%a.out; %t is the rank, %r the restart",
		Set:  func(a *Ask, v string) error { return a.pathInto(&a.Spec.Output, v) }},
	{Long: "error", Short: 'e', Env: []string{"SBATCH_ERROR"}, Kind: Value, Arg: "PATTERN", List: Partial, Group: groupFiles,
		Help: "file for errors (with the output)",
		Note: "as --output",
		Set:  func(a *Ask, v string) error { return a.pathInto(&a.Spec.Error, v) }},
	{Long: "input", Short: 'i', Env: []string{"SBATCH_INPUT"}, Kind: Value, Arg: "FILE", List: Partial, Group: groupFiles,
		Help: "file to read as standard input (/dev/null)",
		Note: "one path, no pattern",
		Set:  setInput},
	{Long: "open-mode", Env: []string{"SBATCH_OPEN_MODE"}, Kind: Value, Arg: "append|truncate", List: Partial, Group: groupFiles,
		Help: "what to do with an output that is already there (append)",
		Note: "the default is append, so that a restart never wipes what there was",
		Set:  setOpenMode},
	{Long: "export", Env: []string{"SBATCH_EXPORT"}, Kind: Value, Arg: "ALL|NONE|NAME[=VALUE],...", List: Partial, Group: groupFiles,
		Help: "environment of the job (ALL)",
		Note: "NONE gives the job HOME, USER, SHELL, PATH and its own variables; no login shell is run for it",
		Set: func(a *Ask, v string) error {
			a.Export = v
			_, err := ParseExport(v)
			return err
		}},

	{Long: "wrap", OnLine: true, Kind: Value, Arg: "COMMAND", List: Exact, Group: groupSubmit,
		Help: "submit a shell command instead of a script",
		Set: func(a *Ask, v string) error {
			if v == "" {
				return bad("the command is empty", "write --wrap='python train.py'")
			}
			a.Wrap = v
			return nil
		}},
	{Long: "wait", Short: 'W', Env: []string{"SBATCH_WAIT"}, List: Exact, Group: groupSubmit,
		Help: "wait for the end; the exit status is the job's (128+N after signal N)",
		Set:  func(a *Ask, _ string) error { a.Wait = true; return nil }},
	{Long: "follow", Short: 'f', Group: groupSubmit,
		Help: "show the output as it is written until the job ends; the exit status is the job's",
		Set:  func(a *Ask, _ string) error { a.Follow = true; return nil }},
	{Long: "parsable", List: Partial, Group: groupSubmit,
		Help: "print only the id",
		Note: "no cluster name behind the id: there is one cluster",
		Set:  func(a *Ask, _ string) error { a.Parsable = true; return nil }},
	{Long: "test-only", List: Partial, Group: groupSubmit,
		Help: "check, say when and where it would start, queue nothing",
		Note: "the answer goes to stdout and has the arithmetic",
		Set:  func(a *Ask, _ string) error { a.TestOnly = true; return nil }},
	{Long: "no-progress", Group: groupSubmit,
		Help: "no status line on the terminal while --wait or --follow waits",
		Set:  func(a *Ask, _ string) error { a.NoProgress = true; return nil }},
	{Long: "quiet", Short: 'Q', List: Exact, Group: groupSubmit,
		Help: "print nothing but errors",
		Set:  func(a *Ask, _ string) error { a.Quiet = true; return nil }},
	{Long: "verbose", Short: 'v', Env: []string{"SBATCH_DEBUG"}, List: Partial, Group: groupSubmit,
		Help: "say where each setting comes from",
		Note: "shows each setting with its place; there is one level",
		Set:  func(a *Ask, _ string) error { a.Verbose = true; return nil }},
	{Long: "timeout", OnLine: true, Kind: Value, Arg: "TIME", Group: groupSubmit,
		Help: cmdline.TimeoutHelp,
		Set: func(a *Ask, v string) error {
			d, err := cmdline.ParseTimeout(v)
			if err != nil {
				return bad(err.Error(), "")
			}
			a.Timeout = &d
			return nil
		}},
	{Long: "key", OnLine: true, Kind: Value, Arg: "KEY", Group: groupSubmit,
		Help: "queue at most one job by this key: a repeat gives the id of the first",
		Set: func(a *Ask, v string) error {
			if v == "" || len(v) > maxKey {
				return bad(fmt.Sprintf("want 1 to %d bytes", maxKey), "")
			}
			a.Key = v
			return nil
		}},
	{Long: "help", OnLine: true, Short: 'h', Kind: MayValue, Arg: "slurm", List: Exact, Group: groupSubmit,
		Help: "show this help; --help=slurm lists what became of sbatch's options",
		Set:  setHelp},
	{Long: "usage", OnLine: true, List: Exact, Group: groupSubmit,
		Help: "show one line of usage",
		Set:  func(a *Ask, _ string) error { a.Usage = true; return nil }},
	{Long: "version", OnLine: true, Short: 'V', List: Exact, Group: groupSubmit,
		Help: "print the version",
		Set:  func(a *Ask, _ string) error { a.Version = true; return nil }},
}

// onlyWord takes the one word that an option knows.
func onlyWord(option, word, without string, into func(*Ask) *string) func(*Ask, string) error {
	return func(a *Ask, v string) error {
		if v != word {
			return bad("not known", "write --"+option+"="+word+", or leave it out "+without)
		}
		*into(a) = v
		return nil
	}
}

func setHelp(a *Ask, v string) error {
	switch v {
	case "", "slurm":
		a.Help, a.HelpSlurm = v == "", v == "slurm"
		return nil
	}
	return bad("unknown topic", "write --help or --help=slurm")
}
