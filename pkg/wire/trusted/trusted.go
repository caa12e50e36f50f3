// Package trusted says whether a file is as trustworthy as the daemon that reads or runs it:
// whoever can change the file, or a directory on its way, can make the daemon do what he likes.
//
// Begin with File. It must not know what the file is for.
package trusted

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File is nil when a file, where all symbolic links lead, and every directory above it can be changed by
// root and by the daemon's own user alone. Else the error names the first that others can change, with the
// command that mends it.
//
// A sticky directory, /tmp for one, may be open to all: nobody can replace there what is not his. The groups
// root and, without root, the user's own may write: who sets group bits there means himself.
func File(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	for p := real; ; p = filepath.Dir(p) {
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		if err := check(p, info, p != real); err != nil {
			return err
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

func check(path string, info fs.FileInfo, above bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner can't be told", path)
	}
	uid, gid := os.Geteuid(), os.Getegid()
	switch mode := info.Mode(); {
	case st.Uid != 0 && int(st.Uid) != uid && !(above && unmapped(st.Uid)):
		return fmt.Errorf("%s belongs to user id %d, who could change it: chown %s", path, st.Uid, owner(uid, path))
	case above && mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("%s may be changed by everybody (mode %04o): chmod o-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o020 != 0 && st.Gid != 0 && (uid == 0 || int(st.Gid) != gid):
		return fmt.Errorf("%s may be changed by group id %d (mode %04o): chmod g-w %s", path, st.Gid, mode.Perm(), path)
	}
	return nil
}

// unmapped reports whether an owner is one that this user namespace has no number for: in a container
// the directories of the host, which nobody in it can be.
func unmapped(uid uint32) bool {
	const overflow, whole = 65534, "0 0 4294967295"
	if uid != overflow {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != whole
}

func owner(uid int, path string) string {
	if uid == 0 {
		return "root " + path
	}
	return fmt.Sprintf("%d %s", uid, path)
}
