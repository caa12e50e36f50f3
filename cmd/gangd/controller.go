package main

import (
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/cli"
	"gangd/pkg/client/program"
	"gangd/pkg/controller"
	"gangd/pkg/controller/config"
	"gangd/pkg/wire/auth"
)

// controllerCommand is `gangd controller`: which controllers a site has.
func controllerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "take further controllers in, list them, and take them off the list",
		Example: `  gangd controller new                        on a controller's host: a line for one more
  gangd controller join LINE                  on the new one's host, before gangd is started there
  gangd controller list                       who leads, who stands by and how far it is behind
  gangd controller remove ctl2                ctl2 is gone for good: nobody waits for its word`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(program.Timeout(controllerNewCommand()), controllerJoinCommand(), program.Timeout(controllerListCommand()),
		program.Timeout(controllerRemoveCommand()))
	return cmd
}

func controllerNewCommand() *cobra.Command {
	ttl := time.Hour
	cmd := &cobra.Command{
		Use:   "new",
		Short: "print the line with which one more controller joins",
		Long: "Asks the controller that leads for a token and prints one line for `gangd controller join`. Whoever has it can\n" +
			"get the key to all that the controllers share, the cluster's certificate authority included: treat it like\n" +
			"the password of root until it is used or has run out.",
		Example: `  gangd controller new                                          once, within an hour
  gangd controller new --ttl=10m
  gangd controller new | ssh ctl2 sudo gangd controller join -  the line appears in no list of processes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printLine(cmd, &api.TokenRequest{Controller: true}, ttl)
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "how long it may be used, at most 168h")
	return cmd
}

func controllerJoinCommand() *cobra.Command {
	var file string
	var set []string
	cmd := &cobra.Command{
		Use:   "join LINE",
		Short: "make this host one of the controllers, with a line from gangd controller new",
		Long: "Gets the key of what the controllers share from the one that LINE names, which is believed only when its CA has\n" +
			"the fingerprint in LINE, and keeps it in its state directory. The configuration must name the same database. With - the\n" +
			"line is read from standard input. gangd is started afterwards: it puts itself on the list, and may lead when\n" +
			"all nodes go by that. Run it as root or as the user that gangd runs as.",
		Example: `  gangd controller join --config=/etc/gangd/gangd.toml gang://TOKEN@ctl1:7420/FINGERPRINT
  ssh ctl1 gangd controller new | gangd controller join --config=/etc/gangd/gangd.toml -
  PGPASSFILE=/etc/gangd/pgpass gangd controller join --config=/etc/gangd/gangd.toml - < line`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.LoadController(file, set)
			if err != nil {
				return err
			}
			line, err := auth.ReadLine(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			if err := controller.JoinOthers(ctx, cfg, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)), line); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "joined as controller %s, reached at %s\nnow start gangd here, and see: gangd controller list\n",
				cfg.Name, strings.Join(cfg.Advertise, ", "))
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` of this host's gangd")
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	return cmd
}

func controllerListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the controllers: who leads, who stands by, how far behind",
		Long: "Has the controller that leads ask the others. One that \"joins\" may not lead before all nodes go by the list that\n" +
			"has it, a heartbeat or two. One that is silent counts for nodes all the same, until it is removed.",
		Example: `  gangd controller list
  gangd controller list --json | jq '.controllers[] | select(.state == "silent")'
  watch -n1 gangd controller list             while one is restarted`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := client.New().Controllers(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), l)
			}
			return listControllers(cmd.OutOrStdout(), l)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func listControllers(w io.Writer, l *api.ControllersReply) error {
	wide := len("NAME")
	for i := range l.Controllers {
		wide = max(wide, len(l.Controllers[i].Name))
	}
	fmt.Fprintf(w, "%-*s  %-9s  %s\n", wide, "NAME", "STATE", "ADDRESSES")
	for i := range l.Controllers {
		c := &l.Controllers[i]
		at := strings.Join(c.Addresses, ",")
		if said := cli.ControllerLag(c); said != "" {
			at += "  " + said
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s  %-9s  %s", wide, c.Name, c.State, at), " ")); err != nil {
			return err
		}
	}
	return nil
}

func controllerRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "take a controller that does not lead off the list",
		Long: "Nodes do not need its word any more, it can't lead, and its gangd ends and refuses to start until it joins again.\n" +
			"It keeps its keys: where its host is not to be trusted any more, see security.md.",
		Example: `  gangd controller remove ctl2
  ssh ctl2 systemctl disable --now gangd && gangd controller remove ctl2
  gangd controller new | ssh ctl2 gangd controller join -      take it in again`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return client.New().RemoveController(cmd.Context(), args[0])
		},
	}
}
