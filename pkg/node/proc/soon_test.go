package proc

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

const never = time.Hour

// TestLooksThatHang: what does not come back holds up nobody for longer than its time, is not looked at again until it
// has, and is seen again then. Others are seen meanwhile.
func TestLooksThatHang(t *testing.T) {
	var l Looks[string, int]
	free, back := make(chan struct{}), make(chan struct{})
	if _, ok := l.Take("a", time.Millisecond, func() int { defer close(back); <-free; return 1 }); ok {
		t.Fatal("a look that did not come back gave something")
	}
	if _, ok := l.Take("a", never, func() int { t.Error("looked at again"); return 1 }); ok {
		t.Error("what hangs was seen")
	}
	if v, ok := l.Take("b", never, func() int { return 7 }); !ok || v != 7 {
		t.Errorf("another beside it: %d, %t", v, ok)
	}
	close(free)
	<-back
	for {
		if v, ok := l.Take("a", never, func() int { return 8 }); ok {
			if v != 8 {
				t.Errorf("after it came back: %d", v)
			}
			return
		}
	}
}

// TestVeryManyLooksHang: there are no more threads than so many, and then nothing is seen; a scan for marks proves nothing.
func TestVeryManyLooksHang(t *testing.T) {
	free := make(chan struct{})
	for pid := range maxHanging {
		if b := soon(-1-pid, time.Microsecond, func() []byte { <-free; return []byte{1} }); b != nil {
			t.Fatalf("%d gave something", pid)
		}
	}
	if b := soon(1, never, func() []byte { return []byte{1} }); b != nil || !processes.Full() {
		t.Error("one more was looked at")
	}
	if _, err := (&group{marker: "GANG_TEST=1"}).PIDs(); !errors.Is(err, errHidden) {
		t.Errorf("a scan that sees no marks says %v", err)
	}
	close(free)
	for processes.Full() {
		time.Sleep(time.Millisecond)
	}
}

// TestWhatAProcessWasStartedWith reads this one's own.
func TestWhatAProcessWasStartedWith(t *testing.T) {
	me := os.Getpid()
	name, value, _ := strings.Cut(os.Environ()[0], "=")
	if got := Variable(me, name); got != value {
		t.Errorf("%s is %q, want %q", name, got, value)
	}
	if got := Variable(me, "GANGD_NOT_THERE"); got != "" {
		t.Errorf("a variable that is not there: %q", got)
	}
	for _, c := range []struct {
		pid  int
		want string
		has  bool
	}{{me, name + "=" + value, true}, {me, name + "=" + value + "x", false}, {1 << 30, name + "=" + value, false}} {
		if found, empty := environ(c.pid, []byte("\x00"+c.want+"\x00")); found != c.has || empty {
			t.Errorf("%d %q: found %t, empty %t", c.pid, c.want, found, empty)
		}
	}
	if got := string(CommandLine(me)); got != strings.Join(os.Args, "\x00")+"\x00" {
		t.Errorf("%q", got)
	}
}
