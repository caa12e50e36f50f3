package pystack

import "fmt"

// version is a minor release of CPython 3.
type version int

// layout is where things lie in one version, in bytes.
type layout struct {
	interpreters, threads, next, threadID uint64
	native                                uint64 // number of the thread for the kernel; 0: it is not there
	cframe                                uint64 // 0: the thread names its frame itself
	frame                                 uint64
	code, previous                        uint64 // in a frame
	ascii, text                           uint64 // what comes before the characters
	name, file                            uint64 // in a code object
}

// What lies at the same place in all of them.
const (
	typeOf, typeName          = 8, 24
	stringLength, stringState = 16, 32
	kindShift, kindMask       = 2, 7
	compactBit, asciiBit      = 1 << 5, 1 << 6
	debugCookie               = "xdebugpy"
	debugInterpreters         = 40 // in what 3.13 says of itself
	debugThreads              = 72
)

// layouts are of 64-bit builds with a GIL.
var layouts = map[version]layout{
	8:  {interpreters: 32, threads: 8, next: 8, threadID: 176, frame: 24, code: 32, previous: 24, name: 112, file: 104, ascii: 48, text: 72},
	9:  {interpreters: 32, threads: 8, next: 8, threadID: 176, frame: 24, code: 32, previous: 24, name: 112, file: 104, ascii: 48, text: 72},
	10: {interpreters: 32, threads: 8, next: 8, threadID: 176, frame: 24, code: 32, previous: 24, name: 112, file: 104, ascii: 48, text: 72},
	11: {interpreters: 40, threads: 16, next: 8, threadID: 152, native: 160, cframe: 56, frame: 8, code: 32, previous: 48, name: 120, file: 112, ascii: 48, text: 72},
	12: {interpreters: 40, threads: 72, next: 8, threadID: 136, native: 144, cframe: 56, frame: 0, code: 0, previous: 8, name: 120, file: 112, ascii: 40, text: 56},
	13: {interpreters: 632, threads: 7344, next: 8, threadID: 152, native: 160, frame: 72, code: 0, previous: 8, name: 120, file: 112, ascii: 40, text: 56},
}

func layoutOf(v version) (layout, error) {
	l, ok := layouts[v]
	if !ok {
		return layout{}, fmt.Errorf("no layout of Python 3.%d is known", v)
	}
	return l, nil
}
