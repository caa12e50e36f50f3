package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// What is said of the way to the first step is what the program did: of a script, of ranks and of the tasks of a step on one and
// four nodes, of both attempts of a job that is run again. Where neither cards nor beats are seen nothing is said.
func TestTimeToTheFirstStep(t *testing.T) {
	t.Parallel()
	prolog := filepath.Join(t.TempDir(), "prolog")
	if err := os.WriteFile(prolog, []byte("#!/bin/sh\nexec sleep 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=4", "--gpus=1x80G", "--set=prolog="+prolog)
	names := slurmNames(t, c)
	beat := strings.Replace(beatWith(t), "READY=1", "", 1)
	// The truth is from the first line of the ranks' program to the use of the card, and to the beat after that.
	prog := c.script("prog.sh", fmt.Sprintf(`#!/bin/sh
node=$SLURMD_NODENAME began=$(date +%%s.%%N)
sleep 4
echo '{"0": {"utilization": 90}}' >%[1]s/sim/$node.json.$$ && mv %[1]s/sim/$node.json.$$ %[1]s/sim/$node.json
used=$(date +%%s.%%N)
sleep 2
%[2]s
echo "$began $used $(date +%%s.%%N)" >>%[3]s/truth.$SLURM_JOB_ID.$GANG_EPOCH
sleep 2
echo '{"0": {"utilization": 0}}' >%[1]s/sim/$node.json.$$ && mv %[1]s/sim/$node.json.$$ %[1]s/sim/$node.json
[ "$1" != again ] || [ $GANG_RESTART_COUNT -gt 0 ] || exit 3
`, c.dir, beat, c.tmp))
	quiet := func() {
		for i := range 4 {
			c.steer(fmt.Sprintf("n%d", i+1), `{"0": {"utilization": 0}}`)
		}
	}
	detail := func(id int64) (d api.JobDetail) {
		if err := json.Unmarshal([]byte(c.must("gctl", "show", "job", "--json", fmt.Sprint(id))), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	check := func(id int64) {
		t.Helper()
		c.wait(id, api.JobCompleted)
		d := detail(id)
		for _, a := range d.Attempts {
			var use, step float64
			for _, line := range lines(t, fmt.Sprintf("%s/truth.%d.%d", c.tmp, id, a.Epoch)) {
				var at [3]float64
				for i, f := range strings.Fields(line) {
					at[i], _ = strconv.ParseFloat(f, 64)
				}
				use, step = max(use, at[1]-at[0]), max(step, at[2]-at[0])
			}
			s := (&api.Efficiency{}).Start
			if a.Efficiency != nil {
				s = a.Efficiency.Start
			}
			if s == nil || s.CardUse == nil || s.Beat == nil || s.Prolog == nil || s.Wait == nil {
				t.Errorf("job %d attempt %d: %+v", id, a.Attempt, s)
				continue
			}
			// Cards are looked at each second, and a shell comes before the first line.
			if math.Abs(*s.CardUse-use) > max(use/20, 1.2) || math.Abs(*s.Beat-step) > max(step/20, 1) || *s.Prolog < 1 || *s.Prolog > 3 {
				t.Errorf("job %d attempt %d: first use %.2f, beat %.2f, prolog %.2f; it was %.2f, %.2f, 1", id, a.Attempt, *s.CardUse, *s.Beat, *s.Prolog, use, step)
			}
		}
		quiet()
	}
	quiet()
	check(c.submit("--gpus=1", "-o", "/dev/null", prog))
	check(c.submit("--size=4", "--ranks-per-node=1", "--gpus-per-rank=1", "-o", "/dev/null", prog))
	check(c.submit("--nodes=4", "--gpus-per-node=1", "-o", "/dev/null", c.script("steps.sh", "#!/bin/sh\n"+names+"/srun -N4 -n4 "+prog+"\n")))
	again := c.submit("--size=1", "--gpus-per-rank=1", "--max-retries=1", "-o", "/dev/null", "--wrap", prog+" again")
	check(again)
	for _, cmd := range [][]string{{"gacct", "-e", "-j", fmt.Sprint(again)}, {"gctl", "show", "job", fmt.Sprint(again)}} {
		if out := c.must(cmd[0], cmd[1:]...); strings.Count(out, "to the first step: prolog 1.") != 2 || !strings.Contains(out, "to the first beat") {
			t.Errorf("%s:\n%s", cmd[0], out)
		}
	}
	silent := c.submit("-o", "/dev/null", "--wrap", "sleep 3")
	c.wait(silent, api.JobCompleted)
	if e := detail(silent).Attempts[0].Efficiency; e != nil && e.Start != nil {
		t.Errorf("nothing was seen of a first step, and it says %+v", e.Start)
	}
	if out := c.must("gacct", "-e", "-j", fmt.Sprint(silent)); strings.Contains(out, "first step") {
		t.Error(out)
	}
}
