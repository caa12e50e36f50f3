package proc

import (
	"bytes"
	"strconv"
	"sync"
	"time"
)

// What a process holds in its memory (its environment, its command line, the map of its pages) is read through that memory.
// A page of it may be that of a file system which a user serves himself and that never answers, and who reads it waits as
// long. Nobody but the process may be held up by that: each such look has a time, and a process whose look has not come back
// is not looked at again until it has.

// peekTime is for how long a page of memory is waited for: it is there, or comes from a disk. shareTime is for a walk
// through all pages of a process, which takes the kernel 0.2 ms for each GiB of small ones.
const (
	peekTime  = 50 * time.Millisecond
	shareTime = time.Second
)

// maxHanging bounds the looks that hang, each of which is a thread.
const maxHanging = 64

// Looks are looks at things that may not come back: each has a time, one thing is looked at once at a time, and is not
// looked at again until the look that hangs has come back. The zero value is ready.
type Looks[K comparable, V any] struct {
	mu      sync.Mutex
	hanging map[K]bool
}

// Take is what a look at k gives; ok is false where it takes longer than d, or k or very many others have not come back.
func (l *Looks[K, V]) Take(k K, d time.Duration, look func() V) (v V, ok bool) {
	if l.Full() || l.hangs(k) {
		return v, false
	}
	got := make(chan V, 1)
	go func() {
		got <- look()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.hanging, k)
	}()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case v := <-got:
		return v, true
	case <-late.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case v := <-got: // between the timer and the lock
		return v, true
	default:
	}
	if l.hanging == nil {
		l.hanging = map[K]bool{}
	}
	l.hanging[k] = true
	return v, false
}

func (l *Looks[K, V]) hangs(k K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hanging[k]
}

// Full reports whether so many looks hang that none is begun.
func (l *Looks[K, V]) Full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.hanging) >= maxHanging
}

// processes are looked at through their memory.
var processes Looks[int, []byte]

func soon(pid int, d time.Duration, look func() []byte) []byte {
	b, _ := processes.Take(pid, d, look)
	return b
}

// read is a file of a process that is read through its memory, nil where it can't be read, or not soon.
func read(pid int, name string, d time.Duration) []byte {
	return soon(pid, d, func() []byte {
		b, err := readAll("/proc/" + strconv.Itoa(pid) + "/" + name)
		if err != nil {
			return nil
		}
		return b
	})
}

// CommandLine is what a process was started with, each word with a NUL behind it.
func CommandLine(pid int) []byte { return read(pid, "cmdline", peekTime) }

// Variable is one of the environment that a process was started with; empty also where that is not known.
func Variable(pid int, name string) string {
	_, rest, found := bytes.Cut(append([]byte{0}, read(pid, "environ", peekTime)...), []byte("\x00"+name+"="))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte{0})
	return string(value)
}

// environ looks for want, which has a NUL on both sides, in what a process was started with. Empty is true when there was nothing
// to read: `env -i`, or a process in the middle of an exec.
func environ(pid int, want []byte) (found, empty bool) {
	b := read(pid, "environ", peekTime)
	return bytes.Contains(append([]byte{0}, b...), want), b != nil && len(b) == 0
}
