package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"gangd/pkg/client"
)

func newWeb() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "web", Short: "print a link that logs me in at the page, once", Args: noArgs,
		Example: `  gctl web                        open what it prints in a browser
  ssh -L 7421:localhost:7421 ctl gctl web    the same from one's own machine
  gctl web --json                 with the time until which it holds`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := client.New().Web(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), reply)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), reply.URL)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
