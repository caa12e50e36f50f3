package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
)

// DefaultSocket is where a controller that was installed listens.
const DefaultSocket = "/run/gangd/gangd.sock"

// siteDirs are what a host has where gangd or gnoded was set up.
var siteDirs = []string{"/etc/gangd", "/run/gangd", "/var/lib/gangd", "/var/lib/gnoded"}

// submitPatience is how long a submission is tried again while the controller restarts
// (a restart takes well under a second, a fail-over a few).
const submitPatience = 15 * time.Second

// socketPath is the controller's socket as the environment names it: GANG_DIR is a person's,
// GANG_CONTROLLER the node's for its jobs.
func socketPath() string {
	if dir := os.Getenv("GANG_DIR"); dir != "" {
		return filepath.Join(dir, "run", "gangd.sock")
	}
	return cmp.Or(strings.TrimPrefix(os.Getenv("GANG_CONTROLLER"), "unix:"), DefaultSocket) // gnoded.toml writes it with the word before it
}

// UnreachableError says that no controller answered at Socket.
type UnreachableError struct {
	Socket string
	Err    error
}

func (e *UnreachableError) Error() string {
	var s *silentError
	if errors.As(e.Err, &s) {
		return fmt.Sprintf("the controller at %s gave no answer within %s: it hangs or is overloaded (gctl ping); --timeout=TIME or %s=TIME "+
			"waits longer", e.Socket, when.Words(s.For), cmdline.TimeoutEnv)
	}
	cause := e.Err.Error()
	var op *net.OpError
	if errors.As(e.Err, &op) {
		cause = op.Err.Error()
	}
	return fmt.Sprintf("can't reach the controller at %s: %s; %s", e.Socket, cause, hint())
}

// hint is what there is to do, for whoever reads it: in a job that is an admin.
func hint() string {
	switch {
	case os.Getenv("GANG_DIR") != "":
		return "is gangd running? (gctl ping, gangd dev)"
	case os.Getenv("GANG_JOB_ID") != "":
		return fmt.Sprintf("in a job the relay of its node answers there: ask an admin to see on %s that gnoded runs (systemctl status "+
			"gnoded) and that /etc/gangd/gnoded.toml does not say socket = \"none\"",
			cmp.Or(os.Getenv("SLURMD_NODENAME"), "this node"))
	}
	for _, dir := range siteDirs {
		if _, err := os.Stat(dir); err == nil {
			return "this host is of a site: gangd, or on a node or login host gnoded, answers there when it runs (systemctl status gangd gnoded)"
		}
	}
	return "set GANG_DIR to the directory of your cluster, or start one: gangd dev"
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Client calls one controller. It is safe for concurrent use and holds nothing open.
type Client struct {
	socket string
	dir    string                 // of gangd dev, which may run several controllers
	latest atomic.Pointer[string] // which of them answered last
}

// New makes a client of the controller at [socketPath]. It does not connect.
func New() *Client {
	c := NewAt(socketPath())
	c.dir = os.Getenv("GANG_DIR")
	return c
}

// NewAt makes a client of the controller behind a unix socket.
func NewAt(socket string) *Client { return &Client{socket: socket} }

// Socket is the path of the socket of the controller that answered last, or will be asked first.
func (c *Client) Socket() string {
	if latest := c.latest.Load(); latest != nil {
		return *latest
	}
	return c.socket
}

// Submit queues a job. While no controller answers it tries again with the same key, for
// at most 15 s, so that a restart of gangd neither loses nor doubles the job. Those that are silent for as long as the
// caller wants are not asked again: [Silent] tells, and the key makes it safe that somebody does.
func (c *Client) Submit(ctx context.Context, r *api.SubmitRequest) (*api.SubmitReply, error) {
	give := time.Now().Add(submitPatience)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		out := new(api.SubmitReply)
		err := c.call(ctx, "POST", submitPath, r, out)
		if err == nil || !restarting(err) || Silent(err) || time.Now().After(give) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// restarting tells a controller that is on its way back (its socket is there but closed,
// or the connection broke in the middle) from one that was never there.
func restarting(err error) bool {
	var u *UnreachableError
	return errors.As(err, &u) && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) ||
		api.CodeOf(err) == api.CodeUnavailable
}

// Jobs lists jobs.
func (c *Client) Jobs(ctx context.Context, q *api.JobQuery) (*api.JobsReply, error) {
	out := &api.JobsReply{SchemaVersion: api.SchemaVersion}
	if !q.Lines {
		return out, c.last(ctx, "POST", "/v1/query", q, out)
	}
	err := c.read(ctx, lasting, "POST", "/v1/query", q, func(res *response) (err error) {
		out.Jobs, err = api.ReadLines(res)
		return brokeOff(err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// EachJob calls fn with each job of such an answer as it comes, by id, in the words of the controller: a
// hundred thousand at a time are more than a caller should have in memory. Where the answer breaks off, since its controller
// has ended, say, the jobs that are missing come from the next.
func (c *Client) EachJob(ctx context.Context, q *api.JobQuery, fn func(job json.RawMessage) error) error {
	var last json.RawMessage // that fn was called with
	return c.read(ctx, lasting, "POST", "/v1/query", q, func(res *response) error {
		after := jobID(last)
		var failed error
		err := eachJob(json.NewDecoder(res), func(job json.RawMessage) error {
			if after > 0 && jobID(job) <= after {
				return nil
			}
			after, last = 0, append(last[:0], job...)
			failed = fn(job)
			return failed
		})
		if failed != nil {
			return failed
		}
		return brokeOff(err)
	})
}

// jobID is the id of a job in JSON, 0: there is none.
func jobID(job json.RawMessage) int64 {
	var j struct {
		JobID int64 `json:"job_id"`
	}
	_ = json.Unmarshal(job, &j)
	return j.JobID
}

// eachJob reads an [api.JobsReply].
func eachJob(in *json.Decoder, fn func(json.RawMessage) error) error {
	for {
		t, err := in.Token()
		if err != nil {
			return err
		}
		if t == "jobs" {
			break
		}
	}
	if _, err := in.Token(); err != nil {
		return err
	}
	var job json.RawMessage
	for in.More() {
		if err := in.Decode(&job); err != nil {
			return err
		}
		if err := fn(job); err != nil {
			return err
		}
	}
	for range 2 { // of the list, of the answer
		if _, err := in.Token(); err != nil {
			return err
		}
	}
	return nil
}

// Job shows one job with its attempts, an ended one too.
func (c *Client) Job(ctx context.Context, ref api.JobRef) (*api.JobDetail, error) {
	return reply[api.JobDetail](ctx, c.call, "GET", "/v1/jobs/"+ref.String(), nil)
}

// Wait returns a job when it has ended.
func (c *Client) Wait(ctx context.Context, ref api.JobRef) (*api.JobDetail, error) {
	return reply[api.JobDetail](ctx, c.last, "GET", "/v1/jobs/"+ref.String()+"/wait", nil)
}

// Stacks is where the processes of a job are, or were.
func (c *Client) Stacks(ctx context.Context, ref api.JobRef) (*api.StacksReply, error) {
	return reply[api.StacksReply](ctx, c.call, "GET", "/v1/jobs/"+ref.String()+"/stacks", nil)
}

// Explain gives the arithmetic of why a job waits, fresh from the newest state.
func (c *Client) Explain(ctx context.Context, ref api.JobRef) (*api.WhyReply, error) {
	return reply[api.WhyReply](ctx, c.call, "GET", "/v1/jobs/"+ref.String()+"/why", nil)
}

// Web makes a link that logs the caller in at the page, once.
func (c *Client) Web(ctx context.Context) (*api.WebReply, error) {
	return reply[api.WebReply](ctx, c.call, "POST", "/v1/web", struct{}{})
}

// Cancel ends or signals jobs. It, Act and Update may be of very many, of which each commit takes some.
func (c *Client) Cancel(ctx context.Context, r *api.CancelRequest) (*api.CancelReply, error) {
	return reply[api.CancelReply](ctx, c.last, "POST", "/v1/cancel", r)
}

// Act does "hold", "release" or "requeue" to jobs.
func (c *Client) Act(ctx context.Context, action string, r *api.ActionRequest) (*api.CancelReply, error) {
	return reply[api.CancelReply](ctx, c.last, "POST", "/v1/"+action, r)
}

// Update changes jobs.
func (c *Client) Update(ctx context.Context, r *api.UpdateRequest) (*api.CancelReply, error) {
	return reply[api.CancelReply](ctx, c.last, "POST", "/v1/update", r)
}

// NewKey makes the key of one intent to submit: 128 random bits never meet again.
func NewKey() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

// Rerun submits a job once more.
func (c *Client) Rerun(ctx context.Context, r *api.RerunRequest) (*api.SubmitReply, error) {
	return reply[api.SubmitReply](ctx, c.call, "POST", "/v1/rerun", r)
}

// EventPages calls fn with the events of a job (zero ref: of all) that come after since, page by
// page, until there are no more, limit (0: none) is reached, or fn ends it.
func (c *Client) EventPages(ctx context.Context, ref api.JobRef, since int64, limit int, fn func([]api.Event) error) error {
	for left := limit; ; {
		path := "/v1/events?since=" + strconv.FormatInt(since, 10)
		if ref != (api.JobRef{}) {
			path += "&job=" + ref.String()
		}
		if limit > 0 {
			path += "&limit=" + strconv.Itoa(left)
		}
		page := new(api.EventsReply)
		if err := c.call(ctx, "GET", path, nil, page); err != nil {
			return err
		}
		n := len(page.Events)
		if n > 0 {
			if err := fn(page.Events); err != nil {
				return err
			}
			since = page.Events[n-1].Seq
		}
		if left -= n; !page.More || n == 0 || limit > 0 && left <= 0 {
			return nil
		}
	}
}

// Events lists what [Client.EventPages] gives.
func (c *Client) Events(ctx context.Context, ref api.JobRef, since int64, limit int) (*api.EventsReply, error) {
	out := &api.EventsReply{SchemaVersion: api.SchemaVersion, Events: []api.Event{}}
	return out, c.EventPages(ctx, ref, since, limit, func(evs []api.Event) error {
		out.Events = append(out.Events, evs...)
		return nil
	})
}

// Nodes lists nodes, cards and partitions.
func (c *Client) Nodes(ctx context.Context) (*api.NodesReply, error) {
	return reply[api.NodesReply](ctx, c.call, "GET", "/v1/nodes", nil)
}

// NodeAction does "drain", "resume" or "fence" to a node.
func (c *Client) NodeAction(ctx context.Context, node, action string, r *api.NodeAction) error {
	return c.call(ctx, "POST", "/v1/nodes/"+url.PathEscape(node)+"/"+action, r, nil)
}

// CardAction does "drain" or "resume" to a card, by index or UUID.
func (c *Client) CardAction(ctx context.Context, node, card, action string, r *api.NodeAction) error {
	return c.call(ctx, "POST", "/v1/nodes/"+url.PathEscape(node)+"/cards/"+url.PathEscape(card)+"/"+action, r, nil)
}

// PutPartition makes a partition, or with change changes the one of that name.
func (c *Client) PutPartition(ctx context.Context, r *api.PartitionRequest, change bool) error {
	path := "/v1/partitions"
	if change {
		path += "/" + url.PathEscape(r.Name) + "/update"
	}
	return c.call(ctx, "POST", path, r, nil)
}

// DeletePartition takes one away that no job is of.
func (c *Client) DeletePartition(ctx context.Context, name string) error {
	return c.call(ctx, "POST", "/v1/partitions/"+url.PathEscape(name)+"/delete", nil, nil)
}

// ResetPartitions makes the partitions of the configuration hold again.
func (c *Client) ResetPartitions(ctx context.Context) error {
	return c.call(ctx, "POST", "/v1/partitions/reset", nil, nil)
}

// Crontab is the cron table of a user; empty: the caller's.
func (c *Client) Crontab(ctx context.Context, user string) (*api.CrontabReply, error) {
	path := "/v1/crontab"
	if user != "" {
		path += "?" + url.Values{"user": {user}}.Encode()
	}
	return reply[api.CrontabReply](ctx, c.call, "GET", path, nil)
}

// PutCrontab replaces a cron table.
func (c *Client) PutCrontab(ctx context.Context, r *api.CrontabRequest) (*api.CrontabReply, error) {
	return reply[api.CrontabReply](ctx, c.call, "POST", "/v1/crontab", r)
}

// Reservations lists those that are named, or all.
func (c *Client) Reservations(ctx context.Context, names ...string) (*api.ReservationsReply, error) {
	path := "/v1/reservations"
	if len(names) > 0 {
		path += "?" + url.Values{"name": names}.Encode()
	}
	return reply[api.ReservationsReply](ctx, c.call, "GET", path, nil)
}

// Reserve makes a reservation.
func (c *Client) Reserve(ctx context.Context, r *api.ReservationRequest) (*api.ReservationsReply, error) {
	return reply[api.ReservationsReply](ctx, c.call, "POST", "/v1/reservations", r)
}

// UpdateReservation changes what the request names of a reservation.
func (c *Client) UpdateReservation(ctx context.Context, r *api.ReservationRequest) error {
	return c.call(ctx, "POST", "/v1/reservations/"+url.PathEscape(r.Name)+"/update", r, nil)
}

// DeleteReservation takes one away.
func (c *Client) DeleteReservation(ctx context.Context, name string) error {
	return c.call(ctx, "POST", "/v1/reservations/"+url.PathEscape(name)+"/delete", nil, nil)
}

// Outbox is what waits to be delivered, and what was given up.
func (c *Client) Outbox(ctx context.Context) (*api.OutboxReply, error) {
	return reply[api.OutboxReply](ctx, c.call, "GET", "/v1/outbox", nil)
}

// RetryOutbox tries once more what was given up.
func (c *Client) RetryOutbox(ctx context.Context) error {
	return c.call(ctx, "POST", "/v1/outbox/retry", nil, nil)
}

// Ledger sums up what was used.
func (c *Client) Ledger(ctx context.Context, q *api.LedgerQuery) (*api.LedgerReply, error) {
	v := url.Values{}
	for name, list := range map[string][]string{"by": q.By, "user": q.Users, "account": q.Accounts, "partition": q.Partitions,
		"card_type": q.CardTypes, "cause": q.Cause} {
		if len(list) > 0 {
			v[name] = list
		}
	}
	for name, day := range map[string]string{"from": q.From, "to": q.To} {
		if day != "" {
			v.Set(name, day)
		}
	}
	return reply[api.LedgerReply](ctx, c.call, "GET", "/v1/ledger?"+v.Encode(), nil)
}

// Ping asks the controller how it is.
func (c *Client) Ping(ctx context.Context) (*api.PingReply, error) {
	return reply[api.PingReply](ctx, c.call, "GET", "/v1/ping", nil)
}

// Controllers lists the site's controllers; a conflict where there is one, without a list.
func (c *Client) Controllers(ctx context.Context) (*api.ControllersReply, error) {
	return reply[api.ControllersReply](ctx, c.call, "GET", "/v1/controllers", nil)
}

// RemoveController takes one off the list.
func (c *Client) RemoveController(ctx context.Context, name string) error {
	return c.call(ctx, "POST", "/v1/controllers/"+url.PathEscape(name)+"/remove", nil, nil)
}

// NewToken makes a token with which a node or a controller joins.
func (c *Client) NewToken(ctx context.Context, r *api.TokenRequest) (*api.TokenReply, error) {
	return reply[api.TokenReply](ctx, c.call, "POST", "/v1/tokens", r)
}

// Tokens lists the join tokens that can still be used.
func (c *Client) Tokens(ctx context.Context) (*api.TokensReply, error) {
	return reply[api.TokensReply](ctx, c.call, "GET", "/v1/tokens", nil)
}

// WithdrawToken has nobody join with a token any more.
func (c *Client) WithdrawToken(ctx context.Context, id string) error {
	return c.call(ctx, "POST", "/v1/tokens/withdraw", &api.TokenWithdrawal{ID: id}, nil)
}

// Revoke makes a node's certificates worthless and cuts its session.
func (c *Client) Revoke(ctx context.Context, node string) error {
	return c.call(ctx, "POST", "/v1/revoke", &api.RevokeRequest{Node: node}, nil)
}

const submitPath = "/v1/jobs"

// manner is how a call counts the controller's silence.
type manner int

const (
	// brief: an answer is due; every silence counts.
	brief manner = iota
	// lasting: of something that takes its time (a wait, a stream, a long list), so the
	// controller is asked beside it whether it lives.
	lasting
)

// call sends one request and decodes the answer into out, when there is one to decode.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	return c.decode(ctx, brief, method, path, in, out)
}

// last is call for what takes its time.
func (c *Client) last(ctx context.Context, method, path string, in, out any) error {
	return c.decode(ctx, lasting, method, path, in, out)
}

// reply makes a call, by [Client.call] or [Client.last], and gives what was answered.
func reply[T any](ctx context.Context, call func(ctx context.Context, method, path string, in, out any) error, method, path string,
	in any) (*T, error) {
	out := new(T)
	return out, call(ctx, method, path, in, out)
}

func (c *Client) decode(ctx context.Context, m manner, method, path string, in, out any) error {
	return c.read(ctx, m, method, path, in, func(res *response) error {
		if out == nil {
			return nil
		}
		return brokeOff(json.NewDecoder(res).Decode(out))
	})
}

// brokenError is an answer that is not whole.
type brokenError struct{ why error }

func (e *brokenError) Error() string { return "the answer broke off: " + e.why.Error() }
func (e *brokenError) Unwrap() error { return e.why }

func brokeOff(err error) error {
	if err == nil {
		return nil
	}
	return &brokenError{err}
}

// cut tells an answer whose controller ended, or lost its seat, while it gave it.
func cut(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// read makes a call and has its answer read. A call that may be made twice is made again where the answer was cut.
func (c *Client) read(ctx context.Context, m manner, method, path string, in any, answer func(*response) error) error {
	give := giveUp(ctx)
	for began := false; ; began = true {
		res, err := c.send(ctx, m, method, path, in)
		if err == nil {
			err = answer(res)
			res.Close()
			var broken *brokenError
			if !errors.As(err, &broken) {
				return err
			}
			err = &UnreachableError{Socket: c.socket, Err: err}
			if !cut(broken) {
				return err
			}
		} else if !began || !restarting(err) {
			return err
		}
		if !api.Repeatable(method, path) || Silent(err) || time.Now().Add(leaderPause).After(give) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leaderPause):
		}
	}
}

// turnPatience is how long a call is made again that was refused because too many came at once, or whose answer was cut.
const turnPatience = 15 * time.Second

// giveUp is when a call is not made again any more.
func giveUp(ctx context.Context) time.Time {
	give := time.Now().Add(turnPatience)
	if end, ok := ctx.Deadline(); ok && end.Before(give) {
		return end
	}
	return give
}

// leaderPause is between calls while no controller leads, or not the one that was called.
const leaderPause = 100 * time.Millisecond

// send gives the response of a call that succeeded. One that was refused for the moment did
// nothing, and is made again when the controller says.
func (c *Client) send(ctx context.Context, m manner, method, path string, in any) (*response, error) {
	give := giveUp(ctx)
	for {
		res, err := c.try(ctx, m, method, path, in)
		var e *api.Error
		if !errors.As(err, &e) || e.RetryAfter <= 0 && e.Code != api.CodeNotLeader {
			return res, err
		}
		wait := time.Duration(min(e.RetryAfter, 3600)) * time.Second
		if e.Code == api.CodeNotLeader { // a take-over is over in seconds
			wait = leaderPause
		}
		if time.Now().Add(wait).After(give) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

func (c *Client) try(ctx context.Context, m manner, method, path string, in any) (*response, error) {
	limit, err := timeoutOf(ctx)
	if err != nil {
		return nil, err
	}
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	res, err := c.ask(ctx, limit, m, method, path, body)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &UnreachableError{Socket: c.socket, Err: err}
	}
	if res.status/100 == 2 {
		return res, nil
	}
	defer res.Close()
	return nil, c.refusal(res, method, path)
}

// refusal is what an answer says that is not success.
func (c *Client) refusal(res *response, method, path string) error {
	b, err := io.ReadAll(io.LimitReader(res, 1<<20))
	if Silent(err) {
		return &UnreachableError{Socket: c.socket, Err: err}
	}
	e := new(api.Error)
	if json.Unmarshal(b, e) != nil || e.Code == "" {
		return api.Errorf(api.CodeInternal, "%s %s: the controller answered %s: %s", method, path, res.text, bytes.TrimSpace(b))
	}
	return e
}

// Verify has the controller recount its memory and its store.
func (c *Client) Verify(ctx context.Context) (*api.VerifyReply, error) {
	return reply[api.VerifyReply](ctx, c.last, "GET", "/v1/verify", nil)
}

// Reload has the controller read its configuration again. It answers when what has changed is on record and in force.
func (c *Client) Reload(ctx context.Context) (*api.ReloadReply, error) {
	return reply[api.ReloadReply](ctx, c.last, "POST", "/v1/reload", nil)
}

// Backup has the controller copy its state to a new directory on its host.
func (c *Client) Backup(ctx context.Context, r *api.BackupRequest) (*api.BackupReply, error) {
	return reply[api.BackupReply](ctx, c.last, "POST", "/v1/backup", r)
}

// BeginStep starts a step in the allocation of a job.
func (c *Client) BeginStep(ctx context.Context, job api.JobRef, r *api.StepRequest) (*api.StepReply, error) {
	return reply[api.StepReply](ctx, c.last, "POST", "/v1/jobs/"+job.String()+"/steps", r) // it waits for room
}

// Steps lists all steps of all attempts of a job.
func (c *Client) Steps(ctx context.Context, job api.JobRef) (*api.StepsReply, error) {
	return reply[api.StepsReply](ctx, c.call, "GET", "/v1/jobs/"+job.String()+"/steps", nil)
}

// AttachStep says where the client of a running step listens.
func (c *Client) AttachStep(ctx context.Context, job api.JobRef, step int) (*api.StepAttachReply, error) {
	return reply[api.StepAttachReply](ctx, c.call, "GET", "/v1/jobs/"+job.String()+"/steps/"+strconv.Itoa(step)+"/attach", nil)
}

// WaitStep returns when a step has ended, also when there is no such step.
func (c *Client) WaitStep(ctx context.Context, job api.JobRef, step int) error {
	return c.last(ctx, "GET", "/v1/jobs/"+job.String()+"/steps/"+strconv.Itoa(step)+"/wait", nil, nil)
}

// SignalStep signals the tasks of a step, or (signal empty) ends it.
func (c *Client) SignalStep(ctx context.Context, job api.JobRef, step int, r api.StepSignal) (*api.StepSignalReply, error) {
	return reply[api.StepSignalReply](ctx, c.call, "POST", "/v1/jobs/"+job.String()+"/steps/"+strconv.Itoa(step)+"/signal", &r)
}
