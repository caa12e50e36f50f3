package proc

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepFiles sees to it that no file which this process has open reaches a program that it
// starts, but the standard streams and what the start names: whoever started a daemon may have
// had files open that are none of its jobs' business. It belongs at the beginning of a program;
// what Go opens later is kept by itself.
func KeepFiles() error {
	if unix.CloseRange(firstFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return keepEach() // a kernel before 5.11
}

// firstFile is the one behind the standard streams.
const firstFile = 3

func keepEach() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("find the files that the starter left open: %w", err)
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstFile {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
