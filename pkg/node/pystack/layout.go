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
	instruction, locals                   uint64 // in a frame: where it is, and its variables
	ascii, text                           uint64 // what comes before the characters
	name, file                            uint64 // in a code object
	// Further in a code object: the first line, where the instructions of which line are told, how many variables there are
	// and their names.
	firstLine, lines, count, variables uint64
	// instructions are the ones themselves, in a code object; 0: a frame counts its own from their beginning, in units.
	instructions, units uint64
	lineForm            lineForm
	taggedNumbers       bool // the sign of a number is not that of its size
}

// lineForm is how a code object tells the lines of its instructions.
type lineForm int

const (
	linesBySteps   lineForm = iota // lnotab, to 3.9: pairs of what is added to the instruction and to the line
	linesByRanges                  // 3.10: pairs of how long a line goes on and what is added to it
	linesByEntries                 // 3.11: entries with columns
)

// What lies at the same place in all of them.
const (
	typeOf, typeName          = 8, 24
	stringLength, stringState = 16, 32
	bytesLength, bytesData    = 16, 32
	tupleItems                = 24
	numberSize, numberDigits  = 16, 24
	kindShift, kindMask       = 2, 7
	compactBit, asciiBit      = 1 << 5, 1 << 6
	debugCookie               = "xdebugpy"
	debugInterpreters         = 40 // in what 3.13 says of itself
	debugThreads              = 72
)

// layouts are of 64-bit builds with a GIL.
var layouts = map[version]layout{
	8:  before10,
	9:  before10,
	10: of10,
	11: of11,
	12: of12,
	13: of13,
}

var before10 = layout{
	interpreters: 32, threads: 8, next: 8, threadID: 176, frame: 24,
	code: 32, previous: 24, instruction: 104, locals: 360, ascii: 48, text: 72,
	name: 112, file: 104, firstLine: 40, lines: 120, count: 28, variables: 72, units: 1, lineForm: linesBySteps,
}

var of10 = layout{
	interpreters: 32, threads: 8, next: 8, threadID: 176, frame: 24,
	code: 32, previous: 24, instruction: 96, locals: 352, ascii: 48, text: 72,
	name: 112, file: 104, firstLine: 40, lines: 120, count: 28, variables: 72, units: 2, lineForm: linesByRanges,
}

var of11 = layout{
	interpreters: 40, threads: 16, next: 8, threadID: 152, native: 160, cframe: 56, frame: 8,
	code: 32, previous: 48, instruction: 56, locals: 72, ascii: 48, text: 72,
	name: 120, file: 112, firstLine: 72, lines: 136, count: 80, variables: 96, instructions: 184, lineForm: linesByEntries,
}

var of12 = layout{
	interpreters: 40, threads: 72, next: 8, threadID: 136, native: 144, cframe: 56, frame: 0,
	code: 0, previous: 8, instruction: 56, locals: 72, ascii: 40, text: 56,
	name: 120, file: 112, firstLine: 68, lines: 136, count: 80, variables: 96, instructions: 192, lineForm: linesByEntries,
	taggedNumbers: true,
}

var of13 = layout{
	interpreters: 632, threads: 7344, next: 8, threadID: 152, native: 160, frame: 72,
	code: 0, previous: 8, instruction: 56, locals: 72, ascii: 40, text: 56,
	name: 120, file: 112, firstLine: 68, lines: 136, count: 80, variables: 96, instructions: 200, lineForm: linesByEntries,
	taggedNumbers: true,
}

func layoutOf(v version) (layout, error) {
	l, ok := layouts[v]
	if !ok {
		return layout{}, fmt.Errorf("no layout of Python 3.%d is known", v)
	}
	return l, nil
}
