package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

func newReload() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "reload", Short: "have the controller read its configuration again", Args: noArgs,
		Long: "The controller reads the file that it was started with, checks it as gangd check does, and goes by it: all of it with\n" +
			"the answer, or nothing where anything is wrong. Says what has changed, and what waits for a restart. Of several\n" +
			"controllers each reads a file of its own, and all must say the same. Exit status 1 when the file is refused.",
		Example: `  gctl reload                                    after an edit of /etc/gangd/gangd.toml
  gctl reload --timeout=2m                       where the directory of users is slow
  gctl reload --json | jq -r '.restart[].key'    what takes a restart`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := client.New().Reload(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), reply)
			}
			return writeReload(cmd.OutOrStdout(), reply)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func writeReload(w io.Writer, r *api.ReloadReply) error {
	if len(r.Changes) == 0 {
		fmt.Fprintf(w, "%s: nothing that can change while gangd runs is otherwise\n", r.File)
	} else {
		fmt.Fprintf(w, "%s: %s in force\n", r.File, count(len(r.Changes), "change", "changes"))
	}
	if err := WriteChanges(w, r.Changes); err != nil {
		return err
	}
	if len(r.Restart) > 0 {
		fmt.Fprintln(w, "waits for a restart of gangd:")
		if err := WriteChanges(w, r.Restart); err != nil {
			return err
		}
	}
	for i := range r.Warnings {
		fmt.Fprintf(w, "warning: %s: %s\n", r.Warnings[i].Subject, r.Warnings[i].Evidence)
	}
	for i := range r.Controllers {
		c, text := &r.Controllers[i], "goes by the same"
		if !c.Took {
			text = "was not told, and goes by its own file when it is started again: " + c.Why
		}
		if _, err := fmt.Fprintf(w, "controller %s %s\n", c.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// WriteChanges says changes of a configuration, a line each.
func WriteChanges(w io.Writer, changes []api.ConfigChange) error {
	for i := range changes {
		c := &changes[i]
		text := "  " + c.Text()
		if c.When == api.ChangeNextJob {
			text += "  (from the next job on)"
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
