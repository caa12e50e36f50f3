package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/pmi"
	"gangd/pkg/wire/stepwire"
)

// reachFor bounds the way to the client, bodyFor its first word. Both are far above what a
// network takes, and below what anybody waits for.
const (
	reachFor = 30 * time.Second
	bodyFor  = 60 * time.Second
	// doneFor is how long the client may take to close after it was told the end.
	doneFor = 10 * time.Second
)

// launcher is a running step on this node.
type launcher struct {
	start shim.LauncherStart
	shim  *os.File
	conn  *stepwire.Conn
	body  *stepwire.Body
	pmi   *pmi.Server // nil: not asked for
	pmix  *pmixServer // nil: not asked for

	mu       sync.Mutex
	tasks    []*task
	stopping bool
	draining bool
	killer   *time.Timer
	stopAt   time.Time // when its tasks were told to end
	killAt   time.Time // when killer fires
	over     bool
	leftRSS  int64   // of processes that no task has waited for: the largest, bytes
	leftCPU  float64 // and of all of them, seconds

	order    proc.EndOrder // of the tasks, by their places in tasks; of reap's thread once that runs
	sequence []*task       // those whose end was seen, first to last

	children chan struct{} // closed when no child is left
	outputs  sync.WaitGroup
}

// Main runs the launcher of one step and returns its exit status.
func Main() int {
	l := &launcher{shim: os.NewFile(shim.LauncherFD, "shim"), children: make(chan struct{}), order: proc.NewEndOrder()}
	unix.CloseOnExec(shim.LauncherFD) // a task must not speak for its launcher
	deafen()
	if err := proc.Subreaper(); err != nil {
		return l.last(api.StepActual{ExitCode: 1, Error: err.Error()})
	}
	orders := bufio.NewReaderSize(l.shim, 64<<10)
	line, err := orders.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &l.start)
		l.start.WorkDir = api.Unpack(l.start.WorkDir)
	}
	if err != nil {
		return l.last(api.StepActual{ExitCode: 1, Error: fmt.Sprintf("the launcher was not told its step: %v", err)})
	}
	go l.obey(orders)
	err = l.reach()
	if l.start.Refused != "" {
		err = errors.New(l.start.Refused) // the client has heard it, or is gone
	}
	if err != nil {
		return l.last(api.StepActual{ExitCode: 1, Error: err.Error()})
	}
	return l.run()
}

// deafen takes the signals that are meant for the tasks. They are caught, not ignored: what
// is ignored the tasks would inherit.
func deafen() {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT,
		syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGWINCH, syscall.SIGPROF)
	go func() {
		for range ch {
		}
	}()
}

// obey does what the shim says. Its end is the end of whoever answers for this step.
func (l *launcher) obey(r *bufio.Reader) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			l.stop(0)
			return
		}
		var o shim.LauncherOrder
		if json.Unmarshal(line, &o) != nil {
			continue
		}
		switch {
		case o.Draining:
			l.mu.Lock()
			said := l.draining || l.stopping || l.body == nil || l.body.Part != 0
			l.draining = true
			l.mu.Unlock()
			if !said && o.EndLine != "" {
				go func() { _ = l.conn.Send(stepwire.Say, 0, []byte(o.EndLine)) }() // the client may be slow to read
			}
		case o.Stop:
			l.stop(o.Grace)
		case o.Extend > 0:
			l.extend(o.Extend)
		case o.Signal != "":
			l.signal(o.Signal)
		}
	}
}

// reach connects to the client and gets the body.
func (l *launcher) reach() error {
	ctx, cancel := context.WithTimeout(context.Background(), reachFor)
	defer cancel()
	hello := &stepwire.Greeting{Secret: l.start.Secret, Part: l.start.Part, Node: l.start.Node, PMI: true, PMIx: offersPMIx(),
		Hooks: true, Refused: l.start.Refused}
	if in := l.start.InImage; in != nil {
		hello.Image, hello.Digest, hello.Container = in.Name, in.Digest, in.Container
	}
	conn, err := stepwire.Dial(ctx, l.start.Hosts, l.start.Fingerprint, hello)
	if err != nil {
		return err
	}
	l.conn = conn
	if l.start.Refused != "" {
		return conn.Close()
	}
	if l.start.Container == nil { // else the client waits until all nodes have the image
		_ = conn.SetReadDeadline(time.Now().Add(bodyFor))
	}
	f, err := conn.Next()
	if err != nil {
		return fmt.Errorf("the client of the step said nothing: %w", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	l.body = new(stepwire.Body)
	if f.Type != stepwire.Start {
		return fmt.Errorf("the client of the step said %q first", f.Type)
	}
	if err := json.Unmarshal(f.Data, l.body); err != nil {
		return err
	}
	if l.body.Part < 0 || l.body.Part >= len(l.body.Reply.Nodes) {
		return errors.New("the client of the step named a node that it has not")
	}
	return nil
}

func (l *launcher) run() int {
	l.launch()
	go l.listen()
	go l.reap()
	<-l.children
	l.outputs.Wait()
	_ = l.conn.Send(stepwire.Done, 0, nil)
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	// The client closes when it has taken everything in; closing first could lose what is on
	// its way, because unread input of ours would make the kernel reset the connection.
	_ = l.conn.SetReadDeadline(time.Now().Add(doneFor))
	_, _ = io.Copy(io.Discard, l.conn.Conn)
	_ = l.conn.Close()
	return l.last(l.result())
}

// result is the worst of the tasks.
func (l *launcher) result() (a api.StepActual) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tasks {
		if t.ended.Code > a.ExitCode {
			a.ExitCode, a.Signal = t.ended.Code, t.ended.Signal
		}
		a.MaxRSS = max(a.MaxRSS, t.rss)
		a.CPUTime += t.cpu
	}
	a.MaxRSS, a.CPUTime = max(a.MaxRSS, l.leftRSS), a.CPUTime+l.leftCPU
	for _, t := range l.tasks {
		if t.aborted != "" && len(a.Ends) < api.MaxTaskEnds {
			a.Ends = append(a.Ends, api.TaskEnd{Task: t.number, Time: t.abortedAt, ExitCode: t.ended.Code, Signal: t.ended.Signal,
				Aborted: t.aborted})
		}
	}
	for _, t := range l.sequence {
		if t.seen.own && t.ended.Code != 0 && t.aborted == "" && len(a.Ends) < api.MaxTaskEnds {
			a.Ends = append(a.Ends, api.TaskEnd{Task: t.number, Time: t.seen.at, Late: t.seen.late, ExitCode: t.ended.Code, Signal: t.ended.Signal})
		}
	}
	return a
}

// last tells the shim how it ended, which is all that it believes.
func (l *launcher) last(a api.StepActual) int {
	l.say(shim.LauncherWord{StepActual: a})
	if a.Error != "" {
		return 1
	}
	return 0
}

func (l *launcher) say(w shim.LauncherWord) {
	if b, err := json.Marshal(w); err == nil {
		_, _ = l.shim.Write(append(b, '\n'))
	}
}

// listen does what the client says. Its end is the step's end.
func (l *launcher) listen() {
	for {
		f, err := l.conn.Next()
		if err != nil {
			l.stop(l.body.Reply.Allocation.Grace)
			return
		}
		switch f.Type {
		case stepwire.Input, stepwire.EndIn:
			l.input(f)
		case stepwire.Signal:
			l.signal(string(f.Data))
		case stepwire.Stop:
			grace := l.body.Reply.Allocation.Grace
			if len(f.Data) > 0 {
				grace = 0
			}
			l.stop(grace)
		case stepwire.Publish, stepwire.Fence:
			l.fenced(f)
		case stepwire.Size:
			var w stepwire.Window
			if json.Unmarshal(f.Data, &w) == nil {
				l.resize(w)
			}
		}
	}
}

// signal reaches every process of the step, as Slurm's does.
func (l *launcher) signal(name string) {
	sig, ok := proc.Signal(name)
	if !ok {
		return
	}
	killAll(sig)
}

func killAll(sig syscall.Signal) {
	pids, _ := proc.Descendants(os.Getpid(), proc.Stat.Dead)
	for _, pid := range pids {
		_ = unix.Kill(pid, sig)
	}
}

// stop ends the tasks; a shorter grace shortens one that runs.
func (l *launcher) stop(grace time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.stopping
	l.stopping = true
	if l.over || l.draining && grace > 0 && len(l.tasks) > 0 {
		return // of a member that is being stopped the end comes in its time
	}
	if len(l.tasks) == 0 && l.body == nil {
		os.Exit(l.last(api.StepActual{ExitCode: 128 + 15, Signal: 15})) // before anything ran
	}
	if first && grace > 0 && l.body != nil && l.body.Part == 0 {
		text := []byte(shim.EndLine("STEP "+api.StepText(l.start.Job, l.start.ID), l.start.Node, api.CauseCancelled))
		go func() { _ = l.conn.Send(stepwire.Say, 0, text) }()
	}
	if first && grace > 0 {
		l.say(shim.LauncherWord{Stop: true, Grace: grace})
	}
	if l.killer == nil {
		l.stopAt = time.Now()
		l.killAt = l.stopAt.Add(grace)
		l.killer = time.AfterFunc(grace, l.kill)
	} else if grace == 0 {
		l.killAt = time.Now()
		l.killer.Reset(0)
	}
}

// extend is a task's wish for more time before KILL, as far as its job may go.
func (l *launcher) extend(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.stopAt.IsZero() || !now.Before(l.killAt) {
		return
	}
	at := now.Add(by)
	if most := l.stopAt.Add(l.start.GraceMax); at.After(most) {
		at = most
	}
	if at.After(l.killAt) {
		l.killAt = at
		l.killer.Reset(at.Sub(now))
	}
}

// killAgain is how often KILL is repeated: what forks may be missed by one look.
const killAgain = 20 * time.Millisecond

// kill ends all that is left, until there is no child.
func (l *launcher) kill() {
	for {
		killAll(unix.SIGKILL)
		select {
		case <-l.children:
			return
		case <-time.After(killAgain):
		}
	}
}
