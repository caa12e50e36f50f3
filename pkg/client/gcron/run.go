package gcron

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cron"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// call is one run of the command.
type call struct {
	name               string
	edit, list, remove bool
	json, next         bool
	user               string

	cmdline.Streams
	client *client.Client
	owner  *people.User
}

const usage = "Usage: %[1]s [-u USER] FILE | -\n       %[1]s [-u USER] [-e | -l | -r]\n"

// options are those of both names. Scrontab's have no long names.
func options(long ...string) []cmdline.Option[call] {
	out := []cmdline.Option[call]{
		{Short: 'e', List: cmdline.Exact, Help: "edit the table with $VISUAL or $EDITOR, or vi",
			Set: cmdline.Flag(func(c *call) *bool { return &c.edit })},
		{Short: 'l', List: cmdline.Exact, Help: "print the table", Set: cmdline.Flag(func(c *call) *bool { return &c.list })},
		{Short: 'r', List: cmdline.Exact, Help: "take the table away: what runs ends by itself, and comes no more",
			Set: cmdline.Flag(func(c *call) *bool { return &c.remove })},
		{Short: 'u', Kind: cmdline.Required, Arg: "USER", List: cmdline.Exact, Help: "the table of another user, for admins",
			Set: cmdline.Word(func(c *call) *string { return &c.user })},
	}
	for i, name := range long {
		out[i].Long = name
	}
	return out
}

var scrontabCommand = &cmdline.Command[call]{Name: "scrontab", Usage: fmt.Sprintf(usage, "scrontab"),
	Options: append(options(), cmdline.Option[call]{Short: 'v', List: cmdline.Partial, Help: "nothing more is said",
		Set: cmdline.Accepted[call]},
		slurm.VersionRow[call](), cmdline.HelpRow[call](0), cmdline.UsageRow[call]())}

// gcronOptions are those of scrontab by names of their own, and what it lacks.
var gcronOptions = append(options("edit", "list", "remove", "user"),
	cmdline.Option[call]{Long: "next", List: cmdline.Own, Help: "print each line with its job and when it is due",
		Set: cmdline.Flag(func(c *call) *bool { return &c.next })},
	cmdline.Option[call]{Long: "json", List: cmdline.Own, Help: "the same as JSON", Set: cmdline.Flag(func(c *call) *bool { return &c.json })},
	cmdline.Option[call]{Long: "verbose", Short: 'v', List: cmdline.Own, Help: "nothing more is said", Set: cmdline.Accepted[call]})

// New is the command gcron.
func New() *cobra.Command {
	c := &call{name: "gcron", Streams: cmdline.Streams{In: os.Stdin}}
	cmd := &cobra.Command{
		Use:   "gcron [OPTIONS] [FILE|-]",
		Short: "jobs that come again, by a table of times",
		Example: `  gcron -e                     change the table in an editor
  gcron table.txt              put a file in its place; - is standard input
  gcron --next                 each line with its job, and when it is due`,
		Long: "A line is five fields of time and a command: 0 7 * * 1-5 ./report.sh. Options of a command stand before it on lines " +
			"of their own: #GANG --time=30 --gpus=1.",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c.client, c.Out, c.Err = client.New(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return program.Ended(c.do(cmd.Context(), args))
		},
	}
	program.Table(cmd, gcronOptions, c)
	_ = cmd.RegisterFlagCompletionFunc("user", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return program.Users(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// Scrontab is scrontab.
func Scrontab(args []string, s cmdline.Streams) int {
	c := &call{name: scrontabCommand.Name, Streams: s, client: client.New()}
	rest, err := scrontabCommand.Parse(c, args, s)
	if err == nil {
		err = c.do(context.Background(), rest)
	}
	return cmdline.Exit(scrontabCommand.Print(err, s))
}

func (c *call) do(ctx context.Context, rest []string) (err error) {
	chosen := 0
	for _, b := range []bool{c.edit, c.list || c.next || c.json, c.remove} {
		if b {
			chosen++
		}
	}
	if chosen > 1 || len(rest) > 1 || chosen == 1 && len(rest) > 0 {
		fmt.Fprintf(c.Err, usage, c.name)
		return cmdline.Status(1)
	}
	if c.user == "" {
		c.owner, err = lookup(ctx, strconv.Itoa(os.Getuid()))
	} else if c.owner, err = lookup(ctx, c.user); errors.Is(err, people.ErrUnknown) {
		err = fmt.Errorf("Could not find user %s", c.user) //nolint:staticcheck // Slurm's words
	}
	if err != nil {
		return err
	}
	switch {
	case c.list || c.next || c.json:
		return c.show(ctx)
	case c.remove:
		return c.put(ctx, "")
	case len(rest) == 1 && rest[0] != "-":
		text, err := os.ReadFile(rest[0])
		if err != nil {
			return fmt.Errorf("failed to open %s", rest[0])
		}
		return c.install(ctx, string(text))
	case len(rest) == 0 && (c.edit || c.terminal()):
		return c.editor(ctx)
	}
	text, err := io.ReadAll(io.LimitReader(c.In, cron.MaxBytes+1))
	if err != nil {
		return err
	}
	return c.install(ctx, string(text))
}

func (c *call) show(ctx context.Context) error {
	t, err := c.client.Crontab(ctx, c.user)
	switch {
	case err != nil:
		return c.said(err)
	case c.json:
		out := json.NewEncoder(c.Out)
		out.SetIndent("", "  ")
		return out.Encode(t)
	case t.Text == "":
		fmt.Fprintf(c.Out, "no crontab for %s\n", c.owner.Name)
		return cmdline.Status(1)
	case c.next:
		return c.due(t)
	}
	_, err = io.WriteString(c.Out, t.Text)
	return err
}

// due prints a line for each that is due at some time.
func (c *call) due(t *api.CrontabReply) error {
	for i := range t.Lines {
		l, next := &t.Lines[i], "now"
		if !l.Next.IsZero() {
			next = l.Next.Local().Format("2006-01-02T15:04:05-07:00")
		}
		zone := ""
		if l.Zone != "" {
			zone = " (" + l.Zone + ")"
		}
		if _, err := fmt.Fprintf(c.Out, "line %d  job %d  %s%s  next %s\n", l.Last, l.JobID, l.Schedule, zone, next); err != nil {
			return err
		}
	}
	return nil
}

// said is an error of the controller in the words of the command's family.
func (c *call) said(err error) error {
	if c.name == scrontabCommand.Name {
		return errors.New(slurm.Words(err))
	}
	return err
}

// put replaces the table by one that may be.
func (c *call) put(ctx context.Context, text string) error {
	host, _ := os.Hostname() // for display only
	req, warnings, mistakes := ask(text, c.owner, host, time.Now())
	for _, w := range warnings {
		fmt.Fprintf(c.Err, "%s: warning: %s\n", c.name, w)
	}
	if mistakes != nil {
		return &badLines{mistakes}
	}
	req.User = c.user
	reply, err := c.client.PutCrontab(ctx, req)
	var e *api.Error
	switch {
	case errors.As(err, &e) && e.Reason == api.ReasonCronLine:
		var m cron.Mistake
		if _, err := fmt.Sscanf(e.Subject, "%d-%d", &m.First, &m.Last); err == nil {
			m.Line, m.Text = m.Last, c.said(e).Error()
			return &badLines{[]cron.Mistake{m}}
		}
	case errors.As(err, &e) && e.Code == api.CodeNotFound && text == "" && c.name == scrontabCommand.Name:
		return nil // taken away twice
	}
	if err != nil {
		return c.said(err)
	}
	for _, w := range reply.Warnings {
		fmt.Fprintf(c.Err, "%s: warning: %s\n", c.name, w)
	}
	return nil
}

// badLines are lines for which nothing was changed.
type badLines struct{ lines []cron.Mistake }

func (b *badLines) Error() string {
	var out []string
	for _, m := range b.lines {
		out = append(out, fmt.Sprintf("line %d: %s", m.Line, m.Text))
	}
	return strings.Join(out, "\n")
}

func (c *call) install(ctx context.Context, text string) error {
	err := c.put(ctx, text)
	c.tell(err)
	var bad *badLines
	if errors.As(err, &bad) {
		fmt.Fprintln(c.Out, "There are errors in your crontab.")
		return cmdline.Status(1)
	}
	return err
}

// terminal: somebody types.
func (c *call) terminal() bool {
	f, ok := c.In.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// tell says what is wrong with which line.
func (c *call) tell(err error) {
	var bad *badLines
	if errors.As(err, &bad) {
		for line := range strings.SplitSeq(bad.Error(), "\n") {
			c.Errorf(c.name, "%s", line)
		}
	}
}

// template is what one finds who has no table yet.
const template = `# min hour day-of-month month day-of-week command
# Options of the next line: #SCRON as sbatch takes them, #GANG as gsubmit does.
# CRON_TZ=Europe/Berlin sets the time zone of the lines behind it.
#
# #SCRON --time=10 --mem=1G
# 0 2 * * * $HOME/nightly
`

// editor has the person change the table until it can be taken, or is given up.
func (c *call) editor(ctx context.Context) error {
	if !c.terminal() {
		return errors.New("Standard input is not a TTY") //nolint:staticcheck // Slurm's words
	}
	t, err := c.client.Crontab(ctx, c.user)
	if err != nil {
		return c.said(err)
	}
	before := t.Text
	text := before
	if text == "" {
		text = template
	}
	answers := bufio.NewReader(c.In)
	for {
		was := text
		if text, err = c.edited(text); err != nil {
			return err
		}
		if text == was && (text == before || text == template) {
			fmt.Fprintf(c.Err, "%s: No modification made\n", c.name)
			return nil
		}
		err = c.put(ctx, text)
		c.tell(err)
		var bad *badLines
		if !errors.As(err, &bad) {
			return err
		}
		for _, m := range bad.lines {
			text = cron.Mark(text, "#BAD: ", m.First, m.Last)
		}
		fmt.Fprint(c.Out, "There are errors in your crontab.\nThe failed line(s) is commented out with #BAD:\n")
		for answer := ""; answer != "y"; {
			fmt.Fprint(c.Out, "Do you want to retry the edit? (y/n) ")
			line, err := answers.ReadString('\n')
			if answer = strings.ToLower(strings.TrimSpace(line)); answer == "n" || err != nil {
				return nil
			}
		}
	}
}

// edited is a text after an editor had it.
func (c *call) edited(text string) (string, error) {
	f, err := os.CreateTemp("", c.name+"-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(text); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	editor := "vi"
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v := os.Getenv(name); v != "" {
			editor = v
			break
		}
	}
	cmd := exec.Command("/bin/sh", "-c", editor+` "$1"`, editor, f.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, c.Out, c.Err
	if err := cmd.Run(); err != nil {
		return "", errors.New("editor returned non-zero exit code")
	}
	b, err := os.ReadFile(f.Name())
	return string(b), err
}

// lookup finds who a table is of, by name or number. Whom this host has no name for is who he says himself.
func lookup(ctx context.Context, name string) (*people.User, error) {
	u, err := people.Here.Find(ctx, name)
	if err != nil {
		if name == strconv.Itoa(os.Getuid()) {
			return &people.User{Name: cmp.Or(os.Getenv("USER"), name), UID: uint32(os.Getuid()), Home: cmp.Or(os.Getenv("HOME"), "/")}, nil
		}
		return nil, err
	}
	return &u, nil
}
