package limits

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api/rlimit"
)

// TestNames: what is read is what travels.
func TestNames(t *testing.T) {
	for name := range Own() {
		if !slices.Contains(rlimit.Names, name) {
			t.Errorf("%s is read and does not travel", name)
		}
	}
	if len(Own()) != len(rlimit.Names) {
		t.Errorf("%v is read, %v travels", Own(), rlimit.Names)
	}
}

// TestOwn: what a shell leaves a program, and not what Go makes of it.
func TestOwn(t *testing.T) {
	if os.Getenv("RLIMIT_TEST") != "" {
		fmt.Print(Own()["NOFILE"])
		os.Exit(0)
	}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Max < 300 {
		t.Skip("too few files for a test")
	}
	cmd := exec.Command("/bin/sh", "-c", "ulimit -S -n 222; exec "+os.Args[0]+" -test.run '^TestOwn$'")
	cmd.Env = append(os.Environ(), "RLIMIT_TEST=1")
	out, err := cmd.Output()
	if err != nil || string(out) != "222" {
		t.Errorf("%q %v: want 222, as the shell said", out, err)
	}
}

// TestSet: what is above the hard limit is that, and the number of processes is never raised.
func TestSet(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "ulimit -n 500; ulimit -S -n 400; echo; read go; ulimit -n")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, _ = out.Read(b[:])
	Set(rlimit.Soft{"NOFILE": rlimit.Unlimited, "NPROC": rlimit.Unlimited}, cmd.Process.Pid)
	var l, own unix.Rlimit
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NPROC, nil, &l); err != nil {
		t.Fatal(err)
	}
	_ = unix.Getrlimit(unix.RLIMIT_NPROC, &own)
	if l.Cur > own.Cur {
		t.Errorf("the limit of processes was raised: %d", l.Cur)
	}
	_, _ = in.Write([]byte("\n"))
	var text [16]byte
	n, _ := out.Read(text[:])
	if got := strings.TrimSpace(string(text[:n])); got != "500" {
		t.Errorf("%s open files, want the hard limit of 500", got)
	}
	_ = cmd.Wait()
}
