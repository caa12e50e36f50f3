package auth

import (
	"context"
	"regexp"
	"strings"

	"gangd/pkg/api"
)

// Kind is where an identity comes from.
type Kind string

// The kinds of callers.
const (
	KindNone  Kind = "none"  // nobody known: refused everywhere
	KindUser  Kind = "user"  // a person on the controller's host, by the kernel's word
	KindNode  Kind = "node"  // a node, by its certificate
	KindLogin Kind = "login" // a login host, by its certificate
	KindRelay Kind = "relay" // a person on another host, by the word of the node or login host there
	KindGuest Kind = "guest" // whoever looks at the page where web_guest is on
)

// Identity is who made a request.
type Identity struct {
	Kind  Kind
	UID   uint32 // users and relays
	GID   uint32 // users
	User  string // users and relays; the uid in digits when it has no name
	Node  string // nodes, login hosts and relays: the name in the certificate
	Admin bool
	Asker api.Asker // the process that called
	// Host marks who could read the controller's key anyway: root on its host, and who
	// started it in single-user mode. They alone may open a node's session without a
	// certificate, in any node's name.
	Host bool
	// Login marks a relay that is a login host, or a proxy of the page: it vouches for all its users,
	// not only for those with a job on it.
	Login bool
	// Why tells nobody what would have made them somebody, and an admin behind a relay why
	// not all is allowed; empty where a reason would help only who guesses.
	Why string
}

// Nobody is the identity of an unauthenticated caller.
var Nobody = Identity{Kind: KindNone}

type contextKey struct{}

// With puts an identity into a context.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// From is the identity in a request's context; ok is false for nobody.
func From(ctx context.Context) (id Identity, ok bool) {
	id, found := ctx.Value(contextKey{}).(Identity)
	if !found {
		return Nobody, false
	}
	return id, id.Kind != KindNone
}

var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// validName holds for what may be a node's name: it becomes part of paths, certificates
// and metrics.
func validName(s string) bool { return nameRE.MatchString(s) && !strings.Contains(s, "..") }
