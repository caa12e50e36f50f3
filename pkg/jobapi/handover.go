package jobapi

import (
	"encoding/json"
	"errors"
	"fmt"
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

// Unavailable is what a rank is answered when no gnoded takes its connection. It is the
// same error that every refusal of the API is, with the status before it.
var Unavailable = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " +
	strconv.Itoa(len(unavailable)) + "\r\nConnection: close\r\n\r\n" + unavailable)

const unavailable = `{"code":"unavailable","message":"the node daemon is restarting","hint":"try again in a second"}`

// Caller is whose connection is being handed over.
type Caller struct {
	api.MemberKey
	Rank int    `json:"rank"`
	UID  uint32 `json:"uid"` // who opened it
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
