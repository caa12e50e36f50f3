package rpc

import (
	"fmt"
	"net/http"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/auth"
)

func (s *Server) reservations(w http.ResponseWriter, r *http.Request, _ auth.Identity) error {
	list, err := s.Engine.Reservations(r.URL.Query()["name"]...)
	if err != nil {
		return err
	}
	return reply(w, api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: list})
}

func (s *Server) reserve(change bool) handler {
	return func(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
		var req api.ReservationRequest
		if err := read(r, &req); err != nil {
			return err
		}
		if change {
			req.Name = r.PathValue("name")
		}
		if req.Users != nil {
			for _, name := range *req.Users {
				if !auth.KnowsUser(name) {
					return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("users=%s: the controller's host knows no user %q", strings.Join(*req.Users, ","), name),
						Hint: "names are as in getent passwd"}
				}
			}
		}
		out, err := s.Engine.Reserve(r.Context(), &req, change, caller(id))
		if err != nil {
			return err
		}
		return reply(w, api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: []api.Reservation{*out}})
	}
}

func (s *Server) unreserve(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	if err := s.Engine.Unreserve(r.Context(), r.PathValue("name"), caller(id)); err != nil {
		return err
	}
	return reply(w, struct{}{})
}
