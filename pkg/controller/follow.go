package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/store"
	"gangd/pkg/wire/auth"
)

// Each of several controllers reads a file of its own. Before the leader goes by another configuration those that stand by read
// theirs: one that is wrong, or says otherwise, refuses the reload by its name, for it could lead next. When it holds they take it too.

// followTime bounds how long another controller may take over its file: it may ask a directory for users.
const followTime = 20 * time.Second

// followQuestion is the leader's to one that stands by.
type followQuestion struct {
	Take bool `json:"take"` // go by it; else only read it
}

// followAnswer is what comes of its file.
type followAnswer struct {
	Name   string         `json:"name"`
	Wrong  string         `json:"wrong,omitempty"` // why it is refused
	Values []config.Value `json:"values,omitempty"`
}

// shared are the values that controllers have in common: those of a host take a restart.
func shared(cfg *config.Controller) []config.Value {
	return slices.DeleteFunc(cfg.Values(), func(v config.Value) bool { return v.When == api.ChangeRestart })
}

// answerLeader reads this controller's own file, for the one that leads.
func (f *front) answerLeader(w http.ResponseWriter, r *http.Request) {
	id, _ := auth.From(r.Context())
	if r.Header.Get(passedOn) == "" || !auth.Allow(auth.OpReload, id, id.UID) {
		answer(w, auth.Denied(auth.OpReload, id))
		return
	}
	if f.office.Leads() {
		f.refuse(w, "")
		return
	}
	var q followQuestion
	if err := json.NewDecoder(io.LimitReader(r.Body, maxWord)).Decode(&q); err != nil {
		answer(w, api.Errorf(api.CodeInvalid, "%v", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(f.readOwn(r.Context(), q.Take, "the leader"))
}

// readOwn reads the file of a controller that stands by, and goes by it where take says so.
func (f *front) readOwn(ctx context.Context, take bool, by string) *followAnswer {
	p := f.p
	p.reloads.Lock()
	defer p.reloads.Unlock()
	a := &followAnswer{Name: p.cfg.Name}
	r, err := p.reread(ctx, by)
	if err != nil {
		a.Wrong = err.Error()
		return a
	}
	a.Values = shared(r.Running)
	if take {
		p.take(r.Running)
		p.keepRunning()
		sayReload(p.log, p.opt.File, by, r)
	}
	return a
}

// reconfigure is that of the leader, and of one that stands by what its own file says, for when it leads.
func (f *front) reconfigure(ctx context.Context, by string) (*api.ReloadReply, error) {
	if f.office.Leads() && f.p.eng.Load() != nil {
		return f.p.reconfigure(ctx, by)
	}
	if a := f.readOwn(ctx, true, by); a.Wrong != "" {
		return nil, api.Errorf(api.CodeInvalid, "%s", a.Wrong)
	}
	return &api.ReloadReply{}, nil
}

// agree asks those that stand by whether their files say what is to hold.
func (f *front) agree(ctx context.Context, next *config.Controller) ([]api.ControllerFollows, error) {
	want := shared(next)
	all, err := f.askAll(ctx, false)
	if err != nil {
		return nil, err
	}
	var out []api.ControllerFollows
	for _, a := range all {
		if a.err != nil {
			out = append(out, api.ControllerFollows{Name: a.name, Why: a.err.Error()})
			continue
		}
		if a.Wrong != "" {
			return nil, api.Errorf(api.CodeInvalid, "controller %s refuses its own file: %s", a.name, a.Wrong)
		}
		if d := config.Changes(want, a.Values, nil); len(d) > 0 {
			return nil, &api.Error{Code: api.CodeConflict,
				Message: fmt.Sprintf("the configuration is not taken, and nothing has changed: the file of controller %s says otherwise (%s)", a.name,
					config.ChangesText(d)),
				Hint: "put the same into the files of all controllers, then reload"}
		}
		out = append(out, api.ControllerFollows{Name: a.name, Took: true})
	}
	return out, nil
}

// follow has those that agreed go by it, and notes who could not be told.
func (f *front) follow(ctx context.Context, agreed []api.ControllerFollows) {
	all, err := f.askAll(ctx, true)
	for i := range agreed {
		c := &agreed[i]
		k := slices.IndexFunc(all, func(a asked) bool { return a.name == c.Name })
		switch {
		case !c.Took:
		case err != nil:
			c.Took, c.Why = false, err.Error()
		case k < 0:
			c.Took, c.Why = false, "it is not on the list any more"
		case all[k].err != nil:
			c.Took, c.Why = false, all[k].err.Error()
		case all[k].Wrong != "":
			c.Took, c.Why = false, all[k].Wrong
		}
	}
}

// asked is another controller, and what it said.
type asked struct {
	name string
	followAnswer
	err error
}

func (f *front) askAll(ctx context.Context, take bool) ([]asked, error) {
	l, err := f.office.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []asked
	for i := range l.All {
		if c := &l.All[i]; !c.Removed && c.Name != f.p.cfg.Name {
			out = append(out, asked{name: c.Name})
		}
	}
	var wait sync.WaitGroup
	for i := range out {
		a := &out[i]
		c := &l.All[slices.IndexFunc(l.All, func(c store.Controller) bool { return c.Name == a.name })]
		wait.Go(func() {
			a.err = errors.New("it has no address")
			for _, at := range c.Address {
				if a.err = f.ask(ctx, at, take, &a.followAnswer); a.err == nil {
					break
				}
			}
		})
	}
	wait.Wait()
	return out, nil
}

// ask is one question to the controller at an address.
func (f *front) ask(ctx context.Context, at string, take bool, to *followAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	body, err := json.Marshal(followQuestion{Take: take})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gangd"+api.FollowPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	f.address(r, at)
	auth.VouchFor(r, auth.Identity{Kind: auth.KindUser, User: "root", Host: true, Admin: true})
	resp, err := f.others.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: it answered %s", at, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxFollow)).Decode(to)
}

// maxFollow bounds what another controller says of its file.
const maxFollow = 16 << 20
