package slurm_test

import (
	"flag"
	"os"
	"testing"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sbatch"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

var update = flag.Bool("update", false, "write the scripts' golden files anew")

// TestMain makes this test binary the commands themselves, by Slurm's names.
func TestMain(m *testing.M) {
	mains := map[string]func(){}
	for name, run := range map[string]slurm.Runner{"squeue": squeue.Run, "scancel": scancel.Run, "sinfo": sinfo.Run, "sbatch": sbatch.Run} {
		mains[name] = func() { os.Exit(run(os.Args[1:], cmdline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) }
	}
	clitest.Main(m, mains)
}

// TestScripts runs each command as scripts do; every script has a controller of its own.
func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata/script", *update) }
