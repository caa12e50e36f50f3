package rpc

import (
	"net/http"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/auth"
	"gangd/pkg/gang"
)

// own is job for calls that act as the owner: an admin may end what others run, and not run
// something as them.
func (s *Server) own(r *http.Request, id auth.Identity) (*gang.Job, error) {
	j, err := s.job(r, r.PathValue("ref"), auth.OpStep, id)
	if err != nil {
		return nil, err
	}
	if j.UID != id.UID {
		return nil, api.Errorf(api.CodePermission, "job %d belongs to %s: only its owner may run steps in it", j.ID, j.User).About(api.ReasonOwner, j.User)
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

func (s *Server) beginStep(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	var req api.StepRequest
	if err := read(r, &req); err != nil {
		return err
	}
	j, err := s.own(r, id)
	if err != nil {
		return err
	}
	out, err := s.Engine.BeginStep(r.Context(), j, &req)
	if err != nil {
		return err
	}
	return reply(w, out)
}

func (s *Server) steps(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	j, err := s.job(r, r.PathValue("ref"), auth.OpShow, id)
	if err != nil {
		return err
	}
	steps, err := s.Engine.Steps(r.Context(), j)
	if err != nil {
		return err
	}
	return reply(w, api.StepsReply{SchemaVersion: api.SchemaVersion, Steps: steps})
}

func (s *Server) attachStep(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	j, err := s.own(r, id)
	if err != nil {
		return err
	}
	step, err := stepOf(r)
	if err != nil {
		return err
	}
	out, err := s.Engine.AttachStep(j, step)
	if err != nil {
		return err
	}
	return reply(w, out)
}

func (s *Server) waitStep(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	j, err := s.job(r, r.PathValue("ref"), auth.OpWait, id)
	if err != nil {
		return err
	}
	step, err := stepOf(r)
	if err != nil {
		return err
	}
	if err := s.Engine.WaitStep(r.Context(), j, step); err != nil {
		return err
	}
	return reply(w, api.StepsReply{SchemaVersion: api.SchemaVersion, Steps: []api.Step{}})
}

func (s *Server) signalStep(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	var req api.StepSignal
	if err := read(r, &req); err != nil {
		return err
	}
	j, err := s.job(r, r.PathValue("ref"), auth.OpSignal, id)
	if err != nil {
		return err
	}
	step, err := stepOf(r)
	if err != nil {
		return err
	}
	var out *api.StepSignalReply
	if req.Signal == "" {
		out, err = s.Engine.StopStep(r.Context(), j, step, req.Cause, id.User)
	} else {
		out, err = s.Engine.SignalStep(r.Context(), j, step, req.Signal, s.Sessions)
	}
	if err != nil {
		return err
	}
	return reply(w, out)
}
