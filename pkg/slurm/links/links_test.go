package links

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
)

// programs makes a directory with a program for each name but those left out.
func programs(t *testing.T, without ...string) string {
	bin := t.TempDir()
	for _, c := range cmdline.Names {
		if !strings.Contains(" "+strings.Join(without, " ")+" ", " "+c.Program+" ") {
			if err := os.WriteFile(filepath.Join(bin, c.Program), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bin
}

func TestMake(t *testing.T) {
	bin, dir := programs(t), filepath.Join(t.TempDir(), "deep", "slurm")
	for range 2 { // the second time finds its own
		r, err := Make(dir, bin, false)
		if err != nil || len(r.Made) != len(cmdline.Names) || r.Missing != nil {
			t.Fatalf("%+v %v", r, err)
		}
	}
	for _, c := range cmdline.Names {
		if to, err := os.Readlink(filepath.Join(dir, c.Name)); err != nil || to != filepath.Join(bin, c.Program) {
			t.Errorf("%s: %s %v", c.Name, to, err)
		}
	}
	other := programs(t) // a new installation takes the links over
	if _, err := Make(dir, other, false); err != nil {
		t.Fatal(err)
	}
	if to, _ := os.Readlink(filepath.Join(dir, "squeue")); to != filepath.Join(other, "gqueue") {
		t.Error(to)
	}
}

func TestWhatIsNotOursStays(t *testing.T) {
	bin, dir := programs(t), t.TempDir()
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("theirs"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("squeue")
	if err := os.Symlink("/opt/slurm/bin/sbatch", filepath.Join(dir, "sbatch")); err != nil {
		t.Fatal(err)
	}
	_, err := Make(dir, bin, false)
	want := dir + " holds sbatch, squeue, not made by gangd; choose another directory, or replace them: gangd slurm-links -f " + dir
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("a refusal left %v", left)
	}
	if _, err := Make(dir, bin, true); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "sinfo")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sinfo"), 0o755); err != nil {
		t.Fatal(err)
	}
	want = "in " + dir + " there are directories called sinfo, which are not replaced; choose another directory"
	if _, err := Make(dir, bin, true); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	dir := t.TempDir()
	r, err := Make(dir, programs(t, "grun", "gattach"), false)
	if err != nil || strings.Join(r.Missing, " ") != "grun gattach" {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "srun")); err == nil {
		t.Error("a link to a program that is not there")
	}
	empty := t.TempDir()
	want := "no program of gangd's is in " + empty + "; install gqueue, gsubmit and the others beside gangd"
	if _, err := Make(dir, empty, false); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
