package submit

import (
	"bytes"
	"io"
	"testing"

	"gangd/pkg/core/script"
)

// A trap that the notice can't reach is said, by whichever name a script is submitted, and no other is.
func TestTrapThatNoNoticeReaches(t *testing.T) {
	const text = "#!/bin/bash\n#SBATCH --time=5 -N1\ntrap 'save' USR1\nsrun python train.py\n"
	const want = ": warning: the script traps USR1, but --signal=USR1 is for the tasks of its steps; write --signal=B:USR1 for the script, or A:USR1 for both\n"
	for _, c := range []struct {
		program string
		args    []string
		text    string
		said    bool
	}{
		{"gsubmit", []string{"--signal=USR1@60"}, text, true},
		{"sbatch", []string{"--signal=SIGUSR1@60"}, text, true},
		{"sbatch", []string{"--signal=10"}, text, true},
		{"sbatch", []string{"--signal=B:USR1@60"}, text, false},
		{"gsubmit", []string{"--signal=A:USR1@60"}, text, false},
		{"gsubmit", []string{"--signal=USR2@60"}, text, false},
		{"gsubmit", nil, text, false},
		{"gsubmit", []string{"--signal=USR1@60"}, "#!/bin/bash\n#SBATCH --time=5 -N1\nsrun python train.py\n", false},
		// The script of a rank is told when it traps the signal.
		{"gsubmit", []string{"--signal=USR1@60", "--size=2"}, "#!/bin/bash\n#SBATCH --time=5\ntrap 'save' USR1\npython train.py\n", false},
		{"gsubmit", []string{"--signal=USR1@60", "--quiet"}, text, false},
	} {
		read := script.Flags
		if c.program == "sbatch" {
			read = script.SlurmFlags
		}
		flags, _, err := read(append(c.args, "job.sh"))
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		s := submission{out: io.Discard, err: &errs, program: c.program}
		if err := s.ask(flags, "job.sh", []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		s.tell()
		if got := errs.String(); c.said && got != c.program+want || !c.said && got != "" {
			t.Errorf("%s %q says %q", c.program, c.args, got)
		}
	}
}
