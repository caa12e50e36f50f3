package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/finding"
	"gangd/pkg/node/sitehook"
)

// A reload reads the file of this process again, as its start did. What of it can change at run time does so in one step of the
// engine, with its commit; nothing does where anything is wrong with the file.

// conf is what of a configuration the engine goes by.
func (p *process) conf(cfg *config.Controller) (*engine.Conf, error) {
	c := &engine.Conf{Settings: cfg.Settings, Policy: cfg.Policy(), Operator: operator(cfg), Notify: notifySite(cfg)}
	c.Policy.MaxStarts = maxStarts
	if cfg.FenceHook != "" {
		c.Fence, c.FenceRetry = sitehook.Program{Path: cfg.FenceHook, Timeout: cfg.FenceTimeout}.Fence, cfg.FenceTimeout
	}
	if cfg.Archive != "" {
		a, err := newArchive(cfg.Archive)
		if err != nil {
			return nil, err
		}
		c.Archive = a.put
	}
	if cfg.IdleHook != "" {
		c.TellIdle = tellIdle(sitehook.Program{Path: cfg.IdleHook, Timeout: idleHookTime})
	}
	if cfg.SubmitRule != "" {
		c.Rule = submitRule(sitehook.Program{Path: cfg.SubmitRule, Timeout: cfg.SubmitRuleTimeout})
	}
	return c, nil
}

// take has what is no part of the engine go by a configuration: who is an admin, and how much a user may ask.
func (p *process) take(cfg *config.Controller) {
	p.running.Store(cfg)
	p.srv.Rates.Set(cfg.UserRate, cfg.UserBurst)
	p.srv.UserStreams.Store(int64(cfg.UserStreams))
}

// reread is the file as it is now, and what it makes of what holds. by is who asked.
func (p *process) reread(ctx context.Context, by string) (*config.Reload[config.Controller], error) {
	if p.opt.File == "" {
		return nil, &api.Error{Code: api.CodeConflict, Message: "this gangd was started without a file: there is nothing to read again",
			Hint: "start it with --config=FILE"}
	}
	r := config.ReloadController(ctx, p.opt.File, p.opt.Set, p.running.Load())
	if r.Refused() {
		text := wrong(r.Found)
		p.log.Error("configuration refused, the one before goes on", "file", p.opt.File, "by", by, "wrong", text)
		return nil, &api.Error{Code: api.CodeInvalid, Message: "the configuration is not taken, and nothing has changed: " + text,
			Hint: "gangd check " + p.opt.File}
	}
	return r, nil
}

// wrong says all that a file is refused for, a line each.
func wrong(found finding.List) string {
	var lines []string
	for i := range found {
		if f := &found[i]; f.Severity == api.SeverityError {
			lines = append(lines, f.Subject+": "+f.Evidence)
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return "\n" + strings.Join(lines, "\n")
}

// reconfigure reads the configuration again for somebody, and answers when it holds.
func (p *process) reconfigure(ctx context.Context, by string) (*api.ReloadReply, error) {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	r, err := p.reread(ctx, by)
	if err != nil {
		return nil, err
	}
	reply := &api.ReloadReply{SchemaVersion: api.SchemaVersion, File: p.opt.File, Changes: append([]api.ConfigChange{}, r.Changes...),
		Restart: append([]api.ConfigChange{}, r.Restart...), Warnings: append([]api.DoctorFinding{}, r.Found...)}
	if p.others != nil {
		if reply.Controllers, err = p.others.agree(ctx, r.Running); err != nil {
			p.log.Error("configuration refused, the one before goes on", "file", p.opt.File, "by", by, "err", err)
			return nil, err
		}
	}
	if len(r.Changes) > 0 {
		conf, err := p.conf(r.Running)
		if err != nil {
			return nil, &api.Error{Code: api.CodeInvalid, Message: "the configuration is not taken, and nothing has changed: " + err.Error()}
		}
		eng := p.eng.Load()
		if err := eng.Reconfigure(ctx, conf, reloadText(by, r.Changes), func() { p.take(r.Running) }); err != nil {
			return nil, err
		}
		if waiting, there, err := eng.Waiting(ctx); err == nil { // else nobody is there to be told
			var left finding.List
			left.Left(waiting, there)
			reply.Warnings = append(reply.Warnings, left...)
		}
	}
	if p.others != nil {
		p.others.follow(ctx, reply.Controllers)
	}
	p.keepRunning()
	sayReload(p.log, p.opt.File, by, r)
	return reply, nil
}

// sayReload is the line of the audit.
func sayReload(log *slog.Logger, file, by string, r *config.Reload[config.Controller]) {
	log.Info("configuration read again", "file", file, "by", by, "changes", config.ChangesText(r.Changes), "restart",
		config.ChangesText(r.Restart))
}

// mostText is how much of a list an event holds.
const mostText = 1500

func reloadText(by string, changes []api.ConfigChange) string {
	text := config.ChangesText(changes)
	if len(text) > mostText {
		text = fmt.Sprintf("%s and more, %d keys in all", strings.ToValidUTF8(text[:mostText], ""), len(changes))
	}
	return "by " + by + ": " + text
}

// keepRunning leaves what this process goes by in its state directory, for `gangd check --against=running`.
func (p *process) keepRunning() {
	cfg := p.running.Load()
	if err := config.KeepRunning(cfg.StateDir, p.opt.File, cfg.Values()); err != nil {
		p.log.Warn("what the running configuration says could not be kept for gangd check", "err", err)
	}
}

// readAgain reads the configuration again each time that somebody sends SIGHUP.
func (p *process) readAgain(ctx context.Context, reload func(ctx context.Context, by string) (*api.ReloadReply, error)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.opt.Hangups:
			if _, err := reload(ctx, "SIGHUP"); err != nil && ctx.Err() == nil && api.CodeOf(err) != api.CodeInvalid {
				p.log.Error("configuration not read again, the one before goes on", "err", err)
			}
		}
	}
}
