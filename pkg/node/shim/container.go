package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// A container of a member is its mount namespace with another root: an unpacked image below a layer in
// memory, which takes what is written and goes with the member. What the user names is opened as the user, so that no
// path leads to what he could not reach; where it goes is looked up inside the new root, so that no link of
// the image leads out of it.

// InImage is what is known of an image to those who run in it.
type InImage struct {
	Name   string   `json:"name"`             // as the job names it
	Digest string   `json:"digest,omitempty"` // of an image that was imported; empty: not known
	Env    []string `json:"env,omitempty"`    // NAME=value, that it brings
	Keep   []string `json:"keep,omitempty"`   // names of variables that it does not change
}

// Container is the root of a member's processes, or of those of a step.
type Container struct {
	InImage
	Image    string      `json:"image"` // directory of the unpacked image
	ReadOnly bool        `json:"read_only,omitempty"`
	Mounts   []Mount     `json:"mounts,omitempty"` // in this order
	Needs    string      `json:"needs,omitempty"`  // a program that has to be there
	Creds    Credentials `json:"creds,omitzero"`   // who names what is the user's; zero: root
}

// Mount shows a directory or file of the machine inside.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	User     bool   `json:"user,omitempty"`  // named by the user: opened as he is
	Maybe    bool   `json:"maybe,omitempty"` // left out where either side is not there
	// Within are directories one of which it has to be below, wherever links lead; none: anywhere.
	Within []string `json:"within,omitempty"`
}

// usersError is a failure of what the user named.
type usersError struct{ error }

// machineDirs are shown in every container, with what is mounted there.
var machineDirs = []string{"/proc", "/sys", "/dev", "/tmp", "/var/tmp"}

// machineFiles are the machine's where the image has such a file: names and addresses are the site's.
var machineFiles = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/localtime"}

// enter makes the container and goes into it. dir is the member's directory, below which it is put
// together; whoever is outside sees nothing of it.
func (c *Container) enter(dir string) error {
	if err := leaveMounts(); err != nil {
		return err
	}
	image, err := c.asUser(func() (int, error) { return unix.Open(c.Image, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &usersError{fmt.Errorf("container image: %s: %w", c.Name, err)}
	}
	sources, mounts, err := c.open()
	if err != nil {
		return err
	}
	root, err := c.layer(dir, image)
	if err != nil {
		return err
	}
	for i, m := range mounts {
		if err := m.bind(root, sources[i]); err != nil {
			return fmt.Errorf("container: mount %s on %s: %w", m.Source, m.Target, err)
		}
	}
	if err := c.has(root, c.Needs); err != nil {
		return &usersError{fmt.Errorf("container image: %s: %s, which the script needs: %w", c.Name, c.Needs, err)}
	}
	if err := unix.Fchdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("container: pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("container: leave the machine's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if c.ReadOnly {
		if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("container: make it read-only: %w", err)
		}
	}
	return nil
}

// layer puts a layer in memory over the image, so that places for mounts can be made in it.
func (c *Container) layer(dir string, image int) (root int, err error) {
	base := filepath.Join(dir, "c")
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return -1, err
	}
	if err := unix.Mount("gangd", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return -1, fmt.Errorf("container: %w", err)
	}
	for _, d := range []string{"root", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
			return -1, err
		}
	}
	at := filepath.Join(base, "root")
	option := fmt.Sprintf("lowerdir=/proc/self/fd/%d,upperdir=%s/upper,workdir=%s/work", image, base, base)
	if err := unix.Mount("gangd", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, option); err != nil {
		return -1, fmt.Errorf("container: overlay over %s: %w", c.Image, err)
	}
	return unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// open opens what is to be shown, before anything hides it.
func (c *Container) open() (fds []int, mounts []Mount, err error) {
	var all []Mount
	for _, d := range machineDirs {
		all = append(all, Mount{Source: d, Target: d, Maybe: true})
	}
	for _, f := range machineFiles {
		all = append(all, Mount{Source: f, Target: f, ReadOnly: true, Maybe: true})
	}
	for _, m := range append(all, c.Mounts...) {
		how := func() (int, error) { return unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0) }
		var fd int
		if m.User {
			fd, err = c.asUser(how)
		} else {
			fd, err = how()
		}
		if err == nil {
			if err = m.within(fd); err != nil {
				return nil, nil, &usersError{err}
			}
		}
		switch {
		case err == nil:
			fds, mounts = append(fds, fd), append(mounts, m)
		case m.Maybe && errors.Is(err, os.ErrNotExist):
		case m.User:
			return nil, nil, &usersError{fmt.Errorf("container mount: %s: %w", m.Source, err)}
		default:
			return nil, nil, fmt.Errorf("container mount: %s: %w", m.Source, err)
		}
	}
	return fds, mounts, nil
}

// within says why what was opened is not where the site wants it.
func (m *Mount) within(fd int) error {
	if len(m.Within) == 0 {
		return nil
	}
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return err
	}
	for _, dir := range m.Within {
		if real == dir || strings.HasPrefix(real, strings.TrimSuffix(dir, "/")+"/") {
			return nil
		}
	}
	what := m.Source
	if real != m.Source {
		what += ", which is " + real + ","
	}
	return fmt.Errorf("container mount: %s is not below %s, from where this site's jobs may mount", what, strings.Join(m.Within, ", "))
}

// asUser opens with the rights of the user: the thread, which is locked, has them for a moment.
func (c *Container) asUser(open func() (int, error)) (int, error) {
	if !c.Creds.Switch {
		return open()
	}
	old, err := unix.Getgroups()
	if err != nil {
		return -1, err
	}
	if err := unix.Setgroups(c.Creds.groups()); err != nil {
		return -1, err
	}
	defer func() { _ = unix.Setgroups(old) }()
	gid, err := unix.SetfsgidRetGid(int(c.Creds.GID))
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Setfsgid(gid) }()
	uid, err := unix.SetfsuidRetUid(int(c.Creds.UID))
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Setfsuid(uid) }()
	if now, err := unix.SetfsuidRetUid(-1); err != nil || now != int(c.Creds.UID) { // the calls themselves don't say that they failed
		return -1, fmt.Errorf("become user id %d: it is %d, %w", c.Creds.UID, now, err)
	}
	return open()
}

// inRoot opens a path below a root, whose links stay inside.
func inRoot(root int, path string) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// has says why a program is not there, in the image or mounted into it; empty asks for nothing.
func (c *Container) has(root int, program string) error {
	if program == "" {
		return nil
	}
	fd, err := inRoot(root, program)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// bind shows an open directory or file at the target below root, which is made where it is missing.
func (m *Mount) bind(root, source int) error {
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return err
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	target, err := m.place(root, isDir)
	if err != nil || target < 0 {
		return err
	}
	defer unix.Close(target)
	at := "/proc/self/fd/" + strconv.Itoa(target)
	if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(source), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil || !m.ReadOnly {
		return err
	}
	shown, err := inRoot(root, m.Target) // what is mounted there now
	if err != nil {
		return err
	}
	defer unix.Close(shown)
	return unix.MountSetattr(shown, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// place gives the target, which is made where it is missing; -1: it may be missing.
func (m *Mount) place(root int, isDir bool) (int, error) {
	fd, err := inRoot(root, m.Target)
	if err == nil {
		return fd, nil
	}
	if !errors.Is(err, os.ErrNotExist) || m.Maybe && !isDir {
		if m.Maybe {
			return -1, nil
		}
		return -1, err
	}
	at, path := root, ""
	parts := strings.Split(strings.Trim(filepath.Clean(m.Target), "/"), "/")
	for i, name := range parts {
		path = filepath.Join(path, name)
		next, err := inRoot(root, path)
		if errors.Is(err, os.ErrNotExist) {
			if i == len(parts)-1 && !isDir {
				var file int
				if file, err = unix.Openat(at, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644); err == nil {
					_ = unix.Close(file)
				}
			} else {
				err = unix.Mkdirat(at, name, 0o755)
			}
			if err == nil {
				next, err = inRoot(root, path)
			}
		}
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// containerRefusal says whose fault it is.
func containerRefusal(err error) api.Blame {
	if errors.As(err, new(*usersError)) {
		return api.BlameFiles
	}
	return api.BlameNode
}
