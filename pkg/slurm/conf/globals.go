package conf

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// global is a key of slurm.conf outside of nodes and partitions: what takes it, or why
// nothing does.
type global struct {
	name string
	take func(*site, Item)
	why  string
}

// Reasons that many keys share.
const (
	noAccounting   = "there is no accounting database: the controller keeps every attempt itself, gacct (sacct) shows it"
	noGather       = "gnoded measures every job's cards, memory and CPU time itself"
	noPower        = "nodes are not switched on and off"
	noLaunch       = "there is one way to start ranks"
	noPlugin       = "there are no plug-ins"
	noJobContainer = "--job-container=FILE reads job_container.conf, which says what is private (private_dirs in gnoded.toml)"
	noPlugstack    = "--plugstack=FILE reads it: pyxis is known, and there are no plug-ins"
	noBackup       = "there is one controller; running ranks outlive its restart, and nodes go on without it"
	noLog          = "daemons log to standard error, in the journal under systemd; see log_format"
	noPidFile      = "systemd knows the daemons' processes"
	noJobHook      = "hooks run on the nodes of a job alone, around each attempt (prolog, epilog of gnoded.toml)"
	noMail         = "gangd sends mail itself: set mail_server, and mail_domain for users' addresses"
	noCray         = "Cray's hardware is not known"
	noFederation   = "there is one cluster"
	noDebug        = "there is one level; gctl events and gqueue --why say what Slurm's debug levels do"
	noCache        = "gangd asks the system for names and groups each time"
	noTimeout      = "nodes hold one connection that both sides watch; node_timeout is what counts"
	noFreq         = "clock rates are the node's"
	noBurst        = "there are no burst buffers"
	noLicense      = "licences are counted here alone; no server of them is asked"
	noBcast        = "files are not broadcast to nodes"
	noX11          = "X11 is not forwarded"
	noFuzzPrio     = "waiting gangs are ordered by one rule (order), not by a sum of factors"
	noTLS          = "daemons speak TLS to each other always, by certificates of gangd's own (gangd token new)"
	noMetrics      = "gangd always has them: /metrics on its socket, and on metrics_listen"
	noHookTime     = "each program of a hook has hook_timeout, and the health program its interval"
	noCluster      = "there is no name of the cluster"
)

// globalRows is every key of slurm.conf of Slurm 21.08 to 26.05 that stands by itself. A test holds
// it against the recorded lists.
var globalRows = slices.Concat(takenRows, whyRows(noAccounting,
	`AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost
	AccountingStorageHost AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES AccountingStorageType
	AccountingStorageUser AccountingStoreFlags JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPort JobCompType JobCompUser MaxDBDMsgs
	TrackWCKey`),
	whyRows(noGather, `AcctGatherNodeFreq AcctGatherEnergyType AcctGatherInterconnectType AcctGatherFilesystemType AcctGatherProfileType
	JobAcctGatherType JobAcctGatherFrequency JobAcctGatherParams ExtSensorsFreq ExtSensorsType`),
	whyRows(noPower, `ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout SuspendExcNodes SuspendExcParts SuspendProgram SuspendRate
	SuspendTime SuspendTimeout PowerParameters PowerPlugin ReconfigFlags`),
	// Of 23.02 and later.
	whyRows(noPower, `SuspendExcStates PowerAction`),
	whyRows(noPlugin, `CliFilterParameters DataParserParameters HashPlugin HttpParserType UrlParserType`),
	whyRows(noTLS, `CertmgrParameters CertmgrType CertgenParameters CertgenType TLSParameters TLSType SlurmctldHttpAuthParameters `+
		`SlurmdHttpAuthParameters`),
	whyRows(noAccounting, `AccountingStorageLoc AccountingStoreJobComment JobCompPassScript`), whyRows(noLicense, `LicenseParameters`),
	whyRows(noJobContainer, `NamespaceType`),
	whyRows(noMetrics, `MetricsType MetricsParameters MetricsAuthUsers`), whyRows(noHookTime,
		`PrologTimeout EpilogTimeout HealthCheckTimeout`),
	whyRows(noLaunch, `LaunchType LaunchParameters InteractiveStepOptions SwitchType SwitchParameters TreeWidth RoutePlugin
	SrunPortRange PropagatePrioProcess`),
	whyRows(noPlugin, `PluginDir CliFilterPlugins JobSubmitPlugins NodeFeaturesPlugins PrEpPlugins PrEpParameters
	PrioritySiteFactorParameters PrioritySiteFactorPlugin SlurmctldPlugstack BcastParameters`),
	whyRows(noBackup, `BackupAddr BackupController SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldTimeout`),
	whyRows(noLog, `SlurmctldLogFile SlurmdLogFile SlurmSchedLogFile LogTimeFormat SlurmctldSyslogDebug SlurmdSyslogDebug`),
	whyRows(noDebug, `SlurmctldDebug SlurmdDebug DebugFlags SlurmSchedLogLevel`),
	whyRows(noPidFile, `SlurmctldPidFile SlurmdPidFile`),
	whyRows(noJobHook, `PrologSlurmctld EpilogSlurmctld PrologFlags EpilogMsgTime ResvProlog ResvEpilog SrunProlog SrunEpilog`),
	whyRows(noMail, `MailProg MailDomain`),
	whyRows(noCray, `CoreSpecPlugin`),
	whyRows(noFederation, `FederationParameters`),
	whyRows(noCache, `GroupUpdateForce GroupUpdateTime GetEnvTimeout UsePAM`),
	whyRows(noTimeout, `KeepAliveTime MessageTimeout TCPTimeout EioTimeout InactiveLimit WaitTime CompleteWait CommunicationParameters`),
	whyRows(noFreq, `CpuFreqDef CpuFreqGovernors GpuFreqDef`),
	whyRows(noBurst, `BurstBufferType BurstBufferParameters`),
	whyRows(noBcast, `BcastExclude SbcastParameters`),
	whyRows(noX11, `X11Parameters`),
	whyRows(noFuzzPrio,
		`PriorityCalcPeriod PriorityFlags PriorityMaxAge PriorityParameters PriorityUsageResetPeriod FairShareDampeningFactor`),
	whyRows(noJobContainer, `JobContainerType`), whyRows(noPlugstack, `PlugStackConfig`),
	[]global{
		{name: "AllowSpecResourcesUsage", why: "CoreSpecCount and MemSpecLimit are kept from every job"},
		{name: "AuthAltTypes", why: "people are known by the kernel's word, nodes and login hosts by certificates"},
		{name: "AuthAltParameters", why: "people are known by the kernel's word, nodes and login hosts by certificates"},
		{name: "AuthInfo", why: "munge is not needed: people are known by the kernel's word, nodes and login hosts by certificates"},
		{name: "AuthType", why: "munge is not needed: people are known by the kernel's word, nodes and login hosts by certificates"},
		{name: "CredType", why: "munge is not needed: steps are authenticated by gangd"},
		{name: "ClusterName", why: noCluster},
		{name: "SlurmctldAddr", why: "nodes are told one address, advertise"},
		{name: "DefCpuPerGPU", why: "a job gets the CPUs that it asks for; --cpus-per-gpu in the script"},
		{name: "DefMemPerCPU", why: "a job that asks for no memory gets no share of its own counted; --mem in the script"},
		{name: "DefMemPerGPU", why: "a job that asks for no memory gets no share of its own counted; --mem in the script"},
		{name: "DefMemPerNode", why: "a job that asks for no memory gets no share of its own counted; --mem in the script"},
		{name: "DisableRootJobs", why: "gnoded's min_uid (1000) refuses root's jobs anyway"},
		{name: "FirstJobId", why: "ids begin at 1 and are never used again"},
		{name: "HealthCheckNodeState", why: "health_program runs whatever the node does"},
		{name: "JobFileAppend", why: "output is appended to; --open-mode=truncate in the script"},
		{name: "KillOnBadExit", why: "a dying rank always ends its gang, and a dying task its step"},
		{name: "MaxBatchRequeue", why: "a node that fails a job's launches is left for another, and the job fails after launch_retries"},
		{name: "PreemptParameters", why: "of those that may be stopped the ones that lose least are"},
		{name: "MaxArraySize", why: "an array has at most 10000 elements"},
		{name: "MaxJobCount", why: "the queue has no limit of its own"},
		{name: "MaxJobId", why: "ids are never used again"},
		{name: "MaxMemPerCPU", why: "memory is limited by what a node has"},
		{name: "MaxMemPerNode", why: "memory is limited by what a node has"},
		{name: "MaxNodeCount", why: "nodes join with a token, none is configured beforehand"},
		{name: "MaxStepCount", why: "steps are not counted"},
		{name: "MaxTasksPerNode", why: "ranks are limited by CPUs and cards"},
		{name: "MCSParameters", why: "there are no security labels"},
		{name: "MCSPlugin", why: "there are no security labels"},
		{name: "OverTimeLimit", why: "the time limit is exact; scripts that need longer ask with --time"},
		{name: "PrivateData", why: "everyone sees the queue; scripts, environments and output are the owner's alone"},
		{name: "PropagateResourceLimits", why: "resource limits are the node's; set them with ulimit in the script"},
		{name: "PropagateResourceLimitsExcept", why: "resource limits are the node's; set them with ulimit in the script"},
		{name: "RequeueExit", why: "no exit status asks for another run; --max-retries in the script runs a crash again"},
		{name: "RequeueExitHold", why: "no exit status holds a job"},
		{name: "ResvOverRun", why: "a reservation ends when it ends"},
		{name: "ReturnToService", why: "a node that comes back is used again at once, unless a person or health_program has drained it"},
		{name: "SchedulerTimeSlice", why: "gangs do not take turns on the same cards"},
		{name: "ScronParameters", why: "scrontab is always there; gcancel switches a line off without --cron"},
		{name: "SlurmctldParameters", why: "none of its words is needed: nodes join by themselves"},
		{name: "SlurmctldPort", why: "gangd listens on 7420 (listen)"},
		{name: "SlurmdParameters", why: "gnoded finds out what the node has"},
		{name: "SlurmdPort", why: "no daemon on a node listens on the network"},
		{name: "SlurmdSpoolDir", why: "gnoded keeps its state in its own state_dir, /var/lib/gnoded"},
		{name: "SlurmdUser", why: "gnoded is root, to switch user and own cgroups"},
		{name: "SlurmUser", why: "gangd runs as the user of its systemd unit"},
		{name: "StateSaveLocation", why: "gangd keeps its state in its own state_dir, /var/lib/gangd, in another form"},
		{name: "TmpFS", why: "a node says what it has: on the disk of private_path, else of /tmp"},
		{name: "TopologyParam", why: "switches are a tree, read from topology_file"},
		{name: "UnkillableStepProgram", why: "fence_hook is run by the controller with a node's name, and not on the node: what it has to do " +
			"is another thing"},
		{name: "VSizeFactor", why: "address space is not limited"},
	})

func whyRows(why, names string) []global {
	var out []global
	for _, n := range strings.Fields(names) {
		out = append(out, global{name: n, why: why})
	}
	return out
}

var globals = func() map[string]global {
	out := map[string]global{}
	for _, r := range globalRows {
		out[strings.ToLower(r.name)] = r
	}
	return out
}()

// globalNames is every key that a line of slurm.conf may begin with.
func globalNames() []string {
	out := []string{"NodeName", "PartitionName", "NodeSet", "DownNodes", "FrontendName", "Include"}
	for _, k := range slices.Sorted(maps.Keys(globals)) {
		out = append(out, globals[k].name)
	}
	return out
}

// number reads a plain number; -1 after an error.
func (s *site) number(item Item) int {
	n, err := strconv.Atoi(item.Value)
	if err != nil || n < 0 || n > 1<<30 {
		s.wrong(item, "want a number")
		return -1
	}
	return n
}

// seconds reads a number of seconds into a setting.
func seconds(key string, o Outcome, text string) func(*site, Item) {
	return func(s *site, item Item) {
		if n := s.number(item); n >= 0 {
			s.set[key] = duration(time.Duration(n) * time.Second)
			s.say(item, o, says(key, s.set[key], text))
		}
	}
}

// says begins a text with the setting that came of it.
func says(key, value, text string) string {
	if text != "" {
		text = "; " + text
	}
	return key + " = " + value + text
}

// duration is a TOML string that pkg/controller/config reads.
func duration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit && d%u.unit == 0 {
			return quote(strconv.FormatInt(int64(d/u.unit), 10) + u.name)
		}
	}
	return quote(strconv.FormatInt(int64(d/time.Second), 10) + "s")
}
