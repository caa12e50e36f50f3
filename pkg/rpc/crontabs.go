package rpc

import (
	"net/http"
	"os/user"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/auth"
	"gangd/pkg/engine"
)

func (s *Server) crontab(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	owner, err := crontabOwner(r.URL.Query().Get("user"), id)
	if err != nil {
		return err
	}
	return reply(w, s.Engine.Crontab(owner.User))
}

func (s *Server) putCrontab(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	var req api.CrontabRequest
	if err := read(r, &req); err != nil {
		return err
	}
	owner, err := crontabOwner(req.User, id)
	if err != nil {
		return err
	}
	out, err := s.Engine.PutCrontab(r.Context(), &req, owner, id.User)
	if err != nil {
		return err
	}
	return reply(w, out)
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
