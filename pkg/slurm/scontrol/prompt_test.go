package scontrol

import (
	"bytes"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/sitetest"
)

// TestPrompt: commands are read until quit, !! is the last one again, and the status is that of
// the last one that failed.
func TestPrompt(t *testing.T) {
	sitetest.Small(t).Found()
	var out, errs bytes.Buffer
	in := "!!\nping\n\n!!\nshow job 999\nquit\nping\n"
	status := Run(nil, cmdline.Streams{In: strings.NewReader(in), Out: &out, Err: &errs})
	up := "Slurmctld(primary) at " + hostname() + " is UP\n"
	if want := "scontrol: scontrol: " + up + "scontrol: scontrol: " + up + "scontrol: scontrol: "; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if status != 1 || !strings.HasPrefix(errs.String(), "no previous command\n") {
		t.Errorf("status %d, %q", status, errs.String())
	}
}
