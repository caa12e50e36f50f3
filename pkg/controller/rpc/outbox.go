package rpc

import (
	"net/http"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// outbox answers with the caller's own; an admin sees everybody's.
func (s *Server) outbox(r *http.Request, id auth.Identity) (*api.OutboxReply, error) {
	return s.Engine.Outbox(r.Context(), caller(id))
}

func (s *Server) retryOutbox(r *http.Request, _ auth.Identity) (done, error) {
	return done{}, s.Engine.RetryOutbox(r.Context())
}
