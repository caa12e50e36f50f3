package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/trial"
)

// site is a cluster as a site installs it: gangd from a file, nodes and a login host over
// TLS, each daemon a process of its own.
type site struct {
	*cluster // its dir is gangd's: $GANG_DIR/run/gangd.sock
	address  string
	daemons  map[string]*exec.Cmd
	gangdAs  *syscall.Credential // nil: as the test
	opened   map[string]int      // sessions waited for, by node
}

// startSite brings gangd up with extra lines in its configuration.
func startSite(t *testing.T, gangdAs *syscall.Credential, lines ...string) *site {
	t.Helper()
	bin := trial.Programs(t)
	dir, err := os.MkdirTemp("", "gs")
	if err != nil {
		t.Fatal(err)
	}
	// Other users pass through here.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &site{cluster: &cluster{t: t, bin: bin, dir: dir, tmp: t.TempDir()}, daemons: map[string]*exec.Cmd{}, opened: map[string]int{}, gangdAs: gangdAs, address: trial.FreeAddress(t)}
	t.Cleanup(s.stop)
	for d, mode := range map[string]os.FileMode{"run": 0o755, "gangd": 0o700} {
		if err := os.Mkdir(filepath.Join(dir, d), mode); err != nil {
			t.Fatal(err)
		}
		if gangdAs != nil {
			if err := os.Chown(filepath.Join(dir, d), int(gangdAs.Uid), int(gangdAs.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.write("gangd.toml", append([]string{
		fmt.Sprintf("state_dir = %q", filepath.Join(dir, "gangd")), fmt.Sprintf("socket = %q", filepath.Join(dir, "run", "gangd.sock")),
		fmt.Sprintf("listen = %q", s.address), `start_timeout = "10s"`}, lines...)...)
	s.gangd()
	return s
}

func (s *site) write(name string, lines ...string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// spawn starts a daemon, of bin/ or by its path, with its log beside the others.
func (s *site) spawn(name, program string, as *syscall.Credential, args ...string) {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	if !filepath.IsAbs(program) {
		program = filepath.Join(s.bin, program)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.daemons[name] = cmd
}

func (s *site) gangd(args ...string) {
	s.t.Helper()
	s.spawn("gangd", "gangd", s.gangdAs, append([]string{"--config", filepath.Join(s.dir, "gangd.toml")}, args...)...)
	s.untilUp("gangd", "gctl", "ping")
}

// untilUp waits for a command to succeed, or for its daemon to have ended.
func (s *site) untilUp(daemon string, command ...string) {
	s.t.Helper()
	for give := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, errs, code := s.run(command[0], command[1:]...)
		if code == 0 {
			return
		}
		if !running(s.daemons[daemon].Process.Pid) || time.Now().After(give) {
			s.t.Fatalf("%s is not up: %s", daemon, errs)
		}
	}
}

// node writes the configuration of a gnoded; state and socket are its own, no socket where
// none is given: all nodes are on this one host.
func (s *site) node(name string, lines ...string) string {
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "socket = ") }) {
		lines = append(lines, `socket = "none"`)
	}
	return s.write(name+".toml", append([]string{fmt.Sprintf("name = %q", name), fmt.Sprintf("controller = %q", s.address),
		fmt.Sprintf("state_dir = %q", filepath.Join(s.dir, name)), `address = "127.0.0.1"`}, lines...)...)
}

// line is a join line.
func (s *site) line(args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(s.must("gangd", append([]string{"token", "new"}, args...)...))
}

// up starts gnoded and waits until the controller has it.
func (s *site) up(name string) {
	s.t.Helper()
	s.spawn(name, "gnoded", nil, "--config", filepath.Join(s.dir, name+".toml"))
	// The word that a node is up may be about the daemon before: its session is in the log.
	log := filepath.Join(s.dir, name+".log")
	sessions := func() int { b, _ := os.ReadFile(log); return bytes.Count(b, []byte("session opened")) }
	s.opened[name]++
	s.until(name+" has opened a session", func() bool { return sessions() >= s.opened[name] })
	s.untilNode(name, "up")
}

func (s *site) nodeState(name string) string {
	for _, n := range s.nodes() {
		if n.Name == name {
			return string(n.State)
		}
	}
	return ""
}

func (s *site) untilNode(name, state string) {
	s.t.Helper()
	s.until("node "+name+" is "+state, func() bool { return s.nodeState(name) == state })
}

// kill ends a daemon and waits for its end.
func (s *site) kill(name string, sig syscall.Signal) (code int) {
	s.t.Helper()
	cmd := s.daemons[name]
	delete(s.daemons, name)
	_ = cmd.Process.Signal(sig)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

func (s *site) stop() {
	trial.Logs(s.t, s.dir+"/*.log")
	if s.daemons["gangd"] != nil {
		_, _, _ = s.run("gcancel", "--state=RUNNING")
		// Not for long: what is held stays, and a controller on hold ends nothing.
		for give := time.Now().Add(3 * time.Second); time.Now().Before(give); {
			if out, _, code := s.run("gqueue", "-h"); code != 0 || out == "" {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for name := range s.daemons {
		s.kill(name, syscall.SIGTERM)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
}

// person is a user of this machine who runs commands.
type person struct {
	s    *site
	name string
	cred *syscall.Credential
	dir  string // GANG_DIR
	home string // a directory that only they can enter
}

// person finds an account and gives it a directory of its own.
func (s *site) person(name string) *person {
	s.t.Helper()
	cred := trial.Account(s.t, name)
	return &person{s: s, name: name, cred: cred, dir: s.dir, home: trial.Home(s.t, filepath.Join(s.dir, "home-"+name), cred)}
}

// at is the same person with the commands pointed at another socket's directory.
func (p *person) at(dir string) *person {
	q := *p
	q.dir = dir
	return &q
}

func (p *person) run(name string, args ...string) (stdout, stderr string, code int) {
	cmd := exec.Command(filepath.Join(p.s.bin, name), args...)
	cmd.Dir, cmd.Env = p.home, []string{"GANG_DIR=" + p.dir, "PATH=" + os.Getenv("PATH"), "HOME=" + p.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (p *person) must(name string, args ...string) string {
	p.s.t.Helper()
	out, errs, code := p.run(name, args...)
	if code != 0 {
		p.s.t.Fatalf("%s: %s %s: exit %d\n%s%s", p.name, name, strings.Join(args, " "), code, out, errs)
	}
	return out
}

func (p *person) submit(args ...string) int64 {
	p.s.t.Helper()
	out := strings.TrimSpace(p.must("gsubmit", append([]string{"--parsable"}, args...)...))
	id, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		p.s.t.Fatalf("gsubmit --parsable printed %q", out)
	}
	return id
}

// refused checks that a command fails with exactly this on standard error.
func (p *person) refused(code int, want, name string, args ...string) {
	p.s.t.Helper()
	out, errs, got := p.run(name, args...)
	if got != code || strings.TrimSpace(errs) != want {
		p.s.t.Errorf("%s: %s %s: exit %d, want %d\n got %s%s\nwant %s", p.name, name, strings.Join(args, " "), got, code, out, strings.TrimSpace(errs), want)
	}
}

// needRoot skips a test that makes processes of several users.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it runs daemons and commands as several users")
	}
}

// me is the name of who runs the test.
func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}
