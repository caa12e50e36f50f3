package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// Private directories are mounts in a mount namespace of the member's own: they are nowhere else, and are
// gone with its last process, whoever dies before. A process of root's makes them (`gshim mounts`) and
// goes; the shim holds the namespace open, and its thread is in it for the moment of a fork.

// Private is the directories of a member that nobody else sees.
type Private struct {
	Dirs []string `json:"dirs"`       // absolute, without symbolic links
	Size int64    `json:"size_bytes"` // of all of them together
	// Image is where they lie on a disk; nil: in memory.
	Image *Image `json:"image,omitempty"`
	// Keep are directories of ours below them, which are seen all the same.
	Keep []string `json:"keep,omitempty"`
}

// Hides gives the private directory that a path is below; empty: none.
func (p *Private) Hides(path string) string {
	for _, dir := range p.Dirs {
		if strings.HasPrefix(filepath.Clean(path), strings.TrimSuffix(dir, "/")+"/") {
			return dir
		}
	}
	return ""
}

const (
	mountsWait = 20 * time.Second
	mountsWord = 4096 // the longest answer
)

func (m *member) openPrivate() *api.Refusal {
	m.namespace, m.outer = -1, -1
	whose := api.BlameNode
	var err error
	if m.spec.Private != nil {
		if m.outer, err = m.makeNamespace(-1, mountsPrivate); err == nil {
			m.namespace = m.outer
		}
	}
	if err == nil && m.spec.Container != nil {
		whose = api.BlameUnknown // what the user names may hang
		m.namespace, err = m.makeNamespace(m.outer, mountsContainer)
	}
	if r := new(mountsRefusal); errors.As(err, &r) {
		return &r.Refusal
	}
	if err != nil {
		return &api.Refusal{Blame: whose, Text: fmt.Sprintf("mounts of its own: %v", err)}
	}
	return nil
}

// ownMounts: the member sees other mounts than the machine.
func (s *Spec) ownMounts() bool { return s.Private != nil || s.Container != nil }

// mountsRefusal is what who makes the mounts has said.
type mountsRefusal struct{ api.Refusal }

func (r *mountsRefusal) Error() string { return r.Text }

// What `gshim mounts` makes. A container is made inside the private directories, so that steps can have others
// there.
const (
	mountsPrivate   = "private"
	mountsContainer = "container"
)

// makeNamespace starts who makes the mounts inside another namespace (-1: the machine's), and takes theirs over.
func (m *member) makeNamespace(inside int, what string) (int, error) {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a thread that shares its directory may not change namespaces
		return -1, fmt.Errorf("unshare: %w", err)
	}
	st, err := m.startStage(&syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS}, inside, mountsWait, "mounts", what)
	if err != nil {
		return -1, err
	}
	defer st.end()
	word := make([]byte, mountsWord)
	n, err := unix.Read(st.sock, word)
	switch {
	case err == unix.EAGAIN:
		return -1, fmt.Errorf("not mounted within %v", when.Words(mountsWait))
	case err != nil:
		return -1, err
	case n == 0:
		return -1, io.ErrUnexpectedEOF
	case !bytes.Equal(word[:n], mountsDone):
		r := new(mountsRefusal)
		if err := json.Unmarshal(word[:n], &r.Refusal); err != nil {
			return -1, err
		}
		return -1, r
	}
	return unix.Open("/proc/"+strconv.Itoa(st.pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// inPrivate has this thread see what the member sees, until back. An error is one that nothing may be started
// with.
func (m *member) inPrivate() (back func(), err error) {
	if m.spec.ownMounts() && m.namespace < 0 {
		return func() {}, unix.EBADF
	}
	return m.in(m.namespace)
}

// in has this thread see the mounts of a namespace, until back; -1: those of the machine.
func (m *member) in(namespace int) (back func(), err error) {
	if namespace < 0 {
		return func() {}, nil
	}
	home, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}, err
	}
	if err := unix.Setns(namespace, unix.CLONE_NEWNS); err != nil {
		_ = unix.Close(home)
		return func() {}, fmt.Errorf("enter the member's mounts: %w", err)
	}
	return func() {
		err := unix.Setns(home, unix.CLONE_NEWNS)
		_ = unix.Close(home)
		if err == nil {
			err = os.Chdir(m.spec.Dir) // a change of namespace leads to its root
		}
		if err != nil { // it would write its results where nobody finds them
			panic("gshim: back from the member's mounts: " + err.Error())
		}
	}, nil
}

// closePrivate lets go of the namespace: nothing of the member is in it any more.
func (m *member) closePrivate() {
	for _, r := range m.roots {
		_ = unix.Close(r.namespace)
	}
	m.roots = nil
	if !m.spec.ownMounts() {
		return
	}
	if m.namespace >= 0 {
		_ = unix.Close(m.namespace)
	}
	if m.outer >= 0 && m.outer != m.namespace {
		_ = unix.Close(m.outer)
	}
	m.namespace, m.outer = -1, -1
}

var mountsDone = []byte("mounted")

// Mounts is `gshim mounts`, started by a root shim in a mount namespace of its own, the spec on its
// standard input. It says how it went, and stays until it is ended: the namespace is taken from it.
func Mounts(what string) int {
	runtime.LockOSThread() // whose namespace and rights these are
	s, err := specFromInput()
	if err == nil {
		err = s.mount(what)
	}
	word := mountsDone
	if err != nil {
		text := err.Error()
		word, _ = json.Marshal(&api.Refusal{Blame: mountsBlame(err), Text: strings.ToValidUTF8(text[:min(len(text), mountsWord/2)], "?")})
	}
	if err := unix.Sendto(stageFD, word[:min(len(word), mountsWord)], unix.MSG_NOSIGNAL, nil); err != nil {
		return fail(err)
	}
	_, _ = unix.Read(stageFD, make([]byte, 1)) // its end
	return 0
}

func (s *Spec) mount(what string) error {
	switch {
	case what == mountsContainer && s.Container != nil:
		return s.Container.enter(s.Dir)
	case what != mountsPrivate || s.Private == nil:
		return fmt.Errorf("%s: the member has none", what)
	}
	if err := leaveMounts(); err != nil {
		return ownError(err)
	}
	if err := s.Private.mount(); err != nil {
		whose := api.BlameNode
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOMEM) {
			whose = api.BlameUnknown // the size may be the job's, and what fills the disk users' files
		}
		return &blamedError{fmt.Errorf("private directories %s: %w", strings.Join(s.Private.Dirs, ", "), err), whose}
	}
	return nil
}

// leaveMounts: what the machine mounts later is seen, what is mounted here is not seen there.
func leaveMounts() error {
	unix.Umask(0)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("leave the machine's mounts: %w", err)
	}
	return nil
}

// mount makes the directories: parts of one file system, which has the size.
func (p *Private) mount() error {
	kept := make([]int, len(p.Keep))
	for i, dir := range p.Keep {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		kept[i] = fd
	}
	if err := p.mountDirs(); err != nil {
		return err
	}
	for i, dir := range p.Keep {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(kept[i]), dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keep %s: %w", dir, err)
		}
	}
	return nil
}

func (p *Private) mountDirs() error {
	memory := func(size int64) string { return "mode=0755,size=" + strconv.FormatInt(size, 10) }
	if p.Image == nil {
		return lay(p.Dirs, "gangd", "tmpfs", memory(p.Size))
	}
	onDisk := slices.DeleteFunc(slices.Clone(p.Dirs), func(dir string) bool { return dir == sharedMemory })
	if len(onDisk) > 0 {
		device, err := p.Image.attach(p.Size)
		if err != nil {
			return err
		}
		defer device.Close() // the mount keeps it from then on
		if err := lay(onDisk, device.Name(), imageType, ""); err != nil {
			return err
		}
	}
	if len(onDisk) < len(p.Dirs) {
		return lay([]string{sharedMemory}, "gangd", "tmpfs", memory(p.Image.Shared))
	}
	return nil
}

// lay mounts a file system whose parts are the directories.
func lay(dirs []string, source, kind, options string) error {
	base := dirs[0]
	if err := unix.Mount(source, base, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, base, err)
	}
	for i := len(dirs) - 1; i >= 0; i-- { // the base last: it hides the others' parts
		part := filepath.Join(base, strconv.Itoa(i))
		if err := os.Mkdir(part, 0o777|os.ModeSticky); err != nil {
			return err
		}
		if err := unix.Mount(part, dirs[i], "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount on %s: %w", dirs[i], err)
		}
	}
	return nil
}
