package noded

import (
	"context"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/sitehook"
)

// Health is a site's health program and how often it runs.
type Health struct {
	sitehook.Program
	Interval time.Duration
}

// sickInterval bounds the pause while a node is out of service, so that it comes back soon
// after it was mended.
const sickInterval = 10 * time.Second

// checkHealth runs the health program once and tells what has changed.
func (d *Daemon) checkHealth(ctx context.Context) (sick bool) {
	v := d.opts.Health.Check(ctx, d.opts.Name)
	was := d.board.healthNow()
	if !v.Known || v.Sick == was.Sick {
		return was.Sick != ""
	}
	if v.Sick != "" {
		d.log.Warn("health program: out of service", "reason", v.Sick)
	} else {
		d.log.Info("health program: fit again")
	}
	d.board.setHealth(api.NodeHealth{Sick: v.Sick})
	return v.Sick != ""
}

// watchHealth runs the health program until ctx ends. The first look comes before the first
// session: a node that is not fit takes no work at all.
func (d *Daemon) watchHealth(ctx context.Context) {
	if d.opts.Health.Path == "" {
		return
	}
	sick := d.checkHealth(ctx)
	d.running.Go(func() {
		for ctx.Err() == nil {
			pause := d.opts.Health.Interval
			if sick {
				pause = min(pause, sickInterval)
			}
			sleep(ctx, pause)
			sick = d.checkHealth(ctx)
		}
	})
}
