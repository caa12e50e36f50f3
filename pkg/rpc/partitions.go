package rpc

import (
	"net/http"

	"gangd/pkg/api"
	"gangd/pkg/auth"
)

func (s *Server) putPartition(change bool) handler {
	return func(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
		var req api.PartitionRequest
		if err := read(r, &req); err != nil {
			return err
		}
		if change {
			req.Name = r.PathValue("name")
		}
		if err := s.Engine.PutPartition(r.Context(), &req, change, caller(id)); err != nil {
			return err
		}
		return reply(w, struct{}{})
	}
}

func (s *Server) dropPartition(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	if err := s.Engine.DropPartition(r.Context(), r.PathValue("name"), caller(id)); err != nil {
		return err
	}
	return reply(w, struct{}{})
}

func (s *Server) resetPartitions(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	if err := s.Engine.ResetPartitions(r.Context(), caller(id)); err != nil {
		return err
	}
	return reply(w, struct{}{})
}
