package grun

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/client/stepclient"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
	"gangd/pkg/wire/limits"
	"gangd/pkg/wire/people"
	"gangd/pkg/wire/stepwire"
)

// step runs a step in a job and ends as its tasks did.
func (r *run) step(job api.JobRef, epoch int) error {
	o, err := r.options(job, epoch)
	if err != nil {
		return err
	}
	closers, err := r.stdio(o)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}()
	if r.pty {
		undo, err := r.terminal(o)
		if err != nil {
			return err
		}
		defer undo()
	}
	code, err := stepclient.Run(r.ctx, r.client, o)
	if err != nil {
		return r.failed(r.inSlurmsWords(err, job))
	}
	if code != 0 {
		return &program.ExitError{Status: code}
	}
	return nil
}

// inSlurmsWords says what tools look for before what happened.
func (r *run) inSlurmsWords(err error, job api.JobRef) error {
	if r.name == "grun" {
		return err
	}
	switch api.CodeOf(err) {
	case api.CodeUnsatisfiable:
		if api.ReasonOf(err) == api.ReasonAllocation {
			return err
		}
		if api.ReasonOf(err) == api.ReasonWithin {
			return fmt.Errorf("Unable to create step for job %s: %w", job, err)
		}
		word := "More processors requested than permitted"
		if api.ReasonOf(err) == api.ReasonOutside {
			word = "Requested node configuration is not available"
		}
		if api.ReasonOf(err) == api.ReasonPorts {
			word = "Requires more ports than can be reserved"
		}
		return fmt.Errorf("Unable to create step for job %s: %s (%w)", job, word, err)
	case api.CodeBusy:
		word := "Requested nodes are busy"
		if api.ReasonOf(err) == api.ReasonPorts {
			word = "Required ports are in use"
		}
		return fmt.Errorf("Unable to create step for job %s: %s: %w", job, word, err)
	case api.CodeNotFound, api.CodeAlreadyEnded:
		return failure("error: Unable to confirm allocation for job %s: %w", job, err)
	}
	return err
}

func (r *run) options(job api.JobRef, epoch int) (*stepclient.Options, error) {
	if err := r.defaults(); err != nil {
		return nil, err
	}
	dir, err := r.dir()
	if err != nil {
		return nil, err
	}
	if err := r.contain(dir); err != nil {
		return nil, err
	}
	env, err := r.environ()
	if err != nil {
		return nil, err
	}
	if r.box.WorkDir != "" && r.chdir == "" {
		dir = r.box.WorkDir
	}
	programs := []stepwire.Program{{Argv: r.args}}
	if r.multi {
		if programs, err = readPrograms(r.args[0], r.args[1:], r.ask.step.Tasks); err != nil {
			return nil, err
		}
	}
	host, _ := os.Hostname()
	r.ask.step.Command = strings.Join(r.args, " ")
	if len(r.ask.step.Command) > 1000 {
		r.ask.step.Command = strings.ToValidUTF8(r.ask.step.Command[:1000], "")
	}
	r.ask.step.Command = strings.ToValidUTF8(r.ask.step.Command, "?")
	r.ask.step.Client = host + ":" + strconv.Itoa(os.Getpid())
	r.ask.step.Name = cmp.Or(r.ask.name, filepath.Base(r.args[0]))
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	o := &stepclient.Options{Name: r.name, Job: job, Epoch: epoch, Ask: r.ask.step, Quiet: r.quiet, Label: r.label, KillOnBad: r.killOnBad,
		FirstCode: r.firstCode, KillAsJob: !r.killSet,
		Wait: r.wait, QuitOnInt: r.quit, SendInt: r.sendInt, Patience: !r.immediateSet, Immediate: r.immediate, Say: r.err,
		Body: stepwire.Body{Programs: programs, Env: env, Dir: dir, Umask: mask, Truncate: r.openMode != "append", Label: r.label,
			Unbuffered: r.unbuffered, InputTo: stepwire.AllTasks}}
	o.Body.Client.JobName = r.ask.name
	if o.Body.Limits, o.Body.LimitsAsked = r.ask.limits, r.limitsAsked; !r.limitsAsked {
		o.Body.Limits = limits.Own()
	}
	o.Body.Client.Extra, o.Body.Bind, o.MPI = r.extraEnv(mask), r.bind, r.mpi
	o.Body.TaskProlog, o.Body.TaskEpilog, o.Body.PerTask = r.taskProlog, r.taskEpilog, r.perTask()
	o.Body.CardsOf, o.Body.RemapRoot = r.cardsOf, r.remapRoot
	if err := r.components(o, mask); err != nil {
		return nil, err
	}
	o.Began = r.began
	if step, err := strconv.Atoi(os.Getenv("GANG_STEP_ID")); err == nil && job.String() == os.Getenv("GANG_JOB_ID") {
		o.Within = &step
	}
	o.Looks = r.job != "" && os.Getenv("GANG_JOB_ID") != r.job
	return o, nil
}

// began opens the files that have the step's number in their names.
func (r *run) began(s *api.StepReply) error {
	if r.verbose > 0 {
		r.tell(s)
	}
	for _, f := range r.late {
		if err := f.open(s); err != nil {
			return err
		}
	}
	return nil
}

// tell is what --verbose says of a step; srun's lines are read by programs.
func (r *run) tell(s *api.StepReply) {
	if r.name == "grun" {
		fmt.Fprintf(r.err, "%s: step %s of %d tasks on %d nodes\n", r.name, api.StepText(s.JobID, s.StepID), s.Tasks, len(s.Nodes))
		return
	}
	var cpus []int
	var names []string
	for _, n := range s.Allocation.Nodes {
		cpus, names = append(cpus, n.CPUs), append(names, n.Name)
	}
	fmt.Fprintf(r.err, "%s: jobid %d: nodes(%d):`%s', cpu counts: %s\n", r.name, s.JobID, len(names), hostlist.Compress(names),
		api.PerNode(cpus))
	for _, n := range s.Nodes {
		fmt.Fprintf(r.err, "%s: launching StepId=%s on host %s, %d tasks: %s\n", r.name, api.StepText(s.JobID, s.StepID), n.Name, len(n.Tasks),
			bracketed(n.Tasks))
	}
}

// bracketed writes numbers as srun does: 0, [0-3], [0,2].
func bracketed(n []int) string {
	if len(n) == 1 {
		return strconv.Itoa(n[0])
	}
	return "[" + hostlist.Ranges(n) + "]"
}

// defaults settles what the environment of the allocation and the command line say together.
func (r *run) defaults() error {
	s := &r.ask.step
	if r.pty && !r.tasksCmd {
		s.Tasks, s.TasksPerNode = 1, 0
		s.MinNodes, s.MaxNodes = 1, 1
	}
	switch n := r.tasksPerGPU; {
	case n == 0:
	case s.Tasks == 0 && s.GPUs > 0:
		s.Tasks = n * s.GPUs
	case s.Tasks == 0 && s.GPUsPerNode > 0:
		s.TasksPerNode = n * s.GPUsPerNode
	case s.Tasks > 0 && s.GPUs == 0 && s.GPUsPerNode == 0:
		s.GPUs = (s.Tasks + n - 1) / n
	}
	r.fillCPUs(api.FromPerNode(os.Getenv("SLURM_JOB_CPUS_PER_NODE")))
	if s.Tasks > 0 && s.MinNodes > s.Tasks {
		fmt.Fprintf(r.err, "%s: Warning: can't run %d processes on %d nodes, setting nnodes to %d\n", r.name, s.Tasks, s.MinNodes, s.Tasks)
		s.MinNodes, s.MaxNodes = s.Tasks, s.Tasks
	}
	switch n := s.TasksPerNode; {
	case n == 0:
	case s.Tasks > 0 && s.MinNodes > 0 && s.Tasks != n*s.MinNodes:
		if s.Tasks > n {
			fmt.Fprintf(r.err, "%s: Warning: can't honor --ntasks-per-node set to %d which doesn't match the requested tasks %d with the number "+
				"of requested nodes %d. Ignoring --ntasks-per-node.\n",
				r.name, n, s.Tasks, s.MinNodes)
		}
		s.TasksPerNode = 0
	}
	if s.Distribution == api.Arbitrary {
		s.MinNodes = len(once(s.NodeList))
		s.MaxNodes = s.MinNodes
	}
	return r.fitRelative()
}

// fillCPUs makes of a number of CPUs for each task, where nobody says how many tasks, as many as the CPUs hold that the job has on the
// nodes of the step, as srun does.
func (r *run) fillCPUs(cpus []int) {
	s := &r.ask.step
	if !r.cpusSet || !r.slurms || s.Tasks > 0 || s.TasksPerNode > 0 || s.CPUsPerTask < 1 || s.Distribution == api.Arbitrary {
		return
	}
	if n := max(s.MaxNodes, s.MinNodes); n > 0 {
		cpus = cpus[:min(n, len(cpus))]
	}
	tasks := 0
	for _, c := range cpus {
		tasks += c / s.CPUsPerTask
	}
	if tasks > len(cpus) {
		s.Tasks = tasks
	}
}

// fitRelative refuses a step that begins at a node of its allocation behind which there are not as many as it asks for.
func (r *run) fitRelative() error {
	s := &r.ask.step
	all, _ := strconv.Atoi(os.Getenv("SLURM_JOB_NUM_NODES"))
	if s.Relative == 0 || all == 0 || s.Relative+s.MinNodes <= all {
		return nil
	}
	by := "SLURM_JOB_NUM_NODES"
	if r.nodesCmd {
		by = "--nodes"
	}
	return failure("error: --relative and %s option incompatible with count of allocated nodes (%d+%d>%d)", by, s.Relative, s.MinNodes, all)
}

func (r *run) dir() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	// The name that the shell knows it by, where that is the same directory.
	if pwd := os.Getenv("PWD"); filepath.IsAbs(pwd) {
		a, e1 := os.Stat(pwd)
		b, e2 := os.Stat(cwd)
		if e1 == nil && e2 == nil && os.SameFile(a, b) {
			cwd = pwd
		}
	}
	if r.chdir == "" {
		return cwd, nil
	}
	if filepath.IsAbs(r.chdir) {
		return r.chdir, nil
	}
	return filepath.Join(cwd, r.chdir), nil
}

// environ is what the tasks inherit: all, or what --export says.
func (r *run) environ() ([]string, error) {
	if !r.exportSet {
		return append(os.Environ(), r.told...), nil
	}
	e, err := script.ParseExport(r.export)
	if err != nil {
		return nil, program.Usagef("--export: %v", err)
	}
	var out []string
	keep := func(name string) bool {
		return e.All || slices.Contains(e.Names, name) || strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "GANG_")
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); keep(name) {
			out = append(out, kv)
		}
	}
	return slices.Concat(out, r.told, e.Set), nil
}

// extraEnv are variables that options give to tasks.
func (r *run) extraEnv(mask int) []string {
	out := []string{fmt.Sprintf("SLURM_UMASK=%04o", mask)}
	add := func(name, value string) { out = append(out, name+"="+value) }
	if r.cpusSet {
		add("SLURM_CPUS_PER_TASK", strconv.Itoa(r.ask.step.CPUsPerTask))
	}
	if r.ask.step.TasksPerNode > 0 {
		add("SLURM_NTASKS_PER_NODE", strconv.Itoa(r.ask.step.TasksPerNode))
	}
	if r.label {
		add("SLURM_LABELIO", "1")
	}
	if d := r.ask.step.Distribution; d != "" {
		name, size, plane := strings.Cut(d, "=")
		add("SLURM_DISTRIBUTION", name)
		if plane {
			add("SLURM_DIST_PLANESIZE", size)
		}
	}
	if n := r.ask.step.GPUsPerTask; n > 0 {
		add("SLURM_GPUS_PER_TASK", strconv.Itoa(n))
	}
	if m := r.ask.step.MemoryPerNode; m > 0 {
		add("SLURM_MEM_PER_NODE", strconv.FormatInt(m>>20, 10))
	}
	if m := r.ask.step.MemoryPerCPU; m > 0 {
		add("SLURM_MEM_PER_CPU", strconv.FormatInt(m>>20, 10))
	}
	if r.pty {
		add("SLURM_PTY_PORT", "0")
	}
	return append(out, r.extra...)
}

// stdio settles where what tasks write goes and what they read.
func (r *run) stdio(o *stepclient.Options) (closers []io.Closer, err error) {
	if o.Stdin, err = r.stdin(o); err != nil {
		return nil, err
	}
	if o.Output, closers, err = r.outputs(o.Job, &o.Body); err != nil {
		return nil, err
	}
	for i := range o.More {
		m := &run{ask: r.more[i].ask, out: r.out, err: r.err}
		defer func() { r.late = append(r.late, m.late...) }()
		var more []io.Closer
		if o.More[i].Output, more, err = m.outputs(o.Job, &o.More[i].Body); err != nil {
			return nil, fmt.Errorf("component %d: %w", i+1, err)
		}
		closers = append(closers, more...)
	}
	return closers, nil
}

// outputs settles where what the tasks of a component write goes.
func (r *run) outputs(job api.JobRef, body *stepwire.Body) (to stepclient.Output, closers []io.Closer, err error) {
	if to.Stdout, to.OnlyTask, body.Stdout, err = r.outputOf(r.output, r.out, job, body); err != nil {
		return to, nil, err
	}
	if r.errput == "" {
		to.Stderr, to.OnlyErr, body.Stderr = r.err, to.OnlyTask, ""
		switch {
		case body.Stdout != "":
			body.Stderr = "="
		case r.output != "" && to.Stdout != r.out:
			to.Stderr = to.Stdout // as srun: one file for both, unless it is told otherwise
		}
	} else if to.Stderr, to.OnlyErr, body.Stderr, err = r.outputOf(r.errput, r.err, job, body); err != nil {
		return to, nil, err
	}
	for _, w := range []io.Writer{to.Stdout, to.Stderr} {
		if f, ok := w.(io.Closer); ok && w != r.out && w != r.err && w != io.Discard {
			closers = append(closers, f)
		}
	}
	return to, closers, nil
}

func (r *run) stdin(o *stepclient.Options) (*os.File, error) {
	switch v := r.input; {
	case v == "" || v == "all":
	case v == "none":
		o.Body.InputTo = -1
		return nil, nil
	case isNumber(v):
		n, _ := strconv.Atoi(v)
		o.Body.InputTo = int64(n)
	case taskPattern(v), stepPattern(v):
		o.Body.Stdin = inDir(o.Body.Dir, r.nodePattern(v, o.Job))
		return nil, nil
	default:
		f, err := os.Open(r.jobPattern(v, o.Job, -1))
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		return f, nil
	}
	return os.Stdin, nil
}

// outputOf reads a value of --output: who is heard, in which file of this process, or by
// which pattern the nodes open files themselves.
func (r *run) outputOf(v string, std io.Writer, job api.JobRef, body *stepwire.Body) (w io.Writer, only int, pattern string, err error) {
	switch {
	case v == "" || v == "all":
		return std, -1, "", nil
	case v == "none":
		return io.Discard, -1, "", nil
	case isNumber(v):
		n, _ := strconv.Atoi(v)
		return std, n, "", nil
	case taskPattern(v):
		return io.Discard, -1, inDir(body.Dir, r.nodePattern(v, job)), nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if body.Truncate {
		flags |= os.O_TRUNC
	}
	if stepPattern(v) {
		f := &lateFile{flags: flags, path: func(step int) string { return r.jobPattern(v, job, step) }}
		r.late = append(r.late, f)
		return f, -1, "", nil
	}
	// From where srun is called: --chdir is for the tasks, and for the files that nodes open.
	f, err := openOutput(r.jobPattern(v, job, -1), flags)
	if err != nil {
		return nil, -1, "", err
	}
	return f, -1, "", nil
}

func openOutput(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o666)
	if os.IsNotExist(err) && os.MkdirAll(filepath.Dir(path), 0o777) == nil {
		f, err = os.OpenFile(path, flags, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return f, nil
}

// lateFile is opened when the step has its number, before any task writes.
type lateFile struct {
	path  func(step int) string
	flags int
	file  *os.File
}

func (f *lateFile) open(s *api.StepReply) (err error) {
	f.file, err = openOutput(f.path(s.StepID), f.flags)
	return err
}

func (f *lateFile) Write(p []byte) (int, error) { return f.file.Write(p) }

func (f *lateFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

func isNumber(v string) bool {
	_, err := strconv.ParseUint(v, 10, 31)
	return err == nil
}

// conversion looks for %LETTER, a width between them.
func conversion(v, letters string) bool {
	for i := 0; i < len(v); i++ {
		if v[i] != '%' {
			continue
		}
		for i++; i < len(v) && v[i] >= '0' && v[i] <= '9'; i++ {
		}
		if i < len(v) && strings.IndexByte(letters, v[i]) >= 0 {
			return true
		}
	}
	return false
}

func taskPattern(v string) bool { return conversion(v, "tnN") }

// stepPattern: the number of the step is known only when it has begun.
func stepPattern(v string) bool { return conversion(v, "sJ") }

// nodePattern fills in what all tasks share and leaves %s, %t, %n, %N and %% to the nodes.
func (r *run) nodePattern(v string, of api.JobRef) string {
	return fill(v, func(letter byte) (string, bool) {
		if letter == '%' {
			return "%%", true
		}
		text, ok := r.shared(letter, of, -1)
		if letter == 'J' {
			text += ".%s"
		}
		return text, ok
	})
}

// jobPattern fills in all: %j %J %s %A %a %u %x %%.
func (r *run) jobPattern(v string, of api.JobRef, step int) string {
	return fill(v, func(letter byte) (string, bool) { return r.shared(letter, of, step) })
}

// shared is what a letter behind a percent sign stands for in all tasks; step is -1 where it is not known yet.
func (r *run) shared(letter byte, of api.JobRef, step int) (string, bool) {
	job := cmp.Or(os.Getenv("SLURM_JOB_ID"), of.String())
	switch letter {
	case 'j':
		return job, true
	case 'J':
		if step >= 0 {
			return job + "." + strconv.Itoa(step), true
		}
		return job, true
	case 's':
		return strconv.Itoa(step), step >= 0
	case 'A':
		return cmp.Or(os.Getenv("SLURM_ARRAY_JOB_ID"), job), true
	case 'a':
		return cmp.Or(os.Getenv("SLURM_ARRAY_TASK_ID"), "4294967294"), true // Slurm's number for none
	case 'u':
		return people.Me(context.Background()), true
	case 'x':
		return cmp.Or(r.ask.name, os.Getenv("SLURM_JOB_NAME"), filepath.Base(strings.Join(r.args[:min(1, len(r.args))], ""))), true
	case '%':
		return "%", true
	}
	return "", false
}

// fill replaces each percent sign with a letter that has a meaning.
func fill(pattern string, of func(letter byte) (string, bool)) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '%' && i+1 < len(pattern) {
			if text, ok := of(pattern[i+1]); ok {
				b.WriteString(text)
				i++
				continue
			}
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

func inDir(dir, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

func nodeNames(r *api.StepReply) string {
	var names []string
	for i := range r.Nodes {
		names = append(names, r.Nodes[i].Name)
	}
	return hostlist.Compress(names)
}

// terminal makes the person's terminal the one of task 0, until undo.
func (r *run) terminal(o *stepclient.Options) (undo func(), err error) {
	w, isTerminal := stepclient.Window(os.Stdin)
	if w.Rows == 0 || w.Cols == 0 {
		w = stepwire.Window{Rows: 24, Cols: 80}
	}
	o.Body.PTY, o.Body.InputTo, o.Body.Stdin = &w, 0, ""
	o.Stdin, o.Label, o.Idle = os.Stdin, false, r.idle
	o.Body.Term = []string{"TERM=" + cmp.Or(os.Getenv("TERM"), "dumb")}
	if !isTerminal {
		return func() {}, nil
	}
	restore, err := stepclient.Raw(os.Stdin)
	if err != nil {
		return nil, err
	}
	o.Say = crlf{r.err}
	return restore, nil
}

// crlf ends lines as a raw terminal needs them.
type crlf struct{ io.Writer }

func (c crlf) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.Writer, strings.ReplaceAll(string(p), "\n", "\r\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}
