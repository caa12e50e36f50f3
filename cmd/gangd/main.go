// Command gangd is the controller; see gangd(8).
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"gangd/pkg/client/cli"
	"gangd/pkg/client/program"
	"gangd/pkg/controller"
	"gangd/pkg/controller/config"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/lifesign"
)

func main() {
	cli.Main(command())
}

func command() *cobra.Command {
	var file string
	var set []string
	var accept bool
	cmd := &cobra.Command{
		Use:   "gangd",
		Short: "the controller of a gangd cluster",
		Example: `  gangd dev --detach                          a small cluster on this machine, no root
  gangd --config /etc/gangd/gangd.toml        the controller of a site, in the foreground
  gangd token new                             one line with which a node joins`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := proc.KeepFiles(); err != nil {
				return err
			}
			cfg, err := config.LoadController(file, set)
			if err != nil {
				return err
			}
			signs, err := lifesign.New()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			hangups := lifesign.Hangups()
			log := logger(os.Stderr, cfg.LogFormat)
			paceGarbage()
			return controller.Run(ctx, cfg, controller.Options{
				Log:         log,
				AcceptStore: accept,
				Signs:       signs,
				File:        file,
				Set:         set,
				Hangups:     hangups,
			})
		},
	}
	cmd.SetContext(context.Background())
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` (TOML), see gangd.toml(5)")
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	cmd.Flags().BoolVar(&accept, "accept-store", false, "take a store that is older than what nodes have seen, instead of holding")
	cmd.AddCommand(devCommand(), linksCommand(), slurmCompletionCommand(), tokenCommand(), controllerCommand(),
		program.Timeout(verifyCommand()), checkCommand(), program.Timeout(backupCommand()), restoreCommand(), storeCommand(), importConfCommand())
	return cmd
}

func logger(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
