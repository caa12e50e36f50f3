package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
	"gangd/pkg/lab/tool"
)

// The people of a site whose directory knows them, and no host's files. nina never calls before the directory hangs.
var listed = map[string]string{
	"passwd": "ada:x:20001:20001:Ada:/home/ada:/bin/bash\nbob:x:20002:20002::/home/bob:/bin/bash\n" +
		"LAB\\uwe:x:50002:50001::/home/uwe:/bin/bash\nina@example.org:x:50003:50001::/home/ina:/bin/bash\n" + longest + ":x:50004:50001::/home/longest:/bin/bash\n" +
		"nina:x:50005:50001::/home/nina:/bin/bash\n",
	"group": "ada:x:20001:\nbob:x:20002:\nlab:x:50001:\nproj:x:50010:ada,LAB\\uwe\n",
}

var longest = strings.Repeat("l", 51)

// fill writes the directory's files, which hosts show at /var/lib/extrausers: libnss-extrausers plays the directory.
func (s *installed) fill() {
	s.t.Helper()
	tool.NeedLibrary(s.t, "libnss_extrausers.so.2")
	dir := filepath.Join(s.dir, "directory")
	err := os.Mkdir(dir, 0o755)
	for name, text := range listed {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for home, id := range map[string]int{"uwe": 50002, "ina": 50003, "longest": 50004, "nina": 50005} {
		home = filepath.Join(s.dir, "home", home)
		err = errors.Join(err, os.Mkdir(home, 0o700), os.Chown(home, id, 50001))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// nss has a host's name service ask the directory.
func (s *installed) nss(etc string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(etc, "nsswitch.conf"), []byte("passwd: files extrausers\ngroup: files extrausers\nshadow: files\nhosts: files\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// hang has every question of the directory wait until it is mended.
func (s *installed) hang() (mend func()) {
	s.t.Helper()
	var back []func() error
	for _, name := range []string{"passwd", "group"} {
		at := filepath.Join(s.dir, "directory", name)
		pipe := at + ".pipe"
		if err := errors.Join(unix.Mkfifo(pipe, 0o644), os.Chmod(pipe, 0o644), unix.Renameat2(unix.AT_FDCWD, pipe, unix.AT_FDCWD, at, unix.RENAME_EXCHANGE)); err != nil {
			s.t.Fatal(err)
		}
		back = append(back, func() error { return os.Rename(pipe, at) })
	}
	return func() {
		for _, f := range back {
			if err := f(); err != nil {
				s.t.Error(err)
			}
		}
	}
}

// as runs a line as somebody by number: no name service is asked for who begins.
func (s *installed) as(host string, uid, gid uint32, home, line string) result {
	s.t.Helper()
	log := filepath.Join(s.dir, fmt.Sprintf("as.%d.out", uid))
	_ = os.Remove(log)
	d, err := s.hosts[host].start(&start{Args: []string{"/usr/bin/timeout", "120", "/bin/bash", "-c", "cd && " + line}, As: [2]uint32{uid, gid},
		// bash looks for a SHELL that it is not told in the name service.
		Env: []string{"PATH=" + path, "HOME=/home/" + home, "SHELL=/bin/bash"}, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	<-d.gone
	b, _ := os.ReadFile(log)
	return result{string(b), d.code}
}

// submissions submits one job after the other as ada, and says how long each took.
func (s *installed) submissions(host string, n int) (took []time.Duration) {
	s.t.Helper()
	r := s.as(host, 20001, 20001, "ada", fmt.Sprintf(`for i in $(seq %d); do a=$(date +%%s%%N); gsubmit -H -o /dev/null --wrap true >/dev/null || echo failed; b=$(date +%%s%%N); echo $((b-a)); done`, n))
	for _, f := range strings.Fields(r.out) {
		ns, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			s.t.Fatalf("a submission on %s: %s", host, r.out)
		}
		took = append(took, time.Duration(ns))
	}
	if len(took) != n || r.code != 0 {
		s.t.Fatalf("%d submissions on %s: %+v", n, host, r)
	}
	slices.Sort(took)
	return took
}

// TestPeopleOfADirectory installs a site by the book whose people are in a directory alone: they submit, are in their groups and
// accounts, administer, have reservations, log in to nodes and at the page. Then the directory hangs (for a minute, in CI for three
// seconds): who is known notices nothing, what runs runs on, and who is not known is told why within five seconds.
func TestPeopleOfADirectory(t *testing.T) {
	s := site(t, manner{directory: true}, "head", "n1", "login1")
	blocks := s.blocks("docs/operations.md", "Install")
	more := `printf 'web_listen = "127.0.0.1:7421"\n[[account]]\nname = "proj"\nusers = ["ada", "LAB\\\\uwe"]\n[[account]]\nname = "lab"\nusers = ["bob", "ina@example.org", "` + longest + `", "nina"]\n' >> /etc/gangd/gangd.toml`
	s.follow("head", slices.Insert(slices.Clone(blocks[0]), len(blocks[0])-1, more))
	s.until("gangd answers", func() bool { return s.sh("head", "root", "gctl ping").code == 0 })
	s.follow("n1", blocks[1])
	s.follow("n1", blocks[2])
	s.follow("login1", s.blocks("docs/operations.md", "Login hosts")[0])
	s.follow("login1", blocks[2])
	s.until("the node is up", func() bool { return s.sh("login1", "ada", "gctl ping").has("1 of 1 node") })

	expect := func(what string, r result, code int, text ...string) {
		t.Helper()
		for _, want := range text {
			if r.code != code || !r.has(want) {
				t.Errorf("%s: %+v, want %d and %q", what, r, code, want)
			}
		}
	}
	// Submission, names, groups and accounts.
	expect("a job of ada's", s.sh("login1", "ada", "grun sh -c 'id -un; id -Gn'"), 0, "ada\nada proj\n")
	expect("her account", s.sh("login1", "ada", "gsubmit -H -o /dev/null --wrap true && gqueue -h -o '%u|%a' && gcancel --me"), 0, "ada|proj")
	expect("of Slurm's name", s.sh("login1", "ada", "sbatch -H --wrap true && squeue -h -u ada -o %u && scancel -u ada"), 0, "ada\n")
	expect("an account of others", s.sh("login1", "bob", "gsubmit -A proj --wrap true"), 1, "account proj is not open to bob")
	expect("a domain's user", s.as("login1", 50002, 50001, "uwe", "grun sh -c 'id -un; id -Gn' && gsubmit -H -o /dev/null --wrap true && gqueue -h --me -o '%u|%a' && gcancel --me"), 0, "LAB\\uwe\nlab proj\n", "LAB\\uwe|proj")
	expect("one with a domain", s.as("login1", 50003, 50001, "ina", "grun id -un"), 0, "ina@example.org\n")
	expect("one of 51 characters", s.as("login1", 50004, 50001, "longest", "grun id -un"), 0, longest+"\n")
	// Administration.
	expect("an admin", s.sh("head", "ada", "gctl node drain n1 --reason=x && gctl node resume n1 && gctl ping"), 0, "1 of 1 node")
	expect("no admin", s.sh("head", "bob", "gctl node drain n1 --reason=x"), 1, "not allowed: node-drain")
	// A reservation.
	expect("a reservation", s.sh("head", "root", "gctl create reservation r1 starttime=now duration=60 nodes=n1 users='LAB\\uwe,bob'"), 0, "r1")
	expect("in it", s.sh("login1", "bob", "grun --reservation=r1 -t 1 id -un"), 0, "bob\n")
	expect("by a domain's user", s.as("login1", 50002, 50001, "uwe", "grun --reservation=r1 -t 1 id -un"), 0, "LAB\\uwe\n")
	expect("whose it is not", s.sh("login1", "ada", "gsubmit --reservation=r1 --wrap true"), 1, "ada")
	expect("of somebody whom nobody knows", s.sh("head", "root", "gctl create reservation r2 starttime=now duration=60 nodes=n1 users=nobodyatall"), 1, "nobodyatall")
	expect("its end", s.sh("head", "root", "gctl delete reservation r1; gctl show reservation"), 0, "")
	// Logins to a node: into a job of one's own, and nowhere else.
	adopt := func(user string) result {
		return s.sh("n1", "root", "PAM_USER='"+user+"' PAM_TYPE=account PAM_SERVICE=sshd gadopt")
	}
	if r := adopt("bob"); r.code == 0 {
		t.Errorf("bob has no job on n1, and is let in: %+v", r)
	}
	expect("who may", s.sh("n1", "root", "PAM_USER=ada PAM_TYPE=account gadopt --allow-groups=proj; PAM_USER='LAB\\uwe' PAM_TYPE=account gadopt --allow-groups=proj"), 0, "")
	if r := s.sh("n1", "root", "PAM_USER=bob PAM_TYPE=account gadopt --allow-groups=proj"); r.code == 0 {
		t.Errorf("bob is not in proj: %+v", r)
	}
	// The page.
	link := strings.TrimSpace(s.sh("head", "ada", "gctl web").out)
	_, query, _ := strings.Cut(link, "/login?")
	page := `get() { exec 3<>/dev/tcp/127.0.0.1/7421; printf "GET $1 HTTP/1.1\r\nHost: 127.0.0.1:7421\r\nConnection: close\r\n$2\r\n" >&3; cat <&3; }; `
	if r := s.sh("head", "bob", page+`c=$(get '/login?`+query+`' | sed -n 's/^Set-Cookie: \([^;]*\).*/\1/ip' | head -1); get /whoami "Cookie: $c\r\n"`); !r.has(`"ada"`) {
		t.Errorf("the page: %q %+v", link, r)
	}

	// What runs while the directory hangs.
	id := strings.TrimSpace(s.sh("login1", "ada", "gsubmit --parsable -o /dev/null --wrap='sleep 600'").out)
	running := func() string {
		return s.as("head", 20001, 20001, "ada", "gqueue -h -o '%t|%N' -j "+id+"; gctl show job "+id+" | grep -o 'Epoch=[0-9]*'").out
	}
	s.until("a job runs", func() bool { return running() == "R|n1\nEpoch=1\n" })
	n, hangs := 20, 3*time.Second
	if isLong() {
		n, hangs = 60, 60*time.Second
	}
	const wide = 100 * time.Millisecond
	idle := map[string][]time.Duration{}
	for _, host := range []string{"head", "login1"} {
		idle[host] = s.submissions(host, n)
	}
	mend := s.hang()
	defer func() {
		if mend != nil {
			mend()
		}
	}()
	began := time.Now()
	var late []string
	told := false
	for rounds := 0; rounds == 0 || time.Since(began) < hangs; rounds++ {
		for _, host := range []string{"head", "login1"} {
			took := s.submissions(host, n)
			t.Logf("%s after it hangs, on %s: idle p50 %s p90 %s most %s, now p50 %s p90 %s most %s", time.Since(began).Round(time.Second), host, idle[host][n/2], idle[host][n*9/10], idle[host][n-1], took[n/2], took[n*9/10], took[n-1])
			if took[n/2] > idle[host][n/2]+wide || isLong() && took[n*9/10] > idle[host][n*9/10]+wide { // the last ones say what else this machine does
				late = append(late, fmt.Sprintf("on %s: half of them %s and nine of ten %s, idle %s and %s", host, took[n/2], took[n*9/10], idle[host][n/2], idle[host][n*9/10]))
			}
		}
		for _, host := range []string{"head", "login1"} {
			asked := time.Now()
			r := s.as(host, 50005, 50001, "nina", "gsubmit -o /dev/null --wrap true")
			if took := time.Since(asked); r.code == 0 || !r.has("directory of users does not answer") || took > 5*time.Second {
				t.Errorf("somebody whom nobody knows yet, on %s: %+v after %s", host, r, took)
			}
			told = true
		}
		if got := running(); got != "R|n1\nEpoch=1\n" {
			t.Errorf("what ran is %q", got)
		}
	}
	tally.Checked(t, "submissions of known people while the directory hangs, more than 100 ms above idle", late...)
	mend()
	mend = nil
	if !told {
		t.Error("nobody asked")
	}
	s.until("nina is known", func() bool { return s.as("login1", 50005, 50001, "nina", "gsubmit -o /dev/null --wrap true").code == 0 })
	expect("nina's job", s.as("login1", 50005, 50001, "nina", "grun id -un"), 0, "nina\n")
	if got := running(); got != "R|n1\nEpoch=1\n" {
		t.Errorf("what ran is %q", got)
	}
	s.sh("head", "root", "gcancel --now -u ada,nina")
	s.until("nothing runs", func() bool { return s.sh("head", "root", "gqueue -h -t R,CG").out == "" })
}
