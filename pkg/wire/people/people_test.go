package people

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/lab/tool"
)

// host is a directory whose files are below a folder of the test's, and whose child is a script.
type host struct {
	*Directory
	t    *testing.T
	etc  string
	asks string // a line for each child
	at   atomic.Int64
}

func newHost(t *testing.T, script string) *host {
	t.Helper()
	etc := t.TempDir()
	h := &host{Directory: New(etc), t: t, etc: etc, asks: filepath.Join(etc, "asks")}
	h.getent = filepath.Join(etc, "getent")
	h.patience = 5 * time.Second
	h.now = func() time.Time { return time.Unix(1e9, h.at.Load()) }
	h.write("passwd", "root:x:0:0::/root:/bin/sh\nada:x:1000:100::/home/ada:/bin/sh\n+nis\n")
	h.write("group", "root:x:0:\nusers:x:100:\ndisk:x:6:ada,bob\n")
	h.write("nsswitch.conf", "passwd: files sss\ngroup: files [NOTFOUND=continue] sss\n")
	h.script(script)
	return h
}

func (h *host) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.etc, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// script is what the child does: of its arguments $1 is the table, $2 the key.
func (h *host) script(body string) {
	h.t.Helper()
	if err := os.WriteFile(h.getent+".new", []byte("#!/bin/sh\necho \"$*\" >> "+h.asks+"\n"+body+"\n"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(h.getent+".new", h.getent); err != nil {
		h.t.Fatal(err)
	}
}

// asked are the questions since the last time.
func (h *host) asked() []string {
	b, _ := os.ReadFile(h.asks)
	_ = os.Remove(h.asks)
	return slices.Collect(strings.SplitSeq(strings.TrimSpace(string(b)), "\n"))
}

// later lets time pass.
func (h *host) later(d time.Duration) { h.at.Add(int64(d)) }

// quiet waits until no look-up goes on.
func (h *host) quiet() {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		h.mu.Lock()
		busy := false
		for _, e := range h.kept {
			busy = busy || e.asking != nil
		}
		h.mu.Unlock()
		if !busy {
			return
		}
	}
	h.t.Fatal("a look-up does not end")
}

// anna is a directory of one user.
const anna = `case "$1 $2" in
"passwd 50001"|"passwd anna") echo "anna:*:50001:50001:Anna:/home/anna:/bin/bash";;
"initgroups anna") echo "anna                  50010 50001 50011";;
"group 50010") echo "project:*:50010:";;
*) exit 2;;
esac`

func TestFilesNeedNoChild(t *testing.T) {
	h := newHost(t, "exit 1")
	u, err := h.ByUID(t.Context(), 1000)
	if err != nil || u != (User{Name: "ada", UID: 1000, GID: 100, Home: "/home/ada", Shell: "/bin/sh"}) {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := h.ByName(t.Context(), "ada"); err != nil || u.UID != 1000 {
		t.Errorf("%+v, %v", u, err)
	}
	h.write("nsswitch.conf", "passwd: files\ngroup: files # sss\n")
	if _, err := h.ByUID(t.Context(), 4242); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
	if g, err := h.Groups(t.Context(), User{Name: "ada", GID: 100}); err != nil || !slices.Equal(g, []uint32{100, 6}) {
		t.Errorf("groups %v, %v", g, err)
	}
	if asked := h.asked(); asked[0] != "" {
		t.Errorf("a child was asked: %q", asked)
	}
	// A file that was changed is read again, at once.
	h.write("passwd", "root:x:0:0::/root:/bin/sh\nbea:x:1000:100::/home/bea:/bin/sh\n")
	if name, err := h.Name(t.Context(), 1000); err != nil || name != "bea" {
		t.Errorf("%s, %v", name, err)
	}
}

func TestDirectoryIsAskedOnce(t *testing.T) {
	h := newHost(t, anna)
	for range 3 {
		if u, err := h.ByUID(t.Context(), 50001); err != nil || u.Name != "anna" || u.Home != "/home/anna" {
			t.Errorf("%+v, %v", u, err)
		}
		if name, err := h.Name(t.Context(), 50002); err != nil || name != "50002" {
			t.Errorf("nobody's is %q, %v", name, err)
		}
	}
	if asked := h.asked(); !slices.Equal(asked, []string{"passwd 50001", "passwd anna", "passwd 50002"}) {
		t.Errorf("asked %q", asked)
	}
	// After a while it is answered from memory, and asked beside that.
	h.later(Fresh)
	if name, _ := h.Name(t.Context(), 50001); name != "anna" {
		t.Errorf("%q", name)
	}
	h.quiet()
	if asked := h.asked(); len(asked) != 2 {
		t.Errorf("asked %q", asked)
	}
	g, err := h.Groups(t.Context(), User{Name: "anna", GID: 50001})
	if err != nil || !slices.Equal(g, []uint32{50001, 50010, 50011}) {
		t.Errorf("groups %v, %v", g, err)
	}
	if name, err := h.GroupName(t.Context(), 50010); err != nil || name != "project" {
		t.Errorf("group %q, %v", name, err)
	}
	if name, err := h.GroupName(t.Context(), 100); err != nil || name != "users" {
		t.Errorf("group of the files %q, %v", name, err)
	}
}

// TestMany: questions about one at the same time are one, and there are never more children than there may be.
func TestMany(t *testing.T) {
	h := newHost(t, "sleep 0.05\n"+anna)
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			if name, err := h.Name(t.Context(), 50001); err != nil || name != "anna" {
				t.Errorf("%q, %v", name, err)
			}
			_, _ = h.Name(t.Context(), 60000+uint32(i%20))
		})
	}
	group.Wait()
	if asked := h.asked(); len(asked) != 22 {
		t.Errorf("%d questions: %q", len(asked), asked)
	}
}

// TestLies: a directory can make nobody somebody of this host's files, and nobody out of a text.
func TestLies(t *testing.T) {
	for what, c := range map[string]struct{ line string }{
		"the name of root":            {"root:*:50009:50009::/:/bin/sh"},
		"the name of a local user":    {"ada:*:50009:50009::/:/bin/sh"},
		"the number of somebody else": {"eve:*:50010:50010::/:/bin/sh"},
		"a number for a name":         {"1000:*:50009:50009::/:/bin/sh"},
		"an option for a name":        {"-x:*:50009:50009::/:/bin/sh"},
		"codes of a terminal":         {"e\033[2Jve:*:50009:50009::/:/bin/sh"},
		"marks of direction":          {"e\u202eve:*:50009:50009::/:/bin/sh"},
		"a name that is too long":     {strings.Repeat("e", 300) + ":*:50009:50009::/:/bin/sh"},
		"half a line":                 {"eve:*:50009"},
		"no number":                   {"eve:*:5000x9:1::/:/bin/sh"},
		"nothing":                     {""},
	} {
		h := newHost(t, "printf '%s\\n' '"+c.line+"'")
		if name, err := h.Name(t.Context(), 50009); err != nil || name != "50009" {
			t.Errorf("%s: %q, %v", what, name, err)
		}
	}
	// A name that leads to another number than its own is nobody's.
	h := newHost(t, `case "$2" in 50009) echo "eve:*:50009:1::/:/bin/sh";; eve) echo "eve:*:50010:1::/:/bin/sh";; *) exit 2;; esac`)
	if name, err := h.Name(t.Context(), 50009); err != nil || name != "50009" {
		t.Errorf("%q, %v", name, err)
	}
	h = newHost(t, `case "$2" in eve) echo "eve:*:0:0::/:/bin/sh";; *) exit 2;; esac`)
	if u, err := h.ByName(t.Context(), "eve"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a second root: %+v, %v", u, err)
	}
	// Directories write a name in their own way; what the number is called counts.
	h = newHost(t, `case "$2" in ANNA|anna|50001) echo "anna:*:50001:1::/:/bin/sh";; *) exit 2;; esac`)
	if u, err := h.ByName(t.Context(), "ANNA"); err != nil || u.Name != "anna" {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestNamesThatAreNone: they are nobody's, and no child sees them.
func TestNamesThatAreNone(t *testing.T) {
	h := newHost(t, "echo eve:x:50001:1::/:/bin/sh")
	for _, name := range []string{"", "-s", "a:b", "a,b", "a\nb", "12", "\xff", "e\u202e", strings.Repeat("e", 257)} {
		if u, err := h.ByName(t.Context(), name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %+v, %v", name, u, err)
		}
	}
	if asked := h.asked(); asked[0] != "" {
		t.Errorf("asked %q", asked)
	}
}

// TestSilence: who is known stays known, of others it is said soon that nobody can say, and when the directory
// answers again it is believed again.
func TestSilence(t *testing.T) {
	h := newHost(t, anna)
	if name, err := h.Name(t.Context(), 50001); err != nil || name != "anna" {
		t.Fatalf("%q, %v", name, err)
	}
	h.patience = 100 * time.Millisecond
	h.script("exec sleep 600")
	h.later(time.Hour)
	for range 3 {
		if name, err := h.Name(t.Context(), 50001); err != nil || name != "anna" {
			t.Errorf("known: %q, %v", name, err)
		}
	}
	var silent *NoAnswer
	_, err := h.Name(t.Context(), 50002)
	if !errors.As(err, &silent) || !strings.Contains(err.Error(), "who uid 50002 is could not be looked up within") {
		t.Errorf("%v", err)
	}
	h.quiet()
	h.asked()
	if _, err := h.ByUID(t.Context(), 50002); !errors.As(err, &silent) {
		t.Errorf("right after: %v", err)
	}
	if asked := h.asked(); asked[0] != "" {
		t.Errorf("right after it was asked %q", asked)
	}
	h.patience = 5 * time.Second
	h.script(`case "$2" in 50001|anne) echo "anne:*:50001:1::/:/bin/sh";; 50002|bob) echo "bob:*:50002:1::/:/bin/sh";; *) exit 2;; esac`)
	h.later(Retry)
	if name, err := h.Name(t.Context(), 50002); err != nil || name != "bob" {
		t.Errorf("when it answers again: %q, %v", name, err)
	}
	_, _ = h.Name(t.Context(), 50001)
	h.quiet()
	if name, err := h.Name(t.Context(), 50001); err != nil || name != "anne" {
		t.Errorf("renamed: %q, %v", name, err)
	}
}

// TestGone: that somebody who was known is unknown is believed when it has been said for a while: a directory that
// starts, or is empty for a moment, says so of all.
func TestGone(t *testing.T) {
	h := newHost(t, anna)
	_, _ = h.Name(t.Context(), 50001)
	h.script("exit 2")
	for passed := time.Duration(0); passed < Doubt; passed += time.Minute {
		h.later(time.Minute)
		if name, err := h.Name(t.Context(), 50001); err != nil || name != "anna" {
			t.Fatalf("after %s: %q, %v", passed, name, err)
		}
		h.quiet()
	}
	h.later(time.Minute)
	_, _ = h.Name(t.Context(), 50001)
	h.quiet()
	if name, err := h.Name(t.Context(), 50001); err != nil || name != "50001" {
		t.Errorf("in the end: %q, %v", name, err)
	}
	if u, known := h.Known(50001); known {
		t.Errorf("%+v", u)
	}
}

// TestKept: what is kept is bounded.
func TestKept(t *testing.T) {
	h := newHost(t, "exit 2")
	h.getent = ""
	for i := range maxKept + 500 {
		_, _ = h.ByUID(t.Context(), uint32(100_000+i))
	}
	if len(h.kept) > maxKept {
		t.Errorf("%d are kept", len(h.kept))
	}
}

// TestGroups: groups by name are those of the files first, and the directory's where it says the same name.
func TestGroups(t *testing.T) {
	h := newHost(t, `case "$1 $2" in
"group proj") echo proj:x:50010:anna ;;
"group lies") echo users:x:100: ;;
"group users") echo users:x:666: ;;
"group hangs") exec sleep 1000 ;;
*) exit 2 ;;
esac`)
	h.patience = 100 * time.Millisecond
	for name, want := range map[string]uint32{"users": 100, "proj": 50010} {
		if gid, err := h.Group(t.Context(), name); gid != want || err != nil {
			t.Errorf("%s: %d, %v", name, gid, err)
		}
	}
	for _, name := range []string{"lies", "nobody-has-it", "", "-x", "100", "a:b"} {
		if gid, err := h.Group(t.Context(), name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %d, %v", name, gid, err)
		}
	}
	var silent *NoAnswer
	if _, err := h.Group(t.Context(), "hangs"); !errors.As(err, &silent) || silent.What != "group hangs" {
		t.Errorf("of a directory that hangs: %v", err)
	}
	if text := h.GroupText(100) + " " + h.GroupText(12345); text != "users 12345" {
		t.Errorf("written: %s", text)
	}
}

// TestNameService asks the real getent of this host, with libnss-extrausers as the directory: in a mount namespace of
// its own, so that nobody else sees these users.
func TestNameService(t *testing.T) {
	const mark = "GANG_TEST_DIRECTORY"
	if os.Getenv(mark) == "" {
		if os.Geteuid() != 0 {
			t.Skip("needs root, to have a mount namespace")
		}
		tool.NeedLibrary(t, "libnss_extrausers.so.2")
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestNameService$", "-test.v")
		cmd.Env = append(os.Environ(), mark+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nsswitch.conf": "passwd: files extrausers\ngroup: files extrausers\nshadow: files\n",
		"x/passwd": "ldapanna:x:50001:50001:Anna:/home/anna:/bin/sh\nDOM\\uwe:x:50002:50001::/home/uwe:/bin/sh\nina@example.org:x:50003:50001::/home/ina:/bin/sh\n" +
			strings.Repeat("l", 51) + ":x:50004:50001::/home/l:/bin/sh\nroot:x:50009:50009::/:/bin/sh\n",
		"x/group": "ldapgrp:x:50001:\nldapproj:x:50010:ldapanna,DOM\\uwe\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("/var/lib/extrausers", 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"nsswitch.conf": "/etc/nsswitch.conf", "x": "/var/lib/extrausers"} {
		if err := syscall.Mount(filepath.Join(dir, from), to, "", syscall.MS_BIND, ""); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
	}
	d := New("/etc")
	d.patience = 30 * time.Second // this machine may be busy
	for uid, want := range map[uint32]string{0: "root", 50001: "ldapanna", 50002: `DOM\uwe`, 50003: "ina@example.org", 50004: strings.Repeat("l", 51), 50009: "50009", 50077: "50077"} {
		if name, err := d.Name(t.Context(), uid); err != nil || name != want {
			t.Errorf("uid %d: %q, %v, want %q", uid, name, err, want)
		}
		if uid == 50009 || uid == 50077 {
			continue
		}
		u, err := d.ByName(t.Context(), want)
		if err != nil || u.UID != uid {
			t.Errorf("%s: %+v, %v", want, u, err)
		}
	}
	for name, want := range map[string][]uint32{"ldapanna": {50001, 50010}, `DOM\uwe`: {50001, 50010}, "ina@example.org": {50001}} {
		u, err := d.ByName(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Groups(t.Context(), u); err != nil || !slices.Equal(got, want) {
			t.Errorf("groups of %s: %v, %v, want %v", name, got, err, want)
		}
	}
	if g, err := d.GroupName(t.Context(), 50010); err != nil || g != "ldapproj" {
		t.Errorf("%q, %v", g, err)
	}
	// A directory that hangs: its file is a pipe that nobody writes to.
	passwd := filepath.Join(dir, "x/passwd")
	if err := os.Remove(passwd); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(passwd, 0o644); err != nil {
		t.Fatal(err)
	}
	d.patience = 300 * time.Millisecond
	at := time.Now().Add(time.Hour)
	d.now = func() time.Time { return at }
	if name, err := d.Name(t.Context(), 50001); err != nil || name != "ldapanna" {
		t.Errorf("known, while it hangs: %q, %v", name, err)
	}
	var silent *NoAnswer
	if _, err := d.Name(t.Context(), 50078); !errors.As(err, &silent) {
		t.Errorf("unknown, while it hangs: %v", err)
	}
}
