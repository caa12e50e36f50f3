package shim

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhoHangsUpWakesNobody: a launcher may close its end of the socket and live on. The shim would find that at each
// poll, and never sleep again.
func TestWhoHangsUpWakesNobody(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{steps: []*stepProc{{ctl: pair[0]}}}
	if err := unix.Close(pair[1]); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		fds := m.watchSteps(nil)
		n, err := unix.Poll(fds, 0)
		if n != want || err != nil {
			t.Fatalf("%d of its descriptors are ready, %v; want %d", n, err, want)
		}
		m.hearSteps(fds)
	}
	m.steps[0].tell(LauncherOrder{Stop: true}) // as to one that does not read
}
