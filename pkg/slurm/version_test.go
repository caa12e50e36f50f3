package slurm_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/squeue"
)

// call runs a command against the site that is found.
func call(t *testing.T, run slurm.Runner, args ...string) (out, errs string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(args, cmdline.Streams{Out: &o, Err: &e})
	return o.String(), e.String(), status
}

// Every Slurm that a site may choose is spoken, by the site's word, by the caller's, and with nobody to ask.
func TestVersions(t *testing.T) {
	t.Setenv("GANG_SLURM_VERSION", "")
	releases := map[string]string{"22.05": "22.05.8", "23.11": "23.11.11", "24.11": "24.11.7"}
	for _, v := range append(slices.Clone(api.SlurmVersions), "") {
		want := "slurm " + releases[v] + "-compatible (gangd " + api.Version + ")\n"
		if v == "" {
			want = "slurm 23.11.11-compatible (gangd " + api.Version + ")\n"
		}
		s := sitetest.Small(t)
		s.Set(func(set *api.Settings) { set.SlurmVersion = v })
		s.Found()
		if out, errs, _ := call(t, squeue.Run, "--version"); out != want {
			t.Errorf("site %q: %s%s", v, out, errs)
		}
	}
	t.Setenv("GANG_SLURM_VERSION", "22.05")
	if out, _, _ := call(t, squeue.Run, "-V"); out != "slurm 22.05.8-compatible (gangd "+api.Version+")\n" {
		t.Errorf("caller: %s", out)
	}
	t.Setenv("GANG_SLURM_VERSION", "21.08")
	want := "squeue: error: GANG_SLURM_VERSION=21.08: want one of 22.05, 23.11, 24.11\n"
	if out, errs, status := call(t, squeue.Run, "-V"); errs != want || status != 1 {
		t.Errorf("%d %s%s", status, out, errs)
	}
	t.Setenv("GANG_SLURM_VERSION", "")
	t.Setenv("GANG_DIR", t.TempDir())
	if out, errs, status := call(t, squeue.Run, "-V"); status != 0 || out != "slurm 23.11.11-compatible (gangd "+api.Version+")\n" {
		t.Errorf("with nobody to ask: %d %s%s", status, out, errs)
	}
}

// --json is of what was chosen, but in 22.05; a parser that is not there is refused, list names those that are.
func TestDocumentsFollowTheChoice(t *testing.T) {
	sitetest.Small(t).Found()
	for _, c := range []struct {
		version, args string
		all           bool
	}{
		{"23.11", "-j 12 --json", false}, {"24.11", "--json=v0.0.41 --jobs=12", false}, {"22.05", "-j 12 --json", true},
	} {
		t.Setenv("GANG_SLURM_VERSION", c.version)
		out, errs, status := call(t, squeue.Run, strings.Fields(c.args)...)
		var d struct {
			Jobs []struct {
				ID int64 `json:"job_id"`
			}
		}
		if err := json.Unmarshal([]byte(out), &d); err != nil || status != 0 {
			t.Fatalf("%s %s: %v %s", c.version, c.args, err, errs)
		}
		if all := len(d.Jobs) > 1; all != c.all || !all && d.Jobs[0].ID != 12 {
			t.Errorf("%s %s: %d jobs, %+v", c.version, c.args, len(d.Jobs), d.Jobs)
		}
	}
	for _, c := range []struct {
		version, arg, out string
		status            int
	}{
		{"24.11", "--json=list", "Possible data_parser plugins:\ndata_parser/v0.0.40\ndata_parser/v0.0.41\ndata_parser/v0.0.42\n", 0},
		{"23.11", "--yaml=v0.0.42", "squeue: error: no data parser \"v0.0.42\" in Slurm 23.11; it has data_parser/v0.0.40\n", 1},
		{"22.05", "--json=v0.0.40", "squeue: error: --json=v0.0.40: Slurm 22.05 has no choice of data parsers\n", 1},
	} {
		t.Setenv("GANG_SLURM_VERSION", c.version)
		if out, errs, status := call(t, squeue.Run, c.arg); out != "" || errs != c.out || status != c.status {
			t.Errorf("%s %s: %d %s%s", c.version, c.arg, status, out, errs)
		}
	}
}
