package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPassable: as whom it is looked, and the first directory that is closed is named with what opens it.
func TestPassable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it looks as another user")
	}
	base, err := os.MkdirTemp("", "gangd-passable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	deep, program := filepath.Join(base, "a", "b"), filepath.Join(base, "a", "b", "program")
	if err := errors.Join(os.Chmod(base, 0o755), os.MkdirAll(deep, 0o755), os.WriteFile(program, nil, 0o755), os.Symlink(deep, filepath.Join(base, "l"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		mode   os.FileMode
		group  int
		groups []uint32
		want   string
	}{
		{deep, 0o711, 0, nil, ""},
		{deep, 0o755, 0, nil, ""},
		{deep, 0o700, 0, nil, "users can't pass X (mode 0700): chmod o+x X"},
		{base + "/a", 0o750, 0, nil, "users can't pass X (mode 0750): chmod o+x X"},
		{base + "/a", 0o750, 700, []uint32{700}, ""},
		{base, 0o754, 0, nil, "users can't pass X (mode 0754): chmod o+x X"},
		{program, 0o755, 0, nil, ""},
		{program, 0o700, 0, nil, "users can't run X (mode 0700): chmod o+rx X"},
		{program, 0o751, 0, nil, "users can't run X (mode 0751): chmod o+rx X"},
	} {
		was, err := os.Stat(c.path)
		if err == nil {
			err = errors.Join(os.Chown(c.path, 0, c.group), os.Chmod(c.path, c.mode))
		}
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(c.want, "X", c.path)
		got := ""
		if err := RunsForUsers(program, c.groups); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s of mode %o: %q, want %q", c.path, c.mode, got, want)
		}
		if c.path != program {
			if err := Passable(filepath.Join(base, "l"), c.groups); (err == nil) != (want == "") {
				t.Errorf("%s of mode %o by a link: %v", c.path, c.mode, err)
			}
		}
		_ = os.Chmod(c.path, was.Mode())
	}
	// A link in a closed directory is no way, wherever it leads.
	if err := errors.Join(os.Symlink("/", filepath.Join(base, "a", "m")), os.Chmod(base+"/a", 0o700)); err != nil {
		t.Fatal(err)
	}
	if err, want := Passable(base+"/a/m", nil), "users can't pass "+base+"/a (mode 0700): chmod o+x "+base+"/a"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := Passable(base+"/none", nil); err == nil {
		t.Error("a directory that is not there")
	}
}

// TestAsUser: what is opened is what the user could open, in his groups alone, and the rights are back afterwards.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it acts as another user")
	}
	base, err := os.MkdirTemp("", "gangd-asuser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	file := filepath.Join(base, "f")
	if err := errors.Join(os.Chmod(base, 0o755), os.WriteFile(file, nil, 0o640), os.Chown(file, 0, 700)); err != nil {
		t.Fatal(err)
	}
	open := func() error {
		f, err := os.Open(file)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	for _, c := range []struct {
		cred syscall.Credential
		may  bool
	}{
		{syscall.Credential{Uid: nobody, Gid: nobody}, false},
		{syscall.Credential{Uid: nobody, Gid: 700}, true},
		{syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{5, 700}}, true},
		{syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{0}}, false},
	} {
		if err := AsUser(&c.cred, open); (err == nil) != c.may || err != nil && !errors.Is(err, os.ErrPermission) {
			t.Errorf("%+v: %v", c.cred, err)
		}
		if err := open(); err != nil {
			t.Fatalf("root's rights after it: %v", err)
		}
	}
}
