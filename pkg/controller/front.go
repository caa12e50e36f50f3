package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/leader"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/session"
)

// front answers the calls of a process that is one of several controllers: itself while it leads; else it
// passes on what comes over its unix socket, and says to everybody else who leads.
type front struct {
	p      *process
	office *leader.Office
	by     *standby
	lines  *session.Hub // silent lines of nodes
	own    *http.ServeMux
	others *http.Transport              // to other controllers
	leads  atomic.Pointer[http.Handler] // the calls of the engine; nil: this process has not led
}

func newFront(p *process, o *leader.Office, by *standby) *front {
	f := &front{p: p, office: o, by: by, lines: session.NewHub(nil, nil, p.log), own: http.NewServeMux(), others: toOthers(p)}
	p.others = f
	f.own.HandleFunc("GET "+api.WordPath, f.ofNode(f.word))
	f.own.HandleFunc("POST "+api.FollowPath, f.answerLeader)
	f.own.HandleFunc("GET "+api.LinePath, f.ofNode(func(w http.ResponseWriter, r *http.Request, node string) { f.lines.Line(w, r, node) }))
	return f
}

// lead begins to answer calls.
func (f *front) lead() {
	f.p.srv.Seat, f.p.srv.Controllers, f.p.srv.RemoveController = f.office.Seat, f.controllers, f.office.Remove
	if f.p.issuer != nil {
		f.p.issuer.Admit = f.office.Admit
	} else {
		f.p.srv.RemoveController = func(context.Context, string) error {
			return api.Errorf(api.CodeConflict, "controllers without listen, as those of gangd dev, can't be taken off the list: none could join "+
				"again")
		}
	}
	h := f.p.srv.Handler()
	f.leads.Store(&h)
}

// close ends sessions and lines.
func (f *front) close(patience time.Duration) {
	if hub := f.p.hub.Load(); hub != nil {
		hub.Close(patience)
	}
	f.lines.Close(patience)
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := f.own.Handler(r); pattern != "" {
		f.own.ServeHTTP(w, r)
		return
	}
	h := f.leads.Load()
	switch {
	case h != nil && f.office.Leads():
		w.Header().Set(api.ControllersHeader, strconv.FormatUint(f.office.Controllers().Version, 10))
		(*h).ServeHTTP(&seated{ResponseWriter: w, leads: f.office.Leads}, r)
	case h != nil || r.TLS != nil || r.Header.Get(passedOn) != "" || r.URL.Path == api.SessionPath || r.URL.Path == api.WitnessPath:
		f.refuse(w, "")
	case r.URL.Path == "/metrics":
		f.metrics(w, r)
	case r.URL.Path == "/readyz" && !f.by.whole.Load():
		http.Error(w, "standing by, and still reading what is in the database", http.StatusServiceUnavailable)
	case r.URL.Path == "/readyz":
		_, _ = fmt.Fprintf(w, "standing by at commit %d, had all of them %s ago\n", f.by.seen.Load(), when.Words(f.by.behind()))
	default:
		f.passOn(w, r)
	}
}

// seated looks before each answer whether this process still leads: one that stood still for a while
// does not, and what it read is old. Its caller sees the connection break, and asks again.
type seated struct {
	http.ResponseWriter
	leads func() bool
	began bool
}

func (s *seated) look() {
	if !s.began && !s.leads() {
		panic(http.ErrAbortHandler)
	}
	s.began = true
}

func (s *seated) WriteHeader(status int) {
	s.look()
	s.ResponseWriter.WriteHeader(status)
}

func (s *seated) Write(b []byte) (int, error) {
	s.look()
	return s.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (s *seated) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// ofNode serves what nodes alone may ask.
func (f *front) ofNode(serve func(w http.ResponseWriter, r *http.Request, node string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, _ := auth.From(r.Context())
		node, ok := auth.SessionNode(id)
		if !ok {
			answer(w, api.Errorf(api.CodePermission, "the word of a controller is for nodes"))
			return
		}
		serve(w, r, node)
	}
}

// word is what this process says of itself.
func (f *front) word(w http.ResponseWriter, _ *http.Request, _ string) {
	word := f.office.Word()
	if word == nil {
		answer(w, api.Errorf(api.CodeUnavailable, "this controller is about to lead, or to end"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(word)
}

// refuse says who leads, and how far this controller has followed.
func (f *front) refuse(w http.ResponseWriter, hint string) {
	word := f.office.Word()
	if word != nil && !word.Leads {
		word.Lineage, word.BehindMsec = f.by.seen.Load(), f.by.behind().Milliseconds()
	}
	e := &api.Error{Code: api.CodeNotLeader, Message: "no controller leads at the moment", Hint: hint, Word: word}
	if last := f.office.Barred(); last != nil {
		e.Message = fmt.Sprintf("no controller leads: %s led last, and %s has joined too late for all nodes to know of it", last.Name,
			f.p.cfg.Name)
		e.Hint = "start gangd again on the host of controller " + last.Name
	}
	if since, why := f.by.st.Away(); !since.IsZero() {
		e.Message = fmt.Sprintf("database away since %s: %v; jobs are not affected", since.Format("15:04:05"), why)
	}
	if word != nil && word.Leader != nil {
		e.Message = fmt.Sprintf("controller %s leads, not %s", word.Leader.Name, f.p.cfg.Name)
		if word.Leads {
			e.Message = fmt.Sprintf("controller %s is about to lead", f.p.cfg.Name)
		}
	}
	answer(w, e)
}

func answer(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e)
}

// passOn hands a call on to the leader. Who calls must be who called: a certificate of the cluster's authority
// speaks for him; over the leader's unix socket every call would be ours, which is right where there is one user.
func (f *front) passOn(w http.ResponseWriter, r *http.Request) {
	to := f.office.Leader()
	if to == nil || to.Name == f.p.cfg.Name {
		f.refuse(w, "")
		return
	}
	at := to.Addresses[0]
	if isUnix(at) && !f.p.cfg.SingleUser {
		f.refuse(w, fmt.Sprintf("run this on the host of controller %s, or set listen in its gangd.toml and in this one's", to.Name))
		return
	}
	id, _ := auth.From(r.Context())
	switch id.Kind {
	case auth.KindUser:
	case auth.KindNone:
		answer(w, api.Errorf(api.CodePermission, "not allowed"))
		return
	default: // to the leader he would be as if he had called here: a guest or a proxy's user must not become one
		f.refuse(w, "")
		return
	}
	caller := r.Context()
	ctx, cancel := context.WithCancelCause(caller)
	asked := new(atomic.Bool)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { asked.Store(true) }})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() { f.whileLeads(ctx, to.Name, cancel) })
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			f.address(p.Out, at)
			auth.VouchFor(p.Out, id)
		},
		Transport:     f.others,
		FlushInterval: -1, // each piece at once: somebody is watching
		ErrorLog:      slog.NewLogLogger(f.p.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			switch {
			case caller.Err() != nil:
			case !asked.Load() || api.Repeatable(r.Method, r.URL.Path): // the caller makes it again
				f.refuse(w, "")
			default:
				answer(w, api.Errorf(api.CodeUnavailable, "controller %s, which leads, did not answer: %v", to.Name, err))
			}
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// whileLeads cuts a call that was handed on when somebody else leads: the leader that has it may stand still.
func (f *front) whileLeads(ctx context.Context, name string, cut context.CancelCauseFunc) {
	t := time.NewTicker(leader.Look)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if now := f.office.Leader(); now != nil && now.Name != name {
			cut(leader.ErrLost)
			return
		}
	}
}

// passedOn is the header of a call that was handed on: it is not handed on again.
const passedOn = "Gang-Passed-On"
