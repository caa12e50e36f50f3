package scontrol

import (
	"fmt"

	"gangd/pkg/api"
)

// notSet are the keys of Slurm's configuration that stand for nothing of gangd's, with what Slurm prints where they are not set, or where
// there is one answer only.
var notSet = [][2]string{
	{"AccountingStorageBackupHost", "(null)"},
	{"AccountingStorageExternalHost", "(null)"},
	{"AccountingStorageHost", "localhost"},
	{"AccountingStorageParameters", "(null)"},
	{"AccountingStoragePort", "0"},
	{"AccountingStorageTRES", "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu"}, // what is counted
	{"AccountingStorageUser", "N/A"},
	{"AccountingStoreFlags", "(null)"},
	{"AcctGatherEnergyType", "acct_gather_energy/none"},
	{"AcctGatherFilesystemType", "acct_gather_filesystem/none"},
	{"AcctGatherInterconnectType", "acct_gather_interconnect/none"},
	{"AcctGatherNodeFreq", "0 sec"},
	{"AcctGatherProfileType", "acct_gather_profile/none"},
	{"AllowSpecResourcesUsage", "No"},
	{"AuthAltParameters", "(null)"},
	{"AuthAltTypes", "(null)"},
	{"AuthInfo", "(null)"},
	{"BcastExclude", "(null)"},
	{"BcastParameters", "(null)"},
	{"CommunicationParameters", "(null)"},
	{"CoreSpecPlugin", "core_spec/none"},
	{"CpuFreqDef", "Unknown"},
	{"CpuFreqGovernors", "(null)"},
	{"CredType", "cred/gangd"},
	{"DebugFlags", "(null)"},
	{"DefMemPerNode", "UNLIMITED"},
	{"EioTimeout", "60"},
	{"Epilog", "(null)"},
	{"EpilogMsgTime", "2000 usec"},
	{"EpilogSlurmctld", "(null)"},
	{"ExtSensorsFreq", "0 sec"},
	{"ExtSensorsType", "ext_sensors/none"},
	{"FirstJobId", "1"},
	{"GetEnvTimeout", "2 sec"},
	{"GpuFreqDef", "(null)"},
	{"GroupUpdateForce", "1"},
	{"GroupUpdateTime", "0 sec"}, // groups are looked up at each submission
	{"HASH_VAL", "Match"},        // there is one configuration
	{"HealthCheckInterval", "0 sec"},
	{"HealthCheckNodeState", "ANY"},
	{"HealthCheckProgram", "(null)"},
	{"InteractiveStepOptions", "--interactive --preserve-env --pty $SHELL"},
	{"JobAcctGatherFrequency", "60"}, // use is told once a minute
	{"JobAcctGatherParams", "(null)"},
	{"JobCompHost", "localhost"},
	{"JobCompLoc", "(null)"},
	{"JobCompPort", "0"},
	{"JobCompUser", "root"},
	{"JobContainerType", "job_container/none"},
	{"JobCredentialPrivateKey", "(null)"},
	{"JobCredentialPublicCertificate", "(null)"},
	{"JobDefaults", "(null)"},
	{"LaunchParameters", "(null)"},
	{"LogTimeFormat", "iso8601_ms"},
	{"MCSParameters", "(null)"},
	{"MULTIPLE_SLURMD", "No"},
	{"MailDomain", "(null)"},
	{"MailProg", "(null)"},
	{"MaxDBDMsgs", "0"},
	{"MaxMemPerNode", "UNLIMITED"},
	{"MpiParams", "(null)"},
	{"PluginDir", "(null)"},
	{"PowerParameters", "(null)"},
	{"PowerPlugin", ""},
	{"PrEpParameters", "(null)"},
	{"PrEpPlugins", "(null)"},
	{"PriorityParameters", "(null)"},
	{"PrioritySiteFactorParameters", "(null)"},
	{"PrioritySiteFactorPlugin", "(null)"},
	{"Prolog", "(null)"},
	{"PrologEpilogTimeout", "65534"},
	{"PrologSlurmctld", "(null)"},
	{"PropagateResourceLimits", "ALL"},
	{"PropagateResourceLimitsExcept", "(null)"},
	{"ReconfigFlags", "(null)"},
	{"RequeueExit", "(null)"},
	{"RequeueExitHold", "(null)"},
	{"ResumeFailProgram", "(null)"},
	{"ResumeRate", "300 nodes/min"},
	{"ResumeTimeout", "60 sec"},
	{"ResvEpilog", "(null)"},
	{"ResvOverRun", "0 min"},
	{"ResvProlog", "(null)"},
	{"RoutePlugin", "route/default"},
	{"SchedulerTimeSlice", "30 sec"},
	{"ScronParameters", "enable"}, // users have cron tables
	{"SlurmSchedLogFile", "(null)"},
	{"SlurmSchedLogLevel", "0"},
	{"SlurmctldAddr", "(null)"},
	{"SlurmctldDebug", "info"},
	{"SlurmctldLogFile", "(null)"}, // the journal
	{"SlurmctldParameters", "(null)"},
	{"SlurmctldPidFile", "(null)"},
	{"SlurmctldPlugstack", "(null)"},
	{"SlurmctldPort", "0"},
	{"SlurmctldPrimaryOffProg", "(null)"},
	{"SlurmctldPrimaryOnProg", "(null)"},
	{"SlurmctldSyslogDebug", "(null)"},
	{"SlurmctldTimeout", "0 sec"},
	{"SlurmdDebug", "info"},
	{"SlurmdLogFile", "(null)"}, // the journal
	{"SlurmdParameters", "(null)"},
	{"SlurmdPidFile", "(null)"},
	{"SlurmdPort", "0"},
	{"SlurmdSpoolDir", "(null)"},
	{"SlurmdSyslogDebug", "(null)"},
	{"SrunPortRange", "0-0"},
	{"StateSaveLocation", "(null)"},
	{"SuspendExcNodes", "(null)"},
	{"SuspendExcParts", "(null)"},
	{"SuspendRate", "60 nodes/min"},
	{"SuspendTime", "INFINITE"},
	{"SuspendTimeout", "30 sec"},
	{"SwitchParameters", "(null)"},
	{"TCPTimeout", "2 sec"},
	{"TaskEpilog", "(null)"},
	{"TaskPluginParam", "(null type)"},
	{"TaskProlog", "(null)"},
	{"TmpFS", "/tmp"},
	{"TopologyParam", "(null)"},
	{"TreeWidth", "65533"}, // each node speaks with the controller itself
	{"UnkillableStepProgram", "(null)"},
	{"VSizeFactor", "0 percent"},
	{"X11Parameters", "(null)"},
}

// pmixKeys are those of Slurm's mpi.conf.
var pmixKeys = [][2]string{
	{"PMIxCliTmpDirBase", "(null)"},
	{"PMIxCollFence", "(null)"},
	{"PMIxDebug", "0"},
	{"PMIxDirectConn", "no"},
	{"PMIxDirectConnEarly", "no"},
	{"PMIxDirectConnUCX", "no"},
	{"PMIxDirectSameArch", "no"},
	{"PMIxEnv", "(null)"},
	{"PMIxFenceBarrier", "no"},
	{"PMIxNetDevicesUCX", "(null)"},
	{"PMIxTimeout", "300"},
	{"PMIxTlsUCX", "(null)"},
}

// ofController are keys of which the controller knows the value.
func ofController(p *api.PingReply) [][2]string {
	const maxID = 1<<63 - 1
	number := func(n any) string { return fmt.Sprint(n) }
	out := [][2]string{
		{"MaxJobId", number(int64(maxID))}, {"MaxNodeCount", number(p.Nodes)}, {"MaxStepCount", number(api.MaxSteps)},
		{"MessageTimeout", "10 sec"}, // of commands, where no option says another
		{"ReturnToService", "2"},     // a node that comes back is used again
	}
	if p.NextJobID > 0 {
		out = append(out, [2]string{"NEXT_JOB_ID", number(p.NextJobID)})
	}
	if p.Site != nil && p.Site.MaxJobs > 0 {
		out = append(out, [2]string{"MaxJobCount", number(p.Site.MaxJobs)})
	} else {
		out = append(out, [2]string{"MaxJobCount", "UNLIMITED"})
	}
	return out
}
