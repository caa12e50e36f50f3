package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/client"
	"gangd/pkg/client/cli"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/core/finding"
)

func verifyCommand() *cobra.Command {
	var file string
	var set []string
	var offline, repair, asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "recount memory and store of the running controller, or look through a store that is not loaded",
		Long: "Recounts every cross reference of the running controller and its store and prints each disagreement.\n" +
			"With --offline no controller runs: each row of the store is looked at, and those that are\n" +
			"impossible are named. --repair sets these aside, into a file beside the store, so that gangd can load\n" +
			"what is left. Exit status 1 when something was named.",
		Example: `  gangd verify                                             the running controller
  gangd verify --offline --config /etc/gangd/gangd.toml    the store, while gangd is stopped
  gangd verify --repair --config /etc/gangd/gangd.toml     the same, and set aside what is impossible`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !offline && !repair {
				return verifyRunning(cmd, asJSON)
			}
			cfg, err := config.LoadController(file, set)
			if err != nil {
				return err
			}
			return verifyStore(cmd, cfg.StateDir, repair, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "as JSON")
	f.BoolVar(&offline, "offline", false, "look through the store of a controller that does not run")
	f.BoolVar(&repair, "repair", false, "as --offline, and set impossible rows aside")
	f.StringVar(&file, "config", "", "with --offline: configuration `FILE` that names the state directory")
	f.StringArrayVar(&set, "set", nil, "with --offline: override one setting, `KEY=VALUE`; may be repeated")
	return cmd
}

func verifyRunning(cmd *cobra.Command, asJSON bool) error {
	said, err := client.New().Verify(cmd.Context())
	if err != nil {
		return err
	}
	var found finding.List
	for _, text := range said.Findings {
		found.Add("store-disagrees", "gangd", "%s", text)
	}
	if len(found) == 0 && !asJSON {
		fmt.Fprintln(cmd.OutOrStdout(), "all counts agree")
		return nil
	}
	return cli.WriteFindings(cmd, found, 1, asJSON)
}

func verifyStore(cmd *cobra.Command, dir string, repair, asJSON bool) error {
	found, aside, err := sqlitestore.Repair(cmd.Context(), dir, repair, time.Now())
	if err != nil {
		return err
	}
	var list finding.List
	for i := range found {
		list.Add("store-row", dir, "%s", fmt.Sprint(&found[i]))
	}
	if asJSON {
		return cli.WriteFindings(cmd, list, 1, true)
	}
	if err := list.Write(cmd.OutOrStdout()); err != nil {
		return err
	}
	switch n := len(found); {
	case n == 0:
		fmt.Fprintln(cmd.OutOrStdout(), "every row can be read")
	case aside != "":
		return fmt.Errorf("%d rows were set aside or put right, as they were they are in %s; gangd can be started", n, aside)
	default:
		return fmt.Errorf("%d impossible rows: gangd verify --repair sets them aside", n)
	}
	return nil
}
