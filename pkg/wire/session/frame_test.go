package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestFramesThatMakeNoSense: what the rest relies on is looked at once, where it comes in; the peer is told what was wrong.
func TestFramesThatMakeNoSense(t *testing.T) {
	assignment := func(edit func(*api.Assignment)) *api.Frame {
		a := api.Assignment{MemberKey: api.MemberKey{Job: 1, Epoch: 1}}
		edit(&a)
		return &api.Frame{Desired: &api.Desired{Assignments: []api.Assignment{a}}}
	}
	body := func(nodes int, ranks ...int) func(*api.Assignment) {
		return func(a *api.Assignment) {
			a.Body = &api.AssignmentBody{Nodes: make([]api.Place, nodes)}
			for _, n := range ranks {
				a.Body.Ranks = append(a.Body.Ranks, api.RankPlace{Node: n})
			}
		}
	}
	beat := api.Welcome{Settings: api.DefaultSettings()}
	still := beat
	still.Settings.Heartbeat = 0
	for _, c := range []struct {
		f    *api.Frame
		want string
	}{
		{&api.Frame{}, ""},
		{assignment(func(*api.Assignment) {}), ""},
		{assignment(func(a *api.Assignment) { a.Job = 0 }), "assignment of job 0 epoch 1"},
		{assignment(func(a *api.Assignment) { a.Epoch = 0 }), "assignment of job 1 epoch 0"},
		{assignment(body(2, 0, 1)), ""},
		{assignment(body(2, 0, 2)), "job 1: rank 1 sits on node 2 of 2"},
		{assignment(body(2, -1)), "job 1: rank 0 sits on node -1 of 2"},
		{&api.Frame{Desired: &api.Desired{Specs: map[string]*api.Spec{"h": nil}}}, "spec h is empty"},
		{&api.Frame{Desired: &api.Desired{Specs: map[string]*api.Spec{"h": {}}}}, ""},
		{&api.Frame{Hello: &api.Hello{}}, "hello without a node name"},
		{&api.Frame{Hello: &api.Hello{Node: "n1"}}, ""},
		{&api.Frame{Welcome: &beat}, ""},
		{&api.Frame{Welcome: &still}, "welcome with heartbeat 0 s"},
	} {
		data, err := json.Marshal(c.f)
		if err != nil {
			t.Fatal(err)
		}
		f, err := decodeFrame(data)
		if c.want == "" && (err != nil || f == nil) || c.want != "" && (!errors.Is(err, errFrame) || err.Error() != "malformed frame: "+c.want) {
			t.Errorf("%s: %v, want %q", data, err, c.want)
		}
	}
	if f, err := decodeFrame([]byte("{")); f != nil || !errors.Is(err, errFrame) {
		t.Errorf("torn: %v, %v", f, err)
	}
}

// TestHellosThatAreRefused: each with who is to do what.
func TestHellosThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		h    *api.Hello
		node string
		code api.Code
		want string
	}{
		{nil, "", api.CodeInvalid, "the first frame of a session must be a hello"},
		{&api.Hello{Node: "n1", Version: "9", Protocol: api.SessionProtocol + 1}, "", api.CodeInvalid,
			fmt.Sprintf("gnoded 9 speaks session protocol %d, this controller %d: install the same version on both", api.SessionProtocol+1, api.SessionProtocol)},
		{&api.Hello{Node: "n1", Protocol: api.SessionProtocol}, "n2", api.CodePermission, `the certificate is node "n2"'s, the hello says "n1"`},
		{&api.Hello{Node: "n1", Protocol: api.SessionProtocol}, "n1", "", ""},
		{&api.Hello{Node: "n1", Protocol: api.SessionProtocol}, "", "", ""},
	} {
		err := checkHello(c.h, c.node)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want || api.CodeOf(err) != c.code) {
			t.Errorf("%+v of %q: %v", c.h, c.node, err)
		}
	}
}

// TestErrorsThatTravel: an answer to a node has a code, whatever went wrong.
func TestErrorsThatTravel(t *testing.T) {
	own := api.Errorf(api.CodeConflict, "no")
	if got := asError(own); got != own {
		t.Errorf("%+v", got)
	}
	for err, code := range map[error]api.Code{errors.New("disk"): api.CodeInternal, fmt.Errorf("x: %w", own): api.CodeConflict, context.DeadlineExceeded: api.CodeOf(context.DeadlineExceeded)} {
		if got := asError(err); got == nil || got.Code != code || got.Message != err.Error() {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

// listing is the seat of a controller that takes note of what nodes keep.
type listing struct {
	Office
	heard []string
}

func (l *listing) Listed(node string, version uint64) {
	l.heard = append(l.heard, fmt.Sprintf("%s %d", node, version))
}

// TestListedIsHeardOnce: a frame that says nothing of the list of controllers says not that a node has none.
func TestListedIsHeardOnce(t *testing.T) {
	o := new(listing)
	h := newHubHalf(nil, o)
	h.greeted(&api.Hello{Node: "n1"})
	for _, f := range []*api.Frame{{}, {Listed: 7}, {}} {
		h.take(f)
	}
	if got := strings.Join(o.heard, ", "); got != "n1 7" {
		t.Error(got)
	}
	alone := newHubHalf(nil, nil)
	alone.take(&api.Frame{Listed: 7})
}

// TestWhatAWitnessAdds: nothing to what a controller said itself, nor where there was no witness.
func TestWhatAWitnessAdds(t *testing.T) {
	cut := errors.New("cut")
	asked, over := false, make(chan struct{})
	w := &witness{open: make(chan struct{}), over: over, cancel: func() { asked = true; close(over) }}
	if got := w.verdict(cut); got != cut {
		t.Errorf("no witness: %v", got)
	}
	close(w.open)
	for _, err := range []error{errDied, fmt.Errorf("x: %w", errDied), closeReason{}} {
		if got := w.verdict(err); got != err || asked {
			t.Errorf("%v: %v, asked %t", err, got, asked)
		}
	}
}

// TestWindowOfAStream: what a reader grants is sent and no more, and a wrong grant takes nothing back.
func TestWindowOfAStream(t *testing.T) {
	st := &nodeStream{more: make(chan struct{}, 1)}
	for _, n := range []int64{5, -3, 0} {
		st.grant(n)
	}
	if a, b, c := st.take(3), st.take(3), st.take(3); a != 3 || b != 2 || c != 0 {
		t.Errorf("%d, %d, %d", a, b, c)
	}
	st.grant(1)
	if a := st.take(3); a != 1 {
		t.Errorf("%d", a)
	}
}

// unreadable is a handler whose specifications can't be read.
type unreadable struct{ *fakeHandler }

func (unreadable) Spec(string) (*api.Spec, error) { return nil, errTest }

// A set that can't be told whole ends the session with the reason.
func TestSetThatCantBeRead(t *testing.T) {
	h := unreadable{newFakeHandler()}
	h.set(nil, assign(1, 1, "s"))
	var got []error
	half := newHubHalf(h, nil)
	half.each(&api.Frame{}, true, func(f *api.Frame, err error) bool {
		got = append(got, err)
		return true
	})
	if len(got) != 1 || !errors.Is(got[0], errTest) {
		t.Errorf("%v", got)
	}
}

// A controller that is stopping opens no line any more, and a request that is none leaves nothing to wait for.
func TestNoLineWithoutAHub(t *testing.T) {
	h := NewHub(newFakeHandler(), nil, quiet())
	ask := func(serve func(http.ResponseWriter, *http.Request, string)) int {
		w := httptest.NewRecorder()
		serve(w, httptest.NewRequest(http.MethodGet, "/", nil), "n1")
		return w.Code
	}
	if got := ask(h.Serve); got != http.StatusUpgradeRequired {
		t.Errorf("no upgrade: %d", got)
	}
	if got := ask(h.Witness); got != http.StatusConflict {
		t.Errorf("a witness without a session: %d", got)
	}
	closed := make(chan struct{})
	go func() { defer close(closed); h.Close(time.Second) }()
	get(t, "end of the hub", closed)
	for name, serve := range map[string]func(http.ResponseWriter, *http.Request, string){"session": h.Serve, "line": h.Line} {
		if got := ask(serve); got != http.StatusServiceUnavailable {
			t.Errorf("%s of a closed hub: %d", name, got)
		}
	}
}
