package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gangd/pkg/controller/store"
)

// DefaultNewJobFloor: below this much free space no new job is accepted, because what has
// been accepted still has its story to be written: about 4 KiB a job, and the log once
// more beside the database.
const DefaultNewJobFloor = 64 << 20

// spareBytes is held back in a file of its own and given up when a commit without new
// jobs meets a full disk: room for about a thousand commits that record ends.
const spareBytes = 4 << 20

// reserve watches the room on the disk. It belongs to the committing goroutine.
type spareFile struct {
	name  string
	floor int64
	held  bool
}

func newSpareFile(dir string, floor int64) *spareFile {
	if floor == 0 {
		floor = DefaultNewJobFloor
	}
	r := &spareFile{name: filepath.Join(dir, "reserve"), floor: floor}
	r.hold()
	return r
}

// free is the room that this process can use.
func (r *spareFile) free() int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(r.name), &st); err != nil {
		return 0
	}
	return int64(st.Bavail) * st.Bsize
}

// startBytes is what SQLite needs beside a database to open it: its index of the log, and a
// log that begins.
const startBytes = 128 << 10

// full: there is no room, or no inode, to open the database with.
func (r *spareFile) full() bool {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(r.name), &st); err != nil {
		return false
	}
	return tooFull(&st)
}

// tooFull: a file system without a number of files has no bound for them.
func tooFull(st *unix.Statfs_t) bool {
	return int64(st.Bavail)*st.Bsize < startBytes || st.Files > 0 && st.Ffree < 2
}

// admit refuses new jobs while room is short (a statfs is 0.5 us), and takes the reserve
// again when there is room for it.
func (r *spareFile) admit(newJobs bool) error {
	if r == nil || (!newJobs && r.held) {
		return nil
	}
	if !r.held && r.free() >= r.floor+spareBytes {
		r.hold()
	}
	if newJobs {
		return r.room()
	}
	return nil
}

// room is ErrFull while new jobs are refused.
func (r *spareFile) room() error {
	if r == nil {
		return nil
	}
	if free := r.free(); free < r.floor {
		return fmt.Errorf("%w: %d MiB free under %s, new jobs need %d MiB there", store.ErrFull,
			free>>20, filepath.Dir(r.name), r.floor>>20)
	}
	return nil
}

// hold takes the room. It is no error when there is none: commits go on as long as they can.
func (r *spareFile) hold() {
	f, err := os.OpenFile(r.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, spareBytes); err != nil {
		_ = os.Remove(r.name)
		return
	}
	r.held = true
}

// release gives the room up; false: there was none to give.
func (r *spareFile) release() bool {
	if r == nil || !r.held {
		return false
	}
	r.held = false
	return os.Remove(r.name) == nil
}
