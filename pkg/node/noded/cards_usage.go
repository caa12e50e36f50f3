package noded

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/node/shim"
)

type rankKey struct {
	api.MemberKey
	rank int
}

// usedBy is the VRAM that the processes of a member, or of one rank of it, hold on a card;
// -1: not known. rank -1 is all of them. c.mu is held.
func (c *cards) usedBy(k *card, key api.MemberKey, rank int) int64 {
	u, on := k.users[key]
	if !on || !k.known {
		return -1
	}
	if len(u.Ranks) == 1 {
		rank = -1 // the card is this rank's alone within its gang
	}
	if len(k.users) == 1 && rank < 0 {
		// Nobody else of ours is on it: no need for figures of processes.
		if k.now.UsedBytes < 0 {
			return -1
		}
		return max(0, k.now.UsedBytes-max(0, k.base))
	}
	var sum int64
	seen := false
	for _, p := range k.last.Processes {
		o := c.owners.of(p.PID)
		if !o.ours || o.key != key || rank >= 0 && o.rank >= 0 && o.rank != rank {
			continue
		}
		if p.VRAMBytes < 0 || rank >= 0 && o.rank < 0 {
			return -1
		}
		sum, seen = sum+p.VRAMBytes, true
	}
	if !seen && k.now.UsedBytes > 0 && len(k.last.Processes) == 0 {
		return -1 // used, and the driver lists nobody
	}
	return sum
}

// peak remembers the most that ranks were seen using on a card. c.mu is held.
func (c *cards) peak(k *card) {
	for key, u := range k.users {
		for _, r := range u.Ranks {
			at := rankKey{key, r}
			c.peaks[at] = max(c.peaks[at], c.usedBy(k, key, r))
		}
	}
}

// peakOf is the most that a rank was seen using on one card, 0: not known.
func (c *cards) peakOf(key api.MemberKey, rank int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.peaks[rankKey{key, rank}])
}

// forgetRanks drops what was counted of a member. c.mu is held.
func (c *cards) forgetRanks(key api.MemberKey) {
	for at := range c.over {
		if at.MemberKey == key {
			delete(c.over, at)
		}
	}
	for at := range c.peaks {
		if at.MemberKey == key {
			delete(c.peaks, at)
		}
	}
}

// above writes what is used beyond a limit, rounded up: 40.01G of 40G reads 40.1G.
func above(bytes int64) string {
	const tenth = (1 << 30) / 10.0
	return strconv.FormatFloat(math.Ceil(float64(bytes)/tenth)/10, 'f', -1, 64) + "G"
}

type overKey struct {
	api.MemberKey
	uuid string
}

// overrun is a member that uses more of a shared card than it asked for.
type overrun struct {
	api.MemberKey
	rank  int
	since time.Time
	text  string // said at the begin, and as long as it lasts
	last  string // with the newest figures
	ended bool
	stop  bool // the grace is over
}

// overruns compares what is used on shared cards with what was asked for. It gives what has
// begun, ended, or lasted for the grace since the last call. A figure that is not known is no
// overrun, and ends none.
func (c *cards) overruns(now time.Time, node string, grace time.Duration) []overrun {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []overrun
	for _, i := range c.infos {
		k := c.card[i.UUID]
		for key, u := range k.users {
			if !u.Shared || u.VRAMBytes == 0 {
				continue
			}
			used := c.usedBy(k, key, -1)
			at := overKey{key, i.UUID}
			was := c.over[at]
			switch {
			case used < 0:
			case used <= u.VRAMBytes:
				if was != nil {
					was.ended = true
					out = append(out, *was)
					delete(c.over, at)
				}
			case was == nil:
				o := &overrun{MemberKey: key, rank: c.largest(k, key, u), since: now}
				o.text = fmt.Sprintf("rank %d uses %s of %s asked on card %d of %s, which others share", o.rank, above(used), cluster.Size(u.VRAMBytes),
					i.Index, node)
				c.over[at] = o
				out = append(out, *o)
				if grace > 0 {
					continue
				}
				fallthrough
			default:
				o := c.over[at]
				if !o.stop && now.Sub(o.since) >= grace {
					o.stop = true
					o.last = fmt.Sprintf("rank %d used %s of %s asked on card %d, for %s", o.rank, above(used), cluster.Size(u.VRAMBytes), i.Index,
						when.Words(now.Sub(o.since)))
					out = append(out, *o)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b overrun) int { return cmp.Or(a.Compare(b.MemberKey), cmp.Compare(a.rank, b.rank)) })
	return out
}

// largest is the rank that uses most of a card. c.mu is held.
func (c *cards) largest(k *card, key api.MemberKey, u shim.Card) int {
	best, most := u.Ranks[0], int64(-1)
	for _, r := range u.Ranks {
		if used := c.usedBy(k, key, r); used > most {
			best, most = r, used
		}
	}
	return best
}
