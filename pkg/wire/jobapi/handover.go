package jobapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// Names of the sockets in a member's directory. Short, because a socket's path ends at 107 bytes.
const (
	NotifyPrefix = "n" // n0: datagrams of rank 0
	SocketPrefix = "g" // g0: HTTP of rank 0
	CheckPrefix  = "c" // c0: the checkpoint that was handed over to rank 0
)

// NodeSocket is gnoded's own socket, in its state directory: gshim hands connections to it.
const NodeSocket = "jobs"

// Name is a prefix with its rank.
func Name(prefix string, rank int) string { return prefix + strconv.Itoa(rank) }

// TaskName is a prefix with its step and task: n4.1 is task 1 of step 4.
func TaskName(prefix string, step, task int) string {
	return prefix + strconv.Itoa(step) + "." + strconv.Itoa(task)
}

// maxSocketPath is the longest path of a unix socket that a program can connect to.
const maxSocketPath = 107

// Reachable gives the path of a socket in a directory; empty where it is longer than any
// program could connect to.
func Reachable(dir, name string) string {
	p := filepath.Join(dir, name)
	if len(p) > maxSocketPath {
		return ""
	}
	return p
}

// ReadSmall reads a checkpoint that fits an environment, nil where it does not.
func ReadSmall(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil || base64.StdEncoding.EncodedLen(int(st.Size())) > api.MaxCheckpointEnv {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if b == nil {
		b = []byte{} // an empty checkpoint is one
	}
	return b, err
}

// What is answered without a gnoded: the same error that every refusal of the API is, with the
// status before it.
var (
	// Unavailable is for a rank whose connection no gnoded takes.
	Unavailable = refusal("503 Service Unavailable", &api.Error{Code: api.CodeUnavailable, Message: "the node daemon is restarting",
		Hint: "try again in a second"})
	// Foreign is for a process of another user than the job's.
	Foreign = refusal("403 Forbidden", &ForeignUser)
)

// ForeignUser is what [Foreign] says, also for who is not let so far.
var ForeignUser = api.Error{Code: api.CodePermission, Message: "GANG_SOCKET is for processes of the job's own user, and for root's",
	Hint: "start it as the user who submitted the job, without sudo or su"}

func refusal(status string, e *api.Error) []byte {
	body, err := json.Marshal(e)
	if err != nil {
		panic("refusal does not marshal: " + err.Error())
	}
	return append([]byte("HTTP/1.1 "+status+"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+
		"\r\nConnection: close\r\n\r\n"), body...)
}

// Caller is whose connection is being handed over.
type Caller struct {
	api.MemberKey
	Step *int   `json:"step,omitempty"` // of a task
	Size int    `json:"size,omitempty"` // tasks of that step
	Rank int    `json:"rank"`           // or the number of the task
	UID  uint32 `json:"uid"`            // who opened it
}

// HandOver gives an open connection to the daemon that listens in the state directory of
// which dirFD is an open descriptor. It never blocks: an error means nobody took it.
func HandOver(dirFD int, c Caller, conn int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Through the descriptor: the directory's own name may be longer than a socket's may be.
	path := "/proc/self/fd/" + strconv.Itoa(dirFD) + "/" + NodeSocket
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return unix.Sendmsg(fd, b, unix.UnixRights(conn), nil, unix.MSG_NOSIGNAL)
}

// Receive takes one connection that was handed over on fd, with who handed it: the kernel's
// word on the peer of fd.
func Receive(fd int) (c Caller, conn int, from *unix.Ucred, err error) {
	if from, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
		return c, -1, nil, err
	}
	buf, oob := make([]byte, 1024), make([]byte, unix.CmsgSpace(4*4))
	n, oobn, err := Recvmsg(fd, buf, oob)
	if err != nil {
		return c, -1, from, err
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return c, -1, from, err
	}
	if err := json.Unmarshal(buf[:n], &c); err != nil || len(fds) != 1 {
		for _, f := range fds {
			_ = unix.Close(f)
		}
		return c, -1, from, fmt.Errorf("handed over %d descriptors with %q", len(fds), buf[:n])
	}
	return c, fds[0], from, nil
}

// Recvmsg receives a message, its descriptors close-on-exec, and goes on waiting after a
// signal: the Go runtime sends some to its own threads, and the kernel does not by itself
// resume a wait that has a time-out.
func Recvmsg(fd int, buf, oob []byte) (n, oobn int, err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
	}
	return n, oobn, err
}

func rights(oob []byte) ([]int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, fds...)
	}
	return all, nil
}

func closeAll(fds []int) (err error) {
	for _, f := range fds {
		err = errors.Join(err, unix.Close(f))
	}
	return err
}
