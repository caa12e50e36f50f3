package rpc

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

func TestStreamsAreBounded(t *testing.T) {
	s := &Server{UserStreams: 2}
	ada, bob := auth.Identity{UID: 1, User: "ada"}, auth.Identity{UID: 2, User: "bob"}
	take := func(id auth.Identity) (end func()) {
		t.Helper()
		end, err := s.stream(id)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	end := take(ada)
	take(ada)
	take(bob)
	_, err := s.stream(ada)
	const want = "ada follows 2 streams, the most that one user may (user_streams); end some of gctl events --follow, gqueue --watch and glog -f"
	if api.CodeOf(err) != api.CodeTooMany || err.Error() != want {
		t.Errorf("a third: %v", err)
	}
	for range 3 {
		take(auth.Identity{UID: 1, User: "ada", Admin: true})
	}
	end()
	take(ada)
}
