package noded

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gpu"
	"gangd/pkg/rankenv"
	"gangd/pkg/watchdog"
)

// inventoryTimeout bounds the first look at the cards: a driver that hangs must not keep a
// node without its other work. A node whose driver wakes up later says so in its next session.
const inventoryTimeout = 20 * time.Second

// cards is what the node knows of its cards and what of it the controller was told.
type cards struct {
	provider gpu.Provider
	ours     func(pid int) bool
	log      *slog.Logger

	mu    sync.Mutex
	infos []api.CardInfo
	index map[string]int
	now   map[string]api.CardSample
	told  map[string]api.CardSample
	fresh bool   // now is from the last try, and not from one before
	bad   string // the last error, logged once
}

func newCards(p gpu.Provider, ours func(int) bool, log *slog.Logger) *cards {
	return &cards{provider: p, ours: ours, log: log, index: map[string]int{}, now: map[string]api.CardSample{}, told: map[string]api.CardSample{}}
}

// inventory reads what cards there are.
func (c *cards) inventory(ctx context.Context) {
	if c.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	infos, err := c.provider.Inventory(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.complain(err)
		return
	}
	c.infos, c.index = infos, map[string]int{}
	for _, i := range infos {
		c.index[i.UUID] = i.Index
	}
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

// sample reads the cards once; true when there is something to tell. A driver that does
// not answer within the time leaves the last figures standing.
func (c *cards) sample(ctx context.Context, within time.Duration) bool {
	if c.provider == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	samples, err := c.provider.Sample(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = err == nil
	if err != nil {
		c.complain(err)
		return false
	}
	for _, s := range samples {
		c.now[s.UUID] = c.judge(s)
	}
	return !maps.Equal(c.now, c.told)
}

// judge splits what is used into ours and others'. What can't be known of strangers stays
// what was last known: a figure of zero would let a gang be placed on top of them.
func (c *cards) judge(s gpu.Sample) api.CardSample {
	out := api.CardSample{UUID: s.UUID, UsedBytes: -1, Utilization: s.Utilization, Unhealthy: s.Unhealthy}
	if s.Xid != 0 && out.Unhealthy == "" {
		out.Unhealthy = "Xid " + strconv.Itoa(s.Xid)
	}
	out.StrangersBytes = c.strangers(s)
	if s.UsedBytes >= 0 {
		out.UsedBytes = max(0, s.UsedBytes-out.StrangersBytes)
	}
	return out
}

func (c *cards) strangers(s gpu.Sample) int64 {
	if s.StrangersBytes >= 0 {
		return s.StrangersBytes
	}
	var sum int64
	for _, p := range s.Processes {
		switch {
		case c.ours(p.PID):
		case p.VRAMBytes < 0:
			return c.now[s.UUID].StrangersBytes
		default:
			sum += p.VRAMBytes
		}
	}
	return sum
}

// reading is the newest of one card, for watchdogs: what was not seen this time is unknown.
func (c *cards) reading(uuid string) watchdog.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.now[uuid]
	if !ok || !c.fresh {
		return watchdog.Unknown
	}
	return watchdog.Reading{Utilization: s.Utilization, UsedBytes: s.UsedBytes}
}

// again makes the figures of some cards news: the controller has cleared them.
func (c *cards) again(uuids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range uuids {
		delete(c.told, u)
	}
}

// news is what changed since the controller was last told.
func (c *cards) news() []api.CardSample {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []api.CardSample
	for _, i := range c.infos {
		if s, ok := c.now[i.UUID]; ok && c.told[i.UUID] != s {
			c.told[i.UUID] = s
			out = append(out, s)
		}
	}
	return out
}

// restart forgets what was told: a new session knows nothing.
func (c *cards) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.told)
}

// inCgroup reports whether a process is in a group whose path holds part.
func inCgroup(pid int, part string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return err == nil && strings.Contains(string(b), "/"+part)
}

// hasMarker reports whether a process carries a member's marker that begins with prefix.
func hasMarker(pid int, prefix string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && strings.Contains("\x00"+string(b), "\x00"+rankenv.MarkerName+"="+prefix)
}
