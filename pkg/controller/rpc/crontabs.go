package rpc

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

func (s *Server) crontab(r *http.Request, id auth.Identity) (*api.CrontabReply, error) {
	owner, err := crontabOwner(r.Context(), r.URL.Query().Get("user"), id)
	if err != nil {
		return nil, err
	}
	return s.Engine.Crontab(owner.User), nil
}

func (s *Server) putCrontab(r *http.Request, id auth.Identity, req *api.CrontabRequest) (*api.CrontabReply, error) {
	owner, err := crontabOwner(r.Context(), req.User, id)
	if err != nil {
		return nil, err
	}
	return s.Engine.PutCrontab(r.Context(), req, owner, id.User)
}

// crontabOwner is whose table is meant, if the caller may say so.
func crontabOwner(ctx context.Context, name string, id auth.Identity) (engine.Caller, error) {
	if name == "" || name == id.User {
		return caller(id), nil
	}
	u, err := people.User{}, error(people.ErrUnknown)
	if id.Admin || name == strconv.FormatUint(uint64(id.UID), 10) { // nobody else has names looked up
		u, err = people.Here.Find(ctx, name)
	}
	switch {
	case !id.Admin && (err != nil || u.UID != id.UID) || err == nil && !auth.Allow(auth.OpCrontab, id, u.UID):
		return engine.Caller{}, api.Errorf(api.CodePermission, "the cron table of another user is an admin's to read and change")
	case errors.Is(err, people.ErrUnknown):
		return engine.Caller{}, api.Errorf(api.CodeNotFound, "no user %q on the controller's host", name)
	case err != nil:
		return engine.Caller{}, api.Errorf(api.CodeConflict, "%v", err)
	}
	return engine.Caller{UID: u.UID, GID: u.GID, User: u.Name}, nil
}
