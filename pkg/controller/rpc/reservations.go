package rpc

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

func (s *Server) reservations(r *http.Request, _ auth.Identity) (api.ReservationsReply, error) {
	list, err := s.Engine.Reservations(r.URL.Query()["name"]...)
	return api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: list}, err
}

func (s *Server) reserve(r *http.Request, id auth.Identity, req *api.ReservationRequest) (*api.ReservationsReply, error) {
	return s.putReservation(r, id, req, false)
}

func (s *Server) changeReservation(r *http.Request, id auth.Identity, req *api.ReservationRequest) (*api.ReservationsReply, error) {
	req.Name = r.PathValue("name")
	return s.putReservation(r, id, req, true)
}

func (s *Server) putReservation(r *http.Request, id auth.Identity, req *api.ReservationRequest, change bool) (*api.ReservationsReply, error) {
	if req.Users != nil {
		for _, name := range *req.Users {
			_, err := people.Here.ByName(r.Context(), name)
			if _, digits := strconv.ParseUint(name, 10, 32); digits == nil {
				continue // may be anybody's: who has no name is known by his number
			}
			if err != nil && !errors.Is(err, people.ErrUnknown) {
				return nil, api.Errorf(api.CodeConflict, "%v", err)
			}
			if err != nil {
				return nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("users=%s: the controller's host knows no user %q", strings.Join(*req.Users, ","), name),
					Hint: "names are as in getent passwd"}
			}
		}
	}
	out, err := s.Engine.Reserve(r.Context(), req, change, caller(id))
	if err != nil {
		return nil, err
	}
	return &api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: []api.Reservation{*out}}, nil
}

func (s *Server) unreserve(r *http.Request, id auth.Identity) (done, error) {
	return done{}, s.Engine.Unreserve(r.Context(), r.PathValue("name"), caller(id))
}
