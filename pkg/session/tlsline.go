package session

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
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

// hijacker hands the connection of a request over as a [tlsLine].
type hijacker struct {
	http.ResponseWriter
	line *tlsLine // nil: not over TLS
}

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if c, ok := conn.(*tls.Conn); ok && err == nil {
		h.line = &tlsLine{Conn: c}
		return h.line, rw, nil
	}
	return conn, rw, err
}
