package shim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

func TestRefusals(t *testing.T) {
	cases := []struct {
		name  string
		set   func(s *Spec)
		whose api.Blame
		text  string // @ is the work dir
	}{
		{"no work dir", func(s *Spec) { s.WorkDir += "/missing" }, api.BlameFiles, "working directory: @/missing: no such file or directory"},
		{"work dir is a file", func(s *Spec) { s.WorkDir = "/dev/null" }, api.BlameFiles, "working directory: /dev/null is not a directory"},
		{"output is a directory", func(s *Spec) { s.Ranks[0].Output = s.WorkDir }, api.BlameFiles, "output of rank 0: @: is a directory"},
		{"output below a file", func(s *Spec) { s.Ranks[0].Output = "/dev/null/x/out" }, api.BlameFiles, "output of rank 0: /dev/null/x/out: not a directory"},
		{"fifo without a reader", func(s *Spec) {
			_ = syscall.Mkfifo(s.WorkDir+"/fifo", 0o600)
			s.Ranks[0].Output = s.WorkDir + "/fifo"
		}, api.BlameFiles, "output of rank 0: @/fifo: no such device or address"},
		{"no input", func(s *Spec) { s.Ranks[0].Input = s.WorkDir + "/in" }, api.BlameFiles, "input of rank 0: @/in: no such file or directory"},
		{"output is a running program", func(s *Spec) {
			s.Ranks[0].Output = running(t)
		}, api.BlameFiles, "output of rank 0: $: text file busy"},
		{"home not mounted", func(s *Spec) { s.Home, s.WorkDir = "/no/home", "/no/home/w" }, api.BlameSite,
			"working directory: /no/home/w: no such file or directory (the home directory /no/home is not there on this node)"},
		{"path too long", func(s *Spec) { s.WorkDir = "/" + strings.Repeat("x", 300) }, api.BlameJob, "working directory: /" + strings.Repeat("x", 300) + ": file name too long"},
		{"containment taken", func(s *Spec) { s.Containment = "jail" }, api.BlameNode, `unknown containment "jail": want cgroup2, cgroup1 or group`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := testSpec(t, 1)
			dir, kind := s.WorkDir, s.Containment
			c.set(s)
			conn, err := start(program, s, []byte("#!/bin/sh\n"))
			if err != nil {
				t.Fatal(err)
			}
			st := until(t, conn, api.PhaseReady, api.PhaseRefused)
			want := strings.NewReplacer("@", dir, "$", s.Ranks[0].Output).Replace(c.text)
			if st.Phase != api.PhaseRefused || st.Refusal.Text != want || st.Refusal.Blame != c.whose {
				t.Errorf("%s %+v, want %q %s", st.Phase, st.Refusal, want, c.whose)
			}
			for range conn.Answers() { // it exits by itself
			}
			if _, err := os.Stat(s.CgroupDir); s.CgroupDir != "" && err == nil {
				t.Error("the cgroup of a refused member is left")
			}
			s.Containment = kind // for the clean-up
		})
	}
}

// running is a program that runs until the test is over.
func running(t *testing.T) string {
	t.Helper()
	tool.Need(t, "sleep")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sleep")
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return path
}

// What goes wrong with the user's own files is never the node's fault alone.
func TestWhoseFaultAnErrorIs(t *testing.T) {
	for err, want := range map[error]api.Blame{
		syscall.ENOENT: api.BlameFiles, syscall.EACCES: api.BlameFiles, syscall.ETXTBSY: api.BlameFiles, syscall.EROFS: api.BlameFiles,
		syscall.ENOSPC: api.BlameFiles, syscall.EDQUOT: api.BlameFiles, syscall.EIO: api.BlameUnknown, syscall.ESTALE: api.BlameUnknown,
		syscall.ENOMEM: api.BlameUnknown, syscall.EMFILE: api.BlameUnknown, syscall.ENAMETOOLONG: api.BlameJob,
	} {
		if got := refusal(fmt.Errorf("output: %w", err)); got.Blame != want || got.Text != "output: "+err.Error() {
			t.Errorf("%v: %+v, want %s", err, got, want)
		}
	}
}

func TestLaunchErrors(t *testing.T) {
	cases := []struct {
		script string
		code   int
		text   string
	}{
		{"#!/no/such/interpreter\n", 127, "interpreter /no/such/interpreter of the script, or working directory @, does not exist"},
		{"#!/etc/passwd\n", 126, "interpreter /etc/passwd of the script can not be executed: permission denied"},
		{"#!/bin/sh\r\nexit 3\n", 3, ""}, // the kernel would look for "sh\r"
		{"exit 3\n", 3, ""},
		{"#! /usr/bin/env  sh\nexit 4\n", 4, ""},
	}
	for _, c := range cases {
		s := testSpec(t, 2)
		conn := startShim(t, s, c.script)
		_ = conn.Send(Command{Go: &Go{}})
		st := until(t, conn, api.PhaseStopped)
		for _, r := range st.Ranks {
			if want := strings.ReplaceAll(c.text, "@", s.WorkDir); !r.Exited || r.ExitCode != c.code || r.Error != want {
				t.Errorf("%q: %+v, want %d %q", c.script, r, c.code, want)
			}
		}
	}
}

func TestShebang(t *testing.T) {
	for text, want := range map[string][]string{
		"#!/bin/sh\n":               {"/bin/sh"},
		"#! /usr/bin/env  -S a b\n": {"/usr/bin/env", "-S a b"},
		"#!/bin/bash\t-l \r\nx":     {"/bin/bash", "-l"},
		"#!/bin/sh":                 {"/bin/sh"},
		"#!\n":                      {"/bin/sh"},
		"":                          {"/bin/sh"},
		"echo #!/bin/zsh\n":         {"/bin/sh"},
	} {
		if got := shebang(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	s := testSpec(t, 2)
	s.OpenMode, s.Umask = "truncate", 0o027
	shared := filepath.Join(s.WorkDir, "new/dirs/both")
	in := filepath.Join(s.WorkDir, "in")
	write(t, in, "hello\n")
	old := filepath.Join(s.WorkDir, "old")
	write(t, old, "what was there\n")
	for i := range s.Ranks {
		s.Ranks[i].Output, s.Ranks[i].Error, s.Ranks[i].Input = shared, old, ""
	}
	s.Ranks[0].Input = in
	s.Args = []string{"a b", "c"}
	c := startShim(t, s, "#!/bin/sh\ncat; echo \"$1|$2|$(umask)|$(pwd)\"; echo e >&2\n")
	if b, _ := os.ReadFile(old); len(b) == 0 {
		t.Error("truncated before go")
	}
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseStopped)
	line := "a b|c|0027|" + s.WorkDir + "\n"
	b, _ := os.ReadFile(shared)
	if got := string(b); len(got) != len("hello\n"+line+line) || strings.Count(got, line) != 2 || !strings.Contains(got, "hello\n") {
		t.Errorf("output %q", got)
	}
	if b, _ := os.ReadFile(old); string(b) != "e\ne\n" {
		t.Errorf("error output %q", b)
	}
	if st, _ := os.Stat(shared); st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", st.Mode())
	}
}

// asNobody makes a spec whose user is nobody. It needs root.
func asNobody(t testing.TB, n int) *Spec {
	if os.Getuid() != 0 {
		t.Skip("needs root: becomes another user")
	}
	dir, err := os.MkdirTemp("/tmp", "switch") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	_ = os.Chmod(dir, 0o755)
	home := filepath.Join(dir, "home")
	_ = os.Mkdir(home, 0o700)
	_ = os.Chown(home, 65534, 65534)
	s := testSpec(t, n)
	s.Dir, s.WorkDir = filepath.Join(dir, "m"), home
	s.SwitchUser, s.User, s.UID, s.GID, s.Groups = true, "nobody", 65534, 65534, []uint32{65534}
	for i := range s.Ranks {
		s.Ranks[i].Output = filepath.Join(home, "logs", fmt.Sprint(i))
	}
	return s
}

func TestSwitchUser(t *testing.T) {
	s := asNobody(t, 3)
	c := startShim(t, s, "#!/bin/sh\nid -u; id -G; pwd; grep NoNewPrivs /proc/self/status; cat ../m/spec.json 2>&1 >/dev/null; ls ../m 2>&1\n")
	_ = c.Send(Command{Go: &Go{}})
	st := until(t, c, api.PhaseStopped)
	want := "65534\n65534\n" + s.WorkDir + "\nNoNewPrivs:\t1\ncat: ../m/spec.json: Permission denied\nls: cannot open directory '../m': Permission denied\n"
	for i := range s.Ranks {
		if got := output(t, s, i); got != want {
			t.Errorf("rank %d: %q, want %q (%+v)", i, got, want, st.Ranks[i])
		}
		var f syscall.Stat_t
		if err := syscall.Stat(s.Ranks[i].Output, &f); err != nil || f.Uid != 65534 {
			t.Errorf("owner of output %d, %v", f.Uid, err)
		}
	}
}

// TestSwitchUserTouchesNothingAsRoot: what the user may not do is refused, although the
// shim could.
func TestSwitchUserTouchesNothingAsRoot(t *testing.T) {
	s := asNobody(t, 1)
	s.Ranks[0].Output = filepath.Join(filepath.Dir(s.Dir), "outside")
	conn, err := start(program, s, []byte("#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	st := until(t, conn, api.PhaseReady, api.PhaseRefused)
	want := "output of rank 0: " + s.Ranks[0].Output + ": permission denied"
	if st.Phase != api.PhaseRefused || st.Refusal.Blame != api.BlameFiles || st.Refusal.Text != want {
		t.Errorf("%s %+v, want %q", st.Phase, st.Refusal, want)
	}
	for range conn.Answers() {
	}
	if _, err := os.Stat(s.Ranks[0].Output); err == nil {
		t.Error("root made the file")
	}
}

// TestCheckIsKilled: the stage that is the user's waits in a file system of the user's own, and the user
// ends it. That is never the node's fault.
func TestCheckIsKilled(t *testing.T) {
	s := asNobody(t, 1)
	fuse, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fuse)
		s.WorkDir = filepath.Join(filepath.Dir(s.Dir), "hangs")
		_ = os.Mkdir(s.WorkDir, 0o755)
		err = unix.Mount("hangs", s.WorkDir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=65534,group_id=65534,allow_other", fuse))
	}
	if err != nil {
		t.Skipf("needs FUSE, for a file system that answers nothing: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.WorkDir, unix.MNT_DETACH) })
	conn, err := start(program, s, []byte("#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	killed := false
	for end := time.Now().Add(20 * time.Second); !killed && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		killed = killCheck()
	}
	if !killed {
		t.Fatal("there is no stage that waits")
	}
	st := until(t, conn, api.PhaseReady, api.PhaseRefused)
	if want := "check as user nobody: unexpected EOF"; st.Phase != api.PhaseRefused || st.Refusal.Blame != api.BlameUnknown || st.Refusal.Text != want {
		t.Errorf("%s %+v, want %q and nobody's fault", st.Phase, st.Refusal, want)
	}
	for range conn.Answers() {
	}
}

// killCheck ends a check of nobody's, as nobody.
func killCheck() bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		st, err := os.Stat(filepath.Dir(path))
		if string(b) != "gshim\x00check\x00" || err != nil || st.Sys().(*syscall.Stat_t).Uid != 65534 {
			continue
		}
		kill := exec.Command("sh", "-c", "kill -KILL "+strconv.Itoa(pid))
		kill.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return kill.Run() == nil
	}
	return false
}

// TestStuck: a process in a frozen v1 group takes its KILL only when thawed, which is how a
// process in an uninterruptible wait looks to a shim.
func TestStuck(t *testing.T) {
	base, ok := kinds(t)[proc.Cgroup1]
	if !ok {
		t.Skip("needs a v1 freezer that may be written: the test freezes a rank with it")
	}
	for _, kind := range []string{proc.Cgroup2, proc.Group} {
		dir, ok := kinds(t)[kind]
		if !ok {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			s := specIn(t, dir, 1)
			ice := filepath.Join(base.Dir, fmt.Sprintf("ice.%d", os.Getpid()))
			if err := os.MkdirAll(ice, 0o755); err != nil {
				t.Fatal(err)
			}
			thaw := func() { _ = os.WriteFile(ice+"/freezer.state", []byte("THAWED"), 0) }
			t.Cleanup(func() { thaw(); _ = os.Remove(ice) })
			c := startShim(t, s, "#!/bin/sh\nexec sleep 1000\n")
			_ = c.Send(Command{Go: &Go{}})
			st := until(t, c, api.PhaseRunning)
			pid := st.Ranks[0].PID
			write(t, ice+"/cgroup.procs", fmt.Sprint(pid))
			write(t, ice+"/freezer.state", "FROZEN")
			_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 50 * time.Millisecond}})
			st = until(t, c, api.PhaseStuck)
			if len(st.Survivors) != 1 || st.Survivors[0].PID != pid || st.Survivors[0].State == "" {
				t.Errorf("survivors %+v", st.Survivors)
			}
			thaw()
			st = until(t, c, api.PhaseStopped)
			if len(st.Survivors) != 0 || !st.Forced {
				t.Errorf("state %+v", st)
			}
			time.Sleep(5 * time.Millisecond) // the frozen group lets go of the dead
		})
	}
}

func TestReadLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "0123456789")
	for offset, want := range map[string]string{"0": "0123456789", "4": "456789", "-3": "789", "-100": "0123456789", "50": ""} {
		out, err := exec.Command(program, "readlog", "--path", path, "--offset="+offset).Output()
		if err != nil || string(out) != want {
			t.Errorf("offset %s: %q, %v", offset, out, err)
		}
	}
	out, err := exec.Command(program, "readlog", "--path=/nonexistent").CombinedOutput()
	if err == nil || string(out) != "/nonexistent: no such file or directory\n" {
		t.Errorf("%q %v", out, err)
	}
}

// An output that its user has replaced by a FIFO keeps nobody waiting, followed or not.
func TestReadLogOfAFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, follow := range []bool{false, true} {
		done := make(chan error, 1)
		go func() { done <- ReadLog(io.Discard, path, 0, follow, false) }()
		select {
		case err := <-done:
			if want := path + " is not a regular file"; err == nil || err.Error() != want {
				t.Errorf("follow %t: %v, want %s", follow, err, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("follow %t: it hangs", follow)
		}
	}
}

func TestReadLogFollows(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	path := filepath.Join(t.TempDir(), "log") // comes later
	cmd := exec.CommandContext(ctx, program, "readlog", "--path", path, "--follow")
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	for _, text := range []string{"one\n", "two\n", "cut\n"} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if text == "cut\n" {
			_ = f.Truncate(0)
		}
		if err == nil {
			_, err = f.WriteString(text)
		}
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		n, err := pipe.Read(buf)
		if got := string(bytes.Clone(buf[:n])); err != nil || got != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	cancel()
	_ = cmd.Wait()
}

// TestReadLogEndsWithItsReader: a quiet file must not keep the process of a reader that was
// killed.
func TestReadLogEndsWithItsReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "one\n")
	for name, file := range map[string]string{"quiet": path, "not there yet": path + ".no"} {
		cmd := exec.Command(program, "readlog", "--path", file, "--follow")
		pipe, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = pipe.Close()
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%s: still there", name)
		}
	}
}

// TestHomeIsLookedForAsNobody: that a home directory is not there is seen with nobody's rights, in his own directory and in his group's, and
// what nobody may not look at is not taken for missing.
func TestHomeIsLookedForAsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		uid, gid int
		mode     os.FileMode
		want     bool
	}{
		"nobody's":          {nobody, 0, 0o700, true},
		"of nobody's group": {0, nobody, 0o710, true},
		"root's":            {0, 0, 0o700, false},
	} {
		s := asNobody(t, 1)
		dir := filepath.Join(filepath.Dir(s.Dir), "homes")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, c.uid, c.gid), os.Chmod(dir, c.mode)); err != nil {
			t.Fatal(err)
		}
		s.Home, s.WorkDir = dir+"/ada", dir+"/ada/w"
		conn, err := start(program, s, []byte("#!/bin/sh\n"))
		if err != nil {
			t.Fatal(err)
		}
		st := until(t, conn, api.PhaseReady, api.PhaseRefused)
		if got := st.Phase == api.PhaseRefused && st.Refusal.Blame == api.BlameSite; got != c.want {
			t.Errorf("%s: %s %+v", name, st.Phase, st.Refusal)
		}
		for range conn.Answers() {
		}
	}
}
