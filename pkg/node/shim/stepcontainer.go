package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// A step in a container of its own is started by `gshim launch`: a process of root's in the member's containment
// that makes the mounts and then becomes the step's launcher, as the user. The shim waits for nothing, and the
// mounts are gone with the step.

// StepContainerFile is where gnoded writes the [Container] of a step, in the member's directory, before it orders
// the step.
func StepContainerFile(step int) string { return stepPrefix + strconv.Itoa(step) }

const stepPrefix = "container."

// StepContainerFiles is a pattern of those of all steps.
const StepContainerFiles = stepPrefix + "*"

func (m *member) stepContainer(step int) (*Container, error) {
	text, err := os.ReadFile(StepContainerFile(step))
	if err != nil {
		return nil, err
	}
	c := new(Container)
	return c, json.Unmarshal(text, c)
}

// A container that has a name is kept until the job's end. Who makes it hands the namespace of its mounts to the shim while it is still
// root's, and steps that name it later are forked into that: nothing is mounted for them, and nothing of root's looks at a path in there.

// KeptContainerFile is the [Container] with a name that is kept, in the member's directory.
func KeptContainerFile(name string) string { return keptPrefix + name }

const keptPrefix = "kept."

// maxRoots bounds those of a member.
const maxRoots = 64

// root is a container that is kept.
type root struct {
	InImage
	mounts    []api.ContainerMount // that it was made with
	namespace int                  // open
}

// isBeingMade: a step that has been started is making the container that another one names.
func (m *member) isBeingMade(o *api.StepOrder) bool {
	return o.Container != nil && o.Container.Name != "" && m.roots[o.Container.Name] == nil &&
		slices.ContainsFunc(m.steps, func(p *stepProc) bool { return p.makes == o.Container.Name && p.refused == "" })
}

// rootOf finds what a step runs in: a container that is there ([stepProc.at]), the member's own, or one to be made, which it gives.
func (m *member) rootOf(p *stepProc, c *api.Container) (*Container, error) {
	there := m.roots[c.Name]
	ofJob := c.Name != "" && m.spec.Container != nil && m.spec.Container.Container == c.Name
	switch {
	case c.Use == api.UseNew && (there != nil || ofJob):
		return nil, fmt.Errorf("%s is there already: leave out :create, or give it another name", c.Name)
	case ofJob:
		return nil, nil
	case there != nil:
		p.at = there
		if there.Name == c.Image {
			m.foundImage(p, there.Digest)
		}
		return nil, nil
	case c.Use == api.UseThere || c.Name != "" && c.Image == "":
		return nil, fmt.Errorf("no step of this job has made %s on this node: name an image, and leave out :exec", c.Name)
	case c.Name != "" && len(m.roots) >= maxRoots:
		return nil, fmt.Errorf("this job has %d containers with names on this node, which is all that it may have", maxRoots)
	}
	own, err := m.stepContainer(p.id)
	if err != nil {
		return nil, err
	}
	p.makes, own.Container = c.Name, c.Name
	m.foundImage(p, own.Digest)
	return own, nil
}

// foundImage notes what the image of a step stood for.
func (m *member) foundImage(p *stepProc, digest string) {
	for i := range m.state.Steps {
		if m.state.Steps[i].ID == p.id {
			m.state.Steps[i].Image = digest
		}
	}
}

// knowSenders has the kernel say on a socket who sends: what root's process hands over the user's, which it becomes, can't.
func (p *stepProc) knowSenders(sock int) error {
	if p.makes == "" {
		return nil
	}
	return unix.SetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
}

// readWord reads what a launcher says, and takes the namespace that one hands over who makes a container with a name.
func (m *member) readWord(p *stepProc, buf []byte) (int, error) {
	if p.makes == "" {
		return unix.Read(p.ctl, buf)
	}
	oob := make([]byte, unix.CmsgSpace(4)+unix.CmsgSpace(unix.SizeofUcred))
	n, used, _, _, err := unix.Recvmsg(p.ctl, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:used])
	if err != nil {
		return n, nil
	}
	var handed []int
	var sender *unix.Ucred
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			handed = append(handed, fds...)
		} else if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			sender = cred
		}
	}
	for _, fd := range handed {
		if sender == nil || sender.Uid != 0 || int(sender.Pid) != p.pid || !m.keepRoot(p, fd) {
			_ = unix.Close(fd)
		}
	}
	return n, nil
}

// keepRoot keeps what a step has made; false: it is not wanted.
func (m *member) keepRoot(p *stepProc, namespace int) bool {
	if m.roots[p.makes] != nil || p.start.InImage == nil || p.start.Container == nil {
		return false
	}
	if err := os.Rename(StepContainerFile(p.id), KeptContainerFile(p.makes)); err != nil {
		logf("the container %s is not kept: %v", p.makes, err) // its image may be removed from under it
		p.makes, m.newRoot = "", true
		return false
	}
	if m.roots == nil {
		m.roots = map[string]*root{}
	}
	m.roots[p.makes] = &root{InImage: *p.start.InImage, mounts: p.start.Container.Mounts, namespace: namespace}
	m.newRoot = true
	return true
}

// launchOrder is what `gshim launch` reads from its standard input.
type launchOrder struct {
	Container Container `json:"container"`
	Dir       string    `json:"dir"`            // of the member
	Program   string    `json:"program"`        // the launcher, inside, as who the container's user is
	Kept      bool      `json:"kept,omitempty"` // the namespace is handed over
}

// launchInput is an open file with what `gshim launch` reads.
func (m *member) launchInput(c *Container, kept bool) (int, error) {
	order, err := json.Marshal(&launchOrder{Container: *c, Dir: m.spec.Dir, Program: launcherPath(), Kept: kept})
	if err != nil {
		return -1, err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a thread that shares its directory may not change namespaces
		return -1, err
	}
	return memoryFile(order)
}

// memoryFile is a file that holds some bytes and has no name.
func memoryFile(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("gshim", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		data = data[n:]
	}
	_, err = unix.Seek(fd, 0, io.SeekStart)
	return fd, err
}

// Launch is `gshim launch`. It ends by becoming the launcher, or says why it does not.
func Launch() int {
	runtime.LockOSThread() // whose namespace and rights these are
	err := becomeLauncher()
	_, _ = unix.Write(LauncherFD, line(LauncherWord{Refused: err.Error()}))
	return 1
}

func becomeLauncher() error {
	unix.CloseOnExec(LauncherFD)
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var o launchOrder
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	here, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0) // while that is the machine's
	if err != nil {
		return err
	}
	if err := o.Container.enter(o.Dir); err != nil {
		return err
	}
	if o.Kept {
		if err := unix.Sendmsg(LauncherFD, line(LauncherWord{Made: true}), unix.UnixRights(here), nil, unix.MSG_NOSIGNAL); err != nil {
			return err
		}
	}
	_ = unix.Close(here)
	unix.Umask(0o077)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 2 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	if err := o.Container.Creds.become(); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(LauncherFD, unix.F_SETFD, 0); err != nil {
		return err
	}
	return errors.Join(errors.New("start the launcher of the step in the container"), syscall.Exec(o.Program, []string{LauncherName},
		os.Environ()))
}
