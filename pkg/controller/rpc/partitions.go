package rpc

import (
	"net/http"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

func (s *Server) makePartition(r *http.Request, id auth.Identity, req *api.PartitionRequest) (done, error) {
	return done{}, s.Engine.PutPartition(r.Context(), req, false, caller(id))
}

func (s *Server) changePartition(r *http.Request, id auth.Identity, req *api.PartitionRequest) (done, error) {
	req.Name = r.PathValue("name")
	return done{}, s.Engine.PutPartition(r.Context(), req, true, caller(id))
}

func (s *Server) dropPartition(r *http.Request, id auth.Identity) (done, error) {
	return done{}, s.Engine.DropPartition(r.Context(), r.PathValue("name"), caller(id))
}

func (s *Server) resetPartitions(r *http.Request, id auth.Identity) (done, error) {
	return done{}, s.Engine.ResetPartitions(r.Context(), caller(id))
}
