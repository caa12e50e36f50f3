package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// Operations and sizes of the kernel's FUSE protocol, version 7.31.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseOpen, fuseRead, fuseInit, fuseAccess, fuseCreate = 1, 2, 3, 14, 15, 26, 34, 35

	fuseRoot, fuseFile = 1, 2 // the numbers of its two files

	fuseHead     = 40 // of a request: length, operation, number ...
	fuseCreateIn = 16 // before the name
)

// failing is a file system of eve's own in which a file that is made fails with the error whose number its name is:
// what a quota, a file server or a disk answers. Its file silentFile can be opened, and its page never comes. Empty: there is no
// FUSE here.
func (s *site) failing() (dir string) {
	dir, over := s.failingFor()
	if over != nil {
		s.t.Cleanup(over)
	}
	return dir
}

// failingFor is failing, and what ends it.
func (s *site) failingFor() (dir string, end func()) {
	s.t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil
	}
	if dir, err = os.MkdirTemp(s.dir, "failing"); err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("failing", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, s.eve.uid, s.eve.gid)); err != nil {
		_ = unix.Close(fd)
		return "", nil
	}
	over := make(chan struct{})
	go func() { defer close(over); serveFailing(fd) }()
	return dir, sync.OnceFunc(func() {
		_ = unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH)
		<-over
		_ = unix.Close(fd)
	})
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
			body, failed = fuseAttr(16, binary.NativeEndian.Uint64(in[16:])), 0
		case fuseLookup:
			failed = syscall.ENOENT
			if name, _, _ := bytes.Cut(in[fuseHead:], []byte{0}); string(name) == silentFile {
				body, failed = fuseAttr(40, fuseFile), 0
				binary.NativeEndian.PutUint64(body, fuseFile)
			}
		case fuseOpen:
			body, failed = make([]byte, 16), 0
		case fuseRead:
			continue
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

// silentFile is a file of a page that never comes.
const silentFile = "silent"

// fuseAttr is an answer that ends with the attributes of a file, which begin at a byte.
func fuseAttr(at int, file uint64) []byte {
	body := make([]byte, at+88)
	mode := uint32(syscall.S_IFDIR | 0o777)
	if file == fuseFile {
		mode = syscall.S_IFREG | 0o444
		binary.NativeEndian.PutUint64(body[at+8:], 4096)
	}
	binary.NativeEndian.PutUint64(body[at:], file)
	for k, v := range map[int]uint32{60: mode, 64: 1} { // links
		binary.NativeEndian.PutUint32(body[at+k:], v)
	}
	return body
}

// silent is a program that has left its rank's session and parents, and holds the lock of its own memory: it reads a page of it that
// never comes, and then wants more memory. Whoever reads its environment, its command line or the map of its pages waits. (The
// kernel doesn't take the first two from a page of a file.)
const silent = `
import ctypes, os, sys, threading, time
lib = ctypes.CDLL(None, use_errno=True)
lib.mmap.restype, lib.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
if os.fork(): os._exit(0)
os.setsid()
pid = os.fork()
if pid:
    def state(): return {open("/proc/%d/task/%s/stat" % (pid, t)).read().rsplit(") ", 1)[1][0] for t in os.listdir("/proc/%d/task" % pid)}
    while "D" not in state(): time.sleep(0.01)
    open("silent", "w").close()
    os._exit(0)
page = lib.mmap(None, 4096, 1, 2, os.open(sys.argv[1], os.O_RDONLY), 0)
mem = os.open("/proc/self/mem", os.O_RDONLY)
threading.Thread(target=lambda: os.pread(mem, 1, page)).start()
time.sleep(0.1)
while True: lib.mmap(None, 4096, 3, 0x22, -1, 0)
`

// memories: processes whose memory can't be read.
func memories(s *site) (out []try) {
	dir, end := s.failingFor()
	if dir == "" {
		tally.Lacks(s.t, "no FUSE for a file system of a user's own: memory that never comes is not tried")
		return nil
	}
	end()
	for _, by := range []string{"cancel", "limit"} {
		for _, size := range []int{1, 2} {
			out = append(out, try{"memory that never comes", fmt.Sprintf("%d ranks, %s", size, by), "ranks of eve's, a process of which holds the lock of its memory for ever", "the job is ended by its " + by + ", others' are seen and ended, the card is given again when the process is gone", true, func() error {
				dir, end := s.failingFor()
				defer end()
				up := filepath.Join(s.eve.home, "silent")
				_ = os.Remove(up)
				change := map[string]any{"size": size, "gpus_per_rank": 1, "script": []byte(fmt.Sprintf(
					"#!/bin/sh\n[ $RANK = 0 ] || exec sleep 600\npython3 -c '%s' %s/%s\nexec sleep 600\n", silent, dir, silentFile))}
				if by == "limit" {
					change["time_limit_ns"] = int64(5e9)
				}
				id := s.eve.submit(change)
				if !waitFor(func() bool { _, err := os.Stat(up); return err == nil || s.job(id).State.Ended() }) || s.job(id).State.Ended() {
					return fmt.Errorf("no process with such a page: job %d is %s", id, s.job(id).State)
				}
				if by == "cancel" {
					s.eve.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(id)}})
				}
				if _, err := s.ended(id); err != nil {
					return err
				}
				other := s.ada.submit(map[string]any{"script": []byte("#!/bin/sh\nexec sleep 600\n")})
				if !waitFor(func() bool { return s.job(other).State == api.JobRunning }) {
					return fmt.Errorf("job %d of ada's is %s", other, s.job(other).State)
				}
				s.ada.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(other)}, "now": true})
				if _, err := s.ended(other); err != nil {
					return err
				}
				end() // the kernel does not let go of it before
				if !waitFor(func() bool { return s.stands() == nil }) {
					return s.stands()
				}
				return nil
			}})
		}
	}
	return out
}
