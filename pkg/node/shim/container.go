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
	"gangd/pkg/node/proc"
)

// A container of a member is its mount namespace with another root: an unpacked image below a layer in
// memory, which takes what is written and goes with the member. What the user names is opened as the user, so that no
// path leads to what he could not reach. Where it goes is looked up inside the new root, so that no link of
// the image leads out of it: as root only within the layer, where missing places are made before anything is mounted;
// beyond a mount, whose files are the machine's, as the user, and there nothing is made.

// InImage is what is known of an image to those who run in it.
type InImage struct {
	Name   string   `json:"name"`             // as the job names it
	Digest string   `json:"digest,omitempty"` // of an image that was imported; empty: not known
	Env    []string `json:"env,omitempty"`    // NAME=value, that it brings
	Keep   []string `json:"keep,omitempty"`   // names of variables that it does not change
	// Container is the name by which steps of the job join it; empty: they can't.
	Container string `json:"container,omitempty"`
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

// blamedError is a failure whose fault its kind does not say.
type blamedError struct {
	error
	whose api.Blame
}

func (e *blamedError) Unwrap() error { return e.error }

// ownError is one before anything of the user's was touched.
func ownError(err error) error { return &blamedError{err, api.BlameNode} }

// machineDirs are shown in every container, with what is mounted there.
var machineDirs = []string{"/proc", "/sys", "/dev", "/tmp", "/var/tmp"}

// machineFiles are the machine's where the image has such a file: names and addresses are the site's.
var machineFiles = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/localtime"}

// enter makes the container and goes into it. dir is the member's directory, below which it is put
// together; whoever is outside sees nothing of it.
func (c *Container) enter(dir string) error {
	if err := leaveMounts(); err != nil {
		return ownError(err)
	}
	image, err := c.asUser(func() (int, error) { return unix.Open(c.Image, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return fmt.Errorf("container image: %s: %w", c.Name, err)
	}
	sources, mounts, err := c.open()
	if err != nil {
		return err
	}
	root, err := c.layer(dir, image)
	if err != nil {
		return err
	}
	missing := make([]error, len(mounts)) // why a place could not be made: what is mounted above it may have it
	for i := range mounts {
		var st unix.Stat_t
		if err := unix.Fstat(sources[i], &st); err != nil {
			return fmt.Errorf("container mount: %s: %w", mounts[i].Source, err)
		}
		missing[i] = mounts[i].place(root, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	}
	for i := range mounts {
		if err := c.bind(root, sources[i], &mounts[i], missing[i]); err != nil {
			return fmt.Errorf("container: mount %s on %s: %w", mounts[i].Source, mounts[i].Target, err)
		}
	}
	if err := c.has(root, c.Needs); err != nil {
		return fmt.Errorf("container image: %s: %s, which the script needs: %w", c.Name, c.Needs, err)
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
		return -1, ownError(err)
	}
	if err := unix.Mount("gangd", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return -1, ownError(fmt.Errorf("container: %w", err))
	}
	for _, d := range []string{"root", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
			return -1, ownError(err)
		}
	}
	if err := likeImage(filepath.Join(base, "upper"), image); err != nil {
		return -1, ownError(err)
	}
	at := filepath.Join(base, "root")
	option := fmt.Sprintf("lowerdir=/proc/self/fd/%d,upperdir=%s/upper,workdir=%s/work", image, base, base)
	if err := unix.Mount("gangd", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, option); err != nil {
		return -1, fmt.Errorf("container: overlay over %s: %w", c.Image, err) // its file system may be one that can't be below an overlay
	}
	return unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// likeImage gives the layer's root the owner and mode of the image's: whose the image is makes files and directories there too.
func likeImage(upper string, image int) error {
	var st unix.Stat_t
	if err := unix.Fstat(image, &st); err != nil {
		return err
	}
	if err := unix.Lchown(upper, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	return unix.Chmod(upper, st.Mode&0o7777)
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
				return nil, nil, &blamedError{err, api.BlameFiles}
			}
		}
		switch {
		case err == nil:
			fds, mounts = append(fds, fd), append(mounts, m)
		case m.Maybe && errors.Is(err, os.ErrNotExist):
		case m.User:
			return nil, nil, fmt.Errorf("container mount: %s: %w", m.Source, err)
		default:
			return nil, nil, ownError(fmt.Errorf("container mount: %s: %w", m.Source, err))
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

// asUser opens with the rights of the user.
func (c *Container) asUser(open func() (int, error)) (fd int, err error) {
	if !c.Creds.Switch {
		return open()
	}
	fd = -1
	err = proc.AsUser(c.Creds.credential(), func() (err error) {
		fd, err = open()
		return err
	})
	return fd, err
}

// inRoot opens a path below a root, whose links stay inside: within the layer as root, beyond a mount as the user.
func (c *Container) inRoot(root int, path string) (int, error) {
	fd, err := inLayer(root, path)
	if !errors.Is(err, unix.EXDEV) {
		return fd, err
	}
	return c.asUser(func() (int, error) { return openBelow(root, path, 0) })
}

// inLayer is inRoot for what does not lie beyond a mount; EXDEV: it does.
func inLayer(root int, path string) (int, error) { return openBelow(root, path, unix.RESOLVE_NO_XDEV) }

func openBelow(root int, path string, resolve uint64) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | resolve})
}

// has says why a program is not there, in the image or mounted into it; empty asks for nothing.
func (c *Container) has(root int, program string) error {
	if program == "" {
		return nil
	}
	fd, err := c.inRoot(root, program)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// bind shows an open directory or file at the target below root. missing is why its place could not be made.
func (c *Container) bind(root, source int, m *Mount, missing error) error {
	target, err := c.inRoot(root, m.Target)
	switch {
	case err == nil:
		defer unix.Close(target)
	case m.Maybe:
		return nil
	case missing != nil && !errors.Is(missing, os.ErrExist): // else a link of the image that leads nowhere
		return missing
	case errors.Is(err, os.ErrNotExist) && m.User:
		return fmt.Errorf("%w in what is mounted above it: make it there first, or mount it elsewhere", err)
	case errors.Is(err, os.ErrNotExist): // the site's mounts or the user's hide where the member's own belongs
		return &blamedError{fmt.Errorf("%w in what is mounted above it", err), api.BlameUnknown}
	default:
		return err
	}
	// Whole before it is seen: looked up once more, the target might be another.
	tree, err := unix.OpenTree(source, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if m.ReadOnly {
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
			&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// place makes the target in the layer, over which nothing is mounted yet, where it is missing and has to be there.
func (m *Mount) place(root int, isDir bool) error {
	fd, err := inLayer(root, m.Target)
	if err == nil {
		return unix.Close(fd)
	}
	if !errors.Is(err, os.ErrNotExist) || m.Maybe && !isDir {
		return err
	}
	at, path := root, ""
	parts := strings.Split(strings.Trim(filepath.Clean(m.Target), "/"), "/")
	for i, name := range parts {
		path = filepath.Join(path, name)
		next, err := inLayer(root, path)
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
				next, err = inLayer(root, path)
			}
		}
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil {
			return err
		}
		at = next
	}
	return unix.Close(at)
}

// mountsBlame says whose fault it is that mounts of a member could not be made.
func mountsBlame(err error) api.Blame {
	if e := new(blamedError); errors.As(err, &e) {
		return e.whose
	}
	return refusal(err).Blame
}
