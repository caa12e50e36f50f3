package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// A site from nothing: tokens, joins over TLS, a gang over both nodes, and all that must
// be refused on the way.
func TestSiteJoinsAndRuns(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil, "admins = [\""+me(t)+"\"]")
	for _, n := range []string{"n1", "n2"} {
		s.node(n, `cards = "none"`, "cpus = 1", "min_uid = 0")
	}
	line := s.line()
	conf := func(n string) string { return "--config=" + filepath.Join(s.dir, n+".toml") }
	if out := s.must("gnoded", "join", conf("n1"), line); !strings.HasPrefix(out, "joined as n1, until ") {
		t.Errorf("join: %q", out)
	}
	const spent = "gnoded: this token is not valid (any more); ask an admin for a new line: gangd token new\n"
	if _, errs, code := s.run("gnoded", "join", conf("n2"), line); code != api.ExitRefused || errs != spent {
		t.Errorf("a used token: exit %d, %q", code, errs)
	}
	const taken = "gnoded: a node n1 has joined before; to let it join again: gangd token new --node=n1\n"
	s.node("thief", `cards = "none"`)
	if _, errs, code := s.run("gnoded", "join", conf("thief"), "--set=name=n1", s.line()); code != api.ExitRefused || errs != taken {
		t.Errorf("a taken name: exit %d, %q", code, errs)
	}
	if _, errs, code := s.run("gnoded", conf("n2")); code != api.ExitRefused || errs != "gnoded: this node has not joined a cluster; run: gnoded join LINE, with a line from gangd token new\n" {
		t.Errorf("not joined: exit %d, %q", code, errs)
	}
	s.must("gnoded", "join", conf("n2"), s.line("--node=n2"))
	s.up("n1")
	s.up("n2")

	where := filepath.Join(s.tmp, "where")
	id := s.submit("--size=2", "--wrap", "echo $GANG_RANK $SLURMD_NODENAME >> "+where)
	s.wait(id, api.JobCompleted)
	got := lines(t, where)
	slices.Sort(got)
	if len(got) != 2 || got[0][:2] != "0 " || got[1][:2] != "1 " || got[0][2:] == got[1][2:] {
		t.Errorf("the ranks ran at %q", got)
	}
}

// kill -9 of gangd leaves a stale socket and a running gang; the next gangd takes both
// over, and the nodes come back by themselves.
func TestSiteSurvivesItsController(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil, "admins = [\""+me(t)+"\"]")
	for _, n := range []string{"n1", "n2"} {
		s.node(n, `cards = "none"`, "cpus = 1", "min_uid = 0")
		s.must("gnoded", "join", "--config="+filepath.Join(s.dir, n+".toml"), s.line())
		s.up(n)
	}
	go1 := filepath.Join(s.tmp, "go")
	id := s.submit("--size=2", "--wrap", "until [ -e "+go1+" ]; do sleep 0.05; done")
	before := s.wait(id, api.JobRunning)
	s.kill("gangd", syscall.SIGKILL)
	if _, err := os.Stat(filepath.Join(s.dir, "run", "gangd.sock")); err != nil {
		t.Fatalf("no stale socket to start over: %v", err)
	}
	if _, errs, code := s.run("gqueue"); code != api.ExitUnreachable {
		t.Errorf("gqueue without gangd: exit %d, %s", code, errs)
	}
	s.gangd()
	s.untilNode("n1", "up")
	s.untilNode("n2", "up")
	if j := s.job(id); j.State != api.JobRunning || j.Epoch != before.Epoch {
		t.Errorf("job %d: %s epoch %d, was in epoch %d", id, j.State, j.Epoch, before.Epoch)
	}
	if err := os.WriteFile(go1, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.wait(id, api.JobCompleted)
}

// A second gnoded on a host, started by hand, say, ends with the reason, and the relay of the first goes on.
func TestSiteSecondGnoded(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil, "admins = [\""+me(t)+"\"]")
	run := filepath.Join(s.dir, "n", "run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(run, "gangd.sock")
	s.node("n1", `cards = "none"`, "cpus = 1", "min_uid = 0", fmt.Sprintf("socket = %q", socket))
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	first, err := os.Lstat(socket)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		_, errs, code := s.run("gnoded", "--config="+filepath.Join(s.dir, "n1.toml"))
		if now, err := os.Lstat(socket); code != api.ExitRefused || !strings.Contains(errs, "is in use by process "+strconv.Itoa(s.daemons["n1"].Process.Pid)) || err != nil || !os.SameFile(first, now) {
			t.Fatalf("exit %d, %s; the socket: %v", code, errs, err)
		}
	}
}

// A revoked node's session ends at once and does not come back; the rest goes on.
func TestSiteRevokes(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil, "admins = [\""+me(t)+"\"]")
	s.node("n1", `cards = "none"`, "cpus = 1", "min_uid = 0")
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	s.must("gangd", "token", "revoke", "n1")
	s.until("n1 is not up", func() bool { return s.nodeState("n1") != "up" })
	log := filepath.Join(s.dir, "n1.log")
	s.until("n1 was refused", func() bool {
		b, _ := os.ReadFile(log)
		return strings.Contains(string(b), "bad certificate") || strings.Contains(string(b), "revoked")
	})
	if got := s.nodeState("n1"); got == "up" {
		t.Errorf("n1 is %s again", got)
	}
	s.kill("n1", syscall.SIGTERM)
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line("--node=n1"))
	s.up("n1")
}

// The commands of a login host's users, through its relay.
func TestSiteLoginHost(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := startSite(t, trial.Account(t, "bin"), `admins = ["games"]`)
	s.node("n1", `cards = "none"`, "cpus = 4", "min_uid = 2")
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	login := filepath.Join(s.dir, "l")
	socket := filepath.Join(login, "run", "gangd.sock")
	s.node("login", fmt.Sprintf("socket = %q", socket), "login = true")
	conf := "--config=" + filepath.Join(s.dir, "login.toml")
	if out := s.must("gnoded", "join", conf, s.line("--login")); !strings.HasPrefix(out, "joined as login host login, until ") {
		t.Errorf("join: %q", out)
	}
	s.spawn("login", "gnoded", nil, conf)
	s.until("the relay is up", func() bool { c, err := net.Dial("unix", socket); _ = err; return err == nil && c.Close() == nil })

	ada := s.person("nobody").at(login)
	id := ada.submit("--wrap", "id -un; sleep 0.1")
	ada.must("gqueue", "-j", fmt.Sprint(id))
	if got := ada.must("glog", "-f", fmt.Sprint(id)); got != "nobody\n" {
		t.Errorf("glog -f through the relay: %q", got)
	}
	if out, errs, code := ada.run("gsubmit", "--wait", "--wrap", "exit 7"); code != 7 {
		t.Errorf("gsubmit --wait through the relay: exit %d, %s%s", code, out, errs)
	}
	ada.refused(api.ExitRefused, "gctl: not allowed: node-drain; root and the users of the setting admins may, on the controller's host", "gctl", "node", "drain", "n1", "--reason=x")
	admin := s.person("games").at(login)
	admin.must("gqueue")
	// Here an ordinary user, on the controller's host an admin.
	held := ada.submit("-H", "--wrap", "true")
	admin.refused(api.ExitRefused, fmt.Sprintf("gcancel: job %d belongs to nobody: only its owner or an admin may cancel it", held), "gcancel", fmt.Sprint(held))
	admin.refused(api.ExitRefused, "gctl: not allowed: node-drain; through a relay an admin is an ordinary user; use the controller's host", "gctl", "node", "drain", "n1", "--reason=x")
	admin.at(s.dir).must("gcancel", fmt.Sprint(held))
	root := &person{s: s, name: "root", cred: &syscall.Credential{}, dir: login, home: s.tmp}
	root.refused(api.ExitRefused, "gqueue: no relay speaks for root; run this on the controller's host, or as a user", "gqueue")

	// The login host shows up nowhere as a node.
	if got := s.nodeState("login"); got != "" {
		t.Errorf("the login host is a node, %s", got)
	}
	// Its certificate runs nothing, whatever its configuration says.
	_, errs, code := s.run("gnoded", conf, "--set=login=false")
	want := "gnoded: " + filepath.Join(s.dir, "login", "tls") + " holds a login host's certificate, which can't run jobs; set login = true, or join again with a line from gangd token new --node=login\n"
	if code != api.ExitRefused || errs != want {
		t.Errorf("as a node: exit %d, %q", code, errs)
	}
	// And the other way round.
	if _, errs, code = s.run("gnoded", "--login", "--config="+filepath.Join(s.dir, "n1.toml"), "--set=socket="+filepath.Join(s.dir, "x.sock")); code != api.ExitRefused ||
		!strings.Contains(errs, "holds a node's certificate, and this is to be a login host") {
		t.Errorf("a node as login host: exit %d, %q", code, errs)
	}

	s.kill("gangd", syscall.SIGKILL)
	// The relay's open connections learn of the end one by one.
	s.until("the relay dials anew", func() bool {
		_, errs, _ := ada.run("gqueue")
		return strings.Contains(errs, "connection refused")
	})
	ada.refused(api.ExitUnreachable, "gqueue: can't reach the controller at "+s.address+": connect: connection refused; is gangd running there? (gctl ping)", "gqueue")
	s.gangd()
	ada.must("gqueue")
	s.must("gangd", "token", "revoke", "login")
	if _, errs, code := ada.run("gqueue"); code == 0 {
		t.Errorf("after the revocation: exit %d, %s", code, errs)
	}
}

// Several users on one site: each job is its owner's, in what it may do and who may touch it.
func TestSiteUsers(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := startSite(t, trial.Account(t, "bin"), `retry_backoff = "300ms"`)
	s.node("n1", `cards = "none"`, "cpus = 4", "min_uid = 2", fmt.Sprintf("socket = %q", filepath.Join(s.dir, "c", "run", "gangd.sock")))
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	ada, bob, daemon := s.person("nobody"), s.person("games"), s.person("daemon")

	t.Run("runs as its user", func(t *testing.T) {
		id := ada.submit("-o", filepath.Join(ada.home, "new", "%j.out"), "--wrap", "id -u; id -g; id -G; grep NoNewPrivs /proc/self/status; touch made; pwd")
		s.wait(id, api.JobCompleted)
		path := filepath.Join(ada.home, "new", fmt.Sprintf("%d.out", id))
		want := []string{fmt.Sprint(ada.cred.Uid), fmt.Sprint(ada.cred.Gid), fmt.Sprint(ada.cred.Gid), "NoNewPrivs:\t1", ada.home}
		if got := lines(t, path); !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		for _, f := range []string{path, filepath.Join(ada.home, "made"), filepath.Dir(path)} {
			st, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if sys := st.Sys().(*syscall.Stat_t); sys.Uid != ada.cred.Uid || sys.Gid != ada.cred.Gid {
				t.Errorf("%s is of %d:%d", f, sys.Uid, sys.Gid)
			}
		}
	})
	t.Run("root's paths", func(t *testing.T) {
		secret := filepath.Join(s.dir, "root-only")
		if err := os.Mkdir(secret, 0o700); err != nil {
			t.Fatal(err)
		}
		ada.refused(2, "gsubmit: --output="+secret+"/out: you can't write in "+secret+" (permission denied); choose a directory of yours: --output="+ada.home+"/gang-%j.out",
			"gsubmit", "-o", filepath.Join(secret, "out"), "--wrap", "true")
		// The node asks the kernel too, as the user, when the directory has changed meanwhile.
		if err := os.Chown(secret, int(ada.cred.Uid), int(ada.cred.Gid)); err != nil {
			t.Fatal(err)
		}
		id := ada.submit("-H", "-o", filepath.Join(secret, "out"), "--wrap", "true")
		if err := os.Chown(secret, 0, 0); err != nil {
			t.Fatal(err)
		}
		ada.must("gctl", "release", fmt.Sprint(id))
		j := s.wait(id, api.JobFailed)
		if j.Cause != api.CauseLaunch || !strings.HasPrefix(j.Verdict, "n1: ") || !strings.Contains(j.Verdict, filepath.Join(secret, "out")+": permission denied") {
			t.Errorf("%s: %q", j.Cause, j.Verdict)
		}
		if left, _ := os.ReadDir(secret); len(left) != 0 {
			t.Errorf("in root's directory: %v", left)
		}
	})
	t.Run("others", func(t *testing.T) {
		id := ada.submit("--wrap", "echo secret; sleep 600")
		s.wait(id, api.JobRunning)
		n := fmt.Sprint(id)
		of := "job " + n + " belongs to nobody: only its owner or an admin may "
		bob.refused(1, "gcancel: "+of+"cancel it", "gcancel", n)
		bob.refused(1, "gcancel: "+of+"signal it", "gcancel", "--signal=USR1", n)
		bob.refused(1, "gctl: "+of+"hold it", "gctl", "hold", n)
		bob.refused(1, "gctl: "+of+"requeue it", "gctl", "requeue", n)
		bob.refused(1, "glog: "+of+"read its output", "glog", n)
		bob.refused(1, "gangd: not allowed: token; root and the users of the setting admins may, on the controller's host", "gangd", "token", "new")
		bob.refused(1, "gangd: not allowed: backup; root and the users of the setting admins may, on the controller's host", "gangd", "backup", filepath.Join(bob.home, "b"))
		if out := bob.must("gqueue", "-h", "-o", "%i %u %t"); out != n+" nobody R\n" {
			t.Errorf("what bob sees: %q", out)
		}
		if got := s.job(id).State; got != api.JobRunning {
			t.Errorf("after all that: %s", got)
		}
		// On the compute node ada may speak, as long as she has a job there; bob may not.
		node := filepath.Join(s.dir, "c")
		ada.at(node).must("gqueue")
		bob.at(node).refused(1, "gqueue: not allowed: list; n1 is a compute node: it speaks only for users with a job on it; use a login host", "gqueue")
		s.must("gcancel", n) // root
		s.wait(id, api.JobCancelled)
		ada.at(node).refused(1, "gqueue: not allowed: list; n1 is a compute node: it speaks only for users with a job on it; use a login host", "gqueue")
	})
	t.Run("root submits as another", func(t *testing.T) {
		root := &person{s: s, name: "root", cred: &syscall.Credential{}, dir: s.dir, home: ada.home}
		names := filepath.Join(s.dir, "names")
		s.must("gangd", "slurm-links", names)
		sbatch, srun := s.fromBin(names, "sbatch"), s.fromBin(names, "srun")
		submitted := func(args ...string) int64 {
			t.Helper()
			id, err := strconv.ParseInt(strings.TrimSpace(root.must(sbatch, append([]string{"--parsable", "-n1"}, args...)...)), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		uid, gid := fmt.Sprint(ada.cred.Uid), fmt.Sprint(ada.cred.Gid)
		for _, who := range []string{"nobody", uid} {
			id := submitted("--uid="+who, "-o", "as-%j.out", "--wrap", "id -u; id -g; id -G; touch made-as; stat -c %u made-as; rm made-as")
			if j := s.wait(id, api.JobCompleted); j.User != "nobody" {
				t.Errorf("--uid=%s: the job is %s's", who, j.User)
			}
			if got, want := lines(t, filepath.Join(ada.home, fmt.Sprintf("as-%d.out", id))), []string{uid, gid, gid, uid}; !slices.Equal(got, want) {
				t.Errorf("--uid=%s: %q, want %q", who, got, want)
			}
		}
		held := submitted("--uid=nobody", "-H", "--wrap", "true")
		bob.refused(1, fmt.Sprintf("gcancel: job %d belongs to nobody: only its owner or an admin may cancel it", held), "gcancel", fmt.Sprint(held))
		ada.must("gcancel", fmt.Sprint(held))
		if out := root.must(srun, "-n1", "--uid=nobody", "id", "-un"); out != "nobody\n" {
			t.Errorf("srun --uid=nobody: %q", out)
		}
		bob.refused(255, "sbatch: error: --uid only permitted by root user\nsbatch: gangd: --uid=nobody: only root submits for somebody else; run it as that user: sudo -u USER sbatch", sbatch, "-n1", "--uid=nobody", "--wrap", "true")
		bob.refused(255, "srun: error: --uid only permitted by root user", srun, "-n1", "--uid=nobody", "true")
	})
	t.Run("below min_uid", func(t *testing.T) {
		id := daemon.submit("--wrap", "true")
		shown := false // while it waits for its next try
		reason := "n1: user daemon: uid 1 is below 2, the least that runs jobs on this node"
		s.until("the refusal is told", func() bool {
			shown = shown || strings.Contains(daemon.must("gqueue", "--why", fmt.Sprint(id)), "last try: "+reason)
			return shown && strings.Contains(daemon.must("gctl", "events", fmt.Sprint(id)), reason)
		})
		j := s.wait(id, api.JobFailed)
		if j.Cause != api.CauseLaunch || j.Verdict != reason {
			t.Errorf("%s: %q, want %q", j.Cause, j.Verdict, reason)
		}
		if out := daemon.must("gqueue", "--why", fmt.Sprint(id)); !strings.Contains(out, ": FAILED: "+reason) {
			t.Errorf("gqueue --why: %s", out)
		}
		if got := s.nodeState("n1"); got != "up" {
			t.Errorf("n1 is %s: a user it does not take must not drain it", got)
		}
	})
}

// A backup put back in the state's place: the nodes know more than it, so gangd holds.
func TestSiteBackup(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil, "admins = [\""+me(t)+"\"]")
	s.node("n1", `cards = "none"`, "cpus = 1", "min_uid = 0")
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	kept := s.submit("-H", "--wrap", "true")
	copied, queue := filepath.Join(s.dir, "backup"), s.must("gqueue", "--json")
	s.must("gangd", "backup", copied)
	restore := func(code int, want string, args ...string) {
		t.Helper()
		out, errs, got := s.run("gangd", append([]string{"restore", "--config=" + filepath.Join(s.dir, "gangd.toml")}, args...)...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Errorf("gangd restore %v: exit %d, want %d with %q\n%s%s", args, got, code, want, out, errs)
		}
	}
	restore(1, "which is a gangd that runs: stop it first", "--dry-run", copied)
	lost := s.submit("-H", "--wrap", "true")
	// A node learns how far the store is when its session opens.
	s.kill("n1", syscall.SIGTERM)
	s.up("n1")
	if code := s.kill("gangd", syscall.SIGTERM); code != 0 {
		t.Errorf("gangd ended with %d after TERM", code)
	}
	restore(1, "the backup can't be used", filepath.Join(s.dir, "no such"))
	restore(0, fmt.Sprintf(": jobs %d to %d are not known any more", lost, lost), "--dry-run", copied)
	restore(1, "nothing was changed: the store in", copied)
	restore(0, "done     what was there is in ", "--discard", copied)
	s.gangd()
	s.until("gangd is on hold", func() bool {
		out, _, _ := s.run("gctl", "ping")
		return strings.Contains(out, "HOLD: the store is at commit ") && strings.Contains(out, "but node n1 has seen commit ")
	})
	if j := s.job(kept); j.State != api.JobPending {
		t.Errorf("job %d is %s", kept, j.State)
	}
	if now := s.must("gqueue", "--json"); now != queue {
		t.Errorf("the queue is another one:\n%s\nin place of\n%s", now, queue)
	}
	if _, errs, code := s.run("gqueue", "-j", fmt.Sprint(lost)); code != api.ExitNotFound {
		t.Errorf("a job from after the backup: exit %d, %s", code, errs)
	}
	if _, errs, code := s.run("gsubmit", "--wrap", "true"); code != api.ExitRefused || !strings.Contains(errs, "on hold") {
		t.Errorf("a submission on hold: exit %d, %s", code, errs)
	}
	if code := s.kill("gangd", syscall.SIGTERM); code != 0 {
		t.Errorf("gangd ended with %d after TERM on hold", code)
	}
	s.gangd("--accept-store")
	s.untilNode("n1", "up") // the certificate authority is the same
	id := s.submit("--wrap", "true")
	if id <= lost {
		t.Errorf("id %d was given out again, or could be: %d is new", lost, id)
	}
	s.wait(id, api.JobCompleted)
	s.must("gangd", "verify")
}
