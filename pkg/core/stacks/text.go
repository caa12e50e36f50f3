package stacks

import (
	"regexp"
	"strconv"
	"strings"
)

// Thread is a stack as one source gives it.
type Thread struct {
	TID    int // 0: the source does not say
	Main   bool
	Frames []string
	Lines  []int // of the frames; 0: not known
}

var (
	pySpyThread = regexp.MustCompile(`^Thread (0x[0-9a-fA-F]+|[0-9]+)\b.*?(?:: "(.*)")?$`)
	pySpyFrame  = regexp.MustCompile(`^\s+(.+) \((.+?)(?::([0-9]+))?\)$`)
	faultThread = regexp.MustCompile(`^(?:Current thread|Thread) 0x([0-9a-fA-F]+).*\(most recent call first\):`)
	faultFrame  = regexp.MustCompile(`^\s+File "(.*)", line ([0-9]+|\?\?\?) in (.+)$`)
	gdbThread   = regexp.MustCompile(`^Thread [0-9]+ \(.*?\b(?:LWP |process )([0-9]+)`)
	euThread    = regexp.MustCompile(`^TID ([0-9]+):`)
	nativeFrame = regexp.MustCompile(`^#[0-9]+\s+(?:0x[0-9a-fA-F]+(?: in)? )?(.*?)(?: (?:from|at) (\S+).*)?$`)
)

// PySpy reads what `py-spy dump` prints.
func PySpy(text string) []Thread {
	return read(text, func(line string) (Thread, bool) {
		m := pySpyThread.FindStringSubmatch(line)
		if m == nil {
			return Thread{}, false
		}
		t := Thread{Main: m[2] == "MainThread"}
		if !strings.HasPrefix(m[1], "0x") {
			t.TID, _ = strconv.Atoi(m[1])
		}
		return t, true
	}, func(line string) (string, int) {
		if m := pySpyFrame.FindStringSubmatch(line); m != nil {
			return Frame(m[1], m[2]), lineNumber(m[3])
		}
		return "", 0
	})
}

// Faulthandler reads what Python's faulthandler writes. It names threads by an address; the main one is the last.
func Faulthandler(text string) []Thread {
	out := read(text, func(line string) (Thread, bool) {
		if faultThread.MatchString(line) || strings.HasPrefix(line, "Stack (most recent call first):") {
			return Thread{}, true
		}
		return Thread{}, false
	}, func(line string) (string, int) {
		if m := faultFrame.FindStringSubmatch(line); m != nil {
			return Frame(m[3], m[1]), lineNumber(m[2])
		}
		return "", 0
	})
	if len(out) > 0 {
		out[len(out)-1].Main = true
	}
	return out
}

// Native reads what `eu-stack -p` and gdb's `thread apply all bt` print of process pid.
func Native(text string, pid int) []Thread {
	return read(text, func(line string) (Thread, bool) {
		m := euThread.FindStringSubmatch(line)
		if m == nil {
			m = gdbThread.FindStringSubmatch(line)
		}
		if m == nil {
			return Thread{}, false
		}
		tid, _ := strconv.Atoi(m[1])
		return Thread{TID: tid, Main: tid == pid}, true
	}, func(line string) (string, int) {
		m := nativeFrame.FindStringSubmatch(line)
		if m == nil || strings.TrimSpace(m[1]) == "" || strings.HasPrefix(m[1], "0x") {
			return "", 0 // an address without a name is another one in each process
		}
		return Frame(m[1], ""), 0
	})
}

// lineNumber is that of a line as a debugger writes it, 0 where it is none.
func lineNumber(s string) int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// read takes a text apart by lines that begin a thread and lines that are frames of it.
func read(text string, thread func(string) (Thread, bool), frame func(string) (string, int)) (out []Thread) {
	const mostThreads, mostFrames = 256, 512
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if t, ok := thread(line); ok {
			if len(out) == mostThreads {
				break
			}
			out = append(out, t)
			continue
		}
		if len(out) == 0 || len(out[len(out)-1].Frames) == mostFrames {
			continue
		}
		if f, n := frame(line); f != "" {
			t := &out[len(out)-1]
			t.Frames, t.Lines = append(t.Frames, f), append(t.Lines, n)
		}
	}
	for i := range out {
		out[i].Frames, out[i].Lines = Bounded(out[i].Frames), Bounded(out[i].Lines)
	}
	return out
}
