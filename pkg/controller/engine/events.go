package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
)

// busKeep is how many events stay in memory for followers; whoever is further behind
// reads them from the store.
const busKeep = 4096

// followPage is how many events a follower is given at a time: it may stop reading and keep them.
const followPage = 100

// bus hands committed events to followers. A slow follower costs nothing: it is woken and
// reads at its own pace.
type bus struct {
	mu     sync.Mutex
	recent []api.Event   // newest last, at most 2*busKeep beside what came last; followers read in it, so what is there never changes
	last   int64         // Seq of the newest committed event
	wake   chan struct{} // closed and replaced at each publish
}

func (b *bus) init(last int64) {
	b.last = max(0, last)
	b.wake = make(chan struct{})
}

func (b *bus) publish(evs []api.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.recent)+len(evs) > 2*busKeep {
		b.recent = append(make([]api.Event, 0, 2*busKeep), b.recent[max(0, len(b.recent)-busKeep):]...)
	}
	b.recent = append(b.recent, evs...)
	b.last = evs[len(evs)-1].Seq
	close(b.wake)
	b.wake = make(chan struct{})
}

// after gives a page of the events in memory behind since, which nobody may change, what to wait
// on when there are none, and whether memory reaches back that far.
func (b *bus) after(since int64) (evs []api.Event, wake <-chan struct{}, complete bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since >= b.last {
		return nil, b.wake, true
	}
	if len(b.recent) == 0 || b.recent[0].Seq > since+1 {
		return nil, b.wake, false
	}
	i, _ := slices.BinarySearchFunc(b.recent, since+1, func(e api.Event, s int64) int { return int(e.Seq - s) })
	end := min(i+followPage, len(b.recent))
	return b.recent[i:end:end], b.wake, true
}

func (b *bus) lastSeq() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// LastEvent is the number of the newest committed event.
func (e *Engine) LastEvent() int64 { return e.bus.lastSeq() }

// Events reads a page of the events of a job (0: of all) behind since: at most limit of them, and
// never more than [api.EventsPage]. more says that the page is full and not the last.
func (e *Engine) Events(ctx context.Context, job, since int64, limit int) (evs []api.Event, more bool, err error) {
	if limit <= 0 || limit > api.EventsPage {
		limit = api.EventsPage
	}
	evs, err = e.store.Events(ctx, job, since, limit+1)
	if len(evs) > limit {
		return evs[:limit], true, err
	}
	return evs, false, err
}

// siteEvents is how many events of no job are looked at for those of one node.
const siteEvents = 5000

// SiteEvents reads the newest events of no job, in their order: at most limit of them, of this node alone where it is named.
func (e *Engine) SiteEvents(ctx context.Context, node string, limit int) ([]api.Event, error) {
	if limit <= 0 || limit > api.EventsPage {
		limit = api.EventsPage
	}
	most := limit
	if node != "" {
		most = siteEvents
	}
	evs, err := e.store.SiteEvents(ctx, most)
	if node != "" {
		evs = slices.DeleteFunc(evs, func(ev api.Event) bool { return ev.Node != node })
	}
	return evs[max(0, len(evs)-limit):], err
}

// Follow calls fn with each event behind since (-1: from now on), in order, without gap or
// repeat, until fn or ctx ends it.
func (e *Engine) Follow(ctx context.Context, job, since int64, fn func([]api.Event) error) error {
	if since < 0 {
		since = e.bus.lastSeq()
	}
	page := followPage
	if job != 0 {
		page = api.EventsPage // few of them are kept
	}
	for {
		evs, wake, complete := e.bus.after(since)
		if !complete {
			var err error
			if evs, err = e.oldEvents(ctx, since, page); err != nil {
				return err
			}
		}
		if len(evs) > 0 {
			since = evs[len(evs)-1].Seq
			if job != 0 {
				evs = ofJob(evs, job)
			}
			if len(evs) > 0 {
				if err := fn(evs); err != nil {
					return err
				}
			}
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.done:
			return errStopped
		}
	}
}

// oldReaders followers may read from the store at a time: a thousand that begin together would
// leave no processor to anybody else.
const oldReaders = 2

func (e *Engine) oldEvents(ctx context.Context, since int64, page int) ([]api.Event, error) {
	select {
	case e.oldReads <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-e.oldReads }()
	return e.store.Events(ctx, 0, since, page)
}

// ofJob gives the events of one job.
func ofJob(evs []api.Event, job int64) []api.Event {
	var out []api.Event
	for i := range evs {
		if evs[i].JobID == job {
			out = append(out, evs[i])
		}
	}
	return out
}

// logEvents writes the lines of the outside contract: one grep on the job id tells its story.
func (e *Engine) logEvents(evs []api.Event) {
	for i := range evs {
		ev := &evs[i]
		switch ev.Type {
		case api.EventReserved:
			e.log.Info("gang reserved", "job", ev.JobID, "epoch", ev.Epoch, "size", ev.Size, "nodes", len(ev.Nodes))
		case api.EventStarted:
			e.log.Info("gang started", "job", ev.JobID, "epoch", ev.Epoch)
		case api.EventRolledBack:
			e.log.Warn("gang rolled back", "job", ev.JobID, "epoch", ev.Epoch, "why", ev.Text)
		case api.EventDrainStarted:
			trigger := -1
			if ev.Trigger != nil {
				trigger = *ev.Trigger
			}
			e.log.Info("gang drain started", "job", ev.JobID, "epoch", ev.Epoch, "trigger", trigger, "cause", ev.Cause, "moved", ev.Moved)
		case api.EventMemberStopped:
			e.log.Info("member stopped", "job", ev.JobID, "epoch", ev.Epoch, "node", ev.Node, "forced", ev.Forced)
		case api.EventDrainCompleted:
			e.log.Info("gang drain completed", "job", ev.JobID, "epoch", ev.Epoch, "outcome", ev.Outcome, "cause", ev.Cause, "seconds", ev.Seconds)
		case api.EventStaleRefused:
			e.log.Warn("stale epoch refused", "job", ev.JobID, "epoch", ev.Epoch, "node", ev.Node, "claimed", ev.ClaimedEpoch)
		case api.EventMemberFound:
			e.log.Warn("record of a member not whole", "job", ev.JobID, "epoch", ev.ClaimedEpoch, "node", ev.Node, "why", ev.Text)
		case api.EventAcknowledged:
			e.log.Info("notice acknowledged", "job", ev.JobID, "epoch", ev.Epoch, "ranks", ev.Acknowledged, "of", ev.Size)
		case api.EventStallSuspected:
			e.log.Info("stall suspected", "job", ev.JobID, "epoch", ev.Epoch, "node", ev.Node, "why", ev.Text)
		case api.EventStallDismissed:
			e.log.Info("stall dismissed", "job", ev.JobID, "epoch", ev.Epoch, "why", ev.Text)
		case api.EventIdleWarned:
			e.log.Warn("gang idles", "job", ev.JobID, "epoch", ev.Epoch, "text", ev.Text)
		case api.EventIdleOver:
			e.log.Info("gang works again", "job", ev.JobID, "epoch", ev.Epoch)
		case api.EventWatchBlind:
			e.log.Warn("watchdog is blind", "job", ev.JobID, "epoch", ev.Epoch, "node", ev.Node, "text", ev.Text)
		case api.EventNodeLost:
			e.log.Error("DEAD NODE", "node", ev.Node, "jobs", ids(ev.Jobs), "last_seen", ev.LastSeen.Format(time.RFC3339))
		case api.EventNodeDrained:
			e.log.Warn("node drained", "node", ev.Node, "reason", ev.Text)
		case api.EventNodeRebootAsked, api.EventNodeRebootCancelled, api.EventNodeRebooting:
			e.log.Info(strings.ReplaceAll(string(ev.Type), "_", " "), "node", ev.Node, "text", ev.Text)
		case api.EventNodeRebootFailed:
			e.log.Error("node reboot failed", "node", ev.Node, "reason", ev.Text)
		case api.EventEnded:
			e.log.Info("job ended", "job", ev.JobID, "epoch", ev.Epoch, "state", ev.State, "cause", ev.Cause)
		}
	}
}

// ids is a list of jobs as one word of a log line.
func ids(jobs []int64) string {
	words := make([]string, len(jobs))
	for i, id := range jobs {
		words[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(words, ",")
}
