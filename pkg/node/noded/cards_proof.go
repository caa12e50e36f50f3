package noded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/shim"
)

// A card goes from gang to gang only when it is proven empty: no process of an attempt that
// is over holds VRAM on it, and as much is in use as was before the attempt. It is proven
// before a member is ready and before a member is told to be over, each by a reading that
// begins after the question.

const (
	// proofWait is how long a card gets to be empty after the last process of a member has
	// gone: drivers give VRAM back while the process ends, later ones within 100 ms or so.
	proofWait = time.Second
	proofStep = 50 * time.Millisecond
	// readWait bounds one reading where somebody waits for it. A provider answers within
	// tens of milliseconds; one that hangs is replaced after 5 s.
	readWait = 2 * time.Second
	// probeWait is how long a start waits for a provider that fails: a probe that was lost is
	// replaced after 5 s, and a driver that hiccups must not cost its node a strike.
	probeWait = 12 * time.Second
	// baseSlack is how far VRAM may be from where it was: less than any program with a CUDA
	// context takes, more than a driver's own figure moves.
	baseSlack = 256 << 20
)

// leftCard is a card that is held, as it is written down.
type leftCard struct {
	After api.MemberKey `json:"after"`
	Base  int64         `json:"base"`
}

// give takes cards for a member that is being prepared. A refusal says why one can't be given
// now, with how it was seen; each card that is taken carries its base.
func (c *cards) give(ctx context.Context, k api.MemberKey, want []shim.Card) ([]api.CardSample, *api.Refusal) {
	if len(want) == 0 {
		return nil, nil
	}
	if c.provider == nil {
		return nil, nodeFault("this node has no cards")
	}
	for began := time.Now(); ; {
		err := c.read(ctx, readWait)
		wait, end := false, began.Add(proofWait)
		c.mu.Lock()
		text := ""
		if err != nil {
			text, wait, end = fmt.Sprintf("its cards can't be read: %v", err), true, began.Add(probeWait)
		} else if text, wait = c.fit(k, want); text == "" {
			c.take(k, want)
			c.mu.Unlock()
			return nil, nil
		}
		if wait && time.Now().Before(end) && ctx.Err() == nil {
			c.mu.Unlock()
			sleep(ctx, proofStep)
			continue
		}
		defer c.mu.Unlock()
		if err != nil {
			return nil, nodeFault("%s", text)
		}
		return c.samples(want), &api.Refusal{Blame: api.BlameCard, Text: text}
	}
}

// fit says why one of the cards can't be given now, and whether waiting a moment may help.
// c.mu is held.
func (c *cards) fit(k api.MemberKey, want []shim.Card) (why string, wait bool) {
	for i := range want {
		u := &want[i]
		card := c.card[u.UUID]
		if card == nil || !card.known {
			return fmt.Sprintf("there is no card %s", u.UUID), false
		}
		name := fmt.Sprintf("card %d", card.info.Index)
		if card.now.Unhealthy != "" {
			return name + ": " + card.now.Unhealthy, false
		}
		if left := c.left(card); left != "" {
			card.held = left
			card.now.Held = left
			return name + ": " + left, true
		}
		free := card.info.VRAMBytes - card.now.StrangersBytes
		for key, o := range card.users {
			if key != k {
				free -= o.VRAMBytes
			}
		}
		if u.VRAMBytes > free {
			return fmt.Sprintf("%s: %s VRAM asked, %s of %s free (%s held by strangers)", name, cluster.Size(u.VRAMBytes),
				cluster.Size(max(free, 0)), cluster.Size(card.info.VRAMBytes), cluster.Size(card.now.StrangersBytes)), false
		}
	}
	return "", false
}

// take counts the cards as the member's. c.mu is held.
func (c *cards) take(k api.MemberKey, want []shim.Card) {
	for i := range want {
		card := c.card[want[i].UUID]
		card.held, card.now.Held = "", ""
		want[i].Base = card.base
		card.users[k] = want[i]
	}
}

// takeBack proves the cards of a member empty whose processes are gone, and gives how they
// were seen. What can't be proven within a moment is held: it heals by itself when a later
// reading finds it empty.
func (c *cards) takeBack(ctx context.Context, k api.MemberKey, had []shim.Card, wait time.Duration) []api.CardSample {
	if len(had) == 0 || c.provider == nil {
		return nil
	}
	c.mu.Lock()
	c.leave(k, had)
	c.mu.Unlock()
	for end := time.Now().Add(wait); ; sleep(ctx, proofStep) {
		err := c.read(ctx, readWait)
		last := !time.Now().Before(end) || ctx.Err() != nil
		c.mu.Lock()
		proven := c.prove(had, err)
		if proven || last {
			for i := range had {
				if card := c.card[had[i].UUID]; card != nil && card.held != "" {
					c.log.Warn("card not given on", "card", card.info.Index, "job", k.Job, "epoch", k.Epoch, "reason", card.held)
				}
			}
			c.keepHeld()
			out := c.samples(had)
			c.mu.Unlock()
			return out
		}
		c.mu.Unlock()
	}
}

// prove looks which of the cards are empty; the others are held. c.mu is held.
func (c *cards) prove(had []shim.Card, err error) (all bool) {
	all = true
	for i := range had {
		card := c.at(had[i].UUID)
		switch {
		case err != nil:
			card.held = fmt.Sprintf("not proven empty after job %d epoch %d: %v", card.after.Job, card.after.Epoch, err)
		default:
			card.held = c.left(card)
		}
		if card.held == "" && len(card.users) == 0 {
			card.idle = card.now.UsedBytes
		}
		card.now.Held = card.held
		all = all && card.held == ""
	}
	return all
}

// leave takes a member off its cards. c.mu is held.
func (c *cards) leave(k api.MemberKey, had []shim.Card) {
	for i := range had {
		card := c.at(had[i].UUID)
		delete(card.users, k)
		card.after = k
		card.idle = -1 // not proven empty: what is in use now says nothing about the base
		if had[i].Base >= 0 && card.base < 0 {
			card.base = had[i].Base
		}
		// Until the reading that proves it, so that none in between takes it for empty.
		card.held = "being proven empty"
	}
	c.forgetRanks(k)
}

// drop gives back the cards of a member that never ran.
func (c *cards) drop(k api.MemberKey, had []shim.Card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range had {
		delete(c.at(had[i].UUID).users, k)
	}
	c.forgetRanks(k)
}

// found counts cards as those of a member that a daemon before has given them to; over: the
// member has ended since, and they are to be proven empty.
func (c *cards) found(k api.MemberKey, had []shim.Card, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range had {
		card := c.at(had[i].UUID)
		if card.base < 0 {
			card.base = had[i].Base
		}
		if !over {
			card.users[k] = had[i]
		}
	}
}

// left says what attempts that are over still hold on a card; empty: nothing. c.mu is held.
func (c *cards) left(k *card) string {
	var who []string
	var known int64
	for _, p := range k.last.Processes {
		o := c.owners.of(p.PID)
		_, living := k.users[o.key]
		switch {
		case o.ours && living:
			continue
		case o.ours:
		case k.last.StrangersBytes >= 0 && len(k.users) == 0: // a gang's, by the provider's word
		default:
			continue
		}
		who = append(who, holder(p, o))
		known += max(0, p.VRAMBytes)
	}
	base, extra := k.base, int64(0)
	if base < 0 && k.unsure {
		base = max(0, k.info.VRAMBytes/driversShare-baseSlack)
	}
	if len(k.users) == 0 && base >= 0 && k.now.UsedBytes >= 0 {
		extra = k.now.UsedBytes - base
	}
	if len(who) == 0 && extra <= baseSlack {
		return ""
	}
	after := ""
	if k.after.Job != 0 {
		after = fmt.Sprintf(" after job %d epoch %d", k.after.Job, k.after.Epoch)
	}
	if len(who) == 0 {
		return fmt.Sprintf("%s of its VRAM not given back%s, by no process that can be seen", cluster.Size(extra), after)
	}
	slices.Sort(who)
	return fmt.Sprintf("%s of its VRAM not given back%s: held by %s", cluster.Size(max(known, extra)), after, strings.Join(who, ", "))
}

// holder names a process that holds VRAM, for people: pid 4711 (python, ada).
func holder(p gpu.Process, o owner) string {
	of := ""
	if o.ours {
		of = fmt.Sprintf(" of job %d epoch %d", o.key.Job, o.key.Epoch)
	}
	return fmt.Sprintf("pid %d (%s)%s", p.PID, o.who(), of)
}

// keepHeld writes down which cards are held when that has changed. c.mu is held.
func (c *cards) keepHeld() {
	now := map[string]leftCard{}
	for uuid, k := range c.card {
		if k.held != "" {
			now[uuid] = leftCard{After: k.after, Base: k.base}
		}
	}
	same := len(now) == len(c.heldNow)
	for uuid, l := range now {
		same = same && c.heldNow[uuid] == l
	}
	if !same {
		c.heldNow = now
		c.keep(now)
	}
}

// restore takes over what a daemon before held, and keeps what this one holds. The next reading decides.
func (c *cards) restore(s *stateDir) {
	held, lost := s.heldCards()
	c.mu.Lock()
	defer c.mu.Unlock()
	for uuid, l := range held {
		k := c.at(uuid)
		k.after, k.base, k.held = l.After, l.Base, notYet
	}
	if lost {
		for _, k := range c.card {
			k.unsure, k.held = true, notYet
		}
	}
	c.heldNow, c.keep = held, s.keepHeldCards
	c.keep(held) // so that a record which is missing is one that was lost
}

const notYet = "not proven empty yet"

// holding reports whether a card waits to be empty, so that it is looked at more often.
func (c *cards) holding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heldNow) > 0
}

// resume takes a person's word that a card is good: what was remembered of it is forgotten,
// and what is in use on it now is its new base. What the next reading shows all the same
// stays, and is the answer.
func (c *cards) resume(ctx context.Context, uuid string) error {
	c.mu.Lock()
	k := c.card[uuid]
	c.mu.Unlock()
	if k == nil || c.provider == nil { // a daemon before may have held a card that this one has no driver for
		return api.Errorf(api.CodeNotFound, "this node has no card %s", uuid)
	}
	if r, ok := c.provider.(gpu.Resumer); ok {
		if err := r.Resume(ctx, uuid); err != nil {
			return err
		}
	}
	c.mu.Lock()
	k.base, k.idle, k.unsure = -1, -1, false
	c.mu.Unlock()
	if err := c.read(ctx, readWait); err != nil {
		return api.Errorf(api.CodeConflict, "card %d can't be read: %v", k.info.Index, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := strings.Trim(k.now.Unhealthy+"; "+k.now.Held, "; "); why != "" {
		return api.Errorf(api.CodeConflict, "card %d stays out of service: %s", k.info.Index, why)
	}
	return nil
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
