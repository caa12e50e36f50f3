package scontrol

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// call is one call of scontrol.
type call struct {
	cmdline.Streams
	ctx      context.Context
	client   *client.Client
	oneLine  bool
	details  bool
	quiet    bool
	verbose  bool
	now      time.Time
	args     []string
	spoken   slurm.Dialect // known to show job alone
	document slurm.Document
}

// Run is scontrol.
func Run(args []string, s cmdline.Streams) int {
	if len(args) == 1 && args[0] == "--help=slurm" {
		for _, l := range append([]cmdline.Lists{Lists()}, Keywords()...) {
			fmt.Fprintf(s.Out, "%s\n\n", l.Name)
			l.Write(s.Out)
		}
		return 0
	}
	c := &call{Streams: s, ctx: context.Background(), client: client.New(), now: jobfield.Now(), args: args}
	words, err := options.Parse(c, args, s)
	if err != nil {
		return cmdline.Exit(err)
	}
	if len(words) == 0 {
		return c.prompt()
	}
	return c.do(words)
}

// errorf is "scontrol: error: text".
func (c *call) errorf(format string, args ...any) {
	if !c.quiet {
		c.Errorf("scontrol", format, args...)
	}
}

// say is a line on stderr without the command's name.
func (c *call) say(format string, args ...any) {
	if !c.quiet {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
}

// prompt reads commands from standard input until exit, quit or its end; !! is the last one
// again. The status is that of the last command that failed, as Slurm's.
func (c *call) prompt() int {
	status := 0
	var last []string
	in := bufio.NewScanner(c.In)
	for {
		fmt.Fprint(c.Out, "scontrol: ")
		if !in.Scan() {
			fmt.Fprintln(c.Out)
			return status
		}
		words := strings.Fields(in.Text())
		switch {
		case len(words) == 0:
			continue
		case words[0] == "!!" && last == nil:
			fmt.Fprintln(c.Err, "no previous command")
			continue
		case words[0] == "!!":
			words = last
		case cmdline.Short(words[0], "exit", 1), cmdline.Short(words[0], "quit", 4):
			return status
		}
		last = words
		if s := c.do(words); s != 0 {
			status = s
		}
	}
}

func (c *call) do(words []string) int {
	for i := range keywords {
		k := &keywords[i]
		if !cmdline.Short(words[0], k.name, k.min) {
			continue
		}
		args := words[1:]
		switch {
		case k.list == cmdline.Refused && !(k.few > 0 && len(args) < k.few):
			c.errorf("%s is refused: %s", k.name, k.text)
			return 1
		case len(args) < k.few && (k.name == "update" || k.name == "create" || k.name == "delete"):
			c.say("too few arguments for %s keyword", k.name)
			return 1
		case len(args) < k.few:
			c.say("too few arguments for keyword:%s", words[0])
			return 1
		case k.most > 0 && len(args) > k.most:
			c.say("too many arguments for keyword:%s", words[0])
			return 1
		}
		return k.run(c, args)
	}
	c.say("invalid keyword: %s", words[0])
	return 1
}

func (c *call) version([]string) int {
	return slurm.PrintVersion("scontrol", c.Streams)
}

func (c *call) help([]string) int {
	fmt.Fprintln(c.Out, "Valid <COMMAND> values are:")
	cmdline.WriteWords(c.Out, 22, "", Keywords()...)
	return 0
}

func tell(l cmdline.Lists, s cmdline.Streams) {
	fmt.Fprint(s.Out, "scontrol [OPTION...] COMMAND [ARGUMENT...]\n  shows and changes jobs and nodes, by the words of Slurm's scontrol\n\n")
	cmdline.WriteWords(s.Out, 22, "--", append([]cmdline.Lists{l}, Keywords()...)...)
	fmt.Fprint(s.Out, "scontrol --help=slurm lists what is kept exactly, partly, and refused\n")
}

// records is what --verbose says before records of one kind.
func (c *call) records(n int) {
	if c.verbose {
		fmt.Fprintf(c.Out, "last_update_time=%s, records=%d\n", slurm.Stamp(c.now, "Unknown"), n)
	}
}

// record writes lines of fields: below each other, or with --oneliner in one line. After
// a job's last field Slurm goes on as if there were another one.
func (c *call) record(lines []string, open bool) {
	sep, end := "\n   ", "\n\n"
	if c.oneLine {
		sep, end = " ", "\n"
	}
	for i := range lines {
		lines[i] = column.Printable(lines[i])
	}
	text := strings.Join(lines, sep)
	if open {
		text += sep
	}
	fmt.Fprint(c.Out, text+end)
}
