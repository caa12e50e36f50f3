package session

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// BootTime is CLOCK_BOOTTIME: it runs on while the machine sleeps, so that a lease that ran
// out during a suspend has run out, and no jump of the wall clock moves it.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
	}
	return time.Duration(ts.Nano())
}

// contact remembers when this node was last known not to be given up: the time from which its
// leases run. Where a site has several controllers that is the newest of
//
//   - when a beat was sent that the leader of the highest term seen has echoed, and
//   - the oldest of the newest words of all its controllers: of each when it was last asked and
//     did not lead, or was known to have ended (see [Client.LastContact]).
//
// Whoever leads from a time T on gives every node its whole lease from T. So all that counts must
// date from before T: an older leader echoes only while it trusts its seat, which ends before T,
// and whoever leads at T gave its last word before.
type contact struct {
	clock func() time.Duration // nil: BootTime
	wall  func() time.Time     // nil: time.Now
	last  atomic.Int64

	mu    sync.Mutex
	beats uint64                   // number of the last beat
	sent  map[uint64]time.Duration // beats under way, by number
	site  Kept
	words map[string]time.Duration // the newest of each controller, by name

	keeping sync.Mutex
}

// keep has the agent keep what is known of the controllers.
func (c *contact) keep(a Agent) error {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	return a.Keep(c.kept())
}

// Kept is what a node keeps of its site's controllers, also from one process of its daemon to the
// next. Version 0: there is one, which has no name.
type Kept struct {
	api.Controllers
	Term uint64 `json:"term"` // the highest seen
	// Ended are those whose process was seen to end, and which have not been met since.
	Ended []string `json:"ended,omitempty"`
}

func (c *contact) kept() Kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.site
}

// word: a controller was asked at the boot time asked, and did not lead at any time from then until it
// answered, or no process of it ran.
func (c *contact) word(name string, asked time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.site.Version == 0 {
		if name == "" {
			c.at(asked)
		}
		return
	}
	if c.words == nil {
		c.words = map[string]time.Duration{}
	}
	c.words[name] = max(c.words[name], asked)
	oldest := asked
	for i := range c.site.List {
		at, spoke := c.words[c.site.List[i].Name]
		if !spoke {
			return
		}
		oldest = min(oldest, at)
	}
	c.at(oldest)
}

// said takes in a word of a controller that was asked at the boot time asked. elsewhere: somebody
// leads in a higher term than was known.
func (c *contact) said(a Agent, w *api.Word, asked time.Duration) (elsewhere bool, err error) {
	if !w.Leads {
		c.word(w.Name, asked)
	}
	news, _ := c.leads(w.Term)
	if c.ended(w.Name, false) || news {
		err = c.keep(a)
	}
	return news, err
}

// leads takes in that somebody leads in a term, 0: as the only controller; false: somebody else has
// led in a higher one.
func (c *contact) leads(term uint64) (news, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term == 0 && c.site.Term == 0 { // a list that could not be read was of this site
		c.site.Controllers = api.Controllers{}
	}
	if term < c.site.Term {
		return false, false
	}
	news = term > c.site.Term
	c.site.Term = term
	return news, true
}

// listed takes in a list of controllers; false: it is no newer one.
func (c *contact) listed(l *api.Controllers) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l == nil || l.Version <= c.site.Version {
		return false
	}
	c.site.Controllers = *l
	return true
}

// ended takes in how a line with a controller came to its end: because its process did, or not
// known. A line that was opened counts as not known. It reports whether that is news.
func (c *contact) ended(name string, died bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.site.Ended, name) == died {
		return false
	}
	kept := slices.DeleteFunc(slices.Clone(c.site.Ended), func(n string) bool { return n == name })
	if died {
		kept = append(kept, name)
	}
	c.site.Ended = kept
	return true
}

// hasEnded says whether the process of a controller was seen to end, and none was met since.
func (c *contact) hasEnded(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.site.Ended, name)
}

func (c *contact) now() time.Duration {
	if c.clock == nil {
		return BootTime()
	}
	return c.clock()
}

func (c *contact) wallClock() time.Time {
	if c.wall == nil {
		return time.Now()
	}
	return c.wall()
}

// maxBeats bounds the beats under way: more than SilentBeats never are for long.
const maxBeats = 16

// beat gives the number of a beat that is about to be sent.
func (c *contact) beat() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil || len(c.sent) >= maxBeats {
		c.sent = map[uint64]time.Duration{}
	}
	c.beats++
	c.sent[c.beats] = c.now()
	return c.beats
}

// echo counts the contact from when the beat was sent: the controller counts its patience
// from a time after that, so the node's lease always ends first.
func (c *contact) echo(n, term uint64) {
	c.mu.Lock()
	at, ok := c.sent[n]
	ok = ok && term >= c.site.Term
	delete(c.sent, n)
	c.mu.Unlock()
	if ok {
		c.at(at)
	}
}

func (c *contact) at(t time.Duration) {
	for {
		old := c.last.Load()
		if int64(t) <= old || c.last.CompareAndSwap(old, int64(t)) {
			return
		}
	}
}
