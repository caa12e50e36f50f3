package main

import (
	"github.com/spf13/cobra"

	"gangd/cmd/gangd/completion"
)

// slurmCompletionCommand is `gangd slurm-completion`: bash's completion of Slurm's names.
func slurmCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "slurm-completion",
		Short: "print the bash completion of sbatch, squeue, scancel ...",
		Long: "Prints a script for bash that completes the options of Slurm's commands as gangd takes them, and the names of\n" +
			"jobs, nodes and partitions. gangd's own commands have theirs: gqueue completion bash.",
		Example: `  source <(gangd slurm-completion)                                         in ~/.bashrc
  gangd slurm-completion >/etc/bash_completion.d/gangd-slurm               for everybody
  gangd slurm-completion | grep -- --resv-ports                            what is offered`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return completion.Write(cmd.OutOrStdout()) },
	}
}
