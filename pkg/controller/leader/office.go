package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cmdline/when"
)

// ErrLost ends a process that does not lead any more.
var ErrLost = errors.New("this controller does not lead any more")

// ErrRemoved: this controller was taken off the list.
var ErrRemoved = errors.New("this controller was taken off the list of controllers")

// Options are what an office is made of.
type Options struct {
	Store store.Shared
	Me    store.Controller
	Log   *slog.Logger
	Lease time.Duration        // the site's
	Now   func() time.Duration // CLOCK_BOOTTIME
	// Round is called after each look at the seat of one that waits; nil: nobody wants to know.
	Round func()
}

// Office is one process's place among the controllers of its site. It implements [session.Office].
type Office struct {
	Options
	seat   Seat
	roster Roster
	list   atomic.Pointer[api.Controllers]
	joins  bool // somebody on the list may not lead yet; owned by the loop
	row    atomic.Pointer[store.Leader]
	looked atomic.Int64 // when row was read
	barred atomic.Bool  // this controller joins, as of the last look
	// lacking are nodes that have not said that they go by the list.
	lacking atomic.Pointer[[]string]
}

// New makes an office that waits.
func New(o Options) *Office {
	if o.Round == nil {
		o.Round = func() {}
	}
	f := &Office{Options: o}
	f.list.Store(&api.Controllers{})
	return f
}

// Leads implements [session.Office].
func (f *Office) Leads() bool {
	_, ok := f.seat.Leads(f.Now())
	return ok
}

// Seat implements [session.Office]: the term is that in which this controller leads or led, 0: none.
func (f *Office) Seat() (name string, term uint64) {
	term, _ = f.seat.Leads(f.Now())
	return f.Me.Name, term
}

// Controllers implements [session.Office].
func (f *Office) Controllers() *api.Controllers { return f.list.Load() }

// Listed implements [session.Office].
func (f *Office) Listed(node string, version uint64) { f.roster.Listed(node, version) }

// Leader is who leads as far as this controller knows, nil: nobody.
func (f *Office) Leader() *api.Controller {
	if f.Leads() {
		return wire(f.Me)
	}
	row := f.row.Load()
	if row == nil || row.Free || f.Now()-time.Duration(f.looked.Load()) > TTL || f.seat.Lapsed(f.Now()) {
		return nil
	}
	return wire(row.Controller)
}

// Barred gives who led last where nobody leads and this controller may not, since it joins: nil: it is not so.
func (f *Office) Barred() *api.Controller {
	row := f.row.Load()
	if row == nil || !f.barred.Load() || f.Leader() != nil {
		return nil
	}
	return wire(row.Controller)
}

// Word is what this controller says of itself; nil: it may lead, or has led, and says nothing.
func (f *Office) Word() *api.Word {
	leads := f.Leads()
	if !leads && !f.seat.Waits() {
		return nil
	}
	return &api.Word{Name: f.Me.Name, Leads: leads, Term: f.seat.Known(), Leader: f.Leader()}
}

func wire(c store.Controller) *api.Controller {
	return &api.Controller{Name: c.Name, Addresses: c.Address}
}

// Enlist puts this controller on the site's list, where it may not lead before nodes know of it, unless
// it is the first. Its addresses are brought up to date.
func (f *Office) Enlist(ctx context.Context) error {
	for {
		l, err := f.Store.Controllers(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(l.All, func(c store.Controller) bool { return c.Name == f.Me.Name })
		me := f.Me
		switch {
		case i >= 0 && l.All[i].Removed:
			return ErrRemoved
		case i < 0:
			me.Joining = l.Version > 0
			l.All = append(slices.Clone(l.All), me)
		case slices.Equal(l.All[i].Address, me.Address):
			return nil
		default:
			me.Joining = l.All[i].Joining
			l.All = slices.Clone(l.All)
			l.All[i] = me
		}
		l.Version++
		if err := f.Store.SetControllers(ctx, l); err == nil || !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// List is the site's list, with those that may not lead.
func (f *Office) List(ctx context.Context) (store.Controllers, error) {
	return f.Store.Controllers(ctx)
}

// Admit sees to it that a controller of this name may put itself on the list.
func (f *Office) Admit(ctx context.Context, name string) error {
	return f.change(ctx, func(l *store.Controllers) error {
		c := l.Named(name)
		if c != nil && !c.Removed {
			return &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("there is a controller %s already", name),
				Hint: "set another name in gangd.toml; or where this host is to take its place: gangd controller remove " + name}
		}
		l.All = slices.DeleteFunc(l.All, func(c store.Controller) bool { return c.Name == name })
		return nil
	})
}

// Remove takes one off the list that neither leads nor is needed: nodes run on without its word.
func (f *Office) Remove(ctx context.Context, name string) error {
	return f.change(ctx, func(l *store.Controllers) error {
		c := l.Named(name)
		switch {
		case c == nil || c.Removed:
			var names []string
			for i := range l.All {
				if !l.All[i].Removed {
					names = append(names, l.All[i].Name)
				}
			}
			return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no controller %q", name), Hint: "there are: " +
				strings.Join(names, ", ")}
		case name == f.Me.Name:
			return &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("controller %s leads, and can't be taken off the list", name),
				Hint: "end it first, so that another leads: systemctl stop gangd"}
		}
		*c = store.Controller{Name: name, Removed: true}
		return nil
	})
}

// change replaces the list by what do makes of it.
func (f *Office) change(ctx context.Context, do func(*store.Controllers) error) error {
	for {
		l, err := f.Store.Controllers(ctx)
		if err != nil {
			return err
		}
		before := l.All
		l.All = slices.Clone(l.All)
		if err := do(&l); err != nil || slices.EqualFunc(before, l.All, func(a, b store.Controller) bool {
			return a.Name == b.Name &&
				a.Removed == b.Removed
		}) {
			return err
		}
		l.Version++
		switch err := f.Store.SetControllers(ctx, l); {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrConflict):
			return err
		case !f.Leads():
			return ErrLost
		}
	}
}

// look reads the row and the list.
func (f *Office) look(ctx context.Context) (row store.Leader, may bool, err error) {
	if row, err = f.Store.Leader(ctx); err != nil {
		return row, false, err
	}
	f.row.Store(&row)
	f.looked.Store(int64(f.Now()))
	l, err := f.readList(ctx)
	if err != nil {
		return row, false, err
	}
	me := l.Named(f.Me.Name)
	if me != nil && me.Removed {
		return row, false, ErrRemoved
	}
	f.barred.Store(me != nil && me.Joining)
	return row, me != nil && me.MayLead(), nil
}

func (f *Office) readList(ctx context.Context) (store.Controllers, error) {
	l, err := f.Store.Controllers(ctx)
	if err != nil {
		return l, err
	}
	f.joins = slices.ContainsFunc(l.All, func(c store.Controller) bool { return c.Joining })
	if uint64(l.Version) != f.list.Load().Version {
		out := &api.Controllers{Version: uint64(l.Version)}
		for _, c := range l.All {
			if !c.Removed {
				out.List = append(out.List, *wire(c))
			}
		}
		f.list.Store(out)
	}
	return l, nil
}

// Campaign looks at the seat until this controller leads, and calls follow with each look. It gives nil
// with the seat, else why the process can't go on.
func (f *Office) Campaign(ctx context.Context, follow func(context.Context) error) error {
	said := ""
	for {
		row, may, err := f.look(ctx)
		if err == nil {
			err = follow(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, store.ErrAway):
			return err
		case err != nil && said != err.Error():
			said = err.Error()
			f.Log.Warn("standing by without the database", "err", err)
		case err == nil:
			said = ""
			if f.seat.MayTake(f.Now(), Seen{Term: row.Term, Mark: row.Mark, Free: row.Free}) && may {
				if ok, err := f.take(ctx, row); ok || err != nil {
					return err
				}
			}
		}
		f.Round()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(Look):
		}
	}
}

// take asks for the seat. When it is not known who has it then, the process has to end.
func (f *Office) take(ctx context.Context, seen store.Leader) (bool, error) {
	f.seat.Try()
	sent := f.Now()
	// A term by the clock is above those of which a database that was put back knows nothing.
	term, err := f.Store.TakeOver(ctx, f.Me, TTL, seen, max(f.seat.Known(), uint64(time.Now().UnixMilli())))
	switch {
	case err == nil:
		f.seat.Took(term, sent)
		_, err := f.readList(ctx)
		f.roster.Tell(f.list.Load().Version, f.Now())
		f.Log.Info("this controller leads", "name", f.Me.Name, "term", term)
		return true, err
	case errors.Is(err, store.ErrLocked):
		f.seat.Failed()
		return false, nil
	}
	return false, fmt.Errorf("take over: %w", err)
}

// Hold renews the seat until ctx ends (nil) or it is lost. nodes are those that the controller knows, once it does.
func (f *Office) Hold(ctx context.Context, nodes func() (names []string, known bool)) error {
	for next := f.seat.Due(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(0, min(next, f.seat.Until())-f.Now())):
		}
		renewed, err := f.renew(ctx, nodes)
		if err != nil && ctx.Err() == nil {
			f.seat.Leave()
			return err
		}
		if next = f.Now() + Look; renewed {
			next = f.seat.Due()
		}
	}
}

// renew renews the seat once, and sees to the list. While the trust lasts, a seat that was not renewed may be had again.
func (f *Office) renew(ctx context.Context, nodes func() ([]string, bool)) (renewed bool, err error) {
	began := f.Now()
	left := f.seat.Until() - began
	if left <= 0 {
		return false, fmt.Errorf("%w: its seat was not renewed for %s: the database is away, or this process stood still", ErrLost,
			when.Words(TTL))
	}
	asking, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	switch err := f.ask(asking); {
	case err == nil:
	case errors.Is(err, store.ErrFenced):
		return false, fmt.Errorf("%w: %w", ErrLost, err)
	case errors.Is(err, store.ErrFailed):
		return false, err
	default:
		return false, nil
	}
	// The list can wait. The next renewal can't: an answer that never comes must leave it time for two tries.
	ctx, cancel = context.WithTimeout(ctx, max(0, began+ofList-f.Now()))
	defer cancel()
	l, err := f.readList(ctx)
	if err != nil {
		return true, nil
	}
	f.roster.Tell(uint64(l.Version), f.Now())
	if !f.joins {
		return true, nil
	}
	if names, known := nodes(); known {
		settled, lacking := f.roster.Settled(began, f.Lease, names)
		f.lacking.Store(&lacking)
		if settled {
			f.admit(ctx, l)
		}
	}
	return true, nil
}

// ask renews the seat. A try that gets no answer may be lost with its connection, so that another is made beside it; the
// first answer counts, from when its own try was sent.
func (f *Office) ask(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var tries sync.WaitGroup
	defer tries.Wait()
	defer cancel()
	answers := make(chan error, tryMost)
	again := time.NewTicker(tryAgain)
	defer again.Stop()
	try := func() {
		tries.Go(func() {
			sent := f.Now()
			err := f.Store.Renew(ctx, TTL)
			if err == nil {
				f.seat.Renewed(sent)
			}
			answers <- err
		})
	}
	try()
	for made, under := 1, 1; ; {
		select {
		case err := <-answers:
			under--
			if err == nil || under == 0 || errors.Is(err, store.ErrFailed) || errors.Is(err, store.ErrFenced) {
				return err
			}
		case <-again.C:
			if made < tryMost {
				made++
				under++
				try()
			}
		}
	}
}

// Lacking are the nodes for which controllers wait that may not lead yet, as of the last renewal.
func (f *Office) Lacking() []string {
	if names := f.lacking.Load(); names != nil {
		return *names
	}
	return nil
}

// admit lets all of a list lead, which every node goes by.
func (f *Office) admit(ctx context.Context, l store.Controllers) {
	l.All = slices.Clone(l.All)
	for i := range l.All {
		l.All[i].Joining = false
	}
	l.Version++
	if err := f.Store.SetControllers(ctx, l); err != nil {
		f.Log.Warn("controllers that have joined may not lead yet", "err", err)
	}
}

// Resign gives the seat up, so that another takes over at once. While the database is away it tries again
// until ctx ends.
func (f *Office) Resign(ctx context.Context) error {
	f.seat.Leave()
	for {
		err := f.Store.Resign(ctx)
		if !errors.Is(err, store.ErrAway) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(Look):
		}
	}
}
