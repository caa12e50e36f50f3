package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTemporary: a TMPDIR that is missing is made, and one that can't be used is /tmp, with the reason.
func TestTemporary(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for tmp, why := range map[string]string{
		"":                              "", // none
		dir:                             "",
		filepath.Join(dir, "new"):       "",
		file:                            "Permission denied",
		filepath.Join(dir, "none/new"):  "No such file or directory",
		filepath.Join(file, "new"):      "Not a directory",
		dir + strings.Repeat("/d", 5e3): "File name too long",
	} {
		env := []string{"A=b"}
		want := []string{"A=b", "TMPDIR=/tmp"}
		if tmp != "" {
			env = append(env, "TMPDIR="+tmp)
			if why == "" {
				want = env
			}
		}
		got, said := Temporary(env)
		if !slices.Equal(got, want) || (why == "") != (said == "") || why != "" && !strings.HasPrefix(said, "slurmstepd: error: Unable to create TMPDIR ["+tmp+"]: "+why+"\n") {
			t.Errorf("%.80s: %.200q, %.200q", tmp, got, said)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made: %v, %v", info, err)
	}
}

// TestTemporariesThatComeBack: what the process that runs as the user says of TMPDIR changes that alone, and nothing that would keep a
// rank from starting.
func TestTemporariesThatComeBack(t *testing.T) {
	for _, c := range []struct{ back, want []string }{
		{[]string{"TMPDIR=/tmp"}, []string{"A=b", "TMPDIR=/tmp"}},
		{nil, []string{"A=b", "TMPDIR=/x"}},
		{[]string{"LD_PRELOAD=/x"}, []string{"A=b", "TMPDIR=/x"}},
		{[]string{"TMPDIR=/tmp\x00"}, []string{"A=b", "TMPDIR=/x"}},
		{[]string{"TMPDIR=/tmp", "TMPDIR=/y"}, []string{"A=b", "TMPDIR=/tmp"}},
	} {
		s := &Spec{Ranks: []RankSpec{{Env: []string{"A=b", "TMPDIR=/x"}}}}
		if s.setTemporaries(c.back); !slices.Equal(s.Ranks[0].Env, c.want) {
			t.Errorf("%q: %q, want %q", c.back, s.Ranks[0].Env, c.want)
		}
	}
}
