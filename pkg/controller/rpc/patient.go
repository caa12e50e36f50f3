package rpc

import (
	"net/http"
	"time"
)

// writePatience is how long a reader may take over a piece of an answer before it is cut. Who is slower than that
// holds a goroutine, a connection, and what was read for it; one that follows comes again and goes on where it was.
const writePatience = 10 * time.Second

// writePiece is what has that long.
const writePiece = 256 << 10

// patient gives each piece of an answer its own deadline. That of the last piece stands for what is still in buffers
// when the handler is done; the next call on the connection begins without one.
type patient struct {
	http.ResponseWriter
	out *http.ResponseController
}

func newPatient(w http.ResponseWriter) *patient {
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // fails for a recorder of a test alone
	return &patient{w, out}
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) Write(b []byte) (int, error) {
	written := 0
	for {
		_ = p.out.SetWriteDeadline(time.Now().Add(writePatience))
		n, err := p.ResponseWriter.Write(b[written:min(written+writePiece, len(b))])
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}
