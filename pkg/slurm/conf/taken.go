package conf

import (
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/script"
)

// port is gangd's own.
const port = "7420"

// takenRows are the keys of which something comes.
var takenRows = []global{
	{name: "SlurmctldHost", take: (*site).controller},
	{name: "ControlMachine", take: (*site).controller},
	{name: "ControlAddr", take: (*site).controlAddr},
	{name: "KillWait", take: seconds("grace", Taken, "--grace in the script")},
	{name: "SlurmdTimeout", take: (*site).nodeTimeout},
	{name: "MinJobAge", take: (*site).keepEnded},
	{name: "BatchStartTimeout", take: seconds("start_timeout", Different, "it is for the whole gang to be ready, on every node")},
	{name: "MpiParams", take: (*site).mpiPorts},
	{name: "MpiDefault", take: (*site).mpiDefault},
	{name: "UnkillableStepTimeout", take: seconds("drain_slack", Different,
		"counted from the forced exit; what is not gone then is named, its cards are kept out of use and the gang goes on without it")},
	{name: "Prolog", take: nodeHook("prolog", "it is part of the start of each attempt; where it fails the job goes elsewhere, and the "+
		"node is drained at the third time")},
	{name: "Epilog", take: nodeHook("epilog", "it ends before the cards are given on; where it fails the node is drained until it succeeds")},
	{name: "TaskProlog", take: nodeHook("task_prolog", "it runs before ranks of gangs and batch scripts as well, and has hook_timeout")},
	{name: "TaskEpilog", take: nodeHook("task_epilog", "it runs after ranks of gangs and batch scripts as well, has hook_timeout, and "+
		"writes into the task's output")},
	{name: "PrologEpilogTimeout", take: (*site).hookTimeout},
	{name: "RebootProgram", take: (*site).rebootProgram},
	{name: "HealthCheckProgram", take: (*site).healthProgram},
	{name: "HealthCheckInterval", take: (*site).healthInterval},
	{name: "PreemptType", take: (*site).preemptType},
	{name: "PreemptMode", take: (*site).preemptMode},
	{name: "PreemptExemptTime", take: (*site).preemptExempt},
	{name: "JobRequeue", take: (*site).requeue},
	{name: "EnforcePartLimits", take: oneWord("ALL ANY YES NO", map[string]answer{
		"no": {Different, "what a partition does not allow is refused at submission, always"},
		"":   {Taken, "what a partition does not allow is refused at submission"}})},
	{name: "DependencyParameters", take: pieces(dependencyWords)},
	{name: "PriorityType", take: (*site).priorityType},
	{name: "PriorityWeightAge", take: weight("age")},
	{name: "PriorityWeightAssoc", take: weight("assoc")},
	{name: "PriorityWeightFairshare", take: weight("fairshare")},
	{name: "PriorityWeightJobSize", take: weight("size")},
	{name: "PriorityWeightPartition", take: weight("partition")},
	{name: "PriorityWeightQOS", take: weight("qos")},
	{name: "PriorityWeightTRES", take: func(s *site, i Item) {
		s.say(i, None, "the sizes of asks are weighed by order, not resource by resource")
	}},
	{name: "PriorityFavorSmall", take: func(s *site, i Item) {
		s.favorSmall = strings.EqualFold(i.Value, "yes")
		s.say(i, Different, "order=service puts the least expected use of the cards first")
	}},
	{name: "PriorityDecayHalfLife", take: (*site).halfLife},
	{name: "SchedulerType", take: oneWord("sched/backfill sched/builtin", map[string]answer{
		"sched/builtin": {Different, "gangs that fit around those before them start all the same, and delay none of them"},
		"":              {Taken, "backfill (backfill_depth = 8)"}})},
	{name: "SchedulerParameters", take: pieces(schedulerWords)},
	{name: "SelectType", take: oneWord("select/cons_res select/cons_tres select/linear select/cray_aries", map[string]answer{
		"select/linear": {Different, "nodes are shared; a job that wants whole ones says --exclusive"},
		"":              {Taken, "CPUs, memory and cards are given out one by one"}})},
	{name: "SelectTypeParameters", take: pieces(selectWords)},
	{name: "GresTypes", take: pieces(gresWords)},
	{name: "ProctrackType", take: oneWord("proctrack/cgroup proctrack/linuxproc proctrack/pgid proctrack/cray_aries", map[string]answer{
		"proctrack/cgroup": {Taken, "each member has a cgroup of its own"},
		"":                 {Different, "each member has a cgroup where the node has cgroups, else a process group and a search of /proc"}})},
	{name: "TaskPlugin", take: pieces(taskWords)},
	{name: "TaskPluginParam", take: func(s *site, i Item) {
		s.say(i, None, "the node binds each job to CPUs of its own (cpu_bind in gnoded.toml), and srun --cpu-bind tasks")
	}},
	{name: "Licenses", take: (*site).licenses},
	{name: "TopologyPlugin", take: oneWord("topology/none topology/tree topology/3d_torus topology/default topology/flat topology/block "+
		"topology/ring topology/torus3d", map[string]answer{
		"topology/tree":  {Taken, "topology.conf is read as it is (topology_file)"},
		"topology/block": {None, "blocks of nodes are not known: gangs are placed below few switches (topology_file)"},
		"":               {None, "no order of the nodes is assumed"}})},
	retired("CacheGroups"), retired("CheckpointType"), retired("CryptoType"), retired("FastSchedule"), retired("JobCheckpointDir"),
	retired("JobCredentialPrivateKey"), retired("JobCredentialPublicCertificate"), retired("MemLimitEnforce"),
	retired("SallocDefaultCommand"), retired("SchedulerAuth"), retired("AcctGatherInfinibandType"), retired("MsgAggregationParams"),
}

// retired is a key of older versions, which old files still have.
func retired(name string) global {
	return global{name: name, why: "Slurm 22.05 has dropped it, too"}
}

// answer is an outcome with its text.
type answer struct {
	outcome Outcome
	text    string
}

// oneWord takes one word of a list; "" is what is said of those that the map does not name. Of plug-ins later releases have more.
func oneWord(known string, out map[string]answer) func(*site, Item) {
	return func(s *site, item Item) {
		for _, w := range strings.Fields(known) {
			if !strings.EqualFold(w, item.Value) {
				continue
			}
			t, ok := out[strings.ToLower(w)]
			if !ok {
				t = out[""]
			}
			s.say(item, t.outcome, t.text)
			return
		}
		if !strings.Contains(known, "/") {
			s.wrong(item, "want one of "+strings.Join(strings.Fields(known), ", "))
			return
		}
		s.say(item, None, "that plug-in is not known here, left out; known are "+strings.Join(strings.Fields(known), ", "))
	}
}

// pieces says of each piece of a comma list what becomes of it.
func pieces(of map[string]answer) func(*site, Item) {
	return func(s *site, item Item) {
		for _, p := range strings.Split(item.Value, ",") {
			name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(p)), "=")
			t, ok := of[name]
			if !ok {
				t = of[""]
			}
			s.say(Item{item.Key, p}, t.outcome, t.text)
		}
		s.switchWait(item)
		if strings.EqualFold(item.Key, "DependencyParameters") && strings.Contains(strings.ToLower(item.Value), "kill_invalid_depend") {
			s.set["invalid_dependency"] = `"cancel"`
		}
	}
}

// switchWait takes max_switch_wait=SECONDS out of SchedulerParameters.
func (s *site) switchWait(item Item) {
	for _, p := range strings.Split(strings.ToLower(item.Value), ",") {
		v, ok := strings.CutPrefix(strings.TrimSpace(p), "max_switch_wait=")
		if !ok {
			continue
		}
		if n := s.number(Item{"max_switch_wait", v}); n >= 0 {
			s.set["max_switch_wait"] = duration(time.Duration(n) * time.Second)
		}
	}
}

var dependencyWords = map[string]answer{
	"kill_invalid_depend":      {Taken, `invalid_dependency = "cancel"`},
	"disable_remote_singleton": {None, noFederation},
	"max_depend_depth":         {None, "chains of dependencies have no limit, a circle of them can't be made"},
	"":                         {None, "no such word is known"},
}

var selectWords = map[string]answer{
	"cr_core_memory": {Taken, "memory is counted"}, "cr_cpu_memory": {Taken, "memory is counted"},
	"cr_socket_memory": {Different, "memory and CPUs are counted, a socket is never given as a whole"},
	"cr_memory":        {Taken, "memory is counted"},
	"cr_core":          {Different, "memory is counted, too, for jobs that ask for some"}, "cr_cpu": {Different,
		"memory is counted, too, for jobs " +
			"that ask for some"},
	"cr_socket": {Different, "CPUs are counted, a socket is never given as a whole"},
	"":          {None, "CPUs are counted, not placed"},
}

var gresWords = map[string]answer{
	"gpu": {Taken, "gnoded finds the cards"},
	"mps": {Different, "cards are shared by --share --vram=SIZE"}, "shard": {Different, "cards are shared by --share --vram=SIZE"},
	"": {None, "only cards are known as generic resources; a feature with --constraint tells nodes apart"},
}

var taskWords = map[string]answer{
	"task/cgroup":   {Taken, "memory and device files are limited by the member's cgroup"},
	"task/affinity": {Different, "each job has CPUs of its own (cpu_bind in gnoded.toml), and its processes can use no others"},
	"affinity":      {Different, "each job has CPUs of its own (cpu_bind in gnoded.toml), and its processes can use no others"},
	"cgroup":        {Taken, "memory and device files are limited by the member's cgroup"},
	"task/none":     {Different, "memory and device files are limited by the member's cgroup, where the node has cgroups"},
	"":              {None, "it is not known"},
}

// schedulerWords are the pieces of SchedulerParameters of which there is more to say.
var schedulerWords = func() map[string]answer {
	out := map[string]answer{
		"preempt_youngest_first": {Different, "of those that may be stopped the ones that lose least are, the latest start first among equals"},
		"preempt_strict_order":   {None, "a move is only made when the whole gang starts by it, and takes no more than needed"},
		"max_switch_wait":        {Taken, "max_switch_wait"},
		"nohold_on_prolog_fail":  {None, noJobHook},
		"requeue_setup_env_fail": {None, "no login shell is run for the environment"},
		"enable_user_top":        {None, "people order their own jobs by --nice"},
		"whole_hetjob":           {None, "there are no heterogeneous jobs; roles of one gang are"},
		"max_array_tasks":        {None, "an array has at most 10000 elements"},
		"":                       {None, "it tunes Slurm's own scheduler"},
	}
	for why, names := range map[string]string{
		"planning follows each event at once": "batch_sched_delay bf_interval sched_interval sched_min_interval " +
			"defer build_queue_timeout max_sched_time max_rpc_cnt bf_yield_interval bf_yield_sleep",
		"every plan looks at every waiting gang": "bf_max_job_test default_queue_depth partition_job_depth " +
			"bf_max_job_part bf_max_job_user bf_max_job_user_part bf_max_job_assoc bf_max_job_start sched_max_job_start bf_max_job_array_resv " +
			"bf_continue",
		"starts are foreseen as far as time limits reach, exactly": "bf_window bf_window_linear bf_resolution bf_node_space_size " +
			"bf_max_time",
		"the first gangs of the queue have places kept, see backfill_depth": "bf_job_part_count_reserve bf_min_age_reserve " +
			"bf_min_prio_reserve bf_one_resv_per_job bf_running_job_reserve",
	} {
		for _, n := range strings.Fields(names) {
			out[n] = answer{None, why}
		}
	}
	return out
}()

// controller is where nodes find gangd: the first host; NAME(ADDRESS).
func (s *site) controller(item Item) {
	if _, there := s.set["advertise"]; there {
		s.say(item, None, noBackup)
		return
	}
	host, addr, ok := strings.Cut(strings.TrimSuffix(item.Value, ")"), "(")
	if ok {
		host = addr
	}
	host, _, _ = strings.Cut(host, ",")
	if !nodeRE.MatchString(strings.ToLower(host)) {
		s.wrong(item, "want NAME or NAME(ADDRESS)")
		return
	}
	s.advertise(item, host)
}

// controlAddr is the address of ControlMachine, in files of older versions.
func (s *site) controlAddr(item Item) {
	if !nodeRE.MatchString(strings.ToLower(item.Value)) {
		s.wrong(item, "want a name or an address")
		return
	}
	s.advertise(item, item.Value)
}

func (s *site) advertise(item Item, host string) {
	s.set["listen"] = quote(":" + port)
	s.set["advertise"] = quote(host + ":" + port)
	s.say(item, Taken, says("advertise", s.set["advertise"], ""))
}

func (s *site) nodeTimeout(item Item) {
	switch n := s.number(item); {
	case n < 0:
	case n < 2:
		s.say(item, None, "a node that stays silent is always lost at last; node_timeout keeps its default")
	default:
		seconds("node_timeout", Taken, "")(s, item)
	}
}

func (s *site) keepEnded(item Item) {
	switch n := s.number(item); {
	case n == 0:
		s.say(item, None, "ended jobs always leave the queue at last, gacct shows them; keep_ended keeps its default")
	case n > 0:
		seconds("keep_ended", Taken, "gacct shows jobs for longer")(s, item)
	}
}

// nodeHook takes a hook of the nodes: a file, or all files of a directory.
func nodeHook(key, how string) func(*site, Item) {
	return func(s *site, item Item) {
		path := strings.TrimSuffix(item.Value, "/*")
		switch {
		case !strings.HasPrefix(path, "/"):
			s.wrong(item, "want an absolute path")
		case strings.ContainsAny(path, "*?[,"):
			s.say(item, None, key+" takes a file or a directory of files, no pattern")
		default:
			s.node[key] = quote(path)
			s.say(item, Different, says(key, s.node[key], how))
		}
	}
}

func (s *site) hookTimeout(item Item) {
	if n := s.number(item); n > 0 && n < 65534 { // Slurm's word for none
		s.node["hook_timeout"] = duration(time.Duration(n) * time.Second)
		s.say(item, Different, says("hook_timeout", s.node["hook_timeout"], "of each program"))
	} else if n >= 0 {
		s.say(item, None, "each program of a hook has 20s (hook_timeout)")
	}
}

func (s *site) healthProgram(item Item) {
	if !strings.HasPrefix(item.Value, "/") {
		s.wrong(item, "want an absolute path")
		return
	}
	s.node["health_program"] = quote(item.Value)
	s.say(item, Different, says("health_program", s.node["health_program"], "its exit status counts: 0 fit, 75 can't tell, else the node "+
		"is drained"))
}

func (s *site) rebootProgram(item Item) {
	if !strings.HasPrefix(item.Value, "/") {
		s.wrong(item, "want an absolute path")
		return
	}
	s.node["reboot_program"] = quote(item.Value)
	s.say(item, Different, says("reboot_program", s.node["reboot_program"], "it is run with the node's name, and never with features"))
}

func (s *site) healthInterval(item Item) {
	switch n := s.number(item); {
	case n < 0:
	case n == 0:
		s.say(item, None, "0 is Slurm's default of no checks; with health_program it is 5m")
	default:
		s.node["health_interval"] = duration(time.Duration(n) * time.Second)
		s.say(item, Taken, says("health_interval", s.node["health_interval"], ""))
	}
}

func (s *site) preemptType(item Item) {
	kind, ok := strings.CutPrefix(strings.ToLower(item.Value), "preempt/")
	text := map[string]answer{
		"none":           {Taken, `preempt = "off"`},
		"partition_prio": {Taken, "PreemptMode says whether"},
		"qos":            {Different, `there is no quality of service; with preempt = "tier" gangs take places of lower tiers and priorities`},
	}
	t, known := text[kind]
	if !ok || !known {
		s.wrong(item, "want preempt/none, preempt/partition_prio or preempt/qos")
		return
	}
	s.preempt = kind
	s.say(item, t.outcome, t.text)
}

func (s *site) preemptMode(item Item) {
	mode := strings.ToLower(item.Value)
	for _, w := range strings.Split(mode, ",") {
		switch strings.TrimSpace(w) {
		case "off", "cancel", "gang", "requeue", "suspend", "within":
		default:
			s.wrong(item, "want OFF, CANCEL, GANG, REQUEUE, SUSPEND or WITHIN")
			return
		}
	}
	s.mode = mode
	switch {
	case strings.Contains(mode, "suspend") || strings.Contains(mode, "gang"):
		s.say(item, Different, "nothing is suspended: a gang that gives way is told, stopped and run again")
	case strings.Contains(mode, "cancel"):
		s.say(item, Different, "a gang that gives way runs again; --no-requeue in the script ends it")
	default:
		s.say(item, Taken, "")
	}
}

// settlePreempt decides whether gangs take places.
func (s *site) settlePreempt() {
	if s.preempt != "none" && s.mode != "" && s.mode != "off" {
		s.set["preempt"] = `"tier"`
	}
}

func (s *site) preemptExempt(item Item) {
	if item.Value == "-1" {
		s.say(item, Taken, "the default")
		return
	}
	if d, ok := s.time(item); ok {
		s.set["preempt_min_run"] = duration(d)
		s.say(item, Taken, says("preempt_min_run", s.set["preempt_min_run"], ""))
	}
}

func (s *site) requeue(item Item) {
	switch s.number(item) {
	case -1:
	case 0:
		s.set["node_lost_retries"] = "0"
		s.say(item, Different, "node_lost_retries = 0; gangs that gave way run again, --no-requeue in the script says otherwise")
	default:
		s.say(item, Different, "a gang that lost a node runs again, at most 5 times (node_lost_retries)")
	}
}

// time reads one of Slurm's times; UNLIMITED is 0.
func (s *site) time(item Item) (time.Duration, bool) {
	if v := strings.ToUpper(item.Value); v == "UNLIMITED" || v == "INFINITE" {
		return 0, true
	}
	d, err := script.ParseTime(item.Value)
	if err != nil {
		s.wrong(item, err.Error())
		return 0, false
	}
	return d, true
}

// mpiPorts takes ports=FIRST-LAST; the other words of MpiParams are plug-ins'.
func (s *site) mpiPorts(item Item) {
	for _, p := range strings.Split(item.Value, ",") {
		one := Item{item.Key, p}
		name, ports, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "ports") {
			s.say(one, None, noPlugin)
			continue
		}
		first, last, _ := strings.Cut(ports, "-")
		a, err := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || a < 1024 || b > 65535 || a > b {
			s.wrong(one, "want ports=FIRST-LAST, both from 1024 to 65535")
			continue
		}
		s.set["ports"] = quote(ports)
		s.say(one, Taken, says("ports", quote(ports), "--resv-ports in the script"))
	}
}

func (s *site) mpiDefault(item Item) {
	v := strings.ToLower(item.Value)
	if strings.HasPrefix(v, "pmix_v") {
		v = api.MPIPMIx
	}
	switch v {
	case api.MPINone, api.MPIPMI2, api.MPIPMIx:
		s.set["mpi_default"] = quote(v)
		s.say(item, Taken, says("mpi_default", quote(v), "--mpi in the script"))
	default:
		s.wrong(item, "want none, pmi2 or pmix")
	}
}

// licenses are a table each. In old files a star stands before the number.
func (s *site) licenses(item Item) {
	pools, err := script.Pools("licence", strings.ReplaceAll(item.Value, "*", ":"))
	if err != nil {
		s.wrong(item, err.Error())
		return
	}
	s.licences = pools
	s.say(item, Taken, "a [[licence]] for each")
}
