package rpc

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"gangd/pkg/api"
	"gangd/pkg/controller/turns"
	"gangd/pkg/wire/auth"
)

// sending is a body of so many bytes of a user's call.
func sending(s *Server, uid uint32, size int) *body {
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs", bytes.NewReader(make([]byte, size)))
	return s.bodyOf(httptest.NewRecorder(), r, auth.Identity{UID: uid})
}

// Of one user one large request is in memory at a time, of all of them a few; small ones wait for none.
func TestLargeBodiesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		var all []*body
		for i := range turns.Waiting + 1 {
			b := sending(s, 1, 3*smallBody)
			all = append(all, b)
			go func() {
				if n, err := io.Copy(io.Discard, b); n != 3*smallBody || err != nil {
					t.Errorf("request %d: %d bytes, %v", i, n, err)
				}
			}()
			synctest.Wait()
		}
		for i, b := range all {
			if want := smallBody; i > 0 && b.read != want {
				t.Fatalf("of request %d %d bytes are in memory, want %d", i, b.read, want)
			}
		}
		if n, err := io.Copy(io.Discard, sending(s, 1, smallBody-1)); n != smallBody-1 || err != nil {
			t.Errorf("a small request: %d bytes, %v", n, err)
		}
		others, leave := 0, make(chan struct{})
		for uid := range uint32(turns.AtOnce) {
			b := sending(s, 2+uid, 2*smallBody)
			go func() {
				_, _ = io.Copy(io.Discard, b)
				others++
				<-leave
				b.end()
			}()
			synctest.Wait()
		}
		if others != turns.AtOnce-1 {
			t.Errorf("%d large requests of others are read beside one, want %d", others, turns.AtOnce-1)
		}
		var refused *api.Error
		if _, err := io.Copy(io.Discard, sending(s, 1, 2*smallBody)); !errors.As(err, &refused) || refused != manyBodies {
			t.Errorf("one more: %v", err)
		}
		close(leave)
		for i, b := range all {
			synctest.Wait()
			if b.read != 3*smallBody {
				t.Fatalf("request %d was not read when its turn came: %d bytes", i, b.read)
			}
			b.end()
		}
	})
}

// The most that one request may have is refused as such, turn or not.
func TestTooLargeABody(t *testing.T) {
	s := &Server{}
	b := sending(s, 1, maxBody+1)
	defer b.end()
	_, err := io.Copy(io.Discard, b)
	var tooBig *http.MaxBytesError
	if !errors.As(err, &tooBig) {
		t.Errorf("%v", err)
	}
}
