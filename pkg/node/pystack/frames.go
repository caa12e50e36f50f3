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
	mostLocals  = 128 // variables of a function whose names are looked at
	mostLines   = 64 << 10
	pageBytes   = 4096 // that cost as much as a read
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
type Frame struct {
	Function, File string
	Line           int     // 0: it can't be told
	Values         []Value // of variables that were asked for, those that are numbers
}

// Value is a variable that is a number.
type Value struct {
	Name   string
	Number int64
}

// errStrange: what was read is not what this version looks like, or changed meanwhile.
var errStrange = errors.New("its memory does not look like Python's")

// reader walks over one process.
type reader struct {
	memory   Memory
	l        layout
	left     int              // reads
	codeType uint64           // that is called "code"; 0: none was found yet
	intType  uint64           // that is called "int"
	codes    map[uint64]*code // by address
	asked    func(name string) bool
	word     [8]byte
}

func (r *reader) read(p []byte, at uint64) bool {
	if r.left == 0 {
		return false
	}
	r.left -= min(r.left, 1+len(p)/pageBytes)
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
		c := r.code(r.pointer(at + r.l.code))
		switch {
		case c == nil: // the interpreter has frames of its own between those of programs
			strange++
		case c.file != "<shim>": // so has 3.12, with a name
			out = append(out, Frame{Function: c.function, File: c.file, Line: r.line(at, c), Values: r.values(at, c)})
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

// code is what is known of a code object.
type code struct {
	at             uint64
	function, file string
	asked          []variable
	offset, line   int // the last one that was looked up
}

// variable is one that was asked for, by its place.
type variable struct {
	name  string
	place uint64
}

// code reads a code object, nil where there is none.
func (r *reader) code(at uint64) *code {
	if at == 0 || !r.isA(at, &r.codeType, "code") {
		return nil
	}
	if c := r.codes[at]; c != nil {
		return c
	}
	c := &code{at: at, offset: -1}
	var ok1, ok2 bool
	c.function, ok1 = r.text(r.pointer(at + r.l.name))
	c.file, ok2 = r.text(r.pointer(at + r.l.file))
	if !ok1 || !ok2 {
		return nil
	}
	c.asked = r.variables(at)
	r.codes[at] = c
	return c
}

// isA tells whether an object is of the type of a name, which is kept once it was found.
func (r *reader) isA(at uint64, known *uint64, name string) bool {
	kind := r.pointer(at + typeOf)
	if kind == 0 {
		return false
	}
	if kind == *known {
		return true
	}
	b := make([]byte, len(name)+1)
	if p := r.pointer(kind + typeName); p == 0 || !r.read(b, p) || string(b) != name+"\x00" {
		return false
	}
	*known = kind
	return true
}

// variables finds those of a function that were asked for.
func (r *reader) variables(code uint64) (out []variable) {
	if r.asked == nil {
		return nil
	}
	n := min(int(int32(r.pointer(code+r.l.count))), mostLocals)
	tuple := r.pointer(code + r.l.variables)
	if n <= 0 || tuple == 0 {
		return nil
	}
	names := make([]byte, 8*n)
	if !r.read(names, tuple+tupleItems) {
		return nil
	}
	for i := range n {
		if name := r.shortText(binary.LittleEndian.Uint64(names[8*i:])); name != "" && r.asked(name) {
			out = append(out, variable{name, uint64(i)})
		}
	}
	return out
}

// shortText reads a string of ASCII of up to 16 characters, in one read.
func (r *reader) shortText(at uint64) string {
	var b [64]byte
	if at == 0 || !r.read(b[:], at) {
		return ""
	}
	length := binary.LittleEndian.Uint64(b[stringLength:])
	if length > 16 || binary.LittleEndian.Uint32(b[stringState:])&(compactBit|asciiBit) != compactBit|asciiBit {
		return ""
	}
	return string(b[r.l.ascii : r.l.ascii+length])
}

// values are those of the variables of a frame that were asked for and are numbers.
func (r *reader) values(frame uint64, c *code) (out []Value) {
	for _, v := range c.asked {
		if n, ok := r.number(r.pointer(frame + r.l.locals + 8*v.place)); ok {
			out = append(out, Value{v.name, n})
		}
	}
	return out
}

// number reads an int of up to 60 bits.
func (r *reader) number(at uint64) (int64, bool) {
	if at == 0 || !r.isA(at, &r.intType, "int") {
		return 0, false
	}
	size := int64(r.pointer(at + numberSize))
	negative := size < 0
	if negative {
		size = -size
	}
	if r.l.taggedNumbers {
		negative, size = size&3 == 2, size>>3
	}
	digits := r.pointer(at + numberDigits)
	n := int64(digits & (1<<30 - 1))
	switch size {
	case 0:
		n = 0
	case 1:
	case 2:
		n |= int64(digits>>32&(1<<30-1)) << 30
	default:
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
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
