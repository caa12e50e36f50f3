package noded

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/adopt"
	"gangd/pkg/node/proc"
)

// TestAdopt: a login goes into the newest job of its user, or into that which he asks for, and ends with it;
// who has none is refused and is where he was; root and the site's groups pass.
func TestAdopt(t *testing.T) {
	needRoot(t)
	if proc.Detect("").Kind == proc.Group {
		t.Skip("no control groups here")
	}
	const nobody = 65534
	base, err := os.MkdirTemp("", "gna")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	work, home := filepath.Join(base, "w"), filepath.Join(base, "home")
	for _, d := range []string{work, home, home + "/.gang"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(d, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Chmod(base, 0o755)
	_ = os.Chmod(filepath.Dir(program), 0o755)
	c := newController(t)
	o := c.options(filepath.Join(base, "s"))
	o.SingleUser, o.CPUs, o.CPUSets = false, 0, CPUs{Bind: true}
	c.run(o)
	keys := map[int64]api.MemberKey{}
	for job := int64(1); job <= 2; job++ {
		keys[job] = c.desire(job, 1, 1, "#!/bin/sh\ntrap '' TERM\ntouch up.$GANG_JOB_ID\nwhile :; do sleep 1000; done\n", func(a *api.Assignment, s *api.Spec) {
			s.WorkDir, a.Body.User, a.Body.UID, a.Body.GID = work, "nobody", nobody, nobody
		})
		c.untilPhase(keys[job], api.PhaseRunning)
	}
	session := func() int {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() { _ = cmd.Wait(); close(gone) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-gone })
		return cmd.Process.Pid
	}
	in := func(pid int) string {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		return string(b)
	}
	login := func(change ...func(*adopt.Login)) (int, *api.MemberKey, error) {
		l := &adopt.Login{Name: "nobody", UID: nobody, GID: nobody, Home: home, Groups: []string{"nogroup"}, PID: session(), States: []string{o.StateDir}}
		for _, f := range change {
			f(l)
		}
		key, err := adopt.Run(l)
		return l.PID, key, err
	}
	ask := func(text string) {
		if err := os.WriteFile(filepath.Join(home, adopt.AskFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Chown(filepath.Join(home, adopt.AskFile), nobody, nobody)
	}
	first, key, err := login()
	if err != nil || key == nil || *key != keys[2] || !strings.Contains(in(first), "-2.1.") {
		t.Fatalf("%v, %v, in %s; want job 2", key, err, in(first))
	}
	if all, err := proc.Affinity(0); err != nil || len(all) > 1 {
		if its, err := proc.Affinity(first); err != nil || len(its) != 1 {
			t.Errorf("the session of a job of one CPU has %s: %v", its, err)
		}
	}
	ask("1\n")
	if pid, key, err := login(); err != nil || key == nil || *key != keys[1] || !strings.Contains(in(pid), "-1.1.") {
		t.Errorf("asked for job 1: %v, %v, in %s", key, err, in(pid))
	}
	refused := func(name, want string, change ...func(*adopt.Login)) {
		t.Helper()
		pid, key, err := login(change...)
		if err == nil || err.Error() != want || key != nil || in(pid) != in(os.Getpid()) {
			t.Errorf("%s: %v, %v, in %s; want %s", name, key, err, in(pid), want)
		}
	}
	ask("77")
	refused("another's", "job 77, which ~/.gang/adopt names, is not running on this node: remove the file, or write 2 into it")
	refused("no job", "nobody has no running job on this node", func(l *adopt.Login) { l.UID = 12345 })
	// The user's file is read as he is: it leads to nothing of root's.
	secret := filepath.Join(base, "secret")
	if err := os.WriteFile(secret, []byte("77"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(home, adopt.AskFile))
	if err := os.Symlink(secret, filepath.Join(home, adopt.AskFile)); err != nil {
		t.Fatal(err)
	}
	if _, key, err := login(); err != nil || *key != keys[2] {
		t.Errorf("a link to what he can't read: %v, %v", key, err)
	}
	for name, f := range map[string]func(*adopt.Login){"root": func(l *adopt.Login) { l.UID = 0 }, "a group": func(l *adopt.Login) { l.Pass = []string{"staff", "nogroup"} }} {
		if pid, key, err := login(f); err != nil || key != nil || in(pid) != in(os.Getpid()) {
			t.Errorf("%s: %v, %v, in %s", name, key, err, in(pid))
		}
	}
	// One that is being stopped takes nobody in.
	waitFile(t, filepath.Join(work, "up.2"))
	c.stop(keys[2], patience)
	c.until("job 2 to be stopping", func() bool { return c.latest[keys[2]].Stopping != "" })
	_ = os.Remove(filepath.Join(home, adopt.AskFile))
	if _, key, err := login(); err != nil || *key != keys[1] {
		t.Errorf("while job 2 is stopped: %v, %v; want job 1", key, err)
	}
	c.stop(keys[2], 0)
	c.untilPhase(keys[2], api.PhaseStopped)
	if syscall.Kill(first, 0) == nil {
		if s, ok := proc.ReadStat(first); ok && !s.Dead() {
			t.Error("the session outlives its job")
		}
	}
	// Nor does one that has ended by itself, and that the controller has not heard out.
	ended := c.desire(3, 1, 1, "#!/bin/sh\n", func(a *api.Assignment, s *api.Spec) {
		s.WorkDir, a.Body.User, a.Body.UID, a.Body.GID = work, "nobody", nobody, nobody
	})
	c.untilPhase(ended, api.PhaseStopped)
	_ = os.Remove(filepath.Join(home, adopt.AskFile))
	if _, key, err := login(); err != nil || *key != keys[1] {
		t.Errorf("after the end of job 2: %v, %v; want job 1", key, err)
	}
}

// sshdScript runs an sshd of its own in a mount namespace, with a user database and PAM of its own.
const sshdScript = `set -e
cd $1; mount --make-rprivate /
mkdir upper work run; mount -t overlay -o lowerdir=/etc,upperdir=$1/upper,workdir=$1/work over /etc
mount --bind $1/run /run; mkdir /run/sshd
sed -i "s|^nobody:.*|nobody:x:65534:65534:nobody:$2:/bin/sh|; /^sshd:/d" /etc/passwd
echo "sshd:x:64000:65534::/run/sshd:/usr/sbin/nologin" >> /etc/passwd
printf 'auth required pam_deny.so\naccount required pam_exec.so quiet stdout %s --state-dir=%s\nsession required pam_permit.so\n' $1/gadopt $3 > /etc/pam.d/sshd
ssh-keygen -q -t ed25519 -N "" -f host; ssh-keygen -q -t ed25519 -N "" -f user; cp user.pub keys; chmod 644 keys
printf 'Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/keys\nUsePAM yes\nStrictModes no\nPidFile none\n' $4 $1 $1 > config
exec "$5" -D -e -f $1/config
`

// TestSSHLogin: through a real sshd, a session is inside the job, is refused without one, and ends with it.
func TestSSHLogin(t *testing.T) {
	needRoot(t)
	if proc.Detect("").Kind == proc.Group {
		t.Skip("needs control groups")
	}
	const sshd = "/usr/sbin/sshd"
	tool.Need(t, sshd, "ssh")
	base, err := os.MkdirTemp("", "gns")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	_ = os.Chmod(base, 0o755)
	_ = os.Chmod(filepath.Dir(program), 0o755)
	const nobody = 65534
	work := filepath.Join(base, "w")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Chown(work, nobody, nobody)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(base, "gadopt"), "gangd/cmd/gadopt").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := newController(t)
	o := c.options(filepath.Join(base, "s"))
	o.SingleUser = false
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\nexec sleep 1000\n", func(a *api.Assignment, s *api.Spec) {
		s.WorkDir, a.Body.User, a.Body.UID, a.Body.GID = work, "nobody", nobody, nobody
	})
	c.untilPhase(k, api.PhaseRunning)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	server := exec.Command("unshare", "-m", "sh", "-c", sshdScript, "sh", base, work, o.StateDir, port, sshd)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	ssh := func(command string) *exec.Cmd {
		return exec.Command("ssh", "-p", port, "-i", filepath.Join(base, "user"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
			"-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "nobody@127.0.0.1", command)
	}
	var out []byte
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if out, err = ssh("cat /proc/self/cgroup; touch " + work + "/up; id -u").Output(); err == nil || time.Now().After(end) {
			break
		}
	}
	if !strings.Contains(string(out), "-1.1.") || !strings.HasSuffix(string(out), "\n65534\n") {
		t.Fatalf("%v: the session is in %q", err, out)
	}
	long := ssh("touch " + work + "/long; sleep 1000")
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	waitFile(t, filepath.Join(work, "long"))
	c.stop(k, 0)
	c.untilPhase(k, api.PhaseStopped)
	if err := long.Wait(); err == nil {
		t.Error("a session went on to its end")
	}
	if out, err := ssh("echo in").CombinedOutput(); err == nil || strings.Contains(string(out), "in\n") {
		t.Errorf("without a job: %v, %q", err, out)
	}
}
