package rpc

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/gang"
	"gangd/pkg/wire/auth"
)

func (s *Server) submit(r *http.Request, id auth.Identity, req *api.SubmitRequest) (*api.SubmitReply, error) {
	if req.TestOnly {
		done, err := s.plans.Take(r.Context(), id.UID, manyPlans)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	return s.Engine.Submit(r.Context(), req, caller(id))
}

func (s *Server) query(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	var q api.JobQuery
	if err := read(r, &q); err != nil {
		return err
	}
	if q.Lines {
		lines, err := s.Engine.Lines(r.Context(), &q, caller(id))
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", api.LinesType)
		w.Header().Set("Content-Length", strconv.Itoa(len(lines)))
		_, err = w.Write(lines)
		return err
	}
	fill := func(*api.Job) {}
	if q.Start {
		var err error
		if fill, err = s.Engine.Expect(r.Context()); err != nil {
			return err
		}
	}
	out := newJobsWriter(w)
	err := s.Engine.EachListed(r.Context(), &q, caller(id), func(j *api.Job) error {
		fill(j)
		return out.put(j)
	})
	if err != nil {
		return err
	}
	return out.end()
}

// jobsWriter writes an [api.JobsReply] job by job.
type jobsWriter struct {
	w     http.ResponseWriter
	buf   *bufio.Writer
	out   *json.Encoder
	begun bool
}

func newJobsWriter(w http.ResponseWriter) *jobsWriter {
	buf := bufio.NewWriterSize(w, 64<<10)
	out := json.NewEncoder(buf)
	out.SetEscapeHTML(false) // gqueue --json shows it as it is
	return &jobsWriter{w: w, buf: buf, out: out}
}

// next writes what stands before a job, or before the end of a list of none.
func (l *jobsWriter) next() {
	if l.begun {
		_ = l.buf.WriteByte(',') // the writer keeps its error
		return
	}
	l.begun = true
	l.w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(l.buf, `{"schema_version":%d,"jobs":[`, api.SchemaVersion)
}

func (l *jobsWriter) put(j *api.Job) error {
	l.next()
	return l.out.Encode(j)
}

func (l *jobsWriter) end() error {
	if !l.begun {
		l.next()
	}
	_, _ = l.buf.WriteString("]}\n")
	return l.buf.Flush()
}

// history streams jobs with their attempts, one a line: a site's year does not have to fit
// into an answer. What breaks off in the middle ends without its last line feed.
func (s *Server) history(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	var q api.HistoryQuery
	if err := read(r, &q); err != nil {
		return err
	}
	// A command of somebody whom its host has no name for asks by number. The history is found by name.
	for i, name := range q.Users {
		if name == strconv.FormatUint(uint64(id.UID), 10) {
			q.Users[i] = id.User
		}
	}
	q.Users = slices.Compact(slices.Sorted(slices.Values(q.Users)))
	w.Header().Set("Content-Type", api.HistoryType)
	w.Header().Set("Trailer", "Gang-Error")
	out := json.NewEncoder(w)
	wrote := false
	err := s.Engine.History(r.Context(), &q, caller(id), func(d *api.JobDetail) error {
		wrote = true
		return out.Encode(d)
	})
	if err != nil && wrote && r.Context().Err() == nil {
		trailer(w, err)
		return nil
	}
	return err
}

// script gives what was submitted, byte for byte.
func (s *Server) script(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	j, err := s.named(r, auth.OpScript, id)
	if err != nil {
		return err
	}
	text, err := s.Engine.Script(r.Context(), j)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = w.Write(text)
	return err
}

// job resolves the {ref} or ?job= of a call and checks that the caller may do op to it.
// What he may not know of answers as what is not there.
func (s *Server) job(r *http.Request, text string, op auth.Op, id auth.Identity) (*gang.Job, error) {
	ref, err := api.ParseJobRef(text)
	if err != nil {
		return nil, err
	}
	j, err := s.Engine.One(r.Context(), ref, caller(id))
	if err != nil {
		return nil, err
	}
	if e := auth.Refuse(op, id, j.UID, ref.String(), j.User); e != nil {
		return nil, e
	}
	return j, nil
}

// named is job for the {ref} of a call's path.
func (s *Server) named(r *http.Request, op auth.Op, id auth.Identity) (*gang.Job, error) {
	return s.job(r, r.PathValue("ref"), op, id)
}

func (s *Server) show(r *http.Request, id auth.Identity) (*api.JobDetail, error) {
	j, err := s.named(r, auth.OpShow, id)
	if err != nil {
		return nil, err
	}
	return s.Engine.Detail(r.Context(), j)
}

func (s *Server) wait(r *http.Request, id auth.Identity) (*api.JobDetail, error) {
	j, err := s.named(r, auth.OpWait, id)
	if err == nil {
		j, err = s.Engine.Wait(r.Context(), j)
	}
	if err != nil {
		return nil, err
	}
	return s.Engine.Detail(r.Context(), j)
}

func (s *Server) why(r *http.Request, id auth.Identity) (*api.WhyReply, error) {
	j, err := s.named(r, auth.OpShow, id)
	if err != nil {
		return nil, err
	}
	done, err := s.plans.Take(r.Context(), id.UID, manyPlans)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.Engine.Explain(r.Context(), j)
}

func (s *Server) stacks(r *http.Request, id auth.Identity) (*api.StacksReply, error) {
	j, err := s.named(r, auth.OpStacks, id)
	if err != nil {
		return nil, err
	}
	return s.Engine.Stacks(r.Context(), j)
}

func (s *Server) cancel(r *http.Request, id auth.Identity, req *api.CancelRequest) (*api.CancelReply, error) {
	if req.Signal == "" {
		return s.Engine.Cancel(r.Context(), req, caller(id), may(auth.OpCancel, id))
	}
	return s.Engine.Signal(r.Context(), req, caller(id), may(auth.OpSignal, id), s.Sessions)
}

func may(op auth.Op, id auth.Identity) engine.Allowed {
	return func(owner uint32) bool { return auth.Allow(op, id, owner) }
}

func (s *Server) act(action string, op auth.Op) handler {
	return call(func(r *http.Request, id auth.Identity, req *api.ActionRequest) (*api.CancelReply, error) {
		do := action
		if req.Hold {
			if action != "requeue" {
				return nil, api.Errorf(api.CodeInvalid, "hold belongs to a requeue")
			}
			do = "requeue-hold"
		}
		if req.Now && action != "requeue" {
			return nil, api.Errorf(api.CodeInvalid, "now belongs to a requeue")
		}
		if req.Ended && action != "requeue" {
			return nil, api.Errorf(api.CodeInvalid, "ended belongs to a requeue")
		}
		if req.As != "" && (action == "release" || req.As != api.HoldAdmin && req.As != api.HoldUser &&
			(req.As != api.HoldSpecial || !req.Hold)) {
			return nil, api.Errorf(api.CodeInvalid, "as %q: a hold is as admin or user, that of a requeue special too", req.As)
		}
		return s.Engine.Act(r.Context(), do, req, caller(id), may(op, id))
	})
}

func (s *Server) update(r *http.Request, id auth.Identity, req *api.UpdateRequest) (*api.CancelReply, error) {
	return s.Engine.Update(r.Context(), req, caller(id), may(auth.OpUpdate, id), s.Sessions)
}

func (s *Server) rerun(r *http.Request, id auth.Identity, req *api.RerunRequest) (*api.SubmitReply, error) {
	return s.Engine.Rerun(r.Context(), req, caller(id))
}

func (s *Server) nodes(*http.Request, auth.Identity) (*api.NodesReply, error) {
	return s.Engine.ShowNodes(), nil
}

func (s *Server) nodeAction(action string) handler {
	return call(func(r *http.Request, id auth.Identity, req *api.NodeAction) (done, error) {
		return done{}, s.Engine.NodeAction(r.Context(), action, r.PathValue("name"), req, caller(id))
	})
}

func (s *Server) cardAction(action string) handler {
	return call(func(r *http.Request, id auth.Identity, req *api.NodeAction) (done, error) {
		return done{}, s.Engine.CardAction(r.Context(), action, r.PathValue("name"), r.PathValue("card"), req.Reason, caller(id).User, s.Sessions)
	})
}

func (s *Server) verify(r *http.Request, _ auth.Identity) (*api.VerifyReply, error) {
	found, err := s.Engine.Verify(r.Context())
	return &api.VerifyReply{SchemaVersion: api.SchemaVersion, Findings: append([]string{}, found...)}, err
}

func (s *Server) reload(r *http.Request, id auth.Identity) (*api.ReloadReply, error) {
	if s.Reload == nil {
		return nil, api.Errorf(api.CodeUnavailable, "this controller has no configuration to read again")
	}
	return s.Reload(r.Context(), caller(id).User)
}

func (s *Server) backup(r *http.Request, _ auth.Identity, req *api.BackupRequest) (*api.BackupReply, error) {
	if s.Backup == nil {
		return nil, api.Errorf(api.CodeNotFound, "this controller does not offer %s", r.URL.Path)
	}
	return s.Backup(r.Context(), req.Path)
}

// events lists the events of a job, or streams them as they are committed.
func (s *Server) events(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	v := r.URL.Query()
	var job int64
	if text := v.Get("job"); text != "" {
		j, err := s.job(r, text, auth.OpEvents, id)
		if err != nil {
			return err
		}
		job = j.ID
	}
	follow, first := v.Get("follow") != "", int64(0)
	if follow {
		first = -1
	}
	since, bad1 := number(v, "since", first, -1)
	limit, bad2 := number(v, "limit", 0, 1)
	if err := cmp.Or(bad1, bad2); err != nil {
		return err
	}
	if node := v.Get("node"); node != "" || v.Get("of") == "site" {
		evs, err := s.Engine.SiteEvents(r.Context(), node, int(limit))
		if err != nil {
			return err
		}
		return reply(w, api.EventsReply{SchemaVersion: api.SchemaVersion, Events: append([]api.Event{}, evs...)})
	}
	if !follow {
		evs, more, err := s.Engine.Events(r.Context(), job, since, int(limit))
		if err != nil {
			return err
		}
		return reply(w, api.EventsReply{SchemaVersion: api.SchemaVersion, Events: append([]api.Event{}, evs...), More: more})
	}
	done, err := s.stream(r, id)
	if err != nil {
		return err
	}
	defer done()
	return s.followEvents(w, r, job, since)
}

func (s *Server) followEvents(w http.ResponseWriter, r *http.Request, job, since int64) error {
	out := beginEvents(w)
	w.WriteHeader(http.StatusOK)
	if since < 0 {
		since = s.Engine.LastEvent()
	}
	// A comment to others; to ours where to go on when the stream breaks off before it had an event.
	fmt.Fprintf(w, ": after %d\n\n", since)
	if err := out.Flush(); err != nil {
		return nil
	}
	_ = s.Engine.Follow(r.Context(), job, since, func(evs []api.Event) error {
		for i := range evs {
			b, err := json.Marshal(&evs[i])
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", evs[i].Seq, b); err != nil {
				return err
			}
		}
		return out.Flush()
	})
	return nil
}

// logs streams the output of one rank. An error after the first byte travels as the
// trailer Gang-Error.
func (s *Server) logs(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	q, err := logQuery(r)
	if err != nil {
		return err
	}
	j, err := s.job(r, q.Ref.String(), auth.OpLog, id)
	if err != nil {
		return err
	}
	if q.Follow {
		done, err := s.stream(r, id)
		if err != nil {
			return err
		}
		defer done()
	}
	w.Header().Set("Trailer", "Gang-Error")
	out := &flusher{w: w, out: http.NewResponseController(w)}
	if r.URL.Query().Get("positions") == "" {
		err = s.Engine.Log(r.Context(), j, q, s.Sessions, out)
	} else {
		err = s.Engine.Log(r.Context(), j, q, s.Sessions, &positioned{out: out})
	}
	if err == nil || r.Context().Err() != nil {
		return nil
	}
	if !out.wrote {
		return err
	}
	trailer(w, err)
	return nil
}

// trailer says behind an answer that has begun why it broke off.
func trailer(w http.ResponseWriter, err error) {
	b, _ := json.Marshal(&api.Error{Code: api.CodeOf(err), Message: err.Error()})
	w.Header().Set("Gang-Error", string(b))
}

func logQuery(r *http.Request) (*api.LogQuery, error) {
	v := r.URL.Query()
	ref, err := api.ParseJobRef(v.Get("job"))
	if err != nil {
		return nil, err
	}
	rank, bad1 := number(v, "rank", -1, -1)
	attempt, bad2 := number(v, "attempt", 0, 0)
	tail, bad3 := number(v, "tail", 0, 0)
	epoch, bad4 := number(v, "from_epoch", 0, 0)
	offset, bad5 := number(v, "from_offset", 0, 0)
	return &api.LogQuery{Ref: ref, Rank: int(rank), Attempt: int(attempt), Stderr: v.Get("stderr") != "", Follow: v.Get("follow") != "",
		Tail: tail,
		From: api.LogPosition{Epoch: int(epoch), Offset: offset}}, cmp.Or(bad1, bad2, bad3, bad4, bad5)
}

// number reads a parameter that is otherwise where it is not given.
func number(v url.Values, name string, otherwise, least int64) (int64, error) {
	text := v.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		return 0, api.Errorf(api.CodeInvalid, "%s=%q: want a number from %d", name, text, least)
	}
	return n, nil
}

// flusher sends each piece at once: somebody is watching.
type flusher struct {
	w     http.ResponseWriter
	out   *http.ResponseController
	wrote bool
}

func (f *flusher) Write(p []byte) (int, error) {
	f.wrote = true
	n, err := f.w.Write(p)
	if err == nil {
		err = f.out.Flush()
	}
	return n, err
}

// positioned writes pieces with their positions: a line of epoch, offset and length, then as
// many bytes. Whoever reads that knows where to go on when the controller is restarted.
type positioned struct {
	out *flusher
	at  api.LogPosition
}

// At implements [engine.PositionWriter].
func (p *positioned) At(at api.LogPosition) { p.at = at }

func (p *positioned) Write(b []byte) (int, error) {
	head := fmt.Appendf(nil, "%d %d %d\n", p.at.Epoch, p.at.Offset, len(b))
	if _, err := p.out.Write(append(head, b...)); err != nil {
		return 0, err
	}
	p.at.Offset += int64(len(b))
	return len(b), nil
}
