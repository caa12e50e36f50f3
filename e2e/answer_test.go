package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// byAPI ends the job by a call of its own, as a library does.
const byAPI = `
import http.client, json, os, socket
class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ.get("GANG_CONTROLLER") or os.environ["GANG_DIR"] + "/run/gangd.sock")
c = Local("gangd")
c.request("POST", "/v1/cancel", json.dumps({"refs": [os.environ["GANG_JOB_ID"]]}), {"Content-Type": "application/json", "Connection": "close"})
print(c.getresponse().status == 200 or 1/0)
`

// TestWhoEndsItsOwnJobHearsTheAnswer: a rank, a task, a script and a trap that requeue or cancel their own job
// know that it was granted, whatever command or call they do it by.
func TestWhoEndsItsOwnJobHearsTheAnswer(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--gpus=0")
	names := c.slurmNames()
	api1 := c.script("api.py", byAPI)
	calls := map[string]string{
		"gctl requeue":     c.bin + "/gctl requeue --now $GANG_JOB_ID",
		"gcancel":          c.bin + "/gcancel --now $GANG_JOB_ID",
		"scontrol requeue": names + "/scontrol requeue $SLURM_JOB_ID",
		"scancel":          names + "/scancel $SLURM_JOB_ID",
		"the API":          "python3 " + api1,
	}
	full := os.Getenv("GANG_E2E_CHAOS") != "" // else each call from one place, and the API's from all
	type asked struct {
		id         int64
		name, file string
	}
	for round := range trial.Rounds(1) {
		var all []asked
		for i, name := range slices.Sorted(maps.Keys(calls)) {
			call := calls[name]
			places := map[string][]string{
				"script": {"sbatch", "$CALL; echo rc $? >$FILE\nsleep 600\n"},
				"trap":   {"sbatch", "trap '$CALL; echo rc $? >$FILE; exit 0' USR1\nkill -USR1 $$\nsleep 600\n"},
				"task":   {"sbatch", names + "/srun -n1 sh -c '$CALL; echo rc $? >$FILE; sleep 600'\n"},
				"rank":   {"gsubmit", "[ $GANG_RANK = 1 ] && { $CALL; echo rc $? >$FILE; }\nsleep 600\n"},
				// Its program has no handler either, and waits for the call.
				"program": {"gsubmit", "[ $GANG_RANK = 0 ] && python3 -c 'import subprocess\nrc = subprocess.call([\"sh\", \"-c\", \"$CALL\"])\nopen(\"$FILE\", \"w\").write(\"rc %d\\n\" % rc)'\nsleep 600\n"},
			}
			for k, who := range slices.Sorted(maps.Keys(places)) {
				form := places[who]
				if !full && i != k && name != "the API" {
					continue
				}
				a := asked{name: who + ", " + name, file: filepath.Join(c.tmp, strings.ReplaceAll(who+name, " ", "")+strconv.Itoa(round))}
				// The second run has nothing to do.
				body := "#!/bin/bash\n[ -e $FILE.begun.$GANG_RANK ] && exit 0\ntouch $FILE.begun.$GANG_RANK\n" + form[1]
				body = strings.NewReplacer("$CALL", call, "$FILE", a.file).Replace(body)
				args := []string{"--requeue", "-o", "/dev/null"}
				if form[0] == "gsubmit" {
					args = append(args, "--size=2")
				}
				program := "gsubmit"
				if form[0] == "sbatch" {
					program = c.fromBin(names, "sbatch")
				}
				out := c.must(program, append(args, "--parsable", c.script("job", body))...)
				var err error
				if a.id, err = strconv.ParseInt(strings.TrimSpace(out), 10, 64); err != nil {
					t.Fatal(err)
				}
				all = append(all, a)
			}
		}
		for _, a := range all {
			c.client().Until(2*time.Minute, "the end of "+a.name, func() bool {
				s := c.job(a.id).State
				return s == api.JobCompleted || s == api.JobCancelled || s == api.JobFailed
			})
			if b, _ := os.ReadFile(a.file); string(b) != "rc 0\n" {
				t.Errorf("%s heard %q\n%s", a.name, b, c.story(a.id))
			}
		}
	}
}
