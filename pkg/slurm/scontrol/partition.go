package scontrol

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
	"gangd/pkg/slurm"
)

const ownWishes = "jobs say what they want"

const noSuchLimit = "partitions have no limit of this kind; accounts have: gangd.toml(5)"

type setPartition = func(r *api.PartitionRequest, v string) error

var partitionParameters = []parameter[setPartition]{
	{"PartitionName", 4, cmdline.Exact, "", func(r *api.PartitionRequest, v string) error { r.Name = v; return nil }},
	{"AllocNodes", 3, cmdline.Refused, "jobs are submitted from every host", nil},
	{"AllowAccounts", 7, cmdline.Exact, "ALL: every account", nameList(func(r *api.PartitionRequest) **[]string { return &r.AllowAccounts })},
	{"AllowGroups", 7, cmdline.Exact, "ALL: everybody", nameList(func(r *api.PartitionRequest) **[]string { return &r.AllowGroups })},
	{"AllowQos", 7, cmdline.Refused, "there is no quality of service", nil},
	{"AllowUsers", 7, cmdline.Exact, "users besides those of AllowGroups, which Slurm does not have; ALL: everybody",
		nameList(func(r *api.PartitionRequest) **[]string { return &r.AllowUsers })},
	{"Alternate", 3, cmdline.Refused, "name several partitions at the submission", nil},
	{"CpuBind", 7, cmdline.Refused, "which CPUs a job has is chosen by its nodes, and how its tasks are bound to them by --cpu-bind", nil},
	{"Default", 7, cmdline.Exact, "YES takes it from the one that had it", setPartitionDefault},
	{"DefaultTime", 8, cmdline.Exact, "", func(r *api.PartitionRequest, v string) (err error) {
		r.DefaultTime,
			err = partitionTime(v)
		return err
	}},
	{"DefMemPerCPU", 10, cmdline.Refused, noSuchLimit, nil},
	{"DefMemPerNode", 10, cmdline.Refused, noSuchLimit, nil},
	{"DefCpuPerGPU", 10, cmdline.Refused, ownWishes, nil},
	{"DefMemPerGPU", 10, cmdline.Refused, ownWishes, nil},
	{"DenyAccounts", 5, cmdline.Exact, "not looked at with AllowAccounts",
		nameList(func(r *api.PartitionRequest) **[]string { return &r.DenyAccounts })},
	{"DenyQOS", 5, cmdline.Refused, "there is no quality of service", nil},
	{"DisableRootJobs", 7, cmdline.Refused, "each node says whose jobs run there", nil},
	{"ExclusiveUser", 3, cmdline.Refused, "jobs ask for --exclusive", nil},
	{"GraceTime", 5, cmdline.Refused, "the grace is the site's or the job's", nil},
	{"Hidden", 3, cmdline.Refused, "no partition is hidden", nil},
	{"JobDefaults", 4, cmdline.Refused, ownWishes, nil},
	{"LLN", 3, cmdline.Refused, "placement weighs what would be stranded", nil},
	{"MaxCPUsPerNode", 5, cmdline.Refused, noSuchLimit, nil},
	{"MaxCPUsPerSocket", 11, cmdline.Refused, noSuchLimit, nil},
	{"MaxMemPerCPU", 10, cmdline.Refused, noSuchLimit, nil},
	{"MaxMemPerNode", 10, cmdline.Refused, noSuchLimit, nil},
	{"MaxNodes", 4, cmdline.Exact, "UNLIMITED: any number", nodeNumber(func(r *api.PartitionRequest) **int { return &r.MaxNodes })},
	{"MaxTime", 4, cmdline.Exact, "", func(r *api.PartitionRequest, v string) (err error) { r.MaxTime, err = partitionTime(v); return err }},
	{"MinNodes", 2, cmdline.Exact, "", nodeNumber(func(r *api.PartitionRequest) **int { return &r.MinNodes })},
	{"Nodes", 1, cmdline.Exact, "", func(r *api.PartitionRequest, v string) error {
		names, err := hostlist.Expand(v)
		r.Nodes = &names
		return err
	}},
	{"OverSubscribe", 4, cmdline.Refused, "cards are shared by --share --vram", nil},
	{"OverTimeLimit", 5, cmdline.Refused, "a time limit is one", nil},
	{"PowerDownOnIdle", 3, cmdline.Refused, "gangd turns no nodes off", nil},
	{"PreemptMode", 3, cmdline.Refused, "who gives way is the site's preempt, gangd.toml(5)", nil},
	{"Priority", 3, cmdline.Partial, "the tier: larger first, before any priority", setTier},
	{"PriorityTier", 9, cmdline.Partial, "the tier: larger first, before any priority", setTier},
	{"PriorityJobFactor", 9, cmdline.Refused, "a job's priority is its own", nil},
	{"QoS", 3, cmdline.Refused, "there is no quality of service", nil},
	{"ReqResv", 3, cmdline.Refused, "jobs name a reservation", nil},
	{"RootOnly", 3, cmdline.Refused, "each node says whose jobs run there", nil},
	{"Shared", 2, cmdline.Refused, "cards are shared by --share --vram", nil},
	{"State", 2, cmdline.Exact, "UP, DOWN, DRAIN, INACTIVE", setPartitionState},
	{"TRESBillingWeights", 3, cmdline.Refused, "nothing is billed", nil},
}

// nameList reads names; ALL and nothing are everybody.
func nameList(of func(*api.PartitionRequest) **[]string) setPartition {
	return func(r *api.PartitionRequest, v string) error {
		names := []string{}
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
		*of(r) = &names
		return nil
	}
}

// nodeNumber reads a number of nodes; none is any.
func nodeNumber(of func(*api.PartitionRequest) **int) setPartition {
	return func(r *api.PartitionRequest, v string) error {
		switch strings.ToUpper(v) {
		case "UNLIMITED", "INFINITE", "-1":
			*of(r) = new(int)
			return nil
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return &invalidValue{"node count"}
		}
		*of(r) = &n
		return nil
	}
}

func setPartitionDefault(r *api.PartitionRequest, v string) error {
	yes := strings.EqualFold(v, "YES")
	if !yes && !strings.EqualFold(v, "NO") {
		return errors.New("Invalid input: Default=" + v + "\nAcceptable Default values are \"NO\" and \"YES\"")
	}
	r.Default = &yes
	return nil
}

func setTier(r *api.PartitionRequest, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return &invalidValue{"Priority"}
	}
	r.Tier = &n
	return nil
}

func setPartitionState(r *api.PartitionRequest, v string) error {
	states := map[string]api.PartitionState{"UP": api.PartitionUp, "DOWN": api.PartitionDown, "DRAIN": api.PartitionDrain,
		"INACTIVE": api.PartitionInactive}
	s, ok := states[strings.ToUpper(v)]
	if !ok {
		return errors.New("Invalid input: State=" + v + "\nAcceptable State values are \"UP\", \"DOWN\", \"DRAIN\" and \"INACTIVE\"")
	}
	r.State = &s
	return nil
}

// partitionTime reads a limit; none is unlimited.
func partitionTime(v string) (*time.Duration, error) {
	switch strings.ToUpper(v) {
	case "UNLIMITED", "INFINITE", "NONE", "-1":
		return new(time.Duration), nil
	}
	d, err := script.ParseTime(v)
	if err != nil || strings.ContainsAny(v, "smhdSMHD") {
		return nil, &invalidValue{"time"}
	}
	return &d, nil
}

// putPartition is create and update of a partition.
func (c *call) putPartition(args []string, change bool) int {
	if _, _, given := strings.Cut(args[0], "="); !given && len(args) > 1 { // "create partition ..."
		args = args[1:]
	}
	req := &api.PartitionRequest{}
	if !assign(c, args, partitionParameters, req) {
		return 1
	}
	if req.Name == "" {
		c.say("PartitionName must be given.")
		return 1
	}
	err := c.client.PutPartition(c.ctx, req, change)
	if err == nil {
		return 0
	}
	what := "slurm_create_partition error"
	if change {
		what = "slurm_update error"
	}
	c.say("%s: %s", what, partitionWords(err))
	c.sayWhy(err)
	return 1
}

// partitionWords are Slurm's of what is refused of partitions.
func partitionWords(err error) string {
	switch api.ReasonOf(err) {
	case api.ReasonPartitionUsed:
		return "Partition is in use"
	case api.ReasonPartition:
		if api.CodeOf(err) == api.CodeConflict {
			return "Partition name already in use"
		}
		return slurmErrors[errPartition]
	case api.ReasonNode:
		return slurmErrors[errNode]
	}
	return slurm.Words(forOperators(err))
}

// reconfigure has the controller read its file again, and makes what that says of partitions and features hold in place of what was
// changed at run time.
func (c *call) reconfigure([]string) int {
	reply, err := c.client.Reload(c.ctx)
	if err == nil {
		err = c.client.ResetPartitions(c.ctx)
	}
	if err != nil {
		return c.failed("slurm_reconfigure error", err)
	}
	for i := range reply.Restart {
		c.say("%s takes a restart of gangd", reply.Restart[i].Key)
	}
	return 0
}
