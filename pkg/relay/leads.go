package relay

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"gangd/pkg/api"
)

// leads is where calls are passed on to: of several controllers the one that leads, as far as is known.
type leads struct {
	mu  sync.Mutex
	all []string // host:port
	now string
}

func newLeads(all []string) *leads { return &leads{all: all, now: all[0]} }

func (l *leads) address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// failed: nothing was passed on at an address; the next is tried with the next call. It reports whether
// there is another.
func (l *leads) failed(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) < 2 {
		return false
	}
	if l.now == address {
		l.now = l.all[(slices.Index(l.all, address)+1)%len(l.all)]
	}
	return true
}

// heard takes in who leads by a controller that does not.
func (l *leads) heard(address string, w *api.Word) {
	if w == nil || w.Leader == nil {
		l.failed(address)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range w.Leader.Addresses {
		if strings.HasPrefix(a, "unix:") {
			continue
		}
		l.now = a
		if !slices.Contains(l.all, a) {
			l.all = append(slices.Clone(l.all), a)
		}
		return
	}
}

// maxRefusal bounds the body of an answer that says who leads.
const maxRefusal = 64 << 10

// look learns from an answer who leads; the caller gets it all the same, and calls again.
func (l *leads) look(r *http.Response) error {
	if r.StatusCode != api.CodeNotLeader.HTTPStatus() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxRefusal))
	if err != nil {
		return err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(b))
	e := new(api.Error)
	if json.Unmarshal(b, e) == nil {
		l.heard(r.Request.URL.Host, e.Word)
	}
	return nil
}
