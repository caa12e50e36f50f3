package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"gangd/pkg/controller/config"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/dirlock"
)

// joinCommand is `gnoded join`: become a node of a cluster.
func joinCommand() *cobra.Command {
	var file, name string
	var set []string
	cmd := &cobra.Command{
		Use:   "join LINE",
		Short: "join a cluster with a line from gangd token new",
		Long: "Makes a key on this machine, has it certified by the controller that LINE names, and keeps both below\n" +
			"its state directory, with where that controller is. It is believed only when its CA has the fingerprint in LINE. With - the line is\n" +
			"read from standard input, where no list of processes shows it.",
		Example: `  gnoded join gang://TOKEN@login1:7420/FINGERPRINT
  ssh login1 gangd token new | gnoded join -
  gnoded join --name=gpu-07 --config=/etc/gangd/gnoded.toml - < line`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.LoadNode(file, name, set)
			if err != nil {
				return err
			}
			line, err := auth.ReadLine(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return join(cmd, cfg, line)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration `FILE` of this node, for its name and state directory")
	f.StringVar(&name, "name", "", "`NAME` of this node (default: this host's)")
	f.StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	return cmd
}

func join(cmd *cobra.Command, cfg *config.Node, line string) error {
	// Jobs' users pass through state_dir to their scripts; the key's directory is closed.
	if err := dirlock.Open(cfg.StateDir, 0o711); err != nil {
		return err
	}
	j, err := auth.Join(cmd.Context(), line, cfg.Name, tlsDir(cfg))
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	kind := ""
	if j.Login {
		kind = "login host "
	}
	fmt.Fprintf(out, "joined as %s%s, until %s (renewed by itself)\n", kind, j.Name, j.Expires.Local().Format("2006-01-02 15:04"))
	if err := auth.WriteFile(cfg.JoinedFile(), []byte(j.Address+"\n")); err != nil {
		return err
	}
	if cfg.ControllerAsked && !slices.Contains(cfg.Controllers, j.Address) {
		fmt.Fprintf(out, "now set in this node's configuration: controller = %q\n", j.Address)
	}
	if j.Login && !cfg.Login {
		fmt.Fprintln(out, "start it as a login host: gnoded --login, or login = true in its configuration")
	}
	return nil
}

// tlsDir is where the node's key and certificate are.
func tlsDir(cfg *config.Node) string { return filepath.Join(cfg.StateDir, "tls") }
