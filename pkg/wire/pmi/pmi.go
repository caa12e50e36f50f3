package pmi

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Sizes that PMI-1 tells its clients, those of MPICH's own process manager.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// maxMessage bounds one message of a task, in bytes: PMI-2 writes its length with six digits, and
// what is longest is a value with every character escaped.
const maxMessage = 64 << 10

// MaxStore bounds what the tasks of a step may publish, in bytes of keys and values: 10,000 tasks
// with 1 KiB each, six times.
const MaxStore = 64 << 20

// Options are a step and the part of it that a server serves.
type Options struct {
	Job   string  // the name of the step: 12.0
	Nodes [][]int // the numbers of the tasks on each node
	// Fence is called when all tasks of this node are at the fence, with what they published since
	// the last one, in pieces of at most Piece bytes. [Server.Passed] answers it.
	Fence func(pieces [][]byte)
	Piece int
	// Abort is called when a task ends the whole step.
	Abort func(task int, text string)
}

// Server serves the tasks of one node. Its methods may be called by many.
type Server struct {
	o    Options
	size int
	here int // tasks on this node
	// mapping is the value of [mappingKey].
	mapping string

	mu      sync.Mutex
	store   map[string]string // what has passed a fence
	fresh   map[string]string // what has not
	held    int               // bytes of both
	node    map[string]string // attributes of this node
	waiting map[string][]func(string)
	fences  []func()
	own     map[*task]map[string]string // what each published itself, which it may read at once
}

// New makes one. Tasks come with [Server.Task].
func New(o Options, node int) *Server {
	s := &Server{o: o, here: len(o.Nodes[node]), mapping: mapping(o.Nodes), fresh: map[string]string{},
		node: map[string]string{}, waiting: map[string][]func(string){}, own: map[*task]map[string]string{}}
	s.store = map[string]string{mappingKey: s.mapping}
	for _, tasks := range o.Nodes {
		s.size += len(tasks)
	}
	return s
}

// mappingKey is where MPICH looks for which tasks share a node.
const mappingKey = "PMI_process_mapping"

// mapping says so as (vector,(first node,nodes,tasks on each),...); nothing when the tasks of a node
// don't follow each other, and MPI finds out by itself.
func mapping(nodes [][]int) string {
	var b strings.Builder
	b.WriteString("(vector")
	next := 0
	for i := 0; i < len(nodes); {
		alike := i
		for ; alike < len(nodes) && len(nodes[alike]) == len(nodes[i]); alike++ {
			for _, t := range nodes[alike] {
				if t != next {
					return ""
				}
				next++
			}
		}
		fmt.Fprintf(&b, ",(%d,%d,%d)", i, alike-i, len(nodes[i]))
		i = alike
	}
	b.WriteByte(')')
	if b.Len() > maxValue {
		return ""
	}
	return b.String()
}

// Task begins to serve a task and gives the end of the connection that it inherits as descriptor fd,
// which the caller closes, and the variables that name it.
func (s *Server) Task(number, fd int) (*os.File, []string, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("pmi: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "pmi"), os.NewFile(uintptr(pair[1]), "pmi")
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("pmi: %w", err)
	}
	go func() {
		defer conn.Close()
		s.serve(number, conn)
	}()
	env := []string{"PMI_FD=" + strconv.Itoa(fd), "PMI_RANK=" + strconv.Itoa(number), "PMI_SIZE=" + strconv.Itoa(s.size), "PMI_JOBID=" +
		s.o.Job}
	return theirs, env, nil
}

// task is a connection.
type task struct {
	s      *Server
	number int
	conn   io.Writer

	mu   sync.Mutex // one answer at a time
	two  bool       // speaks PMI-2
	over bool
}

// serve answers a task until it goes, or says what is not the protocol.
func (s *Server) serve(number int, conn io.ReadWriter) {
	t := &task{s: s, number: number, conn: conn}
	defer func() {
		s.mu.Lock()
		delete(s.own, t)
		s.mu.Unlock()
	}()
	r := bufio.NewReaderSize(conn, maxMessage)
	for !t.over {
		m, err := t.read(r)
		if err != nil {
			return
		}
		if t.two {
			t.answerTwo(m)
		} else {
			t.answerOne(m)
		}
	}
}

// message is a command and its attributes.
type message map[string]string

var errMessage = errors.New("not a message of PMI")

func (t *task) read(r *bufio.Reader) (message, error) {
	if t.two {
		return readTwo(r)
	}
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	m := message{}
	for pair := range strings.FieldsSeq(string(line)) {
		if k, v, ok := strings.Cut(pair, "="); ok {
			m[k] = v
		}
	}
	return m, nil
}

// readTwo reads a length of six characters and pairs that end with a semicolon each, which within
// a value is written twice.
func readTwo(r *bufio.Reader) (message, error) {
	var head [6]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(head[:])))
	if err != nil || n < 0 || n > maxMessage {
		return nil, errMessage
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	m := message{}
	for text := string(b); text != ""; {
		k, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errMessage
		}
		var v strings.Builder
		for {
			part, more, ok := strings.Cut(rest, ";")
			v.WriteString(part)
			if rest = more; !ok || !strings.HasPrefix(rest, ";") {
				break
			}
			v.WriteByte(';')
			rest = rest[1:]
		}
		m[k], text = v.String(), rest
	}
	return m, nil
}

// line writes an answer of PMI-1.
func (t *task) line(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.conn, format+"\n", args...)
}

// pairs writes an answer of PMI-2: names and values.
func (t *task) pairs(m message, kv ...string) {
	var b strings.Builder
	fmt.Fprintf(&b, "cmd=%s-response;", m["cmd"])
	if id, ok := m["thrid"]; ok {
		fmt.Fprintf(&b, "thrid=%s;", id)
	}
	for pair := range slices.Chunk(kv, 2) {
		fmt.Fprintf(&b, "%s=%s;", pair[0], strings.ReplaceAll(pair[1], ";", ";;"))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.conn, "%6d%s", b.Len(), b.String())
}

// notOffered is said in PMI-2; PMI-1 has no spaces in a value.
const notOffered = "not offered"

func oneWord(text string) string { return strings.ReplaceAll(text, " ", "_") }

func (t *task) answerOne(m message) {
	s := t.s
	switch m["cmd"] {
	case "init":
		if m["pmi_version"] == "2" {
			t.line("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0")
			t.two = true
			return
		}
		t.line("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	case "get_maxes":
		t.line("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", maxName, maxKey, maxValue)
	case "get_appnum":
		t.line("cmd=appnum appnum=0")
	case "get_my_kvsname":
		t.line("cmd=my_kvsname kvsname=%s", s.o.Job)
	case "get_universe_size":
		t.line("cmd=universe_size size=%d", s.size)
	case "put":
		if err := s.put(t, m["key"], m["value"]); err != nil {
			t.line("cmd=put_result rc=-1 msg=%s", oneWord(err.Error()))
			return
		}
		t.line("cmd=put_result rc=0 msg=success")
	case "get":
		v, ok := s.get(t, m["key"])
		if !ok || m["kvsname"] != s.o.Job {
			t.line("cmd=get_result rc=-1 msg=key_%s_not_found value=unknown", m["key"])
			return
		}
		t.line("cmd=get_result rc=0 msg=success value=%s", v)
	case "barrier_in":
		s.fence(func() { t.line("cmd=barrier_out") })
	case "finalize":
		t.line("cmd=finalize_ack")
		t.over = true
	case "abort":
		s.o.Abort(t.number, "exit code "+m["exitcode"])
	case "publish_name":
		t.line("cmd=publish_result rc=-1 msg=%s", oneWord(notOffered))
	case "unpublish_name":
		t.line("cmd=unpublish_result rc=-1 msg=%s", oneWord(notOffered))
	case "lookup_name":
		t.line("cmd=lookup_result rc=-1 msg=%s", oneWord(notOffered))
	case "": // of a spawn's many lines (mcmd=spawn ... endcmd) the first has no cmd
		if m["mcmd"] != "" {
			t.line("cmd=spawn_result rc=-1 msg=%s", oneWord(notOffered))
		}
	default:
		t.over = true
	}
}

func (t *task) answerTwo(m message) {
	s := t.s
	switch m["cmd"] {
	case "fullinit":
		t.pairs(m, "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(t.number), "size", strconv.Itoa(s.size), "appnum", "0",
			"debugged", "FALSE", "pmiverbose", "FALSE", "rc", "0")
	case "job-getid":
		t.pairs(m, "jobid", s.o.Job, "rc", "0")
	case "kvs-put":
		if err := s.put(t, m["key"], m["value"]); err != nil {
			t.pairs(m, "rc", "-1", "errmsg", err.Error())
			return
		}
		t.pairs(m, "rc", "0")
	case "kvs-get":
		v, ok := s.get(t, m["key"])
		t.found(m, v, ok)
	case "kvs-fence":
		s.fence(func() { t.pairs(m, "rc", "0") })
	case "info-putnodeattr":
		if err := s.putNode(m["key"], m["value"]); err != nil {
			t.pairs(m, "rc", "-1", "errmsg", err.Error())
			return
		}
		t.pairs(m, "rc", "0")
	case "info-getnodeattr":
		s.getNode(m["key"], m["wait"] == "TRUE", func(v string, ok bool) { t.found(m, v, ok) })
	case "info-getjobattr":
		v, ok := strconv.Itoa(s.size), m["key"] == "universeSize"
		if !ok {
			v, ok = s.mapping, m["key"] == mappingKey
		}
		t.found(m, v, ok && v != "")
	case "finalize":
		t.pairs(m, "rc", "0")
		t.over = true
	case "abort":
		s.o.Abort(t.number, m["msg"])
	case "":
		t.over = true
	default: // spawning, names, other jobs
		t.pairs(m, "rc", "-1", "errmsg", notOffered)
	}
}

func (t *task) found(m message, v string, ok bool) {
	if ok {
		t.pairs(m, "found", "TRUE", "value", v, "rc", "0")
		return
	}
	t.pairs(m, "found", "FALSE", "rc", "0")
}

// room refuses what is too long or too much; s.mu is held.
func (s *Server) room(key, value string) error {
	switch n := len(key) + len(value); {
	case key == "" || len(key) > maxKey || len(value) > maxValue:
		return fmt.Errorf("a key has 1 to %d characters and a value up to %d", maxKey, maxValue)
	case s.held+n > MaxStore:
		return fmt.Errorf("the tasks of a step publish %d bytes at most", MaxStore)
	default:
		s.held += n
	}
	return nil
}

func (s *Server) put(t *task, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(key, value); err != nil {
		return err
	}
	s.fresh[key] = value
	if s.own[t] == nil {
		s.own[t] = map[string]string{}
	}
	s.own[t][key] = value
	return nil
}

func (s *Server) get(t *task, key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.own[t][key]; ok {
		return v, true
	}
	v, ok := s.store[key]
	return v, ok && v != ""
}

func (s *Server) putNode(key, value string) error {
	s.mu.Lock()
	if err := s.room(key, value); err != nil {
		s.mu.Unlock()
		return err
	}
	s.node[key] = value
	all := s.waiting[key]
	delete(s.waiting, key)
	s.mu.Unlock()
	for _, tell := range all {
		tell(value)
	}
	return nil
}

// getNode gives an attribute of the node, where asked when another task has put it.
func (s *Server) getNode(key string, wait bool, tell func(string, bool)) {
	s.mu.Lock()
	v, ok := s.node[key]
	later := !ok && wait
	if later {
		s.waiting[key] = append(s.waiting[key], func(v string) { tell(v, true) })
	}
	s.mu.Unlock()
	if !later {
		tell(v, ok)
	}
}

// fence counts a task in; the last hands over what all of them published.
func (s *Server) fence(out func()) {
	s.mu.Lock()
	s.fences = append(s.fences, out)
	if len(s.fences) < s.here {
		s.mu.Unlock()
		return
	}
	pieces := pack(s.fresh, s.o.Piece)
	for k, v := range s.fresh {
		s.held -= len(k) + len(v) // it comes back with the others'
	}
	clear(s.fresh)
	s.mu.Unlock()
	s.o.Fence(pieces)
}

// Publish takes a piece of what tasks of all nodes published before the fence that is on its way.
func (s *Server) Publish(piece []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return unpack(piece, func(k, v string) error {
		if err := s.room(k, v); err != nil {
			return err
		}
		s.store[k] = v
		return nil
	})
}

// Passed lets the tasks go on: all nodes are at the fence.
func (s *Server) Passed() {
	s.mu.Lock()
	out := s.fences
	s.fences = nil
	clear(s.own)
	s.mu.Unlock()
	for _, tell := range out {
		tell()
	}
}

// pack writes pairs, each as two lengths and two texts, into pieces.
func pack(pairs map[string]string, most int) (pieces [][]byte) {
	var piece []byte
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		v := pairs[k]
		if len(piece)+len(k)+len(v)+2*binary.MaxVarintLen32 > most {
			pieces, piece = append(pieces, piece), nil
		}
		piece = binary.AppendUvarint(piece, uint64(len(k)))
		piece = append(piece, k...)
		piece = binary.AppendUvarint(piece, uint64(len(v)))
		piece = append(piece, v...)
	}
	if piece != nil {
		pieces = append(pieces, piece)
	}
	return pieces
}

func unpack(b []byte, f func(k, v string) error) error {
	text := func() (string, error) {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return "", errMessage
		}
		out := string(b[used : used+int(n)])
		b = b[used+int(n):]
		return out, nil
	}
	for len(b) > 0 {
		k, err := text()
		if err != nil {
			return err
		}
		v, err := text()
		if err != nil {
			return err
		}
		if err := f(k, v); err != nil {
			return err
		}
	}
	return nil
}
