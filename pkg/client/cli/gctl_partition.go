package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/jobfield"
)

func newPartition() *cobra.Command {
	cmd := group("partition", "make, change and delete partitions at run time",
		`  gctl partition update gpu --state=drain   what is queued starts, and no more is queued
  gctl partition create course --nodes=n[1-2] --max-time=2:00:00
  gctl partition reset                      all as gangd's configuration says`)
	show := newShowPartition()
	show.Use, show.Aliases = "show [NAME...]", nil
	cmd.AddCommand(newPutPartition(false), newPutPartition(true), newPartitionDelete(), newPartitionReset(), show)
	return cmd
}

// whoWins is said where something is changed that a file says too.
const whoWins = `What is changed holds over restarts of gangd, for as long as its configuration says of
the partition what it said then; a configuration that was edited since is the newer
word, and holds. gctl show partition has both.`

var partitionStates = []string{"up", "down", "drain", "inactive"}

// newPutPartition is create, or with change update.
func newPutPartition(change bool) *cobra.Command {
	var nodes, state, defaultTime, maxTime, users, groups, accounts, denied string
	var tier, minNodes, maxNodes int
	var byDefault bool
	use, short := "create NAME", "make a partition"
	example := `  gctl partition create course --nodes=n[1-2] --max-time=2:00:00
  gctl partition create night --tier=-1 --state=down    nothing of it starts yet
  gctl partition update night --state=up                now it does`
	if change {
		use, short = "update NAME", "change a partition"
		example = `  gctl partition update gpu --state=drain          what is queued starts, and no more is queued
  gctl partition update long --default --nodes=ALL --max-time=1-0 --default-time=4:00:00
  gctl partition update debug --max-nodes=2 --allow-groups=staff,vision`
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Long: "States: up; down, jobs are queued and do not start; drain, they start and no more are\nqueued; inactive, neither. What runs " +
			"runs on. " + whoWins,
		Args: func(cmd *cobra.Command, args []string) error {
			args, err := setByWords(cmd, args)
			if err != nil {
				return err
			}
			if len(args) != 1 {
				return Usagef("one partition is named: %s gpu; gctl show partition lists them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := setByWords(cmd, args)
			if err != nil {
				return err
			}
			r := &api.PartitionRequest{Name: args[0]}
			given := cmd.Flags().Changed
			if given("nodes") {
				names, err := hostlist.Expand(nodes)
				if err != nil {
					return Usagef("--nodes=%s: %w", nodes, err)
				}
				r.Nodes = &names
			}
			if given("state") {
				st := api.PartitionState(strings.ToLower(state))
				if !slices.Contains(partitionStates, string(st)) {
					return Usagef("--state=%s: want %s", state, strings.Join(partitionStates, ", "))
				}
				if st == "up" {
					st = api.PartitionUp
				}
				r.State = &st
			}
			for _, limit := range []struct {
				name, value string
				to          **time.Duration
			}{{"default-time", defaultTime, &r.DefaultTime}, {"max-time", maxTime, &r.MaxTime}} {
				if !given(limit.name) {
					continue
				}
				d, err := partitionLimit(limit.value)
				if err != nil {
					return Usagef("--%s=%s: %w", limit.name, limit.value, err)
				}
				*limit.to = &d
			}
			for _, list := range []struct {
				name, value string
				to          **[]string
			}{{"allow-users", users, &r.AllowUsers}, {"allow-groups", groups, &r.AllowGroups}, {"allow-accounts", accounts, &r.AllowAccounts},
				{"deny-accounts", denied, &r.DenyAccounts}} {
				if given(list.name) {
					names := slices.DeleteFunc(strings.Split(list.value, ","), func(s string) bool { return s == "" })
					*list.to = &names
				}
			}
			if given("min-nodes") {
				r.MinNodes = &minNodes
			}
			if given("max-nodes") {
				r.MaxNodes = &maxNodes
			}
			if given("tier") {
				r.Tier = &tier
			}
			if given("default") {
				r.Default = &byDefault
			}
			if change && *r == (api.PartitionRequest{Name: args[0]}) {
				return Usagef("nothing to change was given: %s --help has what can be changed", cmd.CommandPath())
			}
			return client.New().PutPartition(cmd.Context(), r, change)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	if change {
		cmd.ValidArgsFunction = completePartitions
	}
	f := cmd.Flags()
	f.StringVar(&nodes, "nodes", "", "its nodes, `n[1-4],...`; ALL: every node, also those to come")
	f.StringVar(&state, "state", "", "`STATE`: "+strings.Join(partitionStates, ", "))
	f.StringVar(&defaultTime, "default-time", "", "limit of jobs that name none, `TIME`: 30, 4:00:00, 1-0; none")
	f.StringVar(&maxTime, "max-time", "", "longest limit of a job, `TIME`; none")
	f.StringVar(&users, "allow-users", "", "`USER,...` who may run jobs in it, besides those of --allow-groups; ALL: everybody")
	f.StringVar(&groups, "allow-groups", "", "`GROUP,...` whose members may; ALL: everybody")
	f.StringVar(&accounts, "allow-accounts", "", "`ACCOUNT,...` under which jobs run in it; ALL: any")
	f.StringVar(&denied, "deny-accounts", "", "`ACCOUNT,...` under which none do, without --allow-accounts; ALL: none is denied")
	f.IntVar(&minNodes, "min-nodes", 0, "fewest nodes of a job, `N`; 0: any")
	f.IntVar(&maxNodes, "max-nodes", 0, "most nodes of a job, `N`; 0: any")
	f.IntVar(&tier, "tier", 0, "`N`: jobs of a larger one go first, before any priority")
	f.BoolVar(&byDefault, "default", false, "jobs that name none are of this one")
	_ = cmd.RegisterFlagCompletionFunc("state", completeWith(func() []string { return slices.Clone(partitionStates) }))
	return cmd
}

func partitionLimit(s string) (time.Duration, error) {
	if strings.EqualFold(s, "none") || strings.EqualFold(s, "unlimited") {
		return 0, nil
	}
	return script.ParseTime(s)
}

func newPartitionDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Short: "take partitions away that no job is of",
		Example: `  gctl partition delete course
  gctl partition update course --state=inactive   while jobs of it are there
  gctl partition reset                            and one of the configuration is back`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("no partition given: %s gpu; gctl show partition lists them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c := client.New()
			return forEach(cmd, args, func(name string) error { return c.DeletePartition(cmd.Context(), name) })
		},
		ValidArgsFunction: completePartitions,
	}
}

func newPartitionReset() *cobra.Command {
	return &cobra.Command{
		Use: "reset", Short: "make partitions and features of nodes as configured", Args: cobra.NoArgs,
		Example: `  gctl partition reset
  gctl show partition     what there is then
  scontrol reconfigure    the same by Slurm's name`,
		Long: "Takes back what was changed at run time. A partition that was made then goes, unless jobs\nare of it.",
		RunE: func(cmd *cobra.Command, _ []string) error { return client.New().ResetPartitions(cmd.Context()) },
	}
}

func newNodeFeatures() *cobra.Command {
	return &cobra.Command{
		Use: "features NODES FEATURE,...", Short: "say which features nodes have, for --constraint",
		Example: `  gctl node features n[1-4] a100,nvlink   in place of those they had
  gctl node features n3 ''                none
  gctl partition reset                    as each gnoded's configuration says`,
		Long: "They hold over restarts, until the node's configuration says other features than it\nsaid then.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return Usagef("nodes and their features are needed: %s n[1-4] a100,nvlink; '' for none", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var features []string
			if args[1] != "" {
				features = strings.Split(args[1], ",")
			}
			return nodeAction(cmd, "features", args[:1], &api.NodeAction{Features: features})
		},
		ValidArgsFunction: completeNodes,
	}
}

// partitionText is what a file or a person said of a partition.
func partitionText(p *api.Partition) string {
	if p == nil {
		return "(none)"
	}
	text := fmt.Sprintf("State=%s DefaultTime=%s MaxTime=%s Tier=%d Nodes=%s", partitionState(p),
		jobfield.TimeLimit(int64(p.DefaultTime/time.Second)),
		jobfield.TimeLimit(int64(p.MaxTime/time.Second)), p.Tier, partitionNodes(p))
	if p.MinNodes > 0 || p.MaxNodes > 0 {
		text += " " + nodeBounds(p)
	}
	if who := whoMay(p); who != "" {
		text += " " + who
	}
	return text
}

func nodeBounds(p *api.Partition) string {
	most := "UNLIMITED"
	if p.MaxNodes > 0 {
		most = strconv.Itoa(p.MaxNodes)
	}
	return fmt.Sprintf("MinNodes=%d MaxNodes=%s", p.MinNodes, most)
}

// whoMay says for whom a partition is; empty: for everybody.
func whoMay(p *api.Partition) string {
	var out []string
	for _, l := range []struct {
		key string
		of  []string
	}{{"AllowUsers", p.AllowUsers}, {"AllowGroups", p.AllowGroups}, {"AllowAccounts", p.AllowAccounts}, {"DenyAccounts", p.DenyAccounts}} {
		if len(l.of) > 0 {
			out = append(out, l.key+"="+strings.Join(l.of, ","))
		}
	}
	return strings.Join(out, " ")
}

func partitionState(p *api.Partition) string {
	if p.State == api.PartitionUp {
		return "UP"
	}
	return strings.ToUpper(string(p.State))
}

func partitionNodes(p *api.Partition) string {
	if len(p.Nodes) == 0 {
		return "ALL"
	}
	return hostlist.Compress(p.Nodes)
}

// changedLines say who changed a partition since the configuration was read, and what that says of it.
func changedLines(name string, changes []api.PartitionChange) []string {
	for i := range changes {
		if c := &changes[i]; c.Name == name {
			return []string{fmt.Sprintf("ChangedBy=%s ChangeTime=%s", jobfield.OrNull(c.By), jobfield.Stamp(c.Time)), "Configured: " +
				partitionText(c.File)}
		}
	}
	return nil
}
