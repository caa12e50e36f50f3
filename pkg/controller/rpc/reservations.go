package rpc

import (
	"net/http"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
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

func (s *Server) putReservation(r *http.Request, id auth.Identity, req *api.ReservationRequest, change bool) (*api.ReservationsReply,
	error) {
	if err := s.knownPeople(r.Context(), users("users", req.Users)); err != nil {
		return nil, err
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
