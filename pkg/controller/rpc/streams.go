package rpc

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// streams counts what users follow. Each costs work for every event, and memory when its reader
// stops. Guests are all one user, and are counted by where they come from.
type streams struct {
	mu    sync.Mutex
	users map[uint32]int
	from  map[netip.Addr]int
}

// guestShare is the part of a user's streams that guests of one address may follow; all of them together have guestsAll
// times as many as a user.
const (
	guestShare = 8
	guestsAll  = 4
)

// stream takes room for one more; done gives it back.
func (s *Server) stream(r *http.Request, id auth.Identity) (done func(), err error) {
	most := int(s.UserStreams.Load())
	if most == 0 || id.Admin {
		return func() {}, nil
	}
	st := &s.streams
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.users == nil {
		st.users, st.from = map[uint32]int{}, map[netip.Addr]int{}
	}
	guest := id.Kind == auth.KindGuest
	at := auth.PeerNetwork(r.RemoteAddr)
	if guest {
		each := max(1, most/guestShare)
		most *= guestsAll
		if st.from[at] >= each {
			return nil, &api.Error{Code: api.CodeTooMany, Hint: "close some of the pages, or log in: gctl web",
				Message: fmt.Sprintf("guests from %s follow %d streams, the most that one address may", at, each)}
		}
	}
	if st.users[id.UID] >= most {
		return nil, &api.Error{Code: api.CodeTooMany, Hint: "end some of gctl events --follow, gqueue --watch and glog -f",
			Message: fmt.Sprintf("%s follows %d streams, the most that one user may", id.User, most)}
	}
	count := func(by int) {
		if st.users[id.UID] += by; st.users[id.UID] == 0 {
			delete(st.users, id.UID)
		}
		if guest {
			if st.from[at] += by; st.from[at] == 0 {
				delete(st.from, at)
			}
		}
	}
	count(1)
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		count(-1)
	}, nil
}
