package rpc

import (
	"net/http"

	"gangd/pkg/auth"
)

// outbox answers with the caller's own; an admin sees everybody's.
func (s *Server) outbox(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	out, err := s.Engine.Outbox(r.Context(), caller(id))
	if err != nil {
		return err
	}
	return reply(w, out)
}

func (s *Server) retryOutbox(w http.ResponseWriter, r *http.Request, _ auth.Identity) error {
	if err := s.Engine.RetryOutbox(r.Context()); err != nil {
		return err
	}
	return reply(w, struct{}{})
}
