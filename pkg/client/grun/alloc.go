package grun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/client/statusline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/column"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/hold"
)

// allocation is a job that holds nodes for this process.
type allocation struct {
	r      *run
	id     int64
	holder *hold.Client
	job    *api.Job // once it runs
}

func (a *allocation) ref() api.JobRef { return api.JobRef{ID: a.id, Index: -1} }

// outside runs a step in a job of its own.
func (r *run) outside() error {
	a, err := r.acquire(filepath.Base(r.args[0]))
	if err != nil {
		return err
	}
	if len(r.more) == 0 {
		_, cpus := onNodes(a.job)
		r.fillCPUs(cpus)
	}
	for i, c := range r.all() {
		s := &c.step
		if c.oneTask() {
			s.Tasks = 1
		}
		if s.Exclude = nil; s.Distribution != api.Arbitrary {
			s.NodeList = nil // the allocation is of these nodes alone
		}
		if s.Exact = false; len(r.more) > 0 {
			s.Group = &i
		}
	}
	r.jobsBox, r.box = r.box.Image != "", api.Container{WorkDir: r.box.WorkDir} // the job runs in it
	r.told = a.heterogeneous()
	err = r.step(a.ref(), 0)
	code := program.ExitCode(err)
	a.giveBack(code)
	return err
}

// allocate makes an allocation and runs a command, or a shell, beside it.
func (r *run) allocate() error {
	if r.noShell {
		id, err := r.submit(nil, "no-shell")
		if err != nil {
			return err
		}
		if err := r.awaitStart(id); err != nil {
			return err
		}
		r.note("Granted job allocation %d", id)
		return nil
	}
	a, err := r.acquire("interactive")
	if err != nil {
		return err
	}
	r.note("Granted job allocation %d", a.id)
	code, revoked, err := a.command(r.args)
	if !revoked {
		r.note("Relinquishing job allocation %d", a.id)
		a.giveBack(code)
	}
	if err != nil {
		return err
	}
	if code != 0 {
		return &program.ExitError{Status: code}
	}
	return nil
}

func (r *run) note(format string, args ...any) {
	if r.quiet == 0 {
		fmt.Fprintf(r.err, r.name+": "+format+"\n", args...)
	}
}

// acquire submits a job that holds what was asked for and waits until it does.
func (r *run) acquire(name string) (*allocation, error) {
	holder, err := hold.Listen()
	if err != nil {
		return nil, err
	}
	id, err := r.submit(holder, name)
	if err != nil {
		holder.Close()
		return nil, err
	}
	a := &allocation{r: r, id: id, holder: holder}
	if err := a.await(); err != nil {
		holder.Close()
		return nil, err
	}
	return a, nil
}

// oneTask: no number of tasks follows from what was asked for. Cards in all may turn out to be of
// several nodes, which have a task each, as those of a list have.
func (a *ask) oneTask() bool {
	s := &a.step
	return s.Tasks == 0 && s.MinNodes == 0 && len(s.NodeList) < 2 && s.TasksPerNode == 0 && s.GPUs < 2 && a.tasksPerGPU == 0
}

// holdScript is the job of an allocation: nothing but to be there. The node says where its gstep is, which is in nobody's PATH.
const holdScript = "#!/bin/sh\n# Holds an allocation for grun or salloc, and ends with it.\nexec \"${" + rankenv.ProgramsName + ":+$" +
	rankenv.ProgramsName + "/}gstep\" hold\n"

func (r *run) request(h *hold.Client, name string) (*api.SubmitRequest, error) {
	flags, _, err := script.Flags(r.words())
	if err != nil {
		return nil, r.misworded(err)
	}
	req, warn, err := script.Build(script.Listed(flags), time.Now())
	if err != nil {
		return nil, r.misworded(err)
	}
	for _, w := range warn {
		fmt.Fprintf(r.err, "%s: warning: %s\n", r.name, w)
	}
	s := &req.Spec
	s.Script, s.ScriptName, s.LastWords, s.Allocation = []byte(holdScript), name, r.name != "grun", true
	if s.Name == "" {
		s.Name = name
	}
	if s.WorkDir, err = r.dir(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(s.WorkDir); err != nil && r.name == "srun" && r.chdir != "" {
		s.WorkDir = os.TempDir() // whether it is on the nodes the tasks find out, and where it isn't they run in /tmp
	}
	s.SubmitHost, _ = os.Hostname()
	if dir := os.Getenv("GANG_DIR"); dir != "" {
		s.Env = append(s.Env, "GANG_DIR="+dir)
	}
	if h != nil {
		s.Env = append(s.Env, h.Environ()...)
	}
	s.Pack()
	key, err := client.NewKey()
	return &api.SubmitRequest{Key: key, Spec: *s}, err
}

func (r *run) submit(h *hold.Client, name string) (int64, error) {
	req, err := r.request(h, name)
	if err != nil {
		return 0, err
	}
	if req.Spec.Hold && r.immediateSet && r.slurms {
		return 0, failure("error: Unable to allocate resources: Job dependency problem")
	}
	reply, err := r.client.Submit(r.ctx, req)
	if err != nil {
		return 0, r.failed(r.unallocated(err))
	}
	if req.Spec.Hold && r.slurms {
		r.note("Job is in held state, pending scheduler release")
	}
	return reply.JobID, nil
}

// test says where the job of a step would start, and makes none.
func (r *run) test() error {
	req, err := r.request(nil, filepath.Base(r.args[0]))
	if err != nil {
		return err
	}
	req.TestOnly = true
	reply, err := r.client.Submit(r.ctx, req)
	switch {
	case err == nil:
		slurm.WouldStart(r.ctx, r.err, r.name, reply, &req.Spec)
		return nil
	case r.name == "grun" || client.Silent(err):
		return r.failed(r.unallocated(err))
	}
	why, _, detail := slurm.Refusal(err)
	fmt.Fprintf(r.err, "%s: allocation failure: %s\n", r.name, why)
	if detail != "" {
		fmt.Fprintf(r.err, "%s: gangd: %s\n", r.name, detail)
	}
	return &program.ExitError{Status: 1}
}

// unallocated words a refusal of the job around: srun and salloc have Slurm's lines, and
// gangd's sentence with the figures below them.
func (r *run) unallocated(err error) error {
	var u *client.UnreachableError
	if errors.As(err, &u) {
		return err
	}
	if r.name == "grun" {
		return err
	}
	why, before, detail := slurm.Refusal(err)
	if before != "" {
		fmt.Fprintf(r.err, "%s: error: %s\n", r.name, before)
	}
	return r.refused(why, detail)
}

// refused is Slurm's line about a job that is not taken, with gangd's sentence below.
func (r *run) refused(why, detail string) error {
	what := "Unable to allocate resources"
	if r.name == "salloc" {
		what = "Job submit/allocate failed"
	}
	fmt.Fprintf(r.err, "%s: error: %s: %s\n", r.name, what, why)
	if detail != "" {
		fmt.Fprintf(r.err, "%s: gangd: %s\n", r.name, detail)
	}
	return &program.ExitError{Status: 1}
}

// misworded is a mistake in the words of a submission, in those of the command that was called.
func (r *run) misworded(err error) error {
	var e *script.Error
	switch {
	case !errors.As(err, &e):
		return err
	case r.name != "grun" && e.Bad != nil && e.Bad.Option.Long == "gres":
		return &program.ExitError{Status: 1, Err: fmt.Errorf("error: %s\n%s: gangd: %w", slurm.BadGres, r.name, err)}
	case r.name == "grun" || e.Clash == script.NoClash:
		return &program.UsageError{Err: err}
	}
	if line, _ := slurm.Clash(e); line != "" {
		fmt.Fprintf(r.err, "%s: error: %s\n%s: gangd: %s\n", r.name, line, r.name, e)
		return &program.ExitError{Status: 1}
	}
	return r.refused(slurm.NotSatisfied, e.Error())
}

// await waits until the job holds its nodes. A signal meanwhile ends the job.
func (a *allocation) await() error {
	r := a.r
	ctx, stop := signal.NotifyContext(r.ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ended := make(chan *api.JobDetail, 1)
	go func() {
		if d, err := r.client.Wait(ctx, a.ref()); err == nil {
			ended <- d
		}
	}()
	told := time.NewTimer(queuedAfter)
	defer told.Stop()
	var late <-chan time.Time
	if r.immediateSet {
		t := time.NewTimer(r.immediate)
		defer t.Stop()
		late = t.C
		if r.immediate <= atOnce { // nobody is told that it waits
			told.Stop()
		}
	}
	said := false
	hide := func() {}
	defer func() { hide() }()
	for {
		select {
		case <-a.holder.Connected():
			d, err := r.client.Job(ctx, a.ref())
			if err != nil {
				return err
			}
			a.job = &d.Job
			go a.messages()
			if r.name == "salloc" && len(r.more) > 0 && !said { // which Slurm plans apart from others
				r.note("Pending job allocation %d", a.id)
				r.note("job %d queued and waiting for resources", a.id)
				said = true
			}
			if said {
				hide()
				r.note("job %d has been allocated resources", a.id)
			}
			return nil
		case d := <-ended:
			hide()
			return r.failed(r.revoked(a.id, endOf(&d.Job)))
		case <-told.C:
			said = true
			if r.name == "salloc" {
				r.note("Pending job allocation %d", a.id)
			}
			r.note("job %d queued and waiting for resources", a.id)
			if r.quiet == 0 && !r.ask.noProgress {
				hide = statusline.Open(r.err).Follow(ctx, r.client, a.id)
			}
		case <-late:
			hide()
			a.cancel()
			return r.tooLate(a.id)
		case <-ctx.Done():
			a.cancel()
			return &program.ExitError{Status: 1, Err: r.revoked(a.id, "")}
		}
	}
}

// messages says what people tell the job (scontrol notify), as long as it holds. Who may have no
// connection for it goes without.
func (a *allocation) messages() {
	ctx, stop := context.WithCancel(a.r.ctx)
	defer stop()
	go func() {
		select {
		case <-a.holder.Lost():
			stop()
		case <-ctx.Done():
		}
	}()
	_ = a.r.client.FollowEvents(ctx, a.ref(), -1, func(ev api.Event) error {
		if ev.Type == api.EventMessage {
			fmt.Fprintf(a.r.err, "%s: %s\n", a.r.name, column.Printable(ev.Text))
		}
		return nil
	})
}

// queuedAfter is how long a start takes on an idle cluster, and then some.
const queuedAfter = 500 * time.Millisecond

func endOf(j *api.Job) string {
	return cmp.Or(j.Verdict, string(j.State))
}

// revoked says that an allocation has ended, and why where that is known.
func (r *run) revoked(id int64, why string) error {
	switch {
	case r.name == "grun" && why == "":
		return fmt.Errorf("job %d was cancelled", id)
	case r.name == "grun":
		return fmt.Errorf("job %d has ended: %s", id, why)
	case why == "":
		return fmt.Errorf("Job allocation %d has been revoked.", id)
	}
	return fmt.Errorf("Job allocation %d has been revoked: %s", id, why)
}

// atOnce is --immediate without a time.
const atOnce = time.Second

// tooLate says that a job did not start within --immediate.
func (r *run) tooLate(id int64) error {
	const busy = "Unable to allocate resources: Requested nodes are busy"
	switch {
	case r.name == "grun":
		return immediately(fmt.Errorf("job %d had no room within %s and is cancelled", id, when.Words(r.immediate)))
	case r.name == "srun":
		return immediately(errors.New("error: " + busy))
	case r.immediate <= atOnce:
		r.note("Job allocation %d has been revoked.", id)
		return immediately(errors.New("error: " + busy))
	}
	r.note("error: Unable to allocate resources: Connection timed out")
	return immediately(r.revoked(id, ""))
}

// immediateError ends srun or salloc with the status of SLURM_EXIT_IMMEDIATE.
type immediateError struct{ error }

func immediately(err error) error {
	status, bad := strconv.Atoi(os.Getenv("SLURM_EXIT_IMMEDIATE"))
	if bad != nil {
		return &program.ExitError{Status: 1, Err: err}
	}
	return &program.ExitError{Status: status, Err: &immediateError{err}}
}

func (r *run) awaitStart(id int64) error {
	ref := api.JobRef{ID: id, Index: -1}
	for {
		d, err := r.client.Job(r.ctx, ref)
		switch {
		case err != nil:
			return err
		case d.Job.State == api.JobRunning:
			return nil
		case d.Job.State.Ended():
			return r.failed(r.revoked(id, endOf(&d.Job)))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (a *allocation) cancel() {
	ctx, stop := context.WithTimeout(context.WithoutCancel(a.r.ctx), 10*time.Second)
	defer stop()
	_, _ = a.r.client.Cancel(ctx, &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{a.ref()}}, Now: true})
}

// giveBack ends the job with a code. Who can't be told is ended by the loss of the connection.
func (a *allocation) giveBack(code int) { a.holder.Release(code) }

// command runs beside an allocation, with what it has to know of it in its environment. When the allocation
// is revoked it is sent --kill-command's signal, if there is one, and goes on until it ends by itself.
func (a *allocation) command(args []string) (code int, revoked bool, err error) {
	if len(args) == 0 {
		args = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), a.environ()...)
	// Keys of the terminal go to the command; what is sent to this process alone is passed on.
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(ch)
	if err := c.Start(); err != nil {
		return 1, false, fmt.Errorf("error: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	lost := a.holder.Lost()
	for {
		select {
		case err := <-done:
			var exit *exec.ExitError
			switch {
			case err == nil:
				return 0, revoked, nil
			case !errors.As(err, &exit):
				return 1, revoked, err
			}
			ws, _ := exit.Sys().(syscall.WaitStatus)
			if ws.Signaled() {
				return endedBy(ws.Signal()), revoked, nil
			}
			return exit.ExitCode(), revoked, nil
		case sig := <-ch:
			if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				_ = c.Process.Signal(sig)
			}
		case <-lost:
			lost, revoked = nil, true
			a.r.note("Job allocation %d has been revoked.", a.id)
			if a.r.killCommand != 0 {
				_ = c.Process.Signal(a.r.killCommand)
			}
		}
	}
}

// endedBy is the status of salloc whose command was ended by a signal: by one that a person sends it is a usual end.
func endedBy(s syscall.Signal) int {
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL:
		return 0
	}
	return 1
}

// environ is what salloc tells its command: of what was asked for what a script would be told.
func (a *allocation) environ() []string {
	j := a.job
	id := strconv.FormatInt(a.id, 10)
	if told := a.heterogeneous(); told != nil { // of nodes it is told by component alone
		return append(append(told, tasksOfAll(told, len(j.Components))...), "SLURM_JOB_ID="+id, "SLURM_JOBID="+id, "SLURM_SUBMIT_DIR="+j.WorkDir,
			"SLURM_SUBMIT_HOST="+j.SubmitHost, "SLURM_CLUSTER_NAME="+rankenv.ClusterName, "GANG_JOB_ID="+id, "GANG_EPOCH="+strconv.Itoa(j.Epoch))
	}
	tasks, cpus := onNodes(j)
	list, nodes := hostlist.Compress(j.Nodes), strconv.Itoa(len(j.Nodes))
	out := []string{"SLURM_JOB_ID=" + id, "SLURM_JOBID=" + id, "SLURM_JOB_NAME=" + j.Name, "SLURM_JOB_NODELIST=" + list, "SLURM_NODELIST=" +
		list,
		"SLURM_NNODES=" + nodes, "SLURM_JOB_NUM_NODES=" + nodes, "SLURM_JOB_PARTITION=" + j.Partition,
		"SLURM_TASKS_PER_NODE=" + api.PerNode(rankenv.TasksOn(j.Asked, j.Size, tasks, cpus)),
		"SLURM_JOB_CPUS_PER_NODE=" + api.PerNode(cpus), "SLURM_NODE_ALIASES=(null)", "SLURM_SUBMIT_DIR=" + j.WorkDir, "SLURM_SUBMIT_HOST=" +
			j.SubmitHost,
		"SLURM_CLUSTER_NAME=" + rankenv.ClusterName, "GANG_JOB_ID=" + id, "GANG_EPOCH=" + strconv.Itoa(j.Epoch)}
	if j.Account != "" {
		out = append(out, "SLURM_JOB_ACCOUNT="+j.Account)
	}
	if j.Reservation != "" {
		out = append(out, "SLURM_JOB_RESERVATION="+j.Reservation)
	}
	out = append(out, api.PoolVariables(j.Pools)...)
	if j.Asked != nil {
		out = append(out, j.Asked.Told...)
	}
	return out
}

// onNodes is how many tasks and CPUs a job has on each of its nodes.
func onNodes(j *api.Job) (tasks, cpus []int) {
	per := map[string]int{}
	for _, r := range j.Ranks {
		per[r.Node]++
	}
	for i, n := range j.Nodes {
		tasks, cpus = append(tasks, per[n]), append(cpus, per[n]*max(1, j.CPUsPerRank))
		if i < len(j.NodeCPUs) {
			cpus[i] = max(cpus[i], j.NodeCPUs[i])
		}
	}
	return tasks, cpus
}

// tasksOfAll is what the command of salloc is told of the tasks of all components, where each was said to have so many.
func tasksOfAll(told []string, components int) []string {
	sum, said := 0, 0
	for _, kv := range told {
		if rest, ok := strings.CutPrefix(kv, "SLURM_NTASKS_HET_GROUP_"); ok {
			_, value, _ := strings.Cut(rest, "=")
			if n, err := strconv.Atoi(value); err == nil {
				sum, said = sum+n, said+1
			}
		}
	}
	if said < components {
		return nil
	}
	return []string{"SLURM_NTASKS=" + strconv.Itoa(sum), "SLURM_NPROCS=" + strconv.Itoa(sum)}
}
