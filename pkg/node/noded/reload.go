package noded

import (
	"context"
	"reflect"

	"gangd/pkg/api"
)

// rules are what of the options may change while a daemon runs, as one: who looks at two of them looks at both of one.
type rules struct {
	*Options
	accounts *accounts
}

// now are those that hold at this moment. What a member was prepared by stays its own.
func (d *daemon) now() *rules {
	if r := d.rules.Load(); r != nil {
		return r
	}
	return rulesOf(&d.opts)
}

func rulesOf(o *Options) *rules {
	return &rules{Options: o, accounts: &accounts{single: o.SingleUser, minUID: o.MinUID, allow: o.Groups}}
}

// takeRules goes by others from now on, and says hello anew where that says something else of them. What is made at the start stays as it
// is until the next one.
func (d *daemon) takeRules(again *Options) {
	o := d.opts
	o.MinUID, o.Groups, o.Health, o.Needs, o.JobLimits = again.MinUID, again.Groups, again.Health, again.Needs, again.JobLimits
	o.RebootProgram = again.RebootProgram
	o.Hooks, o.Features = again.Hooks, again.Features
	was := told(d.now())
	d.rules.Store(rulesOf(&o))
	if d.client != nil && !reflect.DeepEqual(was, told(d.now())) {
		d.client.Again()
	}
	select {
	case d.healthAgain <- struct{}{}:
	default:
	}
}

// readAgain takes what comes until ctx ends.
func (d *daemon) readAgain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-d.opts.Again:
			d.takeRules(&o)
		}
	}
}

// told is what of the rules a hello says.
func told(r *rules) api.Hello {
	return api.Hello{Features: r.Features, Reboots: r.RebootProgram != "", Opens: r.Hooks.Prolog == ""}
}
