package noded

import (
	"context"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/node/sitehook"
)

// A reboot is done by the site's program, when the controller knows that nothing of any job is here. It is told so in each
// session until the boot that the order names is over: a daemon that was stopped by what its program began carries it out
// again, unless the machine went away meanwhile. That it has come back is known from its boot id, and from nothing that the
// program says.

// reboots is the order that is being carried out, or was last.
type reboots struct {
	mu   sync.Mutex
	last api.RebootOrder
}

// begins says whether an order is one that nothing was done for yet.
func (r *reboots) begins(o *api.RebootOrder) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.Same(o) {
		return false
	}
	r.last = *o
	return true
}

// Reboot implements [session.Agent].
func (d *daemon) Reboot(o *api.RebootOrder) {
	if o.Boot != d.state.boot || !d.reboots.begins(o) {
		return
	}
	d.running.Go(func() {
		if why := d.reboot(d.ctx); why != "" && d.ctx.Err() == nil {
			d.log.Error("reboot failed", "reason", why)
			d.board.RebootFailed(api.RebootActual{RebootOrder: *o, Failed: why})
		}
	})
}

// reboot runs the program; what it gives is why nothing comes of it.
func (d *daemon) reboot(ctx context.Context) string {
	program := d.now().RebootProgram
	if program == "" {
		return "this node has no program for that any more"
	}
	for _, m := range d.all() {
		if !m.over.Load() { // the controller knows of none: it is not for this node to guess who is wrong
			return "job " + keyName(m.key) + " is still here"
		}
	}
	d.log.Info("rebooting", "program", program)
	p := sitehook.Program{Path: program, Timeout: d.site().RebootTimeout}
	if err := p.Run(ctx, []string{"GANG_NODE=" + d.opts.Name}, d.opts.Name); err != nil {
		return sitehook.Plain(err.Error())
	}
	return ""
}
