package fake

import (
	"bytes"
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

// call answers one request, under Lock.
type call = func(*http.Request) (any, error)

// with is a call whose body is a T.
func with[T any](do func(r *http.Request, ask *T) (any, error)) call {
	return func(r *http.Request) (any, error) {
		ask := new(T)
		if err := json.NewDecoder(r.Body).Decode(ask); err != nil {
			return nil, err
		}
		return do(r, ask)
	}
}

// of is a call about the job in the path.
func (c *Controller) of(do func(j *api.Job) (any, error)) call {
	return func(r *http.Request) (any, error) {
		j, err := c.one(r.PathValue("ref"))
		if err != nil {
			return nil, err
		}
		return do(j)
	}
}

func (c *Controller) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range map[string]call{
		"POST /v1/jobs":                  with(c.submit),
		"POST /v1/query":                 with(c.query),
		"GET /v1/jobs/{ref}":             c.of(c.job),
		"GET /v1/jobs/{ref}/wait":        c.of(c.job),
		"GET /v1/jobs/{ref}/why":         c.of(c.why),
		"GET /v1/jobs/{ref}/script":      c.of(c.script),
		"POST /v1/history":               with(c.history),
		"POST /v1/cancel":                with(c.cancel),
		"POST /v1/update":                with(c.update),
		"POST /v1/rerun":                 with(c.rerun),
		"POST /v1/{action}":              with(c.act),
		"GET /v1/nodes":                  c.nodes,
		"POST /v1/nodes/{name}/{action}": with(c.nodeAction),

		"POST /v1/partitions":               with(c.putPartition),
		"POST /v1/partitions/reset":         func(*http.Request) (any, error) { return struct{}{}, nil },
		"POST /v1/partitions/{name}/update": with(c.putPartition),
		"POST /v1/partitions/{name}/delete": c.dropPartition,

		"GET /v1/reservations":                c.reservations,
		"POST /v1/reservations":               with(c.reserve),
		"POST /v1/reservations/{name}/update": with(c.reserve),
		"POST /v1/reservations/{name}/delete": c.unreserve,

		"POST /v1/nodes/{name}/cards/{card}/{action}": with(c.cardAction),
		"GET /v1/crontab":  func(*http.Request) (any, error) { return c.Crontab, nil },
		"POST /v1/crontab": with(c.putCrontab),
		"GET /v1/ledger":   c.ledger,
		"GET /v1/outbox":   func(*http.Request) (any, error) { return c.Outbox, nil },
		"POST /v1/outbox/retry": func(*http.Request) (any, error) {
			c.Outbox.GivenUp = nil
			return struct{}{}, nil
		},
		"GET /v1/ping": c.ping,
	} {
		mux.HandleFunc(pattern, c.answer(do))
	}
	mux.HandleFunc("GET /v1/events", c.events)
	mux.HandleFunc("GET /v1/live", c.live)
	mux.HandleFunc("GET /v1/log", c.log)
	mux.HandleFunc("GET /v1/logs", c.logs)
	return mux
}

// answer wraps a call: one at a time, its result or error as JSON.
func (c *Controller) answer(do call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.Lock()
		defer c.Unlock()
		c.Asked = append(c.Asked, r.Method+" "+r.URL.Path)
		if c.Refuse != nil {
			refuse(w, c.Refuse)
			return
		}
		out, err := do(r)
		if lines, ok := out.([]byte); ok {
			_, _ = w.Write(lines)
		} else if err != nil {
			refuse(w, err)
		} else {
			_ = json.NewEncoder(w).Encode(out)
		}
	}
}

func refuse(w http.ResponseWriter, err error) {
	e, ok := err.(*api.Error)
	if !ok {
		e = api.Errorf(api.CodeInvalid, "%v", err)
	}
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e)
}

func (c *Controller) submit(_ *http.Request, ask *api.SubmitRequest) (any, error) {
	id := int64(len(c.Jobs) + 1)
	c.Jobs = append(c.Jobs, api.Job{JobID: id, Name: ask.Spec.Name, User: c.User, State: api.JobPending, StateCode: "PD", Size: ask.Spec.Size})
	return api.SubmitReply{SchemaVersion: api.SchemaVersion, JobID: id, Count: 1}, nil
}

func (c *Controller) query(_ *http.Request, q *api.JobQuery) (any, error) {
	found, missing := c.find(q)
	if len(found) == 0 && len(missing) > 0 {
		return nil, missing[0]
	}
	jobs := []api.Job{}
	for _, j := range found {
		jobs = append(jobs, *j)
		if q.NoRanks {
			jobs[len(jobs)-1].Ranks = nil
		}
	}
	if q.Lines {
		return lines(jobs), nil
	}
	return api.JobsReply{SchemaVersion: api.SchemaVersion, Jobs: jobs}, nil
}

func lines(jobs []api.Job) []byte {
	b := api.AppendLineHeader(nil)
	for i := range jobs {
		b = api.AppendLine(b, &jobs[i])
	}
	return b
}

// find selects as api.JobQuery says.
func (c *Controller) find(q *api.JobQuery) (found []*api.Job, missing []*api.Error) {
	for _, ref := range q.Refs {
		if !slices.ContainsFunc(c.Jobs, func(j api.Job) bool { return c.names(ref, &j) }) {
			missing = append(missing, unknown(ref))
		}
	}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		state := slices.Contains(q.States, j.State) || len(q.States) == 0 && (q.All || len(q.Refs) > 0 || !j.State.Ended())
		if c.among(q.Refs, j) && state && in(q.Users, j.User) && in(q.Names, j.Name) && in(q.Accounts, j.Account) && in(q.Partitions, j.Partition) &&
			(len(q.Nodes) == 0 || slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(q.Nodes, n) })) {
			found = append(found, j)
		}
	}
	return found, missing
}

func in(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }

func (c *Controller) among(refs []api.JobRef, j *api.Job) bool {
	return len(refs) == 0 || slices.ContainsFunc(refs, func(ref api.JobRef) bool { return c.names(ref, j) })
}

func unknown(ref api.JobRef) *api.Error {
	return &api.Error{Code: api.CodeNotFound, Message: "no job " + ref.String(), Hint: "list jobs with gqueue, ended ones with gacct"}
}

// names reports whether a reference means a job.
func (c *Controller) names(ref api.JobRef, j *api.Job) bool {
	switch {
	case ref.Last > 0:
		own := slices.DeleteFunc(slices.Clone(c.Jobs), func(j api.Job) bool { return j.User != c.User })
		return ref.Last <= len(own) && own[len(own)-ref.Last].JobID == j.JobID
	case ref.Index >= 0:
		return j.ArrayJobID == ref.ID && j.ArrayIndex != nil && *j.ArrayIndex == ref.Index
	}
	return j.JobID == ref.ID || j.ArrayJobID == ref.ID
}

// one finds the job that a text names.
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

func (c *Controller) job(j *api.Job) (any, error) {
	return api.JobDetail{SchemaVersion: api.SchemaVersion, Job: *j, Attempts: append([]api.Attempt{}, c.Attempts[j.JobID]...)}, nil
}

// history selects as api.HistoryQuery says.
func (c *Controller) history(_ *http.Request, q *api.HistoryQuery) (any, error) {
	var out bytes.Buffer
	for i := range c.Jobs {
		j := &c.Jobs[i]
		late := !q.Until.IsZero() && j.SubmitTime.After(q.Until)
		early := !q.Since.IsZero() && j.State.Ended() && j.EndTime.Before(q.Since)
		if c.among(q.Refs, j) && in(q.Users, j.User) && !late && !early {
			detail, _ := c.job(j)
			if err := json.NewEncoder(&out).Encode(detail); err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), nil
}

func (c *Controller) script(j *api.Job) (any, error) {
	if j.User != c.User {
		return nil, api.Errorf(api.CodePermission, "job %d belongs to %s: only its owner or an admin may read its script", j.JobID, j.User)
	}
	return []byte("#!/bin/sh\necho " + j.Name + "\n"), nil
}

func (c *Controller) why(j *api.Job) (any, error) {
	return api.WhyReply{SchemaVersion: api.SchemaVersion, JobID: j.JobID, State: j.State, Reason: j.Reason, Why: c.Why[j.JobID]}, nil
}

func (c *Controller) cancel(_ *http.Request, ask *api.CancelRequest) (any, error) {
	return c.each(ask, &ask.JobQuery, func(j *api.Job, res *api.CancelResult) {
		if ask.Signal != "" {
			res.Nodes, res.Processes = len(j.Nodes), c.Processes*len(j.Nodes)
		} else {
			j.State, j.StateCode = api.JobCancelled, "CA"
		}
	})
}

func (c *Controller) act(r *http.Request, ask *api.ActionRequest) (any, error) {
	return c.each(ask, &ask.JobQuery, func(j *api.Job, res *api.CancelResult) {
		switch r.PathValue("action") {
		case "hold":
			j.Held, j.Reason = "user", "JobHeldUser"
		case "release":
			j.Held, j.Reason = "", "Priority"
		case "requeue":
			if j.State == api.JobPending {
				res.Idle = "already waiting"
			}
		}
	})
}

func (c *Controller) update(_ *http.Request, ask *api.UpdateRequest) (any, error) {
	return c.each(ask, &ask.JobQuery, func(*api.Job, *api.CancelResult) {})
}

func (c *Controller) rerun(_ *http.Request, ask *api.RerunRequest) (any, error) {
	ask.Key = ""
	c.note(ask)
	return api.SubmitReply{SchemaVersion: api.SchemaVersion, JobID: 99, Count: 2}, nil
}

// note keeps a request with its body, for tests of what was sent.
func (c *Controller) note(ask any) {
	b, _ := json.Marshal(ask)
	c.Asked = append(c.Asked, string(b))
}

// each does something to every job that a query selects and that has not ended.
func (c *Controller) each(ask any, q *api.JobQuery, do func(*api.Job, *api.CancelResult)) (any, error) {
	c.note(ask)
	found, missing := c.find(q)
	out := api.CancelReply{SchemaVersion: api.SchemaVersion, Results: []api.CancelResult{}}
	for _, j := range found {
		res := api.CancelResult{Ref: strconv.FormatInt(j.JobID, 10), JobID: j.JobID}
		if j.ArrayIndex != nil {
			res.Ref = fmt.Sprintf("%d_%d", j.ArrayJobID, *j.ArrayIndex)
		}
		if j.State.Ended() {
			res.Error = api.AlreadyEnded(res.Ref, j.State)
		} else {
			do(j, &res)
		}
		out.Results = append(out.Results, res)
	}
	for _, err := range missing {
		out.Results = append(out.Results, api.CancelResult{Error: err})
	}
	c.wake()
	return out, nil
}

func (c *Controller) nodes(*http.Request) (any, error) {
	return api.NodesReply{SchemaVersion: api.SchemaVersion, Nodes: c.Nodes, Partitions: c.Partitions, Preempt: "tier"}, nil
}

func (c *Controller) nodeAction(r *http.Request, ask *api.NodeAction) (any, error) {
	at := slices.IndexFunc(c.Nodes, func(n api.Node) bool { return n.Name == r.PathValue("name") })
	if at < 0 {
		return nil, &api.Error{Code: api.CodeNotFound, Message: "no node " + r.PathValue("name"), Hint: "list nodes with ginfo"}
	}
	n := &c.Nodes[at]
	switch r.PathValue("action") {
	case "drain":
		n.State, n.Reason, n.DrainBy, n.Down = api.NodeDrained, ask.Reason, ask.Deadline, ask.Down
	case "resume":
		n.State, n.Reason, n.DrainBy, n.Down = api.NodeUp, "", time.Time{}, false
	}
	return struct{}{}, nil
}

func (c *Controller) cardAction(r *http.Request, ask *api.NodeAction) (any, error) {
	for i := range c.Nodes {
		for k := range c.Nodes[i].Cards {
			card := &c.Nodes[i].Cards[k]
			switch name := r.PathValue("card"); {
			case c.Nodes[i].Name != r.PathValue("name") || fmt.Sprint(card.Index) != name && card.UUID != name:
				continue
			case r.PathValue("action") == "drain":
				card.State, card.Reason = api.CardQuarantined, ask.Reason
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
