package scancel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// scancel is one call.
type scancel struct {
	choices
	cmdline.Streams
	client *client.Client
	status int
	input  *bufio.Reader
	// elements of arrays that were named one by one
	elements map[string]bool
}

// Run is the command.
func Run(args []string, s cmdline.Streams) int {
	c := &scancel{Streams: s, client: client.New(), input: bufio.NewReader(s.In)}
	rest, err := command.Parse(&c.choices, args, s)
	if err == nil {
		c.environment(os.Getenv)
		err = c.run(context.Background(), rest)
	}
	if err = command.Print(err, s); err != nil {
		return cmdline.Exit(err)
	}
	return c.status
}

// target is a job, a part of an array or a step as it was named.
type target struct {
	text string
	refs []api.JobRef
	step string
	// component: one of a heterogeneous job is named, which can not be done anything to by itself.
	component bool
}

// componentStatus is scancel's where one component alone was to be ended: the low byte of Slurm's number for it.
const componentStatus = 60

// noScript is what Slurm says of a signal to the script of a job of srun or salloc, and noScriptStatus, of the same kind,
// its scancel's status.
const (
	noScript       = "Job script not specified"
	noScriptStatus = 217
)

func (c *scancel) run(ctx context.Context, words []string) error {
	targets, err := parseTargets(words)
	if err != nil {
		return err
	}
	if err := c.knownUser(); err != nil {
		return err
	}
	if len(targets) == 0 && !c.filtered() {
		return errors.New("No job identification provided")
	}
	if i := slices.IndexFunc(targets, func(t target) bool { return t.component }); i >= 0 {
		c.Errorf("scancel", "Kill job error on job id %s: %s", targets[i].text, slurm.NotOneComponent)
		return cmdline.Status(componentStatus)
	}
	if !c.looks() && !slices.ContainsFunc(targets, func(t target) bool { return t.step != "" }) {
		return c.cancelAll(ctx, targets)
	}
	return c.look(ctx, targets)
}

// filtered reports whether jobs are chosen by anything but their ids.
func (c *scancel) filtered() bool {
	return c.account+c.name+c.partition+c.user+c.state+c.nodes+c.qos+c.reservation+c.wckey != "" || c.me
}

// looks reports whether the queue is looked at first.
func (c *scancel) looks() bool {
	return c.filtered() || c.interactive || c.batch || c.signals()
}

// signals: a signal is sent, and nothing ends by it.
func (c *scancel) signals() bool { return c.signal != "" && c.signal != "KILL" }

// parseTargets reads ids, each word a list: 12, 12_3, 12_[1-3], 12.0.
func parseTargets(words []string) ([]target, error) {
	var out []target
	for _, w := range words {
		for _, id := range cmdline.SplitIDs(w) {
			t := target{text: id}
			job, step, stepped := strings.Cut(slurm.Own(id), ".")
			if stepped {
				if _, err := strconv.ParseUint(step, 10, 31); err != nil {
					return nil, fmt.Errorf("Invalid job id %s", id)
				}
				t.step = step
			}
			plain, n := slurm.CutComponent(job)
			t.component = n >= 0
			refs, err := api.ParseJobRefs(cmdline.WithoutLimit(plain))
			if err != nil || strings.Contains(beforeBracket(job), "-") || strings.HasPrefix(job, "@") {
				return nil, fmt.Errorf("Invalid job id %s", w)
			}
			t.refs = refs
			out = append(out, t)
		}
	}
	return out, nil
}

// namesComponent reports whether it is the id of a component of this job, and not of all of it.
func (t *target) namesComponent(j *api.Job) bool {
	return slices.ContainsFunc(j.Components, func(p api.JobComponent) bool {
		return p.JobID != j.JobID && slices.ContainsFunc(t.refs, func(r api.JobRef) bool { return r.Index < 0 && r.ID == p.JobID })
	})
}

func beforeBracket(s string) string {
	s, _, _ = strings.Cut(s, "[")
	return s
}

func (c *scancel) knownUser() error {
	if c.user == "" {
		return nil
	}
	if _, ok := jobs.User(c.user); !ok {
		return fmt.Errorf("Invalid user name: %s", c.user)
	}
	return nil
}

// cancelAll is the silent way.
func (c *scancel) cancelAll(ctx context.Context, targets []target) error {
	for _, t := range targets {
		c.tell("Terminating job %s", t.text)
		err := c.cancel(ctx, t.refs)
		switch {
		case err == nil:
		case slurm.Away(err):
			return c.unreachable(t, err)
		case api.ReasonOf(err) == api.ReasonComponent:
			c.fail(t.text, "", slurm.NotOneComponent)
			c.status = componentStatus
		case c.verbose > 0 && !c.quiet:
			c.Errorf("scancel", "Kill job error on job id %s: %s", t.text, slurm.Words(err))
		}
	}
	return nil
}

func (c *scancel) unreachable(t target, err error) error {
	return fmt.Errorf("Kill job error on job id %s: %s", t.text, slurm.Words(err))
}

// tell is -v.
func (c *scancel) tell(format string, args ...any) {
	if c.verbose > 0 && !c.quiet {
		fmt.Fprintf(c.Err, "scancel: "+format+"\n", args...)
	}
}

// cancel ends jobs, or signals them; the first error of several is given.
func (c *scancel) cancel(ctx context.Context, refs []api.JobRef) error {
	req := &api.CancelRequest{JobQuery: api.JobQuery{Refs: refs, NoRanks: true}, Scope: c.scope()}
	if !c.signals() {
		req.Now = true // the lead of a notice is the limit's and preemption's, as in Slurm
	} else {
		req.Signal = c.signal
	}
	reply, err := c.client.Cancel(ctx, req)
	if err != nil {
		return err
	}
	for _, r := range reply.Results {
		if r.Error != nil {
			return r.Error
		}
	}
	return nil
}

func (c *scancel) scope() api.SignalScope {
	switch {
	case c.full:
		return api.ScopeFull
	case c.batch:
		return api.ScopeBatch
	}
	return api.ScopeSteps
}

// look goes through the queue and does it to each job that is named and that the filters let
// through.
func (c *scancel) look(ctx context.Context, targets []target) error {
	reply, err := c.client.Jobs(ctx, &api.JobQuery{NoRanks: true})
	if err != nil {
		return cmdline.Bare("slurm_load_jobs error: " + slurm.Words(err))
	}
	c.elements = map[string]bool{}
	for _, t := range targets {
		for _, r := range t.refs {
			c.elements[r.String()] = true
		}
	}
	users := c.users()
	nodes, _ := hostlist.Expand(c.nodes)
	acted := false
	named := make([]bool, len(targets))
	for i := range reply.Jobs {
		j := &reply.Jobs[i]
		var steps []target // of the job that are named; none: the job as a whole
		whole := len(targets) == 0
		for k, t := range targets {
			if t.step == "" && t.namesComponent(j) {
				named[k] = true
				c.fail(t.text, "", slurm.NotOneComponent)
				c.status = componentStatus
			}
			if !t.names(j) {
				continue
			}
			named[k] = true
			if t.step == "" {
				whole = true
			} else {
				steps = append(steps, t)
			}
		}
		if !whole && steps == nil || !c.matches(j, users, nodes) {
			continue
		}
		if c.name != "" && j.Name != c.name {
			c.fail(jobfield.IDText(j), "", slurm.NotOneComponent)
			c.status = componentStatus
			continue
		}
		if j.State == api.JobCompleting && j.CancelledBy != "" && whole && !c.signals() { // as good as ended
			if len(targets) > 0 {
				c.fail(jobfield.IDText(j), "", slurm.AlreadyEnded)
			}
			continue
		}
		acted = true
		if whole {
			c.act(ctx, j, jobfield.IDText(j), "")
			continue
		}
		for _, t := range steps {
			c.act(ctx, j, strings.TrimSuffix(t.text, "."+t.step), t.step)
		}
	}
	for i, t := range targets {
		if !named[i] {
			c.fail(t.text, t.step, slurm.InvalidJob)
		}
	}
	if !acted && c.filtered() && c.verbose > 0 {
		c.Errorf("scancel", "No active jobs match ALL job filters, including: %s", c.filters())
	}
	return nil
}

func (t *target) names(j *api.Job) bool {
	return slices.ContainsFunc(t.refs, func(r api.JobRef) bool {
		switch {
		case r.Index >= 0:
			return j.ArrayIndex != nil && j.ArrayJobID == r.ID && *j.ArrayIndex == r.Index
		case t.step != "": // a step is of one job
			return j.JobID == r.ID
		}
		return j.JobID == r.ID || j.ArrayIndex != nil && j.ArrayJobID == r.ID
	})
}

func (c *scancel) fail(id, step, words string) {
	if c.quiet {
		return
	}
	if step != "" {
		c.Errorf("scancel", "Kill job error on job step id %s: %s", id, words)
	} else {
		c.Errorf("scancel", "Kill job error on job id %s: %s", id, words)
	}
	c.status = 1
}

// act does it to one job, when it was agreed to.
func (c *scancel) act(ctx context.Context, j *api.Job, id, step string) {
	if c.interactive && !c.agreed(j, id, step) {
		return
	}
	switch {
	case step != "":
		c.tell("Terminating step %s.%s", id, step)
	case c.signals():
		c.tell("Signal %s to %s %s", cmdline.SignalNumber(c.signal), map[bool]string{true: "batch job", false: "job"}[c.batch], id)
	default:
		c.tell("Terminating job %s", id)
	}
	if c.batch && step == "" && j.Allocation {
		c.fail(id, "", noScript)
		c.status = noScriptStatus
		return
	}
	var err error
	if step != "" {
		err = c.cancelStep(ctx, j, step)
		id += "." + step
	} else {
		err = c.cancel(ctx, []api.JobRef{jobs.Ref(j)})
	}
	if err != nil && !c.passed(j, id, err) {
		words := slurm.Words(err)
		if api.CodeOf(err) == api.CodeConflict && j.State == api.JobPending {
			words = "Job is pending execution"
		}
		c.fail(id, step, words)
	}
}

// passed reports that a waiting element of an array was named with the whole array: a signal
// is for those that run. Or that one to be ended has ended since the queue was read.
func (c *scancel) passed(j *api.Job, id string, err error) bool {
	if api.CodeOf(err) == api.CodeAlreadyEnded && !c.signals() && c.verbose == 0 {
		return true
	}
	return api.CodeOf(err) == api.CodeConflict && j.State == api.JobPending && j.ArrayIndex != nil && !c.elements[id]
}

// cancelStep ends a step of a running job, or signals it.
func (c *scancel) cancelStep(ctx context.Context, j *api.Job, step string) error {
	number, err := strconv.Atoi(step)
	if err != nil {
		return err
	}
	signal := c.signal
	if signal == "KILL" {
		signal = ""
	}
	_, err = c.client.SignalStep(ctx, jobs.Ref(j), number, api.StepSignal{Signal: signal})
	return err
}

// agreed asks; the end of the input is a no.
func (c *scancel) agreed(j *api.Job, id, step string) bool {
	what := "job_id=" + id
	if step != "" {
		what = "step_id=" + id + "." + step
	}
	for {
		fmt.Fprintf(c.Out, "Cancel %s name=%s partition=%s [y/n]? ", what, column.Printable(j.Name), j.Partition)
		line, err := c.input.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		case "n", "no":
			return false
		}
		if err != nil {
			return false
		}
	}
}

// stateOf is one of the three states that scancel knows.
func stateOf(v string) (api.JobState, bool) {
	st := jobs.StateOf(v)
	if st == nil || st.Own == "" {
		return "", strings.EqualFold(v, "SPECIAL_EXIT")
	}
	return st.Own, true
}

func (c *scancel) users() []string {
	var out []string
	if c.user != "" {
		out, _ = jobs.User(c.user)
	}
	if c.me {
		out = append(out, jobs.Me()...)
	}
	return out
}

func (c *scancel) matches(j *api.Job, users, nodes []string) bool {
	state, _ := stateOf(c.state)
	return (c.account == "" || j.Account == c.account) && (c.name == "" || j.Name == c.name ||
		slices.ContainsFunc(j.Components, func(p api.JobComponent) bool { return p.Name == c.name })) &&
		(c.partition == "" || j.Partition == c.partition) && (c.state == "" || j.State == state) &&
		(len(users) == 0 || slices.Contains(users, j.User)) && c.qos+c.wckey == "" && (c.reservation == "" || j.Reservation == c.reservation) &&
		(c.nodes == "" || slices.ContainsFunc(nodes, func(n string) bool { return slices.Contains(j.Nodes, n) }))
}

// filters lists the filters as scancel does when no job passed them.
func (c *scancel) filters() string {
	var b strings.Builder
	state := ""
	if s, ok := stateOf(c.state); ok {
		state = string(s)
	}
	for _, f := range [][2]string{{"account", c.account}, {"job_name", c.name}, {"nodelist", c.nodes}, {"partition", c.partition},
		{"qos", c.qos}, {"reservation", c.reservation}, {"state", state}, {"user_name", c.user}, {"wckey", c.wckey}} {
		if f[1] != "" {
			b.WriteString(f[0] + "=" + f[1] + " ")
		}
	}
	return b.String()
}
