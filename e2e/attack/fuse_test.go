package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Operations and sizes of the kernel's FUSE protocol, version 7.31.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseInit, fuseAccess, fuseCreate = 1, 2, 3, 26, 34, 35

	fuseHead     = 40 // of a request: length, operation, number ...
	fuseCreateIn = 16 // before the name
)

// failing is a file system of eve's own in which a file that is made fails with the error whose number its name is:
// what a quota, a file server or a disk answers. Empty: there is no FUSE here.
func (s *site) failing() (dir string) {
	s.t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	dir = filepath.Join(s.dir, "failing")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("failing", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, s.eve.uid, s.eve.gid)); err != nil {
		_ = unix.Close(fd)
		return ""
	}
	over := make(chan struct{})
	go func() { defer close(over); serveFailing(fd) }()
	s.t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH)
		<-over
		_ = unix.Close(fd)
	})
	return dir
}

// serveFailing answers until the file system is unmounted.
func serveFailing(fd int) {
	for buf := make([]byte, 64<<10); ; {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR || err == unix.EAGAIN || err == unix.ENOENT { // taken back before it was read
			continue
		}
		if err != nil || n < fuseHead {
			return
		}
		in := buf[:n]
		body, failed := []byte(nil), syscall.EIO
		switch binary.NativeEndian.Uint32(in[4:]) {
		case fuseForget:
			continue
		case fuseInit:
			body, failed = make([]byte, 64), 0
			for at, v := range map[int]uint32{0: 7, 4: 31, 20: 4096} { // version, bytes of a write
				binary.NativeEndian.PutUint32(body[at:], v)
			}
		case fuseGetattr:
			body, failed = make([]byte, 104), 0
			for at, v := range map[int]uint32{16: 1, 76: syscall.S_IFDIR | 0o777, 80: 1} { // inode, mode, links
				binary.NativeEndian.PutUint32(body[at:], v)
			}
		case fuseLookup:
			failed = syscall.ENOENT
		case fuseAccess:
			failed = 0
		case fuseCreate:
			name, _, _ := bytes.Cut(in[min(n, fuseHead+fuseCreateIn):], []byte{0})
			if number, err := strconv.Atoi(strings.TrimSpace(string(name))); err == nil {
				failed = syscall.Errno(number)
			}
		}
		out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		out = binary.NativeEndian.AppendUint32(out, uint32(-int32(failed)))
		out = append(append(out, in[8:16]...), body...)
		_, _ = unix.Write(fd, out)
	}
}
