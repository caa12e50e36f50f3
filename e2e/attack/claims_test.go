package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// liar speaks a node's session with a stolen certificate.
type liar struct {
	ws  *websocket.Conn
	ctx context.Context
	end context.CancelFunc
}

// hello is what a node says that has nothing and takes no work.
func hello(node string) *api.Hello {
	return &api.Hello{Protocol: api.SessionProtocol, Node: node, StateID: "thief", Version: api.Version, BootID: "b", Address: "127.0.0.1", Containment: "cgroup2",
		Cards: []api.CardInfo{}, Members: []api.MemberActual{}}
}

// open dials a session with the certificate in dir.
func (s *site) open(dir, path string) (*liar, error) {
	conf, err := auth.NodeTLS(dir)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithTimeout(context.Background(), trial.Patience)
	dial := func(context.Context, string, string) (net.Conn, error) { return tlsDial(s.address, conf) }
	ws, res, err := websocket.Dial(ctx, "wss://gangd"+path, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled,
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialTLSContext: dial}}})
	if err != nil {
		end()
		if res != nil {
			err = fmt.Errorf("%s: %w", res.Status, err)
		}
		return nil, err
	}
	ws.SetReadLimit(64 << 20)
	return &liar{ws, ctx, end}, nil
}

func (l *liar) close() {
	_ = l.ws.CloseNow()
	l.end()
}

func (l *liar) say(f any) error {
	b, raw := f.([]byte)
	if !raw {
		var err error
		if b, err = json.Marshal(f); err != nil {
			return err
		}
	}
	return l.ws.Write(l.ctx, websocket.MessageText, b)
}

// heard reads frames until one satisfies ok, or the session ends.
func (l *liar) heard(ok func(*api.Frame) bool) (*api.Frame, error) {
	for {
		_, b, err := l.ws.Read(l.ctx)
		if err != nil {
			return nil, err
		}
		f := new(api.Frame)
		if err := json.Unmarshal(b, f); err != nil {
			return nil, err
		}
		if ok(f) {
			return f, nil
		}
	}
}

// answered says a beat and waits for its echo: what was said before has been taken in. An error is
// the end of the session.
func (l *liar) answered() error {
	const n = 4711
	if err := l.say(&api.Frame{Beat: n}); err != nil {
		return err
	}
	_, err := l.heard(func(f *api.Frame) bool { return f.Echo == n })
	return err
}

// lie opens a session as n3 with a hello, says frames, and ends it. ended: the controller did.
func (s *site) lie(h *api.Hello, frames ...any) (ended error, err error) {
	l, err := s.open(s.tls, api.SessionPath)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.say(&api.Frame{Hello: h}); err != nil {
		return err, nil
	}
	if _, err := l.heard(func(f *api.Frame) bool { return f.Welcome != nil }); err != nil {
		return err, nil
	}
	for _, f := range frames {
		if err := l.say(f); err != nil {
			return err, nil
		}
	}
	return l.answered(), nil
}

// claims: what the certificate of n3 can bring about for what is not n3's.
func claims(s *site) (out []try) {
	add := func(name, what, expect string, do func() error) {
		out = append(out, try{"forged node claims", name, "with the certificate of n3: " + what, expect, false, do})
	}
	// What is said of a member changes nothing, whether the session goes on or not.
	say := func(h *api.Hello, frames ...any) func() error {
		return func() error { _, err := s.lie(h, frames...); return err }
	}
	mustEnd := func(h *api.Hello, frames ...any) func() error {
		return func() error {
			ended, err := s.lie(h, frames...)
			if err == nil && ended == nil {
				err = errors.New("the session went on")
			}
			return err
		}
	}
	for _, name := range []string{"n1", "n2", "N3", "n3 ", "../n3", "", "ctl", strings.Repeat("n", 300), "n3\x00", "n3\x1b[2J"} {
		h := hello(name)
		add(fmt.Sprintf("name %.12q", name), "a hello in this name", "the session is refused", mustEnd(h))
	}
	member := func(m api.MemberActual, id int64, epoch int) api.MemberActual {
		m.Job, m.Epoch = id, epoch
		return m
	}
	code := func(c int) []api.RankActual {
		return []api.RankActual{{Rank: 0, PID: 1, Exited: true, ExitCode: c, Own: true, Ended: time.Now()}}
	}
	stories := []struct {
		name string
		m    api.MemberActual
	}{
		{"preparing", api.MemberActual{Phase: api.PhasePreparing}}, {"ready", api.MemberActual{Phase: api.PhaseReady, Port: 22}},
		{"refused by the node", api.MemberActual{Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameNode, Text: "x"}}},
		{"refused for the job", api.MemberActual{Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameJob, Text: "x"}}},
		{"running", api.MemberActual{Phase: api.PhaseRunning, Ranks: []api.RankActual{{PID: 1}}}},
		{"stopped with 0", api.MemberActual{Phase: api.PhaseStopped, Ranks: code(0)}}, {"stopped with 1", api.MemberActual{Phase: api.PhaseStopped, Ranks: code(1)}},
		{"out of memory", api.MemberActual{Phase: api.PhaseStopped, Ranks: []api.RankActual{{Exited: true, ExitCode: 137, Signal: 9, OOM: true, Own: true}}}},
		{"stuck", api.MemberActual{Phase: api.PhaseStuck, Survivors: []api.Survivor{{PID: 1, Command: "\x1b[2J", State: "D"}}}},
		{"lost", api.MemberActual{Phase: api.PhaseLost}}, {"in no phase", api.MemberActual{Phase: "eaten"}},
		{"stopping, by time-out", api.MemberActual{Phase: api.PhaseRunning, Stopping: api.CauseTimeout, Noticed: true, Forced: true}},
		{"with a step", api.MemberActual{Phase: api.PhaseRunning, Steps: []api.StepActual{{}}}},
		{"with a bad card of n1", api.MemberActual{Phase: api.PhaseRunning, Cards: s.cardsOf("n1", "fell off the bus")}},
	}
	for _, x := range stories {
		for _, of := range []struct {
			name  string
			id    int64
			epoch int
		}{{"ada's job", s.running, s.epoch}, {"a later epoch of it", s.running, s.epoch + 1}, {"ada's held job", s.held, 1}} {
			m := member(x.m, of.id, of.epoch)
			h := hello("n3")
			h.Members = []api.MemberActual{m}
			add(of.name+" is "+x.name, "says so in a hello and in a report", "nobody believes it", say(h, &api.Frame{Actual: &api.Actual{Members: []api.MemberActual{m}}}))
		}
	}
	gone := &api.Frame{Actual: &api.Actual{Gone: []api.MemberKey{{Job: s.running, Epoch: s.epoch}}}}
	add("ada's job is gone", "reports that nothing of it is left", "nobody believes it", say(hello("n3"), gone))
	for _, k := range []api.MemberKey{{Job: -1, Epoch: 1}, {Job: s.running, Epoch: -1}, {Job: math.MaxInt64, Epoch: math.MaxInt}, {Job: 1 << 53, Epoch: 1}, {}} {
		add(fmt.Sprintf("member %d.%d", k.Job, k.Epoch), "reports such a member", "refused, or of no effect",
			say(hello("n3"), &api.Frame{Actual: &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseRunning}}, Gone: []api.MemberKey{k}}}))
	}
	for _, x := range []struct {
		name  string
		seen  uint64
		proof string
		run   string
	}{{"2^50 without a proof", 1 << 50, "", ""}, {"2^50 with a made-up one", 1 << 50, strings.Repeat("0", 32), "r"}, {"2^64-1", math.MaxUint64, "", ""},
		{"one more than there is", s.lineage() + 1, "", ""}, {"2^53", 1 << 53, "proof", ""}, {"a proof of a megabyte", 1 << 50, strings.Repeat("f", 1<<20), ""}} {
		h := hello("n3")
		h.LineageSeen, h.LineageProof, h.RunSeen = x.seen, x.proof, x.run
		add("commit "+x.name, "claims to have seen it", "n3 is out of use at most; the cluster is not on hold", say(h))
	}
	note := api.MemberNote{MemberKey: api.MemberKey{Job: s.running, Epoch: s.epoch}, Ranks: []api.RankNote{{Rank: 0, Status: "owned", Ready: true, Stopping: true, Saved: true, Silent: true, Beats: 9}}}
	add("words of ada's rank", "a note in its name", "not shown", func() error {
		if _, err := s.lie(hello("n3"), &api.Frame{Notes: []api.MemberNote{note}}); err != nil {
			return err
		}
		if j := s.job(s.running); j.Status == "owned" {
			return errors.New("it is shown")
		}
		return nil
	})
	for name, c := range map[string]*api.Call{
		"puts a checkpoint":            {Put: &api.CheckpointPut{Key: "k"}},
		"reads a checkpoint":           {Get: &api.CheckpointGet{Own: true}},
		"comes to a barrier":           {Barrier: &api.Barrier{Name: "b"}},
		"waits until others are ready": {Ready: &api.ReadyWait{}},
	} {
		c.MemberKey = api.MemberKey{Job: s.running, Epoch: s.epoch}
		add("ada's rank "+name, "a call in its name", "refused", func() error { return s.refusedCall(c) })
	}
	add("answers nobody asked for", "replies to streams 0 to 99", "the session ends, or they are ignored", func() error {
		var f api.Frame
		for i := range 100 {
			f.Replies = append(f.Replies, api.StreamReply{ID: uint64(i), Data: []byte(secret), EOF: true})
		}
		_, err := s.lie(hello("n3"), &f)
		return err
	})
	add("samples of n1's cards", "says that they are bad", "n1's cards are fine", say(hello("n3"), &api.Frame{Samples: s.cardsOf("n1", "fell off the bus")}))
	add("cards of n1 as its own", "a hello with the UUIDs of n1's cards, then that they are bad", "n1's cards are fine", func() error {
		h := hello("n3")
		for _, c := range s.node("n1").Cards {
			h.Cards = append(h.Cards, api.CardInfo{Index: c.Index, UUID: c.UUID, Model: c.Model, VRAMBytes: 1, NUMA: -1})
		}
		_, err := s.lie(h, &api.Frame{Samples: s.cardsOf("n1", "fell off the bus")})
		return err
	})
	for name, raw := range map[string]string{
		"no JSON": "hello", "nothing": "", "null": "null", "an array": "[]", "NUL": "\x00\x00", "half": `{"hello":{"node"`, "two": `{"beat":1}{"beat":2}`,
		"deep": strings.Repeat("[", 100000), "unknown field": `{"evil":1}`, "wrong type": `{"actual":"x"}`, "huge number": `{"beat":1e400}`,
		"no UTF-8": "{\"lineage_proof\":\"\xff\xfe\"}", "17 MB": `{"lineage_proof":"` + strings.Repeat("x", 17<<20) + `"}`,
		"a welcome": `{"welcome":{"settings":{"Heartbeat":-1}}}`, "an order": `{"desired":{"full":true,"assignments":[{"job":1,"epoch":1}]}}`,
		"signals": `{"signals":[{"number":1,"job":1,"epoch":1,"signal":"KILL"}]}`,
	} {
		add("frame: "+name, "as the second frame", "the session ends, or it is ignored", say(hello("n3"), []byte(raw)))
	}
	many := &api.Actual{}
	for i := range 65537 {
		many.Gone = append(many.Gone, api.MemberKey{Job: int64(i + 1), Epoch: 1})
	}
	add("65,537 members", "one report", "the session ends", mustEnd(hello("n3"), &api.Frame{Actual: many}))
	add("a report before the hello", "as the first frame", "the session is refused", func() error {
		l, err := s.open(s.tls, api.SessionPath)
		if err != nil {
			return err
		}
		defer l.close()
		if l.say(gone) == nil && l.answered() == nil {
			return errors.New("it was answered")
		}
		return nil
	})
	add("another protocol", "protocol 99", "the session is refused", func() error {
		h := hello("n3")
		h.Protocol = 99
		return mustEnd(h)()
	})
	add("a hello in a hello", "a second hello, as n1", "n1's session is untouched", say(hello("n3"), &api.Frame{Hello: hello("n1")}))
	add("a witness of nothing", "the silent line without a session", "refused", func() error {
		l, err := s.open(s.tls, api.WitnessPath)
		if err != nil {
			return nil
		}
		defer l.close()
		return errors.New("it was opened")
	})
	add("beside n1", "n1's own certificate from another state directory, while n1 is connected", "refused", func() error {
		l, err := s.open(s.dir+"/n1/tls", api.SessionPath)
		if err != nil {
			return nil
		}
		defer l.close()
		if l.say(&api.Frame{Hello: hello("n1")}) == nil && l.answered() == nil {
			return errors.New("it took n1's place")
		}
		return nil
	})
	add("as the controller", "serves TLS with it, and a node dials", "the node refuses the certificate", func() error { return s.impersonates() })
	add("renewed as n1", "asks for a certificate in n1's name", "refused", func() error {
		return s.certified(s.tls, "").call("POST", auth.RenewPath, map[string]any{"name": "n1", "csr": s.csr()}).refused()
	})
	add("joined without a token", "asks for a certificate with none", "refused", func() error {
		return s.certified(s.tls, "").call("POST", auth.JoinPath, map[string]any{"name": "n9", "csr": s.csr()}).refused()
	})
	for name, claim := range map[string]string{"root": "0 root", "an admin": "1 daemon", "an admin by another uid": "4711 daemon", "root by another name": "0 games", "ada": "65534 nobody",
		"no number": "x y", "empty": " ", "negative": "-1 games", "2^32": "4294967296 root", "two": "5 games, 0 root", "a line feed": "5 games\t0 root"} {
		add("in the name of "+name, "Gang-User: "+claim, "refused", func() error { return s.certified(s.tls, claim).call("POST", "/v1/query", nil).refused() })
	}
	out = append(out, try{"forged node claims", "100 sessions", "with the certificate of n3: a hundred at once in turn", "the others stay", true, func() error {
		for range 100 {
			if _, err := s.lie(hello("n3")); err != nil {
				return err
			}
		}
		return nil
	}})
	return out
}

func (s *site) lineage() uint64 {
	var p api.PingReply
	_ = s.root.call("GET", "/v1/ping", nil).decode(&p)
	return p.Lineage
}

func (s *site) cardsOf(node, sick string) (out []api.CardSample) {
	for _, c := range s.node(node).Cards {
		out = append(out, api.CardSample{UUID: c.UUID, Unhealthy: sick, Held: sick, UsedBytes: 1 << 40})
	}
	return out
}

// refusedCall: a call for a rank that is not on n3.
func (s *site) refusedCall(c *api.Call) error {
	l, err := s.open(s.tls, api.SessionPath)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.say(&api.Frame{Hello: hello("n3")}); err != nil {
		return err
	}
	if err := l.say(&api.Frame{Calls: []api.CallPiece{{ID: 1, Call: c, Data: []byte(secret), EOF: true}}}); err != nil {
		return err
	}
	var got api.CallPiece
	_, err = l.heard(func(f *api.Frame) bool {
		for _, p := range f.Calls {
			if p.ID == 1 && (p.Result != nil || p.Error != nil || len(p.Data) > 0) {
				got = p
				return true
			}
		}
		return false
	})
	if err == nil && got.Error == nil {
		err = fmt.Errorf("answered %+v", got)
	}
	return err
}
