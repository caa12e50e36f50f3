package rpc

import (
	"net/http"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/day"
	"gangd/pkg/wire/auth"
)

// unkept is the day of a controller without a page.
var unkept = day.Open("", nil)

// day answers how cards stood in the last 24 hours, those of one node where it is named.
func (s *Server) day(r *http.Request, _ auth.Identity) (*api.DayReply, error) {
	d := s.Day
	if d == nil {
		d = unkept
	}
	return d.Reply(time.Now(), r.URL.Query().Get("node")), nil
}

// limits answers what the caller may use, and does.
func (s *Server) limits(r *http.Request, id auth.Identity) (*api.LimitsReply, error) {
	return s.Engine.Limits(r.Context(), id.UID, id.User)
}
