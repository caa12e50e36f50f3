package stepclient

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/wire/stepwire"
)

// Controller is what of the controller's calls a step needs.
type Controller interface {
	BeginStep(ctx context.Context, job api.JobRef, r *api.StepRequest) (*api.StepReply, error)
	AttachStep(ctx context.Context, job api.JobRef, step int) (*api.StepAttachReply, error)
	SignalStep(ctx context.Context, job api.JobRef, step int, r api.StepSignal) (*api.StepSignalReply, error)
	WaitStep(ctx context.Context, job api.JobRef, step int) error
}

// Options are what a step is run with.
type Options struct {
	Name   string // of the command, in messages: "srun"
	Job    api.JobRef
	Epoch  int  // of the allocation that the caller is in, 0: the current one
	Within *int // the step of the job that the caller is in, nil: none
	Ask    api.StepAsk
	Body   stepwire.Body // without Reply and Part
	MPI    string        // what serves the tasks, one of [api.MPINone] ...; empty: what the site says
	Quiet  int           // 1: no messages but errors

	Label     bool
	KillOnBad bool          // the first task that fails ends the others
	KillAsJob bool          // KillOnBad in a job that any failing step ends: there the tasks of one would wait for each other
	FirstCode bool          // with KillOnBad: that task's exit code is the step's, not the largest
	Looks     bool          // the caller is not in the job: it may have come to look
	Wait      time.Duration // after the first task's end, until the others are ended; 0: for ever
	Patience  bool          // wait for free resources of the allocation for ever, else (-I) not at all
	Immediate time.Duration // how long, without Patience
	Stdin     *os.File      // nil: nothing is read
	Say       io.Writer     // for messages
	QuitOnInt bool          // the first Ctrl-C ends the step
	SendInt   bool          // the first Ctrl-C goes to the tasks, and nothing is said of them

	Output
	// More is what further components of the step run, as [api.StepAsk.More]; the body's own is of the first.
	More []Component

	// Began is called when the step has its number.
	Began func(*api.StepReply) error // an error ends the step
	Idle  time.Duration              // of a terminal: the step is ended when nothing was typed or shown for so long; 0: never
	Port  [2]int                     // range that is listened in; zero: any
}

// Output is where what tasks write goes.
type Output struct {
	Stdout, Stderr io.Writer
	OnlyTask       int // whose output is shown, -1: everybody's
	OnlyErr        int
}

// Component is what a further component of a step runs.
type Component struct {
	Body        stepwire.Body
	CPUsPerTask int
	Output
}

// step is a step that runs.
type step struct {
	o     *Options
	c     Controller
	id    *stepwire.Identity
	l     net.Listener
	reply *api.StepReply
	begun chan struct{} // closed when reply is there

	mu      sync.Mutex
	parts   []part
	viewers []*stepwire.Conn
	fence   fence
	failed  bool // something ended the step before its tasks did
	killed  bool
	aborted bool          // a person ended it; of the main loop, as silent and ctrlC
	silent  bool          // about how tasks end
	refused string        // why a node can't start its tasks
	off     chan struct{} // closed with refused
	called  bool          // the controller was asked to end the step
	images  *votes        // with a container: the image that each node found
	offers  *votes        // with PMIx: whether each node offers it
	changed chan struct{} // of capacity 1

	out     sync.Mutex // one write at a time
	running sync.WaitGroup
	tally   tally
	active  atomic.Int64 // when something was typed or shown last, in Unix nanoseconds
	late    atomic.Bool  // its own time limit has ended it
	ctrlC   time.Time    // the last

	toldImport time.Time // of the main loop: when it was last said how far an import is
}

// part is the step on one node.
type part struct {
	taken  bool           // a launcher has come
	conn   *stepwire.Conn // nil before it has its body, which is its first frame
	window chan struct{}
	done   bool // said so, or was lost
	lost   bool
	tasks  map[uint32]*stepwire.Ended // nil: runs
}

// Run asks for the step, runs it, and gives its exit code. An error is why there was none.
func Run(ctx context.Context, c Controller, o *Options) (int, error) {
	id, err := stepwire.NewIdentity()
	if err != nil {
		return 0, err
	}
	l, err := listen(o.Port)
	if err != nil {
		return 0, fmt.Errorf("listen for the nodes of the step: %w", err)
	}
	s := &step{o: o, c: c, id: id, l: l, begun: make(chan struct{}), off: make(chan struct{}),
		images: newVotes(), offers: newVotes(), changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	s.running.Go(func() { s.accept(ctx) })
	defer s.running.Wait()
	defer s.close()
	defer cancel()
	o.Ask.Hosts, o.Ask.Fingerprint = stepwire.Hosts(l.Addr().(*net.TCPAddr).Port), id.Fingerprint
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	code, err := s.wait(ctx)
	s.settle(ctx)
	return code, err
}

// settleFor bounds the wait for the controller's word on the end of a step.
const settleFor = 3 * time.Second

// settle waits until the controller has recorded the end: the next step of a script finds
// what this one had free, and so the same nodes. Without a controller nobody waits for long.
func (s *step) settle(ctx context.Context) {
	s.mu.Lock()
	for i := range s.parts {
		if c := s.parts[i].conn; c != nil {
			_ = c.Close() // which launchers wait for
		}
	}
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer stop()
	_ = s.c.WaitStep(ctx, s.o.Job, s.reply.StepID)
}

func listen(within [2]int) (net.Listener, error) {
	if within[0] == 0 {
		return net.Listen("tcp", ":0")
	}
	var last error
	for p := within[0]; p <= within[1]; p++ {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", p))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, last
}

// busyWait is how long one call waits for room before the person is told.
const busyWait = 300 * time.Millisecond

// begin asks until the allocation has room.
func (s *step) begin(ctx context.Context) error {
	key, err := client.NewKey()
	if err != nil {
		return err
	}
	started, said, away := time.Now(), false, false
	wait := busyWait
	if !s.o.Patience {
		wait = s.o.Immediate
	}
	for {
		r, err := s.c.BeginStep(ctx, s.o.Job, &api.StepRequest{Key: key, Epoch: s.o.Epoch, Ask: s.o.Ask, Within: s.o.Within, Wait: wait})
		switch {
		case err == nil:
			if said {
				s.say(s.words().began, strconv.FormatInt(r.JobID, 10))
			}
			s.reply = r
			s.parts = make([]part, len(r.Nodes))
			for i := range s.parts {
				p := &s.parts[i]
				p.window = make(chan struct{}, stepwire.InputWindow)
				p.tasks = map[uint32]*stepwire.Ended{}
				for _, t := range r.Nodes[i].Tasks {
					p.tasks[uint32(t)] = nil
				}
			}
			if s.o.Began != nil {
				if err := s.o.Began(r); err != nil {
					s.callOff()
					return err
				}
			}
			close(s.begun)
			return nil
		case api.CodeOf(err) == api.CodeBusy && s.o.Patience:
			if !said {
				s.say(s.words().busy, s.o.Job)
				if s.o.Looks {
					s.say("gangd: steps of the job have what it has; --overlap shares it with them")
				}
			}
			said, wait = true, 30*time.Second
		case transient(err) && time.Since(started) < reachFor:
			if !away && time.Since(started) > tellAfter {
				s.say("the controller does not answer; waiting for it")
				away = true
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		default:
			return err
		}
	}
}

// tellAfter is longer than a restart of the controller takes.
const tellAfter = 2 * time.Second

// reachFor is how long a controller that is being restarted is waited for.
const reachFor = 30 * time.Second

func transient(err error) bool {
	code := api.CodeOf(err)
	return code == api.CodeUnavailable || code == api.CodeInternal && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, context.Canceled)
}

// accept takes launchers and other clients until the listener is closed.
func (s *step) accept(ctx context.Context) {
	for {
		c, err := s.l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors: they come back
			continue
		}
		s.running.Go(func() { s.welcome(ctx, c) })
	}
}

func (s *step) welcome(ctx context.Context, c net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close()
	conn, g, err := s.id.Accept(c)
	if err != nil {
		return
	}
	select {
	case <-s.begun:
	case <-ctx.Done():
		return
	}
	if subtle.ConstantTimeCompare([]byte(g.Secret), []byte(s.reply.Secret)) != 1 {
		return
	}
	if g.Attach {
		s.show(conn, g.Input)
		return
	}
	if g.Part < 0 || g.Part >= len(s.parts) {
		return
	}
	node := s.reply.Nodes[g.Part].Name
	if g.Refused != "" {
		s.refuse(node, g.Refused)
		return
	}
	if c := s.o.Ask.Container; c != nil && c.Name != g.Container {
		s.refuse(node, "gnoded is older than --container-name: the tasks would run elsewhere")
		return
	} else if c != nil && c.Name == "" && g.Image != c.Image { // one that is there may be of another image
		s.refuse(node, "gnoded is older than containers of steps: the tasks would run outside")
		return
	}
	if s.wantsPMI() && !g.PMI {
		s.error("%s: gnoded is older than --mpi=pmi2: the tasks there would each be alone", node)
		s.Kill(false)
		return
	}
	if (s.o.Body.TaskProlog != "" || s.o.Body.TaskEpilog != "") && !g.Hooks {
		s.error("%s: gnoded is older than --task-prolog and --task-epilog", node)
		s.Kill(false)
		return
	}
	s.mu.Lock()
	p := &s.parts[g.Part]
	taken := p.taken
	p.taken = true
	s.mu.Unlock()
	if taken {
		return
	}
	if s.o.Ask.Container != nil && !s.together(ctx, s.images, node, g.Digest, otherImage) {
		return
	}
	if s.wantsPMIx() && !s.together(ctx, s.offers, node, offer(g.PMIx), otherOffer) {
		return
	}
	err = s.serve(g.Part, conn)
	s.mu.Lock()
	if !p.done {
		p.done, p.lost = true, true
		if !s.killed {
			s.error("%s: connection to the step's launcher was lost: %v", node, err)
		}
	}
	s.mu.Unlock()
	s.poke()
}

// refuse ends a step that a node can't start: none of its tasks runs anywhere.
func (s *step) refuse(node, why string) {
	s.mu.Lock()
	if s.refused == "" {
		s.refused = node + ": " + why
		close(s.off)
	}
	s.mu.Unlock()
	s.poke()
}

// votes are what nodes say that has to be the same on all of them before any has its body.
type votes struct {
	of  map[string]string
	all chan struct{} // closed when every node has said it
}

func newVotes() *votes { return &votes{of: map[string]string{}, all: make(chan struct{})} }

// together waits until every node has said the same; false: it never comes to that. differ says of a node what it says, and
// what another does.
func (s *step) together(ctx context.Context, v *votes, node, says string, differ func(says, others, other string) string) bool {
	s.mu.Lock()
	other, found := "", ""
	for n, d := range v.of {
		if d != says {
			other, found = n, d
		}
	}
	v.of[node] = says
	last := len(v.of) == len(s.parts) && other == ""
	s.mu.Unlock()
	if last && v == s.offers && says == offer(false) && s.o.Quiet == 0 {
		s.sayWithoutPMIx()
	}
	if last {
		close(v.all)
	}
	if other != "" {
		s.refuse(node, differ(says, found, other))
		return false
	}
	select {
	case <-v.all:
		return true
	case <-s.off:
		return false
	case <-ctx.Done():
		return false
	}
}

// serve hands a launcher its body and takes what it says until it is done.
func (s *step) serve(i int, conn *stepwire.Conn) error {
	body, output, cpus := s.o.Body, &s.o.Output, s.reply.CPUsPerTask
	if g := s.reply.Nodes[i].Group; g > 0 && g <= len(s.o.More) {
		m := &s.o.More[g-1]
		body, output, cpus = m.Body, &m.Output, max(m.CPUsPerTask, 1)
	}
	body.Reply, body.Part, body.Own = *s.reply, i, s.o.own()
	body.Reply.Secret, body.Reply.CPUsPerTask = "", cpus
	body.Client.Host, body.Client.Port = hostOf(conn.LocalAddr())
	s.setMPI(&body)
	if err := conn.SendJSON(stepwire.Start, 0, &body); err != nil {
		return err
	}
	s.mu.Lock()
	s.parts[i].conn = conn
	killed := s.killed
	s.mu.Unlock()
	s.poke()
	if killed {
		_ = conn.Send(stepwire.Stop, 0, nil)
	}
	for {
		f, err := conn.Next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch f.Type {
		case stepwire.Output, stepwire.Errors:
			s.write(f, output)
		case stepwire.Say:
			text := string(f.Data)
			if s.o.own() {
				text = strings.TrimPrefix(text, "slurmstepd: error: ")
			}
			if cut, ok := strings.CutSuffix(text, " ***"); ok && s.late.Load() {
				text = cut + " DUE TO TIME LIMIT ***" // the node was told to end it, not why
			}
			s.out.Lock()
			fmt.Fprintf(s.o.Say, "%s\n", text)
			s.out.Unlock()
		case stepwire.Exit:
			s.exited(i, f)
		case stepwire.Credit:
			select {
			case <-s.parts[i].window:
			default:
			}
		case stepwire.Publish:
			s.publish(f)
		case stepwire.Fence:
			s.arrived(i)
		case stepwire.Abort:
			s.error("mpi/%s: task %d aborted StepId=%s: %s", s.plugin(), f.Task, s.text(), f.Data)
			s.fail()
		case stepwire.Done:
			s.mu.Lock()
			s.parts[i].done = true
			s.mu.Unlock()
			return nil
		}
	}
}

func (s *step) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// toAll sends a frame to every launcher that is there.
func (s *step) toAll(kind byte, data []byte) {
	for p := range s.launchers(stepwire.AllTasks) {
		_ = p.conn.Send(kind, stepwire.AllTasks, data)
	}
}

// launchers are those that are there, as long as they are, with the task among theirs.
func (s *step) launchers(task uint32) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for i := range s.parts {
			p := &s.parts[i]
			s.mu.Lock()
			_, has := p.tasks[task]
			there := p.conn != nil && !p.done && (has || task == stepwire.AllTasks)
			s.mu.Unlock()
			if there && !yield(p) {
				return
			}
		}
	}
}

// Kill ends the step: TERM, the grace, KILL; again (now): KILL at once.
func (s *step) Kill(now bool) {
	s.mu.Lock()
	s.killed = true
	s.mu.Unlock()
	var data []byte
	if now {
		data = []byte{1}
	}
	s.toAll(stepwire.Stop, data)
	if s.o.Ask.Container != nil && !s.launched() {
		s.callOff()
	}
}

// callOff has the controller end a step whose launchers have not all come.
func (s *step) callOff() {
	s.mu.Lock()
	done := s.called
	s.called = true
	s.mu.Unlock()
	if done {
		return
	}
	s.running.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), settleFor)
		defer stop()
		_, _ = s.c.SignalStep(ctx, s.o.Job, s.reply.StepID, api.StepSignal{})
	})
}

func (s *step) close() {
	_ = s.l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.parts {
		if c := s.parts[i].conn; c != nil {
			_ = c.Close()
		}
	}
	for _, v := range s.viewers {
		_ = v.Close()
	}
}

func (s *step) say(format string, args ...any) {
	if s.o.Quiet < 1 {
		fmt.Fprintf(s.o.Say, s.o.Name+": "+format+"\n", args...)
	}
}

func (s *step) error(format string, args ...any) {
	if s.o.Quiet < 2 {
		fmt.Fprintf(s.o.Say, s.o.Name+": error: "+format+"\n", args...)
	}
}

func hostOf(a net.Addr) (string, int) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return "", 0
	}
	return t.IP.String(), t.Port
}
