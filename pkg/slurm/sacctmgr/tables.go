package sacctmgr

import (
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/accttable"
)

// col is a column; key is by what format= names it, when that is not its header.
func col(name string, width int, key string) accttable.Column {
	return accttable.Column{Name: name, Width: width, Key: key}
}

// limits are columns of limits that gangd does not have: always empty.
var limits = []accttable.Column{
	col("GrpJobs", 7, ""), col("GrpTRES", 13, ""), col("GrpSubmit", 9, "GrpSubmitJobs"), col("GrpWall", 11, ""), col("GrpTRESMins", 13, ""),
	col("GrpTRESRunMin", 13, "GrpTRESRunMins"), col("MaxJobs", 7, ""), col("MaxTRES", 13, "MaxTRESPerJob"), col("MaxTRESPerNode", 14, ""),
	col("MaxSubmit", 9, "MaxSubmitJobs"), col("MaxWall", 11, "MaxWallDurationPerJob"), col("MaxTRESMins", 13, "MaxTRESMinsPerJob"),
	col("MaxNodes", 8, "MaxNodesPerJob"), col("MaxCPUs", 8, "MaxCPUsPerJob"), col("MaxCPUMins", 11, "MaxCPUMinsPerJob"),
}

// fields are the columns that format= may name of any entity, whether it has them or not: then they are empty.
var fields = []accttable.Column{
	col("ActionRaw", 10, ""), col("Action", 20, ""), col("Actor", 10, ""), col("Admin", 9, "AdminLevel"), col("% Allowed", 10, "Allowed"),
	col("Assocs", 10, "Associations"), col("TRES", 20, ""), col("Class", 9, "Classification"), col("Cluster Nodes", 20, "ClusterNodes"),
	col("Cluster", 10, "Clusters"), col("Coord Accounts", 20, "Coordinators"), col("ControlHost", 15, ""), col("ControlPort", 12, ""),
	col("Count", 6, ""), col("# Allowed", 10, "CountAllowed"), col("# Used", 10, "CountUsed"), col("CPU Cnt", 7, "CPUCount"),
	col("Def Acct", 10, "DefaultAccount"), col("Def QOS", 9, "DefaultQOS"), col("Def WCKey", 10, "DefaultWCKey"),
	col("Descr", 20, "Description"),
	col("Duration", 13, ""), col("EventRaw", 8, ""), col("Event", 7, ""), col("Features", 20, ""), col("Federation", 10, ""),
	col("FedState", 12, ""),
	col("FedStateRaw", 11, ""), col("Flags", 20, ""), col("GraceTime", 10, ""), col("GrpCPUs", 8, ""), col("GrpCPUMins", 11, ""),
	col("GrpCPURunMins", 13, ""), col("GrpJobsAccrue", 13, ""), col("GrpMem", 7, "GrpMemory"), col("GrpNodes", 8, ""), col("ID", 6, ""),
	col("Index", 5, ""), col("Info", 20, ""), col("LastConsumed", 12, ""), col("LFT", 6, ""), col("Lineage", 20, ""), col("ServerType",
		10, ""), col("MaxCPURunMinsPU", 15, "MaxCPURunMinsPerUser"),
	col("MaxCPURunMinsPU", 15, ""),
	col("MaxCPUsPU", 9, "MaxCPUsPerUser"), col("MaxCPUsPU", 9, ""), col("MaxTRESRunMinsPA", 15, "MaxTRESRunMinsPerAccount"),
	col("MaxTRESRunMinsPA", 15, ""),
	col("MaxTRESRunMinsPU", 15, "MaxTRESRunMinsPerUser"), col("MaxTRESRunMinsPU", 15, ""), col("MaxTRESPA", 13, "MaxTRESPerAccount"),
	col("MaxTRESPA", 13, "MaxTRESPerAcct"), col("MaxTRESPA", 13, ""), col("MaxTRESPU", 13, "MaxTRESPerUser"), col("MaxTRESPU", 13, ""),
	col("MaxJobsAccrue", 13, ""), col("MaxJobsAccruePA", 15, "MaxJobsAccruePerAccount"), col("MaxJobsAccruePA", 15, ""),
	col("MaxJobsAccruePU", 15, "MaxJobsAccruePerUser"), col("MaxJobsAccruePU", 15, ""), col("MaxJobsPA", 9, "MaxJobsPerAccount"),
	col("MaxJobsPA", 9, "MaxJobsPerAcct"), col("MaxJobsPA", 9, ""), col("MaxJobsPU", 9, "MaxJobsPerUser"), col("MaxJobsPU", 9, ""),
	col("MaxNodesPU", 10, "MaxNodesPerUser"), col("MaxNodesPU", 10, ""), col("MinPrioThres", 12, "MinPrioThreshold"),
	col("MaxSubmitPA", 11, "MaxSubmitJobsPerAccount"), col("MaxSubmitPA", 11, "MaxSubmitJobsPA"), col("MaxSubmitPA", 11, ""),
	col("MaxSubmitPU", 11, "MaxSubmitJobsPerUser"), col("MaxSubmitPU", 11, "MaxSubmitJobsPU"), col("MaxSubmitPU", 11, ""),
	col("MinCPUs", 8, "MinCPUsPerJob"), col("MinTRES", 13, "MinTRESPerJob"), col("Name", 10, ""), col("NodeCount", 9, ""),
	col("NodeInx", 9, ""),
	col("NodeName", -15, "NodeNames"), col("Org", 20, "Organization"), col("ParentID", 8, ""), col("ParentName", 10, ""),
	col("Partition", 10, ""),
	col("PluginIDSelect", 14, ""), col("PreemptMode", 11, ""), col("Preempt", 10, ""), col("PreemptExemptTime", 19, ""),
	col("Priority", 10, ""),
	col("Problem", 40, ""), col("QOS", 20, "QOSLevel"), col("QOS_RAW", 10, "QOSRAWLevel"), col("Reason", 30, ""), col("RGT", 6, ""),
	col("RPC", 5, ""),
	col("Server", 10, ""), col("Share", 9, ""), col("Share", 9, "FairShare"), col("StateRaw", 8, ""), col("State", 6, ""),
	col("Time", 19, "TimeStamp"),
	col("TimeEligible", 19, ""), col("TimeEligible", 19, "Eligible"), col("TimeEnd", 19, ""), col("TimeEnd", 19, "End"),
	col("TimeStart", 19, ""),
	col("TimeStart", 19, "Start"), col("TimeSubmit", 19, ""), col("TimeSubmit", 19, "Submit"), col("Type", 8, ""), col("UnusedWall", 10, ""),
	col("UsageFactor", 11, ""), col("UsageThres", 10, "UsageThreshold"), col("LimitFactor", 11, ""), col("% Allocated", 11, "Allocated"),
	col("User", 10, ""), col("Account", 10, ""), col("Account", 10, "Acct"), col("WCKeys", 20, ""), col("Where", 20, ""),
}

var (
	userColumn    = col("User", 10, "")
	accountColumn = col("Account", 10, "")
	clusterColumn = col("Cluster", 10, "")
	shareColumn   = col("Share", 9, "")
)

// table is one entity of show.
type table struct {
	name     string // of the entity
	columns  []accttable.Column
	format   string // shown without format=
	withAssc string // the same with withassoc; empty: no difference
	rows     func(q *query) ([]map[string]string, error)
	keys     []string // conditions: user=x; a row has what it is asked for, as far as it has a column of that name
	note     string
}

var tables = []table{
	{name: "Account", keys: []string{"names", "accounts", "acct", "clusters", "users", "descriptions", "organizations", "flags"},
		columns: append([]accttable.Column{accountColumn, col("Descr", 20, "Description"), col("Org", 20, "Organization"), clusterColumn,
			userColumn, shareColumn, col("QOS", 20, ""), col("Def QOS", 9, "DefaultQOS"), col("Par Name", 10, "ParentName")}, limits...),
		format: "account,description,organization", rows: accountRows, note: "accounts that jobs of the last 30 days named; any may be named"},
	{name: "Association", keys: []string{"users", "accounts", "clusters", "names", "partitions", "ids", "associations"},
		columns: append([]accttable.Column{clusterColumn, accountColumn, userColumn, col("Partition", 10, ""), shareColumn,
			col("Priority", 10, ""),
			col("QOS", 20, ""), col("Def QOS", 9, "DefaultQOS"), col("ID", 6, ""), col("Par Name", 10, "ParentName"), col("Fairshare", 9, "")},
			limits...),
		format: "cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,grptresmins,maxjobs,maxtresperjob," +
			"maxtrespernode,maxsubmit,maxwall,maxtresmins,qos,defaultqos,grptresrunmins",
		rows: associationRows, note: "users with the accounts that their jobs of the last 30 days named"},
	{name: "Cluster", keys: []string{"names", "clusters", "federations", "classification", "flags", "pluginidselect", "rpcversions"},
		columns: append([]accttable.Column{clusterColumn, col("ControlHost", 15, ""), col("ControlPort", 12, ""), col("RPC", 5, ""), shareColumn,
			col("QOS", 20, ""), col("Def QOS", 9, "DefaultQOS"), col("NodeCount", 10, ""), col("TRES", 20, "")}, limits...),
		format: "cluster,controlhost,controlport,rpc,share,grpjobs,grptres,grpsubmit,maxjobs,maxtresperjob,maxsubmit,maxwall,qos,defaultqos",
		rows:   clusterRows, note: "one cluster, " + cmdline.Cluster},
	{name: "Federation", keys: []string{"names", "federations", "clusters"},
		columns: []accttable.Column{col("Federation", 10, ""), clusterColumn, col("ID", 2, ""), col("Features", 20, ""), col("FedState", 12, "")},
		format:  "federation,cluster,id,features,fedstate", rows: noRows, note: "none"},
	{name: "Problem", keys: []string{"users", "accounts", "acct", "clusters", "ids", "partitions", "problems"},
		columns: []accttable.Column{clusterColumn, accountColumn, userColumn, col("Problem", 40, "")}, format: "cluster,account,user,problem",
		rows: noRows, note: "none"},
	{name: "QOS", keys: []string{"names", "qoslevel", "clusters", "descriptions", "ids", "preemptmode"},
		columns: append([]accttable.Column{col("Name", 10, ""), col("Priority", 10, ""), col("GraceTime", 10, ""), col("Preempt", 10, ""),
			col("PreemptExemptTime", 19, ""), col("PreemptMode", 11, ""), col("Flags", 40, ""), col("UsageThres", 10, "UsageThreshold"),
			col("UsageFactor", 11, ""), col("MaxTRESPU", 13, "MaxTRESPerUser"), col("MaxJobsPU", 9, "MaxJobsPerUser"),
			col("MaxSubmitPU", 11, "MaxSubmitJobsPerUser"),
			col("MaxTRESPA", 13, "MaxTRESPerAccount"), col("MaxJobsPA", 9, "MaxJobsPerAccount"), col("MaxSubmitPA", 11, "MaxSubmitJobsPerAccount"),
			col("MinTRES", 13, "MinTRESPerJob")}, limits...),
		format: "name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags,usagethreshold,usagefactor,grptres,grptresmins," +
			"grptresrunmins,grpjobs,grpsubmit,grpwall,maxtresperjob,maxtrespernode,maxtresmins,maxwall,maxtresperuser,maxjobsperuser," +
			"maxsubmitjobsperuser,maxtresperaccount,maxjobsperaccount,maxsubmitjobsperaccount,mintres",
		rows: noRows, note: "none: gangd has no quality of service"},
	{name: "Resource", keys: []string{"names", "clusters", "descriptions", "flags", "ids", "servers", "servertype", "types"},
		columns: []accttable.Column{col("Name", 10, ""), col("Server", 10, ""), col("Type", 8, ""), col("Count", 6, ""),
			col("% Allocated", 11, "Allocated"), col("ServerType", 10, "")},
		format: "name,server,type,count,allocated,servertype", rows: noRows, note: "none"},
	{name: "TRES", keys: []string{"names", "types", "ids"},
		columns: []accttable.Column{col("Type", 8, ""), col("Name", 15, ""), col("ID", 6, "")}, format: "type,name,id", rows: tresRows},
	{name: "User", keys: []string{"names", "users", "accounts", "clusters", "adminlevel", "defaultaccount", "defaultwckey", "wckeys"},
		columns: append([]accttable.Column{userColumn, col("Def Acct", 10, "DefaultAccount"), col("Admin", 9, "AdminLevel"), clusterColumn,
			accountColumn,
			col("Partition", 10, ""), shareColumn, col("Priority", 10, ""), col("QOS", 20, ""), col("Def QOS", 9, "DefaultQOS"),
			col("Fairshare", 9, ""),
			col("Coord Accounts", 20, "Coordinators"), col("Def WCKey", 10, "DefaultWCKey")}, limits...),
		format: "user,defaultaccount,adminlevel",
		withAssc: "user,defaultaccount,adminlevel,cluster,account,partition,share,priority,maxjobs,maxnodes,maxcpus,maxsubmit,maxwall," +
			"maxcpumins,qos,defaultqos",
		rows: userRows, note: "users with jobs in the last 30 days, and those who are asked for and known on this host"},
	{name: "WCKey", keys: []string{"names", "wckeys", "users", "clusters", "ids", "end", "start"},
		columns: []accttable.Column{col("WCKey", 10, ""), clusterColumn, userColumn},
		format:  "wckey,cluster,user", rows: noRows, note: "none"},
}

// elsewhere are entities that are answered by another command.
var elsewhere = map[string]string{
	"configuration": "scontrol show config",
	"coordinator":   "gctl show account; nobody coordinates one",
	"event":         "gctl events --follow, and gctl show node",
	"instance":      "gctl show node",
	"job":           "sacct",
	"reservation":   "scontrol show reservation",
	"runawayjobs":   "gangd verify",
	"stats":         "the controller's /metrics",
	"transaction":   "gctl events",
}

func noRows(*query) ([]map[string]string, error) { return nil, nil }

func userRows(q *query) ([]map[string]string, error) {
	all, err := associations(q.of("names", "users"))
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	seen := ""
	for _, a := range all {
		if !q.keeps("accounts", a.account) || !q.withAssoc && a.user == seen {
			continue
		}
		seen = a.user
		row := map[string]string{"User": a.user, "Def Acct": a.account, "Admin": adminLevel(a.user)}
		if q.withAssoc {
			row["Cluster"], row["Account"], row["Share"] = cmdline.Cluster, a.account, "1"
		}
		out = append(out, row)
	}
	return out, nil
}

func associationRows(q *query) ([]map[string]string, error) {
	all, err := associations(q.of("users"))
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	for _, a := range all {
		if q.keeps("accounts", a.account) {
			out = append(out, map[string]string{"Cluster": cmdline.Cluster, "Account": a.account, "User": a.user, "Share": "1"})
		}
	}
	return out, nil
}

func accountRows(q *query) ([]map[string]string, error) {
	all, err := associations(q.of("users"))
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	for _, a := range accounts(all) {
		if q.keeps("names", a) && q.keeps("accounts", a) {
			out = append(out, map[string]string{"Account": a, "Descr": a, "Org": cmdline.Cluster})
		}
	}
	return out, nil
}

func clusterRows(q *query) ([]map[string]string, error) {
	if !q.keeps("names", cmdline.Cluster) || !q.keeps("clusters", cmdline.Cluster) {
		return nil, nil
	}
	return []map[string]string{{"Cluster": cmdline.Cluster, "ControlHost": "127.0.0.1", "ControlPort": "0", "RPC": "9728", "Share": "1"}}, nil
}

func tresRows(*query) ([]map[string]string, error) {
	var out []map[string]string
	for _, line := range strings.Split("cpu - 1,mem - 2,node - 4,billing - 5,gres gpu 1001", ",") {
		f := strings.Fields(line)
		out = append(out, map[string]string{"Type": f[0], "Name": strings.Trim(f[1], "-"), "ID": f[2]})
	}
	return out, nil
}
