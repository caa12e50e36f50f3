package noded

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

// A node on the controller's own host needs no certificate: it goes by the controller's socket. When another
// controller is on the list that socket is not enough, since who stands by serves no node. So the node gets itself a
// certificate from its own host's controller before it says that it knows the list, and no controller that it could
// not reach leads.

const (
	// enrolPatience bounds one try: the session waits for it.
	enrolPatience = 5 * time.Second
	// enrolAgain is how often what failed is tried again.
	enrolAgain = 15 * time.Second
)

// enrolled is how far a node without a certificate is.
type enrolled struct {
	mu   sync.Mutex
	done bool
	told string // why not, as it was logged last
	kept session.Kept
}

// needsTLS says whether one of several controllers can be reached over a network alone.
func needsTLS(k *session.Kept) bool {
	return len(k.List) > 1 && slices.ContainsFunc(k.List, func(c api.Controller) bool {
		return !slices.ContainsFunc(c.Addresses, func(a string) bool { return strings.HasPrefix(a, "unix:") })
	})
}

// enrol gets a certificate where the controllers need one. What fails is logged and tried again: jobs run on
// meanwhile, by the controller of this host.
func (d *daemon) enrol(ctx context.Context, k session.Kept) {
	e := &d.enrolled
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = k
	if d.opts.Enrol == nil || e.done || !needsTLS(&k) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, enrolPatience)
	defer cancel()
	conf, err := d.opts.Enrol(ctx)
	if err != nil {
		if err.Error() != e.told {
			d.log.Error("no certificate: this node is lost when another controller leads, until it joins: gangd token new --node="+d.opts.Name+
				" | gnoded join -, and start gnoded again",
				"err", err)
		}
		e.told = err.Error()
		return
	}
	e.done = true
	d.client.UseTLS(conf)
	d.log.Info("this node has a certificate by now: there are controllers on other hosts")
}

// keepEnrolling tries again what failed, and what an earlier process had no time for.
func (d *daemon) keepEnrolling(ctx context.Context) {
	if d.opts.Enrol == nil {
		return
	}
	d.enrol(ctx, d.state.kept)
	t := time.NewTicker(enrolAgain)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		d.enrolled.mu.Lock()
		k, done := d.enrolled.kept, d.enrolled.done
		d.enrolled.mu.Unlock()
		if done {
			return
		}
		d.enrol(ctx, k)
	}
}
