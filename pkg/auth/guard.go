package auth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// userHeader carries a relay's word for its user: "uid name".
const userHeader = "Gang-User"

// Guard puts an [Identity] into every request of the servers it is set up for.
type Guard struct {
	// SingleUser: nobody but Owner and root is known, and Owner is admin.
	SingleUser bool
	// Owner is who runs the controller.
	Owner uint32
	// Admins are names of users.
	Admins []string
	// Revoked is asked about each certificate; nil where the controller has no TLS.
	Revoked *Revocations
	// Vouches says whether the node may speak for the user: a login node for anyone, a
	// compute node for who has a job there. nil: no node may.
	Vouches func(node string, uid uint32) bool
}

// NewGuard is the guard of a controller that runs as the calling process.
func NewGuard(singleUser bool, admins []string) *Guard {
	return &Guard{SingleUser: singleUser, Owner: uint32(os.Geteuid()), Admins: admins}
}

// ConnContext is for [http.Server.ConnContext]: it reads who is at the other end of a unix
// socket. A TLS connection has no certificate yet at this point; see [Guard.Handler].
func (g *Guard) ConnContext(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	cred, err := PeerCredentials(u)
	if err != nil {
		return With(ctx, Nobody)
	}
	return With(ctx, g.user(cred.Uid, cred.Gid))
}

// PeerCredentials are of the process that connected, as the kernel recorded them then.
func PeerCredentials(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) {
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, inner
}

func (g *Guard) user(uid, gid uint32) Identity {
	host := uid == 0 || g.SingleUser && uid == g.Owner
	if g.SingleUser && !host {
		return Nobody
	}
	name := userName(uid)
	return Identity{Kind: KindUser, UID: uid, GID: gid, User: name, Host: host,
		Admin: host || slices.Contains(g.Admins, name)}
}

// userName is the uid's name, or its digits: a person without an entry may still use the
// cluster where nodes know them by the same digits.
func userName(uid uint32) string {
	digits := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(digits); err == nil {
		return u.Username
	}
	return digits
}

// Handler puts the identity of a TLS connection into its requests and passes on. It
// refuses nothing itself: a request without identity reaches next as nobody, since
// joining is how an identity is got.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			r = r.WithContext(With(r.Context(), g.certified(r)))
		}
		next.ServeHTTP(w, r)
	})
}

// certified is who speaks over TLS: the node of the certificate, or the user it vouches for.
func (g *Guard) certified(r *http.Request) Identity {
	if len(r.TLS.VerifiedChains) == 0 {
		return Nobody
	}
	cert := r.TLS.PeerCertificates[0]
	node, err := nodeOf(cert)
	// A connection may outlive its certificate.
	if err != nil || time.Now().After(cert.NotAfter) || g.Revoked != nil && g.Revoked.revoked(node, issuedAt(cert)) {
		return Nobody
	}
	claim, claimed := r.Header[userHeader]
	if !claimed {
		return Identity{Kind: KindNode, Node: node}
	}
	return g.vouched(node, strings.Join(claim, ""))
}

func (g *Guard) vouched(node, claim string) Identity {
	digits, name, _ := strings.Cut(claim, " ")
	uid, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || uid == 0 || name == "" || name == "root" || g.Vouches == nil || !g.Vouches(node, uint32(uid)) {
		return Nobody
	}
	// Where the controller has a name for the uid too they must agree: a node that maps
	// an admin's uid to another name must gain nothing.
	known := userName(uint32(uid))
	if known != digits && known != name || slices.Contains(g.Admins, name) || g.SingleUser {
		return Nobody
	}
	return Identity{Kind: KindRelay, UID: uint32(uid), User: name, Node: node}
}

// Vouch marks a relay's request as made for a user.
func Vouch(r *http.Request, uid uint32, name string) {
	r.Header.Set(userHeader, fmt.Sprintf("%d %s", uid, name))
}
