package pystack

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a Python process.
type Process struct {
	pid     int
	memory  Memory
	runtime uint64
	layout  layout
	codes   map[uint64]*code
}

// memoryOf reads that of another process as the kernel lets this one.
type memoryOf int

func (pid memoryOf) Read(p []byte, address uint64) bool {
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := unix.ProcessVMReadv(int(pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(p)}}, 0)
	return err == nil && n == len(p)
}

// pythonFile is a program or a library that has the interpreter in it.
var pythonFile = regexp.MustCompile(`^(?:lib)?python3\.([0-9]+)[a-z]*(?:\.so.*)?$|^python3?$`)

// ErrNoPython: the process is no Python.
var ErrNoPython = errors.New("no Python")

// Find looks for the interpreter in a process.
func Find(pid int) (*Process, error) {
	files, err := mappings(pid)
	if err != nil {
		return nil, err
	}
	failed := ErrNoPython
	for _, f := range files {
		m := pythonFile.FindStringSubmatch(filepath.Base(f.path))
		if m == nil {
			continue
		}
		s, err := symbols.of(pid, &f)
		if err != nil {
			failed = err
			continue
		}
		v := s.version
		if v == 0 {
			v, _ = strconv.Atoi(m[1])
		}
		p := &Process{pid: pid, memory: memoryOf(pid), runtime: s.runtime + f.start - s.base, codes: map[uint64]*code{}}
		if p.layout, err = layoutOf(version(v)); err != nil {
			return nil, err
		}
		return p, p.ask(v)
	}
	return nil, failed
}

// ask has the process say where things lie, where its version does.
func (p *Process) ask(v int) error {
	var head [debugThreads + 8]byte
	if !p.memory.Read(head[:], p.runtime) {
		return fmt.Errorf("the memory of process %d may not be read", p.pid)
	}
	if string(head[:len(debugCookie)]) == debugCookie && v >= 13 {
		p.layout.interpreters = binary.LittleEndian.Uint64(head[debugInterpreters:])
		p.layout.threads = binary.LittleEndian.Uint64(head[debugThreads:])
	}
	return nil
}

// Threads are those in which Python runs, the main one first. asked tells of which variables the values are read; nil: of none.
func (p *Process) Threads(asked func(name string) bool) ([]Thread, error) {
	r := reader{memory: p.memory, l: p.layout, left: mostReads, codes: p.codes, asked: asked}
	out, err := r.threads(p.runtime)
	if err != nil {
		return nil, err
	}
	main := len(out) - 1 // the first that was made, where the version does not say
	for i := range out {
		if out[i].TID == p.pid {
			main = i
		}
	}
	out[main].Main, out[main].TID = true, p.pid
	out[0], out[main] = out[main], out[0]
	return out, nil
}

// mapping is a file in the memory of a process.
type mapping struct {
	path  string
	start uint64
	dev   string
	inode string
}

// mappings are the files that a process has in its memory from their beginning.
func mappings(pid int) (out []mapping, err error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan() && n < 20000; n++ {
		// start-end perms offset dev inode      path, which may have blanks in it
		field := strings.SplitN(lines.Text(), " ", 6)
		if len(field) < 6 || strings.Trim(field[2], "0") != "" {
			continue
		}
		field[5] = strings.TrimLeft(field[5], " ")
		start, _, _ := strings.Cut(field[0], "-")
		at, err := strconv.ParseUint(start, 16, 64)
		if err != nil {
			continue
		}
		out = append(out, mapping{path: field[5], start: at, dev: field[3], inode: field[4]})
	}
	return out, lines.Err()
}

// symbolTable is what a file says of the interpreter in it.
type symbolTable struct {
	base    uint64 // address that its first byte is meant for
	runtime uint64
	version int // 0: it does not say
	err     error
}

// cache keeps the tables of files: all ranks of a node mostly run the same one.
type cache struct {
	mu    sync.Mutex
	known map[string]*symbolTable
}

var symbols = cache{known: map[string]*symbolTable{}}

func (c *cache) of(pid int, m *mapping) (*symbolTable, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := m.dev + " " + m.inode
	s := c.known[key]
	if s == nil {
		s = readSymbols("/proc/" + strconv.Itoa(pid) + "/root" + m.path)
		c.known[key] = s
	}
	return s, s.err
}

// readSymbols reads a file that a user named: it is opened as who this process is, and never waited for.
func readSymbols(path string) (out *symbolTable) {
	defer func() {
		if recover() != nil { // a file may be anything
			out = &symbolTable{err: fmt.Errorf("%s: no program", path)}
		}
	}()
	fd, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return &symbolTable{err: err}
	}
	defer fd.Close()
	if st, err := fd.Stat(); err != nil || !st.Mode().IsRegular() {
		return &symbolTable{err: fmt.Errorf("%s: no regular file", path)}
	}
	f, err := elf.NewFile(fd)
	if err != nil {
		return &symbolTable{err: err}
	}
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB {
		return &symbolTable{err: fmt.Errorf("%s: no 64-bit program", path)}
	}
	out = &symbolTable{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			out.base = p.Vaddr - p.Off
			break
		}
	}
	for _, list := range []func() ([]elf.Symbol, error){f.DynamicSymbols, f.Symbols} {
		all, _ := list()
		for i := range all {
			switch s := &all[i]; {
			case s.Section == elf.SHN_UNDEF:
			case s.Name == "_PyRuntime":
				out.runtime = s.Value
			case s.Name == "Py_Version":
				out.version = minorOf(f, s)
			}
		}
		if out.runtime != 0 {
			return out
		}
	}
	out.err = fmt.Errorf("%s: has no interpreter that can be found", path)
	return out
}

// minorOf reads the minor release out of the constant of that name.
func minorOf(f *elf.File, s *elf.Symbol) int {
	if int(s.Section) >= len(f.Sections) {
		return 0
	}
	section := f.Sections[s.Section]
	var b [8]byte
	if _, err := section.ReadAt(b[:], int64(s.Value-section.Addr)); err != nil {
		return 0
	}
	v := binary.LittleEndian.Uint64(b[:])
	if v>>24 != 3 {
		return 0
	}
	return int(v>>16) & 0xff
}
