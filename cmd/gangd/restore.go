package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/client/cli"
	"gangd/pkg/controller"
	"gangd/pkg/controller/config"
)

// restoreCommand is `gangd restore`: a backup takes the place of the state directory.
func restoreCommand() *cobra.Command {
	var file string
	var set []string
	var dry, discard bool
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "put a backup in the place of the state, while gangd is stopped",
		Long: "Looks at each row of the backup in DIR and of the store that is there now, says which commits are lost, and puts\n" +
			"the backup in its place. What was there stays beside it. Where the store that is there can be read and has more\n" +
			"than the backup, it is refused without --discard: that store is the better one.",
		Example: `  gangd restore --dry-run --config=/etc/gangd/gangd.toml /var/backups/gangd/gangd-20261129T100500Z
  gangd restore --config=/etc/gangd/gangd.toml /var/backups/gangd/gangd-20261129T100500Z
  gangd restore --discard --config=/etc/gangd/gangd.toml before-upgrade   lose what came after it`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			cfg, err := config.LoadController(file, set)
			if err != nil {
				return err
			}
			if cfg.Database != "" {
				return fmt.Errorf("the state is in a database: gangd store copy --from=%s --to=DATABASE fills an empty one", from)
			}
			if cfg.StateDir == from {
				return cli.Usagef("%s is the state directory itself", from)
			}
			r, err := controller.PlanRestore(cmd.Context(), cfg.StateDir, from)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprint(out, r.Text())
			if n := r.Lost(); n > 0 && !discard && !dry {
				return fmt.Errorf("nothing was changed: the store in %s can be read, and %d commits of it would be lost: start gangd with it, or "+
					"restore with --discard", r.To, n)
			}
			if dry {
				return nil
			}
			aside, err := r.Do(time.Now())
			if err != nil {
				return err
			}
			if aside != "" {
				fmt.Fprintf(out, "done     what was there is in %s\n", aside)
			} else {
				fmt.Fprintf(out, "done\n")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&dry, "dry-run", false, "say what would be lost, and change nothing")
	f.BoolVar(&discard, "discard", false, "lose the commits that the store has and the backup has not")
	f.StringVar(&file, "config", "", "configuration `FILE` that names the state directory")
	f.StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	return cmd
}
