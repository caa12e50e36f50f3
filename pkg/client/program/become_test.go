package program

import (
	"errors"
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

	"golang.org/x/sys/unix"
)

// TestBecome: who a process of some user and groups is after Become, each in a process of its own, because there is no way back.
func TestBecome(t *testing.T) {
	if who, asked := os.LookupEnv("BECOME"); asked {
		user, group, _ := strings.Cut(who, ":")
		becomeAndSay(user, group)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	bin := filepath.Join(passable(t), "test")
	text, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.WriteFile(bin, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	root, nobody, games := account(t, "root"), account(t, "nobody"), account(t, "games")
	root.groups = []int{0, 4, 27} // as a login gives some
	daemon := account(t, "daemon")
	gamesOf := func(gid int) whoIs { return whoIs{games.uid, gid, games.groups} }
	rootOf := func(gid int) whoIs { return whoIs{0, gid, root.groups} }
	for _, c := range []struct {
		as          whoIs
		user, group string
		want        string
	}{
		{root, "", "", root.String()},
		{root, "root", "", root.String()},
		{root, "0", "0", root.String()},
		{root, "root", "daemon", rootOf(daemon.gid).String()},
		{root, "games", "", games.String()},
		{root, strconv.Itoa(games.uid), "", games.String()},
		{root, "games", "daemon", gamesOf(daemon.gid).String()},
		{root, "games", strconv.Itoa(daemon.gid), gamesOf(daemon.gid).String()},
		{root, "", "daemon", rootOf(daemon.gid).String()},
		{root, "nosuchuser", "", errNoUser.Error()},
		{root, "4000000000", "", errNoUser.Error()},
		{root, "games", "nosuchgroup", errNoGroup.Error()},
		{root, "", "4000000000", errNoGroup.Error()},
		{nobody, "", "", nobody.String()},
		{nobody, "nobody", "", nobody.String()},
		{nobody, strconv.Itoa(nobody.uid), strconv.Itoa(nobody.gid), nobody.String()},
		{nobody, "root", "", ErrNotRoot.Error()},
		{nobody, "games", "", ErrNotRoot.Error()},
		{nobody, "", "daemon", ErrNotRoot.Error()},
		{nobody, "nobody", "daemon", ErrNotRoot.Error()},
		{nobody, "nosuchuser", "", errNoUser.Error()},
	} {
		cmd := exec.Command(bin, "-test.run=^TestBecome$")
		cmd.Dir, cmd.Env = filepath.Dir(bin), []string{"BECOME=" + c.user + ":" + c.group}
		cred := &syscall.Credential{Uid: uint32(c.as.uid), Gid: uint32(c.as.gid)}
		for _, g := range c.as.groups {
			cred.Groups = append(cred.Groups, uint32(g))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != c.want {
			t.Errorf("user %d becomes %q of group %q: %q, %v, want %q", c.as.uid, c.user, c.group, got, err, c.want)
		}
	}
}

// passable is a directory that every user may enter.
func passable(t *testing.T) string {
	dir, err := os.MkdirTemp("", "become")
	if err := errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

type whoIs struct {
	uid, gid int
	groups   []int
}

// String says it with the saved ids, by which a process could go back.
func (w whoIs) String() string {
	g := slices.Clone(w.groups)
	slices.Sort(g)
	return fmt.Sprint([]int{w.uid, w.uid, w.uid}, []int{w.gid, w.gid, w.gid}, slices.Compact(g))
}

func account(t *testing.T, name string) whoIs {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Skip(err)
	}
	ids, err := u.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	w := whoIs{uid: number(u.Uid), gid: number(u.Gid)}
	for _, id := range append(ids, u.Gid) {
		w.groups = append(w.groups, number(id))
	}
	return w
}

// becomeAndSay ends this process with what it was told or became.
func becomeAndSay(user, group string) {
	if err := Become(user, group); err != nil {
		fmt.Print(err)
		os.Exit(0)
	}
	ruid, euid, suid := unix.Getresuid()
	rgid, egid, sgid := unix.Getresgid()
	groups, err := os.Getgroups()
	if err != nil {
		fmt.Print(err)
	}
	slices.Sort(groups)
	fmt.Print([]int{ruid, euid, suid}, []int{rgid, egid, sgid}, slices.Compact(groups))
	os.Exit(0)
}
