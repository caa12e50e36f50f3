package rpc

import (
	"net/http"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/wire/auth"
)

// own is job for calls that act as the owner: an admin may end what others run, and not run
// something as them.
func (s *Server) own(r *http.Request, id auth.Identity) (*gang.Job, error) {
	j, err := s.named(r, auth.OpStep, id)
	if err != nil {
		return nil, err
	}
	if j.UID != id.UID {
		return nil, api.Errorf(api.CodePermission, "job %d belongs to %s: only its owner may run steps in it", j.ID,
			j.User).About(api.ReasonOwner, j.User)
	}
	return j, nil
}

func stepOf(r *http.Request) (int, error) {
	n, err := strconv.Atoi(r.PathValue("step"))
	if err != nil || n < 0 {
		return 0, api.Errorf(api.CodeInvalid, "step %q is not a number from 0", r.PathValue("step"))
	}
	return n, nil
}

func (s *Server) beginStep(r *http.Request, id auth.Identity, req *api.StepRequest) (*api.StepReply, error) {
	j, err := s.own(r, id)
	if err != nil {
		return nil, err
	}
	return s.Engine.BeginStep(r.Context(), j, req)
}

func (s *Server) steps(r *http.Request, id auth.Identity) (*api.StepsReply, error) {
	j, err := s.named(r, auth.OpShow, id)
	if err != nil {
		return nil, err
	}
	steps, err := s.Engine.Steps(r.Context(), j)
	return &api.StepsReply{SchemaVersion: api.SchemaVersion, Steps: steps}, err
}

func (s *Server) attachStep(r *http.Request, id auth.Identity) (*api.StepAttachReply, error) {
	j, err := s.own(r, id)
	if err != nil {
		return nil, err
	}
	step, err := stepOf(r)
	if err != nil {
		return nil, err
	}
	return s.Engine.AttachStep(j, step)
}

func (s *Server) waitStep(r *http.Request, id auth.Identity) (*api.StepsReply, error) {
	j, err := s.named(r, auth.OpWait, id)
	if err != nil {
		return nil, err
	}
	step, err := stepOf(r)
	if err != nil {
		return nil, err
	}
	return &api.StepsReply{SchemaVersion: api.SchemaVersion, Steps: []api.Step{}}, s.Engine.WaitStep(r.Context(), j, step)
}

func (s *Server) signalStep(r *http.Request, id auth.Identity, req *api.StepSignal) (*api.StepSignalReply, error) {
	j, err := s.named(r, auth.OpSignal, id)
	if err != nil {
		return nil, err
	}
	step, err := stepOf(r)
	if err != nil {
		return nil, err
	}
	if req.Signal == "" {
		return s.Engine.StopStep(r.Context(), j, step, req.Cause, id.User)
	}
	return s.Engine.SignalStep(r.Context(), j, step, req.Signal, s.Sessions)
}
