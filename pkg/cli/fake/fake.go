package fake

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
)

// Controller holds what it answers. Fields are set before Start and changed under Lock.
type Controller struct {
	sync.Mutex
	Jobs       []api.Job
	Attempts   map[int64][]api.Attempt
	Nodes      []api.Node
	Partitions []api.Partition
	Crontab    api.CrontabReply
	Reserved   []api.Reservation
	Outbox     api.OutboxReply
	Ledger     []api.LedgerRow // answered whole, by what is asked
	// LedgerAsked is the query of the last call for it.
	LedgerAsked string
	Events      []api.Event
	Why         map[int64]string
	Logs        map[string]string // by "job/rank/attempt"
	Refuse      *api.Error        // answers every call when set
	User        string            // whose jobs @ means
	// SlurmVersion is the site's.
	SlurmVersion string
	Processes    int           // that a signal reaches on each node
	Asked        []string      // method, path and body of each call, oldest first
	Followed     chan struct{} // a value for each stream of events that is open

	path    string // of the socket
	server  *http.Server
	served  chan struct{}
	changed chan struct{} // closed and made anew at each event
}

// Start listens where a command finds it when GANG_DIR is dir.
func (c *Controller) Start(dir string) error {
	path := filepath.Join(dir, "run", "gangd.sock")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	_ = os.Remove(path) // of one that died
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	c.path = path
	c.served = make(chan struct{})
	c.changed = make(chan struct{})
	c.Followed = make(chan struct{}, 16)
	c.server = &http.Server{Handler: c.routes()}
	go func() {
		defer close(c.served)
		_ = c.server.Serve(l) // always http.ErrServerClosed, by Stop
	}()
	return nil
}

// Stop is Die, and takes the socket away: here is no cluster any more.
func (c *Controller) Stop() {
	c.Die()
	_ = os.Remove(c.path)
}

// Die ends every connection and leaves the socket, as gangd does: one that is on its way back, by Start.
func (c *Controller) Die() {
	_ = c.server.Close()
	<-c.served
}

// Emit adds an event and wakes those who follow.
func (c *Controller) Emit(ev api.Event) {
	c.Lock()
	defer c.Unlock()
	ev.Seq = int64(len(c.Events) + 1)
	c.Events = append(c.Events, ev)
	c.wake()
}

// wake has those who follow look again.
func (c *Controller) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Controller) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, fn := range map[string]func(*http.Request) (any, error){
		"POST /v1/jobs":                  c.submit,
		"POST /v1/query":                 c.query,
		"GET /v1/jobs/{ref}":             c.job,
		"GET /v1/jobs/{ref}/wait":        c.job,
		"GET /v1/jobs/{ref}/why":         c.why,
		"GET /v1/jobs/{ref}/script":      c.script,
		"POST /v1/history":               c.history,
		"POST /v1/cancel":                c.cancel,
		"POST /v1/update":                c.update,
		"POST /v1/rerun":                 c.rerun,
		"POST /v1/{action}":              c.act,
		"GET /v1/nodes":                  c.nodes,
		"POST /v1/nodes/{name}/{action}": c.nodeAction,

		"POST /v1/partitions":               c.putPartition,
		"POST /v1/partitions/reset":         func(*http.Request) (any, error) { return struct{}{}, nil },
		"POST /v1/partitions/{name}/update": c.putPartition,
		"POST /v1/partitions/{name}/delete": c.dropPartition,

		"GET /v1/reservations":                c.reservations,
		"POST /v1/reservations":               c.reserve,
		"POST /v1/reservations/{name}/update": c.reserve,
		"POST /v1/reservations/{name}/delete": c.unreserve,

		"POST /v1/nodes/{name}/cards/{card}/{action}": c.cardAction,
		"GET /v1/crontab":  func(*http.Request) (any, error) { return c.Crontab, nil },
		"POST /v1/crontab": c.putCrontab,
		"GET /v1/ledger":   c.ledger,
		"GET /v1/outbox":   func(*http.Request) (any, error) { return c.Outbox, nil },
		"POST /v1/outbox/retry": func(*http.Request) (any, error) {
			c.Outbox.GivenUp = nil
			return struct{}{}, nil
		},
		"GET /v1/ping": c.ping,
	} {
		mux.HandleFunc(pattern, c.answer(fn))
	}
	mux.HandleFunc("GET /v1/events", c.events)
	mux.HandleFunc("GET /v1/live", c.live)
	mux.HandleFunc("GET /v1/log", c.log)
	mux.HandleFunc("GET /v1/logs", c.logs)
	return mux
}

// answer wraps a call: one at a time, its result or error as JSON.
func (c *Controller) answer(fn func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.Lock()
		defer c.Unlock()
		c.Asked = append(c.Asked, r.Method+" "+r.URL.Path)
		if c.Refuse != nil {
			refuse(w, c.Refuse)
			return
		}
		out, err := fn(r)
		if err != nil {
			refuse(w, err)
			return
		}
		if lines, ok := out.([]byte); ok {
			_, _ = w.Write(lines)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

func refuse(w http.ResponseWriter, err error) {
	e := &api.Error{Code: api.CodeOf(err), Message: err.Error()}
	if own, ok := err.(*api.Error); ok {
		e = own
	}
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e)
}

func body(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return api.Errorf(api.CodeInvalid, "bad body: %v", err)
	}
	return nil
}

func (c *Controller) submit(r *http.Request) (any, error) {
	var req api.SubmitRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	id := int64(len(c.Jobs) + 1)
	c.Jobs = append(c.Jobs, api.Job{JobID: id, Name: req.Spec.Name, User: c.User, State: api.JobPending, StateCode: "PD", Size: req.Spec.Size})
	return api.SubmitReply{SchemaVersion: api.SchemaVersion, JobID: id, Count: 1}, nil
}

func lines(jobs []api.Job) []byte {
	b := api.AppendLineHeader(nil)
	for i := range jobs {
		b = api.AppendLine(b, &jobs[i])
	}
	return b
}

func (c *Controller) query(r *http.Request) (any, error) {
	var q api.JobQuery
	if err := body(r, &q); err != nil {
		return nil, err
	}
	jobs, missing := c.find(&q)
	if len(jobs) == 0 && len(missing) > 0 {
		return nil, missing[0]
	}
	if q.Lines {
		return lines(jobs), nil
	}
	if q.NoRanks {
		for i := range jobs {
			jobs[i].Ranks = nil
		}
	}
	return api.JobsReply{SchemaVersion: api.SchemaVersion, Jobs: jobs}, nil
}

// find selects as api.JobQuery says.
func (c *Controller) find(q *api.JobQuery) (out []api.Job, missing []error) {
	out = []api.Job{}
	for _, ref := range q.Refs {
		if !slices.ContainsFunc(c.Jobs, func(j api.Job) bool { return c.names(ref, &j) }) {
			missing = append(missing, unknown(ref))
		}
	}
	for _, j := range c.Jobs {
		named := slices.ContainsFunc(q.Refs, func(ref api.JobRef) bool { return c.names(ref, &j) })
		state := slices.Contains(q.States, j.State) || len(q.States) == 0 && (q.All || named || !j.State.Ended())
		if (named || len(q.Refs) == 0) && state && in(q.Users, j.User) && in(q.Names, j.Name) &&
			in(q.Accounts, j.Account) && in(q.Partitions, j.Partition) &&
			(len(q.Nodes) == 0 || slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(q.Nodes, n) })) {
			out = append(out, j)
		}
	}
	return out, missing
}

func in(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }

func unknown(ref api.JobRef) error {
	return &api.Error{Code: api.CodeNotFound, Message: "no job " + ref.String(), Hint: "list jobs with gqueue, ended ones with gacct"}
}

// names reports whether a reference means a job.
func (c *Controller) names(ref api.JobRef, j *api.Job) bool {
	switch {
	case ref.Last > 0:
		for i, n := len(c.Jobs)-1, 0; i >= 0; i-- {
			if c.Jobs[i].User == c.User {
				if n++; n == ref.Last {
					return c.Jobs[i].JobID == j.JobID
				}
			}
		}
		return false
	case ref.Index >= 0:
		return j.ArrayJobID == ref.ID && j.ArrayIndex != nil && *j.ArrayIndex == ref.Index
	}
	return j.JobID == ref.ID || j.ArrayJobID == ref.ID
}

// one finds the job in the path or the parameter.
func (c *Controller) one(text string) (*api.Job, error) {
	ref, err := api.ParseJobRef(text)
	if err != nil {
		return nil, err
	}
	for i := range c.Jobs {
		if c.names(ref, &c.Jobs[i]) {
			return &c.Jobs[i], nil
		}
	}
	return nil, unknown(ref)
}

func (c *Controller) job(r *http.Request) (any, error) {
	j, err := c.one(r.PathValue("ref"))
	if err != nil {
		return nil, err
	}
	return api.JobDetail{SchemaVersion: api.SchemaVersion, Job: *j, Attempts: append([]api.Attempt{}, c.Attempts[j.JobID]...)}, nil
}

// history selects as api.HistoryQuery says.
func (c *Controller) history(r *http.Request) (any, error) {
	var q api.HistoryQuery
	if err := body(r, &q); err != nil {
		return nil, err
	}
	var out []byte
	for i := range c.Jobs {
		j := &c.Jobs[i]
		named := slices.ContainsFunc(q.Refs, func(ref api.JobRef) bool { return c.names(ref, j) })
		late := !q.Until.IsZero() && j.SubmitTime.After(q.Until)
		early := !q.Since.IsZero() && j.State.Ended() && j.EndTime.Before(q.Since)
		if len(q.Refs) > 0 && !named || !in(q.Users, j.User) || late || early {
			continue
		}
		b, err := json.Marshal(api.JobDetail{SchemaVersion: api.SchemaVersion, Job: *j, Attempts: append([]api.Attempt{}, c.Attempts[j.JobID]...)})
		if err != nil {
			return nil, err
		}
		out = append(append(out, b...), '\n')
	}
	return out, nil
}

func (c *Controller) script(r *http.Request) (any, error) {
	j, err := c.one(r.PathValue("ref"))
	if err != nil {
		return nil, err
	}
	if j.User != c.User {
		return nil, api.Errorf(api.CodePermission, "job %d belongs to %s: only its owner or an admin may read its script", j.JobID, j.User)
	}
	return []byte("#!/bin/sh\necho " + j.Name + "\n"), nil
}

func (c *Controller) why(r *http.Request) (any, error) {
	j, err := c.one(r.PathValue("ref"))
	if err != nil {
		return nil, err
	}
	return api.WhyReply{SchemaVersion: api.SchemaVersion, JobID: j.JobID, State: j.State, Reason: j.Reason, Why: c.Why[j.JobID]}, nil
}

func (c *Controller) cancel(r *http.Request) (any, error) {
	var req api.CancelRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	c.note(req)
	defer c.wake()
	return c.each(&req.JobQuery, func(j *api.Job, res *api.CancelResult) {
		switch {
		case j.State.Ended():
			res.Error = api.AlreadyEnded(res.Ref, j.State)
		case req.Signal != "":
			res.Nodes, res.Processes = len(j.Nodes), c.Processes*len(j.Nodes)
		default:
			j.State, j.StateCode = api.JobCancelled, "CA"
		}
	}), nil
}

func (c *Controller) act(r *http.Request) (any, error) {
	var req api.ActionRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	c.note(req)
	action := r.PathValue("action")
	defer c.wake()
	return c.each(&req.JobQuery, func(j *api.Job, res *api.CancelResult) {
		if j.State.Ended() {
			res.Error = api.AlreadyEnded(res.Ref, j.State)
			return
		}
		switch action {
		case "hold":
			j.Held, j.Reason = "user", "JobHeldUser"
		case "release":
			j.Held, j.Reason = "", "Priority"
		}
	}), nil
}

func (c *Controller) update(r *http.Request) (any, error) {
	var req api.UpdateRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	c.note(req)
	defer c.wake()
	return c.each(&req.JobQuery, func(j *api.Job, res *api.CancelResult) {
		if j.State.Ended() {
			res.Error = api.Errorf(api.CodeAlreadyEnded, "job %s has already ended: %s", res.Ref, j.State)
		}
	}), nil
}

func (c *Controller) rerun(r *http.Request) (any, error) {
	var req api.RerunRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	req.Key = ""
	c.note(req)
	return api.SubmitReply{SchemaVersion: api.SchemaVersion, JobID: 99, Count: 2}, nil
}

// note keeps a request with its body, for tests of what was sent.
func (c *Controller) note(req any) {
	b, _ := json.Marshal(req)
	c.Asked = append(c.Asked, string(b))
}

// each does something to every job that a query selects.
func (c *Controller) each(q *api.JobQuery, do func(*api.Job, *api.CancelResult)) api.CancelReply {
	found, missing := c.find(q)
	out := api.CancelReply{SchemaVersion: api.SchemaVersion, Results: []api.CancelResult{}}
	for _, f := range found {
		i := slices.IndexFunc(c.Jobs, func(j api.Job) bool { return j.JobID == f.JobID })
		res := api.CancelResult{Ref: strconv.FormatInt(f.JobID, 10), JobID: f.JobID}
		if f.ArrayIndex != nil {
			res.Ref = fmt.Sprintf("%d_%d", f.ArrayJobID, *f.ArrayIndex)
		}
		do(&c.Jobs[i], &res)
		out.Results = append(out.Results, res)
	}
	for _, err := range missing {
		out.Results = append(out.Results, api.CancelResult{Error: err.(*api.Error)})
	}
	return out
}

func (c *Controller) nodes(*http.Request) (any, error) {
	return api.NodesReply{SchemaVersion: api.SchemaVersion, Nodes: c.Nodes, Partitions: c.Partitions, Preempt: "tier"}, nil
}

func (c *Controller) nodeAction(r *http.Request) (any, error) {
	var req api.NodeAction
	if err := body(r, &req); err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Name != r.PathValue("name") {
			continue
		}
		switch r.PathValue("action") {
		case "drain":
			n.State, n.Reason, n.DrainBy, n.Down = api.NodeDrained, req.Reason, req.Deadline, req.Down
		case "resume":
			n.State, n.Reason, n.DrainBy, n.Down = api.NodeUp, "", time.Time{}, false
		}
		return struct{}{}, nil
	}
	return nil, &api.Error{Code: api.CodeNotFound, Message: "no node " + r.PathValue("name"), Hint: "list nodes with ginfo"}
}

func (c *Controller) cardAction(r *http.Request) (any, error) {
	var req api.NodeAction
	if err := body(r, &req); err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		for k := range c.Nodes[i].Cards {
			card := &c.Nodes[i].Cards[k]
			if c.Nodes[i].Name != r.PathValue("name") || fmt.Sprint(card.Index) != r.PathValue("card") && card.UUID != r.PathValue("card") {
				continue
			}
			switch {
			case r.PathValue("action") == "drain":
				card.State, card.Reason = api.CardQuarantined, req.Reason
			case strings.HasPrefix(card.Reason, "Xid 79"):
				return nil, api.Errorf(api.CodeConflict, "node n3: card 1 stays out of service: fell off the bus")
			default:
				card.State, card.Reason = api.CardOK, ""
			}
			return struct{}{}, nil
		}
	}
	return nil, api.Errorf(api.CodeNotFound, "node %s has no card %q", r.PathValue("name"), r.PathValue("card"))
}

// Begun is when the fake says that it started.
var Begun = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func (c *Controller) ping(*http.Request) (any, error) {
	p := api.PingReply{SchemaVersion: api.SchemaVersion, Version: "1.2.3", PID: 4711, StartTime: Begun, Lineage: 99, Nodes: len(c.Nodes),
		Site: &api.Site{Preempt: "tier", PreemptMinRun: time.Minute, Grace: 15 * time.Second, DrainSlack: 30 * time.Second, NodeTimeout: 30 * time.Second,
			StartTimeout: 30 * time.Second, KeepEnded: 5 * time.Minute, InvalidDependency: "cancel", SlurmVersion: c.SlurmVersion},
		Figures: &api.Figures{Submitted: 40, Started: 31, Completed: 20, Cancelled: 3, Failed: 5, Plans: 120, LastPlan: 1500 * time.Microsecond,
			LongestPlan: 9 * time.Millisecond, AllPlans: 240 * time.Millisecond, LastPlanTime: Begun.Add(time.Hour)}}
	for i := range c.Nodes {
		if c.Nodes[i].State == api.NodeUp {
			p.NodesUp++
		}
	}
	return p, nil
}

func (c *Controller) ledger(r *http.Request) (any, error) {
	q := r.URL.Query()
	c.LedgerAsked = q.Encode()
	out := api.LedgerReply{SchemaVersion: api.SchemaVersion, From: q.Get("from"), To: q.Get("to"), By: q["by"], Rows: []api.LedgerRow{}}
	for _, l := range c.Ledger {
		l.LedgerKey = l.By(out.By)
		out.Rows = append(out.Rows, l)
	}
	return out, nil
}
