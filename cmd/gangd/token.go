package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/cli"
	"gangd/pkg/client/program"
)

// tokenCommand is `gangd token`: who may become a node.
func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "let nodes join, and cut them off",
		Example: `  gangd token new                             a line for one node, good for an hour
  gangd token new --uses=8 --ttl=24h          one line for a rack
  gangd token new --login                     a line for a login host
  gangd token list                            what can still be used
  gangd token revoke n3                       n3's certificates count no more`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(program.Timeout(tokenNewCommand()), program.Timeout(tokenListCommand()), program.Timeout(tokenWithdrawCommand()),
		program.Timeout(tokenRevokeCommand()))
	return cmd
}

func tokenNewCommand() *cobra.Command {
	ask := api.TokenRequest{}
	ttl := time.Hour
	cmd := &cobra.Command{
		Use:   "new",
		Short: "print the line with which a node joins",
		Long: "Asks the running gangd for a join token and prints one line for `gnoded join`: the controller's\n" +
			"address, the fingerprint of its CA, and the token. Treat it like a password until it is used.",
		Example: `  gangd token new                             any node that has not joined before, once, within an hour
  gangd token new --node=n3                   n3 alone, also when it joins again
  gangd token new --login                     a login host, whose users' commands work there
  gangd token new | ssh n3 gnoded join -      the line appears in no list of processes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ask.Uses < 1 {
				return cli.Usagef("--uses must be more than 0")
			}
			return printLine(cmd, &ask, ttl)
		},
	}
	f := cmd.Flags()
	f.StringVar(&ask.Node, "node", "", "only the node `NAME` may use it")
	f.BoolVar(&ask.Login, "login", false, "for a login host: it vouches for all its users but root, and runs nothing")
	f.IntVar(&ask.Uses, "uses", 1, "how many nodes may use it")
	f.DurationVar(&ttl, "ttl", ttl, "how long it may be used, at most 168h")
	return cmd
}

// printLine asks for a token that lasts so long and prints the line to join with.
func printLine(cmd *cobra.Command, ask *api.TokenRequest, ttl time.Duration) error {
	if ttl <= 0 {
		return cli.Usagef("--ttl must be more than 0")
	}
	// Rounded up: half a second must not become "the default".
	ask.TTLSeconds = int64((ttl + time.Second - 1) / time.Second)
	reply, err := client.New().NewToken(cmd.Context(), ask)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), reply.Line)
	return nil
}

func tokenListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the tokens that can still be used",
		Long:  "What a token is was printed once, when it was made, and is kept nowhere. ID names it to gangd token withdraw.",
		Example: `  gangd token list
  gangd token list --json     for a script`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := client.New().Tokens(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return cli.WriteJSON(out, reply)
			}
			fmt.Fprintf(out, "%-8s  %-20s  %5s  %s\n", "ID", "FOR", "USES", "UNTIL")
			for _, t := range reply.Tokens {
				what := "any new node"
				switch {
				case t.Controller:
					what = "a controller"
				case t.Login && t.Node != "":
					what = "login host " + t.Node
				case t.Login:
					what = "a login host"
				case t.Node != "":
					what = "node " + t.Node
				}
				fmt.Fprintf(out, "%-8s  %-20s  %5d  %s\n", t.ID, what, t.Uses, t.Expires.Local().Format("2006-01-02T15:04:05"))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func tokenWithdrawCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "withdraw ID",
		Short: "have nobody join with a token any more",
		Long:  "Who has joined with it stays: gangd token revoke NODE.",
		Example: `  gangd token list               has the ids
  gangd token withdraw 3f8a0c1d`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return client.New().WithdrawToken(cmd.Context(), args[0])
		},
	}
}

func tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NODE",
		Short: "make a node's certificates worthless and cut its session",
		Long: "Every certificate that the node has now counts no more, and its session ends at once. What runs on it\n" +
			"drains when it counts as lost. The node may join again: gangd token new --node=NODE.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return client.New().Revoke(cmd.Context(), args[0])
		},
	}
}
