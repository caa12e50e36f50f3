package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"
)

// The client speaks HTTP/1.1 itself, one call a connection: a unix socket is dialled in
// 30 us, and net/http with its TLS, HTTP/2 and proxy parts costs every command 0.8 ms of
// start-up, a quarter of what a submission takes. It is a client of our controller only:
// the answer has a length or is chunked, there are no redirects and no compression.

// maxHeaderBytes bounds status line and headers.
const maxHeaderBytes = 64 << 10

// maxChunk bounds the size line of one chunk's claim; ours are a few kilobytes.
const maxChunk = 1 << 30

// maxTrusted bounds what is made room for on the answer's word alone.
const maxTrusted = 64 << 20

// maxWrite is as much of a request as has a time of its own to be taken.
const maxWrite = 64 << 10

var past = time.Unix(1, 0)

// line is a connection with a controller that may fall silent.
type line struct {
	net.Conn
	ctx   context.Context
	limit time.Duration // of silence; 0: none
	// alive asks whether the controller lives, of a call that may rightly be silent; it is asked
	// after half the limit. Nil: silence ends the call.
	alive func(within time.Duration) error
}

// Read waits for the next bytes, for as long as the controller is known to live.
func (l *line) Read(p []byte) (int, error) {
	for {
		step := l.limit
		if l.alive != nil {
			step /= 2
		}
		n, err := l.within(step, l.Conn.SetReadDeadline, func() (int, error) { return l.Conn.Read(p) })
		if n > 0 || l.alive == nil || !Silent(err) {
			return n, err
		}
		if err := l.alive(l.limit - step); err != nil {
			return 0, err
		}
	}
}

func (l *line) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		piece := p[written:min(written+maxWrite, len(p))]
		n, err = l.within(l.limit, l.Conn.SetWriteDeadline, func() (int, error) { return l.Conn.Write(piece) })
		written += n
	}
	return written, err
}

// within does what may take so long.
func (l *line) within(limit time.Duration, deadline func(time.Time) error, do func() (int, error)) (int, error) {
	if limit > 0 {
		if err := deadline(time.Now().Add(limit)); err != nil {
			return 0, err
		}
	}
	// After the deadline was set: the end of ctx, which puts it into the past, may have come before.
	if l.ctx.Err() != nil {
		return 0, context.Cause(l.ctx)
	}
	n, err := do()
	if errors.Is(err, os.ErrDeadlineExceeded) && l.ctx.Err() == nil {
		err = &silentError{For: l.limit}
	}
	return n, err
}

// response is an answer whose body is being read.
type response struct {
	status  int
	text    string // "404 Not Found"
	body    io.Reader
	trailer textproto.MIMEHeader // complete once the body has ended
	ctx     context.Context
	conn    net.Conn
	stop    func() bool
}

// exchange sends one request and reads the head of its answer. What limit and alive are: see [line].
func exchange(ctx context.Context, socket, method, path string, body []byte, limit time.Duration,
	alive func(time.Duration) error) (*response, error) {
	d := net.Dialer{Timeout: limit}
	conn, err := d.DialContext(ctx, "unix", socket)
	if op := net.Error(nil); errors.As(err, &op) && op.Timeout() && ctx.Err() == nil {
		return nil, &silentError{For: limit}
	}
	if err != nil {
		return nil, err
	}
	r := &response{ctx: ctx, conn: &line{Conn: conn, ctx: ctx, limit: limit, alive: alive}}
	// A deadline that has passed wakes whoever reads or writes.
	r.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	if err := r.start(method, path, body); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *response) start(method, path string, body []byte) error {
	head := method + " " + path + " HTTP/1.1\r\nHost: gangd\r\nConnection: close\r\n"
	if body != nil {
		head += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	buffers := net.Buffers{[]byte(head + "\r\n"), body}
	// A controller that refuses a large request answers before it has read all of it: the
	// answer says more than the broken write.
	_, wrote := buffers.WriteTo(r.conn)
	br := bufio.NewReaderSize(r.conn, 16<<10)
	if err := r.readHead(br); err != nil {
		if wrote != nil {
			return wrote
		}
		return err
	}
	return nil
}

func (r *response) readHead(br *bufio.Reader) error {
	// Headers are bounded by reading them through a limit; the body goes on behind it.
	tr := textproto.NewReader(bufio.NewReaderSize(&headReader{br: br, left: maxHeaderBytes}, 1))
	line, err := tr.ReadLine()
	if err != nil {
		return unexpected(err)
	}
	version, text, ok := strings.Cut(line, " ")
	r.text = text
	code, _, _ := strings.Cut(text, " ")
	if r.status, err = strconv.Atoi(code); err != nil || !ok || !strings.HasPrefix(version, "HTTP/1.") {
		return fmt.Errorf("the answer is not HTTP: %.40q", line)
	}
	h, err := tr.ReadMIMEHeader()
	if err != nil {
		return unexpected(err)
	}
	switch length := h.Get("Content-Length"); {
	case h.Get("Transfer-Encoding") == "chunked":
		r.body = &chunked{br: br, r: r}
	case length != "":
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("the answer has Content-Length %q", length)
		}
		r.body = &sized{br: br, left: n}
	default:
		r.body = br // to the end of the connection
	}
	return nil
}

// headReader gives one byte at a time, so that nothing of the body is read ahead.
type headReader struct {
	br   *bufio.Reader
	left int
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.left--; h.left < 0 {
		return 0, errors.New("the headers of the answer are too long")
	}
	b, err := h.br.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

// unexpected: an end in the middle is not an end.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read reads the body.
func (r *response) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	return n, err
}

// Len is how much of the body is left, as far as the answer said.
func (r *response) Len() int {
	if s, ok := r.body.(*sized); ok {
		return int(min(s.left, maxTrusted))
	}
	return 0
}

// Close ends the call.
func (r *response) Close() {
	r.stop()
	_ = r.conn.Close()
}

// sized is a body of known length.
type sized struct {
	br   *bufio.Reader
	left int64
}

func (s *sized) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.br.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, unexpected(err)
}

// chunked is a body in pieces, with trailers at its end.
type chunked struct {
	br   *bufio.Reader
	r    *response
	left int64 // of the current chunk
	any  bool  // a chunk was begun: its CRLF has to be read before the next
	done bool
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, unexpected(err)
		}
		if c.left == 0 {
			c.done = true
			return 0, c.trailers()
		}
	}
	n, err := c.br.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, unexpected(err)
}

func (c *chunked) next() error {
	if c.any {
		if line, err := c.line(); err != nil || line != "" {
			return errors.Join(err, errChunk)
		}
	}
	c.any = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
	if err != nil || n < 0 || n > maxChunk {
		return errChunk
	}
	c.left = n
	return nil
}

var errChunk = errors.New("the answer is malformed")

func (c *chunked) line() (string, error) {
	b, err := c.br.ReadSlice('\n') // within the reader's buffer: a longer line is an error
	return strings.TrimRight(string(b), "\r\n"), err
}

// trailers reads what follows the last chunk; io.EOF is the body's end.
func (c *chunked) trailers() error {
	h, err := textproto.NewReader(c.br).ReadMIMEHeader()
	if err != nil {
		return unexpected(err)
	}
	c.r.trailer = h
	return io.EOF
}
