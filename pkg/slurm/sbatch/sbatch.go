package sbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/client/submit"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/script"
	"gangd/pkg/slurm"
)

// The files that the output goes to when nothing else was asked for.
const (
	outputJob   = "slurm-%j.out"
	outputArray = "slurm-%A_%a.out"
)

// unreadable is the exit status of options that can't be read: sbatch ends with exit(-1).
const unreadable = cmdline.Status(255)

// Lists is what became of each of sbatch's options.
func Lists() cmdline.Lists { return script.SlurmLists() }

// Run is the command.
func Run(args []string, s cmdline.Streams) int {
	err := run(context.Background(), args, s)
	var exit *program.ExitError
	if errors.As(err, &exit) { // of a job that was waited for
		if exit.Err != nil {
			s.Errorf("sbatch", "%s", exit.Err)
		}
		return exit.Status
	}
	return slurm.ErrorStatus(cmdline.Exit(explain(err, s)))
}

func run(ctx context.Context, args []string, s cmdline.Streams) error {
	flags, rest, err := script.SlurmFlags(args)
	if err != nil {
		return err
	}
	if done, err := inform(flags, s); done || err != nil {
		return err
	}
	name, text, err := readScript(flags, rest, s)
	if err != nil {
		return err
	}
	command := ""
	if len(rest) > 0 {
		command, rest = shown(rest), rest[1:]
	}
	p := &submit.Prepared{Program: "sbatch", Flags: flags, Name: name, Text: text, Args: rest, Out: s.Out, Err: s.Err,
		Adjust: func(r *script.Request) { Shape(r, command) }}
	defer p.Tell()
	req, err := p.Ask()
	if err != nil {
		return err
	}
	if req.Export != "" { // which srun in the job goes by
		const name = "SLURM_EXPORT_ENV="
		req.Spec.Env = append(slices.DeleteFunc(req.Spec.Env, func(kv string) bool { return strings.HasPrefix(kv, name) }), name+req.Export)
	}
	if req.Verbose {
		tell(req, verbosity(flags), s)
	}
	if req.TestOnly {
		return test(ctx, p, req, s)
	}
	return p.Submit(ctx)
}

// inform answers --help, --usage and --version.
func inform(flags []script.Setting, s cmdline.Streams) (done bool, err error) {
	for _, f := range flags {
		switch {
		case f.Option.Long == "help" && f.Value == "slurm":
			script.SlurmLists().Write(s.Out)
		case f.Option.Long == "help" && f.Given:
			s.Errorf("sbatch", "unknown topic %q: write --help or --help=slurm", f.Value)
			return false, unreadable
		case f.Option.Long == "help":
			fmt.Fprint(s.Out, "Usage: sbatch [OPTIONS(0)...] executable [args(0)...]\n")
			var help strings.Builder
			script.WriteHelp(&help)
			fmt.Fprint(s.Out, strings.Replace(help.String(), "Where and when:", "Constraint options:", 1)) // its name there
			fmt.Fprint(s.Out, "\nWhat became of each of Slurm's options: sbatch --help=slurm\nManual: man gangd-slurm\n")
		case f.Option.Long == "usage":
			fmt.Fprint(s.Out, usage)
		case f.Option.Long == "version":
			if slurm.PrintVersion("sbatch", s) != 0 {
				return false, unreadable
			}
		default:
			continue
		}
		return true, nil
	}
	return false, nil
}

// shown is what squeue's %o says of a script: its whole path, and the arguments.
func shown(words []string) string {
	path, _ := submit.Find(words[0])
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return strings.ToValidUTF8(strings.Join(append([]string{path}, words[1:]...), " "), "?")
}

// Shape makes of a request what sbatch would: one run of the script on the first node, and
// its names for the output; a notice is for the tasks of steps.
func Shape(r *script.Request, command string) {
	r.Spec.ScriptName, r.Spec.LastWords = command, true
	if r.By("size") == nil && r.By("role") == nil && r.By("launch") == nil {
		r.Spec.Launch = api.LaunchBatch
	}
	if n := r.Spec.Notice; n != nil && n.Scope == api.ScopeRanks && r.Spec.Launch == api.LaunchBatch {
		n.Scope = api.ScopeSteps
	}
	if r.By("output") != nil {
		return
	}
	r.Spec.Output = outputJob
	if r.Array != nil {
		r.Spec.Output = outputArray
	}
}

// readScript gives the name and text of the script: --wrap, a file, or standard input.
func readScript(flags []script.Setting, rest []string, s cmdline.Streams) (name string, text []byte, err error) {
	for _, f := range flags {
		if f.Option.Long != "wrap" {
			continue
		}
		if len(rest) > 0 {
			return "", nil, errors.New("Script arguments not permitted with --wrap option")
		}
		return "wrap", script.Wrap(f.Value), nil
	}
	if len(rest) == 0 || rest[0] == "-" {
		name, text, err = "stdin", nil, nil
		if text, err = readLimited(s.In); err != nil {
			return "", nil, err
		}
	} else {
		name = rest[0]
		if text, err = readFile(name); err != nil {
			return "", nil, err
		}
	}
	return name, text, check(name, text)
}

func readLimited(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, api.MaxScriptBytes+1))
}

// readFile finds a script as sbatch does: as named, and else a bare name on the PATH.
func readFile(name string) ([]byte, error) {
	path, ok := submit.Find(name)
	if !ok {
		return nil, fmt.Errorf("Unable to open file %s", name)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("Unable to open file %s", name)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("Batch script is empty!")
	}
	return readLimited(f)
}

// check refuses what sbatch refuses, in its words; the rest is [script.Check]'s.
func check(name string, text []byte) error {
	whole := string(text)
	switch {
	case len(text) == 0:
		return errors.New("Batch script is empty!")
	case strings.TrimSpace(whole) == "":
		return errors.New("Batch script contains only whitespace!")
	case !strings.HasPrefix(whole, "#!"):
		return errors.New("This does not look like a batch script.  The first\n" +
			"sbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh")
	case strings.IndexByte(whole, 0) >= 0:
		return errors.New("The SLURM controller does not allow scripts that\nsbatch: error: contain a NULL character '\\0'.")
	case strings.Contains(whole, "\r\n"):
		return errors.New("Batch script contains DOS line breaks (\\r\\n)\nsbatch: error: instead of expected UNIX line breaks (\\n).")
	}
	return script.Check(name, text)
}

// test is --test-only: where it would start, on stderr, as sbatch says it.
func test(ctx context.Context, p *submit.Prepared, req *script.Request, s cmdline.Streams) error {
	reply, err := p.Test(ctx)
	if err != nil {
		why, _, detail := slurm.Refusal(err)
		fmt.Fprintln(s.Err, "allocation failure: "+why)
		beside(s, detail)
		return cmdline.Status(1)
	}
	slurm.WouldStart(ctx, s.Err, "sbatch", reply, &req.Spec)
	return nil
}
