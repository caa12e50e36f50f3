package shim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/jobapi"
)

// The second stage: a process that is already the user opens what the ranks will use and
// hands the open files to the root shim over a socket. Ranks need no second stage of their
// own: the kernel changes user, directory and program in one fork.

const (
	stageFD   = 3                // its end of the socket
	checkWait = 25 * time.Second // less than the reservation timeout: a hung file server is said, not guessed
	fdsPerMsg = 240              // the kernel passes at most 253 in one message
)

// checkReply is what the second stage answers; Files index the descriptors that follow.
type checkReply struct {
	Refusal *api.Refusal `json:"refusal,omitempty"`
	Files   [][3]int     `json:"files,omitempty"`
	Count   int          `json:"count"`
	Tmp     []string     `json:"tmp,omitempty"` // TMPDIR of each rank, where it is seen to
}

// openAsUser runs [Check] as the user, inside the containment.
func (m *member) openAsUser() ([]rankFiles, *api.Refusal) {
	// From here on the user's processes may have had a hand in it: they can end the check, which
	// runs as the user in a containment of the size that was asked for.
	unknown := func(err error) ([]rankFiles, *api.Refusal) {
		return nil, &api.Refusal{Blame: api.BlameUnknown, Text: fmt.Sprintf("check as user %s: %v", m.spec.User, err)}
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if err := m.box.Enter(sys); err != nil {
		return unknown(err)
	}
	m.credential(sys)
	st, err := m.startStage(sys, -1, checkWait, "check")
	m.box.Leave()
	if err != nil {
		return unknown(err)
	}
	defer st.end()
	var reply checkReply
	fds, err := receiveCheck(st.sock, &reply)
	switch {
	case err == unix.EAGAIN:
		return unknown(fmt.Errorf("no answer within %v: is a file server of %s or of the output hanging?", when.Words(checkWait), m.spec.WorkDir))
	case err != nil:
		return unknown(err)
	case reply.Refusal != nil:
		if b := reply.Refusal.Blame; b != api.BlameJob && b != api.BlameFiles {
			reply.Refusal.Blame = api.BlameUnknown // the user may have written the reply
		}
		return nil, reply.Refusal
	}
	m.spec.setTemporaries(api.UnpackAll(reply.Tmp))
	files := make([]rankFiles, len(reply.Files))
	for i, f := range reply.Files {
		files[i] = rankFiles{fds[f[0]], fds[f[1]], fds[f[2]]}
	}
	return files, nil
}

// stage is a gshim that does a part of the preparation: it has the spec on its standard input, and answers over
// a socket.
type stage struct{ pid, sock int }

// startStage starts one inside a namespace of mounts (-1: the machine's). An answer is waited for so long.
func (m *member) startStage(sys *syscall.SysProcAttr, inside int, wait time.Duration, words ...string) (*stage, error) {
	spec, err := os.Open(SpecFile) // root's file: the user gets it open, not by name
	if err != nil {
		return nil, err
	}
	defer spec.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(pair[1])
	pid := 0
	back, err := m.in(inside)
	if err == nil {
		pid, err = syscall.ForkExec("/proc/self/exe", append([]string{"gshim"}, words...), &syscall.ProcAttr{Dir: "/",
			Files: []uintptr{spec.Fd(), 2, 2, uintptr(pair[1])}, Sys: sys})
	}
	back()
	if err != nil {
		_ = unix.Close(pair[0])
		return nil, err
	}
	tv := unix.NsecToTimeval(int64(wait))
	_ = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	return &stage{pid, pair[0]}, nil
}

func (s *stage) end() {
	_ = unix.Close(s.sock)
	_ = unix.Kill(s.pid, unix.SIGKILL)
	_, _ = waitPID(s.pid)
}

// nobody is who looks for the home directory: the user could put words into the mouth of a
// process of his own, and root looks at nothing that a user names.
const nobody = 65534

// homeWait bounds that look.
const homeWait = 5 * time.Second

// lookAtHome finds out whether the user's files are amiss because the home directory, which the
// user database names, is not there on this node. No user can bring that about.
func (m *member) lookAtHome(r *api.Refusal) {
	home := m.spec.Home
	if r.Blame != api.BlameFiles || home == "" || !m.spec.uses(home) || !m.noHome(home) {
		return
	}
	r.Blame = api.BlameSite
	r.Text += fmt.Sprintf(" (the home directory %s is not there on this node)", home)
}

// uses: one of the member's paths is in dir.
func (s *Spec) uses(dir string) bool {
	in := func(path string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	}
	return in(s.WorkDir) || slices.ContainsFunc(s.Ranks, func(r RankSpec) bool { return in(r.Output) || in(r.Error) || in(r.Input) })
}

func (m *member) noHome(home string) bool {
	if !m.spec.SwitchUser {
		return missing(home)
	}
	sys := &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"gshim", "missing", home}, &syscall.ProcAttr{Dir: "/", Files: []uintptr{2, 2, 2},
		Sys: sys})
	if err != nil {
		return false
	}
	late := time.AfterFunc(homeWait, func() { _ = unix.Kill(pid, unix.SIGKILL) })
	defer late.Stop()
	ws, err := waitPID(pid)
	return err == nil && ws.Exited() && ws.ExitStatus() == 0
}

// missing reports whether there is nothing at a path, and nothing else keeps it from being seen.
func missing(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == unix.ENOENT
}

// Missing is `gshim missing PATH`, started by a root shim: status 0 when there is nothing.
func Missing(path string) int {
	if missing(path) {
		return 0
	}
	return 1
}

// receiveCheck reads the reply and the descriptors behind it.
func receiveCheck(sock int, reply *checkReply) ([]int, error) {
	buf, oob := make([]byte, 256<<10), make([]byte, unix.CmsgSpace(4*fdsPerMsg))
	n, _, err := jobapi.Recvmsg(sock, buf, nil)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(buf[:n], reply); err != nil {
		return nil, err
	}
	var fds []int
	for len(fds) < reply.Count {
		_, oobn, err := jobapi.Recvmsg(sock, buf[:1], oob)
		if err != nil {
			return fds, err
		}
		msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(msgs) == 0 {
			return fds, io.ErrUnexpectedEOF
		}
		got, err := unix.ParseUnixRights(&msgs[0])
		if err != nil {
			return fds, err
		}
		fds = append(fds, got...)
	}
	for _, f := range reply.Files {
		for _, i := range f {
			if i < 0 || i >= len(fds) {
				return fds, fmt.Errorf("descriptor %d of %d", i, len(fds))
			}
		}
	}
	return fds, nil
}

// specFromInput is what a root shim hands to a stage of its own on its standard input.
func specFromInput() (s Spec, err error) {
	b, err := io.ReadAll(os.Stdin)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}

// Check is the second stage: `gshim check`, started by a root shim as the user, the spec on
// its standard input.
func Check() int {
	s, err := specFromInput()
	if err != nil {
		return fail(err)
	}
	files, refusal := openFiles(&s, nil)
	reply := checkReply{Refusal: refusal}
	if s.Batch && s.LastWords {
		reply.Tmp = api.PackAll(s.temporaries())
	}
	var fds []int
	index := map[int]int{}
	at := func(fd int) int {
		if _, ok := index[fd]; !ok {
			index[fd] = len(fds)
			fds = append(fds, fd)
		}
		return index[fd]
	}
	for _, f := range files {
		reply.Files = append(reply.Files, [3]int{at(f.in), at(f.out), at(f.err)})
	}
	reply.Count = len(fds)
	b, err := json.Marshal(reply)
	if err == nil {
		err = unix.Sendto(stageFD, b, unix.MSG_NOSIGNAL, nil)
	}
	for len(fds) > 0 && err == nil {
		n := min(len(fds), fdsPerMsg)
		err = unix.Sendmsg(stageFD, []byte{0}, unix.UnixRights(fds[:n]...), nil, unix.MSG_NOSIGNAL)
		fds = fds[n:]
	}
	if err != nil {
		return fail(err)
	}
	return 0
}
