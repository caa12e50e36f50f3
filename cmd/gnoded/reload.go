package main

import (
	"context"
	"log/slog"
	"os"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/node/noded"
)

// reload reads the configuration again at each SIGHUP. What is wrong with it refuses all of it, and the one before goes on.
type reload struct {
	file, name string
	set        []string
	hangups    <-chan os.Signal
	running    *config.Node
	self       string // path of this program
	log        *slog.Logger
	again      chan noded.Options
}

// keep reads until ctx ends. It is called once this process has the state directory.
func (r *reload) keep(ctx context.Context) {
	r.note()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangups:
			r.once(ctx)
		}
	}
}

func (r *reload) once(ctx context.Context) {
	if r.file == "" {
		r.log.Warn("SIGHUP: this gnoded was started without a file, there is nothing to read again")
		return
	}
	next := config.ReloadNode(ctx, r.file, r.name, r.set, r.running)
	if next.Refused() {
		for i := range next.Found {
			if f := &next.Found[i]; f.Severity == api.SeverityError {
				r.log.Error("configuration refused, the one before goes on", "at", f.Subject, "wrong", f.Evidence)
			}
		}
		return
	}
	if !r.running.Login && len(next.Changes) > 0 {
		o, err := optionsOf(next.Running, r.self)
		if err != nil {
			r.log.Error("configuration refused, the one before goes on", "wrong", err)
			return
		}
		select {
		case r.again <- *o:
		case <-ctx.Done():
			return
		}
	}
	r.running = next.Running
	r.note()
	r.log.Info("configuration read again", "file", r.file, "by", "SIGHUP", "changes", config.ChangesText(next.Changes), "restart",
		config.ChangesText(next.Restart))
}

// note leaves what this process goes by in its state directory, for `gnoded check --against=running`.
func (r *reload) note() {
	if err := config.KeepRunning(r.running.StateDir, r.file, r.running.Values()); err != nil {
		r.log.Warn("what the running configuration says could not be kept for gnoded check", "err", err)
	}
}
