package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gangd/e2e/tally"
)

// TestInstall does what docs/operations.md says, line by line, on a controller's host, two nodes
// and a login host, with systemd's part done by the words of the units. Then commands under
// Slurm's names work in jobs, and nobody else can read what is kept of them.
func TestInstall(t *testing.T) { likeRoots(t, install) }

func install(t *testing.T, how manner) {
	s := site(t, how, "head", "n1", "n2", "login1")
	blocks := s.blocks("docs/operations.md", "Install")
	if len(blocks) != 3 {
		t.Fatalf("the installation has %d blocks: want the controller's, a node's, and the links'", len(blocks))
	}
	s.follow("head", blocks[0])
	s.until("gangd answers", func() bool { return s.sh("head", "root", "gctl ping").code == 0 })
	for _, n := range []string{"n1", "n2"} {
		s.follow(n, blocks[1])
		s.follow(n, blocks[2])
	}
	s.follow("login1", s.blocks("docs/operations.md", "Login hosts")[0])
	s.follow("login1", blocks[2])
	s.until("both nodes are up", func() bool { return s.sh("login1", "ada", "gctl ping").has("2 of 2 nodes up") })

	s.write("home/ada/job.sh", `#!/bin/bash
#SBATCH -N2 --ntasks-per-node=1 --requeue -o job.out
set -e
srun hostname | sort | xargs > srun.out
squeue -h -j $SLURM_JOB_ID -o '%T %R' > squeue.out
if [ ! -e again ]; then
	touch again
	sbatch --parsable --wrap='echo $SLURM_JOB_ID > inner.out' > sbatch.out
	scontrol requeue $SLURM_JOB_ID
	sleep 600
fi
echo $SLURM_RESTART_COUNT > done.out
`)
	if r := s.sh("login1", "ada", "sbatch job.sh"); !r.has("Submitted batch job ") {
		t.Fatalf("sbatch: %+v", r)
	}
	file := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(s.dir, "home/ada", name))
		return strings.TrimSpace(string(b))
	}
	s.until("the job has run twice and its own submission once", func() bool { return file("done.out") != "" && file("inner.out") != "" })
	if got := []string{file("srun.out"), file("squeue.out"), file("done.out")}; strings.Join(got, "|") != "n1 n2|RUNNING n[1-2]|1" || file("inner.out") != file("sbatch.out") {
		t.Errorf("%q, %s in %s; %s", got, file("inner.out"), file("sbatch.out"), file("job.out"))
	}

	if r := s.sh("login1", "ada", "sbatch --parsable --export=ALL,SECRET=s3cret --wrap='touch here; sleep 600'"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	s.until("it runs", func() bool { return s.sh("login1", "ada", "ls here").code == 0 })
	for name := range s.hosts {
		if r := s.sh(name, "bob", "find /var/lib/gangd /var/lib/gnoded /run /dev/shm /var/log/gangd -type f -readable 2>/dev/null"); r.out != "" {
			t.Errorf("on %s others can read\n%s", name, r.out)
		}
	}
	if r := s.sh("n1", "bob", "squeue"); r.code == 0 {
		t.Errorf("bob has no job, and his call from n1 is passed on: %+v", r)
	}
	if r := s.sh("login1", "ada", "gctl node drain n1 --reason=x"); !r.has("through a relay an admin is an ordinary user") {
		t.Errorf("an admin on a login host: %+v", r)
	}
	s.sh("login1", "ada", "scancel -u ada")
	s.until("nothing runs", func() bool { return s.sh("login1", "ada", "squeue -h").out == "" })
}

// manner is how root of the site's hosts is, and what he has left there.
type manner struct {
	umask     string   // empty: 022
	closed    []string // directories that are there already, with a mode of 0700
	directory bool     // the people are in a directory, not in the hosts' files
}

// likeRoots makes a subtest for each manner that root may have; in CI for the narrowest umask alone.
func likeRoots(t *testing.T, do func(*testing.T, manner)) {
	all := map[string]manner{"umask 077": {umask: "077"}}
	if isLong() {
		all["umask 022"], all["umask 027"] = manner{umask: "022"}, manner{umask: "027"}
		all["directories that are closed"] = manner{closed: []string{"/etc/gangd", "/var/lib/gangd", "/var/lib/gnoded", "/run/gangd", "/run/gnoded"}}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { do(t, all[name]) })
	}
}

// site is hosts on one switch with people on them, and nothing installed but the programs.
func site(t *testing.T, how manner, names ...string) *installed {
	t.Helper()
	if os.Geteuid() != 0 {
		tally.Skip(t, "needs root: it makes hosts of namespaces")
	}
	tally.Need(t, "ip", "nsenter", "useradd", "setpriv")
	root, err1 := filepath.Abs("../..")
	dir, err2 := os.MkdirTemp("", "gi")
	if err := errors.Join(err1, err2, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	s := &installed{lab: &lab{t: t, dir: dir, tmp: dir, bin: filepath.Join(root, "bin"), hosts: map[string]*host{}, up: map[string]*daemon{},
		opt: options{state: "/var/lib/gnoded", umask: how.umask}}, how: how, root: root, typed: map[string]*daemon{}}
	t.Cleanup(s.stop)
	s.opt.dress = s.dress
	s.homes()
	if how.directory {
		s.fill()
	}
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.sw = boot(t, "switch", "", nil)
	if err := errors.Join(s.sw.inside("ip", "link", "add", "br0", "type", "bridge"), s.sw.inside("ip", "link", "set", "br0", "up")); err != nil {
		tally.Skip(t, "no bridge between hosts on this machine: %v", err)
	}
	table := []string{"127.0.0.1 localhost"}
	for i, name := range names {
		table = append(table, fmt.Sprintf("10.77.0.%d %s", i+1, name))
	}
	s.write("hosts", table...)
	for i, name := range names {
		s.boot(name, fmt.Sprintf("10.77.0.%d", i+1))
		for _, dir := range how.closed {
			s.prepare(name, "mkdir -p "+dir+" && chmod 0700 "+dir)
		}
		if how.directory {
			s.prepare(name, "ln -s "+s.dir+"/directory /var/lib/extrausers")
		}
	}
	return s
}

// prepare has root do something on a host before anybody follows a book there.
func (s *installed) prepare(host, line string) {
	s.t.Helper()
	if r := s.sh(host, "root", line); r.code != 0 {
		s.t.Fatalf("%s: %s: %+v", host, line, r)
	}
}

// mends is what a daemon says that its user, or the site's users, can't pass.
var mends = regexp.MustCompile(`chmod o\+x (/[^\s,"]+)|(?:lstat|open) (/\S+)/[^/\s]+: permission denied`)

// mend does for a daemon that has refused to start what it says, and starts it again. One that says nothing has failed.
func (s *installed) mend() {
	s.t.Helper()
	for _, b := range s.begun {
		if b.d.running() || b.d.code == 0 || b.d.code >= 128 { // ended by the test
			continue
		}
		host := b.d.h.name
		log := s.log(host)
		m := mends.FindAllStringSubmatch(log, -1)
		if len(s.how.closed) == 0 || m == nil || s.mended > 3*len(s.how.closed) {
			s.t.Fatalf("%s: %s ended with %d\n%s", host, b.typed, b.d.code, log)
		}
		s.mended++
		dir := cmp.Or(m[len(m)-1][1], m[len(m)-1][2])
		s.t.Logf("%s on %s: chmod o+x %s", b.typed, host, dir)
		s.prepare(host, "chmod o+x "+dir)
		b.d = b.again()
		s.typed[b.typed] = b.d
		s.setDaemon(host, b.d)
	}
}

// begun is a daemon that a book has had root start.
type begun struct {
	typed string
	d     *daemon
	again func() *daemon
}

// begin starts one, and knows how it is started again.
func (s *installed) begin(host, typed string, first, again func() *daemon) {
	b := &begun{typed: typed, d: first(), again: again}
	s.begun = append(s.begun, b)
	s.typed[typed] = b.d
	s.setDaemon(host, b.d)
}

// until is the lab's, with an eye on daemons that refuse to start.
func (s *installed) until(what string, ok func() bool) {
	s.t.Helper()
	s.lab.until(what, func() bool { s.mend(); return ok() })
}

// TestOneMachine does what the README begins with: two daemons without a configuration are a cluster
// of many users, one line makes a second node of another machine and one a login host.
func TestOneMachine(t *testing.T) { likeRoots(t, oneMachine) }

func oneMachine(t *testing.T, how manner) {
	s := site(t, how, "head", "n2", "login1")
	blocks := s.blocks("README.md", "One machine")
	if len(blocks) != 4 {
		t.Fatalf("the README has %d blocks: want those of the first machine alone, of it with others, of the second, of a login host", len(blocks))
	}
	s.follow("head", blocks[0])
	s.until("the machine is a node", func() bool { return s.sh("head", "ada", "gctl ping").has("1 of 1 node") })
	for _, user := range []string{"ada", "bob"} {
		if r := s.sh("head", user, "grun sh -c 'id -un; hostname' 2>/dev/null"); r.code != 0 || r.out != user+"\nhead\n" {
			t.Errorf("a job of %s: %+v", user, r)
		}
	}
	if r := s.sh("head", "root", "gangd token new"); r.code != 1 || !r.has("listens on no TCP address") || !r.has(`set listen = ":7420"`) {
		t.Errorf("a node for a gangd that listens to none: %+v", r)
	}

	id := strings.TrimSpace(s.sh("head", "ada", "gsubmit --parsable --wrap='sleep 600'").out)
	s.until("a job runs", func() bool { return s.sh("head", "ada", "gqueue -h -o %t -j "+id).out == "R\n" })
	s.gangdOf(blocks[0]).kill(syscall.SIGTERM)
	s.follow("head", blocks[1])
	s.until("gangd listens", func() bool { return s.sh("head", "root", "gctl ping").code == 0 })
	s.follow("n2", blocks[2])
	s.follow("login1", blocks[3])
	s.until("both are nodes", func() bool { return s.sh("login1", "ada", "gctl ping").has("2 of 2 nodes up") })
	if r := s.sh("login1", "ada", "grun -N2 hostname 2>/dev/null | sort | xargs"); r.out != "head n2\n" {
		t.Errorf("on both, from a login host: %+v", r)
	}
	if r := s.sh("login1", "ada", "gqueue -h -o '%i %t' -j "+id+" && gcancel "+id+" 2>/dev/null"); r.out != id+" R\n" {
		t.Errorf("what ran through the restart: %+v", r)
	}
	// A daemon that is started again goes where it joined.
	s.daemon("n2").kill(syscall.SIGTERM)
	s.follow("n2", []string{"gnoded &"})
	s.until("it is back", func() bool { return s.sh("n2", "root", "grep -c 'session opened' "+s.dir+"/log/n2.log").out == "2\n" })
	s.until("nothing runs", func() bool { return s.sh("login1", "ada", "gqueue -h").out == "" })
}

// gangdOf is the gangd that lines at head's shell have started.
func (s *installed) gangdOf(lines []string) *daemon {
	for _, l := range lines {
		if strings.HasPrefix(l, "gangd ") {
			return s.typed[l]
		}
	}
	s.t.Fatalf("no gangd in %q", lines)
	return nil
}

// installed is a site that is installed by the book.
type installed struct {
	*lab
	how    manner
	root   string             // of the tree
	typed  map[string]*daemon // by their lines, see follow
	begun  []*begun           // all daemons
	mended int
}

// dress gives a host an /etc of its own, room for state, the programs and the homes.
func (s *installed) dress(name string, u *setup) {
	s.t.Helper()
	etc := filepath.Join(s.dir, "etc-"+name)
	if out, err := exec.Command("cp", "-a", "/etc", etc).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	_ = os.RemoveAll(filepath.Join(etc, "gangd"))
	if s.how.directory {
		s.nss(etc)
	}
	for file, lines := range people {
		if s.how.directory {
			break
		}
		f, err := os.OpenFile(filepath.Join(etc, file), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(lines)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	u.Binds = map[string]string{"/etc": etc, "/usr/local/bin": s.bin, "/home": filepath.Join(s.dir, "home")}
	u.Tmpfs["/var/lib"], u.Tmpfs["/opt"] = "mode=755", "mode=755"
}

// blocks are the commands of a section of a page.
func (s *installed) blocks(page, section string) (blocks [][]string) {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, page))
	if err != nil {
		s.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```\n(.*?)\n```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, strings.Split(m[1], "\n"))
	}
	return blocks
}

var (
	remote = regexp.MustCompile(`^ssh head (.*?) \|`)
	enable = regexp.MustCompile(`^systemctl daemon-reload && systemctl enable --now (\S+)$`)
)

// follow types the lines of a block at root's shell of a host; what ends in & is left running.
func (s *installed) follow(host string, lines []string) {
	s.t.Helper()
	for _, l := range lines {
		l, _, _ = strings.Cut(l, " #")
		l = strings.TrimRight(l, " ")
		typed := l
		if strings.HasPrefix(l, "install -m 755 bin/* ") || strings.HasPrefix(l, "make install ") {
			continue // they are seen there already
		}
		if m := enable.FindStringSubmatch(l); m != nil {
			s.enable(host, m[1])
			continue
		}
		if m := remote.FindStringSubmatch(l); m != nil {
			line := strings.TrimSpace(s.sh("head", "root", m[1]).out)
			l = "echo '" + line + "' |" + l[len(m[0]):]
		}
		if stays, ok := strings.CutSuffix(l, " &"); ok {
			shell := func(line string) func() *daemon {
				return func() *daemon {
					return s.spawn(host, "root", line, filepath.Join(s.dir, "log", host+".log"))
				}
			}
			last := stays[strings.LastIndex(stays, "&& ")+1:]
			s.begin(host, typed, shell(stays), shell(strings.TrimPrefix(last, "& ")))
			continue
		}
		r := s.sh(host, "root", "cd "+s.root+" && "+l)
		if m := mends.FindStringSubmatch(r.out); r.code != 0 && m != nil && len(s.how.closed) > 0 {
			s.prepare(host, "chmod o+x "+cmp.Or(m[1], m[2]))
			r = s.sh(host, "root", "cd "+s.root+" && "+l)
		}
		if r.code != 0 {
			s.t.Fatalf("%s: %s: %+v", host, l, r)
		}
	}
}

// enable starts a unit as systemd would: its directories, its user, its mask.
func (s *installed) enable(host, unit string) {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "etc-"+host, "systemd/system", unit+".service"))
	if err != nil {
		s.t.Fatal(err)
	}
	says := func(key, usual string) string {
		if m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(string(b)); m != nil {
			return m[1]
		}
		return usual
	}
	user := says("User", "root")
	text := "umask " + says("UMask", "0022") + "\n"
	for kind, at := range map[string]string{"State": "/var/lib/", "Runtime": "/run/"} {
		if d := says(kind+"Directory", ""); d != "" {
			text += fmt.Sprintf("install -d -o %s -g %s -m %s %s%s\n", user, user, says(kind+"DirectoryMode", "0755"), at, d)
		}
	}
	text += fmt.Sprintf("exec setpriv --reuid=%s --regid=%s --clear-groups %s", user, user, says("ExecStart", "false"))
	start := func() *daemon {
		d, err := s.hosts[host].start(&start{Args: []string{"/bin/sh", "-c", text}, Env: []string{"PATH=" + path}, Log: filepath.Join(s.dir, "log", host+".log")})
		if err != nil {
			s.t.Fatal(err)
		}
		return d
	}
	s.begin(host, "systemctl enable --now "+unit, start, start)
}
