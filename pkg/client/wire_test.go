package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
)

// listen opens a socket until the end of the test; its path is short, as unix sockets want.
func listen(t *testing.T) (socket string, l net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	if l, err = net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(dir) })
	return socket, l
}

// serve answers with a real HTTP server, the one that gangd uses.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	socket, l := listen(t)
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return NewAt(socket)
}

func TestAnswersOfAnyLength(t *testing.T) {
	for _, n := range []int{0, 1, 2047, 2048, 4096, 100_000, 3 << 20} {
		for _, pieces := range []int{1, 7} {
			want := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for i := range pieces {
					_, _ = w.Write(want[n*i/pieces : n*(i+1)/pieces])
					if pieces > 1 {
						_ = http.NewResponseController(w).Flush()
					}
				}
			})
			var got bytes.Buffer
			if err := c.Log(t.Context(), &api.LogQuery{Ref: api.JobRef{ID: 1, Index: -1}}, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%d bytes in %d pieces: got %d, %v", n, pieces, got.Len(), err)
			}
		}
	}
}

func TestTrailerCarriesALateError(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Gang-Error")
		fmt.Fprint(w, "some output\n")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("Gang-Error", `{"code":"not_found","message":"the file is gone"}`)
	})
	var got strings.Builder
	err := c.Log(t.Context(), &api.LogQuery{Ref: api.JobRef{ID: 1, Index: -1}}, &got)
	if got.String() != "some output\n" || api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("got %q, %v", got.String(), err)
	}
}

func TestRefusalsAndGarbage(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"refusal", "HTTP/1.1 404 Not Found\r\nContent-Length: 37\r\n\r\n{\"code\":\"not_found\",\"message\":\"no\"}\r\n", "no"},
		{"not ours", "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nboom", "POST /v1/cancel: the controller answered 500 Oops: boom"},
		{"not http", "SSH-2.0-OpenSSH\r\n", "the answer is not HTTP"},
		{"nothing", "", "unexpected EOF"},
		{"cut in the headers", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n", "unexpected EOF"},
		{"cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"matched\"", "the answer broke off: unexpected EOF"},
		{"cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"version\"", "the answer broke off: unexpected EOF"},
		{"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "the answer broke off: the answer is malformed"},
		{"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n", `the answer has Content-Length "-4"`},
		{"endless headers", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), "the headers of the answer are too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewAt(raw(t, c.answer)).Cancel(t.Context(), new(api.CancelRequest)) // which is not made again
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// raw answers every connection with fixed bytes.
func raw(t *testing.T, answer string) string {
	t.Helper()
	socket, l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			_, _ = conn.Read(buf)
			_, _ = io.WriteString(conn, answer)
			_ = conn.(*net.UnixConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // the rest of the request, whose writing must not fail
			_ = conn.Close()
		}
	}()
	return socket
}

func TestCancelEndsACall(t *testing.T) {
	began := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() { <-began; cancel(why) }()
	if _, err := c.Ping(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
}

// A large request that is refused at once still tells why.
func TestRefusalOfALargeRequest(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(413)
		fmt.Fprint(w, `{"code":"too_large","message":"too large"}`)
	})
	_, err := c.Cancel(t.Context(), &api.CancelRequest{Signal: strings.Repeat("x", 8<<20)})
	if api.CodeOf(err) != api.CodeTooLarge {
		t.Errorf("got %v", err)
	}
}

func TestNoController(t *testing.T) {
	_, err := NewAt("/nonexistent/s").Ping(t.Context())
	var u *UnreachableError
	if !errors.As(err, &u) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	// A submission is not tried again where there is no cluster at all.
	began := time.Now()
	if _, err := NewAt("/nonexistent/s").Submit(t.Context(), &api.SubmitRequest{}); err == nil || time.Since(began) > submitPatience/2 {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

// TestComesAgainWhenTold: a call that was refused for the moment is made again when the answer
// says, and within the caller's patience; one that was refused for good is not.
func TestComesAgainWhenTold(t *testing.T) {
	for name, tt := range map[string]struct {
		after, refused int // seconds, times
		patience       time.Duration
		made           int
	}{
		"once more":          {after: 1, refused: 1, patience: time.Minute, made: 2},
		"no time to wait":    {after: 3, refused: 1, patience: 50 * time.Millisecond, made: 1},
		"longer than we try": {after: 1 << 40, refused: 1, patience: time.Minute, made: 1},
		"refused for good":   {after: 0, refused: 1, patience: time.Minute, made: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made atomic.Int64
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if made.Add(1) <= int64(tt.refused) {
					w.WriteHeader(http.StatusTooManyRequests)
					_ = json.NewEncoder(w).Encode(api.Error{Code: api.CodeTooMany, Message: "no", RetryAfter: tt.after})
					return
				}
				_, _ = io.WriteString(w, "{}")
			})
			ctx, cancel := context.WithTimeout(t.Context(), tt.patience)
			defer cancel()
			began := time.Now()
			_, err := c.Ping(ctx)
			if (err == nil) != (tt.made > tt.refused) || err != nil && api.CodeOf(err) != api.CodeTooMany || made.Load() != int64(tt.made) {
				t.Errorf("made %d times, want %d: %v", made.Load(), tt.made, err)
			}
			if took := time.Since(began); err == nil && took < time.Duration(tt.after)*time.Second {
				t.Errorf("made again after %v", took)
			}
		})
	}
}
