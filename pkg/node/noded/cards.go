package noded

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/shim"
)

// inventoryTimeout bounds the first look at the cards: a driver that hangs must not keep a
// node without its other work. A node whose driver wakes up later says so in its next session.
const inventoryTimeout = 20 * time.Second

// cards is what the node knows of its cards, who it has given them to, and what of it the
// controller was told.
type cards struct {
	provider gpu.Provider
	owners   *owners
	log      *slog.Logger
	keep     func(map[string]leftCard) // writes down what is held, for a daemon to come

	turn     chan struct{} // holds the right to read; guards began and failed
	began    time.Time     // when the newest reading began
	failed   error
	mu       sync.Mutex
	infos    []api.CardInfo
	unread   bool // the driver did not answer when it was asked what there is
	index    map[string]int
	card     map[string]*card
	lastSent map[string]api.CardSample
	over     map[overKey]*overrun
	peaks    map[rankKey]int64
	fresh    bool      // the figures are from the last try, and not from one before
	bad      string    // the last error, logged once
	readAt   time.Time // when the newest reading that succeeded began
	heldNow  map[string]leftCard
}

// card is one card of this node.
type card struct {
	info  api.CardInfo
	known bool // it has been read
	// absent: the driver listed it and does so no more.
	absent bool
	last   gpu.Sample
	now    api.CardSample
	users  map[api.MemberKey]shim.Card // who it is given to, until it is proven empty of them

	// base is the VRAM in use without any gang on it, strangers' apart, -1: not known; idle
	// is what it was at the last reading without a gang, by whose changes base moves.
	base, idle int64
	after      api.MemberKey // the member that left it last
	held       string        // why it is not given on
	// unsure: whether it was held is not known. Until it was seen with next to nothing in use, a
	// driver's share counts as its base.
	unsure bool
}

func newCards(p gpu.Provider, o *owners, log *slog.Logger) *cards {
	c := &cards{provider: p, owners: o, log: log, keep: func(map[string]leftCard) {}, turn: make(chan struct{}, 1), index: map[string]int{},
		card:     map[string]*card{},
		lastSent: map[string]api.CardSample{}, over: map[overKey]*overrun{}, peaks: map[rankKey]int64{}, heldNow: map[string]leftCard{}}
	c.turn <- struct{}{}
	return c
}

func (c *cards) inventory(ctx context.Context) {
	if c.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	infos, err := c.provider.Inventory(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unread = err != nil; c.unread {
		c.complain(err)
		return
	}
	c.infos, c.index = infos, map[string]int{}
	for _, i := range infos {
		c.index[i.UUID] = i.Index
		c.at(i.UUID).info = i
	}
}

// at is a card by its UUID. c.mu is held.
func (c *cards) at(uuid string) *card {
	k := c.card[uuid]
	if k == nil {
		k = &card{info: api.CardInfo{UUID: uuid}, base: -1, idle: -1, users: map[api.MemberKey]shim.Card{},
			now: api.CardSample{UUID: uuid, UsedBytes: -1, Utilization: -1}}
		c.card[uuid] = k
	}
	return k
}

// complain logs an error once, not each second. c.mu is held.
func (c *cards) complain(err error) {
	if s := err.Error(); s != c.bad {
		c.bad = s
		c.log.Warn("cards not read", "err", err)
	}
}

func (c *cards) list() []api.CardInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.infos)
}

func (c *cards) unanswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread
}

// present counts the cards that the driver lists. What it says is old when it has not answered for
// longer than a start waits for it; why is its last error then.
func (c *cards) present() (n int, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.infos {
		if !c.card[i.UUID].absent {
			n++
		}
	}
	if c.bad != "" && time.Since(c.readAt) > probeWait {
		why = c.bad
	}
	return n, why
}

// indexes is shared and not changed.
func (c *cards) indexes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.index
}

// changed is closed, or sent to, when a sample should be taken before its time.
func (c *cards) changed() <-chan struct{} {
	if c.provider == nil {
		return nil
	}
	return c.provider.Changed()
}

// sample reads the cards once; true when there is something to tell.
func (c *cards) sample(ctx context.Context, within time.Duration) bool {
	if c.provider == nil {
		return false
	}
	err := c.read(ctx, within)
	c.mu.Lock()
	defer c.mu.Unlock()
	for uuid, k := range c.card {
		if k.known && c.lastSent[uuid] != k.now {
			return err == nil
		}
	}
	return false
}

// read takes in a reading that begins after the call. Callers that come together share one.
// A driver that does not answer within the time leaves the last figures standing.
func (c *cards) read(ctx context.Context, within time.Duration) error {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.began.After(asked) {
		return c.failed
	}
	c.began = time.Now()
	samples, err := c.provider.Sample(ctx)
	c.failed = err
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = err == nil
	if err != nil {
		if ctx.Err() == nil {
			c.complain(err)
		}
		return err
	}
	c.bad, c.readAt = "", c.began
	seen := map[int]bool{}
	missing := maps.Clone(c.index)
	for _, s := range samples {
		delete(missing, s.UUID)
		k := c.at(s.UUID)
		k.last, k.known, k.absent = s, true, false
		for _, p := range s.Processes {
			seen[p.PID] = true
		}
		for _, u := range s.Users {
			seen[u.PID] = true
		}
		c.judge(k)
		c.peak(k)
	}
	for uuid := range missing { // a driver that was started again lists what is left
		k := c.at(uuid)
		k.last.Unhealthy, k.known, k.absent = "the driver does not list it any more", true, true
		c.judge(k)
	}
	c.owners.only(seen)
	c.keepHeld()
	return nil
}

// judge makes of the newest reading what the controller is told. c.mu is held.
func (c *cards) judge(k *card) {
	s := &k.last
	out := api.CardSample{UUID: s.UUID, UsedBytes: -1, Utilization: s.Utilization, Unhealthy: unhealthy(s), StrangersBytes: c.strangers(k)}
	if s.UsedBytes >= 0 {
		out.UsedBytes = max(0, s.UsedBytes-out.StrangersBytes)
	}
	k.now = out
	if k.held != "" {
		k.held = c.left(k)
	}
	if len(k.users) == 0 && k.held == "" && out.UsedBytes >= 0 {
		// Nobody of ours is on it and it is proven empty: what moves now is not of any gang.
		k.unsure = false
		switch {
		case k.base < 0:
			k.base = out.UsedBytes
		case k.idle >= 0:
			k.base = max(0, k.base+out.UsedBytes-k.idle)
		}
		k.idle = out.UsedBytes
	}
	k.now.Held = k.held
}

func unhealthy(s *gpu.Sample) string {
	if s.Unhealthy != "" || s.Xid == 0 {
		return s.Unhealthy
	}
	text := "Xid " + strconv.Itoa(s.Xid)
	if name := gpu.XidText(s.Xid); name != "" {
		text += ", " + name
	}
	return text
}

// driversShare is what a driver may keep of a card for itself while no process is listed:
// more than a sixteenth is somebody whom the driver does not list (another container).
const driversShare = 16

// strangers is the VRAM of those that are not ours. What can't be known of them stays what
// was last known: a figure of zero would let a gang be placed on top of them. c.mu is held.
func (c *cards) strangers(k *card) int64 {
	s := &k.last
	if s.StrangersBytes >= 0 {
		return s.StrangersBytes
	}
	var sum, all int64
	for _, p := range s.Processes {
		if p.VRAMBytes < 0 {
			return k.now.StrangersBytes
		}
		all += p.VRAMBytes
		if !c.owners.of(p.PID).ours {
			sum += p.VRAMBytes
		}
	}
	if unlisted := s.UsedBytes - all; len(k.users) == 0 && k.held == "" && unlisted > k.info.VRAMBytes/driversShare {
		sum += unlisted
	}
	return sum
}

// reading is the newest of one card, for the watchdogs of a member: what was not seen this
// time is unknown, and what others do on the card is not the member's.
func (c *cards) reading(key api.MemberKey, uuid string) watchdog.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.card[uuid]
	if k == nil || !k.known || !c.fresh {
		return watchdog.Unknown
	}
	share := k.last.Share(len(k.users) > 1 || k.now.StrangersBytes > 0, func(pid int) gpu.Whose { return c.owners.of(pid).whose(key) })
	r := watchdog.Reading{Utilization: share.Low, AtMost: share.High, UsedBytes: k.now.UsedBytes, Others: c.others(k, key, &share)}
	if len(k.users) > 1 {
		r.UsedBytes = c.usedBy(k, key, -1)
	}
	return r
}

// others names who else is on a card. c.mu is held.
func (c *cards) others(k *card, key api.MemberKey, s *gpu.Share) string {
	if s.Other > 0 {
		o := c.owners.of(s.Other)
		if o.ours {
			return fmt.Sprintf("job %d (%s, pid %d)", o.key.Job, o.comm, s.Other)
		}
		return fmt.Sprintf("%s (pid %d)", o.who(), s.Other)
	}
	for other := range k.users {
		if other != key {
			return fmt.Sprintf("job %d", other.Job)
		}
	}
	return ""
}

// again makes the figures of some cards news: the controller has cleared them.
func (c *cards) again(uuids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range uuids {
		delete(c.lastSent, u)
	}
}

// news is what changed since the controller was last told.
func (c *cards) news() []api.CardSample {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []api.CardSample
	for _, i := range c.infos {
		if k := c.card[i.UUID]; k.known && c.lastSent[i.UUID] != k.now {
			c.lastSent[i.UUID] = k.now
			out = append(out, k.now)
		}
	}
	return out
}

// restart forgets what was told: a new session knows nothing.
func (c *cards) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.lastSent)
}

// samples is how the cards of a member were seen last. c.mu is held.
func (c *cards) samples(of []shim.Card) []api.CardSample {
	var out []api.CardSample
	for _, u := range of {
		if k := c.card[u.UUID]; k != nil && k.known {
			out = append(out, k.now)
		}
	}
	return out
}
