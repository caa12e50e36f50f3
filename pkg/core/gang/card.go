package gang

import (
	"fmt"
	"maps"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// sample takes what the cards were seen doing.
func (fl *fleet) sample(ev NodeSample) Outcome {
	h := fl.nodes.byName[ev.Node]
	if h == nil {
		return refused(fl.nodes.unknown(ev.Node))
	}
	if !fl.cardsSeen(h, ev.Cards) {
		return ignored("nothing new")
	}
	return applied()
}

// cardsSeen takes samples in. Only a change of what a card can be used for is stored; one
// that is found bad ends the epochs that have it.
func (fl *fleet) cardsSeen(h *host, samples []api.CardSample) (changed bool) {
	var broken []int
	for _, s := range samples {
		i := cardAt(h.node.Res, s.UUID)
		if i < 0 {
			continue
		}
		was := h.node.Res.Cards[i]
		now := sampled(was, s)
		if sameCard(&was, &now) {
			continue
		}
		changed = true
		fl.setCard(h, i, now)
		if was.Fault == "" && now.Fault != "" {
			broken = append(broken, i)
		}
	}
	for _, i := range broken {
		fl.cardBroken(h, i)
	}
	return changed
}

func sampled(c cluster.Card, s api.CardSample) cluster.Card {
	c.UsedBytes, c.StrangersBytes, c.Utilization = s.UsedBytes, s.StrangersBytes, s.Utilization
	c.Fault, c.Held = s.Unhealthy, s.Held
	return c.Judged()
}

func sameCard(a, b *cluster.Card) bool {
	return a.UsedBytes == b.UsedBytes && a.StrangersBytes == b.StrangersBytes && a.Utilization == b.Utilization &&
		a.Fault == b.Fault && a.Held == b.Held && a.Drained == b.Drained
}

// setCard writes one card of a node, and puts it on record when what it can be used for has
// changed.
func (fl *fleet) setCard(h *host, i int, now cluster.Card) {
	was := h.node.Res.Cards[i]
	if was.Fault != now.Fault || was.Held != now.Held || was.Drained != now.Drained {
		fl.nodes.edit(h)
		text := fmt.Sprintf("card %d %s", now.Index, now.State)
		if now.Reason != "" {
			text += ": " + now.Reason
		}
		if was.Reason != now.Reason {
			fl.record.emit(api.Event{Type: api.EventCardState, Node: h.node.Name, Text: text})
		}
	}
	n := fl.nodes.show(h)
	res := *n.Res
	res.Cards = slices.Clone(res.Cards)
	res.Cards[i] = now
	n.Res = res.Counted()
	fl.nodes.room = true
}

// cardBroken ends every epoch that has a card which must not be used any more: what is being
// prepared goes back to the queue, what runs drains. To the gang it is a loss of hardware,
// like that of the node, and it is charged as one: no program brought it about.
func (fl *fleet) cardBroken(h *host, i int) {
	card := h.node.Res.Cards[i]
	for _, k := range slices.SortedFunc(maps.Keys(h.members), api.MemberKey.Compare) {
		p, ok := h.members[k]
		if !ok {
			continue
		}
		rank := cardRank(p, card.UUID)
		if rank < 0 {
			continue
		}
		text := fmt.Sprintf("card %d of %s: %s", card.Index, h.node.Name, card.Fault)
		if reserved(p.e.job) {
			fl.launches.rollback(p.e, text, nil, func(int) bool { return false })
			continue
		}
		fl.cardLost(p.e, p.i, rank, text)
	}
}

// cardLost: in a drain that is under way it says something of what began that only where the member has not gone on
// after it, or a rank of it, or a task of a step, had ended by itself.
func (fl *fleet) cardLost(e *entry, i, rank int, text string) {
	if e.job.Drain != nil && e.job.Members[i].Heeded && !failedOn(e.job, i) {
		fl.stops.drain(e, api.CauseNodeLost, -1, "")
		return
	}
	fl.stops.accident(e, Report{Evidence: EvidenceCard, Cause: api.CauseNodeLost, Trigger: rank, Text: text})
}

// failedOn: something of a member has ended by itself, and not well.
func failedOn(j *Job, i int) bool {
	if f := j.StepFault; f != nil && f.Epoch == j.Epoch && slices.Contains(f.Members, i) {
		return true
	}
	return slices.ContainsFunc(j.Members[i].Ranks, func(r int) bool { return j.Ranks[r].State == api.RankFailed }) ||
		slices.ContainsFunc(j.Steps, func(s Step) bool {
			return slices.ContainsFunc(s.Parts, func(p StepPart) bool { return p.Member == i && len(p.Ends) > 0 })
		})
}

// cardRank is the first rank of a member that has a card, -1: none.
func cardRank(p place, uuid string) int {
	j := p.e.job
	for _, r := range j.Members[p.i].Ranks {
		if slices.Contains(j.Ranks[r].Slot.Cards, uuid) {
			return r
		}
	}
	return -1
}

func (fl *fleet) drainCard(ev CardDrain) Outcome {
	h, i, err := fl.card(ev.Node, ev.UUID)
	if err != nil {
		return refused(err)
	}
	c := h.node.Res.Cards[i]
	if c.Drained == ev.Reason {
		return ignored("out of service already")
	}
	c.Drained = ev.Reason
	fl.setCard(h, i, c.Judged())
	return applied()
}

func (fl *fleet) resumeCard(ev CardResume) Outcome {
	h, i, err := fl.card(ev.Node, ev.UUID)
	if err != nil {
		return refused(err)
	}
	c := h.node.Res.Cards[i]
	if c.Drained == "" {
		return ignored("in service already")
	}
	c.Drained = ""
	fl.setCard(h, i, c.Judged())
	return applied()
}

func (fl *fleet) card(node, uuid string) (*host, int, *api.Error) {
	h := fl.nodes.byName[node]
	if h == nil {
		return nil, 0, fl.nodes.unknown(node)
	}
	i := cardAt(h.node.Res, uuid)
	if i < 0 {
		return nil, 0, api.Errorf(api.CodeNotFound, "node %s has no card %s", node, uuid)
	}
	return h, i, nil
}
