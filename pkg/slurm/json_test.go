package slurm_test

import (
	"bytes"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

// TestJSONHasSlurmsShape compares --json with what Slurm 22.05 printed, and with the tables of the data
// parsers of later ones: every name is there, no other is, and each has a type that Slurm's has; null stands for
// what is not known.
func TestJSONHasSlurmsShape(t *testing.T) {
	sitetest.Small(t).Found()
	if out, errs, code := call(t, scontrol.Run, "create", "reservation=talk", "start=now", "duration=60", "nodes=n3", "users=root"); code != 0 {
		t.Fatal(out, errs)
	}
	for _, d := range []struct {
		version, schema string
		also            []string // words that give the same shape
	}{
		{"22.05", "22.05", nil},
		{"23.11", "v0.0.40", []string{"--json=v0.0.40"}},
		{"24.11", "v0.0.42", nil},
		{"24.11", "v0.0.40", []string{"--json=data_parser/v0.0.40"}},
	} {
		for _, c := range []struct {
			name string
			run  slurm.Runner
			args []string
		}{
			{"squeue", squeue.Run, []string{"-t", "all"}},
			{"sinfo", sinfo.Run, nil},
			{"node", scontrol.Run, []string{"show", "node"}},
			{"partition", scontrol.Run, []string{"show", "partition"}},
			{"job", scontrol.Run, []string{"show", "job"}},
			{"reservation", scontrol.Run, []string{"show", "reservation"}},
			{"license", scontrol.Run, []string{"show", "lic"}},
			{"ping", scontrol.Run, []string{"ping"}},
		} {
			if d.version == "22.05" && c.name != "squeue" && c.name != "sinfo" {
				continue // its scontrol writes no documents
			}
			schema := "testdata/" + strings.Replace(c.name, "job", "squeue", 1) + "-" + d.schema + ".schema"
			t.Run(strings.Join([]string{c.name, d.version, d.schema}, " "), func(t *testing.T) {
				t.Setenv("GANG_SLURM_VERSION", d.version)
				args := append([]string{"--json"}, c.args...)
				if d.also != nil {
					args[0] = d.also[0]
				}
				var out, errs bytes.Buffer
				if code := c.run(args, cmdline.Streams{Out: &out, Err: &errs}); code != 0 {
					t.Fatalf("status %d: %s", code, errs.String())
				}
				slurmtest.Shape(t, schema, out.Bytes())
			})
		}
	}
}
