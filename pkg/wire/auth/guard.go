package auth

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/wire/people"
)

const (
	userHeader  = "Gang-User"  // a relay's or a controller's word for who calls: "uid name"
	groupHeader = "Gang-Group" // a controller's: his gid
	askerHeader = "Gang-Asker" // the process that called there: "pid boot-id", and of what may end its job its ancestors
)

// Guard puts an [Identity] into every request of the servers it is set up for.
type Guard struct {
	// SingleUser: nobody but Owner and root is known, and Owner is admin.
	SingleUser bool
	// Owner is who runs the controller.
	Owner uint32
	// Admins are names of users, who are admins by the kernel's word on this host alone. It is asked at each call; nil: there are none.
	Admins func() []string
	// Revoked is asked about each certificate; nil where the controller has no TLS.
	Revoked *Revocations
	// Vouches says whether a compute node may speak for the user: who has a job there.
	// nil: no node may. Login hosts need not be asked about: their certificate says it.
	Vouches func(node string, uid uint32) bool

	// People are the users of this host; nil: those of [people.Here].
	People *people.Directory

	live  *calls // nil: revocations cut nothing
	conns *conns
}

func (g *Guard) isAdmin(name string) bool {
	return g.Admins != nil && slices.Contains(g.Admins(), name)
}

func (g *Guard) people() *people.Directory { return cmp.Or(g.People, people.Here) }

// NewGuard is the guard of a controller that runs as the calling process.
func NewGuard(singleUser bool, admins func() []string) *Guard {
	return &Guard{SingleUser: singleUser, Owner: uint32(os.Geteuid()), Admins: admins, live: newCalls(), conns: newConns()}
}

// peerKey is of the kernel's word for who is at the other end of a unix socket.
type peerKey struct{}

// ConnContext is for [http.Server.ConnContext]: it reads who is at the other end of a unix
// socket. What he is called is looked up by [Guard.Handler], for it may take long, and nobody else can
// connect before this returns. A TLS connection has no certificate yet at this point.
func (g *Guard) ConnContext(ctx context.Context, c net.Conn) context.Context {
	ctx = context.WithValue(ctx, connKey{}, c)
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	cred, err := PeerCredentials(u)
	if err != nil {
		return With(ctx, Nobody)
	}
	return context.WithValue(ctx, peerKey{}, *cred)
}

// bootLength is that of a boot id: a UUID.
const bootLength = 36

// bootID tells one run of this machine from every other, and from other machines.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

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

// User is a person on this host, as the kernel's word would make them: for what is made to last by
// who had it.
func (g *Guard) User(ctx context.Context, uid, gid uint32) Identity {
	id := g.user(ctx, uid, gid)
	id.Host = false
	return id
}

func (g *Guard) user(ctx context.Context, uid, gid uint32) Identity {
	host := uid == 0 || g.SingleUser && uid == g.Owner
	if g.SingleUser && !host {
		return refused("this controller serves the person who started it alone (gangd dev)")
	}
	name, err := g.people().Name(ctx, uid)
	if err != nil {
		return refused("%v; try again", err)
	}
	return Identity{Kind: KindUser, UID: uid, GID: gid, User: name, Host: host,
		Admin: host || g.isAdmin(name)}
}

// Handler puts the identity of a TLS connection into its requests and passes on. It
// refuses nothing itself: a request without identity reaches next as nobody, since
// joining is how an identity is got.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			// In a copy: by its own body the server sees that one was left unread, and that what
			// comes behind it is no next call.
			r = r.WithContext(r.Context())
			r.Body = newBody(r.Body, http.NewResponseController(w))
			defer r.Body.Close()
		}
		if r.TLS == nil {
			if peer, ok := r.Context().Value(peerKey{}).(unix.Ucred); ok {
				id := g.user(r.Context(), peer.Uid, peer.Gid)
				id.Asker = AskerOf(&peer)
				if api.EndsJobs(r.URL.Path) {
					id.Asker = WithAncestors(id.Asker)
				}
				r = r.WithContext(With(r.Context(), id))
			}
			next.ServeHTTP(w, r)
			return
		}
		g.overTLS(next, w, r)
	})
}

// overTLS hands on a request with who speaks by the certificate.
func (g *Guard) overTLS(next http.Handler, w http.ResponseWriter, r *http.Request) {
	// Recorded before the certificate is judged: a revocation either finds the call
	// here, or was written before this looks.
	ctx, done := g.live.enter(r)
	defer done()
	id := g.certified(r)
	if id.Kind == KindNone {
		w.Header().Set("Connection", "close") // it has asked what it may ask
	} else if c := connOf(ctx); c != nil {
		g.conns.known(c)
	}
	next.ServeHTTP(w, r.WithContext(With(ctx, id)))
}

// certified is who speaks over TLS: the node of the certificate, or the user it vouches for.
func (g *Guard) certified(r *http.Request) Identity {
	if len(r.TLS.VerifiedChains) == 0 {
		return Nobody
	}
	cert := r.TLS.PeerCertificates[0]
	who, err := subjectOf(cert)
	// A connection may outlive its certificate.
	if err != nil || time.Now().After(cert.NotAfter) || g.Revoked != nil && g.Revoked.cover(who, cert) {
		return Nobody
	}
	claim, claimed := r.Header[userHeader]
	switch {
	case claimed && who.kind == controllerKind:
		return asked(r, g.caller(r.Context(), who, strings.Join(claim, ""), r.Header.Get(groupHeader)))
	case who.kind == controllerKind:
		return Nobody
	case claimed:
		return asked(r, g.vouched(r.Context(), who, strings.Join(claim, "")))
	case who.kind == loginKind:
		return Identity{Kind: KindLogin, Node: who.name}
	}
	return Identity{Kind: KindNode, Node: who.name}
}

// asked is an identity with the process that a relay says has called. It decides nothing but when that process
// hears of a stop that it asked for.
func asked(r *http.Request, id Identity) Identity {
	pid, rest, _ := strings.Cut(r.Header.Get(askerHeader), " ")
	boot, above, _ := strings.Cut(rest, " ")
	if n, err := strconv.Atoi(pid); err == nil && n > 0 && len(boot) == bootLength {
		id.Asker = api.Asker{PID: n, Boot: boot}
		if len(above) <= mostAbove {
			id.Asker.Above = above
		}
	}
	return id
}

func (g *Guard) vouched(ctx context.Context, by subject, claim string) Identity {
	digits, name, _ := strings.Cut(claim, " ")
	uid, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || name == "" {
		return Nobody
	}
	// Where the controller has a name for the uid too they must agree: a node that maps
	// somebody's uid to another name must gain nothing. An admin is a user like any other here:
	// a host's word gives nobody more than its users have.
	switch {
	case g.SingleUser:
		return refused("this controller serves the person who started it alone, on its own host")
	case uid == 0 || name == "root":
		return refused("no relay speaks for root; use the controller's host")
	}
	known, err := g.people().Name(ctx, uint32(uid))
	switch {
	case err != nil:
		return refused("%v; try again", err)
	case known != digits && known != name && name != digits:
		return renamed(uid, name, by, known)
	case by.kind != loginKind && (g.Vouches == nil || !g.Vouches(by.name, uint32(uid))):
		return refused("%s is a compute node: it speaks only for users with a job on it; use a login host", by.name)
	}
	if name == digits { // who has no name there may have one here
		name = known
	}
	id := Identity{Kind: KindRelay, UID: uint32(uid), User: name, Node: by.name, Login: by.kind == loginKind}
	if g.isAdmin(name) {
		id.Why = "through a relay an admin is an ordinary user; use the controller's host"
	}
	return id
}

// caller is who called another controller of the cluster on its host, which is as if he had called here: the other has
// the key of the CA too. But nodes' sessions are none of its calls.
func (g *Guard) caller(ctx context.Context, by subject, claim, group string) Identity {
	digits, name, _ := strings.Cut(claim, " ")
	uid, err := strconv.ParseUint(digits, 10, 32)
	gid, err2 := strconv.ParseUint(group, 10, 32)
	if err != nil || err2 != nil || name == "" {
		return Nobody
	}
	known, err := g.people().Name(ctx, uint32(uid))
	switch {
	case err != nil:
		return refused("%v; try again", err)
	case known != digits && known != name && name != digits:
		return renamed(uid, name, by, known)
	}
	id := g.user(ctx, uint32(uid), uint32(gid))
	id.Host = false
	return id
}

func renamed(uid uint64, name string, by subject, known string) Identity {
	return refused("uid %d is %s on %s and %s at the controller", uid, name, by.name, known)
}

// refused is nobody, with the reason that a person behind a relay needs.
func refused(format string, args ...any) Identity {
	return Identity{Kind: KindNone, Why: fmt.Sprintf(format, args...)}
}

// Vouch marks a relay's request as made for a user, whatever the request said of that.
func Vouch(r *http.Request, uid uint32, name string) {
	r.Header.Set(userHeader, fmt.Sprintf("%d %s", uid, name))
	r.Header.Del(askerHeader)
}

// VouchAsker says in such a request which process has called.
func VouchAsker(r *http.Request, a api.Asker) {
	r.Header.Set(askerHeader, strings.TrimSpace(fmt.Sprintf("%d %s %s", a.PID, a.Boot, a.Above)))
}

// VouchFor marks a controller's request to another as made for somebody who called it on its own host.
func VouchFor(r *http.Request, id Identity) {
	Vouch(r, id.UID, id.User)
	VouchAsker(r, id.Asker)
	r.Header.Set(groupHeader, strconv.FormatUint(uint64(id.GID), 10))
}
