package rpc

import (
	"fmt"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// streams counts what users follow. Each costs work for every event, and memory when its reader
// stops.
type streams struct {
	mu   sync.Mutex
	held map[uint32]int
}

// stream takes room for one more; done gives it back.
func (s *Server) stream(id auth.Identity) (done func(), err error) {
	if s.UserStreams == 0 || id.Admin {
		return func() {}, nil
	}
	st := &s.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.held[id.UID] >= s.UserStreams {
		return nil, &api.Error{Code: api.CodeTooMany, Hint: "end some of gctl events --follow, gqueue --watch and glog -f",
			Message: fmt.Sprintf("%s follows %d streams, the most that one user may (user_streams)", id.User, s.UserStreams)}
	}
	if st.held == nil {
		st.held = map[uint32]int{}
	}
	st.held[id.UID]++
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.held[id.UID]--; st.held[id.UID] == 0 {
			delete(st.held, id.UID)
		}
	}, nil
}
