package session

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

// flow is a call whose pieces go nowhere but into its outbox.
func flow(t *testing.T) *callFlow {
	out := &outbox{}
	out.init()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return newCallFlow(ctx, out, 7)
}

var errGone = api.Errorf(api.CodeConflict, "gone")

// TestReadOfACall: pieces come in their order, the window moves by what was read, and after them comes the end, or why there is none.
func TestReadOfACall(t *testing.T) {
	f := flow(t)
	f.deliver(&api.CallPiece{Data: []byte("abc")})
	f.deliver(&api.CallPiece{Data: []byte("d")})
	b := make([]byte, 2)
	for _, want := range []string{"ab", "c", "d"} {
		if n, err := f.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("%q, %v, want %q", b[:n], err, want)
		}
	}
	var credits []int64
	for _, p := range f.out.calls {
		if credits = append(credits, p.Credit); p.ID != 7 || p.Data != nil || p.EOF {
			t.Errorf("sent %+v", p)
		}
	}
	if !slices.Equal(credits, []int64{2, 1, 1}) || f.held != 0 {
		t.Errorf("the window moved by %v, %d bytes are held", credits, f.held)
	}
	f.deliver(&api.CallPiece{EOF: true})
	f.deliver(&api.CallPiece{})
	if _, err := f.Read(b); err != io.EOF {
		t.Errorf("at the end %v", err)
	}
	f.deliver(&api.CallPiece{Error: errGone})
	if _, err := f.Read(b); err != error(errGone) {
		t.Errorf("an error goes before the end: %v", err)
	}
	f = flow(t)
	waits := make(chan error)
	go func() {
		_, err := f.Read(make([]byte, 1))
		waits <- err
	}()
	f.cancel(errGone)
	if err := <-waits; err != error(errGone) {
		t.Errorf("who waits hears %v", err)
	}
}

// TestHeldOfACall: a peer that goes on beyond its window twice ends the call; up to there it is taken.
func TestHeldOfACall(t *testing.T) {
	f := flow(t)
	f.deliver(&api.CallPiece{Data: make([]byte, 2*api.StreamWindow)})
	if f.ctx.Err() != nil || len(f.pieces) != 1 {
		t.Fatalf("%v, %d pieces", context.Cause(f.ctx), len(f.pieces))
	}
	f.deliver(&api.CallPiece{Data: make([]byte, 1)})
	if err := context.Cause(f.ctx); err == nil || err.Error() != fmt.Sprintf("peer sent more than its window of %d bytes", api.StreamWindow) || len(f.pieces) != 1 {
		t.Errorf("%v, %d pieces", err, len(f.pieces))
	}
}

// TestWriteOfACall: what is written goes out in pieces as far as the window goes, and no further when the peer has answered.
func TestWriteOfACall(t *testing.T) {
	f := flow(t)
	data := noise(2*pieceBytes + 5)
	if n, err := f.Write(data); n != len(data) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	var sizes []int
	var all []byte
	for _, p := range f.out.calls {
		sizes, all = append(sizes, len(p.Data)), append(all, p.Data...)
	}
	if !slices.Equal(sizes, []int{pieceBytes, pieceBytes, 5}) || !bytes.Equal(all, data) || f.credit != api.StreamWindow-int64(len(data)) {
		t.Errorf("pieces of %v, %d may still be sent", sizes, f.credit)
	}
	f.credit = 3
	f.deliver(&api.CallPiece{Credit: -9})
	if n, err := f.take(9); n != 3 || err != nil || f.credit != 0 {
		t.Errorf("of 3 bytes %d are sent, %v", n, err)
	}
	done := make(chan error)
	go func() {
		_, err := f.Write([]byte("x"))
		done <- err
	}()
	f.deliver(&api.CallPiece{Credit: 1})
	if err := <-done; err != nil {
		t.Errorf("with room again: %v", err)
	}
	f.deliver(&api.CallPiece{Error: errGone, Credit: 5})
	if n, err := f.Write([]byte("x")); n != 0 || err != error(errGone) {
		t.Errorf("after the answer: %d, %v", n, err)
	}
	f.credit = 0
	if n, err := f.take(1); n != 0 || err != error(errGone) {
		t.Errorf("without room, after the answer: %d, %v", n, err)
	}
	f = flow(t)
	f.credit = 0
	f.cancel(errGone)
	if n, err := f.take(1); n != 0 || err != error(errGone) {
		t.Errorf("of a call that has ended: %d, %v", n, err)
	}
}

// TestOutcomeOfACall: the peer's error, its result, why the call ended, or that nobody answered.
func TestOutcomeOfACall(t *testing.T) {
	result := &api.CallResult{Size: 3}
	for want, set := range map[string]func(*callFlow){
		"gone":   func(f *callFlow) { f.deliver(&api.CallPiece{Result: result, Error: errGone}) },
		"result": func(f *callFlow) { f.deliver(&api.CallPiece{Result: result}); f.cancel(errGone) },
		"left":   func(f *callFlow) { f.cancel(errors.New("left")) },
		"the controller ended the call without an answer": func(f *callFlow) { f.deliver(&api.CallPiece{EOF: true}) },
	} {
		f := flow(t)
		set(f)
		got, err := f.outcome()
		if want == "result" && (got != result || err != nil) || want != "result" && (got != nil || err == nil || err.Error() != want) {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
}

// TestCallsOfASession: so many are open at a time, pieces find theirs, and the session's end is that of all.
func TestCallsOfASession(t *testing.T) {
	out := &outbox{}
	out.init()
	var c calls
	first, err := c.start(t.Context(), out, 1)
	if err != nil || first.id != 1 {
		t.Fatal(err)
	}
	for id := range uint64(maxCalls - 1) {
		if _, err := c.start(t.Context(), out, id+2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.start(t.Context(), out, maxCalls+1); err == nil || err.Message != "this node has 4096 calls open already; try again" || err.Code != api.CodeUnavailable {
		t.Errorf("one more: %v", err)
	}
	c.piece(&api.CallPiece{ID: 1, Data: []byte("x")})
	c.piece(&api.CallPiece{ID: maxCalls + 9, Data: []byte("x")})
	if first.held != 1 {
		t.Errorf("%d bytes came", first.held)
	}
	second := c.open[2]
	if c.piece(&api.CallPiece{ID: 2, Cancel: true}); context.Cause(second.ctx) != errCancelled {
		t.Errorf("cancelled: %v", context.Cause(second.ctx))
	}
	if c.drop(second); c.open[2] != nil || len(c.open) != maxCalls-1 {
		t.Errorf("%d are open", len(c.open))
	}
	c.end(errGone)
	if context.Cause(first.ctx) != error(errGone) || len(c.open) != 0 {
		t.Errorf("at the end: %v, %d are open", context.Cause(first.ctx), len(c.open))
	}
	if _, err := c.start(t.Context(), out, 1); err != errGone {
		t.Errorf("after the end: %v", err)
	}
}

// TestTakePieces: of what is to be sent so many bytes go at once, at least one piece.
func TestTakePieces(t *testing.T) {
	piece := func(n int) api.CallPiece { return api.CallPiece{Data: make([]byte, n)} }
	for i, c := range []struct {
		sizes []int
		now   int
	}{{nil, 0}, {[]int{maxReplyBytes}, 1}, {[]int{maxReplyBytes + 1, 0}, 1}, {[]int{maxReplyBytes, 0, 0}, 3}, {[]int{maxReplyBytes, 1}, 1}, {[]int{1, maxReplyBytes - 1, 1}, 2}, {[]int{1, maxReplyBytes}, 1}} {
		var all []api.CallPiece
		for _, n := range c.sizes {
			all = append(all, piece(n))
		}
		now, later := takePieces(all, bytesOfCall)
		if len(now) != c.now || len(now)+len(later) != len(all) {
			t.Errorf("%d: %d now and %d later, want %d of %d", i, len(now), len(later), c.now, len(all))
		}
	}
}

// TestStreams: a question has a number and waits for its pieces; one that nobody waits for is called off, but when it has ended itself.
func TestStreams(t *testing.T) {
	out := &outbox{}
	out.init()
	var s streams
	if _, err := s.ask(api.StreamRequest{}); err == nil || err.Error() != "the node's session is only just opening" {
		t.Errorf("too early: %v", err)
	}
	s.init(out)
	a, err := s.ask(api.StreamRequest{CardResume: "x"})
	b, err2 := s.ask(api.StreamRequest{CardResume: "y"})
	if err != nil || err2 != nil || a.id != 1 || b.id != 2 || out.requests[1].ID != 2 || out.requests[1].CardResume != "y" {
		t.Fatalf("%v, %v, %+v", err, err2, out.requests)
	}
	s.reply(&api.StreamReply{ID: 1, Data: []byte("q")})
	s.reply(&api.StreamReply{ID: 9})
	if got, err := a.next(t.Context()); err != nil || len(got) != 1 || string(got[0].Data) != "q" || a.held != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errGone)
	if _, err := b.next(gone); err != error(errGone) {
		t.Errorf("who left: %v", err)
	}
	out.requests = nil
	s.drop(a, true)
	s.drop(b, false)
	if d := cmp.Diff([]api.StreamRequest{{ID: 2, Cancel: true}}, out.requests); d != "" || len(s.open) != 0 {
		t.Errorf("called off: %s", d)
	}
	c, _ := s.ask(api.StreamRequest{})
	c.push(api.StreamReply{ID: c.id, Data: make([]byte, 2*api.StreamWindow)})
	if c.push(api.StreamReply{ID: c.id, Data: make([]byte, 1)}); len(c.pieces) != 1 || !c.pieces[0].EOF || c.pieces[0].ID != c.id || c.pieces[0].Error == nil || c.pieces[0].Error.Message != fmt.Sprintf("node sent more than its window of %d bytes", api.StreamWindow) {
		t.Errorf("beyond its window: %+v", c.pieces)
	}
	d, _ := s.ask(api.StreamRequest{})
	s.end(errGone)
	if got, err := d.next(t.Context()); err != nil || len(got) != 1 || got[0].Error != errGone || !got[0].EOF || got[0].ID != d.id {
		t.Errorf("at the end: %+v, %v", got, err)
	}
	out.requests = nil
	if s.drop(d, false); out.requests != nil {
		t.Errorf("after the end it is called off: %+v", out.requests)
	}
	if _, err := s.ask(api.StreamRequest{}); err != error(errGone) {
		t.Errorf("after the end: %v", err)
	}
}

// brokenWriter takes so many writes.
type brokenWriter struct {
	bytes.Buffer
	left  int
	began []int64
}

func (w *brokenWriter) Began(at int64) { w.began = append(w.began, at) }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errGone
	}
	return w.Buffer.Write(p)
}

// TestCopyPieces: what came is copied in its order up to the end, an error, or a writer that is gone.
func TestCopyPieces(t *testing.T) {
	at := int64(9)
	for i, c := range []struct {
		pieces []api.StreamReply
		left   int
		text   string
		n      int
		ended  bool
		err    error
	}{
		{nil, 9, "", 0, false, nil},
		{[]api.StreamReply{{Began: &at}, {Data: []byte("ab")}, {Data: []byte("c")}}, 9, "abc", 3, false, nil},
		{[]api.StreamReply{{Data: []byte("ab")}, {EOF: true}}, 9, "ab", 2, true, nil},
		{[]api.StreamReply{{Data: []byte("ab"), EOF: true, Error: errGone}}, 9, "ab", 2, true, errGone},
		{[]api.StreamReply{{Data: []byte("ab")}, {Error: errGone}, {Data: []byte("c")}}, 9, "ab", 2, false, errGone},
		{[]api.StreamReply{{Data: []byte("ab")}, {Data: []byte("c")}}, 1, "ab", 2, false, errGone},
		{[]api.StreamReply{{}}, 0, "", 0, false, nil},
	} {
		w := &brokenWriter{left: c.left}
		n, ended, err := copyPieces(w, c.pieces)
		var want error
		if c.err != nil {
			want = c.err
		}
		if w.String() != c.text || n != c.n || ended != c.ended || err != want {
			t.Errorf("%d: %q, %d, %t, %v", i, w.String(), n, ended, err)
		}
		if (i == 1) != slices.Equal(w.began, []int64{9}) {
			t.Errorf("%d: it begins at %v", i, w.began)
		}
	}
}

// TestSharesOfANode: who asks is refused with what there is, and gives back what it had.
func TestSharesOfANode(t *testing.T) {
	n := newNodeStreams()
	n.readers, n.orders = newShares[uint32](5), newShares[int64](5)
	log := func(id uint64) *api.StreamRequest {
		return &api.StreamRequest{ID: id, Log: &api.LogRead{UID: 3, User: "ada"}}
	}
	signal := func(id uint64, job int64) *api.StreamRequest {
		return &api.StreamRequest{ID: id, Signal: &api.SignalOrder{MemberKey: api.MemberKey{Job: job}}}
	}
	st := &nodeStream{}
	if err := n.enter(st, log(1)); err != nil || n.open[1] != st {
		t.Fatal(err)
	}
	if err := n.enter(st, log(2)); err == nil || err.Code != api.CodeTooMany || err.Error() != "the node reads out 1 logs of ada already; a user may have a quarter of the room that is left, which is 4; end some of glog -f" || n.open[2] != nil {
		t.Errorf("a second log: %v", err)
	}
	if err := n.enter(st, signal(3, 7)); err != nil || n.open[3] != st {
		t.Errorf("a signal beside it: %v", err)
	}
	if err := n.enter(st, signal(4, 7)); err == nil || err.Code != api.CodeTooMany || err.Error() != "1 signals and looks of the same job wait on the node already; a job may have a quarter of the room that is left, which is 4; wait until they are answered" {
		t.Errorf("a second one of the job: %v", err)
	}
	if err := n.enter(st, signal(5, 8)); err != nil {
		t.Errorf("one of another job: %v", err)
	}
	if err := n.enter(st, &api.StreamRequest{ID: 6, CardResume: "x"}); err != nil || n.orders.held[0] != 1 {
		t.Errorf("a word on a card: %v", err)
	}
	n.leave(log(1))
	n.leave(signal(3, 7))
	if len(n.open) != 2 || n.readers.room != 5 || len(n.readers.held) != 0 || n.orders.room != 3 || n.orders.held[7] != 0 {
		t.Errorf("%d are open, room for %d logs and %d orders", len(n.open), n.readers.room, n.orders.room)
	}
}

// TestWriteOfANode: an answer goes out in pieces as far as its window goes, and ends with its reader.
func TestWriteOfANode(t *testing.T) {
	out := &outbox{}
	out.init()
	ctx, cancel := context.WithCancel(t.Context())
	st := &nodeStream{ctx: ctx, cancel: cancel, out: out, id: 5, credit: pieceBytes + 3, more: make(chan struct{}, 1)}
	done := make(chan error, 1)
	data := noise(pieceBytes + 8)
	go func() {
		n, err := st.Write(data)
		if n != len(data) {
			err = fmt.Errorf("%d of %d, %w", n, len(data), err)
		}
		done <- err
	}()
	st.grant(-4)
	st.grant(5)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, r := range out.replies {
		if all = append(all, r.Data...); r.ID != 5 || len(r.Data) > pieceBytes {
			t.Errorf("%d bytes for %d", len(r.Data), r.ID)
		}
	}
	if !bytes.Equal(all, data) || st.credit != 0 {
		t.Errorf("%d bytes, %d may still be sent", len(all), st.credit)
	}
	st.Began(9)
	if last := out.replies[len(out.replies)-1]; last.Began == nil || *last.Began != 9 {
		t.Errorf("%+v", last)
	}
	cancel()
	for len(st.more) > 0 {
		<-st.more
	}
	if n, err := st.Write([]byte("x")); n != 0 || err != errCancelled {
		t.Errorf("its reader is gone: %d, %v", n, err)
	}
}

// TestBackoff: the first try is at once, each later one waits twice as long up to a bound, which a short lease lowers.
func TestBackoff(t *testing.T) {
	none := func(time.Duration) time.Duration { return 0 }
	most := func(n time.Duration) time.Duration { return n - 1 }
	var b backoff
	for i, want := range []time.Duration{50, 100, 200, 400, 800, 1600, 2000, 2000} {
		if got := b.next(steadySession-1, 0, most); got != want*time.Millisecond {
			t.Errorf("try %d waits %s", i, got)
		}
	}
	if got := b.next(0, 0, none); got != time.Second {
		t.Errorf("at least %s", got)
	}
	if got := b.next(steadySession, 0, most); got != 0 || b != 0 {
		t.Errorf("after a session that lasted it waits %s", got)
	}
	for lease, want := range map[time.Duration]time.Duration{leaseTries * time.Second: time.Second, time.Hour: maxBackoff, time.Millisecond: minBackoff} {
		b = backoff(time.Hour)
		if got := b.next(0, lease, most); got != want {
			t.Errorf("with a lease of %s it waits %s, want %s", lease, got, want)
		}
	}
}

// TestTargets: how each kind of address is spoken to, and in which order they are tried.
func TestTargets(t *testing.T) {
	secure := &tls.Config{}
	for _, c := range []struct {
		address   string
		tls       *tls.Config
		url       string
		unix, tsl bool
	}{{"unix:/s", secure, "http://gangd", true, false}, {"unix:/s", nil, "http://gangd", true, false}, {"h:1", secure, "https://h:1", false, true}, {"h:1", nil, "http://h:1", false, false}} {
		at, client := target{address: c.address}, NewClient(Options{Controllers: []string{c.address}, TLS: c.tls})
		if got := at.url(client, "http"); got != c.url || at.unix() != c.unix || at.overTLS(client) != c.tsl {
			t.Errorf("%s: %s, unix %t, TLS %t", c.address, got, at.unix(), at.overTLS(client))
		}
	}
	one := NewClient(Options{Controllers: []string{"a"}})
	if one.several() || one.next() != (target{"", "a"}) || one.next() != (target{"", "a"}) {
		t.Error("of one controller")
	}
	if !NewClient(Options{Controllers: []string{"a", "b"}}).several() {
		t.Error("two addresses are of one")
	}
	c := NewClient(Options{Controllers: []string{"a", "x"}, Kept: Kept{Controllers: api.Controllers{Version: 1, List: []api.Controller{{Name: "A", Addresses: []string{"a", "a2"}}, {Name: "B", Addresses: []string{"b"}}}}}})
	want := []target{{"A", "a"}, {"A", "a2"}, {"B", "b"}, {"", "x"}}
	if got := c.targets(); !slices.Equal(got, want) || !c.several() {
		t.Errorf("%v", got)
	}
	seen := map[target]int{}
	for range 2 * len(want) {
		seen[c.next()]++
	}
	for _, at := range want {
		if seen[at] != 2 {
			t.Errorf("%+v was tried %d times", at, seen[at])
		}
	}
	c.hint.Store(&api.Controller{Name: "B", Addresses: []string{"b"}})
	if got := c.next(); got != want[2] {
		t.Errorf("who is said to lead is not tried, but %+v", got)
	}
	if got := c.next(); got.name == "B" && c.hint.Load() != nil {
		t.Errorf("then %+v", got)
	}
	c.hint.Store(&api.Controller{Name: "C"})
	if got := c.next(); got.name == "C" {
		t.Errorf("one without addresses is tried: %+v", got)
	}
}

// TestNobodyListens: a host that refuses says that no controller runs there: this one always, another when its last line ended so.
func TestNobodyListens(t *testing.T) {
	c := NewClient(Options{Controllers: []string{"h:1"}})
	refused, missing, other := &net.OpError{Err: syscall.ECONNREFUSED}, &net.OpError{Err: os.ErrNotExist}, errors.New("x")
	for _, k := range []struct {
		at   target
		err  error
		died bool
		want bool
	}{
		{target{"", "unix:/s"}, refused, false, true}, {target{"", "unix:/s"}, missing, false, true}, {target{"", "unix:/s"}, other, false, false},
		{target{"A", "h:1"}, refused, false, false}, {target{"A", "h:1"}, refused, true, true}, {target{"A", "h:1"}, missing, true, false}, {target{"B", "h:1"}, refused, true, false},
	} {
		c.contact.ended("A", k.died)
		if got := c.nobodyListens(k.at, k.err); got != k.want {
			t.Errorf("%+v, %v: %t", k.at, k.err, got)
		}
	}
}

// TestDialErrors: the cause without what libraries put around it; a controller's own word where it says one.
func TestDialErrors(t *testing.T) {
	answer := func(code int, body string) *http.Response {
		return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " x"), Body: io.NopCloser(strings.NewReader(body))}
	}
	op := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	plain := errors.New("x")
	for want, c := range map[string]struct {
		resp *http.Response
		err  error
	}{
		"not me":                            {answer(http.StatusMisdirectedRequest, `{"code":"unavailable","message":"not me"}`), plain},
		"controller answered 421 x":         {answer(http.StatusMisdirectedRequest, `{}`), plain},
		"controller answered 500 x":         {answer(500, `{"code":"unavailable","message":"not me"}`), plain},
		"x":                                 {answer(http.StatusSwitchingProtocols, ""), plain},
		"dial tcp: connection refused":      {nil, fmt.Errorf("failed to: %w", op)},
		"failed to open: x, which is no op": {nil, fmt.Errorf("failed to open: %w, which is no op", plain)},
	} {
		if got := dialError(c.resp, c.err); got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// TestWhyALineEnds: the peer's words, then its kernel's, then why this side ended it, then what broke.
func TestWhyALineEnds(t *testing.T) {
	plain := errors.New("broken pipe")
	for i, c := range []struct {
		err   error
		ended bool
		cause error
		want  error
		hung  bool
	}{
		{websocket.CloseError{Code: websocket.StatusGoingAway, Reason: "bye"}, false, errSilent, closeReason{"bye", true}, true},
		{websocket.CloseError{Code: websocket.StatusNormalClosure, Reason: "no"}, true, errSilent, closeReason{"no", false}, false},
		{fmt.Errorf("failed to: %w", io.EOF), true, errSilent, errDied, true},
		{fmt.Errorf("failed to: %w", io.ErrUnexpectedEOF), false, errSilent, errClosed, false},
		{plain, true, errSilent, errSilent, false},
		{plain, true, nil, plain, false},
		{websocket.CloseError{}, false, nil, websocket.CloseError{}, false},
	} {
		l := &link{ended: func() bool { return c.ended }}
		l.ctx, l.cancel = context.WithCancelCause(t.Context())
		if c.cause != nil {
			l.cancel(c.cause)
		}
		if got := l.why(c.err); got != c.want || HungUp(got) != c.hung {
			t.Errorf("%d: %v, hung up %t", i, got, HungUp(got))
		}
		l.cancel(nil)
	}
	l := &link{ctx: t.Context()}
	if got := l.why(io.EOF); got != errClosed {
		t.Errorf("where nobody looks at the line: %v", got)
	}
	for text, want := range map[string]string{"abc": "abc", "abcd": "abc", "äää": "ä", "aäx": "aä", "€x": "€", "😀": ""} {
		if got := clip(text, 3); got != want {
			t.Errorf("%q is clipped to %q", text, got)
		}
	}
}

// TestVerdicts: what a silent line adds to how a session ended.
func TestVerdicts(t *testing.T) {
	reset := errors.New("reset")
	opened := func(open bool, over error) *witness {
		ctx, cancel := context.WithCancel(t.Context())
		w := &witness{cancel: cancel, open: make(chan struct{}), over: make(chan struct{}), err: over}
		if open {
			close(w.open)
		}
		if over != nil {
			close(w.over)
		} else {
			go func() { <-ctx.Done(); w.err = ctx.Err(); close(w.over) }()
		}
		return w
	}
	for i, c := range []struct {
		w    *witness
		err  error
		want error
		died bool
	}{
		{opened(true, errDied), reset, errDied, true}, {opened(true, errDied), closeReason{"no", false}, closeReason{"no", false}, true}, {opened(true, errDied), closeReason{"bye", true}, closeReason{"bye", true}, true},
		{opened(false, errDied), reset, reset, true}, {opened(true, errClosed), reset, reset, false}, {opened(true, errDied), errSilent, errDied, true}, {opened(true, nil), errSilent, errSilent, false}, {opened(true, closeReason{"bye", true}), reset, reset, true},
	} {
		if got := c.w.verdict(c.err); got != c.want || c.w.died() != c.died {
			t.Errorf("%d: %v, died %t", i, got, c.w.died())
		}
		c.w.end()
		if !c.w.isOver() {
			t.Errorf("%d: it goes on", i)
		}
	}
}

// TestLooks: a peer is silent when its patience is over, unless this process was late, or has not read what came, for so many looks in a row.
func TestLooks(t *testing.T) {
	const beat = time.Second
	now := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	never, always := func() bool { return false }, func() bool { return true }
	s := silence{patience: SilentBeats * beat, heard: now, due: at(SilentBeats * beat)}
	if s.longest() != (SilentBeats+ownBeats)*beat {
		t.Errorf("at the longest %s", s.longest())
	}
	for i, c := range []struct {
		after time.Duration
		held  func() bool
		want  time.Duration
		own   int
	}{
		{beat, never, 2 * beat, 0}, {3*beat - 1, never, 1, 0}, {3 * beat, never, 0, 0}, {3 * beat, always, beat, 1}, {4*beat + beat - 1, never, 0, 1}, {5 * beat, never, beat, 2}, {6 * beat, always, beat, 3},
	} {
		if got := s.look(at(c.after), c.held); got != c.want || s.own != c.own {
			t.Errorf("%d: waits %s, %d of its own, want %s, %d", i, got, s.own, c.want, c.own)
		}
	}
	s.own = ownBeats - 1
	if got := s.look(at(20*beat), always); got != beat || s.own != ownBeats {
		t.Errorf("the last of its own: %s, %d", got, s.own)
	}
	if got := s.look(at(40*beat), always); got != 0 {
		t.Errorf("one more: %s", got)
	}
	if s.sign(at(40 * beat)); s.own != 0 || s.look(at(41*beat), never) != 2*beat {
		t.Errorf("after a sign: %+v", s)
	}
}

// TestContactOfOne: of one controller each word counts at once; of several the oldest of all, and a list that is no newer changes nothing.
func TestContactOfOne(t *testing.T) {
	last := func(c *contact) time.Duration { return time.Duration(c.last.Load()) }
	var one contact
	for _, s := range []struct {
		name        string
		asked, want time.Duration
	}{{"", 5, 5}, {"A", 9, 5}, {"", 3, 5}, {"", 7, 7}} {
		if one.word(s.name, s.asked); last(&one) != s.want {
			t.Errorf("%q at %d: %d", s.name, s.asked, last(&one))
		}
	}
	var c contact
	if c.listed(nil) || c.listed(&api.Controllers{}) || !c.listed(controllers(2, "A", "B")) || c.listed(controllers(2, "A")) || c.listed(controllers(1, "A")) || len(c.kept().List) != 2 {
		t.Errorf("%+v", c.kept())
	}
	for _, s := range []struct {
		name        string
		asked, want time.Duration
	}{{"A", 5, 0}, {"X", 6, 0}, {"B", 3, 3}, {"A", 4, 3}, {"B", 8, 5}, {"A", 7, 7}} {
		if c.word(s.name, s.asked); last(&c) != s.want {
			t.Errorf("%s at %d: %d, want %d", s.name, s.asked, last(&c), s.want)
		}
	}
	for _, s := range []struct {
		term     uint64
		news, ok bool
	}{{3, true, true}, {3, false, true}, {2, false, false}, {0, false, false}, {4, true, true}} {
		if news, ok := c.leads(s.term); news != s.news || ok != s.ok {
			t.Errorf("term %d: news %t, ok %t", s.term, news, ok)
		}
	}
	one.site.Controllers = *controllers(5, "A")
	if news, ok := one.leads(0); news || !ok || one.kept().Version != 0 {
		t.Errorf("of the only one: %t, %t, %+v", news, ok, one.kept())
	}
	for _, s := range []struct {
		name string
		died bool
		news bool
		want []string
	}{{"A", false, false, nil}, {"A", true, true, []string{"A"}}, {"A", true, false, []string{"A"}}, {"B", true, true, []string{"A", "B"}}, {"A", false, true, []string{"B"}}} {
		if news := c.ended(s.name, s.died); news != s.news || !slices.Equal(c.kept().Ended, s.want) || c.hasEnded(s.name) != s.died {
			t.Errorf("%s died %t: news %t, %v", s.name, s.died, news, c.kept().Ended)
		}
	}
}

// TestBeats: contact counts from when the beat was sent that came back, once, of no older term, and never backwards.
func TestBeats(t *testing.T) {
	now := time.Duration(100)
	c := contact{clock: func() time.Duration { return now }}
	last := func() time.Duration { return time.Duration(c.last.Load()) }
	first := c.beat()
	now = 200
	second := c.beat()
	if first != 1 || second != 2 {
		t.Errorf("beats %d and %d", first, second)
	}
	for i, s := range []struct {
		n, term uint64
		want    time.Duration
	}{{9, 0, 0}, {second, 0, 200}, {first, 0, 200}, {second, 0, 200}} {
		if c.echo(s.n, s.term); last() != s.want {
			t.Errorf("%d: %d, want %d", i, last(), s.want)
		}
	}
	c.leads(5)
	now = 300
	old, new := c.beat(), c.beat()
	if c.echo(old, 4); last() != 200 {
		t.Errorf("an echo of an older term counts: %d", last())
	}
	if c.echo(new, 5); last() != 300 {
		t.Errorf("an echo of its term: %d", last())
	}
	c.sent = nil
	now = 400
	for range maxBeats {
		c.beat()
	}
	if len(c.sent) != maxBeats {
		t.Errorf("%d are under way", len(c.sent))
	}
	if n := c.beat(); len(c.sent) != 1 || c.sent[n] != 400 {
		t.Errorf("then %v", c.sent)
	}
}

// TestSpecsOfANode: a node keeps what the controller may name again, drops what nothing names any more, and refuses what it was not sent.
func TestSpecsOfANode(t *testing.T) {
	c := newSpecCache()
	specs := func(names ...string) map[string]*api.Spec {
		out := map[string]*api.Spec{}
		for _, n := range names {
			out[n] = &api.Spec{Name: n}
		}
		return out
	}
	for i, s := range []struct {
		d     *api.Desired
		named []string
		keeps []string
		err   string
	}{
		{&api.Desired{Specs: specs("a")}, nil, []string{"a"}, ""},
		{&api.Desired{Assignments: []api.Assignment{assign(1, 1, "a"), assign(2, 1, "a")}}, []string{"a"}, []string{"a"}, ""},
		{&api.Desired{Assignments: []api.Assignment{{MemberKey: key(1, 1)}}}, nil, []string{"a"}, ""},
		{&api.Desired{Assignments: []api.Assignment{assign(3, 1, "b")}}, nil, []string{"a"}, `malformed frame: job 3 names spec "b", which was not sent`},
		{&api.Desired{Specs: specs("b"), Assignments: []api.Assignment{assign(2, 1, "b")}}, []string{"b"}, []string{"a", "b"}, ""},
		{&api.Desired{Forget: []api.MemberKey{key(1, 1), key(9, 9)}}, nil, []string{"b"}, ""},
		{&api.Desired{Forget: []api.MemberKey{key(2, 1)}}, nil, nil, ""},
		{&api.Desired{Full: true, Specs: specs("a", "c"), Assignments: []api.Assignment{assign(4, 1, "c"), assign(5, 1, "a")}}, []string{"a", "c"}, []string{"a", "c"}, ""},
		{&api.Desired{Forget: []api.MemberKey{key(4, 1), key(5, 1)}}, nil, nil, ""},
	} {
		err := c.apply(s.d)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != s.err || err != nil && !errors.Is(err, errFrame) {
			t.Fatalf("%d: %v", i, err)
		}
		names := func(m map[string]*api.Spec) (out []string) {
			for n := range m {
				out = append(out, n)
			}
			slices.Sort(out)
			return out
		}
		if err == nil && !slices.Equal(names(s.d.Specs), s.named) || !slices.Equal(names(c.specs), s.keeps) {
			t.Errorf("%d: named %v, kept %v", i, names(s.d.Specs), names(c.specs))
		}
	}
	if len(c.members) != 0 || len(c.refs) != 0 {
		t.Errorf("%v, %v", c.members, c.refs)
	}
}

// TestSame: what makes an assignment another.
func TestSame(t *testing.T) {
	a, b := &api.Gate{MasterPort: 1}, &api.Gate{MasterPort: 1}
	if !equal(a, b) || !equal(a, a) || equal(a, &api.Gate{MasterPort: 2}) || equal(a, nil) || equal(nil, a) || !equal[api.Gate](nil, nil) {
		t.Error("which gates are equal")
	}
	step := func(edit func(*api.StepOrder)) []api.StepOrder {
		o := api.StepOrder{ID: 3}
		edit(&o)
		return []api.StepOrder{o}
	}
	plain := step(func(*api.StepOrder) {})
	for what, c := range map[string]struct {
		steps []api.StepOrder
		same  bool
	}{"it": {step(func(o *api.StepOrder) { o.CPUs = 9 }), true}, "another": {step(func(o *api.StepOrder) { o.ID = 4 }), false}, "stopped": {step(func(o *api.StepOrder) { o.Stop = true }), false}, "held": {step(func(o *api.StepOrder) { o.Held = true }), false}, "none": {nil, false}} {
		if SameSteps(plain, c.steps) != c.same {
			t.Errorf("%s: %t", what, !c.same)
		}
	}
	refs := map[string]int{"a": 2}
	if release(refs, "a"); refs["a"] != 1 {
		t.Error(refs)
	}
	if release(refs, "a"); len(refs) != 0 {
		t.Error(refs)
	}
}
