package jobhttp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/wire/jobapi"
)

// checker takes what a rank says and checks that nobody else is spoken for.
type checker struct {
	t    *testing.T
	who  jobapi.Caller
	read int64
}

func (n *checker) Call(_ context.Context, c *api.Call, body io.Reader, w io.Writer) (*api.CallResult, error) {
	if c.MemberKey != n.who.MemberKey || c.Rank != n.who.Rank {
		n.t.Errorf("the call speaks for %v rank %d", c.MemberKey, c.Rank)
	}
	switch {
	case c.Put != nil:
		read, err := io.Copy(io.Discard, body)
		if err != nil {
			return nil, err
		}
		n.read = read
		if read > api.MaxCheckpointBytes {
			n.t.Errorf("a checkpoint of %d bytes", read)
		}
	case c.Get != nil:
		if c.Get.Rank < 0 {
			n.t.Errorf("a checkpoint of rank %d", c.Get.Rank)
		}
		if c.Get.Rank > 3 {
			return nil, api.Errorf(api.CodeNotFound, "no rank %d", c.Get.Rank)
		}
		_, err := w.Write([]byte("saved"))
		return &api.CallResult{}, err
	case c.Barrier != nil:
		if c.Barrier.Name == "" || len(c.Barrier.Name) > api.MaxBarrierName || len(c.Barrier.Key) > api.MaxBarrierName {
			n.t.Errorf("barrier %+v", c.Barrier)
		}
	case c.Ready != nil:
		if c.Ready.Role != "" && !api.RoleNameOK(c.Ready.Role) {
			n.t.Errorf("readiness of %q", c.Ready.Role)
		}
	default:
		n.t.Error("a call of nothing")
	}
	return &api.CallResult{}, nil
}

func (n *checker) Info(c jobapi.Caller) Info { return Info{JobID: c.Job, Rank: c.Rank} }

// Whatever a rank sends to its socket is taken as its own, or refused with a code and a
// sentence.
func FuzzRequests(f *testing.F) {
	for _, s := range []struct{ method, target, key, body string }{
		{"PUT", "/v1/checkpoint", "a", "blob"},
		{"POST", "/v1/checkpoint?rank=1", "", ""},
		{"GET", "/v1/checkpoint?rank=3", "", ""},
		{"GET", "/v1/checkpoint?rank=-1", "", ""},
		{"GET", "/v1/checkpoint?rank=99999999999999999999", "", ""},
		{"POST", "/v1/barrier?name=phase", "k", ""},
		{"POST", "/v1/barrier", "", ""},
		{"GET", "/v1/ready", "", ""},
		{"GET", "/v1/ready?role=data-loader", "", ""},
		{"GET", "/v1/job", "", ""},
		{"DELETE", "/", "", ""},
	} {
		f.Add(s.method, s.target, s.key, []byte(s.body), int64(len(s.body)))
	}
	f.Fuzz(func(t *testing.T, method, target, key string, body []byte, length int64) {
		u, err := url.Parse(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		n := &checker{t: t, who: jobapi.Caller{MemberKey: api.MemberKey{Job: 7, Epoch: 2}, Rank: 3}}
		r := (&http.Request{Method: method, URL: u, Host: "node", Header: http.Header{"Idempotency-Key": {key}}, ContentLength: length,
			Body: io.NopCloser(strings.NewReader(string(body)))}).WithContext(t.Context())
		w := httptest.NewRecorder()
		Handler(n, func(context.Context) jobapi.Caller { return n.who }).ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusOK:
			if r.URL.Path == "/v1/checkpoint" && method != "GET" && method != "HEAD" && n.read != int64(len(body)) {
				t.Errorf("%d of %d bytes were kept", n.read, len(body))
			}
		case w.Code/100 == 3:
		default:
			var e api.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Message == "" || e.Code.HTTPStatus() != w.Code || e.Code == api.CodeInternal {
				t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
			}
		}
	})
}
