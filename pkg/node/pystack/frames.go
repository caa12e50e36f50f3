package pystack

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// Bounds of one process.
const (
	mostThreads = 128
	mostFrames  = 256 // of a thread
	mostReads   = 200_000
	mostName    = 256 // characters
)

// Memory is that of a process.
type Memory interface {
	// Read fills p from an address, or reports that it can't.
	Read(p []byte, address uint64) bool
}

// Thread is one that runs Python.
type Thread struct {
	TID    int // 0: this version does not say
	Main   bool
	Frames []Frame // innermost first
}

// Frame is a call of a function.
type Frame struct{ Function, File string }

// errStrange: what was read is not what this version looks like, or changed meanwhile.
var errStrange = errors.New("its memory does not look like Python's")

// reader walks over one process.
type reader struct {
	memory   Memory
	l        layout
	left     int              // reads
	codeType uint64           // that is called "code"; 0: none was found yet
	names    map[uint64]Frame // by code object
	word     [8]byte
}

func (r *reader) read(p []byte, at uint64) bool {
	if r.left == 0 {
		return false
	}
	r.left--
	return r.memory.Read(p, at)
}

// pointer is the word at an address, 0 where there is none.
func (r *reader) pointer(at uint64) uint64 {
	if !r.read(r.word[:], at) {
		return 0
	}
	return binary.LittleEndian.Uint64(r.word[:])
}

// threads lists the threads of the main interpreter, the newest first as they are linked, with their frames.
func (r *reader) threads(runtime uint64) ([]Thread, error) {
	interpreter := r.pointer(runtime + r.l.interpreters)
	// Others, if there are any, are linked before it; the main one was made first.
	for range mostThreads {
		next := r.pointer(interpreter) // 3.8 to 3.10
		if interpreter == 0 || next == 0 || r.l.interpreters != 32 {
			break
		}
		interpreter = next
	}
	if interpreter == 0 {
		return nil, errStrange
	}
	var out []Thread
	for at := r.pointer(interpreter + r.l.threads); at != 0 && len(out) < mostThreads; at = r.pointer(at + r.l.next) {
		t := Thread{Frames: r.frames(at)}
		if r.l.native != 0 {
			t.TID = int(int32(r.pointer(at + r.l.native)))
		}
		out = append(out, t)
	}
	if len(out) == 0 || r.codeType == 0 {
		return nil, errStrange
	}
	return out, nil
}

// frames are the calls of a thread, nil where they can't be followed to the end.
func (r *reader) frames(thread uint64) []Frame {
	at := thread
	if r.l.cframe != 0 {
		at = r.pointer(thread + r.l.cframe)
	}
	if at == 0 {
		return nil
	}
	out := []Frame{}
	strange := 0
	for at = r.pointer(at + r.l.frame); at != 0; at = r.pointer(at + r.l.previous) {
		f, ok := r.code(r.pointer(at + r.l.code))
		switch {
		case !ok: // the interpreter has frames of its own between those of programs
			strange++
		case f.File != "<shim>": // so has 3.12, with a name
			out = append(out, f)
		}
		if len(out)+strange >= mostFrames || r.left == 0 {
			break
		}
	}
	if strange > len(out)+2 {
		return nil
	}
	return out
}

// code names the function of a code object.
func (r *reader) code(at uint64) (Frame, bool) {
	if at == 0 {
		return Frame{}, false
	}
	kind := r.pointer(at + typeOf)
	if kind == 0 {
		return Frame{}, false
	}
	if kind != r.codeType {
		var name [5]byte
		if p := r.pointer(kind + typeName); p == 0 || !r.read(name[:], p) || string(name[:]) != "code\x00" {
			return Frame{}, false
		}
		r.codeType = kind
	}
	if f, ok := r.names[at]; ok {
		return f, true
	}
	name, ok1 := r.text(r.pointer(at + r.l.name))
	file, ok2 := r.text(r.pointer(at + r.l.file))
	if !ok1 || !ok2 {
		return Frame{}, false
	}
	f := Frame{Function: name, File: file}
	r.names[at] = f
	return f, true
}

// text reads a string. Of a long one, as a path may be, it is the end.
func (r *reader) text(at uint64) (string, bool) {
	if at == 0 {
		return "", false
	}
	length := r.pointer(at + stringLength)
	state := uint32(r.pointer(at + stringState))
	if length == 0 || length > 1<<20 || state&compactBit == 0 {
		return "", length == 0
	}
	width := uint64(state>>kindShift) & kindMask
	start := at + r.l.text
	if state&asciiBit != 0 {
		start = at + r.l.ascii
	}
	if width != 1 && width != 2 && width != 4 {
		return "", false
	}
	if length > mostName {
		start += (length - mostName) * width
		length = mostName
	}
	b := make([]byte, length*width)
	if !r.read(b, start) {
		return "", false
	}
	out := make([]rune, 0, length)
	for i := uint64(0); i < uint64(len(b)); i += width {
		var c uint32
		switch width {
		case 1:
			c = uint32(b[i])
		case 2:
			c = uint32(binary.LittleEndian.Uint16(b[i:]))
		case 4:
			c = binary.LittleEndian.Uint32(b[i:])
		}
		if c > utf8.MaxRune {
			return "", false
		}
		out = append(out, rune(c))
	}
	return string(out), true
}
