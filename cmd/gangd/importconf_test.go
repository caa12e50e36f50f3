package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const site = "../../pkg/slurm/conf/testdata/site/"

func importRun(args ...string) (string, string, error) {
	var out, errs bytes.Buffer
	cmd := importConfCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), errs.String(), err
}

func TestImportShows(t *testing.T) {
	out, errs, err := importRun(site+"slurm.conf", site+"gres.conf", site+"topology.conf")
	if err != nil || !strings.HasPrefix(out, "# gangd.toml\n") || strings.Count(out, "# gnoded-") != 7 {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.HasSuffix(errs, "settings: 62 taken, 14 taken with a difference, 19 without a meaning here\n") {
		t.Error(errs)
	}
}

func TestImportWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gangd.toml")
	out, _, err := importRun(site+"slurm.conf", "-o", path)
	if err != nil || !strings.HasSuffix(out, "\nwrote "+filepath.Join(filepath.Dir(path), "gnoded-login1.toml")+"\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, _, err := importRun(site+"slurm.conf", "-o", path); err == nil ||
		err.Error() != path+" is there; give --force to replace it, or another -o" {
		t.Error(err)
	}
	if _, _, err := importRun(site+"slurm.conf", "-o", path, "--force"); err != nil {
		t.Error(err)
	}
}

func TestImportRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(bad, []byte("NodeName=n1\nKillWait=soon\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "gangd.toml")
	_, _, err := importRun(bad, "-o", out)
	if err == nil || err.Error() != bad+":2: KillWait=soon: want a number" {
		t.Error(err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
}
