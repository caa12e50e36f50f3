package slurmlab

import (
	"fmt"
	"strings"
)

// Options are the cluster that is wanted.
type Options struct {
	Dir        string // made; everything lies in it
	Nodes      int    // n1, n2 ...
	CPUs       int    // of each node
	Memory     int    // MB of each node
	GPUs       int    // simulated cards of each node, 0: none and no gres at all
	FirstJob   int    // the first job's id, 0: 1
	Accounting bool   // slurmdbd on a private mariadbd, so that sacct answers
	Bound      bool   // tasks are bound to CPUs (task/affinity): CPUs are then the machine's
	// NodeWords and PartitionWords are appended to the lines of nodes and partition.
	NodeWords, PartitionWords string
	// Scheduler is added to SchedulerParameters: "bf_interval=1".
	Scheduler string
	// More are lines for the end of slurm.conf.
	More string
}

// base is tuned for latency: no delay of batch jobs, no minimum interval between plans.
const base = `ClusterName=gangd
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[3]d
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge.sock
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool.%%n
SlurmctldPidFile=%[2]s/ctld.pid
SlurmdPidFile=%[2]s/d.%%n.pid
SlurmctldLogFile=%[2]s/ctld.log
SlurmdLogFile=%[2]s/d.%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=%[4]s
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1%[5]s
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxArraySize=20000
MaxJobCount=50000
SlurmdParameters=config_overrides
`

// slurmConf is slurm.conf; ports are slurmctld's, the nodes' and slurmdbd's.
func slurmConf(o Options, host string, ports []int) string {
	var b strings.Builder
	plugin := "task/none"
	if o.Bound {
		plugin = "task/affinity"
	}
	scheduler := ""
	if o.Scheduler != "" {
		scheduler = "," + o.Scheduler
	}
	fmt.Fprintf(&b, base, host, o.Dir, ports[0], plugin, scheduler)
	if o.FirstJob > 0 {
		fmt.Fprintf(&b, "FirstJobId=%d\n", o.FirstJob)
	}
	if o.Accounting {
		fmt.Fprintf(&b, "JobAcctGatherType=jobacct_gather/linux\nAccountingStorageType=accounting_storage/slurmdbd\n"+
			"AccountingStorageHost=127.0.0.1\nAccountingStoragePort=%d\nAccountingStoragePass=%s/munge.sock\n", ports[o.Nodes+1], o.Dir)
	} else {
		b.WriteString("JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n")
	}
	gres := ""
	if o.GPUs > 0 {
		b.WriteString("GresTypes=gpu\n")
		gres = fmt.Sprintf(" Gres=gpu:%d", o.GPUs)
	}
	b.WriteString(o.More)
	for i := 1; i <= o.Nodes; i++ {
		fmt.Fprintf(&b, "NodeName=n%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d Sockets=1 CoresPerSocket=%[4]d ThreadsPerCore=1 "+
			"RealMemory=%d State=UNKNOWN%s%s\n",
			i, host, ports[i], o.CPUs, o.Memory, gres, words(o.NodeWords))
	}
	fmt.Fprintf(&b, "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP%s\n", words(o.PartitionWords))
	return b.String()
}

// gresConf names the device files of the cards.
func gresConf(o Options) string {
	if o.GPUs == 0 {
		return ""
	}
	return fmt.Sprintf("NodeName=n[1-%d] Name=gpu File=%s/nvidia[0-%d]\n", o.Nodes, o.Dir, o.GPUs-1)
}

const dbdConf = `AuthType=auth/munge
AuthInfo=socket=%[1]s/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=%[2]d
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%[3]d
StorageUser=lab
StoragePass=lab
StorageLoc=lab
LogFile=%[1]s/dbd.log
PidFile=%[1]s/dbd.pid
`

func words(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}
