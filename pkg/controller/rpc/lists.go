package rpc

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"gangd/pkg/api"
	"gangd/pkg/controller/turns"
	"gangd/pkg/wire/auth"
)

// manyLists refuses a user more of them. Lists of jobs are what costs the controller memory: 100,000
// jobs are hundreds of megabytes of text.
var manyLists = &api.Error{Code: api.CodeTooMany, RetryAfter: 1, Message: fmt.Sprintf("%d lists of yours wait already, the most that may",
	turns.Waiting),
	Hint: "ask once and for less: gqueue -j ID, gqueue --me, or follow with gqueue --watch"}

// manyPlans refuses a user more of them: each plans the whole queue anew, which takes a processor as long as a
// real plan does.
var manyPlans = &api.Error{Code: api.CodeTooMany, RetryAfter: 1, Message: fmt.Sprintf("%d questions of yours what would start wait "+
	"already, the most that may", turns.Waiting),
	Hint: "ask for one job at a time: gqueue --why ID, gsubmit --test-only"}

// listing is a handler whose answer may be long: it waits for its turn.
func (s *Server) listing(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
		ask, err := io.ReadAll(r.Body) // before the turn: who sends slowly keeps nobody waiting
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(ask))
		done, err := s.lists.Take(r.Context(), id.UID, manyLists)
		if err != nil {
			return err
		}
		defer done()
		return h(w, r, id)
	}
}
