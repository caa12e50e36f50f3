package main

import (
	"github.com/spf13/cobra"

	"gangd/pkg/client/cli"
	"gangd/pkg/controller/config"
	"gangd/pkg/core/finding"
)

// checkCommand is `gnoded check`: what is wrong with a configuration before a node is started with it.
func checkCommand() *cobra.Command {
	var set []string
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "find what is wrong with a configuration, and with what it names on this host",
		Long: "Reads FILE as gnoded would and says all that is wrong with it, each with its line: keys and values, programs that\n" +
			"are missing or that others may change, mounts, names and certificates. Nothing is changed or started. A gnoded that\n" +
			"runs looks at the same every few minutes: gctl doctor shows what it finds. Exit status 1 when something was found.",
		Example: `  gnoded check /etc/gangd/gnoded.toml
  gnoded check /etc/gangd/gnoded.toml --json | jq -r '.findings[].id'
  gnoded check new.toml && install -m 644 new.toml /etc/gangd/gnoded.toml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			found := config.CheckNode(cmd.Context(), args[0], name, set)
			return cli.WriteFindings(cmd, found, finding.Looked(finding.OfConfig, finding.OfHost), asJSON)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the node (default: this host's)")
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
