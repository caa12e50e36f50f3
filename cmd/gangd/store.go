package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"gangd/pkg/client/cli"
	"gangd/pkg/client/statusline"
	"gangd/pkg/controller/store/pgstore"
)

// storeCommand is `gangd store`: what is done to a store while no controller uses it.
func storeCommand() *cobra.Command {
	var from, to string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "copy --from=STORE --to=STORE",
		Short: "copy a store into an empty one, and compare them",
		Long: "Copies all jobs, nodes, events and checkpoints of a store, and its commit number, into one that is empty:\n" +
			"between SQLite and PostgreSQL, either way. STORE is a state directory, or a database as a URL or key=value\n" +
			"pairs. No controller may use either meanwhile. It then reads both and compares each table by the number of\n" +
			"its rows and a checksum. Keys that controllers share are copied between databases alone: see two-controllers.md.",
		Example: `  gangd store copy --from=/var/lib/gangd --to=postgres://gangd@db.example/gangd
  gangd store copy --from='host=db1,db2 user=gangd dbname=gangd target_session_attrs=read-write' --to=/var/lib/gangd-new
  PGPASSFILE=/etc/gangd/pgpass gangd store copy --from=/var/backups/gangd/2026-11-23 --to=postgres://gangd@db.example/gangd`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return cli.Usagef("name both stores: --from=STORE --to=STORE")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			var line *statusline.Line
			if !quiet {
				line = statusline.Open(cmd.ErrOrStderr())
			}
			copied, err := pgstore.Copy(ctx, from, to, func(done, all int64) { line.Work("rows copied and compared", done, all) })
			line.Clear()
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("%w: what is in %s is of no use", err, to)
			}
			if err != nil {
				return err
			}
			for _, c := range copied {
				fmt.Fprintf(cmd.OutOrStdout(), "%-16s %d rows, the same\n", c.Table, c.Rows)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`STORE` to read")
	cmd.Flags().StringVar(&to, "to", "", "`STORE` to fill, which must be empty")
	cmd.Flags().BoolVar(&quiet, "no-progress", false, "no status line on a terminal")
	parent := &cobra.Command{Use: "store", Short: "copy a store between SQLite and PostgreSQL", Example: cmd.Example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	parent.AddCommand(cmd)
	return parent
}
