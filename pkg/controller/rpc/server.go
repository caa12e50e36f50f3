package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
	"gangd/pkg/controller/day"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/turns"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

// maxBody bounds a request: the largest script, base64 in JSON, and an environment.
const maxBody = 16 << 20

// Sessions are the node sessions; *session.Hub is one.
type Sessions interface {
	engine.Signaller
	engine.LogReader
	engine.CardResumer
	Serve(w http.ResponseWriter, r *http.Request, node string)
	Witness(w http.ResponseWriter, r *http.Request, node string)
}

// Server answers the controller's calls.
type Server struct {
	Engine   *engine.Engine
	Sessions Sessions
	Log      *slog.Logger
	Version  string
	Started  time.Time
	Metrics  http.Handler
	Tokens   http.Handler // /v1/tokens
	Join     http.Handler // POST /v1/join
	Renew    http.Handler // POST /v1/renew
	Revoke   http.Handler // POST /v1/revoke
	Web      http.Handler // POST /v1/web
	// JoinController is POST /v1/controllers/join.
	JoinController http.Handler
	// Of several controllers: who leads, the list, and how one is taken off it. Nil: there is one.
	Seat             func() (name string, term uint64)
	Controllers      func(ctx context.Context) (*api.ControllersReply, error)
	RemoveController func(ctx context.Context, name string) error
	Day              *day.Day // how cards stood; nil: nobody keeps it
	Backup           func(ctx context.Context, path string) (*api.BackupReply, error)
	Reload           func(ctx context.Context, by string) (*api.ReloadReply, error) // of the configuration's file
	Rates            *Rates                                                         // nil: users may call as often as they like
	// People knows whom admins name; nil: nobody is asked.
	People *people.Directory
	// UserStreams is how many streams a user may follow at a time. 0: no bound.
	UserStreams atomic.Int64

	lists   turns.Turns
	bodies  turns.Turns
	plans   turns.Turns
	streams streams
	live    live
}

// handler answers one authenticated call.
type handler func(w http.ResponseWriter, r *http.Request, id auth.Identity) error

// route is one call: a pattern of the mux, and the operation that the table decides on.
type route struct {
	pattern string
	op      auth.Op
	handle  handler
}

// routes is every authenticated call.
func (s *Server) routes() []route {
	return []route{
		{"POST /v1/jobs", auth.OpSubmit, call(s.submit)},
		{"POST /v1/query", auth.OpList, s.listing(s.query)},
		{"POST /v1/history", auth.OpShow, s.listing(s.history)},
		{"GET /v1/jobs/{ref}", auth.OpShow, answer(s.show)},
		{"GET /v1/jobs/{ref}/script", auth.OpScript, s.listing(s.script)},
		{"GET /v1/jobs/{ref}/why", auth.OpShow, answer(s.why)},
		{"GET /v1/jobs/{ref}/stacks", auth.OpStacks, answer(s.stacks)},
		{"GET /v1/jobs/{ref}/wait", auth.OpWait, answer(s.wait)},
		{"POST /v1/jobs/{ref}/steps", auth.OpStep, call(s.beginStep)},
		{"GET /v1/jobs/{ref}/steps", auth.OpShow, answer(s.steps)},
		{"GET /v1/jobs/{ref}/steps/{step}/attach", auth.OpStep, answer(s.attachStep)},
		{"GET /v1/jobs/{ref}/steps/{step}/wait", auth.OpWait, answer(s.waitStep)},
		{"POST /v1/jobs/{ref}/steps/{step}/signal", auth.OpSignal, call(s.signalStep)},
		{"POST /v1/cancel", auth.OpCancel, call(s.cancel)},
		{"POST /v1/hold", auth.OpHold, s.act("hold", auth.OpHold)},
		{"POST /v1/release", auth.OpRelease, s.act("release", auth.OpRelease)},
		{"POST /v1/requeue", auth.OpRequeue, s.act("requeue", auth.OpRequeue)},
		{"POST /v1/update", auth.OpUpdate, call(s.update)},
		{"POST /v1/rerun", auth.OpSubmit, call(s.rerun)},
		{"GET /v1/events", auth.OpEvents, s.events},
		{"GET /v1/log", auth.OpLog, s.logs},
		{"GET /v1/logs", auth.OpLog, s.logsOf},
		{"GET /v1/live", auth.OpLive, s.liveQueue},
		{"POST /v1/web", auth.OpWeb, wrap(s.Web)},
		{"GET /v1/nodes", auth.OpNodes, answer(s.nodes)},
		{"POST /v1/nodes/{name}/drain", auth.OpNodeDrain, s.nodeAction("drain")},
		{"POST /v1/nodes/{name}/resume", auth.OpNodeResume, s.nodeAction("resume")},
		{"POST /v1/nodes/{name}/features", auth.OpNodeSet, s.nodeAction("features")},
		{"POST /v1/nodes/{name}/fence", auth.OpNodeFence, s.nodeAction("fence")},
		{"POST /v1/nodes/{name}/reboot", auth.OpNodeReboot, s.nodeAction("reboot")},
		{"POST /v1/nodes/{name}/cancel-reboot", auth.OpNodeReboot, s.nodeAction("cancel-reboot")},
		{"POST /v1/nodes/{name}/forget", auth.OpNodeForget, s.nodeAction("forget")},
		{"POST /v1/nodes/{name}/cards/{card}/drain", auth.OpCardDrain, s.cardAction("drain")},
		{"POST /v1/nodes/{name}/cards/{card}/resume", auth.OpCardResume, s.cardAction("resume")},
		{"POST /v1/partitions", auth.OpPartition, call(s.makePartition)},
		{"POST /v1/partitions/reset", auth.OpPartition, answer(s.resetPartitions)},
		{"POST /v1/partitions/{name}/update", auth.OpPartition, call(s.changePartition)},
		{"POST /v1/partitions/{name}/delete", auth.OpPartition, answer(s.dropPartition)},
		{"GET /v1/reservations", auth.OpNodes, answer(s.reservations)},
		{"POST /v1/reservations", auth.OpReserve, call(s.reserve)},
		{"POST /v1/reservations/{name}/update", auth.OpReserve, call(s.changeReservation)},
		{"POST /v1/reservations/{name}/delete", auth.OpReserve, answer(s.unreserve)},
		{"GET /v1/crontab", auth.OpCrontab, answer(s.crontab)},
		{"POST /v1/crontab", auth.OpCrontab, call(s.putCrontab)},
		{"GET /v1/ledger", auth.OpLedger, s.listing(answer(s.ledger))},
		{"GET /v1/day", auth.OpLive, answer(s.day)},
		{"GET /v1/limits", auth.OpNodes, answer(s.limits)},
		{"GET /v1/outbox", auth.OpOutbox, answer(s.outbox)},
		{"POST /v1/outbox/retry", auth.OpRetryOutbox, answer(s.retryOutbox)},
		{"GET /v1/ping", auth.OpPing, answer(s.ping)},
		{"GET /v1/verify", auth.OpVerify, answer(s.verify)},
		{"POST /v1/backup", auth.OpBackup, call(s.backup)},
		{"POST /v1/reload", auth.OpReload, answer(s.reload)},
		{"POST /v1/tokens", auth.OpToken, wrap(s.Tokens)},
		{"GET /v1/tokens", auth.OpToken, wrap(s.Tokens)},
		{"POST /v1/tokens/withdraw", auth.OpToken, wrap(s.Tokens)},
		{"POST /v1/revoke", auth.OpToken, wrap(s.Revoke)},
		{"GET /v1/controllers", auth.OpControllers, answer(s.controllers)},
		{"POST /v1/controllers/{name}/remove", auth.OpToken, answer(s.removeController)},
		{"GET " + api.SessionPath, auth.OpSession, s.session},
		{"GET " + api.WitnessPath, auth.OpSession, s.witness},
		{"GET /metrics", auth.OpMetrics, s.listing(wrap(s.Metrics))}, // counts all jobs
		{"GET /readyz", auth.OpPing, s.ready},
	}
}

// open are the calls that prove who calls by a token or a certificate of their own.
func (s *Server) open() map[string]http.Handler {
	return map[string]http.Handler{"POST " + auth.JoinPath: s.Join, "POST " + auth.RenewPath: s.Renew, "POST " +
		auth.ControllerJoinPath: s.JoinController}
}

// Handler is the whole interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.pattern, s.guard(r.op, r.handle))
	}
	for pattern, h := range s.open() {
		if h != nil {
			mux.Handle(pattern, h)
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, api.Errorf(api.CodeNotFound, "no such call: %s %s", r.Method, r.URL.Path))
	})
	return mux
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request, _ auth.Identity) error {
	_, err := io.WriteString(w, "ok\n")
	return err
}

// guard lets a call through whose caller may do op to something of his own; handlers
// check again with the owner of what is named. Who does not read what he is answered is cut.
func (s *Server) guard(op auth.Op, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = newPatient(w)
		id, ok := auth.From(r.Context())
		if e := s.Rates.admit(id); e != nil {
			s.fail(w, r, e)
			return
		}
		if !ok || !auth.Allow(op, id, id.UID) {
			s.fail(w, r, auth.Denied(op, id))
			return
		}
		b := s.bodyOf(w, r, id)
		defer b.end()
		r.Body = b
		if err := h(w, r, id); err != nil {
			s.fail(w, r, err)
		}
	})
}

func wrap(h http.Handler) handler {
	return func(w http.ResponseWriter, r *http.Request, _ auth.Identity) error {
		if h == nil {
			e := api.Errorf(api.CodeNotFound, "this controller does not offer %s", r.URL.Path)
			if r.URL.Path == "/v1/web" {
				e.Message, e.Hint = "this controller serves no page", "set web_listen in gangd.toml, or start gangd dev with --web"
			}
			return e
		}
		h.ServeHTTP(w, r)
		return nil
	}
}

// fail answers with an error. What is not an api.Error is ours: logged, told as internal.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) || r.Context().Err() != nil {
		return // the caller went away
	}
	var e *api.Error
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &tooBig):
		e = api.Errorf(api.CodeTooLarge, "the request is larger than %d bytes", tooBig.Limit)
	default:
		s.Log.Error("call failed", "method", r.Method, "path", r.URL.Path, "err", err)
		e = api.Errorf(api.CodeInternal, "%v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e)
}

func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

// done answers a call that has nothing to say but that it was done.
type done struct{}

// answer is the handler that replies with what f gives.
func answer[A any](f func(r *http.Request, id auth.Identity) (A, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
		a, err := f(r, id)
		if err != nil {
			return err
		}
		return reply(w, a)
	}
}

// call is answer for a request with a body, which is read first.
func call[Q, A any](f func(r *http.Request, id auth.Identity, q *Q) (A, error)) handler {
	return answer(func(r *http.Request, id auth.Identity) (a A, err error) {
		q := new(Q)
		if err := read(r, q); err != nil {
			return a, err
		}
		return f(r, id, q)
	})
}

// read decodes a body strictly: a field nobody knows is a mistake of the caller's, and so is
// one out of the range that package bound gives it.
func read(r *http.Request, v any) error {
	d := json.NewDecoder(&text{r: r.Body, whole: !carriesEnvironment(v)})
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var tooBig *http.MaxBytesError
		var refused *api.Error
		if errors.As(err, &tooBig) || errors.As(err, &refused) {
			return err
		}
		return api.Errorf(api.CodeInvalid, "the request body is not what %s takes: %v", r.URL.Path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return api.Errorf(api.CodeInvalid, "the request body goes on behind what %s takes", r.URL.Path)
	}
	if err := bound.Check(v); err != nil {
		return api.Errorf(api.CodeInvalid, "%v", err)
	}
	return nil
}

// carriesEnvironment: what a request brings of its caller's environment may be in any encoding.
func carriesEnvironment(v any) bool {
	switch v.(type) {
	case *api.SubmitRequest, *api.StepRequest, *api.CrontabRequest:
		return true
	}
	return false
}

func caller(id auth.Identity) engine.Caller {
	return engine.Caller{UID: id.UID, GID: id.GID, User: id.User, Admin: id.Admin, Asker: id.Asker}
}

func (s *Server) ping(*http.Request, auth.Identity) (*api.PingReply, error) {
	p := s.Engine.Ping()
	p.Version, p.PID, p.StartTime, p.Time = s.Version, os.Getpid(), s.Started, time.Now()
	if s.Seat != nil {
		p.Leader, p.Term = s.Seat()
	}
	return p, nil
}

func (s *Server) controllers(r *http.Request, _ auth.Identity) (*api.ControllersReply, error) {
	if s.Controllers == nil {
		return nil, auth.ErrOnlyOne
	}
	return s.Controllers(r.Context())
}

func (s *Server) removeController(r *http.Request, id auth.Identity) (done, error) {
	if s.RemoveController == nil {
		return done{}, auth.ErrOnlyOne
	}
	name := r.PathValue("name")
	err := s.RemoveController(r.Context(), name)
	if err == nil {
		s.Log.Warn("controller taken off the list", "controller", name, "by", id.User)
	}
	return done{}, err
}

func (s *Server) session(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	node, err := ofNode(id)
	if err == nil {
		s.Sessions.Serve(w, r, node)
	}
	return err
}

func (s *Server) witness(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	node, err := ofNode(id)
	if err == nil {
		s.Sessions.Witness(w, r, node)
	}
	return err
}

// ofNode is the node that calls; "": any, on a unix socket with one user.
func ofNode(id auth.Identity) (string, error) {
	node, ok := auth.SessionNode(id)
	if !ok {
		return "", api.Errorf(api.CodePermission, "a node session needs a node's certificate")
	}
	return node, nil
}
