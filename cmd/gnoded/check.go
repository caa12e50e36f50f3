package main

import (
	"context"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client/cli"
	"gangd/pkg/controller/config"
	"gangd/pkg/core/finding"
)

// checkCommand is `gnoded check`: what is wrong with a configuration before a node is started with it.
func checkCommand() *cobra.Command {
	var name string
	cmd := cli.NewCheck(cli.Checker{Find: func(ctx context.Context, file string, set []string) finding.List {
		return config.CheckNode(ctx, file, name, set)
	}, Against: func(file string, set []string) ([]api.ConfigChange, error) {
		return config.AgainstNode(file, name, set)
	}})
	cmd.Long = "Reads FILE as gnoded would and says all that is wrong with it, each with its line: keys and values, programs that\n" +
		"are missing or that others may change, mounts, names and certificates. Nothing is changed or started. A gnoded that\n" +
		"runs looks at the same every few minutes: gctl doctor shows what it finds. With --against=running\n" +
		"it says instead what SIGHUP and what a restart would change. Exit status 1 when something was found."
	cmd.Example = `  gnoded check /etc/gangd/gnoded.toml
  gnoded check /etc/gangd/gnoded.toml --json | jq -r '.findings[].id'
  gnoded check --against=running new.toml && install -m 644 new.toml /etc/gangd/gnoded.toml && systemctl reload gnoded`
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the node (default: this host's)")
	return cmd
}
