package grun

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"gangd/pkg/client/program"
)

// TestTooLate: who had no room within --immediate is told so in the words of the command, and SLURM_EXIT_IMMEDIATE says with which
// status, whatever SLURM_EXIT_ERROR says.
func TestTooLate(t *testing.T) {
	t.Setenv("SLURM_EXIT_ERROR", "9")
	for _, c := range []struct {
		name, variable string
		within         time.Duration
		said, err      string
		status         int
	}{
		{"srun", "", time.Second, "", "error: Unable to allocate resources: Requested nodes are busy", 9},
		{"srun", "77", 5 * time.Second, "", "error: Unable to allocate resources: Requested nodes are busy", 77},
		{"salloc", "77", time.Second, "salloc: Job allocation 12 has been revoked.\n",
			"error: Unable to allocate resources: Requested nodes are busy", 77},
		{"salloc", "77", 5 * time.Second, "salloc: error: Unable to allocate resources: Connection timed out\n",
			"Job allocation 12 has been revoked.", 77},
		{"grun", "", 5 * time.Second, "", "job 12 had no room within 5 s and is cancelled", 1},
	} {
		t.Setenv("SLURM_EXIT_IMMEDIATE", c.variable)
		var said bytes.Buffer
		r := &run{ask: &ask{immediate: c.within, immediateSet: true}, name: c.name, err: &said}
		err := withStatus(c.name, r.tooLate(12))
		exit := new(program.ExitError)
		if !errors.As(err, &exit) || exit.Status != c.status || err.Error() != c.err || said.String() != c.said {
			t.Errorf("%s within %v: status %d, %v, said %q", c.name, c.within, exit.Status, err, said.String())
		}
	}
}
