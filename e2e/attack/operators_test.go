package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// second: a daemon that somebody starts by hand beside the one that runs.
func second(s *site) (out []try) {
	conf := func(name string, change ...string) string {
		text, err := os.ReadFile(filepath.Join(s.dir, name+".toml"))
		if err != nil {
			s.t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			key, _, _ := strings.Cut(line, " =")
			keep := true
			for _, c := range change {
				k, _, _ := strings.Cut(c, " =")
				keep = keep && k != key
			}
			if keep {
				lines = append(lines, strings.TrimSuffix(line, "\n"))
			}
		}
		return s.write("second-"+fmt.Sprint(len(change))+"-"+name+".toml", append(change, lines...)...)
	}
	other := filepath.Join(s.dir, "other-state")
	for i, x := range []struct {
		name string
		args []string
		ask  string // the socket that has to answer afterwards
	}{
		{"gnoded with the same configuration", []string{"gnoded", "--config", conf("n1")}, s.dir + "/n1.sock"},
		{"gnoded with another state", []string{"gnoded", "--config", conf("n1", fmt.Sprintf("state_dir = %q", other))}, s.dir + "/n1.sock"},
		{"gnoded of the other node, with this one's socket", []string{"gnoded", "--config", conf("n2", fmt.Sprintf("socket = %q", s.dir+"/n1.sock"))}, s.dir + "/n1.sock"},
		{"gnoded of a third node, with gangd's socket", []string{"gnoded", "--config", conf("n3", fmt.Sprintf("socket = %q", s.socket()))}, s.socket()},
		{"a relay of a login host, with this node's socket", []string{"gnoded", "--login", "--config", conf("n3", fmt.Sprintf("socket = %q", s.dir+"/n1.sock"))}, s.dir + "/n1.sock"},
		{"gangd with the same configuration", []string{"gangd", "--config", conf("gangd")}, s.socket()},
		{"gangd with another state", []string{"gangd", "--config", conf("gangd", fmt.Sprintf("state_dir = %q", other+"2"))}, s.socket()},
		{"gangd with another state and other addresses", []string{"gangd", "--config", conf("gangd", fmt.Sprintf("state_dir = %q", other+"3"), fmt.Sprintf("listen = %q", trial.FreeAddress(s.t)),
			fmt.Sprintf("web_listen = %q", trial.FreeAddress(s.t)), fmt.Sprintf("metrics_listen = %q", trial.FreeAddress(s.t)))}, s.socket()},
	} {
		for n := range 5 {
			out = append(out, try{"daemons by hand", fmt.Sprintf("%s, %d", x.name, n+1), "by root, beside the one that runs", "it ends at once and says why, and the socket is whose it was", n > 0 || i%3 > 0, func() error {
				before, err := os.Stat(x.ask)
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(context.Background(), trial.Patience)
				defer cancel()
				cmd := exec.CommandContext(ctx, filepath.Join(s.bin, x.args[0]), x.args[1:]...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
				began := time.Now()
				said, err := cmd.CombinedOutput()
				if err == nil || ctx.Err() != nil || len(said) == 0 {
					return fmt.Errorf("it came up: %v %s", err, said)
				}
				if took := time.Since(began); took > 5*time.Second {
					return fmt.Errorf("it ended after %s: %s", took, said)
				}
				after, err := os.Stat(x.ask)
				if err != nil || !os.SameFile(before, after) {
					return fmt.Errorf("another socket is there: %v; %s", err, said)
				}
				if a := s.root.socketOf(x.ask).call("GET", "/v1/ping", nil); a.code != http.StatusOK && a.code != http.StatusForbidden {
					return fmt.Errorf("it answers %d %.100s %v; %s", a.code, a.body, a.err, said)
				}
				return nil
			}})
		}
	}
	return out
}

// page: what the page's answers leave behind, and what its links and cookies are good for.
func page(s *site) (out []try) {
	link := func(p *person) (string, error) {
		text, code := p.shell("gctl web")
		_, rest, ok := strings.Cut(strings.TrimSpace(text), "/login?")
		if code != 0 || !ok {
			return "", fmt.Errorf("gctl web: %d %s", code, text)
		}
		return "/login?" + strings.Fields(rest)[0], nil
	}
	browser := func() *http.Client {
		jar, _ := cookiejar.New(nil)
		return &http.Client{Jar: jar, Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	ask := func(c *http.Client, method, path string, header ...string) (*http.Response, string, error) {
		req, err := http.NewRequest(method, "http://"+s.page+path, nil)
		if err != nil {
			return nil, "", err
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		r, err := c.Do(req)
		if err != nil {
			return nil, "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		return r, string(b), err
	}
	login := func(p *person) (*http.Client, error) {
		at, err := link(p)
		if err != nil {
			return nil, err
		}
		c := browser()
		if _, _, err := ask(c, "GET", at); err != nil {
			return nil, err
		}
		if r, text, err := ask(c, "GET", "/whoami"); err != nil || r.StatusCode != 200 || !strings.Contains(text, p.name) {
			return nil, fmt.Errorf("logged in as %s: %s %v", p.name, text, err)
		}
		return c, nil
	}
	calls := []string{"/v1/nodes", "/v1/ping", "/v1/reservations", "/v1/outbox", "/v1/crontab", "/v1/ledger", "/v1/events?limit=1", "/v1/controllers", fmt.Sprintf("/v1/jobs/%d", s.running), fmt.Sprintf("/v1/jobs/%d/why", s.held),
		fmt.Sprintf("/v1/jobs/%d/script", s.held), fmt.Sprintf("/v1/jobs/%d/steps", s.running), "/v1/jobs/99999999", "/v1/nothing", "/whoami", "/metrics", "/readyz", "/v1/verify", "/login?link=none", "/"}
	for _, path := range calls {
		for _, who := range []string{"ada", "a guest"} {
			out = append(out, try{"page", path + " to " + who, "an answer of the page's", "no cache keeps it", path != "/v1/nodes", func() (err error) {
				c := browser()
				if who == "ada" {
					if c, err = login(s.ada); err != nil {
						return err
					}
				}
				r, _, err := ask(c, "GET", path)
				if err != nil {
					return err
				}
				if got := r.Header.Get("Cache-Control"); !strings.Contains(got, "no-store") && !strings.Contains(got, "no-cache") {
					return fmt.Errorf("%s, Cache-Control %q", r.Status, got)
				}
				return nil
			}})
		}
		out = append(out, try{"page", path + " after the end of a session", "with the cookie of a session that ada has ended", "it is nobody's", true, func() error {
			c, err := login(s.ada)
			if err != nil {
				return err
			}
			_, who, err := ask(c, "GET", "/whoami")
			if err != nil {
				return err
			}
			var me struct {
				CSRF string `json:"csrf"`
			}
			if err := json.Unmarshal([]byte(who), &me); err != nil || me.CSRF == "" {
				return fmt.Errorf("%s: %w", who, err)
			}
			site := "http://" + s.page
			var cookies []string
			req, _ := http.NewRequest("GET", site, nil)
			for _, k := range c.Jar.Cookies(req.URL) {
				cookies = append(cookies, k.Name+"="+k.Value)
			}
			if r, text, err := ask(c, "POST", "/logout", "Origin", site, "Gang-CSRF", me.CSRF); err != nil || r.StatusCode/100 > 3 {
				return fmt.Errorf("logout: %v %s %v", r, text, err)
			}
			_, text, err := ask(browser(), "GET", "/whoami", "Cookie", strings.Join(cookies, "; "))
			if err != nil || strings.Contains(text, `"`+s.ada.name+`"`) {
				return fmt.Errorf("the cookie is still hers: %s %v", text, err)
			}
			r, text, err := ask(browser(), "GET", path, "Cookie", strings.Join(cookies, "; "))
			if err != nil || r.StatusCode == 200 && strings.Contains(text, secret) {
				return fmt.Errorf("%.200s %v", text, err)
			}
			return nil
		}})
	}
	for _, method := range []string{"HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"} {
		out = append(out, try{"page", "a link by " + method, "a link of ada's, looked at by a program before she opens it", "it is still good", method != "HEAD", func() error {
			at, err := link(s.ada)
			if err != nil {
				return err
			}
			if _, _, err := ask(browser(), method, at); err != nil {
				return err
			}
			c := browser()
			if _, _, err := ask(c, "GET", at); err != nil {
				return err
			}
			if _, text, err := ask(c, "GET", "/whoami"); err != nil || !strings.Contains(text, s.ada.name) {
				return fmt.Errorf("it is used up: %s %v", text, err)
			}
			again := browser()
			if _, _, err := ask(again, "GET", at); err != nil {
				return err
			}
			if _, text, _ := ask(again, "GET", "/whoami"); strings.Contains(text, `"`+s.ada.name+`"`) {
				return fmt.Errorf("it is good twice: %s", text)
			}
			return nil
		}})
	}
	return out
}

// outputs: what a job has written where no file is.
func outputs(s *site) (out []try) {
	fifo := s.eve.mine("log-fifo", func(p string) error { return unix.Mkfifo(p, 0o600) })
	sock := filepath.Join(s.eve.home, "log-sock")
	var l net.Listener
	s.eve.do(func() { l, _ = net.Listen("unix", sock) })
	if l != nil {
		s.t.Cleanup(func() { _ = l.Close() })
	}
	for i, path := range []string{"/dev/null", "/dev/full", "/dev/zero", "/dev/tty", fifo, sock, s.eve.home, "/proc/self/mem", "/proc/self/fd/1", "/etc/passwd", s.ada.home + "/secret", "/nonexistent/x", s.eve.home + "/gone", "/dev/stdout", "/proc/1/environ", "/sys/kernel/mm"} {
		for _, field := range []string{"output", "error"} {
			for _, how := range []string{"", "&tail=100", "&stderr=1", "&rank=0&positions=1", "&attempt=1", "&follow=1"} {
				out = append(out, try{"logs", fmt.Sprintf("%s of %s%s", field, path, how), "the output of a job of eve's that is no file", "an answer that is no error of ours, and nothing of others", i > 0 || how != "", func() error {
					id := s.eve.submit(map[string]any{field: path, "time_limit_ns": 2 * time.Second, "script": []byte("#!/bin/sh\nrm -f " + s.eve.home + "/gone\necho x\n")})
					if _, err := s.ended(id); err != nil {
						return err
					}
					a := s.eve.call("GET", fmt.Sprintf("/v1/log?job=%d%s", id, how), nil)
					if a.err != nil || a.code >= 500 && a.code != http.StatusServiceUnavailable || strings.Contains(a.body, secret) || strings.Contains(a.body, "root:x:") && path != "/etc/passwd" {
						return fmt.Errorf("%d %.200s %v", a.code, a.body, a.err)
					}
					return nil
				}})
			}
		}
	}
	return out
}

// texts: what is no text, in each field that is one.
func texts(s *site) (out []try) {
	bad := map[string]string{"a byte that is none of UTF-8": "c\xe9", "a surrogate": `\ud800`, "a zero byte": `a\u0000b`}
	shapes := map[string]string{}
	for _, field := range []string{"name", "comment", "output", "error", "input", "work_dir", "script_name", "account", "partition", "constraint", "prefer", "reservation", "stop_signal", "submit_host", "gpu_type", "open_mode"} {
		shapes["a submission's "+field] = `POST /v1/jobs {"key":"KEY","spec":{"name":"x","size":1,"launch":"ranks","cpus_per_rank":1,"work_dir":"/tmp","output":"/dev/null","hold":true,"script":"IyEvYmluL3NoCg==","` + field + `":"BAD"}}`
	}
	for _, field := range []string{"name", "comment", "account", "partition", "constraint", "output", "work_dir", "reservation"} {
		shapes["an update's "+field] = `POST /v1/update {"refs":["JOB"],"` + field + `":"BAD"}`
	}
	for _, call := range []string{"query", "cancel", "hold", "release", "requeue"} {
		for _, field := range []string{"users", "names", "accounts", "partitions", "nodes", "states"} {
			shapes[call+" by "+field] = `POST /v1/` + call + ` {"` + field + `":["BAD"]}`
		}
	}
	for _, what := range slices.Sorted(maps.Keys(bad)) {
		text := bad[what]
		for i, name := range slices.Sorted(maps.Keys(shapes)) {
			shape := shapes[name]
			out = append(out, try{"texts", name + ": " + what, "by eve", "refused, or kept as text that is one", i%9 > 0, func() error {
				var r api.SubmitReply
				if err := s.eve.ask(map[string]any{"hold": true, "name": "text"}).decode(&r); err != nil {
					return err
				}
				defer s.eve.call("POST", "/v1/cancel", map[string]any{"users": []string{s.eve.name}, "now": true})
				keys++
				line := strings.NewReplacer("KEY", fmt.Sprintf("k%d", keys), "JOB", fmt.Sprint(r.JobID), "BAD", text).Replace(shape)
				parts := strings.SplitN(line, " ", 3)
				a := s.eve.call(parts[0], parts[1], parts[2])
				if a.err != nil || a.code >= 500 {
					return fmt.Errorf("%d %.200s %v", a.code, a.body, a.err)
				}
				refs := []string{fmt.Sprint(r.JobID)}
				var made api.SubmitReply
				if parts[1] == "/v1/jobs" && a.decode(&made) == nil {
					refs = append(refs, fmt.Sprint(made.JobID))
				}
				list := s.root.call("POST", "/v1/query", map[string]any{"refs": refs, "all": true})
				if list.code != http.StatusOK {
					return fmt.Errorf("jobs %v: %d %.200s %v", refs, list.code, list.body, list.err)
				}
				if strings.Contains(list.body, "\ufffd") || strings.Contains(list.body, "\xe9") || strings.Contains(list.body, `\ufffd`) || strings.Contains(list.body, `\u0000`) {
					return fmt.Errorf("it is answered %d, and shown as something else: %.300s", a.code, list.body)
				}
				return nil
			}})
		}
	}
	return out
}
