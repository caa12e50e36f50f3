// Package jobhttp is GANG_SOCKET: the HTTP that a rank speaks to its node, as a handler for
// gnoded and a client for the commands in a job.
//
//	PUT  /v1/checkpoint            the body is the rank's checkpoint; answered when it is durable
//	GET  /v1/checkpoint[?rank=N]   the newest complete one of the own or another rank
//	POST /v1/barrier?name=NAME     answered when every rank of the epoch has come
//	GET  /v1/ready[?role=NAME]     answered when every rank of the gang or of a role has said READY=1
//	GET  /v1/job                   who the caller is
//
// PUT and POST take an Idempotency-Key: a repeat with the same key is the same request, so
// that an answer that was lost can be asked for again. Refusals are an [api.Error] with its status.
//
// Begin with Handler, and Client for the other end. It must not know the store or the
// controller: what a call does is its Backend's.
package jobhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/wire/jobapi"
)

// Info is GET /v1/job.
type Info struct {
	SchemaVersion int    `json:"schema_version"`
	JobID         int64  `json:"job_id"`
	Name          string `json:"name"`
	User          string `json:"user"`
	Node          string `json:"node"`
	Epoch         int    `json:"epoch"`
	RestartCount  int    `json:"restart_count"`
	Step          *int   `json:"step,omitempty"` // of a task, which Rank and Size are of then
	Rank          int    `json:"rank"`
	Size          int    `json:"size"`
}

// Backend is what stands behind the handler: the node daemon.
type Backend interface {
	// Call asks the controller; see session.Client.
	Call(ctx context.Context, c *api.Call, body io.Reader, w io.Writer) (*api.CallResult, error)
	// Info says who a caller is.
	Info(c jobapi.Caller) Info
}

// Handler serves requests; who says whose connection a request came on.
func Handler(b Backend, who func(context.Context) jobapi.Caller) http.Handler {
	s := &server{backend: b, who: who}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/checkpoint", s.put)
	mux.HandleFunc("POST /v1/checkpoint", s.put)
	mux.HandleFunc("GET /v1/checkpoint", s.get)
	mux.HandleFunc("POST /v1/barrier", s.barrier)
	mux.HandleFunc("GET /v1/ready", s.ready)
	mux.HandleFunc("GET /v1/job", func(w http.ResponseWriter, r *http.Request) { reply(w, b.Info(who(r.Context()))) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, api.Errorf(api.CodeNotFound, "no call %s %s here", r.Method, r.URL.Path))
	})
	return mux
}

type server struct {
	backend Backend
	who     func(context.Context) jobapi.Caller
}

// call is a call of whoever sent the request.
func (s *server) call(r *http.Request) *api.Call {
	c := s.who(r.Context())
	return &api.Call{MemberKey: c.MemberKey, Step: c.Step, Rank: c.Rank}
}

func (s *server) put(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > api.MaxCheckpointBytes {
		refuse(w, api.TooLarge())
		return
	}
	c := s.call(r)
	c.Put = &api.CheckpointPut{Key: r.Header.Get("Idempotency-Key")}
	res, err := s.backend.Call(r.Context(), c, http.MaxBytesReader(w, r.Body, api.MaxCheckpointBytes), nil)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = api.TooLarge()
	}
	answer(w, res, err)
}

func (s *server) get(w http.ResponseWriter, r *http.Request) {
	c := s.call(r)
	c.Get = &api.CheckpointGet{Rank: c.Rank, Own: true}
	if v := r.URL.Query().Get("rank"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			refuse(w, api.Errorf(api.CodeInvalid, "rank %q is not a number from 0", v))
			return
		}
		c.Get.Rank, c.Get.Own = n, false
	}
	begun := &begun{ResponseWriter: w}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err := s.backend.Call(r.Context(), c, nil, begun)
	switch {
	case err == nil:
	case begun.yes:
		panic(http.ErrAbortHandler) // the reader must not take a part for the whole
	default:
		refuse(w, err)
	}
}

// begun remembers whether anything of the answer was written.
type begun struct {
	http.ResponseWriter
	yes bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

func (s *server) barrier(w http.ResponseWriter, r *http.Request) {
	c := s.call(r)
	c.Barrier = &api.Barrier{Name: r.URL.Query().Get("name"), Key: r.Header.Get("Idempotency-Key")}
	if c.Barrier.Name == "" || len(c.Barrier.Name) > api.MaxBarrierName {
		refuse(w, api.Errorf(api.CodeInvalid, "a barrier needs a name of 1 to %d bytes", api.MaxBarrierName))
		return
	}
	if len(c.Barrier.Key) > api.MaxBarrierName {
		refuse(w, api.Errorf(api.CodeInvalid, "an Idempotency-Key has at most %d bytes, not %d", api.MaxBarrierName, len(c.Barrier.Key)))
		return
	}
	res, err := s.backend.Call(r.Context(), c, nil, nil)
	answer(w, res, err)
}

func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	c := s.call(r)
	c.Ready = &api.ReadyWait{Role: r.URL.Query().Get("role")}
	if role := c.Ready.Role; role != "" && !api.RoleNameOK(role) {
		refuse(w, api.Errorf(api.CodeInvalid, "%.40q is not the name of a role", role))
		return
	}
	res, err := s.backend.Call(r.Context(), c, nil, nil)
	answer(w, res, err)
}

func answer(w http.ResponseWriter, res *api.CallResult, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, res)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a caller that went away
}

func refuse(w http.ResponseWriter, err error) {
	var e *api.Error
	if !errors.As(err, &e) {
		e = api.Errorf(api.CodeInternal, "%v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e)
}
