package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/cluster"
)

// Image is a file system on a disk for the private directories of one member. It lies in a file without a
// name, behind a loop device that lets go of it when nothing has it mounted or open: file and device are gone
// with the last process that sees them, whoever dies before.
type Image struct {
	Path   string `json:"path"`         // a directory of the disk
	Mkfs   string `json:"mkfs"`         // the program that makes the file system
	Shared int64  `json:"shared_bytes"` // what /dev/shm may hold, which stays in memory
}

const (
	// sharedMemory is for what programs map together: it is not put on a disk.
	sharedMemory = "/dev/shm"
	imageType    = "ext4"
	loopControl  = "/dev/loop-control"
	loopTries    = 100 // others take devices at the same time
)

// Try makes a small one, and lets go of it: what would fail for each member fails at start.
func (im *Image) Try() error {
	const small = 4 << 20
	device, err := im.attach(small)
	if err != nil {
		return err
	}
	return device.Close()
}

// attach makes an image of a size, all of whose blocks are there, and gives its device.
func (im *Image) attach(size int64) (device *os.File, err error) {
	fd, err := unix.Open(im.Path, unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("a file without a name in %s: %w", im.Path, err)
	}
	file := os.NewFile(uintptr(fd), im.Path)
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cluster.Size(size), im.Path, err)
	}
	// Its contents are lost with the machine: a journal would be written for nobody. Blocks stay reserved.
	mkfs := exec.Command(im.Mkfs, "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=1", "/proc/self/fd/3")
	mkfs.ExtraFiles, mkfs.Dir = []*os.File{file}, "/"
	if out, err := mkfs.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", im.Mkfs, err, bytes.TrimSpace(out))
	}
	// After the file system, whose maker gives blocks back where it writes zeros.
	if err := unix.Fallocate(fd, 0, 0, size); err != nil {
		var st unix.Statfs_t
		_ = unix.Fstatfs(fd, &st)
		return nil, fmt.Errorf("%s in %s, where %s are free: %w", cluster.Size(size), im.Path, cluster.Size(int64(st.Bavail)*st.Bsize), err)
	}
	return loop(file)
}

// loop puts a free loop device before a file.
func loop(file *os.File) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("a free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		c := &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		switch err = unix.IoctlLoopConfigure(int(device.Fd()), c); {
		case err == nil:
			return device, nil
		case !errors.Is(err, unix.EBUSY):
			_ = device.Close()
			return nil, fmt.Errorf("set up %s: %w", device.Name(), err)
		}
		_ = device.Close() // another was faster
	}
	return nil, errors.New("no loop device is left free by others")
}
