package attack

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// calls are all that docs/openapi.yaml offers, with what is sent to do it to the job of somebody
// else. A rpc test holds that page to the routes, so that none is left out here.
func (s *site) calls() []struct {
	method, path string
	body         any
} {
	s.t.Helper()
	b, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		s.t.Fatal(err)
	}
	refs := map[string]any{"refs": []string{fmt.Sprint(s.running), fmt.Sprint(s.held)}}
	with := func(more map[string]any) map[string]any {
		for k, v := range refs {
			more[k] = v
		}
		return more
	}
	bodies := map[string]any{
		"/v1/cancel": with(map[string]any{"now": true}), "/v1/hold": refs, "/v1/release": refs, "/v1/requeue": with(map[string]any{"now": true}),
		"/v1/update":             with(map[string]any{"name": "eve's", "priority": 7, "comment": "eve's", "time_limit_ns": 1}),
		"/v1/rerun":              map[string]any{"key": "again", "ref": fmt.Sprint(s.running)},
		"/v1/crontab":            map[string]any{"user": s.ada.name, "text": "#\n"},
		"/v1/history":            map[string]any{"users": []string{s.ada.name}},
		"/v1/jobs/{ref}/steps":   map[string]any{"key": "s", "ask": map[string]any{"tasks": 1}, "hosts": []string{"127.0.0.1:1"}, "fingerprint": strings.Repeat("0", 64)},
		"/v1/nodes/{name}/drain": map[string]any{"reason": "eve"}, "/v1/nodes/{name}/cards/{card}/drain": map[string]any{"reason": "eve"},
		"/v1/reservations": map[string]any{"name": "eve", "duration_ns": 1e12, "nodes": []string{"n1"}, "users": []string{s.eve.name}},
		"/v1/backup":       map[string]any{"path": filepath.Join(s.eve.home, "backup")},
		"/v1/tokens":       map[string]any{"node": "n9"}, "/v1/revoke": map[string]any{"node": "n1"},
		"/v1/join": map[string]any{"token": "x", "name": "n1", "csr": []byte("x")}, "/v1/renew": map[string]any{"name": "n1", "csr": []byte("x")},
	}
	paths := make([]string, 0, len(doc.Paths))
	for p := range doc.Paths {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var out []struct {
		method, path string
		body         any
	}
	for _, p := range paths {
		path := strings.NewReplacer("{ref}", fmt.Sprint(s.running), "{step}", "0", "{name}", "n1", "{card}", "0").Replace(p)
		if p == "/v1/crontab" {
			path += "?user=" + s.ada.name
		}
		if p == "/v1/log" || p == "/v1/events" {
			path += fmt.Sprintf("?job=%d", s.running)
		}
		for m := range doc.Paths[p] {
			out = append(out, struct {
				method, path string
				body         any
			}{strings.ToUpper(m), path, bodies[p]})
		}
	}
	return out
}

// open is what every user of the cluster may ask, of everybody's jobs: the queue is open, what is
// in a job is not.
func open(method, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	if method == "GET" {
		switch path {
		case "/v1/nodes", "/v1/ping", "/v1/events", "/v1/reservations", "/v1/live", "/v1/ledger", "/v1/day", "/v1/limits", "/v1/outbox", "/metrics", "/readyz":
			return true
		}
		return strings.HasPrefix(path, "/v1/jobs/") && !strings.HasSuffix(path, "/script") && !strings.HasSuffix(path, "/attach")
	}
	return path == "/v1/query" || path == "/v1/history"
}

// othersJobs: every call there is, about ada's jobs and the site, in every way that eve has.
func othersJobs(s *site) (out []try) {
	forged := s.eve.socketOf(s.socket())
	forged.header = http.Header{"Gang-User": {fmt.Sprintf("%d %s", s.ada.uid, s.ada.name)}}
	ways := []struct {
		name, as string
		way      *way
		user     bool // of the cluster
	}{
		{"socket", "as eve", s.eve.socketOf(s.socket()), true},
		{"forged header", "as eve, who says that she is ada", forged, true},
		{"relay of n1", "as eve through a node on which she has no job", s.eve.socketOf(filepath.Join(s.dir, "n1.sock")), false},
		{"certificate", "with the stolen certificate", s.certified(s.tls, ""), false},
		{"certificate, as ada", "with the stolen certificate, in the name of ada, who has no job there", s.certified(s.tls, fmt.Sprintf("%d %s", s.ada.uid, s.ada.name)), false},
		{"certificate, as root", "with the stolen certificate, in the name of root", s.certified(s.tls, "0 root"), false},
	}
	for _, w := range ways {
		for _, c := range s.calls() {
			if c.path == "/v1/jobs" || c.path == "/v1/web" {
				continue // submitting is hers, see the headings on sizes and keys; so is a link to the page as herself
			}
			long := w.name != "socket" && w.name != "certificate"
			expect := "refused"
			if w.user && open(c.method, c.path) {
				expect = "answered, without what is in the job"
			}
			out = append(out, try{"others' jobs", w.name + " " + c.method + " " + c.path, w.as, expect, long, func() error {
				a := w.way.call(c.method, c.path, c.body)
				if strings.Contains(a.body, secret) {
					return fmt.Errorf("the secret is in the answer: %.200s", a.body)
				}
				switch {
				case w.user && open(c.method, c.path):
					return a.err
				case w.name == "certificate" && (c.path == "/v1/ping" || c.path == "/readyz"):
					return a.err // a node may ask whether the controller is there
				case w.name == "certificate" && strings.HasPrefix(c.path, "/v1/session"):
					if a.code == 101 || a.code == 200 {
						return fmt.Errorf("answered %d", a.code)
					}
					return a.err // no WebSocket; the heading on claims opens one
				case s.refusesInPart(a):
					return nil
				}
				return a.refused()
			}})
		}
	}
	return out
}

// refusesInPart: calls on several jobs answer 200 with an error for each of them.
func (s *site) refusesInPart(a answer) bool {
	var r struct {
		Results []struct{ Error *struct{ Code string } }
	}
	if a.decode(&r) != nil || len(r.Results) == 0 {
		return false
	}
	for _, x := range r.Results {
		if x.Error == nil || x.Error.Code == "" {
			return false
		}
	}
	return true
}
