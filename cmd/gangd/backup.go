package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// backupCommand is `gangd backup`: a copy of the state while gangd runs.
func backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "copy the running controller's state to a new directory",
		Long: "Has the running gangd write a consistent copy of its store and of its certificate authority to DIR, which\n" +
			"must not exist, as the user gangd runs as. Nothing pauses meanwhile. DIR holds private keys: guard it like\n" +
			"the state directory, whose place it takes when it is put back.",
		Example: `  gangd backup /var/backups/gangd/$(date +%F)
  gangd backup /mnt/nas/gangd-before-upgrade`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0]) // gangd's working directory is another one
			if err != nil {
				return err
			}
			reply, err := client.New().Backup(cmd.Context(), &api.BackupRequest{Path: dir})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: store of %d bytes\n", reply.Path, reply.Bytes)
			return nil
		},
	}
}
