package attack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// secret is what stands in the environment, the script and the output of the job that nobody else may
// read, and in a file of its owner's.
const secret = "xyzzy-plugh-4711"

// descriptors is the limit that gangd runs under: few, so that hoarding them is quick.
const descriptors = 1024

// site is what is attacked.
type site struct {
	t       *testing.T
	bin     string
	dir     string
	address string
	daemons map[string]*daemon
	root    *person
	ada     *person // works
	eve     *person // means harm, as a user
	tls     string  // of n3, the certificate that was stolen
	running int64   // a job of ada's, on n1
	epoch   int
	held    int64 // another, that waits
	page    string
	figures string // metrics_listen
}

type daemon struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

func (d *daemon) lives() bool {
	select {
	case <-d.gone:
		return false
	default:
		return true
	}
}

func build(t *testing.T) *site { return buildWith(t, `user_jobs = 5000`) }

// buildWith is build with what its users may have.
func buildWith(t *testing.T, bounds ...string) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		tally.Skip(t, "needs root: it acts as several users")
	}
	bin := trial.Programs(t)
	dir, err := os.MkdirTemp("", "ga")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, bin: bin, dir: dir, daemons: map[string]*daemon{}, address: trial.FreeAddress(t), page: trial.FreeAddress(t), figures: trial.FreeAddress(t), tls: filepath.Join(dir, "n3", "tls")}
	t.Cleanup(s.stop)
	s.root, s.ada, s.eve = s.person("root"), s.person("nobody"), s.person("games")
	keeper := s.person("bin") // runs gangd
	for d, mode := range map[string]os.FileMode{".": 0o755, "run": 0o755, "gangd": 0o700} {
		path := filepath.Join(dir, d)
		if err := errors.Join(os.MkdirAll(path, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if d != "." {
			if err := os.Chown(path, int(keeper.uid), int(keeper.gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.driver()
	conf := s.write("gangd.toml", append(bounds, fmt.Sprintf("state_dir = %q", filepath.Join(dir, "gangd")), fmt.Sprintf("socket = %q", s.socket()),
		fmt.Sprintf("listen = %q", s.address), `admins = ["daemon"]`, `retry_backoff = "50ms"`, "launch_retries = 1", `grace = "1s"`,
		fmt.Sprintf("web_listen = %q", s.page), `web_guest = "queue"`, fmt.Sprintf("metrics_listen = %q", s.figures),
		`user_bytes = "8MiB"`, "user_cards = 3",
		"user_rate = 2000", "user_burst = 5000", // above what the tries make: whom this refuses has not been judged
		"[[account]]", `name = "open"`, "default = true", "[[account]]", `name = "closed"`, `users = ["nobody"]`)...)
	s.spawn("gangd", keeper, "/bin/sh", "-c", fmt.Sprintf("ulimit -n %d && exec %s/gangd --config %s", descriptors, bin, conf))
	s.until("gangd answers", func() bool { return s.root.call("GET", "/v1/ping", nil).code == 200 })
	for _, n := range []string{"n1", "n2", "n3"} {
		conf := s.write(n+".toml", fmt.Sprintf("name = %q", n), fmt.Sprintf("controller = %q", s.address),
			"containers = true", `container_driver = "podman"`, `cpu_bind = "none"`,
			fmt.Sprintf("state_dir = %q", filepath.Join(dir, n)), `address = "127.0.0.1"`, `cards = "4x80G"`, "cpus = 64", `memory = "64GiB"`, "min_uid = 2",
			fmt.Sprintf("socket = %q", filepath.Join(dir, n+".sock")))
		s.must("gnoded", "join", "--config="+conf, strings.TrimSpace(s.must("gangd", "token", "new", "--node="+n)))
		if n != "n3" {
			start := []string{filepath.Join(bin, "gnoded"), "--config", conf}
			if n == "n2" { // as no unit of a service manager would have it
				start = append([]string{"/bin/sh", "-c", "echo 200 >/proc/self/oom_score_adj; exec nice -n 5 \"$@\"", "sh"}, start...)
			}
			s.spawn(n, s.root, start...)
			s.until(n+" is up", func() bool { return s.node(n).State == api.NodeUp })
		}
	}
	if err := os.WriteFile(filepath.Join(s.ada.home, "secret"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(s.ada.home, "secret"), int(s.ada.uid), int(s.ada.gid)); err != nil {
		t.Fatal(err)
	}
	s.running = s.ada.submit(map[string]any{"name": "ada", "node_list": []string{"n1"}, "gpus_per_rank": 1, "env": []string{"TOKEN=" + secret}, "output": s.ada.home + "/out",
		"script": []byte("#!/bin/sh\n# " + secret + "\necho " + secret + "\nexec sleep 100000\n")})
	s.held = s.ada.submit(map[string]any{"name": "ada-held", "hold": true, "env": []string{"TOKEN=" + secret}, "comment": "mine"})
	s.until("ada's job runs", func() bool { return s.job(s.running).State == api.JobRunning })
	s.epoch = s.job(s.running).Epoch
	return s
}

func (s *site) socket() string { return filepath.Join(s.dir, "run", "gangd.sock") }

func (s *site) write(name string, lines ...string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// spawn starts a daemon with its log beside the others.
func (s *site) spawn(name string, p *person, args ...string) *daemon {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = []string{"PATH=" + filepath.Join(s.dir, "tools") + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.cred()}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	d := &daemon{cmd: cmd, gone: make(chan struct{})}
	go func() {
		defer close(d.gone)
		_ = cmd.Wait()
	}()
	s.daemons[name] = d
	return d
}

func (s *site) must(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GANG_DIR=" + s.dir, "HOME=/root"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	if !waitFor(ok) {
		s.t.Fatalf("after %s still not: %s", trial.Patience, what)
	}
}

// waitFor polls what something else brings about.
func waitFor(ok func() bool) bool {
	for give := time.Now().Add(trial.Patience); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(give) {
			return false
		}
	}
}

func (s *site) stop() {
	trial.Logs(s.t, s.dir+"/*.log")
	if d := s.daemons["gangd"]; d != nil && d.lives() {
		s.root.call("POST", "/v1/cancel", map[string]any{"users": []string{"nobody", "games"}, "now": true})
		for give := time.Now().Add(5 * time.Second); time.Now().Before(give); time.Sleep(20 * time.Millisecond) {
			var r api.JobsReply
			if s.root.call("POST", "/v1/query", nil).decode(&r) != nil || len(r.Jobs) == 0 {
				break
			}
		}
	}
	for _, d := range s.daemons {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		<-d.gone
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
}

// job shows one, as root sees it.
func (s *site) job(id int64) api.Job {
	var d api.JobDetail
	if err := s.root.call("GET", fmt.Sprintf("/v1/jobs/%d", id), nil).decode(&d); err != nil {
		return api.Job{Verdict: err.Error()}
	}
	return d.Job
}

// ended waits for the end of a job.
func (s *site) ended(id int64) (api.Job, error) {
	var j api.Job
	if !waitFor(func() bool { j = s.job(id); return j.State.Ended() }) {
		return j, fmt.Errorf("job %d is %s after %s", id, j.State, trial.Patience)
	}
	return j, nil
}

func (s *site) node(name string) api.Node {
	var r api.NodesReply
	_ = s.root.call("GET", "/v1/nodes", nil).decode(&r)
	for _, n := range r.Nodes {
		if n.Name == name {
			return n
		}
	}
	return api.Node{}
}

// stands looks at the site as a whole: nil when nothing of it was harmed.
func (s *site) stands() error {
	for name, d := range s.daemons {
		if !d.lives() {
			return fmt.Errorf("%s ended: %s", name, d.cmd.ProcessState)
		}
	}
	var p api.PingReply
	if err := s.root.call("GET", "/v1/ping", nil).decode(&p); err != nil || p.Hold != "" {
		return fmt.Errorf("gangd: %q, %w", p.Hold, err)
	}
	for _, name := range []string{"n1", "n2"} {
		// A session may be cut and opened again; whoever is drained stays so.
		var n api.Node
		if !waitFor(func() bool { n = s.node(name); return n.State != api.NodeSuspect }) || n.State != api.NodeUp {
			return fmt.Errorf("%s is %s: %s", name, n.State, n.Reason)
		}
		for _, c := range n.Cards {
			if c.State != "ok" {
				return fmt.Errorf("card %d of %s is %s: %s", c.Index, name, c.State, c.Reason)
			}
		}
	}
	if j := s.job(s.running); j.State != api.JobRunning || j.Epoch != s.epoch || j.Name != "ada" {
		return fmt.Errorf("ada's job %s is %s in epoch %d: %s", j.Name, j.State, j.Epoch, j.Verdict)
	}
	if j := s.job(s.held); j.State != api.JobPending || j.Name != "ada-held" || j.Comment != "mine" {
		return fmt.Errorf("ada's held job is %s: %s", j.State, j.Verdict)
	}
	return nil
}

// person is somebody at a shell, or at a socket.
type person struct {
	s        *site
	name     string
	uid, gid uint32
	home     string // a directory that only they can enter
}

func (s *site) person(name string) *person {
	s.t.Helper()
	cred := trial.Account(s.t, name)
	return &person{s: s, name: name, uid: cred.Uid, gid: cred.Gid, home: trial.Home(s.t, filepath.Join(s.dir, "home-"+name), cred)}
}

func (p *person) cred() *syscall.Credential { return &syscall.Credential{Uid: p.uid, Gid: p.gid} }

// do runs something as the person. Identity is a thread's in Linux: this one is given up.
func (p *person) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		const same = ^uintptr(0)
		_, _, e1 := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, same, uintptr(p.gid), same)
		_, _, e3 := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(p.uid), same)
		if e1|e2|e3 != 0 {
			panic(errors.Join(e1, e2, e3))
		}
		f()
	}()
	<-done
}

// shell runs a command of the person's.
func (p *person) shell(script string) (out string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), trial.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "-c", script)
	cmd.Dir, cmd.Env = p.home, []string{"GANG_DIR=" + p.s.dir, "PATH=" + p.s.bin + ":" + filepath.Join(p.s.dir, "slurm") + ":" + os.Getenv("PATH"), "HOME=" + p.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred()}
	b, _ := cmd.CombinedOutput()
	return string(b), cmd.ProcessState.ExitCode()
}

// dial connects as the person.
func (p *person) dial(socket string) (c net.Conn, err error) {
	p.do(func() { c, err = net.Dial("unix", socket) })
	return c, err
}

// answer is what a call came to.
type answer struct {
	code int // 0: none
	body string
	err  error
}

func (a answer) decode(v any) error {
	if a.err != nil {
		return a.err
	}
	if a.code != 200 {
		return fmt.Errorf("%d %.200s", a.code, a.body)
	}
	return json.Unmarshal([]byte(a.body), v)
}

// refused is nil for an answer that refuses with a sentence. Who came too often was not judged.
func (a answer) refused() error {
	var e api.Error
	if a.err != nil {
		return a.err
	}
	if a.code/100 != 4 || json.Unmarshal([]byte(a.body), &e) != nil || e.Message == "" || e.RetryAfter > 0 {
		return fmt.Errorf("answered %d %.200s", a.code, a.body)
	}
	return nil
}

// way is how a call gets to gangd.
type way struct {
	dial   func() (net.Conn, error)
	header http.Header
}

// socketOf is the ordinary way of a person: the socket on the controller's host.
func (p *person) socketOf(path string) *way {
	return &way{dial: func() (net.Conn, error) { return p.dial(path) }}
}

// certified is a connection with the certificate of a machine.
func (s *site) certified(dir, claim string) *way {
	w := &way{dial: func() (net.Conn, error) {
		conf, err := auth.NodeTLS(dir)
		if err != nil {
			return nil, err
		}
		return tlsDial(s.address, conf)
	}}
	if claim != "" {
		w.header = http.Header{"Gang-User": {claim}}
	}
	return w
}

func (p *person) call(method, path string, body any) answer {
	return p.socketOf(p.s.socket()).call(method, path, body)
}

// call makes one call on a connection of its own. A body that is no string is written as JSON, none as an
// empty object.
func (w *way) call(method, path string, body any) answer {
	text, raw := body.(string)
	if !raw && method == "POST" {
		if body == nil {
			body = struct{}{}
		}
		b, err := json.Marshal(body)
		if err != nil {
			return answer{err: err}
		}
		text = string(b)
	}
	patience := trial.Patience
	waits := strings.HasSuffix(path, "/wait") || path == "/v1/live"
	if waits {
		patience = 300 * time.Millisecond // who may wait does, which is answer enough
	}
	req, err := http.NewRequest(method, "http://gangd"+path, strings.NewReader(text))
	if err != nil {
		return answer{err: err}
	}
	req.Close = true
	for k, v := range w.header {
		req.Header[k] = v
	}
	c, err := w.dial()
	if err != nil {
		return answer{err: err}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	// A refusal may come before the request is written, and end the writing.
	go func() { _ = req.Write(c) }()
	res, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil && waits && errors.Is(err, os.ErrDeadlineExceeded) {
		return answer{code: http.StatusOK}
	}
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err = io.Copy(&b, res.Body); waits && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return answer{code: res.StatusCode, body: b.String(), err: err}
}

// spec is a small job of the person's, with what is different.
func (p *person) spec(change map[string]any) map[string]any {
	spec := map[string]any{"name": "x", "size": 1, "launch": "ranks", "cpus_per_rank": 1, "work_dir": p.home, "output": "/dev/null",
		"script": []byte("#!/bin/sh\ntrue\n")}
	for k, v := range change {
		spec[k] = v
	}
	return spec
}

var keys int

// ask submits as a program of the person's own would.
func (p *person) ask(change map[string]any) answer {
	keys++
	return p.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("k%d", keys), "spec": p.spec(change)})
}

// submit is ask for what has to be taken.
func (p *person) submit(change map[string]any) int64 {
	p.s.t.Helper()
	var r api.SubmitReply
	if err := p.ask(change).decode(&r); err != nil {
		p.s.t.Fatalf("%s submits: %v", p.name, err)
	}
	return r.JobID
}
