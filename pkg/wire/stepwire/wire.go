// Package stepwire is what the client of a step (grun) and its launchers (gstep, one on each
// node) say to each other: frames over TLS. The client listens, launchers and other clients
// of the owner (gattach) connect.
//
// Who is who: the client makes a key and a certificate for one step, whose SHA-256 reaches
// launchers through the controller; they talk to nobody else. A launcher proves itself by the
// step's secret, which the controller gave to the client and to the nodes of the step.
//
// A frame is a type, a task and bytes. What tasks write and read is never kept beyond one
// frame for each side: a reader that does not read stops the writer through TCP, and standard
// input is sent as far as the launcher has credited.
//
// Begin with Conn and Identity. It must not know how tasks are started, or when a step is
// over.
package stepwire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/rlimit"
	"gangd/pkg/core/cpus"
)

// The types of frames. Capitals speak of the step, others of a task.
const (
	Hello   = 'H' // first frame of who connected: a [Greeting]
	Start   = 'B' // client: a [Body]
	Started = 'S' // launcher: its tasks run, or have failed to
	Output  = 'o' // launcher: standard output of Task
	Errors  = 'e' // launcher: standard error of Task
	Exit    = 'x' // launcher: an [Ended] of Task
	Say     = 'M' // launcher: a line for the person, without its end
	Done    = 'D' // launcher: all tasks have ended, all output was sent
	Input   = 'i' // client: standard input of Task, or of [AllTasks]
	EndIn   = 'I' // client: the end of it
	Credit  = 'c' // launcher: one Input frame was taken by all whom it was for
	Signal  = 's' // client: the name of a signal for the tasks
	Stop    = 'K' // client: TERM, the grace, KILL
	Size    = 'w' // client: a [Window]
	Publish = 'p' // launcher: what its tasks published through PMI or PMIx; client: what all did
	Fence   = 'f' // launcher: all its tasks are at the fence of PMI; client: all of the step are
	Abort   = 'a' // launcher: Task ends the step through PMI; why
)

// AllTasks is the Task of frames for all tasks of a launcher.
const AllTasks = 1<<32 - 1

// MaxData bounds the bytes of one frame.
const MaxData = 64 << 10

// maxBody bounds a Start frame: an environment of the kernel's largest and a long layout.
const maxBody = 16 << 20

// InputWindow is how many Input frames may be on their way to one launcher.
const InputWindow = 8

// Greeting is who connected.
type Greeting struct {
	Secret string `json:"secret"`
	Part   int    `json:"part"` // of the step, of a launcher
	Node   string `json:"node"`
	Attach bool   `json:"attach,omitempty"` // another client, which wants to see what the tasks write
	Input  bool   `json:"input,omitempty"`  // of an attached client: it will write to the tasks
	PMI    bool   `json:"pmi,omitempty"`    // of a launcher: it can serve it
	PMIx   bool   `json:"pmix,omitempty"`   // of a launcher: its node has what serves PMIx
	Hooks  bool   `json:"hooks,omitempty"`  // of a launcher: it runs the user's programs around tasks
	// Image names what a launcher's tasks will run in, Digest is that of the image where it is known; empty: the machine.
	Image  string `json:"image,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Container is its name, where it is one that is kept.
	Container string `json:"container,omitempty"`
	// Refused is why its tasks can't be started. Nothing follows.
	Refused string `json:"refused,omitempty"`
}

// Window is the size of a terminal.
type Window struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Program is what some of the tasks run (--multi-prog).
type Program struct {
	Tasks  []int    `json:"tasks"` // none: all that no other program names
	Argv   []string `json:"argv"`
	Expand bool     `json:"expand,omitempty"` // %t is the task's number, %o its place among Tasks
}

// Body is what a launcher has to run.
type Body struct {
	Reply    api.StepReply `json:"reply"` // without its secret
	Part     int           `json:"part"`
	Programs []Program     `json:"programs"`
	Env      []string      `json:"env"`
	Client   ClientInfo    `json:"client"`
	Dir      string        `json:"dir"`
	Umask    int           `json:"umask"`
	// Limits are the client's soft resource limits, for the tasks; LimitsAsked: chosen by its user, whatever the site passes on.
	Limits      rlimit.Soft `json:"limits,omitempty"`
	LimitsAsked bool        `json:"limits_asked,omitempty"`
	// Files are patterns that launchers open, complete paths but for what differs by task; empty:
	// to and from the client.
	Stdout   string   `json:"stdout,omitempty"`
	Stderr   string   `json:"stderr,omitempty"` // "=": with Stdout
	Stdin    string   `json:"stdin,omitempty"`
	Truncate bool     `json:"truncate,omitempty"`
	InputTo  int64    `json:"input_to"` // a task, [AllTasks], or -1: nobody
	PTY      *Window  `json:"pty,omitempty"`
	Term     []string `json:"term,omitempty"` // modes of the terminal
	// Label: lines have their task's number before them, in files too; pieces end at the ends of lines,
	// also when a line is long in coming. Unbuffered: they are sent as they come.
	Label      bool `json:"lines,omitempty"`
	Unbuffered bool `json:"unbuffered,omitempty"`
	PerTask    int  `json:"gpus_per_task,omitempty"` // each task sees so many cards of its own
	// CardsOf are places among the step's cards on a node, for its tasks in turn; none: all cards, or PerTask.
	CardsOf [][]int `json:"cards_of,omitempty"`
	PMI     bool    `json:"pmi,omitempty"`  // tasks have a connection to a PMI server
	PMIx    bool    `json:"pmix,omitempty"` // and to one of PMIx, another protocol
	// Bind is which of the step's CPUs each task may use.
	Bind cpus.Binding `json:"cpu_bind,omitzero"`
	// TaskProlog and TaskEpilog are the user's programs around each task; empty: none.
	TaskProlog string `json:"task_prolog,omitempty"`
	TaskEpilog string `json:"task_epilog,omitempty"`
	// RemapRoot: each task is root in a user namespace of its own, in which its user is all there is.
	RemapRoot bool `json:"remap_root,omitempty"`
	// Own: what launchers say is in gangd's words, and not in those of Slurm's slurmstepd.
	Own bool `json:"own,omitempty"`
}

// MarshalJSON and UnmarshalJSON carry the bytes of texts that are no UTF-8: arguments, variables and paths are a program's,
// not ours.
func (b Body) MarshalJSON() ([]byte, error) {
	type plain Body
	b.pack(api.Pack, api.PackAll)
	return json.Marshal((*plain)(&b))
}

func (b *Body) UnmarshalJSON(text []byte) error {
	type plain Body
	if err := json.Unmarshal(text, (*plain)(b)); err != nil {
		return err
	}
	b.pack(api.Unpack, api.UnpackAll)
	return nil
}

func (b *Body) pack(one func(string) string, all func([]string) []string) {
	b.Programs = slices.Clone(b.Programs)
	for i := range b.Programs {
		b.Programs[i].Argv = all(b.Programs[i].Argv)
	}
	b.Env, b.Term, b.Client.Extra = all(b.Env), all(b.Term), all(b.Client.Extra)
	b.Dir, b.Stdout, b.Stderr, b.Stdin = one(b.Dir), one(b.Stdout), one(b.Stderr), one(b.Stdin)
	b.TaskProlog, b.TaskEpilog = one(b.TaskProlog), one(b.TaskEpilog)
}

// ClientInfo is what tasks are told of the client.
type ClientInfo struct {
	Host    string   `json:"host"` // IP address
	Port    int      `json:"port"`
	JobName string   `json:"job_name"`
	Extra   []string `json:"extra,omitempty"` // NAME=value, of options
}

// Ended is how a task ended.
type Ended struct {
	Code   int    `json:"code"` // 128+signal when one ended it
	Signal int    `json:"signal,omitempty"`
	Core   bool   `json:"core,omitempty"`
	Error  string `json:"error,omitempty"` // why it could not be started
}

// Frame is one of them. Data is valid until the next one is read.
type Frame struct {
	Type byte
	Task uint32
	Data []byte
}

// Conn is a connection after its handshake. Send may be called by many, Next by one.
type Conn struct {
	net.Conn
	r   *bufio.Reader
	buf []byte

	mu  sync.Mutex
	out []byte
}

// New makes one.
func New(c net.Conn) *Conn { return &Conn{Conn: c, r: bufio.NewReaderSize(c, MaxData)} }

const header = 9

// Send writes a frame. It blocks while the peer does not read.
func (c *Conn) Send(kind byte, task uint32, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out[:0], kind)
	c.out = binary.BigEndian.AppendUint32(c.out, task)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(len(data)))
	c.out = append(c.out, data...)
	_, err := c.Conn.Write(c.out)
	if cap(c.out) > 2*MaxData {
		c.out = nil
	}
	return err
}

// SendJSON writes a frame that holds v.
func (c *Conn) SendJSON(kind byte, task uint32, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Send(kind, task, b)
}

// Next reads a frame.
func (c *Conn) Next() (f Frame, err error) {
	var h [header]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return f, err
	}
	f.Type, f.Task = h[0], binary.BigEndian.Uint32(h[1:])
	n := int(binary.BigEndian.Uint32(h[5:]))
	if n > MaxData && (f.Type != Start || n > maxBody) {
		return f, fmt.Errorf("a frame %q of %d bytes", f.Type, n)
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, max(n, 4096))
	}
	f.Data = c.buf[:n]
	_, err = io.ReadFull(c.r, f.Data)
	return f, err
}

// greetWait bounds a handshake: whoever connects and says nothing is dropped.
const greetWait = 20 * time.Second

// Greet reads the first frame of who connected.
func (c *Conn) Greet() (g Greeting, err error) {
	_ = c.SetReadDeadline(time.Now().Add(greetWait))
	f, err := c.Next()
	if err != nil {
		return g, err
	}
	_ = c.SetReadDeadline(time.Time{})
	if f.Type != Hello {
		return g, fmt.Errorf("the first frame is %q", f.Type)
	}
	return g, json.Unmarshal(f.Data, &g)
}
