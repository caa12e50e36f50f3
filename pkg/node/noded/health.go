package noded

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/sitehook"
)

// Health is a site's health program and how often it runs.
type Health struct {
	sitehook.Program
	Interval time.Duration
}

// sickInterval bounds the pause while a node is out of service, so that it comes back soon
// after it was mended.
const sickInterval = 10 * time.Second

func (d *daemon) checkHealth(ctx context.Context) (sick bool) {
	h := d.now().Health
	if h.Path == "" { // or not any more
		return d.fitness.say(d, func(f *fitness) { f.program = "" })
	}
	v := h.Check(ctx, d.opts.Name)
	return d.fitness.say(d, func(f *fitness) {
		if v.Known {
			f.program = v.Sick
		}
	})
}

// fitness is why this node is not fit for work, by whom; empty: it is.
type fitness struct {
	mu             sync.Mutex
	program, needs string
	epilog         string // those that have failed
	trial          string // why it can't hold a member, see [daemon.trial]
}

// say changes it, and tells what has changed of the whole.
func (f *fitness) say(d *daemon, change func(*fitness)) (sick bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	text := strings.Join(slices.DeleteFunc([]string{f.needs, f.program, f.epilog, f.trial}, func(s string) bool { return s == "" }), "; ")
	if text == d.board.healthNow().Sick {
		return text != ""
	}
	if text != "" {
		d.log.Warn("out of service", "reason", text)
	} else {
		d.log.Info("fit again")
	}
	d.board.setHealth(api.NodeHealth{Sick: text})
	return text != ""
}

func (f *fitness) failedTrial() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trial != ""
}

// watchHealth runs the health program until ctx ends. The first look comes before the first
// session: a node that is not fit takes no work at all.
func (d *daemon) watchHealth(ctx context.Context) {
	sick := d.checkHealth(ctx)
	d.running.Go(func() {
		for ctx.Err() == nil {
			pause := cmp.Or(d.now().Health.Interval, sickInterval)
			if sick {
				pause = min(pause, sickInterval)
			}
			t := time.NewTimer(pause)
			select {
			case <-ctx.Done():
			case <-d.healthAgain:
			case <-t.C:
			}
			if t.Stop(); ctx.Err() == nil {
				sick = d.checkHealth(ctx)
			}
		}
	})
}
