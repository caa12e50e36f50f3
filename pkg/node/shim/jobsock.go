package shim

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/wire/jobapi"
)

const (
	// noteEvery bounds how often what ranks say is passed on: a training loop may beat
	// a thousand times a second, and people look once.
	noteEvery = time.Second
	// perBreath bounds the datagrams and connections that are taken of one rank in so long. One
	// that floods its sockets waits, as its kernel makes it; it neither holds up the stop of the others
	// nor has the node spend its cores on listening.
	perBreath = 64
	breath    = 10 * time.Millisecond
	// lingerFor is how long a connection that nobody takes may stay without a request, and how
	// long it is kept after the answer: closed at once, a program that is still sending its
	// checkpoint would see a broken pipe and never the reason.
	lingerFor = 2 * time.Second
	// lingerMost bounds those connections: a program that asks in a loop must not use up the
	// shim's descriptors. The oldest goes.
	lingerMost = 64
	// maxTaskSockets bounds the tasks of a member that have sockets at a time, two descriptors each.
	maxTaskSockets = 1024
)

// jobSockets are what the ranks speak to, and the tasks of steps, which are ranks in all of
// this. Each has its own pair, so that it is known who speaks: systemd-notify, say, is gone
// before its process id could be looked up.
type jobSockets struct {
	ranks  []rankSockets // of the gang, then of the tasks of each step
	uid    int
	state  string        // gnoded's state directory
	due    bool          // notes are to be told
	urgent bool          // at once
	next   time.Duration // not before, monotonic
	linger []lingeringConn
}

type rankSockets struct {
	step         int  // -1: a rank of the gang
	rank         int  // or the number of the task
	size         int  // tasks of the step
	notify, http int  // -1: none
	ended        bool // the task's process has
	note         api.RankNote
	beatAt       time.Duration    // CLOCK_BOOTTIME, of the last beat
	silence      watchdog.Silence // on the monotonic clock: the ranks sleep with the machine
	taken        int              // since the breath began
	breathAt     time.Duration    // monotonic
}

// take counts one more that is taken of a rank; false: not now.
func (r *rankSockets) take(now time.Duration) bool {
	if now >= r.breathAt+breath {
		r.breathAt, r.taken = now, 0
	}
	if r.taken == perBreath {
		return false
	}
	r.taken++
	return true
}

// rests is for how long nothing is taken of a rank.
func (r *rankSockets) rests(now time.Duration) time.Duration {
	if r.taken < perBreath {
		return 0
	}
	return max(r.breathAt+breath-now, 0)
}

// lingeringConn is a connection that no gnoded took, or that is of another user.
type lingeringConn struct {
	fd     int
	answer []byte        // nil: it was given
	until  time.Duration // monotonic; in order
}

// open makes the sockets in the working directory, for the job's user alone. A socket that
// can't be made is missing: the job runs without it.
func (j *jobSockets) open(s *Spec) {
	*j = jobSockets{uid: unix.Geteuid(), state: filepath.Dir(filepath.Dir(s.Dir))}
	if s.SwitchUser {
		j.uid = int(s.UID)
	}
	for _, r := range s.Ranks {
		j.ranks = append(j.ranks, openRank(s, rankSockets{step: -1, rank: r.Rank}))
	}
}

// openRank makes the sockets of a rank or task.
func openRank(s *Spec, r rankSockets) rankSockets {
	r.note, r.silence = api.RankNote{Rank: r.rank}, watchdog.Silence{Timeout: s.Watch.StallTimeout}
	r.notify, r.http = rankSocket(s, unix.SOCK_DGRAM, r.name(jobapi.NotifyPrefix)), rankSocket(s, unix.SOCK_STREAM,
		r.name(jobapi.SocketPrefix))
	return r
}

// name is that of a socket in the member's directory.
func (r *rankSockets) name(prefix string) string {
	if r.step < 0 {
		return jobapi.Name(prefix, r.rank)
	}
	return jobapi.TaskName(prefix, r.step, r.rank)
}

// openStep makes the sockets of the tasks of a step: for all of them, or for none and says why.
func (j *jobSockets) openStep(s *Spec, o *api.StepOrder) (why string) {
	have := 0
	for i := range j.ranks {
		if j.ranks[i].step >= 0 {
			have++
		}
	}
	switch {
	case len(o.Numbers) == 0:
		return "the controller is older than this node"
	case have+len(o.Numbers) > maxTaskSockets:
		return "on one node " + strconv.Itoa(maxTaskSockets) + " tasks of a job have them at a time"
	case jobapi.Reachable(s.Dir, jobapi.TaskName(jobapi.NotifyPrefix, o.ID, slices.Max(o.Numbers))) == "":
		return "the path of the node's state directory is too long"
	}
	for _, n := range o.Numbers {
		r := openRank(s, rankSockets{step: o.ID, rank: n, size: o.Size})
		j.ranks = append(j.ranks, r)
		if r.notify < 0 || r.http < 0 {
			j.closeStep(o.ID)
			return "they could not be made: see " + LogFile + " of the job on the node"
		}
	}
	return ""
}

// closeStep ends the sockets of the tasks of a step.
func (j *jobSockets) closeStep(id int) {
	j.ranks = slices.DeleteFunc(j.ranks, func(r rankSockets) bool {
		if r.step != id {
			return false
		}
		r.close()
		return true
	})
}

// taskEnded: the process of a task has ended. It is not waited for any more.
func (j *jobSockets) taskEnded(step, task int) {
	for i := range j.ranks {
		if r := &j.ranks[i]; r.step == step && r.rank == task && !r.ended {
			r.ended = true
			j.due, j.urgent = true, true
		}
	}
}

func (r *rankSockets) close() {
	for _, fd := range []int{r.notify, r.http} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	_ = unix.Unlink(r.name(jobapi.NotifyPrefix))
	_ = unix.Unlink(r.name(jobapi.SocketPrefix))
}

func rankSocket(s *Spec, kind int, name string) int {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		logf("socket %s: %v", name, err)
		return -1
	}
	_ = unix.Unlink(name)
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err == nil && s.SwitchUser { // 0600 by the umask
		err = unix.Fchownat(unix.AT_FDCWD, name, int(s.UID), int(s.GID), unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 64)
	}
	if err == nil && kind == unix.SOCK_DGRAM {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}
	if err != nil {
		logf("socket %s: %v", name, err)
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

func (j *jobSockets) close() {
	for i := range j.ranks {
		j.ranks[i].close()
	}
	for _, l := range j.linger {
		_ = unix.Close(l.fd)
	}
	*j = jobSockets{}
}

// watch adds the sockets to a poll, two for each rank, and the connections that are still to
// be answered; the kernel skips -1.
func (j *jobSockets) watch(fds []unix.PollFd) []unix.PollFd {
	now := clock(unix.CLOCK_MONOTONIC)
	for i := range j.ranks {
		r := &j.ranks[i]
		notify, http := r.notify, r.http
		if r.rests(now) > 0 {
			notify, http = -1, -1
		}
		fds = append(fds, unix.PollFd{Fd: int32(notify), Events: unix.POLLIN}, unix.PollFd{Fd: int32(http), Events: unix.POLLIN})
	}
	for _, l := range j.linger {
		fd := int32(-1)
		if l.answer != nil {
			fd = int32(l.fd)
		}
		fds = append(fds, unix.PollFd{Fd: fd, Events: unix.POLLIN})
	}
	return fds
}

// wait is how long a poll may sleep before something is due here.
func (j *jobSockets) wait(now time.Duration) time.Duration {
	d := time.Duration(math.MaxInt64)
	switch {
	case j.urgent:
		return 0
	case j.due:
		d = max(j.next-now, 0)
	}
	if len(j.linger) > 0 {
		d = min(d, max(j.linger[0].until-now, 0))
	}
	for i := range j.ranks {
		r := &j.ranks[i]
		if at, ok := r.silence.Due(); ok && !r.note.Silent {
			d = min(d, max(at-now, 0))
		}
		if rest := r.rests(now); rest > 0 {
			d = min(d, rest)
		}
	}
	return d
}

// serveRanks takes what came on the polled sockets.
func (m *member) serveRanks(fds []unix.PollFd) {
	j := &m.jobs
	j.answer(fds[2*len(j.ranks):])
	for i := range j.ranks {
		if fds[2*i].Revents != 0 {
			m.hear(&j.ranks[i])
		}
		if fds[2*i+1].Revents != 0 {
			j.accept(m.spec.MemberKey, &j.ranks[i])
		}
	}
}

// hear reads the notifications of one rank, its children's among them. Descriptors that come
// along are closed when their datagram has been dealt with, which is what the sender of
// BARRIER=1 waits for.
func (m *member) hear(r *rankSockets) {
	buf, oob := make([]byte, jobapi.MaxDatagram), make([]byte, 512)
	var extend time.Duration // the longest wish of many is enough
	for r.take(clock(unix.CLOCK_MONOTONIC)) {
		n, oobn, _, _, err := unix.Recvmsg(r.notify, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != nil {
			break
		}
		if uid := sender(oob[:oobn]); uid == 0 || uid == m.jobs.uid {
			word := jobapi.Parse(buf[:n])
			extend = max(extend, word.Extend)
			m.said(r, word)
		}
	}
	if extend > 0 {
		m.step(supervise.Extend{By: extend})
		m.extendStep(r.step, extend)
	}
}

// sender is the user a datagram came from, -1 when the kernel did not say, and closes the
// descriptors in it.
func sender(oob []byte) (uid int) {
	uid = -1
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return uid
	}
	for i := range msgs {
		if cred, err := unix.ParseUnixCredentials(&msgs[i]); err == nil {
			uid = int(cred.Uid)
		}
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
		}
	}
	return uid
}

func (m *member) said(r *rankSockets, n jobapi.Notification) {
	before := r.note
	if n.Beat {
		r.note.Beats++
		r.beatAt = clock(unix.CLOCK_BOOTTIME)
		r.silence.Beat(clock(unix.CLOCK_MONOTONIC))
		r.note.Silent = false
	}
	if n.HasStatus {
		r.note.Status = n.Status
	}
	r.note.Ready = r.note.Ready || n.Ready
	r.note.Stopping = r.note.Stopping || n.Stopping
	r.note.Saved = r.note.Saved || n.Saved
	now := r.note
	m.jobs.due = m.jobs.due || now != before
	m.jobs.urgent = m.jobs.urgent || now.Ready != before.Ready || now.Stopping != before.Stopping || now.Saved != before.Saved ||
		now.Silent != before.Silent
}

// listen finds the ranks that have fallen silent. One that has exited has nothing to say.
func (m *member) listen() {
	now := clock(unix.CLOCK_MONOTONIC)
	for i := range m.jobs.ranks {
		r := &m.jobs.ranks[i]
		if i < len(m.ranks) && !m.ranks[i].live() || r.ended {
			r.silence.End()
		}
		if over := r.silence.Over(now); over != r.note.Silent {
			r.note.Silent = over
			m.jobs.due, m.jobs.urgent = true, true
		}
	}
}

// tellNotes passes on what ranks said, when it is time.
func (m *member) tellNotes() {
	j, now := &m.jobs, clock(unix.CLOCK_MONOTONIC)
	j.hangUp(now)
	again := m.conns.fresh
	m.conns.fresh = false
	if !again && !j.urgent && (!j.due || now < j.next && !m.over) {
		return
	}
	j.due, j.urgent, j.next = false, false, now+noteEvery
	notes := &api.MemberNote{MemberKey: m.spec.MemberKey}
	for i := range j.ranks {
		r := &j.ranks[i]
		if r.note == (api.RankNote{Rank: r.rank}) && !r.ended {
			continue
		}
		n := r.note
		if n.Beats > 0 {
			n.BeatAge = clock(unix.CLOCK_BOOTTIME) - r.beatAt
		}
		if r.step >= 0 {
			notes.Tasks = append(notes.Tasks, api.TaskNote{Step: r.step, RankNote: n, Ended: r.ended})
		} else {
			notes.Ranks = append(notes.Ranks, n)
		}
	}
	if len(notes.Ranks) == 0 && len(notes.Tasks) == 0 {
		return
	}
	m.conns.tell(line(Answer{Notes: notes}))
}

// accept takes a connection of a rank and hands it to gnoded, or keeps it for its answer.
// Only the job's own user may speak for it, and root.
func (j *jobSockets) accept(k api.MemberKey, r *rankSockets) {
	now := clock(unix.CLOCK_MONOTONIC)
	if !r.take(now) {
		return
	}
	fd, _, err := unix.Accept4(r.http, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		_ = unix.Close(fd)
		return
	}
	answer := jobapi.Unavailable
	if cred.Uid == 0 || int(cred.Uid) == j.uid {
		caller := jobapi.Caller{MemberKey: k, Rank: r.rank, UID: cred.Uid}
		if r.step >= 0 {
			caller.Step, caller.Size = &r.step, r.size
		}
		if err := j.handOver(caller, fd); err == nil {
			_ = unix.Close(fd) // gnoded has its own
			return
		}
	} else {
		answer = jobapi.Foreign
	}
	if len(j.linger) == lingerMost {
		_ = unix.Close(j.linger[0].fd)
		j.linger = j.linger[1:]
	}
	j.linger = append(j.linger, lingeringConn{fd: fd, answer: answer, until: now + lingerFor})
}

// answer says on the connections that have begun a request why nobody serves it;
// fds are those of watch. Said before there is one, clients drop it: HTTP knows no answer
// without a request.
func (j *jobSockets) answer(fds []unix.PollFd) {
	if len(fds) == 0 {
		return // as in almost every poll
	}
	until := clock(unix.CLOCK_MONOTONIC) + lingerFor
	var kept, answered []lingeringConn
	for i, l := range j.linger {
		if l.answer == nil || fds[i].Revents == 0 {
			kept = append(kept, l)
			continue
		}
		_, _ = unix.SendmsgN(l.fd, l.answer, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		_ = unix.Shutdown(l.fd, unix.SHUT_WR)
		answered = append(answered, lingeringConn{fd: l.fd, until: until})
	}
	j.linger = append(kept, answered...)
}

func (j *jobSockets) handOver(c jobapi.Caller, fd int) error {
	dir, err := unix.Open(j.state, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return jobapi.HandOver(dir, c, fd)
}

// hangUp closes the connections without a request, or answered, that had their time. What was
// sent on them meanwhile lies in the kernel, bounded by the socket's buffer.
func (j *jobSockets) hangUp(now time.Duration) {
	for len(j.linger) > 0 && now >= j.linger[0].until {
		_ = unix.Close(j.linger[0].fd)
		j.linger = j.linger[1:]
	}
}
