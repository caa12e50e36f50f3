package attack

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/extremes"
	"gangd/pkg/wire/auth"
)

// numbers: every number of every request and of every frame, set to where arithmetic breaks. A try is
// a kind of request, or a part of a frame.
func numbers(s *site) (out []try) {
	mine := api.JobQuery{Users: []string{s.eve.name}}
	base := func() api.Spec {
		return api.Spec{Name: "x", Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: s.eve.home, Output: "/dev/null", Script: []byte("#!/bin/sh\n"),
			Hold: true, Notice: &api.Notice{Signal: "USR1", Scope: api.ScopeRanks}}
	}
	plain, roles, array := base(), base(), base()
	roles.Roles = []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1}}
	day := 24 * time.Hour
	for _, c := range []struct {
		name, path string
		body       any
		by         *person
	}{
		{"a submission", "/v1/jobs", &api.SubmitRequest{Spec: plain}, s.eve}, {"one with roles", "/v1/jobs", &api.SubmitRequest{Spec: roles}, s.eve},
		{"an array", "/v1/jobs", &api.SubmitRequest{Spec: array, Array: &api.Array{Indices: []int{1}}}, s.eve},
		{"a change", "/v1/update", &api.UpdateRequest{JobQuery: mine}, s.eve}, {"a query", "/v1/query", &api.JobQuery{}, s.eve},
		{"a history", "/v1/history", &api.HistoryQuery{Users: []string{s.eve.name}}, s.eve}, {"a cancel", "/v1/cancel", &api.CancelRequest{JobQuery: mine}, s.eve},
		{"a hold", "/v1/hold", &api.ActionRequest{JobQuery: mine}, s.eve},
		{"a step", fmt.Sprintf("/v1/jobs/%d/steps", s.running), &api.StepRequest{Key: "s"}, s.ada}, {"a rerun", "/v1/rerun", &api.RerunRequest{Key: "r"}, s.eve},
		{"a reservation", "/v1/reservations", &api.ReservationRequest{Name: "r", Duration: &day, Nodes: &[]string{"n3"}, Users: &[]string{"games"}}, s.root},
		{"a drain", "/v1/nodes/n3/drain", &api.NodeAction{Reason: "x"}, s.root},
	} {
		out = append(out, try{"numbers", c.name, "every number of it at ten extremes", "taken, or refused with a sentence", c.path != "/v1/jobs", func() error {
			var bad error
			n := 0
			extremes.Each(c.body, func(field string, value int64) {
				if n++; bad != nil {
					return
				}
				if r, ok := c.body.(*api.SubmitRequest); ok {
					r.Key = fmt.Sprintf("%s%d", c.name, n)
				}
				if a := c.by.call("POST", c.path, c.body); a.code != 200 && a.refused() != nil {
					bad = fmt.Errorf("%s = %d: %w", field, value, a.refused())
				}
			})
			s.root.call("POST", "/v1/cancel", api.CancelRequest{JobQuery: mine})
			s.root.call("POST", "/v1/reservations/r/delete", nil)
			return bad
		}})
	}
	for _, c := range []struct {
		name string
		f    func() (*api.Frame, any)
	}{
		{"a hello", func() (*api.Frame, any) { h := hello("n3"); return &api.Frame{Hello: h}, h }},
		{"a report", func() (*api.Frame, any) {
			a := &api.Actual{Members: []api.MemberActual{{MemberKey: api.MemberKey{Job: s.running, Epoch: s.epoch}, Phase: api.PhaseStopped}}}
			return &api.Frame{Actual: a}, a
		}},
		{"samples", func() (*api.Frame, any) {
			f := &api.Frame{Samples: s.cardsOf("n1", "")[:1]}
			return f, &f.Samples[0]
		}},
		{"replies", func() (*api.Frame, any) {
			f := &api.Frame{Replies: make([]api.StreamReply, 1)}
			return f, &f.Replies[0]
		}},
		{"notes", func() (*api.Frame, any) {
			f := &api.Frame{Notes: []api.MemberNote{{MemberKey: api.MemberKey{Job: s.running, Epoch: s.epoch}}}}
			return f, &f.Notes[0]
		}},
		{"calls", func() (*api.Frame, any) { f := &api.Frame{Calls: make([]api.CallPiece, 1)}; return f, &f.Calls[0] }},
		{"beats", func() (*api.Frame, any) { f := &api.Frame{}; return f, &struct{ Beat *uint64 }{&f.Beat} }},
	} {
		out = append(out, try{"numbers", "frame: " + c.name, "every number of it at ten extremes, each in a session of the stolen certificate", "the session ends, or it is of no effect", true, func() error {
			f, part := c.f()
			var bad error
			extremes.Each(part, func(field string, value int64) {
				if bad != nil {
					return
				}
				h, frames := hello("n3"), []any{f}
				if f.Hello != nil {
					h, frames = f.Hello, nil
				}
				if _, err := s.lie(h, frames...); err != nil {
					bad = fmt.Errorf("%s = %d: %w", field, value, err)
				}
			})
			return bad
		}})
	}
	return out
}

// sizes: bytes and sizes that only our own commands would mind.
func sizes(s *site) (out []try) {
	body := func(change string) string {
		return `{"key":"z","spec":{"name":"z","hold":true,"size":1,"launch":"ranks","cpus_per_rank":1,"work_dir":"/tmp","output":"/dev/null","script":"IyEvYmluL3NoCg==",` + change + `}}`
	}
	big := strings.Repeat("x", 1<<20)
	list := `["` + strings.Repeat(`x","`, 70000) + `x"]`
	for _, c := range []struct{ name, change string }{
		{"NUL in the name", `"name":"a\u0000b"`}, {"escape code in the name", `"name":"\u001b[2J"`}, {"C1 in the name", `"name":"\u009b2J"`}, {"line feed in the name", `"name":"a\nb"`},
		{"a name of 1 MB", `"name":"` + big + `"`}, {"a comment of 1 MB", `"comment":"` + big + `"`}, {"NUL in the comment", `"comment":"\u0000"`},
		{"NUL in work_dir", `"work_dir":"/tmp/\u0000"`}, {"NUL in output", `"output":"/tmp/\u0000"`}, {"NUL in an argument", `"args":["\u0000"]`}, {"NUL in the environment", `"env":["A=\u0000"]`},
		{"a variable without a name", `"env":["=x"]`}, {"a variable without =", `"env":["A"]`}, {"a variable of 1 MB", `"env":["A=` + big + `"]`}, {"70,000 variables", `"env":` + list},
		{"70,000 arguments", `"args":` + list}, {"an argument of 1 MB", `"args":["` + big + `"]`}, {"70,000 nodes", `"node_list":` + list}, {"70,000 excluded", `"exclude":` + list},
		{"an unknown launch", `"launch":"rocket"`}, {"an unknown signal", `"stop_signal":"NUKE"`}, {"an unknown notice", `"notice":{"signal":"NUKE","lead_ns":1,"scope":"ranks"}`},
		{"an unknown scope", `"notice":{"signal":"USR1","lead_ns":1,"scope":"world"}`}, {"an unknown open mode", `"open_mode":"burn"`}, {"an unknown cause", `"requeue_causes":["fun"]`},
		{"an unknown checkpoint rule", `"checkpoint":"maybe"`}, {"an unknown choice", `"invalid_dependency":"shrug"`}, {"an unknown field", `"evil":1`}, {"a field twice of another type", `"size":"1"`},
		{"a fraction", `"size":1.5`}, {"1e400", `"size":1e400`}, {"no number", `"size":NaN`}, {"a constraint of parentheses", `"constraint":"` + strings.Repeat("(", 4000) + `"`},
		{"a constraint of ors", `"constraint":"` + strings.Repeat("a|", 2000) + `a"`}, {"escape code in a role", `"roles":[{"name":"\u001b","count":1,"cpus_per_rank":1}]`},
		{"70,000 roles", `"roles":[` + strings.Repeat(`{"name":"a","count":1},`, 70000) + `{"name":"a","count":1}]`}, {"the year 30000", `"begin":"30000-01-01T00:00:00Z"`},
		{"the year -1", `"begin":"-0001-01-01T00:00:00Z"`}, {"a partition with an escape code", `"partition":"\u001b"`}, {"a reservation of 1 MB", `"reservation":"` + big + `"`},
		{"a card type of 1 MB", `"gpu_type":"` + big + `"`}, {"a dependency on itself and none", `"dependency":{"on":[{"kind":"eats","job":1}]}`},
	} {
		out = append(out, try{"sizes and bytes", c.name, "a submission with it", "refused with a sentence, nothing queued", false, func() error {
			return s.eve.call("POST", "/v1/jobs", body(c.change)).refused()
		}})
	}
	for _, c := range []struct{ name, path, body string }{
		{"a second body", "/v1/jobs", body(`"comment":"a"`) + body(`"comment":"b"`)}, {"garbage behind", "/v1/jobs", body(`"comment":"a"`) + "\x00\x00"}, {"an array", "/v1/jobs", "[]"},
		{"no JSON", "/v1/jobs", "hello"}, {"nothing", "/v1/jobs", ""}, {"deep", "/v1/jobs", strings.Repeat(`{"spec":`, 50000)}, {"17 MB", "/v1/jobs", body(`"comment":"` + strings.Repeat("x", 17<<20) + `"`)},
		{"a key of 1 MB", "/v1/jobs", strings.Replace(body(`"comment":"a"`), `"key":"z"`, `"key":"`+big+`"`, 1)}, {"70,000 references", "/v1/cancel", `{"refs":["` + strings.Repeat(`1","`, 70000) + `1"]}`},
		{"a range of a billion", "/v1/cancel", `{"refs":["1-1000000000"]}`}, {"a reference with an escape code", "/v1/cancel", `{"refs":["\u001b[2J"]}`}, {"cancel of everybody", "/v1/cancel", `{}`},
		{"an array of 20,000", "/v1/jobs", body(`"comment":"a"`)[:len(body(`"comment":"a"`))-1] + `,"array":{"indices":[` + strings.Repeat("1,", 20000) + `2]}}`},
		{"an array of equal indices", "/v1/jobs", body(`"comment":"a"`)[:len(body(`"comment":"a"`))-1] + `,"array":{"indices":[1,1]}}`},
		{"an array with -1", "/v1/jobs", body(`"comment":"a"`)[:len(body(`"comment":"a"`))-1] + `,"array":{"indices":[-1]}}`},
		{"a signal that is none", "/v1/cancel", `{"users":["games"],"signal":"NUKE"}`}, {"a state that is none", "/v1/query", `{"states":["EATEN"]}`},
	} {
		out = append(out, try{"sizes and bytes", "body: " + c.name, "POST " + c.path + " with it", "refused with a sentence", false, func() error {
			a := s.eve.call("POST", c.path, c.body)
			if c.path != "/v1/jobs" && (s.refusesInPart(a) || c.path == "/v1/query" && a.code == 200 && !strings.Contains(a.body, `"ada"`)) {
				return nil
			}
			return a.refused()
		}})
	}
	for _, path := range []string{"/v1/jobs/0", "/v1/jobs/-1", "/v1/jobs/9223372036854775808", "/v1/jobs/..%2f..%2fetc", "/v1/jobs/%00", "/v1/log?job=1&rank=99999999999999999999", "/v1/log?job=1&tail=-1",
		"/v1/events?since=x", "/v1/events?limit=0", "/v1/jobs/1/steps/-1/attach", "/../../etc/passwd", "/v1/nodes/%2e%2e"} {
		out = append(out, try{"sizes and bytes", "path: " + path, "GET it", "refused with a sentence", false, func() error {
			a := s.eve.call("GET", path, nil)
			if a.code/100 == 3 || a.code == 405 || a.code == 404 {
				return a.err
			}
			return a.refused()
		}})
	}
	return out
}

// connections that nobody means: while they are held a submission of ada's is answered.
func connections(s *site) (out []try) {
	raw := func() (net.Conn, error) { return net.Dial("tcp", s.address) }
	anonymous := func() (net.Conn, error) {
		return tlsDial(s.address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	}
	eve := func() (net.Conn, error) { return s.eve.dial(s.socket()) }
	held := func(n int, dial func() (net.Conn, error), say string) func() error {
		return func() error {
			var all []net.Conn
			defer func() {
				for _, c := range all {
					_ = c.Close()
				}
			}()
			for range n {
				c, err := dial()
				if err != nil {
					continue // refused, which is right
				}
				all = append(all, c)
				_ = c.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(c, say)
			}
			var r api.SubmitReply
			began := time.Now()
			if err := s.ada.ask(map[string]any{"hold": true}).decode(&r); err != nil {
				return fmt.Errorf("ada's submission beside %d connections: %w", len(all), err)
			}
			if took := time.Since(began); took > 5*time.Second {
				return fmt.Errorf("ada's submission took %s beside %d connections", took, len(all))
			}
			return s.ada.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(r.JobID)}}).err
		}
	}
	for _, c := range []struct {
		name string
		dial func() (net.Conn, error)
		say  string
	}{
		{"TCP that says nothing", raw, ""}, {"TCP that says half a greeting", raw, "\x16\x03\x01\x02\x00\x01"}, {"TCP with plain HTTP", raw, "GET / HTTP/1.1\r\n"},
		{"anonymous TLS that says nothing", anonymous, ""}, {"anonymous TLS with half a header", anonymous, "GET /v1/ping HTTP/1.1\r\nHost: g\r\nX: "},
		{"anonymous TLS with half a body", anonymous, "POST /v1/join HTTP/1.1\r\nHost: g\r\nContent-Length: 60000\r\n\r\n{"},
		{"anonymous TLS, kept alive", anonymous, "GET /v1/ping HTTP/1.1\r\nHost: g\r\n\r\n"},
		{"eve, who says nothing", eve, ""}, {"eve, with half a header", eve, "GET /v1/ping HTTP/1.1\r\nX: "}, {"eve, with half a body", eve, "POST /v1/jobs HTTP/1.1\r\nHost: g\r\nContent-Length: 60000\r\n\r\n{"},
		{"eve, kept alive", eve, "GET /v1/ping HTTP/1.1\r\nHost: g\r\n\r\n"}, {"eve, who follows and does not read", eve, "GET /v1/events?follow=1&since=0 HTTP/1.1\r\nHost: g\r\n\r\n"},
		{"eve, who lists and does not read", eve, "POST /v1/query HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}"},
		{"eve, who waits", eve, fmt.Sprintf("GET /v1/jobs/%d/wait HTTP/1.1\r\nHost: g\r\n\r\n", s.running)},
	} {
		n := descriptors + 200
		out = append(out, try{"connections", c.name, fmt.Sprintf("%d of them at once; gangd may open %d files", n, descriptors), "a submission of ada's is answered in 5 s, the nodes stay", true, held(n, c.dial, c.say)},
			try{"connections", c.name + ", 40", "40 of them at once", "the same", false, held(40, c.dial, c.say)})
	}
	out = append(out, try{"connections", "calls without a pause", "6,000 of eve's on one connection", "each is taken or refused; a submission of ada's is answered in 5 s", true, func() error {
		return held(1, eve, strings.Repeat("GET /readyz HTTP/1.1\r\nHost: g\r\n\r\n", 6000))()
	}})
	for _, text := range []string{"GET / HTTP/9.9\r\n\r\n", "\x00\x00\x00\x00", "POST /v1/jobs HTTP/1.1\r\nHost: g\r\nContent-Length: -1\r\n\r\n",
		"POST /v1/jobs HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET /v1/ping HTTP/1.1\r\nHost: g\r\n" + strings.Repeat("X: y\r\n", 300000) + "\r\n",
		"GET " + strings.Repeat("/", 2<<20) + " HTTP/1.1\r\nHost: g\r\n\r\n", "POST /v1/jobs HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"} {
		out = append(out, try{"connections", fmt.Sprintf("raw %.24q, %d bytes", text, len(text)), "as eve, on the socket", "refused or cut, never taken", len(text) < 100 && text[0] != 'G', func() error {
			c, err := eve()
			if err != nil {
				return err
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.WriteString(c, text)
			b := make([]byte, 64)
			n, _ := io.ReadFull(c, b)
			if bytes.Contains(b[:n], []byte(" 200 ")) {
				return fmt.Errorf("answered %q", b[:n])
			}
			return nil
		}})
	}
	return out
}

func (s *site) csr() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return der
}

// impersonates serves with n3's certificate where a node dials its controller.
func (s *site) impersonates() error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.tls, "node.pem"), filepath.Join(s.tls, "node.pem"))
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	conf, err := auth.NodeTLS(filepath.Join(s.dir, "n2", "tls"))
	if err != nil {
		return err
	}
	c, err := tlsDial(l.Addr().String(), conf)
	if err == nil {
		_ = c.Close()
		return errors.New("n2 believed that it is the controller")
	}
	return nil
}

// submissionKeys: a key is its user's.
func submissionKeys(s *site) (out []try) {
	id := func(a answer) (int64, error) {
		var r api.SubmitReply
		err := a.decode(&r)
		return r.JobID, err
	}
	ask := func(p *person, key string, change map[string]any) answer {
		return p.call("POST", "/v1/jobs", map[string]any{"key": key, "spec": p.spec(change)})
	}
	hold := map[string]any{"hold": true}
	add := func(name, what, expect string, do func() error) {
		out = append(out, try{"keys of submissions", name, what, expect, false, do})
	}
	add("ada's key", "eve submits with a key that ada has used", "a job of her own", func() error {
		a, err1 := id(ask(s.ada, "shared", hold))
		e, err2 := id(ask(s.eve, "shared", hold))
		if err := errors.Join(err1, err2); err != nil || a == e || s.job(e).User != s.eve.name {
			return fmt.Errorf("ada's is %d, eve's %d: %w", a, e, err)
		}
		return nil
	})
	add("before ada", "eve uses a key first, then ada the same", "ada gets a job of her own", func() error {
		e, err1 := id(ask(s.eve, "guessed", hold))
		a, err2 := id(ask(s.ada, "guessed", hold))
		if err := errors.Join(err1, err2); err != nil || a == e || s.job(a).User != s.ada.name {
			return fmt.Errorf("ada's is %d, eve's %d: %w", a, e, err)
		}
		return nil
	})
	add("a retry", "the same key twice", "the same job", func() error {
		a, err1 := id(ask(s.eve, "retry", hold))
		b, err2 := id(ask(s.eve, "retry", hold))
		if err := errors.Join(err1, err2); err != nil || a != b {
			return fmt.Errorf("%d and %d: %w", a, b, err)
		}
		return nil
	})
	add("no key", "ada, then eve, with an empty key", "refused, or a job each", func() error {
		a, e := ask(s.ada, "", hold), ask(s.eve, "", hold)
		if a.refused() == nil && e.refused() == nil {
			return nil
		}
		n, err1 := id(a)
		m, err2 := id(e)
		if err := errors.Join(err1, err2); err != nil || n == m {
			return fmt.Errorf("%d and %d: %w", n, m, err)
		}
		return nil
	})
	add("a key of 257 bytes", "one byte more than there may be", "refused with a sentence", func() error { return ask(s.eve, strings.Repeat("k", 257), hold).refused() })
	add("a key with an escape code", "a terminal's", "refused with a sentence", func() error { return ask(s.eve, "\x1b[2J", hold).refused() })
	add("ada's key for a rerun", "eve runs a job of her own again with ada's key", "no job of ada's is named", func() error {
		own, err := id(ask(s.eve, "own", hold))
		if err != nil {
			return err
		}
		n, err := id(s.eve.call("POST", "/v1/rerun", map[string]any{"key": "shared", "ref": fmt.Sprint(own)}))
		if err == nil && s.job(n).User != s.eve.name {
			err = fmt.Errorf("job %d is %s's", n, s.job(n).User)
		}
		return err
	})
	add("64 at once", "the same key on 64 connections", "one job", func() error {
		got := make(chan int64, 64)
		for range 64 {
			go func() { n, _ := id(ask(s.eve, "crowd", hold)); got <- n }()
		}
		seen := map[int64]bool{}
		for range 64 {
			seen[<-got] = true
		}
		delete(seen, 0) // refused: too many at once
		if len(seen) != 1 {
			return fmt.Errorf("jobs %v", seen)
		}
		return nil
	})
	return out
}
