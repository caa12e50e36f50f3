package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/controller/config"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/jobapi"
)

const (
	// A daemon that is silent for a fifth of the lease is killed, so that its successor is in
	// session well before the lease ends. On a busy machine a second of silence means nothing.
	silencePart = 5
	minSilence  = time.Second
	maxSilence  = 10 * time.Second
	// glance is how often a keeper looks when nothing is said.
	glance = 200 * time.Millisecond
	// A daemon that failed so often in a row, each time before it ran for steady, is left alone.
	mostFailures = 5
	steady       = 10 * time.Second
	// The pause before a daemon is started again doubles with each failure.
	firstPause = 100 * time.Millisecond
)

// silence is how long a daemon of the cluster may give no sign of life.
func (l layout) silence() time.Duration {
	cfg, err := config.LoadController(l.config(controller), nil)
	if err != nil || cfg.Lease == 0 {
		return maxSilence
	}
	return min(max(cfg.Lease/silencePart, minSilence), maxSilence)
}

// keeper sees to it that one daemon runs. Its goroutine owns it.
type keeper struct {
	layout
	bin, name string
	ear       *net.UnixConn
	silence   time.Duration

	known    record  // of the process that is watched
	ours     *daemon // that this process started; nil: another gangd dev did
	began    time.Time
	heard    time.Time // last sign of life
	ready    bool
	upBy     time.Time // it must be ready by then
	ending   time.Time // it said that it stops; zero: it did not
	failures int       // in a row
	left     bool      // alone, until somebody starts it
}

// listen opens the ears of all daemons, which must be there before they start.
func (c *Cluster) listen() error {
	for _, name := range c.names() {
		path := c.notify(name)
		_ = os.Remove(path) // of one that was killed; the lock says that nobody listens there
		ear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			c.deaf()
			return err
		}
		c.keepers = append(c.keepers, &keeper{layout: c.layout, bin: c.bin, name: name, ear: ear, silence: c.silence()})
	}
	return nil
}

// deaf closes them. A daemon that runs on speaks to nobody then, which it does not mind.
func (c *Cluster) deaf() {
	for _, k := range c.keepers {
		_ = os.Remove(k.notify(k.name))
		_ = k.ear.Close()
	}
}

// Watch stays until ctx ends, and then stops the cluster; or until someone else stopped it. A
// daemon that ends or gives no sign of life meanwhile is started again, with a line on w. One
// that fails again and again is left to be started by hand.
func (c *Cluster) Watch(ctx context.Context, w io.Writer) error {
	defer c.deaf()
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var said sync.Mutex
	for i, k := range c.keepers {
		k.begin(c.daemons[i])
		k.ready = true // Start has waited for it
		all.Go(func() {
			k.keep(keeping, func(text string) {
				said.Lock()
				defer said.Unlock()
				fmt.Fprintln(w, text)
			})
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		return nil // stopped from elsewhere
	}
	return Stop(c.dir)
}

// begin watches a process that was just started; nil: by somebody else.
func (k *keeper) begin(d *daemon) {
	now := time.Now()
	if d != nil {
		k.known = d.record
	}
	k.ours, k.began, k.heard, k.upBy = d, now, now, now.Add(startPatience)
	k.ready, k.ending = false, time.Time{}
}

// keep returns when ctx ends, or the cluster was stopped.
func (k *keeper) keep(ctx context.Context, say func(string)) {
	defer context.AfterFunc(ctx, func() { _ = k.ear.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, jobapi.MaxDatagram)
	looked := time.Now()
	for {
		_ = k.ear.SetReadDeadline(time.Now().Add(glance))
		if ctx.Err() != nil { // after the deadline, so that its end is not overwritten
			return
		}
		n, err := k.ear.Read(buf)
		now := time.Now()
		switch {
		case err == nil:
			k.hear(now, jobapi.Parse(buf[:n]))
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return // closed
		}
		// Who was stopped itself (Ctrl-Z, a laptop that slept) has missed signs.
		if now.Sub(looked) > k.silence/2 {
			k.heard = now
		}
		looked = now
		r, ok := k.record(k.name)
		if !ok {
			return
		}
		if r != k.known {
			k.begin(nil)
			k.known, k.failures, k.left = r, 0, false
		}
		if why := k.fault(now); why != "" && !k.left {
			k.bounce(ctx, why, say)
			looked = time.Now()
		}
	}
}

func (k *keeper) hear(now time.Time, n jobapi.Notification) {
	if n.Beat || n.Ready {
		k.heard = now
	}
	k.ready = k.ready || n.Ready
	if n.Stopping && k.ending.IsZero() {
		k.ending = now
	}
	if until := now.Add(n.Extend); until.After(k.upBy) {
		k.upBy = until
	}
}

// fault says what is wrong with the process; empty: nothing.
func (k *keeper) fault(now time.Time) string {
	switch {
	case !k.known.alive():
		return "ended" + k.how()
	case !k.ending.IsZero():
		if now.Sub(k.ending) > stopPatience {
			return fmt.Sprintf("did not end within %v", when.Words(stopPatience))
		}
	case !k.ready:
		if now.After(k.upBy) {
			return "was not up in time"
		}
	case now.Sub(k.heard) > k.silence:
		return fmt.Sprintf("gave no sign of life for %v", when.Words(k.silence))
	}
	return ""
}

// how is the exit of a process that we started.
func (k *keeper) how() string {
	if k.ours == nil {
		return ""
	}
	<-k.ours.done // it is dead, and is being reaped
	if k.ours.err == nil {
		return " (exit status 0)"
	}
	return fmt.Sprintf(" (%v)", k.ours.err)
}

// bounce kills what is left of the process and starts it again, after a pause that grows with
// the failures, unless another gangd dev is at it.
func (k *keeper) bounce(ctx context.Context, why string, say func(string)) {
	failures := k.failures + 1
	if time.Since(k.began) >= steady {
		failures = 1
	}
	select {
	case <-time.After(firstPause << (failures - 1)):
	case <-ctx.Done():
		return
	}
	lock, err := k.lock()
	if err != nil {
		return // we look again
	}
	defer lock.Close()
	if r, ok := k.record(k.name); !ok || r != k.known {
		return
	}
	k.failures = failures
	if err := k.known.signal(stopPatience, unix.SIGKILL); err != nil {
		say(fmt.Sprintf("%s %s, and can't be killed: %v", k.name, why, err))
		k.left = true
		return
	}
	if failures >= mostFailures {
		text := ""
		if k.ours != nil {
			text = k.tail(k.ours)
		}
		say(fmt.Sprintf("%s %s, for the %dth time in a row, and is left alone; start it again: gangd dev --restart=%s --dir=%s%s",
			k.name, why, failures, k.name, Quote(k.dir), text))
		k.left = true
		return
	}
	d, err := k.spawn(k.bin, k.name)
	if err != nil {
		say(fmt.Sprintf("%s %s, and can't be started again: %v", k.name, why, err))
		k.left = true
		return
	}
	k.begin(d)
	say(fmt.Sprintf("%s %s: started again", k.name, why))
}
