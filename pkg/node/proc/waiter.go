package proc

import (
	"golang.org/x/sys/unix"
)

// waiterName is the name of the memory file that a waiter holds open.
const waiterName = "gang-waits"

// waiterLook bounds how many descriptors of a process are looked at: a waiter makes its mark
// before it opens anything else.
const waiterLook = 256

// MarkWaiting says of this process, for as long as it runs this program, that it only waits for
// others: a client of a step, the holder of an allocation. What it runs has no mark. The mark is
// a descriptor and not the path of the program, because programs are copied, mounted at another
// place, and replaced while they run.
func MarkWaiting() error {
	_, err := unix.MemfdCreate(waiterName, unix.MFD_CLOEXEC)
	return err
}

// Waits reports whether a process is marked so. Who pretends to wait hears no stop signal, and
// is killed when the grace is over: it cheats nobody but itself.
func Waits(pid int) bool {
	return anyOpen(pid, func(_, to string) bool { return to == "/memfd:"+waiterName+" (deleted)" })
}
