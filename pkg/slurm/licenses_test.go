package slurm_test

import (
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/squeue"
)

// TestLicences: what the site has altogether is shown, held by who runs and waited for by who comes later, also across a restart.
func TestLicences(t *testing.T) {
	sitetest.Small(t, sitetest.At("11:00:00", func(s *sitetest.Site) {
		s.Set(func(set *api.Settings) { set.Licences = []api.Pool{{Name: "matlab", Count: 3}} })
		spec := sitetest.SmallSpec("holds", 1)
		spec.Pools = []api.Pool{{Kind: "licence", Name: "matlab", Count: 2}}
		s.Run(s.Submit(sitetest.Ada, spec, nil))
		spec.Name = "waits"
		s.Submit(sitetest.Ada, spec, nil)
		s.Restart(0)
	})).Found()
	for _, o := range []struct {
		run  slurm.Runner
		args string
		want string
	}{
		{scontrol.Run, "show licenses", "LicenseName=matlab\n    Total=3 Used=2 Free=1 Reserved=0 Remote=no\n"},
		{scontrol.Run, "-o show lic matlab", "LicenseName=matlab Total=3 Used=2 Free=1 Reserved=0 Remote=no\n"},
		{squeue.Run, "-h -S i -L other,matlab -o %i:%W:%r", "28:matlab:2:None\n29:matlab:2:Licenses\n"},
		{squeue.Run, "-h -L other", ""},
		{sacct.Run, "-X -n -P -j 28 -o licenses", "matlab:2\n"},
	} {
		if out, errs, status := call(t, o.run, strings.Fields(o.args)...); status != 0 || out != o.want {
			t.Errorf("%s: status %d, %q, want %q\n%s", o.args, status, out, o.want, errs)
		}
	}
	for args, part := range map[string]string{"show job 29": " Licenses=matlab:2 ", "--json=v0.0.40 show licenses": `"LicenseName": "matlab"`} {
		if out, errs, status := call(t, scontrol.Run, strings.Fields(args)...); status != 0 || !strings.Contains(out, part) {
			t.Errorf("%s: status %d\n%s%s, want %s", args, status, out, errs, part)
		}
	}
}
