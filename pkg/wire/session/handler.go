package session

import (
	"context"
	"io"

	"gangd/pkg/api"
)

// Handler is the controller behind the sessions (the engine). Its methods are called from
// a session's reader; those with a context may block for a commit.
type Handler interface {
	// NodeHello is called first in each session and answers after its commit. An error
	// ends the session and reaches the node as its reason.
	NodeHello(ctx context.Context, h *api.Hello) (*api.Welcome, error)
	// NodeReport must not block long: it queues.
	NodeReport(node string, a *api.Actual)
	// NodeSample must not block long.
	NodeSample(node string, s []api.CardSample)
	// NodeLoad must not block long.
	NodeLoad(node string, l *api.NodeLoad)
	// NodeNotes is what ranks of a node have said. It must not block long.
	NodeNotes(node string, notes []api.MemberNote)
	// NodeCall serves one call of a rank, whom the node vouches for: in is what it sends, out
	// what it is answered. It may take as long as ctx lasts.
	NodeCall(ctx context.Context, node string, c *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error)
	// NodeGone says that the session of a node ended and no newer one replaced it.
	NodeGone(node string)
	// Lineage is the number of the newest commit and the proof of it. Nodes keep both, so that a store that went
	// back in time is noticed.
	Lineage() (n uint64, proof string)
	// Settings are the site's now: others are another value. nil: those of the Welcome hold on.
	Settings() *api.Settings
	// Desired is the complete desired set of a node now; what it lists without a body the
	// node shall say to be gone. ok false is "on hold": nothing is
	// sent, and what was sent stays as it is. The result is not changed afterwards by
	// either side.
	Desired(node string) (assignments []api.Assignment, ok bool)
	// Reboot is what a node is to be told of a reboot now, as committed; nil: nothing.
	Reboot(node string) *api.RebootOrder
	// Spec reads what a body in a desired set names, never nil without an error. An error ends the session.
	Spec(hash string) (*api.Spec, error)
}

// Office is what a controller that is one of several knows of its place. Its methods must not block.
type Office interface {
	// Leads says whether this controller leads at this moment. While it does not it sends nodes
	// nothing, neither an echo nor an order.
	Leads() bool
	// Seat is this controller's name, and the term in which it leads.
	Seat() (name string, term uint64)
	// Controllers is the site's list now.
	Controllers() *api.Controllers
	// Listed: a node keeps this version of the list.
	Listed(node string, version uint64)
}

// Agent is the node behind a [Client] (the node daemon).
type Agent interface {
	// Hello says all that the node has. It is called once for each session, before
	// anything is reported in it.
	Hello() *api.Hello
	// Welcome opens the session.
	Welcome(w *api.Welcome)
	// Settings are the site's from now on, instead of those of the Welcome.
	Settings(s *api.Settings)
	// Lineage is called with each beat and before each order that names the controller's newest commit.
	Lineage(n uint64, proof string)
	// Desired must not block long: it queues. Specs holds every spec that a body in d
	// names, also those sent in an earlier frame.
	Desired(d *api.Desired)
	// Reboot must not block long. It may come again, and of a boot that is over.
	Reboot(o *api.RebootOrder)
	// Report is what changed since the last Hello or Report, nil when nothing did. It is
	// pulled when a frame can be written.
	Report() *api.Actual
	// Samples is what changed on the cards since the last call in this session.
	Samples() []api.CardSample
	// Load is how busy the node is, nil where it is not time to tell.
	Load() *api.NodeLoad
	// Notes is what ranks have said since the last call in this session; all of it at the
	// first.
	Notes() []api.MemberNote
	// Signal delivers a one-shot signal and says how many processes got it.
	Signal(ctx context.Context, o api.SignalOrder) (processes int, err error)
	// ResumeCard takes a person's word that a card is good again; an error says why it is not.
	ResumeCard(ctx context.Context, uuid string) error
	// Stacks looks where the processes of a member are just now.
	Stacks(ctx context.Context, k api.MemberKey) (*api.MemberStacks, error)
	// ReadLog writes a file to w until its end, or until ctx ends when it is followed.
	ReadLog(ctx context.Context, q api.LogRead, w io.Writer) error
	// AppendLog writes a text behind a file that is there, as the user; not where it stands there already.
	AppendLog(ctx context.Context, a api.LogAppend) error
	// Keep keeps what the node knows of its site's controllers, before anything is done that rests on it.
	Keep(k Kept) error
	// Down says that the session is over, and why. The client reconnects by itself.
	Down(err error)
}

// LogWriter is a writer of a log that wants to know where in the file its bytes are from.
type LogWriter interface {
	io.Writer
	// Began is told the offset of the next byte.
	Began(offset int64)
}

// Began tells a writer, if it wants to know.
func Began(w io.Writer, offset int64) {
	if b, ok := w.(LogWriter); ok {
		b.Began(offset)
	}
}
