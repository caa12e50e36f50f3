package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/controller/store/pgserver"
)

// pair is a site of two controllers over TLS, each with an address, a state directory and a socket of its own: "gangd"
// (a), whose socket is the site's, and "b".
type pair struct {
	*site
	b  string // address
	on *trial.Client
}

// startPair starts the first of two, on a database of the test's own. Where advertised has their names, others reach
// them there.
func startPair(t *testing.T, advertised map[string]string, lines ...string) *pair {
	t.Helper()
	if _, err := pgserver.Find(); err != nil {
		tally.Lack(t, "initdb")
	}
	dir, err := os.MkdirTemp("", "gp")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // as root the database is another user's
		t.Fatal(err)
	}
	server, err := pgserver.Start(context.Background(), pgserver.Options{Dir: filepath.Join(dir, "db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.Stop(syscall.SIGINT), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	same := append([]string{fmt.Sprintf("database = %q", pgserver.URL(server.Dir())), fmt.Sprintf("admins = [%q]", me(t)), `heartbeat = "500ms"`}, lines...)
	of := func(name string) []string {
		own := []string{fmt.Sprintf("name = %q", name)}
		if at := advertised[name]; at != "" {
			own = append(own, fmt.Sprintf("advertise = %q", at))
		}
		return append(own, same...)
	}
	_, port, _ := net.SplitHostPort(trial.FreeAddress(t))
	p := &pair{site: startSite(t, nil, of("a")...), b: net.JoinHostPort("127.0.0.2", port)}
	for _, d := range []struct { // in this order: the socket can be reached below the first
		name string
		mode os.FileMode
	}{{"b", 0o755}, {"b/run", 0o755}, {"b/state", 0o700}} {
		if err := os.Mkdir(filepath.Join(p.dir, d.name), d.mode); err != nil {
			t.Fatal(err)
		}
	}
	p.write("b.toml", append([]string{fmt.Sprintf("state_dir = %q", filepath.Join(p.dir, "b", "state")),
		fmt.Sprintf("socket = %q", filepath.Join(p.dir, "b", "run", "gangd.sock")), fmt.Sprintf("listen = %q", p.b), `start_timeout = "10s"`}, of("b")...)...)
	p.on = &trial.Client{T: t, Bin: p.bin, Dir: filepath.Join(p.dir, "b"), Tmp: p.tmp}
	return p
}

func (p *pair) conf(name string) string { return "--config=" + filepath.Join(p.dir, name+".toml") }

// states are the controllers by name, as `gangd controller list` at b's socket has them.
func (p *pair) states() map[string]api.ControllerState {
	var l api.ControllersReply
	p.on.Decode(&l, "gangd", "controller", "list", "--json")
	out := map[string]api.ControllerState{}
	for _, c := range l.Controllers {
		out[c.Name] = c
	}
	return out
}

func (p *pair) untilState(name, state string) {
	p.t.Helper()
	p.until("controller "+name+" "+state, func() bool { return p.states()[name].State == state })
}

// page is /metrics at a socket.
func (p *pair) page(dir string) string {
	p.t.Helper()
	c := &http.Client{Transport: &http.Transport{DialContext: unixDial(filepath.Join(dir, "run", "gangd.sock")), DisableKeepAlives: true}, Timeout: patience}
	res, err := c.Get("http://gangd/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// keeps says whether a node's list of controllers has one.
func (p *pair) keeps(node, controller string) bool {
	b, _ := os.ReadFile(filepath.Join(p.dir, node, "controllers"))
	return strings.Contains(string(b), fmt.Sprintf("%q", controller))
}

// login makes a login host that names the first controller and learns of the other, and gives somebody there. Without root that is the test's own
// person on b's host: no other can be made.
func (p *pair) login() (who interface {
	submit(args ...string) int64
	must(name string, args ...string) string
	run(name string, args ...string) (stdout, stderr string, code int)
}) {
	p.t.Helper()
	if os.Geteuid() != 0 {
		return &cluster{t: p.t, bin: p.bin, dir: p.on.Dir, tmp: p.tmp}
	}
	dir := filepath.Join(p.dir, "l")
	p.node("login", fmt.Sprintf("socket = %q", filepath.Join(dir, "run", "gangd.sock")), "login = true")
	p.must("gnoded", "join", p.conf("login"), p.line("--login"))
	p.spawn("login", "gnoded", nil, p.conf("login"))
	ada := p.person("nobody").at(dir)
	p.until("the relay answers", func() bool { _, _, code := ada.run("gqueue"); return code == 0 })
	p.until("the relay knows both controllers", func() bool {
		b, _ := os.ReadFile(filepath.Join(p.dir, "login", "relay"))
		return strings.Contains(string(b), p.b)
	})
	return ada
}

// refuses checks that a program fails and says why.
func (p *pair) refuses(want, name string, args ...string) {
	p.t.Helper()
	if _, errs, code := p.run(name, args...); code != api.ExitRefused && code != api.ExitNotFound || !strings.Contains(errs, want) {
		p.t.Errorf("%s %s: exit %d, %q\nwant %s", name, strings.Join(args, " "), code, errs, want)
	}
}

// A second controller joins a running cluster with a line, leads when the first stands still, knows its tokens and gives
// it its revocations, and people on its host and on a login host submit meanwhile; it is removed, refuses to start, and joins again. Nodes learn each list, also one that was away
// meanwhile, and a rank that ran from the beginning notices nothing.
func TestControllersOverTLS(t *testing.T) {
	t.Parallel()
	p := startPair(t, nil)
	for _, n := range []string{"n1", "n2"} {
		p.node(n, `cards = "none"`, "cpus = 4", "min_uid = 0")
	}
	p.must("gnoded", "join", p.conf("n1"), p.line())
	p.up("n1")
	release := filepath.Join(p.tmp, "release")
	job := p.submit("--wrap", "until [ -e "+release+" ]; do sleep 0.1; done")
	p.wait(job, api.JobRunning)

	p.refuses("this host has not joined them", "gangd", p.conf("b"))
	p.refuses("not a join line", "gangd", "controller", "join", p.conf("b"), "x")
	p.refuses("this token is not valid", "gangd", "controller", "join", p.conf("b"), p.line())
	line := strings.TrimSpace(p.must("gangd", "controller", "new"))
	p.refuses("this token is not valid", "gnoded", "join", p.conf("n2"), line)
	p.refuses("there is a controller a already", "gangd", "controller", "join", p.conf("b"), "--set=name=a", line)
	if out := p.must("gangd", "controller", "join", p.conf("b"), line); !strings.HasPrefix(out, "joined as controller b, reached at "+p.b+"\n") {
		t.Errorf("join: %q", out)
	}
	p.refuses("this token is not valid", "gangd", "controller", "join", p.conf("b"), line)
	p.spawn("b", "gangd", nil, p.conf("b"))
	p.until("b answers", func() bool { _, _, code := p.on.Run("gctl", "ping"); return code == 0 })
	p.untilState("b", api.ControllerStandsBy) // so n1 has confirmed the list
	if !p.keeps("n1", "b") {
		t.Error("b may lead, and n1 does not know of it")
	}
	for dir, want := range map[string]string{p.dir: "gang_controller_leads 1", p.on.Dir: "gang_controller_leads 0"} {
		page := p.page(dir)
		if leads := dir == p.dir; !strings.Contains(page, want) || strings.Contains(page, "\ngang_node_up{") != leads || strings.Contains(page, "\ngang_standby_behind_seconds") == leads {
			t.Errorf("/metrics, want %s:\n%s", want, page)
		}
	}
	p.refuses("controller a leads, and can't be taken off the list", "gangd", "controller", "remove", "a")
	p.refuses(`there is no controller "c"; there are: a, b`, "gangd", "controller", "remove", "c")

	// A token of a's, asked for at b's socket, is good at b when a stands still.
	token := strings.TrimSpace(p.on.Must("gangd", "token", "new"))
	ada := p.login()
	pid := p.daemons["gangd"].Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	held := ada.submit("--hold", "--wrap", "true")
	if id := p.on.Submit("--hold", "--wrap", "true"); id != held+1 {
		t.Errorf("jobs %d and %d: one was made twice", held, id)
	}
	ada.must("gqueue")
	if relay := p.daemons["login"]; relay != nil { // stands still too: nobody else listens there, and who calls is told so
		if err := relay.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := ada.run("gqueue", "--timeout=500ms"); code == 0 || !strings.Contains(errs, "gave no answer within 500 ms: it hangs or is overloaded") {
			t.Errorf("a relay that stands still: exit %d, %s", code, errs)
		}
		if err := relay.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		ada.must("gqueue")
	}
	p.untilState("b", api.ControllerLeads)
	if s := p.states()["a"]; s.State != api.ControllerSilent || s.Why == "" {
		t.Errorf("who stands still is listed as %+v", s)
	}
	p.must("gnoded", "join", p.conf("n2"), strings.Replace(token, p.address, p.b, 1))
	_ = syscall.Kill(pid, syscall.SIGCONT)
	_ = p.daemons["gangd"].Wait()
	p.gangd()
	p.untilState("a", api.ControllerStandsBy)
	if s := p.states()["a"]; !slices.Equal(s.Addresses, []string{p.address}) {
		t.Errorf("a is listed as %+v", s)
	}
	p.up("n2")

	// What b revokes counts at a, which leads next.
	p.must("gangd", "token", "revoke", "n2")
	p.kill("n1", syscall.SIGTERM) // it keeps the list that has b
	p.kill("b", syscall.SIGTERM)
	p.on = p.client()
	p.until("a leads", func() bool { return p.states()["a"].State == api.ControllerLeads })
	p.kill("n2", syscall.SIGTERM)
	p.spawn("n2", "gnoded", nil, p.conf("n2"))
	log := filepath.Join(p.dir, "n2.log")
	p.until("n2 is refused by a", func() bool {
		b, _ := os.ReadFile(log)
		i := strings.LastIndex(string(b), "gnoded started")
		return i >= 0 && strings.Contains(string(b[i:]), "bad certificate")
	})
	p.must("gangd", "controller", "remove", "b")
	p.refuses("controller b was taken off the list of controllers", "gangd", p.conf("b"))
	p.spawn("n1", "gnoded", nil, p.conf("n1"))
	p.until("n1 goes by the list without b", func() bool { return !p.keeps("n1", "b") })
	p.must("gangd", "controller", "join", p.conf("b"), strings.TrimSpace(p.must("gangd", "controller", "new")))
	p.spawn("b", "gangd", nil, p.conf("b"))
	p.until("n1 goes by the list with b again", func() bool { return p.keeps("n1", "b") })
	// n2, which does not, may run on without b's word, for all that a knows.
	p.until("b to wait for n2", func() bool {
		s := p.states()["b"]
		return s.State == api.ControllerJoins && s.Why == "waits for n2 to know of it"
	})

	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := p.wait(job, api.JobCompleted); j.Epoch != 1 {
		t.Errorf("the job that ran from the beginning ended in epoch %d", j.Epoch)
	}
}

// A cluster begins with one machine, whose node goes by the controller's socket and has no certificate. When a second
// controller leads, the node follows, and back again: it got itself a certificate before the second could lead.
func TestFirstMachine(t *testing.T) {
	t.Parallel()
	needRoot(t)
	p := startPair(t, nil)
	p.write("n1.toml", `name = "n1"`, fmt.Sprintf("controller = %q", "unix:"+filepath.Join(p.dir, "run", "gangd.sock")), fmt.Sprintf("state_dir = %q", filepath.Join(p.dir, "n1")),
		`address = "127.0.0.1"`, `cards = "none"`, "cpus = 4", "min_uid = 0")
	p.up("n1")
	release := filepath.Join(p.tmp, "release")
	job := p.submit("--wrap", "until [ -e "+release+" ]; do sleep 0.1; done")
	p.wait(job, api.JobRunning)
	certificate := filepath.Join(p.dir, "n1", "tls", "node.pem")
	if _, err := os.Stat(certificate); err == nil {
		t.Errorf("%s is there, and nobody needs it", certificate)
	}
	p.must("gangd", "controller", "join", p.conf("b"), strings.TrimSpace(p.must("gangd", "controller", "new")))
	p.spawn("b", "gangd", nil, p.conf("b"))
	p.until("b answers", func() bool { _, _, code := p.on.Run("gctl", "ping"); return code == 0 })
	p.untilState("b", api.ControllerStandsBy)
	if info, err := os.Stat(certificate); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("b may lead, and n1 has no certificate to follow it: %v %v", info, err)
	}
	follows := func(leader string) {
		t.Helper()
		p.untilState(leader, api.ControllerLeads)
		began := time.Now()
		p.until("n1 is up at "+leader, func() bool {
			nodes := p.on.Nodes()
			return len(nodes) == 1 && nodes[0].State == api.NodeUp
		})
		t.Logf("n1 is up %s after %s leads", time.Since(began), leader)
	}
	p.kill("gangd", syscall.SIGKILL)
	follows("b")
	p.gangd()
	p.untilState("a", api.ControllerStandsBy)
	p.kill("n1", syscall.SIGTERM) // one that begins anew has the certificate
	p.spawn("n1", "gnoded", nil, p.conf("n1"))
	follows("b")
	p.kill("b", syscall.SIGTERM)
	p.on = p.client()
	follows("a")
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := p.wait(job, api.JobCompleted); j.Epoch != 1 {
		t.Errorf("the job that ran from the beginning ended in epoch %d", j.Epoch)
	}
}
