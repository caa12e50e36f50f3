package session

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// What is buffered of each session.
const (
	readBuffer  = 512
	writeBuffer = 1024
)

// tlsLine is the connection under a session that a controller serves over a network. The
// other side takes its plain end for the end of this process, see [HungUp]: a process that
// lives must never bring that about. Closing TLS first is not enough, for it is left out
// when a write is under way, as it is on a line that was cut: so a living process resets.
type tlsLine struct {
	*tls.Conn
	ending atomic.Bool // this process is: a plain end tells the truth
}

// Close ends the connection, by a reset while the process goes on.
func (l *tlsLine) Close() error {
	if tcp, ok := l.NetConn().(*net.TCPConn); ok && !l.ending.Load() {
		_ = tcp.SetLinger(0)
	}
	return l.Conn.Close()
}

// hijacker hands the connection of a request over as a [tlsLine], with buffers that are large enough for what
// a session mostly says: a beat. What is larger goes past them. Those of the request would stay for as
// long as the session lasts, and there may be ten thousand.
type hijacker struct {
	http.ResponseWriter
	served net.Conn // what was handed over
	conn   net.Conn // below TLS
	line   *tlsLine // nil: not over TLS
}

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = conn
	if c, ok := conn.(*tls.Conn); ok {
		h.conn = c.NetConn()
		h.line = &tlsLine{Conn: c}
		conn = h.line
	}
	h.served = conn
	early, err := rw.Peek(rw.Reader.Buffered())
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn), max(readBuffer, len(early)))
	if _, err := in.Peek(len(early)); err != nil { // whoever takes it over looks for them in the buffer
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(in, bufio.NewWriterSize(conn, writeBuffer)), nil
}
