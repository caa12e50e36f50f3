package rpc

import (
	"fmt"
	"net/http"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

func TestStreamsAreBounded(t *testing.T) {
	s := &Server{}
	s.UserStreams.Store(2)
	ada, bob := auth.Identity{UID: 1, User: "ada"}, auth.Identity{UID: 2, User: "bob"}
	take := func(id auth.Identity) (end func()) {
		t.Helper()
		end, err := s.stream(&http.Request{}, id)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	end := take(ada)
	take(ada)
	take(bob)
	_, err := s.stream(&http.Request{}, ada)
	const want = "ada follows 2 streams, the most that one user may; end some of gctl events --follow, gqueue --watch and glog -f"
	if api.CodeOf(err) != api.CodeTooMany || err.Error() != want {
		t.Errorf("a third: %v", err)
	}
	for range 3 {
		take(auth.Identity{UID: 1, User: "ada", Admin: true})
	}
	end()
	take(ada)
}

// TestGuestsStreams: guests are one user to the controller, and one of them does not take the streams of all.
func TestGuestsStreams(t *testing.T) {
	s := &Server{}
	s.UserStreams.Store(16)
	guest := auth.Identity{Kind: auth.KindGuest, UID: 65534, User: "guest"}
	from := func(address string) (func(), error) {
		return s.stream(&http.Request{RemoteAddr: address}, guest)
	}
	first, err := from("10.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from("10.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	if _, err := from("10.0.0.1:3"); api.CodeOf(err) != api.CodeTooMany {
		t.Errorf("a third of one address: %v", err)
	}
	if _, err := from("10.0.0.2:1"); err != nil {
		t.Errorf("of another: %v", err)
	}
	first()
	if _, err := from("10.0.0.1:4"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	for i := 3; ; i++ {
		if _, err := from(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250)); err != nil {
			if n := s.streams.users[65534]; n != 16*guestsAll {
				t.Errorf("all of them have %d: %v", n, err)
			}
			break
		}
	}
	if _, err := s.stream(&http.Request{}, auth.Identity{Kind: auth.KindUser, UID: 1000}); err != nil {
		t.Errorf("a user beside them: %v", err)
	}
}
