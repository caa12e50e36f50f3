package launcher

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/wire/pmi"
	"gangd/pkg/wire/stepwire"
)

// pmixName is the program that serves PMIx, beside this one. A static program can't open a library.
const pmixName = "gpmix"

// pmixReady bounds its first word: opening the library and its plug-ins, from a file server at worst.
const pmixReady = 60 * time.Second

// pmixHead is the number of a node, before each piece of what its tasks published: pieces of several nodes are mixed on their way, and
// libpmix wants those of one together.
const pmixHead = 4

// pmixServer is gpmix, which serves the tasks here.
type pmixServer struct {
	pid    int
	to     *os.File
	said   *json.Decoder
	envs   [][]string // by local task
	dir    string
	closed sync.Once

	mu     sync.Mutex
	pieces map[uint32][]byte // what the nodes published, since the last fence
}

// pmixLibraries are where distributions have libpmix. The pattern is of directories alone: one of files would have each step
// read the names of all libraries of the machine.
func pmixLibraries() (out []string) {
	dirs, _ := filepath.Glob("/usr/lib/*-linux-gnu") // fails for a bad pattern alone
	for _, dir := range append(dirs, "/usr/lib64", "/usr/lib", "/usr/local/lib64", "/usr/local/lib") {
		if path := filepath.Join(dir, "libpmix.so.2"); unix.Access(path, unix.R_OK) == nil {
			out = append(out, path)
		}
	}
	return out
}

func pmixProgram() string {
	own, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(own), pmixName)
	if unix.Access(path, unix.X_OK) != nil {
		return ""
	}
	return path
}

// offersPMIx reports whether this node, or the root that the step is in, has the program and a library for it.
func offersPMIx() bool { return pmixProgram() != "" && len(pmixLibraries()) > 0 }

// servePMIx starts the server of the tasks here. Where it can't, the step ends: elsewhere tasks would wait for those here.
func (l *launcher) servePMIx() {
	b := l.body
	here := b.Reply.Nodes[b.Part].Tasks
	j := pmi.XJob{Namespace: "gangd." + api.StepText(b.Reply.JobID, b.Reply.StepID), Library: pmixLibraries(), Part: b.Part}
	for i := range b.Reply.Nodes {
		j.Nodes = append(j.Nodes, pmi.XNode{Name: b.Reply.Nodes[i].Name, Tasks: b.Reply.Nodes[i].Tasks})
	}
	s, err := startPMIx(&j)
	if err != nil {
		l.abort(here[0], fmt.Sprintf("%s: no PMIx: %v", l.start.Node, err))
		return
	}
	l.pmix = s
	go s.listen(l)
}

func startPMIx(j *pmi.XJob) (s *pmixServer, err error) {
	s = &pmixServer{pieces: map[uint32][]byte{}}
	if s.dir, err = os.MkdirTemp("", "gangd-pmix-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	j.Dir = s.dir
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s.to = to
	from, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.said = json.NewDecoder(from)
	path := pmixProgram()
	env := append(os.Environ(), stepMark())
	if s.pid, err = syscall.ForkExec(path, []string{pmixName}, &syscall.ProcAttr{Env: env, Files: []uintptr{in.Fd(), out.Fd(), 2},
		Sys: &syscall.SysProcAttr{Setsid: true}}); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.NewEncoder(s.to).Encode(j); err != nil {
		return nil, err
	}
	_ = from.SetReadDeadline(time.Now().Add(pmixReady))
	var first pmi.XSaid
	if err := s.said.Decode(&first); err != nil {
		return nil, fmt.Errorf("%s said nothing: %w", pmixName, err)
	}
	_ = from.SetReadDeadline(time.Time{})
	if first.Error != "" {
		return nil, fmt.Errorf("%s", first.Error)
	}
	if s.envs = first.Env; len(s.envs) != len(j.Nodes[j.Part].Tasks) {
		return nil, fmt.Errorf("%s knows of %d tasks", pmixName, len(s.envs))
	}
	return s, nil
}

// listen passes on what the tasks want, until gpmix ends.
func (s *pmixServer) listen(l *launcher) {
	for {
		var w pmi.XSaid
		if err := s.said.Decode(&w); err != nil {
			return // tasks that need it are told by libpmix, and fail
		}
		switch {
		case w.Abort != nil:
			l.aborts(w.Abort.Task, w.Abort.Text)
		case w.Fence:
			head := binary.BigEndian.AppendUint32(nil, uint32(l.body.Part))
			for at := 0; at < len(w.Data); {
				n := min(len(w.Data)-at, stepwire.MaxData-pmixHead)
				_ = l.conn.Send(stepwire.Publish, stepwire.AllTasks, append(head[:pmixHead:pmixHead], w.Data[at:at+n]...))
				at += n
			}
			_ = l.conn.Send(stepwire.Fence, stepwire.AllTasks, nil)
		}
	}
}

// fenced takes what the client says of a fence.
func (s *pmixServer) fenced(f stepwire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Type == stepwire.Publish {
		if len(f.Data) >= pmixHead {
			part := binary.BigEndian.Uint32(f.Data)
			s.pieces[part] = append(s.pieces[part], f.Data[pmixHead:]...)
		}
		return
	}
	var p pmi.XPassed
	for _, part := range slices.Sorted(maps.Keys(s.pieces)) {
		p.Data = append(p.Data, s.pieces[part]...)
	}
	clear(s.pieces)
	go func() { _ = json.NewEncoder(s.to).Encode(&p) }() // no other comes before the tasks have passed this one
}

// is reports whether a process is gpmix.
func (s *pmixServer) is(pid int) bool { return s != nil && s.pid == pid }

// close ends gpmix, once no task needs it, and takes its files away.
func (s *pmixServer) close() {
	if s == nil {
		return
	}
	s.closed.Do(func() {
		if s.to != nil {
			_ = s.to.Close()
		}
		_ = os.RemoveAll(s.dir)
	})
}
