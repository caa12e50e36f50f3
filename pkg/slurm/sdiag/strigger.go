package sdiag

import (
	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
)

const noTriggers = "read, and then refused: gangd runs no programs for what happens"

var striggerCommand = &cmdline.Command[struct{}]{Name: "strigger", Does: noTriggers,
	Usage: "Usage: strigger [--set | --get | --clear] [OPTIONS]\n", Options: []cmdline.Option[struct{}]{
		{Long: "primary_slurmctld_failure", Short: 'a', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_slurmctld_resumed_operation", Short: 'A', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_slurmctld_resumed_control", Short: 'b', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "backup_slurmctld_failure", Short: 'B', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "backup_slurmctld_resumed_operation", Short: 'c', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "backup_slurmctld_assumed_control", Short: 'C', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "down", Short: 'd', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "drained", Short: 'D', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_slurmctld_acct_buffer_full", Short: 'e', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "fini", Short: 'f', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "fail", Short: 'F', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_slurmdbd_failure", Short: 'g', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_slurmdbd_resumed_operation", Short: 'G', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_database_failure", Short: 'h', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "primary_database_resumed_operation", Short: 'H', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "id", Short: 'i', Kind: cmdline.Required, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "idle", Short: 'I', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "jobid", Short: 'j', Kind: cmdline.Required, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "clusters", Names: "clusters cluster", Short: 'M', Kind: cmdline.Required,
			List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "node", Short: 'n', Kind: cmdline.Optional, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "noheader", Short: 'N', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "offset", Short: 'o', Kind: cmdline.Required, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "program", Short: 'p', Kind: cmdline.Required, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "quiet", Short: 'Q', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "reconfig", Short: 'r', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "time", Short: 't', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "up", Short: 'u', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "burst_buffer", List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "clear", List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "flags", Kind: cmdline.Required, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "front_end", List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "get", List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "set", List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "user", Kind: cmdline.Required, List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "draining", List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		{Long: "resume", Short: 'R', List: cmdline.Partial, Help: noTriggers, Set: cmdline.Accepted[struct{}]},
		cmdline.HelpRow[struct{}](0),
		cmdline.UsageRow[struct{}](),
		slurm.VersionRow[struct{}](),
	}}

// Strigger is strigger: refused, whatever is asked of it but what it is.
func Strigger(args []string, s cmdline.Streams) int {
	rest, err := striggerCommand.Parse(&struct{}{}, args, s)
	if err == nil {
		err = striggerCommand.NoMore(rest, s)
	}
	if err != nil {
		return cmdline.Exit(err)
	}
	s.Errorf("strigger", "gangd runs no programs for what happens: follow gctl events -f --json; "+
		"an administrator may name programs for idle and for lost nodes; of one job gsubmit --signal tells it in time, and gsubmit -d runs "+
		"another when it has ended")
	return 1
}
