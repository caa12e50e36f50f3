package rpc

import (
	"net/http"
	"os/user"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/wire/auth"
)

func (s *Server) crontab(r *http.Request, id auth.Identity) (*api.CrontabReply, error) {
	owner, err := crontabOwner(r.URL.Query().Get("user"), id)
	if err != nil {
		return nil, err
	}
	return s.Engine.Crontab(owner.User), nil
}

func (s *Server) putCrontab(r *http.Request, id auth.Identity, req *api.CrontabRequest) (*api.CrontabReply, error) {
	owner, err := crontabOwner(req.User, id)
	if err != nil {
		return nil, err
	}
	return s.Engine.PutCrontab(r.Context(), req, owner, id.User)
}

// crontabOwner is whose table is meant, if the caller may say so.
func crontabOwner(name string, id auth.Identity) (engine.Caller, error) {
	if name == "" || name == id.User {
		return caller(id), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if !id.Admin {
			return engine.Caller{}, api.Errorf(api.CodePermission, "the cron table of another user is an admin's to read and change")
		}
		return engine.Caller{}, api.Errorf(api.CodeNotFound, "no user %q on the controller's host", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return engine.Caller{}, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return engine.Caller{}, err
	}
	if !auth.Allow(auth.OpCrontab, id, uint32(uid)) {
		return engine.Caller{}, api.Errorf(api.CodePermission, "the cron table of another user is an admin's to read and change")
	}
	return engine.Caller{UID: uint32(uid), GID: uint32(gid), User: u.Username}, nil
}
