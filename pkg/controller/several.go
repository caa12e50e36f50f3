package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/leader"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgstore"
	"gangd/pkg/core/gang"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/dirlock"
	"gangd/pkg/wire/session"
)

// One of several controllers listens first: its word that it does not lead is what nodes live by while
// nobody leads. It follows the database, leads when it gets the seat, and ends when it has lost it: what
// it has in memory then is worth nothing. The next process stands by again.

const (
	// databaseRetry is how often a database is tried that is away at the start.
	databaseRetry = time.Second
	// resignTime bounds what a process that ends says to the database.
	resignTime = time.Second
)

// standby is a process that follows.
type standby struct {
	st    *pgstore.Store
	known store.Known
	keep  time.Duration
	// seen is the commit that it has followed to, and when it last had all, for those who ask.
	seen atomic.Uint64
	last atomic.Int64
	// whole: it has had all of them once, and takes over warm.
	whole atomic.Bool
}

// follow takes in what was committed since.
func (s *standby) follow(ctx context.Context) error {
	for {
		more, err := s.st.Follow(ctx, &s.known, time.Now().Add(-s.keep))
		if err != nil {
			return err
		}
		s.seen.Store(s.known.Lineage)
		if !more {
			s.last.Store(time.Now().UnixNano())
			s.whole.Store(true)
			return nil
		}
	}
}

// behind is how long ago it last had all that was committed.
func (s *standby) behind() time.Duration { return time.Since(time.Unix(0, s.last.Load())) }

// warm is the store of a leader that has followed: what it loads is in memory already but for the tail.
type warm struct {
	*pgstore.Store
	by *standby
}

// Load implements [store.Store].
func (w warm) Load(ctx context.Context, keep time.Time) (*gang.Snapshot, error) {
	err := w.by.follow(ctx)
	if err != nil {
		return nil, err
	}
	snapshot := w.by.known.Snapshot(keep)
	w.by.known = store.Known{}
	// Who follows does not read the outbox: it may be long, and matters to who sends alone.
	snapshot.Letters, err = w.Letters(ctx)
	return snapshot, err
}

// openDatabase waits for a database that is away.
func openDatabase(ctx context.Context, cfg *config.Controller, opt Options) (st *pgstore.Store, p *process, err error) {
	for said := false; ; said = true {
		st, err = pgstore.Open(ctx, pgstore.Options{URL: cfg.Database, Log: opt.Log, Progress: opt.Signs.Progress})
		if err == nil {
			if p, err = newMember(ctx, st, cfg, opt); err != nil {
				err = errors.Join(err, st.Close())
			}
		}
		if !errors.Is(err, store.ErrAway) {
			return st, p, err
		}
		if !said {
			opt.Log.Warn("database away: waiting for it", "err", err)
		}
		opt.Signs.Progress()
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(databaseRetry):
		}
	}
}

// newMember makes a process of one of several controllers, with what they share.
func newMember(ctx context.Context, st *pgstore.Store, cfg *config.Controller, opt Options) (*process, error) {
	if cfg.Listen == "" {
		return newProcess(cfg, opt, auth.Files(filepath.Join(cfg.StateDir, pkiDir)))
	}
	v, key, err := openVault(ctx, st, cfg)
	if err != nil {
		return nil, err
	}
	p, err := newProcess(cfg, opt, v)
	if err == nil {
		p.issuer.Key = key
	}
	return p, err
}

// renewShared takes in what another controller has changed of what they share.
func (p *process) renewShared() error {
	if p.issuer == nil {
		return nil
	}
	return p.issuer.Reload()
}

// addresses are where others reach this controller.
func addresses(cfg *config.Controller) []string {
	if cfg.Listen == "" {
		return []string{"unix:" + cfg.Socket}
	}
	return cfg.Advertise
}

// runSeveral is one of several controllers until ctx ends or the seat is lost.
func runSeveral(ctx context.Context, cfg *config.Controller, opt Options) error {
	// What two processes would share of a host, the socket above all, is kept by this, whatever the database says.
	lock, err := dirlock.Take(cfg.StateDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	st, p, err := openDatabase(ctx, cfg, opt)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer st.Close()
	office := leader.New(leader.Options{Store: st, Me: store.Controller{Name: cfg.Name, Address: addresses(cfg)}, Log: opt.Log,
		Lease: cfg.Lease, Now: session.BootTime, Round: p.parts.Sign.Round})
	by := &standby{st: st, keep: cfg.KeepEnded}
	by.last.Store(time.Now().UnixNano())
	p.standby = metrics.Standby(api.Version, func() float64 { return by.behind().Seconds() })
	f := newFront(p, office, by)
	defer f.idle()
	listeners, err := p.listen(f)
	if err != nil {
		return err
	}
	asked := ctx
	group, ctx := errgroup.WithContext(ctx)
	serveAll(group, listeners)
	opt.Log.Info("gangd stands by", "name", cfg.Name, "version", api.Version, "socket", cfg.Socket, "listen", cfg.Listen)
	opt.Signs.Ready()
	p.keepRunning()
	group.Go(func() error { return f.stand(ctx, group) })
	group.Go(func() error { return p.readAgain(ctx, f.reconfigure) })
	group.Go(func() error {
		<-ctx.Done()
		opt.Signs.Stopping()
		given := office.Leads() && giveUp(ctx, office, resignTime, opt.Log) // else it has run out, or somebody else has it
		f.close(hastyPatience)
		stopAll(listeners, 0)
		if _, term := office.Seat(); term != 0 && !given && asked.Err() == nil {
			giveUp(ctx, office, min(leader.GiveUp, cfg.Lease/4), opt.Log)
		}
		return st.Close() // a commit may wait for a database that is away
	})
	if err := group.Wait(); asked.Err() == nil {
		return err
	}
	return nil
}

// giveUp gives the seat up, so that nobody has to wait until it has run out. Where the database is away, that
// is when it is back: the row there may be newer than what the others have seen of it.
func giveUp(ctx context.Context, o *leader.Office, patience time.Duration, log *slog.Logger) (given bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := o.Resign(ctx); err != nil && !errors.Is(err, store.ErrFenced) {
		log.Warn("the seat was not given up: the next leader waits until it has run out", "err", err)
		return false
	}
	return true
}

// stand follows until this process leads, and leads until it does not any more. The engine is of the group: it
// does not end while a commit waits for a database that is away, before the store is closed.
func (f *front) stand(ctx context.Context, group *errgroup.Group) error {
	err := f.office.Enlist(ctx)
	if err == nil {
		err = f.office.Campaign(ctx, func(ctx context.Context) error {
			if err := f.by.follow(ctx); err != nil {
				return err
			}
			return f.p.renewShared()
		})
	}
	if errors.Is(err, leader.ErrRemoved) {
		return &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("controller %s was taken off the list of controllers", f.p.cfg.Name),
			Hint: "to take it in again: gangd controller new on another's host, and here: gangd controller join LINE"}
	}
	if err != nil {
		return err
	}
	// The seat is kept from here on: with many jobs an engine may take longer to make than it lasts.
	group.Go(func() error { return f.office.Hold(ctx, f.nodes) })
	if err := f.p.renewShared(); err != nil { // who led before may have changed it since
		return err
	}
	eng, err := f.p.engine(ctx, warm{f.by.st, f.by}, f.office)
	if err != nil {
		return err
	}
	f.lead()
	_, term := f.office.Seat()
	f.p.log.Info("gangd is up", "version", api.Version, "term", term, "lineage", f.by.st.Lineage())
	group.Go(func() error { return eng.Run(ctx) })
	group.Go(func() error { return f.p.sample(ctx, eng) })
	group.Go(func() error { return f.p.keepBackups(ctx, f.by.st) })
	return nil
}

// nodes are those that the engine knows, once there is one.
func (f *front) nodes() (names []string, known bool) {
	eng := f.p.eng.Load()
	if eng == nil {
		return nil, false
	}
	return eng.NodeNames(), true
}
