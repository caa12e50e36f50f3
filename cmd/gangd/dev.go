package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"gangd/pkg/client/cli"
	"gangd/pkg/dev"
)

// devCommand is `gangd dev`: a whole cluster on this machine.
func devCommand() *cobra.Command {
	var o dev.Options
	var detach, stop, isolate bool
	var restart string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "a small cluster on this machine, without root",
		Long: "Starts a controller and N node daemons, with simulated cards or this machine's, as separate processes in one directory,\n" +
			"waits until all nodes are up and each controller may lead, and prints the line that points every command at them. Without --detach\n" +
			"it stays in the foreground, starts a daemon again that died or hangs, and stops all of them on Ctrl-C.\n" +
			"As root each node has a host name and a network of its own, where nodes reach each other and this machine\n" +
			"but nothing beyond it: torchrun, accelerate and mpirun find what they find on a site.",
		Example: `  eval "$(gangd dev --detach)"                a cluster of 4 nodes with 8 cards of 80G, in the background
  gangd dev --gpus=auto                       one node with the cards of this machine
  gangd dev --nodes=2 --gpus=2x24G --set grace=2s
  gangd dev --restart=n2                      after kill -9 of n2, say
  gangd dev --controllers=2 --postgres        two controllers on a PostgreSQL of their own (apt-get install postgresql)
  gangd dev --isolate=false                   as root, with the machine's host name and network for all nodes
  gangd dev --web                             with the page, and a link that logs in
  gangd dev --stop                            end the cluster of $GANG_DIR, jobs included`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stop && (restart != "" || detach) || restart != "" && detach {
				return cli.Usagef("--stop, --restart and --detach exclude each other")
			}
			var err error
			if o.Bin, err = dev.Bin(); err != nil {
				return err
			}
			if o.Dir, err = devDir(o.Dir, stop || restart != ""); err != nil {
				return err
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer cancel()
			switch {
			case stop:
				return dev.Stop(o.Dir)
			case restart != "":
				return dev.Restart(ctx, o.Dir, o.Bin, restart)
			}
			o.Watch = !detach
			if o.GPUs == dev.RealCards && !cmd.Flags().Changed("nodes") {
				o.Nodes = 1
			}
			if cmd.Flags().Changed("isolate") {
				o.Isolate = dev.IsolateNo
				if isolate {
					o.Isolate = dev.IsolateYes
				}
			}
			c, err := dev.Start(ctx, o)
			if err != nil {
				_ = os.Remove(o.Dir) // goes only when it is empty: refused before anything was made
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "export GANG_DIR=%s\n", dev.Quote(c.Dir()))
			if err := c.Together(); err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "gangd: nodes share the host name and network of this machine:", err)
			}
			bare, err := c.Bare(ctx)
			if err != nil {
				return err
			}
			for _, node := range bare {
				fmt.Fprintf(cmd.ErrOrStderr(), "gangd: --gpus=auto: %s has no card: this machine has no NVIDIA driver, or none of its cards may be "+
					"used (log/%s.log says which); simulated ones: --gpus=8x80G\n", node, node)
			}
			if o.Web != "" {
				link, err := c.Link(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "page, and logged in once: %s\n", link)
			}
			if detach {
				return nil
			}
			return c.Watch(ctx, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Nodes, "nodes", 4, "node daemons, named n1 n2 ...")
	f.IntVar(&o.Controllers, "controllers", 1, "controllers, named gangd gangd2 ..., of which one leads; with --postgres")
	f.BoolVar(&o.Postgres, "postgres", false, "keep the state in a PostgreSQL in DIR instead of SQLite")
	f.StringVar(&o.Web, "web", "", "serve the page at `ADDR` (without one: "+dev.DefaultWeb+"), and print a link that logs in")
	f.Lookup("web").NoOptDefVal = dev.DefaultWeb
	f.StringVar(&o.GPUs, "gpus", "8x80G", "simulated cards of each node, `CARDS`: 8x80G, 2xH100:80G/7+4x24G; or of one node after the "+
		"other: 4x24G,8x80G; auto: those of this machine")
	f.BoolVar(&isolate, "isolate", false, "give each node a host name and a network of its own, as root (default: where there are several, "+
		"with simulated cards)")
	f.IntVar(&o.CPUs, "cpus", 0, "CPU slots of each node (default: this machine's, at least 8)")
	f.StringVar(&o.Dir, "dir", "", "the cluster's `DIR` (default: $GANG_DIR, else a fresh one in the temporary directory)")
	f.StringArrayVar(&o.Set, "set", nil, "a setting of gangd or of the nodes, `KEY=VALUE`; may be repeated")
	f.BoolVar(&detach, "detach", false, "leave the daemons running, watched by nobody, and return")
	f.BoolVar(&stop, "stop", false, "end the daemons and all that runs on their nodes")
	f.StringVar(&restart, "restart", "", "start one daemon again, by `NAME`: gangd, n1 ...")
	return cmd
}

// devDir is the directory meant: the option, GANG_DIR, or for a new cluster a fresh one.
func devDir(dir string, existing bool) (string, error) {
	if dir == "" {
		dir = os.Getenv("GANG_DIR")
	}
	switch {
	case dir != "":
		return filepath.Abs(dir)
	case existing:
		return "", cli.Usagef("which cluster? give --dir=DIR or set GANG_DIR")
	}
	return os.MkdirTemp("", fmt.Sprintf("gangd-dev-%d-", os.Getuid()))
}
