package main

import (
	"github.com/spf13/cobra"

	"gangd/pkg/client/cli"
	"gangd/pkg/controller/config"
)

// checkCommand is `gangd check`: what is wrong with a configuration before anything is started with it.
func checkCommand() *cobra.Command {
	cmd := cli.NewCheck(cli.Checker{Find: config.CheckController, Against: config.AgainstController})
	cmd.Long = "Reads FILE as gangd would and says all that is wrong with it, each with its line: keys and values, users and\n" +
		"groups that this host does not know, programs that are missing or that others may change, certificates that run\n" +
		"out, disks that are full. Nothing is changed or started. Run it as the user that gangd runs as. With\n" +
		"--against=running it says instead what a reload and what a restart would change. Exit status 1 when something was found."
	cmd.Example = `  gangd check /etc/gangd/gangd.toml
  gangd check /etc/gangd/gangd.toml --json | jq -r '.findings[].id'
  gangd check --against=running new.toml && install -m 644 new.toml /etc/gangd/gangd.toml && gctl reload`
	return cmd
}
