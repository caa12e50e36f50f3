package auth

import (
	"crypto/x509"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Revocations says which nodes' certificates count no more: all that were issued to the
// node up to an instant. Joining again gives it a later one.
type Revocations struct {
	document

	mu   sync.RWMutex
	upTo map[string]time.Time // by node
	cut  func(node string)
}

// openRevocations reads the list in a vault; none yet is an empty one.
func openRevocations(v Vault) (*Revocations, error) {
	r := &Revocations{document: document{v, revokedName}, upTo: map[string]time.Time{}}
	if err := r.read(&r.upTo); err != nil {
		// An unreadable list must not let everyone in again.
		return nil, fmt.Errorf("revoked nodes: %w", err)
	}
	return r, nil
}

// take replaces the list by the newest one, and cuts whom it has in addition.
func (r *Revocations) take(all map[string][]byte) error {
	upTo := map[string]time.Time{}
	if err := r.decode(all, &upTo); err != nil {
		return fmt.Errorf("revoked nodes: %w", err)
	}
	r.mu.Lock()
	var added []string
	for node, at := range upTo {
		if !r.upTo[node].Equal(at) {
			added = append(added, node)
		}
	}
	r.upTo = upTo
	cut := r.cut
	r.mu.Unlock()
	for _, node := range added {
		if cut != nil {
			cut(node)
		}
	}
	return nil
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
	var next map[string]time.Time
	err := r.write(func() (any, error) {
		next = maps.Clone(r.upTo)
		next[node] = later(time.Now().UTC().Truncate(time.Second), r.upTo[node])
		return next, nil
	}, func() error {
		upTo := map[string]time.Time{}
		if err := r.read(&upTo); err != nil {
			return err
		}
		r.upTo = upTo
		return nil
	})
	if err != nil {
		r.mu.Unlock()
		return fmt.Errorf("revoke %s: %w", node, err)
	}
	r.upTo = next
	cut := r.cut
	r.mu.Unlock()
	// Not under the lock: ending a session may wait for one of its requests.
	if cut != nil {
		cut(node)
	}
	return nil
}

// cover says whether a certificate counts no more. A controller's is made by itself with the key of the CA.
func (r *Revocations) cover(s subject, c *x509.Certificate) bool {
	return s.kind != controllerKind && r.revoked(s.name, issuedAt(c))
}

func (r *Revocations) revoked(node string, issued time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return !issued.After(r.upTo[node]) // the zero time, where there is none
}

// issueTime is now, or later where the node's last revocation was in this second or the
// clock went back: a new certificate must not be born revoked.
func (r *Revocations) issueTime(node string, now time.Time) time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return later(now.UTC().Truncate(time.Second), r.upTo[node].Add(time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
