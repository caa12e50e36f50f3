package proc

import (
	"os"
	"testing"
	"time"
)

func TestParseOOM(t *testing.T) {
	for record, want := range map[string]struct {
		pid  int
		at   time.Duration
		used int64
	}{
		"6,1234,5678901,-;Out of memory: Killed process 42 (python) total-vm:1kB, anon-rss:1kB, file-rss:8kB, shmem-rss:2kB, UID:0\n": {42, 5678901 * time.Microsecond, 3 << 10},
		"3,9,17,-;Memory cgroup out of memory: Killed process 7 (a b) total-vm:9kB\n SUBSYSTEM=x\n":                                   {7, 17 * time.Microsecond, 0},
		"3,9,17,-;Out of memory: Killed process 7 (anon-rss:9kB, ) b) anon-rss:4kB\n":                                                 {7, 17 * time.Microsecond, 4 << 10},
		"6,1234,5678901,-;oom-kill:constraint=CONSTRAINT_NONE,task=python,pid=42,uid=0\n":                                             {},
		"6,1234,5678901,-;usb 1-1: Killed process 42 by a joke\n":                                                                     {},
		"6,1234;Out of memory: Killed process 42\n":                                                                                   {},
		"6,1,x,-;Out of memory: Killed process 42\n":                                                                                  {},
		"6,1,2,-;Out of memory: Killed process (python)\n":                                                                            {},
		"": {},
	} {
		kill, at, ok := parseOOM([]byte(record))
		if !ok {
			kill, at = OOMKill{}, 0
		}
		if kill != (OOMKill{want.pid, want.used}) || at != want.at {
			t.Errorf("%q: %+v at %v", record, kill, at)
		}
	}
}

// TestOOMLogOfThisMachine: whatever the log holds, this process lives.
func TestOOMLogOfThisMachine(t *testing.T) {
	if _, killed := OOMKilled([]int{os.Getpid()}, time.Minute); killed {
		t.Error("killed for want of memory, and here")
	}
}
