package rpc

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// writePatience is how long a reader may take over a piece of a list before it is cut: it
// keeps others waiting.
const writePatience = 10 * time.Second

// manyLists refuses a user more of them. Lists of jobs are what costs the controller memory: 100,000
// jobs are hundreds of megabytes of text.
var manyLists = &api.Error{Code: api.CodeTooMany, RetryAfter: 1, Message: fmt.Sprintf("%d lists of yours wait already, the most that may", turnsWaiting),
	Hint: "ask once and for less: gqueue -j ID, gqueue --me, or follow with gqueue --watch"}

// manyPlans refuses a user more of them: each plans the whole queue anew, which takes a processor as long as a
// real plan does.
var manyPlans = &api.Error{Code: api.CodeTooMany, RetryAfter: 1, Message: fmt.Sprintf("%d questions of yours what would start wait already, the most that may", turnsWaiting),
	Hint: "ask for one job at a time: gqueue --why ID, gsubmit --test-only"}

// listing is a handler whose answer may be long: it waits for its turn, and a reader who stops
// is cut.
func (s *Server) listing(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
		ask, err := io.ReadAll(r.Body) // before the turn: who sends slowly keeps nobody waiting
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(ask))
		done, err := s.lists.take(r.Context(), id.UID, manyLists)
		if err != nil {
			return err
		}
		defer done()
		out := http.NewResponseController(w)
		defer out.SetWriteDeadline(time.Time{})
		return h(&patient{ResponseWriter: w, out: out}, r, id)
	}
}

// patient gives each piece of an answer its own deadline.
type patient struct {
	http.ResponseWriter
	out *http.ResponseController
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) Write(b []byte) (int, error) {
	const piece = 256 << 10
	written := 0
	for {
		_ = p.out.SetWriteDeadline(time.Now().Add(writePatience))
		n, err := p.ResponseWriter.Write(b[written:min(written+piece, len(b))])
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}
