package shim

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A step in a container of its own is started by `gshim launch`: a process of root's in the member's containment
// that makes the mounts and then becomes the step's launcher, as the user. The shim waits for nothing, and the
// mounts are gone with the step.

// StepContainerFile is where gnoded writes the [Container] of a step, in the member's directory, before it orders
// the step.
func StepContainerFile(step int) string { return "container." + strconv.Itoa(step) }

func (m *member) stepContainer(step int) (*Container, error) {
	text, err := os.ReadFile(StepContainerFile(step))
	if err != nil {
		return nil, err
	}
	c := new(Container)
	return c, json.Unmarshal(text, c)
}

// launchOrder is what `gshim launch` reads from its standard input.
type launchOrder struct {
	Container Container `json:"container"`
	Dir       string    `json:"dir"`     // of the member
	Program   string    `json:"program"` // the launcher, inside, as who the container's user is
}

// launchInput is an open file with what `gshim launch` reads.
func (m *member) launchInput(c *Container) (int, error) {
	order, err := json.Marshal(&launchOrder{Container: *c, Dir: m.spec.Dir, Program: launcherPath()})
	if err != nil {
		return -1, err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a thread that shares its directory may not change namespaces
		return -1, err
	}
	return memoryFile(order)
}

// memoryFile is a file that holds some bytes and has no name.
func memoryFile(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("gshim", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		data = data[n:]
	}
	_, err = unix.Seek(fd, 0, io.SeekStart)
	return fd, err
}

// Launch is `gshim launch`. It ends by becoming the launcher, or says why it does not.
func Launch() int {
	runtime.LockOSThread() // whose namespace and rights these are
	err := becomeLauncher()
	_, _ = unix.Write(LauncherFD, line(LauncherWord{Refused: err.Error()}))
	return 1
}

func becomeLauncher() error {
	unix.CloseOnExec(LauncherFD)
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var o launchOrder
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	if err := o.Container.enter(o.Dir); err != nil {
		return err
	}
	unix.Umask(0o077)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 2 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	if err := o.Container.Creds.become(); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(LauncherFD, unix.F_SETFD, 0); err != nil {
		return err
	}
	return errors.Join(errors.New("start the launcher of the step in the container"), syscall.Exec(o.Program, []string{LauncherName},
		os.Environ()))
}
