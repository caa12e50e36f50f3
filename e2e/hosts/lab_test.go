package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// lab is a site: hosts on one switch, gangd on "ctl", a gnoded on each of "n1", "n2" ...
type lab struct {
	t     *testing.T
	bin   string
	self  string // this test binary, which is also what the ranks run
	dir   string // on every host; GANG_DIR of the commands, which run outside
	tmp   string // witness files
	sw    *host
	hosts map[string]*host
	boots int
	opt   options
	etc   string // files that hosts have of their own, where a test gives them some

	killing *daemon // of checks

	mu sync.Mutex
	up map[string]*daemon // by host
}

// daemon is the one that runs on a host, or ran last.
func (l *lab) daemon(host string) *daemon {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up[host]
}

func (l *lab) setDaemon(host string, d *daemon) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up[host] = d
}

// options are how a lab differs from the usual one.
type options struct {
	nodes  int
	gangd  []string          // lines of its configuration
	node   []string          // lines of each gnoded's; @ is its name
	tmpfs  map[string]string // state directory of "ctl" or a node -> mount options
	memory string            // mount options of each host's /run and /dev/shm
	state  string            // of the daemon, the same on every host; empty: one for each
	umask  string            // of root's shell; empty: as it is
	dress  func(host string, s *setup)
}

// nodeLines are those of one gnoded.
func (o *options) nodeLines(name string) []string {
	lines := []string{`cards = "none"`}
	for _, line := range o.node {
		if strings.HasPrefix(line, "cards = ") {
			lines = nil
		}
	}
	for _, line := range o.node {
		lines = append(lines, strings.ReplaceAll(line, "@", name))
	}
	return lines
}

const port = "7420"

// build makes the hosts, starts gangd and lets every node join.
func build(t *testing.T, o options) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		tally.Skip(t, "needs root: it makes hosts of namespaces")
	}
	tally.Need(t, "ip", "nsenter")
	bin := trial.Programs(t)
	self, err1 := os.Executable()
	dir, err2 := os.MkdirTemp("", "gh")
	if err := errors.Join(err1, err2, os.Chmod(dir, 0o755)); err != nil { // users have to pass it
		t.Fatal(err)
	}
	l := &lab{t: t, bin: bin, self: self, dir: dir, tmp: filepath.Join(dir, "w"), hosts: map[string]*host{}, up: map[string]*daemon{}, opt: o}
	t.Cleanup(l.stop)
	for _, d := range []string{"w", "run", "log"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.wire()
	l.write("gangd.toml", append([]string{
		fmt.Sprintf("state_dir = %q", l.state("ctl")), fmt.Sprintf("socket = %q", filepath.Join(dir, "run", "gangd.sock")),
		`listen = "10.77.0.1:` + port + `"`, `admins = ["root"]`}, o.gangd...)...)
	l.gangd()
	for _, n := range l.names() {
		l.write(n+".toml", append([]string{fmt.Sprintf("name = %q", n), `controller = "10.77.0.1:` + port + `"`,
			fmt.Sprintf("state_dir = %q", l.state(n)), fmt.Sprintf("address = %q", n), "min_uid = 0", "cpus = 64"}, o.nodeLines(n)...)...)
		line := strings.TrimSpace(l.must("gangd", "token", "new", "--node="+n))
		d, err := l.hosts[n].start(l.program(n, "gnoded", "join", "--config="+l.conf(n), line))
		if err != nil {
			t.Fatal(err)
		}
		if <-d.gone; d.code != 0 {
			t.Fatalf("gnoded join on %s: exit %d\n%s", n, d.code, l.log(n))
		}
		l.gnoded(n)
	}
	for _, n := range l.names() {
		l.untilNode(n, api.NodeUp)
	}
	return l
}

// names are those of the nodes.
func (l *lab) names() []string {
	var out []string
	for i := range l.opt.nodes {
		out = append(out, fmt.Sprintf("n%d", i+1))
	}
	return out
}

func (l *lab) state(host string) string {
	return cmp.Or(l.opt.state, filepath.Join(l.dir, "state", host))
}

func (l *lab) conf(host string) string { return filepath.Join(l.dir, host+".toml") }

// wire makes the switch and puts every host on it.
func (l *lab) wire() {
	l.t.Helper()
	l.sw = boot(l.t, "switch", "", nil)
	if err := errors.Join(l.sw.inside("ip", "link", "add", "br0", "type", "bridge"), l.sw.inside("ip", "link", "set", "br0", "up")); err != nil {
		tally.Skip(l.t, "no bridge between hosts on this machine: %v", err)
	}
	table := "127.0.0.1 localhost\n10.77.0.1 ctl\n"
	for i, n := range l.names() {
		table += fmt.Sprintf("10.77.0.%d %s\n", i+2, n)
	}
	l.write("hosts", strings.TrimSuffix(table, "\n"))
	for i, n := range append([]string{"ctl"}, l.names()...) {
		l.boot(n, fmt.Sprintf("10.77.0.%d", i+1))
	}
}

// boot starts a host and plugs it in.
func (l *lab) boot(name, ip string) {
	l.t.Helper()
	l.boots++
	id, err := bootFile(l.dir, name, l.boots)
	if err != nil {
		l.t.Fatal(err)
	}
	memory := cmp.Or(l.opt.memory, "size=512m")
	s := &setup{Name: name, Hosts: filepath.Join(l.dir, "hosts"), BootID: id, Tmpfs: map[string]string{"/run": memory + ",mode=755", "/dev/shm": memory + ",mode=755"}}
	if o := l.opt.tmpfs[name]; o != "" {
		mode := "755" // users pass through a node's
		if name == "ctl" {
			mode = "700"
		}
		s.Tmpfs[l.state(name)] = o + ",mode=" + mode
	}
	if l.opt.dress != nil {
		l.opt.dress(name, s)
	}
	h := boot(l.t, name, ip, s)
	l.hosts[name] = h
	for _, err := range []error{
		l.sw.inside("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(h.proc.Process.Pid)),
		l.sw.inside("ip", "link", "set", name, "master", "br0", "up"),
		h.inside("ip", "link", "set", "lo", "up"),
		h.inside("ip", "addr", "add", ip+"/24", "dev", "eth0"),
		h.inside("ip", "link", "set", "eth0", "up"),
	} {
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// reboot is a power cut and a new start: nothing survives on the host, and the kernel has
// another boot id.
func (l *lab) reboot(name string) {
	l.t.Helper()
	h := l.hosts[name]
	h.crash()
	// The veth goes with the namespace, a moment after its last process.
	l.until("the old cable is gone", func() bool {
		_ = l.sw.inside("ip", "link", "del", name)
		return l.sw.inside("ip", "link", "show", name) != nil
	})
	l.boot(name, h.ip)
}

// program is how a host starts one of bin/, with its output in the host's log.
func (l *lab) program(host, name string, args ...string) *start {
	return &start{Args: append([]string{filepath.Join(l.bin, name)}, args...), Env: append(os.Environ(), "GANG_DIR="),
		Log: filepath.Join(l.dir, "log", host+".log")}
}

// gangd starts the controller and waits until it answers.
func (l *lab) gangd() {
	l.t.Helper()
	l.gangdWith(l.program("ctl", "gangd", "--config", l.conf("gangd")))
}

func (l *lab) gangdWith(s *start) {
	l.t.Helper()
	d, err := l.hosts["ctl"].start(s)
	if err != nil {
		l.t.Fatal(err)
	}
	l.setDaemon("ctl", d)
	l.until("gangd answers", func() bool {
		if !d.running() {
			l.t.Fatalf("gangd ended with %d:\n%s", d.code, l.log("ctl"))
		}
		_, _, code := l.run("gctl", "ping")
		return code == 0
	})
}

// gnoded starts a node's daemon; it does not wait for the controller to see it.
func (l *lab) gnoded(name string) {
	l.t.Helper()
	l.gnodedWith(name, l.program(name, "gnoded", "--config", l.conf(name)))
}

func (l *lab) gnodedWith(name string, s *start) {
	l.t.Helper()
	d, err := l.hosts[name].start(s)
	if err != nil {
		l.t.Fatal(err)
	}
	l.setDaemon(name, d)
}

// kill9 ends a host's daemon the hard way.
func (l *lab) kill9(name string) {
	l.t.Helper()
	if code := l.daemon(name).kill(syscall.SIGKILL); code != 128+int(syscall.SIGKILL) {
		l.t.Fatalf("the daemon of %s had ended with %d\n%s", name, code, l.log(name))
	}
}

func (l *lab) log(host string) string {
	b, _ := os.ReadFile(filepath.Join(l.dir, "log", host+".log"))
	return string(b)
}

func (l *lab) write(name string, lines ...string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// stop takes everything down: a host that ends takes its processes, mounts and cables along.
func (l *lab) stop() {
	trial.Logs(l.t, l.dir+"/log/*.log")
	if d := l.daemon("ctl"); d != nil && d.running() {
		_, _, _ = l.run("gcancel", "--now", "--state=RUNNING")
		for give := time.Now().Add(3 * time.Second); time.Now().Before(give); time.Sleep(20 * time.Millisecond) {
			if out, _, code := l.run("gqueue", "-h", "-t", "R,CG"); code != 0 || out == "" {
				break
			}
		}
	}
	// The cgroups of members are this machine's; a host that loses its power leaves them.
	var groups []string
	for name, h := range l.hosts {
		if id, err := os.ReadFile(filepath.Join(h.path(l.state(name)), "id")); err == nil {
			groups = append(groups, strings.TrimSpace(string(id))+"-*")
		}
		h.crash()
	}
	if l.sw != nil {
		l.sw.crash()
	}
	for _, g := range groups {
		for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			found, _ := filepath.Glob(filepath.Join(root, "gangd", g))
			for _, dir := range found {
				removeGroup(dir)
			}
		}
	}
	if keep := os.Getenv("GANG_E2E_KEEP"); keep != "" {
		l.t.Logf("kept %s", l.dir)
		return
	}
	if err := os.RemoveAll(l.dir); err != nil {
		l.t.Error(err)
	}
}

// removeGroup waits for the last process to be gone from it.
func removeGroup(dir string) {
	for range 100 {
		if err := os.Remove(dir); !errors.Is(err, syscall.EBUSY) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
