package auth

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// Revocations says which nodes' certificates count no more: all that were issued to the
// node up to an instant. Joining again gives it a later one.
type Revocations struct {
	path string

	mu   sync.RWMutex
	upTo map[string]time.Time // by node
	cut  func(node string)
}

// OpenRevocations reads the list in dir; none yet is an empty one.
func OpenRevocations(dir string) (*Revocations, error) {
	r := &Revocations{path: filepath.Join(dir, "revoked.json"), upTo: map[string]time.Time{}}
	if err := readJSON(r.path, &r.upTo); err != nil {
		// An unreadable list must not let everyone in again.
		return nil, fmt.Errorf("revoked nodes %s: %w", r.path, err)
	}
	return r, nil
}

// OnRevoke sets what ends the live sessions of a node. Call it before serving.
func (r *Revocations) OnRevoke(cut func(node string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

// Revoke makes every certificate of the node worthless, for good, and cuts its sessions.
func (r *Revocations) Revoke(node string) error {
	r.mu.Lock()
	old, had := r.upTo[node]
	r.upTo[node] = later(time.Now().UTC().Truncate(time.Second), old)
	if err := writeJSON(r.path, r.upTo); err != nil {
		if delete(r.upTo, node); had {
			r.upTo[node] = old
		}
		r.mu.Unlock()
		return fmt.Errorf("revoke %s: %w", node, err)
	}
	cut := r.cut
	r.mu.Unlock()
	// Not under the lock: ending a session may wait for one of its requests.
	if cut != nil {
		cut(node)
	}
	return nil
}

func (r *Revocations) revoked(node string, issued time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	upTo, ok := r.upTo[node]
	return ok && !issued.After(upTo)
}

// issueTime is now, or later where the node's last revocation was in this second or the
// clock went back: a new certificate must not be born revoked.
func (r *Revocations) issueTime(node string, now time.Time) time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now = now.UTC().Truncate(time.Second)
	if upTo, ok := r.upTo[node]; ok {
		return later(now, upTo.Add(time.Second))
	}
	return now
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
