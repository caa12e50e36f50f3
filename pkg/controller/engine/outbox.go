package engine

import (
	"context"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/controller/notify"
	"gangd/pkg/core/gang"
)

// outbox is the engine towards who delivers letters.
type outbox struct {
	e       *Engine
	changed chan struct{} // holds one: a commit changed letters
}

// run delivers letters while the engine runs.
func (o *outbox) run(ctx context.Context) {
	if o.e.opt.Sender != nil {
		o.e.opt.Sender.Run(ctx, o, o.changed)
	}
}

// tell says that a commit has letters.
func (o *outbox) tell(ch *gang.Changes) {
	if len(ch.Letters) == 0 {
		return
	}
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// Letters implements [notify.Outbox].
func (o *outbox) Letters(ctx context.Context) (all []*api.Letter, err error) {
	err = o.e.inspect(ctx, func() { all = o.e.world.Outbox() })
	return all, err
}

// Delivered implements [notify.Outbox].
func (o *outbox) Delivered(ctx context.Context, letters []*api.Letter) error {
	return o.done(ctx, gang.LettersDone{Sent: refs(letters, "")})
}

// GivenUp implements [notify.Outbox].
func (o *outbox) GivenUp(ctx context.Context, letters []*api.Letter, why string) error {
	return o.done(ctx, gang.LettersDone{GivenUp: refs(letters, why)})
}

func (o *outbox) done(ctx context.Context, ev gang.LettersDone) error {
	_, err := o.e.Do(ctx, ev)
	return err
}

func refs(letters []*api.Letter, why string) (out []gang.LetterRef) {
	for _, l := range letters {
		out = append(out, gang.LetterRef{ID: l.ID, Rev: l.Rev, Error: why})
	}
	return out
}

// Outbox is what waits to be delivered, and what was given up: one's own, of an admin everybody's.
func (e *Engine) Outbox(ctx context.Context, who Caller) (*api.OutboxReply, error) {
	all, err := e.outbox.Letters(ctx)
	if err != nil {
		return nil, err
	}
	var lines []notify.Line
	if e.opt.Sender != nil {
		lines = e.opt.Sender.Lines()
	}
	return shownOutbox(all, lines, who), nil
}

// shownOutbox is what who may see of letters, with how the last tries of those who deliver them went.
func shownOutbox(all []*api.Letter, lines []notify.Line, who Caller) *api.OutboxReply {
	mine := func(user string) bool { return who.Admin || user == who.User }
	out := &api.OutboxReply{SchemaVersion: api.SchemaVersion, Lines: []api.OutboxLine{}, GivenUp: []api.Letter{}}
	for _, l := range all {
		switch {
		case !mine(l.User) || l.Draft:
		case !l.GivenUp.IsZero():
			out.GivenUp = append(out.GivenUp, *l)
		default:
			at := notify.AddressOf(l)
			i := slices.IndexFunc(out.Lines, func(x api.OutboxLine) bool {
				return at == notify.Address{User: x.User, Target: x.Target, To: x.To, Report: x.Report}
			})
			if i < 0 {
				x := api.OutboxLine{User: l.User, Target: l.Target, To: l.To, Report: at.Report, Oldest: l.Time}
				if k := slices.IndexFunc(lines, func(t notify.Line) bool { return t.Address == at }); k >= 0 {
					x.Tries, x.Next, x.Error = lines[k].Tries, lines[k].Next, lines[k].Error
				}
				out.Lines = append(out.Lines, x)
				i = len(out.Lines) - 1
			}
			out.Lines[i].Waiting++
		}
	}
	return out
}

// RetryOutbox tries once more what was given up.
func (e *Engine) RetryOutbox(ctx context.Context) error {
	_, err := e.Do(ctx, gang.LettersDone{Again: true})
	return err
}

// notifySite is where the site delivers to.
func (e *Engine) notifySite() *notify.Site {
	if site := e.conf().Notify; site != nil {
		return site
	}
	return &notify.Site{}
}
