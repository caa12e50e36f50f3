package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gangd/pkg/wire/dirlock"
)

// minMemory is how much room a file system in memory must have to hold members: a
// container's usual 64 MiB of /dev/shm would be filled by a few large scripts.
const minMemory = 256 << 20

// placeMembers puts the members' directories into memory where it can: state_dir/m becomes
// a link to a directory of this state directory's own on a tmpfs. Nothing in them outlives
// the boot anyway: the processes they speak of are gone with it, and a result that no
// controller had recorded then is a lost node's, on a disk or not. On ext4 the files of one
// member cost gnoded and gshim 1.5 ms of CPU and two fsyncs, on tmpfs a tenth.
//
// A place once chosen is kept for the boot, so that a restarted daemon finds its members.
func (s *stateDir) placeMembers() error {
	s.placing.Lock()
	defer s.placing.Unlock()
	link := filepath.Join(s.path, membersDir)
	if info, err := os.Stat(link); err == nil && info.IsDir() {
		// A directory of its own on disk, or a link that still leads somewhere.
		return s.openMembers(link)
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("state_dir: %w", err)
	}
	for _, base := range memoryBases() {
		dir := filepath.Join(base, s.id)
		if !usable(base) {
			continue
		}
		sweep(base)
		if s.own(dir) == nil && dirlock.Open(dir, 0o711) == nil {
			return os.Symlink(dir, link)
		}
	}
	if err := os.Mkdir(link, 0o711); err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	return nil
}

// openMembers has users pass to what is there: a daemon before may have made it under a umask that kept them out.
func (s *stateDir) openMembers(link string) error {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	open := []string{to}
	if base := filepath.Dir(to); slices.Contains(memoryBases(), base) {
		open = append(open, base)
	}
	for _, dir := range open {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(dir, 0o711); err != nil {
				return fmt.Errorf("state_dir: %w", err)
			}
		}
	}
	return nil
}

// ownerSuffix names the file beside a directory that says whose it is.
const ownerSuffix = ".of"

// own says beside dir whose it is, before dir is there and in one step: another daemon
// that sweeps at this moment must not find a directory whose owner is still unwritten.
func (s *stateDir) own(dir string) error {
	path, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	return replaceFile(dir+ownerSuffix, []byte(path))
}

// sweep removes what state directories left that are there no more (a cluster that was
// tried out, a test): nobody else would look for it in memory. A directory that still has
// members stays, for a person to look at.
func sweep(base string) {
	owners, _ := filepath.Glob(filepath.Join(base, "*"+ownerSuffix)) // well formed
	for _, owner := range owners {
		path, err := os.ReadFile(owner)
		if err != nil || !filepath.IsAbs(string(path)) {
			continue
		}
		if _, err := os.Stat(string(path)); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.Remove(strings.TrimSuffix(owner, ownerSuffix)); err == nil || errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(owner)
		}
	}
}

// memoryBases are the directories on tmpfs where a daemon may keep things for as long as
// the machine is up. For anyone but root there is none: at the last logout systemd-logind
// removes what a user has under /run/user and, by its default RemoveIPC=yes, in /dev/shm,
// while the user's gangs run on.
func memoryBases() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"/run/gnoded", "/dev/shm/gnoded"}
}

// usable makes base and holds for it when it is ours alone, in memory, and has room. In
// /dev/shm anyone may have made a directory of that name before us.
func usable(base string) bool {
	if dirlock.Open(base, 0o711) != nil {
		return false
	}
	info, err := os.Lstat(base)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(base, &fs); err != nil {
		return false
	}
	return fs.Type == unix.TMPFS_MAGIC && int64(fs.Bavail)*fs.Bsize >= minMemory
}
