package rpc

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/turns"
	"gangd/pkg/wire/auth"
)

// smallBody is how much of a request is read at once. A larger one (a script, an environment) waits
// for its turn with the rest on its connection, where the kernel bounds what a caller can send: a
// body is several times its size in memory before it is on the disk.
const smallBody = 64 << 10

// manyBodies refuses a user more of them.
var manyBodies = &api.Error{Code: api.CodeTooMany, RetryAfter: 1,
	Message: fmt.Sprintf("%d requests of yours with more than %d KiB wait already, the most that may", turns.Waiting, smallBody>>10),
	Hint:    "submit many jobs as one array, and leave out of the environment what they do not need: --export=NAME,NAME"}

// body is a request's, which takes a turn for what is above smallBody. It keeps it until the call is
// answered.
type body struct {
	io.ReadCloser
	read int
	turn func() (done func(), err error)
	done func() // nil: it has no turn
	err  error  // it got none
}

func (b *body) Read(p []byte) (int, error) {
	if b.done == nil && b.err == nil {
		if b.read >= smallBody {
			b.done, b.err = b.turn()
		} else {
			p = p[:min(len(p), smallBody-b.read)]
		}
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

func (b *body) end() {
	if b.done != nil {
		b.done()
	}
}

// bodyOf makes the body of a call one of at most maxBody that waits for its turn. The time that
// takes is not the caller's.
func (s *Server) bodyOf(w http.ResponseWriter, r *http.Request, id auth.Identity) *body {
	return &body{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody), turn: func() (func(), error) {
		done, err := s.bodies.Take(r.Context(), id.UID, manyBodies)
		if err == nil {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(auth.BodyPatience))
		}
		return done, err
	}}
}
