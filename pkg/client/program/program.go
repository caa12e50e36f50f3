package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/output"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/nearest"
)

// Main runs a command with the arguments of the process and ends the process.
func Main(cmd *cobra.Command) {
	os.Exit(Run(cmd, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs a command and gives its exit status. The error, if any, is printed to stderr
// as "NAME: text". Output that could not be written is an error, whatever the command makes of it.
func Run(cmd *cobra.Command, args []string, stdout, stderr io.Writer) int {
	Prepare(cmd)
	if !cmd.DisableFlagParsing {
		args = apart(cmd.Flags(), args)
	}
	cmd.SetArgs(append([]string{}, args...)) // nil would mean os.Args to cobra
	out := output.New(stdout)
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(context.Background())
	var told []error
	if text := when.Told(time.Now(), errorText(err)); text != "" {
		fmt.Fprintf(stderr, "%s: %s\n", cmd.Name(), text)
		told = append(told, err)
	}
	return out.Finish(cmd.Name(), ExitCode(err), told, stderr)
}

// UsageError is a mistake on the command line itself: an unknown option, a bad value, a
// missing argument. It ends with exit status 2.
type UsageError struct {
	Err error
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ExitError ends a command with a status of its own and, when Err is nil, without a word:
// all that had to be said was said.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Ended is what became of a command that shares its work with one by Slurm's name: status 1, and its error in that one's manner
// unless it was printed already.
func Ended(err error) error {
	var status cmdline.Status
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status):
		return &ExitError{Status: int(status)}
	}
	return &ExitError{Status: 1, Err: fmt.Errorf("error: %w", err)}
}

// errShown ends the execution of a command that has already printed what was asked for.
var errShown = errors.New("shown")

// ExitCode is the exit status that an error stands for.
func ExitCode(err error) int {
	var exit *ExitError
	var usage *UsageError
	var unreachable *client.UnreachableError
	switch {
	case err == nil, errors.Is(err, errShown):
		return api.ExitOK
	case errors.As(err, &exit):
		return exit.Status
	case errors.As(err, &usage):
		return api.ExitUsage
	case errors.As(err, &unreachable):
		return api.ExitUnreachable
	}
	switch api.CodeOf(err) {
	case api.CodeNotFound:
		return api.ExitNotFound
	case api.CodeUnavailable:
		// A controller that starts or is on hold serves as little as one that is down.
		return api.ExitUnreachable
	}
	return api.ExitRefused
}

// errorText is what a person reads about err; empty when nothing is left to say.
func errorText(err error) string {
	var exit *ExitError
	switch {
	case err == nil, errors.Is(err, errShown):
		return ""
	case errors.As(err, &exit) && exit.Err == nil:
		return ""
	}
	return err.Error()
}

// Prepare gives a command and its subcommands the habits that all of them share.
func Prepare(cmd *cobra.Command) {
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	cmd.DisableAutoGenTag = true
	// A script called "completion" must stay submittable: the scripts for the shells come
	// from "gctl completion".
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetHelpFunc(printHelp)
	cmd.SetFlagErrorFunc(flagError)
	Each(cmd, func(c *cobra.Command) {
		addCommonFlags(c)
		c.Flags().SetNormalizeFunc(wholeName) // the last: what is added under a name cut short would get the whole one's
		validate := c.Args
		c.Args = func(c *cobra.Command, args []string) error {
			if v, _ := c.Flags().GetBool("version"); v {
				fmt.Fprintf(c.OutOrStdout(), "%s %s\n", c.Root().Name(), api.Version)
				return errShown
			}
			if validate == nil {
				return nil
			}
			return asUsage(c, args, validate(c, args))
		}
	})
}

// addCommonFlags adds --help and --version. -h is left to a command that has its own use
// for it, as squeue and sinfo do (no header).
func addCommonFlags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false // the order in which they are defined is the order of use
	c.DisableFlagsInUseLine = true
	if f.Lookup("help") == nil {
		if f.ShorthandLookup("h") == nil {
			f.BoolP("help", "h", false, "show this help")
		} else {
			f.Bool("help", false, "show this help")
		}
	}
	if f.Lookup("version") == nil {
		if f.ShorthandLookup("V") == nil {
			f.BoolP("version", "V", false, "print the version")
		} else {
			f.Bool("version", false, "print the version")
		}
	}
}

// Timeout gives a command that asks the controller its --timeout.
func Timeout(c *cobra.Command) *cobra.Command {
	var limit timeout
	c.Flags().Var(&limit, "timeout", cmdline.TimeoutHelp[:strings.LastIndex(cmdline.TimeoutHelp, " (")])
	f := c.Flags().Lookup("timeout")
	f.DefValue = client.DefaultTimeout.String()
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.Changed {
			c.SetContext(client.WithTimeout(c.Context(), time.Duration(limit)))
		}
		return run(c, args)
	}
	return c
}

// Coloured gives a command whose output has colours its --color.
func Coloured(c *cobra.Command) {
	output.When = output.ColourAuto
	c.Flags().Var(&output.When, "color", "colours: always, never, or auto, on a terminal without NO_COLOR (`WHEN`)")
}

// timeout is the value of --timeout.
type timeout time.Duration

func (t *timeout) Set(text string) error {
	d, err := cmdline.ParseTimeout(text)
	*t = timeout(d)
	return err
}

func (t *timeout) String() string { return time.Duration(*t).String() }

// Type is the value's name in the help.
func (t *timeout) Type() string { return "TIME" }

// Each calls fn for cmd and everything below it.
func Each(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, sub := range cmd.Commands() {
		Each(sub, fn)
	}
}

// asUsage makes a plain error a usage error; one that knows its own status stays.
func asUsage(c *cobra.Command, args []string, err error) error {
	var usage *UsageError
	var exit *ExitError
	if err == nil || errors.Is(err, errShown) || errors.As(err, &usage) || errors.As(err, &exit) {
		return err
	}
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	if len(names) > 0 && len(args) > 0 {
		return Usagef("unknown command %q for %s: %s", args[0], c.CommandPath(), nearest.Hint(args[0], names, "commands are "+
			strings.Join(names, ", ")))
	}
	return Usagef("%w; run %s --help", err, c.CommandPath())
}

// wholeName is the option that a name means which is cut short, as long as no other begins so; pflag asks it for every name.
func wholeName(f *pflag.FlagSet, name string) pflag.NormalizedName {
	if fits := begun(f, name); len(fits) == 1 {
		name = fits[0]
	}
	return pflag.NormalizedName(name)
}

// begun are the options whose names begin so, or the one that has the whole name.
func begun(f *pflag.FlagSet, name string) (fits []string) {
	whole := false
	f.VisitAll(func(o *pflag.Flag) {
		whole = whole || o.Name == name
		if name != "" && strings.HasPrefix(o.Name, name) {
			fits = append(fits, o.Name)
		}
	})
	if whole {
		return []string{name}
	}
	return fits
}

// apart writes -sVALUE as -s=VALUE where pflag reads it in another way: of an option that may have a value, and of words
// that begin with -test., which it takes for those of "go test" and leaves out.
func apart(f *pflag.FlagSet, args []string) []string {
	out := slices.Clone(args)
	for i, word := range out {
		if word == "--" {
			break
		}
		if len(word) < 3 || word[0] != '-' || word[1] == '-' || word[2] == '=' {
			continue
		}
		o := f.ShorthandLookup(word[1:2])
		if o != nil && o.NoOptDefVal != "" && o.Value.Type() != "bool" || strings.HasPrefix(word, "-test.") {
			out[i] = word[:2] + "=" + word[2:]
		}
	}
	return out
}

// flagError words what is wrong with an option.
func flagError(c *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		var usage *UsageError
		if errors.As(bad.Unwrap(), &usage) {
			return usage
		}
		text := bad.Unwrap().Error()
		return Usagef("invalid value %q for --%s: %s; run %s --help", bad.GetValue(), bad.GetFlag().Name, text, c.CommandPath())
	}
	var unknown *pflag.NotExistError
	var short *pflag.ValueRequiredError
	var odd *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return Usagef("unknown option -%s; run %s --help", unknown.GetSpecifiedName(), c.CommandPath())
	case errors.As(err, &unknown):
		return unknownOption(c, unknown.GetSpecifiedName())
	case errors.As(err, &odd):
		return Usagef("unknown option %s; run %s --help", odd.GetSpecifiedFlag(), c.CommandPath())
	case errors.As(err, &short):
		return Usagef("--%s needs a value (%s); run %s --help", short.GetFlag().Name, valueName(short.GetFlag()), c.CommandPath())
	}
	return Usagef("%w; run %s --help", err, c.CommandPath())
}

func unknownOption(c *cobra.Command, name string) error {
	if fits := begun(c.Flags(), name); len(fits) > 1 {
		return Usagef("option '--%s' is ambiguous; possibilities: '--%s'; run %s --help", name, strings.Join(fits, "' '--"), c.CommandPath())
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := nearest.Of(name, known); near != "" {
		return Usagef("unknown option --%s: did you mean --%s? run %s --help", name, near, c.CommandPath())
	}
	return Usagef("unknown option --%s; run %s --help", name, c.CommandPath())
}

// valueName is what an option's value is called in its help: the word in back quotes.
func valueName(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	return name
}

// printHelp shows the help of a command: what it is, three examples, the options, as wide as the terminal.
func printHelp(c *cobra.Command, _ []string) {
	out := new(strings.Builder)
	fmt.Fprintf(out, "%s: %s\n\nExamples:\n%s\n", c.CommandPath(), c.Short, strings.TrimRight(c.Example, "\n"))
	fmt.Fprintf(out, "\nUsage: %s\n", c.UseLine())
	if c.Long != "" {
		fmt.Fprintf(out, "\n%s\n", output.Paragraphs(strings.TrimSpace(c.Long)))
	}
	printSubcommands(out, c)
	fmt.Fprintf(out, "\nOptions:\n%s", c.Flags().FlagUsages())
	fmt.Fprintf(out, "\nManual: man %s\n", c.Root().Name())
	_, _ = io.WriteString(c.OutOrStdout(), output.Page(c.OutOrStdout(), out.String()))
}

func printSubcommands(out io.Writer, c *cobra.Command) {
	first := true
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		if first {
			fmt.Fprintf(out, "\nCommands:\n")
			first = false
		}
		fmt.Fprintf(out, "  %-12s %s\n", sub.Name(), sub.Short)
	}
}
