package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

func newCardDrain() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "drain NODE CARD... --reason=TEXT", Short: "give cards no new work; what runs on them goes on", Args: nodeAndCards,
		Example: `  gctl card drain n3 5 --reason='fan'     card 5 of n3
  gctl card drain n3 4 5 --reason='riser' several
  gctl card resume n3 5                   and back again`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return Usagef("a drain needs a reason, others will ask: gctl card drain %s --reason='...'", strings.Join(args, " "))
			}
			return cardAction(cmd, "drain", args, reason)
		},
		ValidArgsFunction: completeCards,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (`TEXT`), for all who see the card in ginfo --cards")
	return cmd
}

func newCardResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume NODE CARD...", Short: "give your word that cards are good", Args: nodeAndCards,
		Example: `  gctl card resume n3 5            after card 5 of n3 was reset
  gctl card resume n3 GPU-8f0c2a   by its UUID
  ginfo --cards -n n3              what became of it`,
		Long: `A card that had a fatal Xid stays out of service, because no reading shows that it is
good again. This command is your word for it. What its node can still see (a card
off the bus, VRAM that was not given back) is refused, with what it is; VRAM
that comes back puts the card back into service by itself.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cardAction(cmd, "resume", args, "")
		},
		ValidArgsFunction: completeCards,
	}
}

func nodeAndCards(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return Usagef("a node and a card are needed: %s n3 5; ginfo --cards lists them", cmd.CommandPath())
	}
	return nil
}

func cardAction(cmd *cobra.Command, verb string, args []string, reason string) error {
	c := client.New()
	return forEach(cmd, args[1:], func(card string) error {
		return c.CardAction(cmd.Context(), args[0], card, verb, &api.NodeAction{Reason: reason})
	})
}

// completeCards offers nodes, then the cards of the one that was named.
func completeCards(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeNodes(cmd, args, typed)
	}
	reply, err := client.New().Nodes(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for i := range reply.Nodes {
		if reply.Nodes[i].Name != args[0] {
			continue
		}
		for _, c := range reply.Nodes[i].Cards {
			out = append(out, strconv.Itoa(c.Index)+"\t"+string(c.State)+" "+c.Model)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
