package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/client/output"
	"gangd/pkg/client/program"
	"gangd/pkg/wire/people"
)

const (
	// topPace is the shortest time between two drawings of what is told: ten a second are smooth, and little for a slow
	// line. A key is answered at once.
	topPace = 100 * time.Millisecond
	// escapeWait is how long the rest of a key that sends several bytes may take; after it the first was the key Esc.
	escapeWait = 50 * time.Millisecond
	// topLines of output are kept to look back at, and logTail bytes of it are asked for at first, of all ranks together.
	topLines = 5000
	logTail  = 64 << 10
)

// NewGtop is the command gtop.
func NewGtop() *cobra.Command {
	var mine, ended bool
	var filter string
	cmd := &cobra.Command{
		Use: "gtop [OPTIONS]", Short: "show queue, cards, jobs and their output on a terminal, as they change", Args: noArgs,
		Example: `  gtop               the queue; ? shows the keys
  gtop --me          what is mine
  gtop --filter=n3   what runs on n3, by the start`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTop(people.Me(cmd.Context()))
			t.mine, t.ended, t.filter = mine, ended, filter
			out, ok := output.File(cmd.OutOrStdout())
			if s := screenOf(cmd.OutOrStdout()); !ok || !s.terminal {
				return Usagef("gtop needs a terminal; gqueue --watch writes into pipes and files")
			}
			return runTop(cmd.Context(), client.New(), t, os.Stdin, out)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&mine, "me", false, "begin with my jobs alone")
	f.BoolVarP(&ended, "all", "a", false, "begin with ended jobs, too")
	f.StringVar(&filter, "filter", "", "begin with jobs whose id, name, user, partition or nodes have this `TEXT`")
	program.Timeout(cmd)
	return cmd
}

// topProgram is gtop while it runs. What changes its state is done one after the other, in run.
type topProgram struct {
	*top
	c       *client.Client
	do      chan func() // what was told or answered
	pressed chan string // keys
	ctx     context.Context
	stop    context.CancelFunc // ends the program
	// what the text is of, when it goes on: a log
	textStop context.CancelFunc
	job      api.JobRef // that a question is about
	shown    []string   // lines on the terminal
	painted  time.Time
}

func runTop(ctx context.Context, c *client.Client, t *top, in, out *os.File) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ctx, unhook := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer unhook()
	restore, err := raw(in)
	if err != nil {
		return Usagef("gtop reads keys from a terminal: %v", err)
	}
	// The other screen, without a cursor; and back whatever happens.
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	defer func() {
		_, _ = io.WriteString(out, "\x1b[?25h\x1b[?1049l")
		restore()
	}()
	p := &topProgram{top: t, c: c, do: make(chan func(), 64), pressed: make(chan string), ctx: ctx, stop: stop}
	followed := make(chan error, 1)
	go func() { followed <- c.Live(ctx, p) }()
	go p.keys(in)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p.paintAll(out, screenOf(out))
		select {
		case <-ctx.Done():
			return nil
		case err := <-followed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case k := <-p.pressed:
			p.key(k)
		case f := <-p.do:
			f()
			p.drain()
		case <-resized:
			p.shown = nil
		case <-tick.C:
		}
	}
}

// drain does what else has come until a pace after the last drawing; a key ends it.
func (p *topProgram) drain() {
	late := time.After(time.Until(p.painted.Add(topPace)))
	for {
		select {
		case f := <-p.do:
			f()
		case k := <-p.pressed:
			p.key(k)
			return
		case <-late:
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// later has something done by run.
func (p *topProgram) later(f func()) {
	select {
	case p.do <- f:
	case <-p.ctx.Done():
	}
}

// paintAll writes the lines that are different: over a slow line that is what counts.
func (p *topProgram) paintAll(out io.Writer, s *screen) {
	lines := p.draw(s, now())
	var b bytes.Buffer
	if len(p.shown) != len(lines) {
		b.WriteString("\x1b[2J")
		p.shown = make([]string, len(lines))
	}
	for i, l := range lines {
		if !strings.HasSuffix(l, styleEnd) {
			lines[i] = strings.TrimRight(l, " ")
		}
		if l = lines[i]; l != p.shown[i] {
			from := sameUntil(p.shown[i], l)
			fmt.Fprintf(&b, "\x1b[%d;%dH%s\x1b[K", i+1, textWidth(unstyled(l[:from]))+1, l[from:])
		}
	}
	p.shown, p.painted = lines, time.Now()
	_, _ = out.Write(b.Bytes())
}

// sameUntil is how many bytes of a line need not be written again: whole words, and no part of what has a style.
func sameUntil(was, is string) int {
	n := 0
	for n < min(len(was), len(is)) && was[n] == is[n] {
		n++
	}
	n = strings.LastIndexByte(is[:n], ' ') + 1
	if open := strings.LastIndexByte(is[:n], '\x1b'); strings.Count(is[:n], "\x1b")%2 == 1 {
		n = open
	}
	return n
}

// unstyled is a drawn line without its styles.
func unstyled(l string) string {
	var b strings.Builder
	for l != "" {
		text, rest, _ := strings.Cut(l, "\x1b")
		b.WriteString(text)
		_, l, _ = strings.Cut(rest, "m")
	}
	return b.String()
}

// Jobs implements [client.Live].
func (p *topProgram) Jobs(jobs []api.Job, all bool) {
	p.later(func() {
		p.told, p.lost = true, time.Time{}
		if all {
			clear(p.jobs)
		}
		for _, j := range jobs {
			p.jobs[j.JobID] = j
		}
	})
}

// Gone implements [client.Live].
func (p *topProgram) Gone(ids []int64) {
	p.later(func() {
		for _, id := range ids {
			delete(p.jobs, id)
		}
	})
}

// Nodes implements [client.Live].
func (p *topProgram) Nodes(nodes []api.Node, all bool) {
	p.later(func() {
		if all {
			clear(p.nodes)
		}
		for _, n := range nodes {
			p.nodes[n.Name] = n
		}
	})
}

// Use implements [client.Live].
func (p *topProgram) Use(of map[string]api.NodeUse) {
	p.later(func() {
		for name, u := range of {
			if n, known := p.nodes[name]; known {
				n.Cards = slices.Clone(n.Cards)
				u.Apply(&n)
				p.nodes[name] = n
			}
		}
	})
}

// Order implements [client.Live].
func (p *topProgram) Order(o api.QueueOrder) { p.later(func() { p.ordered(o) }) }

// Lost implements [client.Live].
func (p *topProgram) Lost() { p.later(func() { p.lost = now() }) }

// keys reads what is typed until the program ends; the last read ends with the process.
func (p *topProgram) keys(in *os.File) {
	b := make([]byte, 256)
	have := 0
	for {
		n, err := in.Read(b[have:])
		if err != nil || n == 0 {
			p.stop()
			return
		}
		have += n
		keys, rest := splitKeys(string(b[:have]))
		if rest != "" && have < len(b) && arrives(in, escapeWait) {
			continue
		}
		if rest != "" {
			keys = append(keys, rest)
		}
		for _, k := range keys {
			select {
			case p.pressed <- k:
			case <-p.ctx.Done():
				return
			}
		}
		have = 0
	}
}

// arrives reports whether there is something to be read before so long is over.
func arrives(in *os.File, wait time.Duration) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}, int(wait.Milliseconds()))
	return err == nil && n > 0
}

// splitKeys gives the keys of what a terminal sent: escape sequences, and characters. Rest may be the begin of one more: a line
// over which a terminal is reached may deliver it in pieces.
func splitKeys(s string) (keys []string, rest string) {
	for s != "" {
		n := 1
		switch {
		case s == "\x1b" || s == "\x1b[" || s == "\x1bO" || !utf8.FullRuneInString(s):
			return keys, s
		case s[0] == '\x1b' && (s[1] == '[' || s[1] == 'O'):
			for n = 2; n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == ';'); n++ {
			}
			if n == len(s) {
				return keys, s
			}
			n++
		default:
			_, n = utf8.DecodeRuneInString(s)
		}
		keys = append(keys, s[:n])
		s = s[n:]
	}
	return keys, ""
}

// topHelp is behind the key ?.
const topHelp = `q         end
j k g G   down, up, begin, end; arrows, PgDn or space, PgUp, Home and End too
/         filter by id, name, user, partition or node; enter keeps, esc drops it
w         why the job waits, with the figures
l         its output, following
enter     the job with its attempts
c         cancel it, after a question
h         hold it, or release it
e         ended jobs, too
m         mine alone
n         nodes and cards
esc       back
ctrl-l    draw all anew`

func (p *topProgram) key(k string) {
	p.note = ""
	switch {
	case p.ask != "":
		p.ask = ""
		if k == "y" {
			p.act("cancel", p.job)
		}
		return
	case p.typing:
		p.typed(k)
		return
	}
	switch k {
	case "q", "\x03":
		p.stop()
	case "\x0c":
		p.shown = nil
	case "\x1b":
		p.show(topQueue)
	case "n":
		p.show(topCards)
	case "?":
		p.write("keys", strings.Split(topHelp, "\n"), false)
	case "/":
		p.show(topQueue)
		p.typing = true
	case "e":
		p.ended = !p.ended
	case "m":
		p.mine = !p.mine
	case "j", "\x1b[B", "\x1bOB":
		p.move(1)
	case "k", "\x1b[A", "\x1bOA":
		p.move(-1)
	case "\x1b[6~", " ":
		p.move(p.body - 2)
	case "\x1b[5~":
		p.move(2 - p.body)
	case "g", "\x1b[H", "\x1bOH", "\x1b[1~":
		p.move(-1 << 30)
	case "G", "\x1b[F", "\x1bOF", "\x1b[4~":
		p.move(1 << 30)
	default:
		p.jobKey(k)
	}
}

// jobKey is one about the job that is selected.
func (p *topProgram) jobKey(k string) {
	j, ok := p.jobs[p.at]
	if !ok || p.view == topCards {
		return
	}
	ref := jobs.Ref(&j)
	switch k {
	case "w":
		p.fetch("why job "+ref.String()+" waits", func() ([]string, error) {
			w, err := p.c.Explain(p.ctx, ref)
			if err != nil {
				return nil, err
			}
			return append([]string{fmt.Sprintf("job %d is %s (%s)", w.JobID, w.State, w.Reason)}, strings.Split(told(w.Why), "\n")...), nil
		})
	case "\r", "\n":
		p.fetch("job "+ref.String(), func() ([]string, error) {
			d, err := p.c.Job(p.ctx, ref)
			if err != nil {
				return nil, err
			}
			return jobLines(d), nil
		})
	case "l":
		p.log(ref, &j)
	case "c":
		p.job, p.ask = ref, "cancel job "+ref.String()+"?"
	case "h":
		verb := "hold"
		if j.Held != "" {
			verb = "release"
		}
		p.act(verb, ref)
	}
}

// jobLines is a job for people.
func jobLines(d *api.JobDetail) []string {
	j := &d.Job
	out := []string{
		fmt.Sprintf("%s  %s  user %s  partition %s", j.Name, j.State, j.User, j.Partition),
		fmt.Sprintf("%s, %s each, submitted %s", count(j.Size, "rank", "ranks"), count(j.GPUsPerRank, "card", "cards"),
			j.SubmitTime.Local().Format(time.DateTime)),
		"command " + j.Command, "in " + j.WorkDir,
	}
	if j.Verdict != "" {
		out = append(out, j.Verdict)
	}
	if j.Why != "" {
		out = append(out, strings.Split(told(j.Why), "\n")...)
	}
	for i := range d.Attempts {
		a := &d.Attempts[i]
		how := "runs"
		if a.Cause != "" {
			how = "ended " + a.EndTime.Local().Format(time.TimeOnly) + ": " + string(a.Cause)
		}
		out = append(out, fmt.Sprintf("attempt %d  started %s  %s  on %s", a.Attempt, a.StartTime.Local().Format(time.DateTime), how,
			strings.Join(a.Nodes, ",")))
	}
	for i := range j.Ranks {
		r := &j.Ranks[i]
		out = append(out, strings.TrimRight(fmt.Sprintf("rank %d  %s  %s  %s", r.Rank, r.State, r.Node, r.Status), " "))
	}
	return out
}

func (p *topProgram) show(v topView) {
	if p.textStop != nil {
		p.textStop()
		p.textStop = nil
	}
	p.view, p.first = v, 0
}

// write shows a text.
func (p *topProgram) write(title string, lines []string, tail bool) {
	p.show(topText)
	p.title, p.text, p.unended, p.tail = title, lines, map[int]string{}, tail
}

// fetch shows what a call answers, once it does.
func (p *topProgram) fetch(title string, call func() ([]string, error)) {
	p.write(title, []string{"asking"}, false)
	go func() {
		lines, err := call()
		p.later(func() {
			if p.view != topText || p.title != title {
				return // somebody went on
			}
			if p.text = lines; err != nil {
				p.text = []string{err.Error()}
			}
		})
	}()
}

// log shows what the ranks write, each line behind its rank where there are several.
func (p *topProgram) log(ref api.JobRef, j *api.Job) {
	title := "output of job " + ref.String()
	p.write(title, nil, true)
	ctx, stop := context.WithCancel(p.ctx)
	p.textStop = stop
	w := &topLog{p: p, ctx: ctx, rest: map[int]string{}}
	q := api.LogQuery{Ref: ref, Rank: -1, Tail: max(logTail/int64(max(j.Size, 1)), 2<<10)}
	go func() {
		var err error
		if j.Size <= 1 || j.Launch == api.LaunchBatch {
			err = p.c.FollowLog(ctx, q, w, true, func() {})
		} else {
			w.width = len(strconv.Itoa(j.Size - 1))
			err = p.c.FollowLogs(ctx, q, "", false, func() {}, w.add)
		}
		if err != nil && ctx.Err() == nil {
			_, _ = w.Write([]byte("\n(" + err.Error() + ")\n"))
		}
	}()
}

// topLog takes output in lines. The last of a rank is shown below the others before it has an end, as that of a program that draws
// its progress.
type topLog struct {
	p     *topProgram
	ctx   context.Context
	width int            // of a rank before its lines; 0: there is one, or one file for all
	rest  map[int]string // of each rank, a line that has no end
}

func (l *topLog) Write(b []byte) (int, error) { return len(b), l.add(&api.LogPiece{Data: b}) }

func (l *topLog) add(x *api.LogPiece) error {
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	lead := ""
	if l.width > 0 {
		lead = fmt.Sprintf("%*d: ", l.width, x.Rank)
	}
	lines := strings.Split(l.rest[x.Rank]+string(x.Data), "\n")
	last := len(lines) - 1
	rest := lastDrawn(lines[last])
	l.rest[x.Rank] = rest
	for i := range lines {
		lines[i] = lead + logLine(lines[i])
	}
	unended := lines[last]
	lines = lines[:last]
	if x.Error != "" {
		lines = append(lines, lead+"("+x.Error+")")
	}
	l.p.later(func() {
		if l.ctx.Err() != nil {
			return
		}
		l.p.text = append(l.p.text, lines...)
		if over := len(l.p.text) - topLines; over > 0 {
			l.p.text = slices.Delete(l.p.text, 0, over)
		}
		delete(l.p.unended, x.Rank)
		if rest != "" {
			l.p.unended[x.Rank] = unended
		}
	})
	return nil
}

// logLine is what a terminal would be left with of a line: behind the last carriage return, with tabs as blanks,
// without colours.
func logLine(l string) string {
	l = csi.ReplaceAllString(strings.TrimRight(lastDrawn(l), "\r"), "")
	for at := strings.IndexByte(l, '\t'); at >= 0; at = strings.IndexByte(l, '\t') {
		l = l[:at] + strings.Repeat(" ", 8-at%8) + l[at+1:]
	}
	return l
}

// lastDrawn is what a line was drawn over with last, and no more of it than anybody looks at.
func lastDrawn(l string) string {
	l = l[strings.LastIndexByte(strings.TrimRight(l, "\r"), '\r')+1:]
	return l[max(0, len(l)-logTail):]
}

// csi is a sequence by which programs set colours or move the cursor.
var csi = regexp.MustCompile(`\x1b\[[0-9;?]*[@-~]`)

func (p *topProgram) act(verb string, ref api.JobRef) {
	go func() {
		var reply *api.CancelReply
		var err error
		q := api.JobQuery{Refs: []api.JobRef{ref}}
		if verb == "cancel" {
			reply, err = p.c.Cancel(p.ctx, &api.CancelRequest{JobQuery: q})
		} else {
			reply, err = p.c.Act(p.ctx, verb, &api.ActionRequest{JobQuery: q})
		}
		note := verb + " job " + ref.String() + ": done"
		if err != nil {
			note = err.Error()
		} else if i := slices.IndexFunc(reply.Results, func(r api.CancelResult) bool { return r.Error != nil }); i >= 0 {
			note = reply.Results[i].Error.Error()
		}
		p.later(func() { p.note = note })
	}()
}

func (p *topProgram) typed(k string) {
	switch {
	case k == "\r" || k == "\n":
		p.typing = false
	case k == "\x1b":
		p.typing, p.filter = false, ""
	case k == "\x7f" || k == "\b":
		_, n := utf8.DecodeLastRuneInString(p.filter)
		p.filter = p.filter[:len(p.filter)-n]
	case k[0] >= ' ' && len(p.filter) < 60:
		p.filter += k
	}
}

func (p *topProgram) move(by int) {
	if p.view != topQueue {
		p.tail = by == 1<<30
		p.first = max(0, min(p.first+by, 1<<20))
		return
	}
	rows := p.rows()
	if len(rows) == 0 {
		return
	}
	i := slices.IndexFunc(rows, func(j api.Job) bool { return j.JobID == p.at })
	p.at = rows[max(0, min(len(rows)-1, i+by))].JobID
}

// raw has a terminal give keys one by one and print none.
func raw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	now.Iflag &^= unix.IXON | unix.ICRNL
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }, nil
}
