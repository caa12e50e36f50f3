package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// floor is what this machine takes, in milliseconds, for what nothing that is measured here can do without. It is measured in
// the same run, because all of it doubles and halves with what the host does besides.
type floor struct {
	fork    float64 // fork and exec of /bin/true, to its end, by a program of a few MB
	sync    float64 // 4 KiB written over themselves, and fdatasync
	trip    float64 // a line through a socket to another process's thread, and back
	program float64 // start and end of an empty Go program
}

// need is how much of each a row can't do without, one after the other.
type need struct{ forks, syncs, trips, programs float64 }

// of is the floor of one row, 0: it has none.
func (n need) of(f floor) float64 {
	return n.forks*f.fork + n.syncs*f.sync + n.trips*f.trip + n.programs*f.program
}

// each is what one of many takes that are done side by side, on all processors.
var each = 1 / float64(runtime.NumCPU())

var (
	// aClient is a program that asks something.
	aClient = need{programs: 1, trips: 1}
	// aSubmission is a client whose job is on disk when it is told so.
	aSubmission = need{programs: 1, trips: 1, syncs: 1}
	// aStart is a start as one would write it by hand, with programs of its own: a client and a supervisor, two facts on
	// disk (the job; that it is started), and three processes.
	aStart = need{programs: 2, syncs: 2, forks: 3}
	// aTrue is a job of /bin/true among many: the shell of its script, and the program.
	aTrue = need{forks: 2 * each}
)

// floorRounds is how often each is done; one after the other in turn, so that all meet the same moments.
const floorRounds = 60

// measureFloor measures the machine. dir is on the disk that the systems keep their state on.
func measureFloor(dir string) (floor, error) {
	nothing := filepath.Join(dir, "nothing")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", nothing, "./bench/nothing").CombinedOutput(); err != nil {
		return floor{}, fmt.Errorf("build an empty program: %w: %s", err, out)
	}
	f, err := os.Create(filepath.Join(dir, "page"))
	if err != nil {
		return floor{}, err
	}
	defer f.Close()
	echo, err := newEcho()
	if err != nil {
		return floor{}, err
	}
	defer echo.close()
	page := make([]byte, 4096)
	parts := []struct {
		do   func() error
		took []float64
	}{
		{do: func() error { return forkExec("/bin/true") }},
		{do: func() error {
			if _, err := f.WriteAt(page, 0); err != nil {
				return err
			}
			return syscall.Fdatasync(int(f.Fd()))
		}},
		{do: echo.trip},
		{do: func() error { return forkExec(nothing) }},
	}
	for range floorRounds {
		for i := range parts {
			t := time.Now()
			if err := parts[i].do(); err != nil {
				return floor{}, err
			}
			parts[i].took = append(parts[i].took, ms(time.Since(t)))
		}
	}
	return floor{fork: median(parts[0].took), sync: median(parts[1].took), trip: median(parts[2].took), program: median(parts[3].took)}, nil
}

// forkExec is the system calls alone: os/exec would add pipes and goroutines.
func forkExec(path string) error {
	pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	for {
		if _, err = syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// echo is a thread that answers on a socket.
type echo struct{ ours, theirs int }

func newEcho() (*echo, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	e := &echo{fds[0], fds[1]}
	go func() {
		runtime.LockOSThread()
		b := make([]byte, 64)
		for {
			n, err := syscall.Read(e.theirs, b)
			if err == syscall.EINTR {
				continue
			}
			if n <= 0 || err != nil {
				_ = syscall.Close(e.theirs)
				return
			}
			_, _ = syscall.Write(e.theirs, b[:n])
		}
	}()
	return e, nil
}

func (e *echo) trip() error {
	var b [64]byte
	if _, err := syscall.Write(e.ours, b[:]); err != nil {
		return err
	}
	for {
		if _, err := syscall.Read(e.ours, b[:]); err != syscall.EINTR {
			return err
		}
	}
}

func (e *echo) close() { _ = syscall.Close(e.ours) }

// and is the mean of the machine before and after.
func (f floor) and(o floor) floor {
	return floor{(f.fork + o.fork) / 2, (f.sync + o.sync) / 2, (f.trip + o.trip) / 2, (f.program + o.program) / 2}
}

func (f floor) String() string {
	return fmt.Sprintf("this machine: fork and exec %.2f ms, fdatasync of 4 KiB %.2f ms, a trip through a socket %.3f ms, an empty Go "+
		"program %.2f ms",
		f.fork, f.sync, f.trip, f.program)
}
