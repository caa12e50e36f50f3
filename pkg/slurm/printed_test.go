package slurm_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode"

	"gangd/pkg/api"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/sacctmgr"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
	"gangd/pkg/slurm/sreport"
)

// TestNothingPrintedIsObeyed: what somebody has written of his job reaches no terminal as a code, turns no text around, and
// begins no line, in whatever a command shows.
func TestNothingPrintedIsObeyed(t *testing.T) {
	s := sitetest.Small(t)
	const evil = "\x1b]0;pwn\a\x1b[2J\nFAKE=1\r\u202egnp"
	spec := api.Spec{Name: "x\u202egnp\u2066", Size: 1, Launch: api.LaunchBatch, CPUsPerRank: 1, WorkDir: "/tmp/" + evil, Output: "/tmp/o" + evil, Error: "/tmp/e" + evil,
		Input: "/tmp/i" + evil, AsAsked: api.AsAsked{Comment: evil}, ScriptName: "/s" + evil, Script: []byte("#!/bin/sh\n"), Args: []string{evil}, Account: "a\u202eb", TimeLimit: 3600e9}
	waits := s.Submit(sitetest.Ada, spec, nil)
	ends := s.Submit(sitetest.Ada, spec, nil)
	s.NodeDo("drain", "n3", evil)
	s.Found()
	ids := strconv.FormatInt(waits, 10) + "," + strconv.FormatInt(ends, 10)
	for _, c := range []struct {
		run  slurm.Runner
		args string
	}{
		{squeue.Run, "-j " + ids}, {squeue.Run, "-l -j " + ids}, {squeue.Run, "-o %all -j " + ids}, {squeue.Run, "-O name,comment,workdir,stdout,stderr,stdin,command,account,reason:80 -j " + ids},
		{scontrol.Run, "show job " + strconv.FormatInt(waits, 10)}, {scontrol.Run, "-d show job " + strconv.FormatInt(waits, 10)}, {scontrol.Run, "-o show job"}, {scontrol.Run, "show node"}, {scontrol.Run, "-o show node n3"},
		{scontrol.Run, "show partition"}, {scontrol.Run, "show step"},
		{sacct.Run, "-X -j " + ids + " -o jobid,jobname%80,comment%200,workdir%200,account%40,submitline%200,reason%80"}, {sacct.Run, "-p -j " + ids + " -o all"}, {sacct.Run, "-P -a -o jobname,comment,workdir"},
		{sacctmgr.Run, "-P show assoc"}, {sinfo.Run, "-R"}, {sinfo.Run, "-N -l"}, {sinfo.Run, "-o %E%u%H"}, {sreport.Run, "job sizesbyaccount"},
	} {
		out, errs, _ := call(t, c.run, strings.Fields(c.args)...)
		for _, text := range []string{out, errs} {
			for line := range strings.Lines(text) {
				if strings.HasPrefix(strings.TrimSpace(line), "FAKE=1") {
					t.Errorf("%s: a line is forged: %q", c.args, line)
				}
				if bad := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) }); bad >= 0 {
					t.Errorf("%s: %q", c.args, line)
				}
			}
		}
		if out == "" {
			t.Errorf("%s: nothing is shown: %s", c.args, errs)
		}
	}
}
