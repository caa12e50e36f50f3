package rpc

import (
	"net/http"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

func (s *Server) makePartition(r *http.Request, id auth.Identity, req *api.PartitionRequest) (done, error) {
	return s.putPartition(r, id, req, false)
}

func (s *Server) changePartition(r *http.Request, id auth.Identity, req *api.PartitionRequest) (done, error) {
	req.Name = r.PathValue("name")
	return s.putPartition(r, id, req, true)
}

func (s *Server) putPartition(r *http.Request, id auth.Identity, req *api.PartitionRequest, change bool) (done, error) {
	if err := s.knownPeople(r.Context(), users("allow_users", req.AllowUsers), groups("allow_groups", req.AllowGroups)); err != nil {
		return done{}, err
	}
	return done{}, s.Engine.PutPartition(r.Context(), req, change, caller(id))
}

func (s *Server) dropPartition(r *http.Request, id auth.Identity) (done, error) {
	return done{}, s.Engine.DropPartition(r.Context(), r.PathValue("name"), caller(id))
}

func (s *Server) resetPartitions(r *http.Request, id auth.Identity) (done, error) {
	return done{}, s.Engine.ResetPartitions(r.Context(), caller(id))
}
