package trusted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(dir, file string) error
		want   string // in the error; empty: none
		root   bool
	}{
		{"ours alone", func(string, string) error { return nil }, "", false},
		{"readable by all", func(_, f string) error { return os.Chmod(f, 0o644) }, "", false},
		{"open to all", func(_, f string) error { return os.Chmod(f, 0o602) }, "may be changed by everybody (mode 0602): chmod o-w ", false},
		{"a directory open to all", func(d, _ string) error { return os.Chmod(d, 0o777) }, "sub may be changed by everybody (mode 0777)", false},
		{"a sticky one", func(d, _ string) error { return os.Chmod(d, 0o777|os.ModeSticky) }, "", false},
		{"another's", func(_, f string) error { return os.Chown(f, 1234, 0) }, "belongs to user id 1234, who could change it: chown root ", true},
		{"another's directory", func(d, _ string) error { return os.Chown(d, 1234, 0) }, "sub belongs to user id 1234", true},
		{"another group's", func(_, f string) error { os.Chown(f, 0, 1234); return os.Chmod(f, 0o660) }, "may be changed by group id 1234 (mode 0660): chmod g-w ", true},
		{"root's group", func(_, f string) error { return os.Chmod(f, 0o660) }, "", false},
		{"gone", func(_, f string) error { return os.Remove(f) }, "no such file", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && os.Geteuid() != 0 {
				t.Skip("needs root to give a file away")
			}
			dir := filepath.Join(t.TempDir(), "sub")
			file := filepath.Join(dir, "gangd.toml")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir, file); err != nil {
				t.Fatal(err)
			}
			err := File(file)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestLink: what a link leads to counts, not only where it stands.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	open, link := filepath.Join(dir, "open"), filepath.Join(dir, "link")
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	if err := File(link); err == nil || !strings.Contains(err.Error(), open+" may be changed by everybody") {
		t.Error(err)
	}
}
