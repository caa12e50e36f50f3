package attack

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// bounds: what costs others time or memory by its size is refused by name, in every call that takes it.
func bounds(s *site) (out []try) {
	names := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("u%07d", i)
		}
		return all
	}
	for _, call := range []string{"query", "cancel", "hold", "release", "requeue", "update", "history"} {
		for _, field := range []string{"users", "names", "accounts", "partitions", "nodes", "states"} {
			if call == "history" && field != "users" {
				continue
			}
			for _, n := range []int{1001, 65000} {
				body := map[string]any{field: names(n)}
				switch call {
				case "query":
					body["all"] = true
				case "update":
					body["comment"] = "x"
				}
				out = append(out, try{"bounds", fmt.Sprintf("%s by %d %s", call, n, field), "each other jobs are held against", "refused by name", false, func() error {
					a := s.eve.call("POST", "/v1/"+call, body)
					if err := a.refused(); err != nil {
						return err
					}
					if !strings.Contains(a.body, field) {
						return fmt.Errorf("the field is not named: %.200s", a.body)
					}
					return nil
				}})
			}
		}
	}
	long := func(text string, n int) string {
		return strings.TrimSuffix(strings.Repeat(text, n), text[len(text)-1:])
	}
	box := func(more map[string]any) map[string]any {
		c := map[string]any{"image": s.eve.home}
		for k, v := range more {
			c[k] = v
		}
		return map[string]any{"container": c, "hold": true}
	}
	var mounts []map[string]any
	for i := range 257 {
		mounts = append(mounts, map[string]any{"source": "/tmp", "target": fmt.Sprintf("/m%d", i)})
	}
	for name, change := range map[string]map[string]any{
		"60,000 names of variables of a container": box(map[string]any{"env": names(60000)}), "513 names of variables of a container": box(map[string]any{"env": names(513)}),
		"a name of 256 bytes of a container's variable": box(map[string]any{"env": []string{strings.Repeat("x", 256)}}), "257 mounts of a container": box(map[string]any{"mounts": mounts}),
		"257 features in a constraint": {"constraint": long("a|", 257)}, "257 features that are preferred": {"prefer": long("a|", 257)}, "65 types of cards": {"gpus_per_rank": 1, "gpu_type": long("a|", 65)},
		"33 causes to be requeued by": {"requeue_causes": names(33)},
	} {
		out = append(out, try{"bounds", name, "a job of eve's", "refused", false, func() error { return s.eve.ask(change).refused() }})
	}
	on := make([]map[string]any, 1000)
	for i := range on {
		on[i] = map[string]any{"kind": "afterany", "job": s.held, "index": i}
	}
	indices := make([]int, 4000)
	for i := range indices {
		indices[i] = i
	}
	out = append(out, try{"bounds", "1,000 conditions of each of 4,000 elements", "an array of eve's", "refused", false, func() error {
		return s.eve.call("POST", "/v1/jobs", map[string]any{"key": "conditions", "spec": s.eve.spec(map[string]any{"dependency": map[string]any{"on": on}}), "array": map[string]any{"indices": indices}}).refused()
	}})
	out = append(out, try{"bounds", "options count", "jobs of eve's with 2 MiB of mounts each, where a user may have 8 MiB", "the fifth at the latest is refused", false, func() error {
		var big []map[string]any
		for i := range 250 {
			big = append(big, map[string]any{"source": "/tmp", "target": fmt.Sprintf("/%d/%s", i, strings.Repeat("m/", 2000)), "read_only": true}, map[string]any{"source": "/" + strings.Repeat("s/", 2000), "target": "/t"})
		}
		defer s.eve.call("POST", "/v1/cancel", map[string]any{"names": []string{"big"}})
		for i := range 12 {
			change := box(map[string]any{"mounts": big[:250]})
			change["name"], change["comment"] = "big", fmt.Sprint(i)
			a := s.eve.ask(change)
			if a.code == http.StatusTooManyRequests || a.code/100 == 4 && i > 0 {
				return nil
			}
			if a.code != http.StatusOK {
				return fmt.Errorf("job %d: %d %.200s", i, a.code, a.body)
			}
		}
		return fmt.Errorf("12 of them were taken")
	}})
	out = append(out, try{"bounds", "one partition 800 times", "as the partitions of a job of eve's", "it is one partition", false, func() error {
		var r api.SubmitReply
		parts := s.root.call("GET", "/v1/nodes", nil)
		var nodes api.NodesReply
		if err := parts.decode(&nodes); err != nil {
			return err
		}
		name := nodes.Partitions[0].Name
		if err := s.eve.ask(map[string]any{"hold": true, "partition": long(name+",", 800)}).decode(&r); err != nil {
			return err
		}
		defer s.eve.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(r.JobID)}})
		if got := s.job(r.JobID).Partition; got != name {
			return fmt.Errorf("the job is of %.100s", got)
		}
		return nil
	}})
	return out
}

// doors: the page and the figures are there for whoever comes, whoever else waits at their addresses.
func doors(s *site) (out []try) {
	for _, d := range []struct{ name, address, path string }{{"page", s.page, "/"}, {"metrics", s.figures, "/metrics"}} {
		for _, c := range []struct{ name, say string }{{"silent", ""}, {"half a header", "GET / HTTP/1.1\r\nX: "}, {"kept alive", "GET /whoami HTTP/1.1\r\nHost: localhost\r\n\r\n"}} {
			n := 1500
			out = append(out, try{"doors", d.name + ", " + c.name, fmt.Sprintf("%d connections of strangers", n), "the next who comes is answered, and so is a submission", true, func() error {
				var all []net.Conn
				defer func() {
					for _, c := range all {
						_ = c.Close()
					}
				}()
				for range n {
					conn, err := net.DialTimeout("tcp", d.address, time.Second)
					if err != nil {
						continue
					}
					all = append(all, conn)
					_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
					_, _ = io.WriteString(conn, c.say)
				}
				client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
				r, err := client.Get("http://" + d.address + d.path)
				if err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				if r.StatusCode != http.StatusOK {
					return fmt.Errorf("the next is answered %s", r.Status)
				}
				var made api.SubmitReply
				if err := s.ada.ask(map[string]any{"hold": true}).decode(&made); err != nil {
					return fmt.Errorf("a submission of ada's: %w", err)
				}
				return s.ada.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(made.JobID)}}).err
			}})
		}
	}
	out = append(out, try{"doors", "guests who follow", "as many streams of /v1/live as a stranger gets, all of one address", "a guest of another address gets one", false, func() error {
		var open []*http.Response
		defer func() {
			for _, r := range open {
				_ = r.Body.Close()
			}
		}()
		live := func(from string) (int, error) {
			dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: trial.Patience}
			client := &http.Client{Transport: &http.Transport{DialContext: dial.DialContext}}
			r, err := client.Get("http://" + s.page + "/v1/live")
			if err != nil {
				return 0, err
			}
			open = append(open, r)
			return r.StatusCode, nil
		}
		for i := 0; ; i++ {
			code, err := live("127.0.0.1")
			if err != nil || code == http.StatusTooManyRequests || i == 300 {
				break
			}
		}
		code, err := live("127.0.0.2")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("answered %d", code)
		}
		return err
	}})
	return out
}

// printed: what eve writes of her job is shown to an admin, and obeyed by no terminal.
func printed(s *site) (out []try) {
	const evil = "\x1b]0;pwn\a\x1b[2J\nJobState=FAKE\r\u202egnp"
	s.must("gangd", "slurm-links", filepath.Join(s.dir, "slurm"))
	job := map[string]any{"hold": true, "comment": evil, "work_dir": s.eve.home + "/" + evil, "output": "/tmp/" + evil, "script_name": evil, "name": "a\u202eb"}
	for _, line := range []string{"scontrol show job %d", "scontrol -o show job %d", "sacct -j %d -o jobid,jobname,comment,workdir", "sacct -P -j %d -o all", "squeue -j %d -o %%all", "squeue -j %d",
		"gqueue -j %d", "gqueue -l -j %d", "gctl show job %d", "gctl events %d", "gacct -j %d"} {
		out = append(out, try{"printed", strings.ReplaceAll(line, "%d", "ID"), "of a job of eve's whose comment, paths and name are codes of a terminal, by root", "nothing that a terminal obeys, no line that is forged", false, func() error {
			text, code := s.root.shell(fmt.Sprintf(line, s.eve.submit(job)))
			if code != 0 || text == "" {
				return fmt.Errorf("status %d: %s", code, text)
			}
			for l := range strings.Lines(text) {
				if strings.HasPrefix(strings.TrimSpace(l), "JobState=FAKE") {
					return fmt.Errorf("forged: %q", l)
				}
				if bytes.ContainsFunc([]byte(strings.TrimSuffix(l, "\n")), func(r rune) bool { return unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) }) {
					return fmt.Errorf("%q", l)
				}
			}
			return nil
		}})
	}
	return out
}
