package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/outpath"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/column"
	"gangd/pkg/wire/limits"
)

const submitExamples = `  gsubmit --size=4 --gpus-per-rank=1 --vram=40G --time=12:00:00 train.sh
  gsubmit --parsable --gpus=1 --wrap='python eval.py'
  gsubmit --array=0-15%4 --signal=USR1@120 --requeue sweep.sh && gqueue`

// submission is one run of gsubmit.
type submission struct {
	out, err io.Writer
	program  string // in messages
	silent   bool   // of how a job that was waited for ended the status alone tells
	req      *script.Request
	spec     *api.Spec
	client   *client.Client
	warnings []string // told behind the line with the id: programs read the first
}

// New is the command gsubmit.
//
// Options are parsed by pkg/core/script, not by pflag: directives, environment and command line
// are one grammar with one table, and what follows the script is the script's.
func New() *cobra.Command {
	return &cobra.Command{
		Use:                "gsubmit [OPTION]... SCRIPT [ARG]...",
		Short:              "submit a script as a gang of ranks",
		Example:            submitExamples,
		DisableFlagParsing: true,
		ValidArgsFunction:  completeSubmit,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := &submission{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), program: "gsubmit"}
			defer s.tell() // of what was refused, too
			return submitError(s.run(cmd.Context(), args))
		},
	}
}

// submitError gives wrong words on the command line their exit status; the same words in
// a script are a refusal.
func submitError(err error) error {
	var e *script.Error
	if errors.As(err, &e) && e.Usage {
		return &program.UsageError{Err: err}
	}
	return err
}

func (s *submission) run(ctx context.Context, args []string) error {
	flags, rest, err := script.Flags(args)
	if err != nil {
		return err
	}
	if done, err := s.inform(flags); done || err != nil {
		return err
	}
	if err := s.lastJobs(ctx, flags); err != nil {
		return err
	}
	// Before the script: of "--time job.sh" no script is left, and what would be said of
	// the empty standard input says nothing about the mistake.
	if err := script.Valid(flags, time.Now()); err != nil {
		return err
	}
	name, text, err := scriptText(flags, rest)
	if err != nil {
		return err
	}
	if err := s.ask(flags, name, text); err != nil {
		return err
	}
	if len(rest) > 1 {
		s.spec.Args = rest[1:]
		s.misplaced(rest[0], rest[1:])
	}
	if err := s.fill(name, text); err != nil {
		return err
	}
	return s.submit(ctx)
}

// misplaced warns of options that stand behind the script, and go to it: sbatch says nothing of them.
func (s *submission) misplaced(file string, args []string) {
	for _, arg := range args {
		word, _, _ := strings.Cut(arg, "=")
		name, long := strings.CutPrefix(word, "--")
		if !s.silent && long && slices.ContainsFunc(script.Options, func(o script.Option) bool { return o.Long == name }) {
			s.warn("%s stands behind the script and goes to it; for the job: gsubmit %s %s", arg, arg, file)
		}
	}
}

// lastJobs puts the numbers of my last jobs into a dependency that was typed with @ or @~1; an array counts as a whole.
func (s *submission) lastJobs(ctx context.Context, flags []script.Setting) error {
	if s.silent { // sbatch has no such word
		return nil
	}
	for i := range flags {
		f := &flags[i]
		if f.Option.Long != "dependency" {
			continue
		}
		for at := strings.IndexByte(f.Value, '@'); at >= 0; at = strings.IndexByte(f.Value, '@') {
			word := f.Value[at:]
			if end := strings.IndexAny(word, ",?:+"); end >= 0 {
				word = word[:end]
			}
			ref, err := api.ParseJobRef(word)
			if err != nil {
				return nil // refused by name with the other values
			}
			d, err := client.New().Job(ctx, ref)
			if err != nil {
				return err
			}
			f.Value = f.Value[:at] + strconv.FormatInt(cmp.Or(d.Job.ArrayJobID, d.Job.JobID), 10) + f.Value[at+len(word):]
		}
	}
	return nil
}

// inform answers --help, --usage and --version, for which nothing else need be right.
func (s *submission) inform(flags []script.Setting) (done bool, err error) {
	for _, f := range flags {
		switch f.Option.Long {
		case "help":
			if f.Value == "slurm" {
				script.SlurmLists().Write(s.out)
				return true, nil
			}
			if f.Given {
				return true, program.Usagef("unknown topic %q: write --help or --help=slurm", f.Value)
			}
			fmt.Fprintf(s.out, "gsubmit: submit a script as a gang of ranks\n\nExamples:\n%s\n\nUsage: %s\n", submitExamples, script.Usage)
			script.WriteHelp(s.out)
			fmt.Fprint(s.out, "\nsbatch's options: gsubmit --help=slurm\nManual: man gsubmit\n")
			return true, nil
		case "usage":
			fmt.Fprintf(s.out, "usage: %s\n", script.Usage)
			return true, nil
		case "version":
			fmt.Fprintf(s.out, "gsubmit %s\n", api.Version)
			return true, nil
		}
	}
	return false, nil
}

// unheard warns of a trap that the notice will not reach.
func unheard(s *api.Spec, text []byte) []script.Warning {
	n := s.Notice
	if n == nil || s.Launch != api.LaunchBatch || n.Scope != api.ScopeRanks || !script.Traps(string(text), n.Signal) {
		return nil
	}
	return []script.Warning{{Text: fmt.Sprintf("the script traps %[1]s, but --signal=%[1]s is for the tasks of its steps; write "+
		"--signal=B:%[1]s for the script, or A:%[1]s for both", n.Signal)}}
}

// ask reads directives and environment and decides between all settings.
func (s *submission) ask(flags []script.Setting, name string, text []byte) error {
	directives, warn, err := script.Directives(name, text)
	if err != nil {
		return err
	}
	env, envWarn, err := script.Environ(os.Environ())
	if err != nil {
		return err
	}
	// The command line first: of several mistakes it is the one just typed.
	settings := slices.Concat(flags, directives, env)
	if err := script.Nodefiles(settings, readText); err != nil {
		return err
	}
	if s.silent { // sbatch
		if settings, err = taskNodes(settings); err != nil {
			return err
		}
		settings = script.Listed(settings)
	}
	req, askWarn, err := script.Build(settings, time.Now())
	if err != nil {
		return err
	}
	s.req, s.spec = req, &req.Spec
	if req.Array != nil && s.spec.Output == "" {
		s.spec.Output = outpath.OfArray(s.spec)
	}
	for _, w := range slices.Concat(warn, envWarn, askWarn, unheard(s.spec, text)) {
		s.warn("%s", w)
	}
	if req.Verbose && !s.silent { // sbatch has a table of its own
		for _, u := range req.Used {
			where := u.Pos.String()
			if where == "" {
				where = "command line"
			}
			fmt.Fprintf(s.err, "%s: %s from %s\n", s.program, u.String(), where)
		}
	}
	return nil
}

// taskNodes reads the file that SLURM_HOSTFILE names, which has a node for each task.
func taskNodes(settings []script.Setting) ([]script.Setting, error) {
	path := os.Getenv("SLURM_HOSTFILE")
	if path == "" {
		return settings, nil
	}
	settings, err := script.Hostfile(settings, path, readText)
	if err == nil {
		return settings, nil
	}
	why := fmt.Sprintf("slurm_allocate_resources error opening file %s, %s", path, cmdline.ErrnoText(err))
	if errors.Is(err, script.ErrFewHosts) {
		why = "Too few NodeNames in Slurm Hostfile"
	}
	return nil, &program.ExitError{Status: 1, Err: errors.New(why + "\nsbatch: error: Failure getting NodeNames from hostfile")}
}

// fill adds what the words do not say: script, directory, environment, host.
func (s *submission) fill(name string, text []byte) error {
	p := s.spec
	p.Script = text
	if p.ScriptName == "" {
		p.ScriptName = name
	}
	p.ScriptName = strings.ToValidUTF8(p.ScriptName[:min(len(p.ScriptName), api.MaxShown)], "?")
	if p.Name == "" {
		p.Name = submittedName(name, s.req.Wrap != "")
	}
	if err := s.workDir(); err != nil {
		return err
	}
	if err := s.environment(); err != nil {
		return err
	}
	p.SubmitHost, _ = os.Hostname() // for display only
	p.Umask = umask()
	if err := s.limits(); err != nil {
		return err
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	p.Pack()
	return s.become()
}

// submittedName is the name of a job that was not given one, as sbatch names it.
func submittedName(name string, wrap bool) string {
	if wrap {
		return "wrap"
	}
	name = strings.ToValidUTF8(name[strings.LastIndexByte(name, '/')+1:], "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
}

// whereItIs makes PWD say the directory of the submission, whence SLURM_SUBMIT_DIR comes: a
// program that starts a child in another directory seldom changes its PWD.
func whereItIs(env []string) []string {
	here, err := os.Getwd() // PWD where that is right, with its symbolic links
	at := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PWD=") })
	if err != nil || at < 0 {
		return env
	}
	env[at] = "PWD=" + here
	return env
}

func (s *submission) environment() error {
	asked := s.req.Export
	if asked == "" {
		asked = "ALL"
	}
	export, err := script.ParseExport(asked)
	if err != nil {
		return err
	}
	environ := os.Environ()
	if f := s.req.ExportFile; f != "" && (export.All || len(export.Names) > 0 || len(export.Set) > 0) {
		if environ, err = s.environFile(f); err != nil {
			return err
		}
		export.All = true
	}
	env, missing := export.Environ(whereItIs(environ))
	for _, m := range missing {
		s.warn("--export: %s is not set here, so the job does not get it", m)
	}
	s.spec.Env = env
	// How its commands find the controller, where a node has no socket for them: whatever --export leaves out.
	const dir = "GANG_DIR="
	if at := os.Getenv("GANG_DIR"); at != "" && !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, dir) }) {
		s.spec.Env = append(s.spec.Env, dir+at)
	}
	return nil
}

// limits are those of this process that the job has: by Slurm's names all that the site passes on; by gsubmit's, those that
// --propagate names, else the node's.
func (s *submission) limits() (err error) {
	by := s.req.By("propagate")
	if by == nil {
		if s.silent {
			s.spec.Limits = limits.Own()
		}
		return nil
	}
	s.spec.LimitsAsked = true
	s.spec.Limits, err = limits.Own().Choose(by.Value)
	return err // the value was read before
}

func (s *submission) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// tell says what there is to warn of, once.
func (s *submission) tell() {
	if s.req == nil || !s.req.Quiet {
		for _, w := range s.warnings {
			fmt.Fprintf(s.err, "%s: warning: %s\n", s.program, w)
		}
	}
	s.warnings = nil
}

// recorded is what the job's record keeps of the warnings.
func (s *submission) recorded() (out []string) {
	for _, w := range s.warnings[:min(len(s.warnings), maxRecorded)] {
		out = append(out, strings.ToValidUTF8(w[:min(len(w), api.MaxShown)], "?"))
	}
	return out
}

const maxRecorded = 64

// umask reads the mask. The kernel can only swap it; no other goroutine makes files here.
func umask() int {
	m := unix.Umask(0o077)
	unix.Umask(m)
	return m
}

// submit queues the job and says so; with --wait and --follow it stays until the end.
func (s *submission) submit(ctx context.Context) error {
	key := s.req.Key
	if key == "" {
		var err error
		if key, err = client.NewKey(); err != nil {
			return err
		}
	}
	ctx = s.timed(ctx)
	s.client = client.New()
	reply, err := s.client.Submit(ctx, &api.SubmitRequest{Key: key, Spec: *s.spec, Array: s.req.Array, TestOnly: s.req.TestOnly,
		Warned: s.recorded()})
	if client.Silent(err) && !s.req.TestOnly {
		return fmt.Errorf("%w; the job may have been queued all the same: repeat the command with --key=%s, which queues it once", err, key)
	}
	if err != nil {
		return err
	}
	for _, w := range reply.Warnings {
		s.warn("%s", w)
	}
	defer s.tell()
	switch {
	case s.req.TestOnly:
		fmt.Fprintln(s.out, column.Lines(strings.TrimRight(when.Told(time.Now(), reply.Why), "\n")))
		return nil
	case s.req.Parsable:
		TellID(s.out, s.err, s.program, reply.JobID, fmt.Sprintf("%d%s\n", reply.JobID, s.where(";")))
	case !s.req.Quiet:
		TellID(s.out, s.err, s.program, reply.JobID, fmt.Sprintf("Submitted batch job %d%s\n", reply.JobID, s.where(" on cluster ")))
	}
	s.tell()
	if s.req.Wait || s.req.Follow {
		return s.attend(ctx, reply.JobID)
	}
	return nil
}

// TellID prints the line of a job that was submitted. Where it can't be written stderr has the id:
// nobody finds a job again whose id is nowhere.
func TellID(out, errs io.Writer, program string, job int64, line string) {
	if _, err := io.WriteString(out, line); err != nil {
		fmt.Fprintf(errs, "%s: job %d is submitted; its id could not be written to standard output\n", program, job)
	}
}

// where names the cluster behind sep, as sbatch does where one was asked for.
func (s *submission) where(sep string) string {
	if s.req.By("clusters") == nil {
		return ""
	}
	return sep + cmdline.Cluster
}

// timed is ctx with the time-out that was asked for.
func (s *submission) timed(ctx context.Context) context.Context {
	if s.req.Timeout == nil {
		return ctx
	}
	return client.WithTimeout(ctx, *s.req.Timeout)
}

// completeSubmit offers option names; everything else is a file name.
func completeSubmit(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return program.CompleteOption(script.Options, args, word)
}

// jobText names a job or an array in a message.
func jobText(id int64, a *api.Array) string {
	if a != nil {
		return "array " + strconv.FormatInt(id, 10)
	}
	return "job " + strconv.FormatInt(id, 10)
}
