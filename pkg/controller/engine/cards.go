package engine

import (
	"context"
	"fmt"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// CardResumer takes a person's word on a card to its node; the session hub is one.
type CardResumer interface {
	ResumeCard(ctx context.Context, node, uuid string) error
}

func (e *Engine) noNode(name string) *api.Error {
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	return gang.NoNode(name, e.view.names)
}

// CardAction does "drain" or "resume" to a card, which is named by its index or UUID. A resume
// is a person's word that the card is good: its node forgets what the card did before, and
// refuses what it can still see.
func (e *Engine) CardAction(ctx context.Context, action, node, card, reason, user string, r CardResumer) error {
	n := e.view.node(node)
	if n == nil {
		return e.noNode(node)
	}
	uuid, err := cardOf(n, card)
	if err != nil {
		return err
	}
	if action == "drain" {
		if reason == "" {
			reason = "no reason given"
		}
		reason += fmt.Sprintf(" [%s@%s]", user, e.opt.Clock.Now().Wall.Format("2006-01-02T15:04:05")) // as of a node
		_, err := e.Do(ctx, gang.CardDrain{Node: node, UUID: uuid, Reason: reason})
		return err
	}
	if _, err := e.Do(ctx, gang.CardResume{Node: node, UUID: uuid}); err != nil {
		return err
	}
	if err := r.ResumeCard(ctx, node, uuid); err != nil {
		a := *asError(err)
		a.Message = "node " + node + ": " + a.Message
		if a.Code == api.CodeUnavailable {
			a.Message, a.Hint = asError(err).Message, "try again when it is up"
		}
		return &a
	}
	return nil
}

// cardOf finds a card by its index or its UUID.
func cardOf(n *gang.Node, card string) (string, *api.Error) {
	index, err := strconv.Atoi(card)
	for i := range n.Res.Cards {
		if c := &n.Res.Cards[i]; c.UUID == card || err == nil && c.Index == index {
			return c.UUID, nil
		}
	}
	e := api.Errorf(api.CodeNotFound, "node %s has no card %q", n.Name, card)
	switch k := len(n.Res.Cards); k {
	case 0:
		e.Hint = "it has none at all"
	default:
		e.Hint = fmt.Sprintf("its cards are 0 to %d, or their UUIDs as ginfo --json has them", k-1)
	}
	return "", e
}
