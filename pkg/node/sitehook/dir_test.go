package sitehook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{"20-b", "10-a", "30-c~", ".hidden", "10-a.dpkg-old"} {
		put(name, 0o755)
	}
	got, err := Programs(dir)
	if want := filepath.Join(dir, "10-a") + " " + filepath.Join(dir, "20-b"); err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	if got, err := Programs(filepath.Join(dir, "20-b")); err != nil || len(got) != 1 {
		t.Errorf("a file: %v, %v", got, err)
	}
	for _, c := range []struct {
		mode os.FileMode
		want string
	}{
		{0o644, "X can't be executed: chmod +x X"},
		{0o777, "X may be changed by everybody (mode 0777): chmod o-w X"},
	} {
		x := put("50-x", c.mode)
		want := strings.ReplaceAll(c.want, "X", x)
		for _, path := range []string{dir, x} {
			if got, err := Programs(path); err == nil || err.Error() != want {
				t.Errorf("%s with mode %o: %v, %v; want %s", path, c.mode, got, err, want)
			}
		}
		if err := os.Remove(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "60-d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Programs(dir); err == nil || err.Error() != filepath.Join(dir, "60-d")+" is not a file" {
		t.Errorf("a directory in it: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Programs(dir); err == nil || !strings.Contains(err.Error(), "may be changed by everybody") {
		t.Errorf("a directory of everybody's: %v", err)
	}
	if _, err := Programs(filepath.Join(dir, "none")); err == nil {
		t.Error("a path that is not there")
	}
}

func TestRunHook(t *testing.T) {
	for _, c := range []struct{ body, want, output string }{
		{"exit 0", "", ""},
		{"echo mounted", "", "mounted"},
		{"echo one; printf 'la\\033st  one\\n'; echo; exit 3", ": exit status 3: la st  one", "one\nla st  one"},
		{"exit 4", ": exit status 4", ""},
	} {
		p := Program{hookProgram(t, c.body), time.Minute, nil}
		output, err := p.RunHook(context.Background(), nil)
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), p.Path)
		}
		if got != c.want || output != c.output {
			t.Errorf("%q: %q, %q, want %q, %q", c.body, got, output, c.want, c.output)
		}
	}
}
