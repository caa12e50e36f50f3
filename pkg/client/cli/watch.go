package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// settleTime lets the events of one decision (a gang of 64 ranks ends in 64 of them)
// become one redraw; below what an eye tells from at once.
const settleTime = 50 * time.Millisecond

// lateLook is when the queue is read once more after the first time: a change between the
// first reading and the opening of the stream would not be seen otherwise. A variable, so
// that a test can tell what it shows from what the stream shows.
var lateLook = 300 * time.Millisecond

// follow shows the queue and shows it again whenever the controller tells of a change. On
// a terminal the running times tick between changes, without a call.
func (g *gqueue) follow(ctx context.Context, c *client.Client, s *screen) error {
	ctx, stop := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() { ended <- watchEvents(ctx, c, changed) }()
	err := g.redraw(ctx, c, s, changed, ended)
	stop()
	// A broken connection ends the other side too: by now it has returned or returns at once.
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// watchEvents turns the stream of events into wake-ups until the stream ends.
func watchEvents(ctx context.Context, c *client.Client, changed chan<- struct{}) error {
	return c.FollowEvents(ctx, api.JobRef{}, -1, func(api.Event) error {
		select {
		case changed <- struct{}{}:
		default: // a wake-up is already waiting
		}
		return nil
	})
}

func (g *gqueue) redraw(ctx context.Context, c *client.Client, s *screen, changed <-chan struct{}, ended chan error) error {
	var tick <-chan time.Time
	if s.terminal {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		tick = t.C
	}
	late := time.After(lateLook)
	reply, err := g.fetch(ctx, c)
	if err != nil {
		return err
	}
	last := ""
	for {
		if last, err = g.frame(s, reply.Jobs, last); err != nil {
			return err
		}
		select {
		case <-tick:
			continue
		case <-late:
		case <-changed:
			time.Sleep(settleTime)
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		if reply, err = g.fetch(ctx, c); err != nil {
			return err
		}
	}
}

// frame draws one state of the queue: over the last one on a terminal, below it elsewhere
// and only when it shows something new. It gives what it drew.
func (g *gqueue) frame(s *screen, jobs []api.Job, last string) (string, error) {
	var b bytes.Buffer
	frame := *s
	frame.w = &b
	if err := g.write(&frame, jobs); err != nil {
		return "", err
	}
	text := b.String()
	if text == last && !s.terminal {
		return last, nil
	}
	clock := ""
	if !g.long && !g.noHeader {
		clock = now().Local().Format("Mon Jan 02 15:04:05 2006") + "\n"
	}
	lead := ""
	switch {
	case s.terminal:
		lead = "\x1b[H\x1b[J" // home, and clear what is below
		text = clip(text, s.height-2)
	case last != "":
		lead = "\n"
	}
	_, err := io.WriteString(s.w, lead+clock+text)
	return text, err
}

// clip keeps the first lines of a text, and says how many there are below: a table longer
// than the window would scroll at each redraw.
func clip(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	if lines < 2 || len(all)-1 <= lines {
		return text
	}
	return strings.Join(all[:lines-1], "") + fmt.Sprintf("... and %d lines more: a taller window, or filters, show them\n", len(all)-lines)
}
