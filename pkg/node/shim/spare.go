package shim

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// spareMembers bounds how many members one process holds in its life: what the runtime
// itself might gather in a long one does not become a question.
const spareMembers = 200

// spareLine says that the member is let go of.
var spareLine = []byte("{\"spare\":true}\n")

// Spare runs a shim that waits for members on its first connection and holds one after the
// other. It ends with that connection, at the latest when the member it holds is over.
func Spare() int {
	if err := begin(); err != nil {
		return fail(err)
	}
	first := firstConn()
	if f, err := os.Open("/proc/self/fd"); err == nil { // the Go runtime opens files of its own with the first
		_ = f.Close()
	}
	files := openFDs()
	if first == nil || files <= 0 {
		return 1 // not started by gnoded, or no /proc to see that a member is really gone
	}
	var empty emptyDir
	defer empty.drop()
	for range spareMembers {
		label("-")
		dir, ok := first.awaitMember(&empty)
		if !ok {
			return 0
		}
		label(filepath.Base(dir))
		m, err := serve(dir, first, &empty)
		if err != nil {
			return fail(err)
		}
		if !m.release(first) || openFDs() != files || !first.send(spareLine) {
			return 0
		}
	}
	return 0
}

// awaitMember sleeps until there is a directory to serve. Other commands are late ones to
// the member before.
func (cn *conn) awaitMember(empty *emptyDir) (dir string, ok bool) {
	for {
		commands, ok := cn.read()
		for i, c := range commands {
			if c.Serve != "" {
				cn.early = commands[i+1:] // a stop may follow at once
				return c.Serve, true
			}
		}
		if !ok {
			return "", false
		}
		fds := [1]unix.PollFd{{Fd: int32(cn.fd), Events: unix.POLLIN}}
		var wait *unix.Timespec
		if empty.path != "" {
			ts := unix.NsecToTimespec(int64(emptyFor))
			wait = &ts
		}
		n, err := unix.Ppoll(fds[:], wait, nil)
		if err != nil && err != unix.EINTR {
			return "", false
		}
		if n == 0 { // nobody has come meanwhile
			empty.drop()
		}
	}
}

// release lets go of a member that is over, and tells whether this process is then as it
// was before: anything less than certain ends it, as it would have ended without a next
// member. The kernel's word counts wherever it has one: the containment was removed
// (a member without that proof never stops), no child is left, no file is open.
func (m *member) release(first *conn) bool {
	plain := m.state.Phase == api.PhaseStopped && !m.odd && !m.file.unsaved && m.conns.drained() && !logged && !m.conns.visited &&
		len(m.conns.list) == 1 && m.conns.list[0] == first && m.conns.listener >= 0
	if !plain || !childless() {
		return false
	}
	m.file.close()
	_ = unix.Close(m.conns.listener)
	return os.Chdir("/") == nil
}

// childless reaps what has ended and reports whether no child is left. Orphans of the
// member came to us as their subreaper, so this covers all that it started.
func childless() bool {
	var ws unix.WaitStatus
	for {
		switch pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil); {
		case err == unix.ECHILD:
			return true
		case err != nil && err != unix.EINTR, err == nil && pid == 0:
			return false
		}
	}
}

// openFDs counts this process's open files, the directory read for it among them; 0 when
// that can't be told.
func openFDs() int {
	fd, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	count, _ := entries(fd)
	return count
}

// entries counts what is in an open directory, false when that can't be told.
func entries(fd int) (count int, ok bool) {
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil {
			return 0, false
		}
		if n == 0 {
			return count, true
		}
		_, names, _ := unix.ParseDirent(buf[:n], -1, nil)
		count += names
	}
}

// label shows people who look with ps which member is held: it overwrites the last
// argument, which [Pool] makes long enough.
func label(text string) {
	if len(os.Args) < 4 {
		return
	}
	room := unsafe.Slice(unsafe.StringData(os.Args[3]), len(os.Args[3]))
	for i := range room {
		room[i] = ' '
	}
	copy(room, text)
}
