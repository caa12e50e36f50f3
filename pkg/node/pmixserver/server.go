//go:build cgo

package pmixserver

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "pmix.h"
import "C"

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unsafe"

	"gangd/pkg/wire/pmi"
)

// server is what this process is one of: libpmix has one in a process.
type server struct {
	mu    sync.Mutex
	out   *json.Encoder
	call  unsafe.Pointer // to be called when the fence is passed, nil: no task waits
	data  unsafe.Pointer
	tasks int
}

var here server

// serve does what Main says.
func serve(in *bufio.Reader, out io.Writer) error {
	here.out = json.NewEncoder(out)
	var j pmi.XJob
	if err := read(in, &j); err != nil {
		return err
	}
	envs, err := begin(&j)
	if err != nil {
		return here.say(&pmi.XSaid{Error: err.Error()})
	}
	defer C.pmix_close()
	if err := here.say(&pmi.XSaid{Env: envs}); err != nil {
		return err
	}
	for {
		var p pmi.XPassed
		if err := read(in, &p); err != nil {
			return err
		}
		here.pass(p.Data)
	}
}

func read(in *bufio.Reader, to any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, to)
}

func (s *server) say(w *pmi.XSaid) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(w)
}

// pass lets the tasks here go on, with what all published.
func (s *server) pass(blob []byte) {
	s.mu.Lock()
	call, data := s.call, s.data
	s.call, s.data = nil, nil
	s.mu.Unlock()
	if call != nil {
		C.pmix_pass(call, data, (*C.char)(C.CBytes(blob)), C.size_t(len(blob)))
	}
}

// begin has libpmix serve a job, and gives the environment of each task here.
func begin(j *pmi.XJob) ([][]string, error) {
	if err := opened(j.Library); err != nil {
		return nil, err
	}
	var c C.struct_job
	var free []unsafe.Pointer
	defer func() {
		for _, p := range free {
			C.free(p)
		}
	}()
	text := func(s string) *C.char { return C.CString(s) } // libpmix may keep it
	numbers := func(n []int) *C.uint32_t {
		p := C.malloc(C.size_t(4 * max(len(n), 1)))
		free = append(free, p)
		for i, v := range n {
			unsafe.Slice((*C.uint32_t)(p), len(n))[i] = C.uint32_t(v)
		}
		return (*C.uint32_t)(p)
	}
	names, ranges, nodeOf, localOf := layout(j)
	own := j.Nodes[j.Part].Tasks
	c.namespace, c.id, c.dir, c.host = text(j.Namespace), text(j.Namespace), text(j.Dir), text(j.Nodes[j.Part].Name)
	c.size, c.nodes, c.node, c.here = C.uint32_t(len(nodeOf)), C.uint32_t(len(j.Nodes)), C.uint32_t(j.Part), C.uint32_t(len(own))
	c.node_names, c.node_tasks, c.peers = text(names), text(ranges), text(list(own))
	c.tasks, c.node_of, c.local_of = numbers(own), numbers(nodeOf), numbers(localOf)
	if err := failure(C.pmix_serve(&c)); err != nil {
		return nil, err
	}
	var envs [][]string
	for _, t := range own {
		var v **C.char
		if err := failure(C.pmix_environment(c.namespace, C.uint32_t(t), &v)); err != nil {
			return nil, err
		}
		envs = append(envs, strs(v))
	}
	return envs, nil
}

// opened tries the names of the library in turn.
func opened(names []string) error {
	var all []error
	for _, name := range names {
		n := C.CString(name)
		err := failure(C.pmix_open(n))
		C.free(unsafe.Pointer(n))
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func failure(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return errors.New(C.GoString(text))
}

// strs reads an array of texts that ends with NULL.
func strs(v **C.char) (out []string) {
	for ; v != nil && *v != nil; v = (**C.char)(unsafe.Add(unsafe.Pointer(v), unsafe.Sizeof(*v))) {
		out = append(out, C.GoString(*v))
	}
	return out
}

//export pmixFence
func pmixFence(blob *C.char, size C.size_t, call, data unsafe.Pointer) {
	published := C.GoBytes(unsafe.Pointer(blob), C.int(size))
	here.mu.Lock()
	here.call, here.data = call, data
	here.mu.Unlock()
	_ = here.say(&pmi.XSaid{Fence: true, Data: published}) // gstep is gone: so are the tasks
}

//export pmixAborted
func pmixAborted(task C.uint32_t, status C.int, text *C.char) {
	why := strings.TrimSpace(C.GoString(text))
	if why == "" || why == "N/A" { // as Open MPI says that it has no text
		why = fmt.Sprintf("status %d", int(status))
	}
	_ = here.say(&pmi.XSaid{Abort: &pmi.XAbort{Task: int(task), Text: why}})
}
