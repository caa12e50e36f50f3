package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/dev"
	"gangd/pkg/slurm/links"
)

// linksCommand is `gangd slurm-links`: the names of Slurm's commands for gangd's programs.
func linksCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "slurm-links DIR",
		Short: "make sbatch, squeue, scancel ... links to gangd's programs",
		Long: "Makes a symbolic link of each of Slurm's commands in DIR to the program of gangd that answers to the\n" +
			"name, so that scripts and tools written for Slurm find them. See gangd-slurm(7).",
		Example: `  gangd slurm-links /opt/gangd/slurm          then put /opt/gangd/slurm into PATH
  gangd slurm-links ~/slurm                   for one person
  gangd slurm-links -f /usr/local/bin         replace what is there`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			bin, err := dev.Bin()
			if err != nil {
				return err
			}
			r, err := links.Make(args[0], bin, force)
			if err != nil {
				return err
			}
			if len(r.Missing) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "gangd: not beside gangd in %s, so without their names: %s\n", bin, strings.Join(r.Missing, ", "))
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "# %s\n", strings.Join(r.Made, " "))
			fmt.Fprintf(out, "export PATH=%s:\"$PATH\"\n", dev.Quote(r.Dir))
			fmt.Fprintf(out, "# the tab key in bash: source <(gangd slurm-completion)\n")
			return nil
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "replace files of these names that gangd did not make")
	return cmd
}
